//! Categories: what part of a system the CPU time goes to.
//!
//! Each sample belongs to exactly one [category](crate::query::categories), so the shares add up to 100 %. Categories are
//! those of the lab file, the built-in ones, and kinds of code for the rest.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;
use stepscope_model::{Columns, Counts, Dimension, NoteValue, Table, ThreadId, note};

use crate::analysis::{Analysis, ReportSection, View};
use crate::query::select::Selection;
use crate::query::weights::{Amount, WeightByFunction, percent};

/// What one category's samples are.
#[derive(Default)]
struct Usage {
    sampled: Amount,
    threads: FxHashSet<ThreadId>,
    by_caller: WeightByFunction,
}

struct Row<'s> {
    name: &'s str,
    usage: Usage,
}

/// The table `categories`: one row per category, by weight, then name.
pub fn table(selection: &Selection<'_>) -> Table {
    let categories = selection.categories();
    let (capture, functions) = (selection.capture(), selection.functions());
    let mut usages: Vec<Usage> = (0..categories.len()).map(|_| Usage::default()).collect();
    if let Some(event) = selection.event() {
        for sample in selection.samples() {
            let usage = &mut usages[categories.at(sample.thread, sample.stack).index()];
            usage.sampled += Amount::of(event, sample.weight);
            usage.threads.insert(sample.thread);
            let leaf = |stack| functions.attributed(stack).unwrap_or_else(|| functions.of_node(capture, stack));
            usage.by_caller.add(sample.stack.map(leaf), sample.weight.into());
        }
    }
    let total = usages.iter().map(|usage| usage.sampled.weight).sum();
    let nowhere = categories.of_rules().filter(|id| usages[id.index()].sampled.is_zero());
    let nowhere: Vec<&str> = nowhere.map(|id| &**categories.name(id)).collect();
    let names = categories.names().map(|name| &**name);
    let rows = names.zip(usages).map(|(name, usage)| Row { name, usage });
    let mut rows: Vec<Row<'_>> = rows.filter(|row| !row.usage.sampled.is_zero()).collect();
    rows.sort_by_key(|row| (Reverse(row.usage.sampled.weight), row.name));
    let counted = selection.event().is_some_and(|event| event.counts != Counts::Unknown);
    let unit = selection.event().map_or("", |event| &event.unit);
    let mut table = Columns::<Row<'_>>::new()
        .text("category", "The category.", |row| row.name.into())
        .count("threads", "", "Number of threads with samples of it.", |row| row.usage.threads.len() as u64)
        .count("count", "samples", "Number of samples; missing if only sums of weights were imported.", move |row| {
            counted.then_some(row.usage.sampled.count)
        })
        .weight("weight", unit, "Weight of the samples.", |row| row.usage.sampled.weight)
        .percentage("share", "Weight in percent of the selected total.", move |row| {
            percent(row.usage.sampled.weight, total)
        })
        .text("top_function", "The function that most of its weight is attributed to.", |row| {
            row.usage.by_caller.top(functions).map(|(name, _)| name).into()
        })
        .percentage("top_share", "That function's part of the row, in percent.", |row| {
            row.usage.by_caller.top(functions).and_then(|(_, weight)| percent(weight, row.usage.sampled.weight))
        })
        .essential("share")
        .detail("count")
        .table("categories", "Categories", &rows);
    if !rows.is_empty() {
        let samples = rows.iter().map(|row| row.usage.sampled.count).sum::<u64>();
        let total = NoteValue::of(total, unit);
        table.add_notes([match counted {
            true => note!(Fact, "Total: {} in {}.", total, NoteValue::plural(samples as usize, "sample")),
            false => note!(Fact, "Total: {}.", total),
        }]);
    }
    if !nowhere.is_empty() {
        let names = NoteValue::names(nowhere, 10);
        table.add_notes([note!(Hint, "No sample is in {}; check the rules in [categories].", names)]);
    }
    table
}

/// What part of a system the CPU time goes to.
pub const ANALYSIS: Analysis = Analysis {
    title: "Categories",
    views: &[View {
        name: "categories",
        question: "What part of the system does the CPU time go to: executor, middleware, network, your categories?",
        tables: |selection, _| vec![table(selection)],
    }],
    needs: &[Dimension::Cpu],
    report: |selection| ReportSection::of_rows("Categories", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::Drawing;
    use crate::query::categories::{CategoryRule, CategoryRules};
    use crate::query::naming::Naming;
    use crate::{Filter, Functions, Owned};

    /// A node: callbacks, its executor, CycloneDDS, and the kernel.
    const NODE: &str = "\
main;main;rclcpp::Executor::spin;lidar::callback;lidar::filter 40
main;main;rclcpp::Executor::spin;lidar::callback;std::sort<int*> 5
main;main;rclcpp::Executor::spin;lidar::callback;malloc;page_fault_[k] 4
main;main;rclcpp::Executor::spin;lidar::callback;rclcpp::Publisher<A>::publish;rmw_publish;dds_write;dds_stream_write 6
main;main;rclcpp::Executor::spin;lidar::callback;rclcpp::Publisher<A>::publish;dds_write;sendmsg;udp_sendmsg_[k] 7
main;main;rclcpp::Executor::spin;rclcpp::Executor::wait_for_work;rmw_wait;futex_wait_[k] 8
tev;ddsi_threads;pthread_cond_wait;futex_wait_[k] 9
recv;ddsi_threads;recvmsg;udp_recvmsg_[k] 20
other 1";

    fn node() -> Capture {
        Drawing::new().folded(Event::sampled("cpu-clock", "ns"), NODE).capture
    }

    fn table_by(capture: &Capture, rules: CategoryRules) -> Table {
        let functions = Functions::of(capture, &Owned::nothing());
        let naming = Naming { categories: rules, ..Naming::default() };
        table(&Selection::new(capture, &functions, &Filter { naming, ..Filter::default() }).unwrap())
    }

    fn rule(name: &str) -> CategoryRule {
        CategoryRule { name: name.to_owned(), ..CategoryRule::default() }
    }

    fn patterns(texts: &[&str]) -> Vec<crate::Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn each_sample_is_in_the_innermost_category_and_shares_add_up() {
        let table = table_by(&node(), CategoryRules::default());
        assert_eq!(
            cells(&table, &["category", "threads", "share"]),
            [
                "native | 1 | 40",
                "DDS receive | 1 | 20",
                "DDS transport events | 1 | 9",
                "ROS 2 wait set | 1 | 8",
                "kernel network | 1 | 7",
                "serialisation | 1 | 6",
                "runtime | 1 | 5",
                "allocator | 1 | 4",
                "unknown | 1 | 1",
            ]
        );
    }

    #[test]
    fn rules_of_the_lab_file_come_first_and_take_what_their_functions_call() {
        let lidar = CategoryRule { functions: patterns(&["lidar::*"]), ..rule("lidar") };
        let dds = CategoryRule { threads: patterns(&["tev", "recv*"]), ..rule("all of DDS") };
        let both = CategoryRule {
            threads: patterns(&["main"]),
            functions: patterns(&["lidar::filter"]),
            ..rule("filter of main")
        };
        let unused = CategoryRule { processes: patterns(&["*planner*"]), ..rule("planner") };
        let rules = CategoryRules { rules: vec![both, unused, lidar, dds], sets: None };
        let table = table_by(&node(), rules);
        assert_eq!(
            cells(&table, &["category", "share"]),
            ["filter of main | 40", "all of DDS | 29", "lidar | 22", "ROS 2 wait set | 8", "unknown | 1"]
        );
        assert_eq!(table.notes[1..], ["No sample is in `planner`; check the rules in [categories]."]);
    }

    #[test]
    fn names_of_threads_decide_only_where_the_middleware_is() {
        let capture =
            Drawing::new().folded(Event::sampled("cpu-clock", "ns"), "recv;main;parse 3\ntev;main;poll_[k] 1").capture;
        let table = table_by(&capture, CategoryRules::default());
        assert_eq!(cells(&table, &["category", "share"]), ["native | 75", "kernel | 25"]);
    }

    #[test]
    fn sets_can_be_left_out() {
        let sets = Some(["network".to_owned()].into());
        let table = table_by(&node(), CategoryRules { rules: Vec::new(), sets });
        assert_eq!(
            cells(&table, &["category", "share"]),
            ["native | 46", "kernel network | 27", "kernel | 17", "runtime | 5", "allocator | 4", "unknown | 1"]
        );
    }
}

//! One function explained: its cost by capture, callers, paths, callees, threads, lines, waits, steps, heap, system calls, sharing and memory errors.
//!
//! The rank shows *that* a function is costly; these tables show *why*. All weights are of stacks that contain the function,
//! each stack counted once:
//!
//! - *callers*: the functions directly above its outermost call. They add up to the inclusive weight, with recursion too.
//! - *callees*: the functions directly below its innermost call, and `(self)` for itself. They add up to the inclusive
//!   weight too; `(self)` is the self weight.
//! - *paths*: the owned functions from the root down to it, as own qualified names.
//! - *leaves*: the leaves of the weight attributed to it.
//! - *steps*: what it and its callees cost in a step, in the slowest twentieth of the steps, and in the others.
//! - *memory errors*: those at stacks that contain it, and those of memory that it allocated or freed.
//! - *heap*, *system calls*, *files*: those at stacks that contain it. `attributed` is the part whose nearest owned function it
//!   is.
//!
//! [`function_names`](crate::query::function_names) maps a name to functions.

mod calls;
mod dimensions;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use stepscope_model::{Column, Columns, Table, Value, WaitState};
use thiserror::Error;

use self::calls::Calls;
use crate::analyses::{cache, rank};
use crate::query::function_names::{FunctionNameError, matching};
use crate::query::functions::source_of;
use crate::query::select::Selection;
use crate::query::wait_class::{self, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::{Amount, percent};

/// The callee of weight that was spent in the function itself.
pub const SELF: &str = "(self)";

/// The caller of a function at the root of its stacks.
pub const ROOT: &str = "(root)";

/// Rows of a table that may be long, at most this many for each capture.
const LONGEST_LIST: usize = 20;

/// The tables that explain a function: `explain_costs`, `explain_rank`, `explain_paths`, `explain_callers`,
/// `explain_callees`, `explain_leaves`, `explain_threads`, `explain_lines`, `explain_blocked`, `explain_steps`,
/// `explain_heap`, `explain_syscalls`, `explain_files`, `explain_sharing`, `explain_memory_errors`, `explain_cache`; those without rows are left out.
///
/// # Errors
/// If no function has the name, or several functions do.
pub fn tables(selections: &[Selection<'_>], asked: &str, options: &rank::Options) -> Result<Vec<Table>, ExplainError> {
    let wanted = find(selections, asked)?;
    let calls: Vec<Calls<'_, '_>> = selections
        .iter()
        .map(|selection| Calls::of(selection, &wanted))
        .filter(|calls| !calls.functions.is_empty())
        .collect();
    let ranks = in_rank(selections, &wanted, options);
    let lists = LISTS.iter().map(|about| listed(&calls, about)).chain([lines(&calls), blocked(&calls)]);
    let all = [costs(&calls, asked)].into_iter().chain(ranks).chain(lists).chain(dimensions::tables(&calls));
    let all = all.chain(in_cache(selections, &wanted));
    Ok(all.filter(|table| !table.rows.is_empty()).collect())
}

/// A function that cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}{advice}", advice = advice(.0))]
pub struct ExplainError(#[from] FunctionNameError);

fn advice(error: &FunctionNameError) -> String {
    match error {
        FunctionNameError::NotFound { similar, .. } if similar.is_empty() => {
            "; `stepscope show` lists the functions".to_owned()
        }
        FunctionNameError::NotFound { .. } => String::new(),
        FunctionNameError::Ambiguous { asked, .. } => format!("; name one, or add them up with `'*{asked}*'`"),
    }
}

/// Full names of the functions that a name means.
fn find(selections: &[Selection<'_>], asked: &str) -> Result<BTreeSet<String>, ExplainError> {
    let all = selections.iter().flat_map(|selection| selection.functions().all());
    let found = matching(all.map(|(_, function)| &*function.name), asked)?;
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// The unit of all selections' weights, empty if they differ.
fn common_unit<'c>(calls: &'c [Calls<'_, '_>]) -> &'c str {
    let unit = calls.first().map_or("", Calls::unit);
    if calls.iter().all(|one| one.unit() == unit) { unit } else { "" }
}

/// The column that names the capture of a row.
fn capture<'c, R: 'c>(label: impl Fn(&R) -> String + 'c) -> Columns<'c, R> {
    let column = Column::text("capture", "Scenario, variant and phase; the file of imported evidence.");
    Columns::new().with(column.grouping(), move |row| label(row).into())
}

fn costs(calls: &[Calls<'_, '_>], asked: &str) -> Table {
    struct Row<'c> {
        calls: &'c Calls<'c, 'c>,
        total: Amount,
        own: Amount,
        inclusive: Amount,
        attributed: Option<Amount>,
    }
    let unit = common_unit(calls);
    let rows = calls.iter().map(|one| Row {
        calls: one,
        total: one.weights.total(),
        own: one.own(),
        inclusive: one.inclusive(),
        attributed: one.all().ownership_known().then(|| one.sum(|stack, _| one.is_attributed(stack))),
    });
    capture(|row: &Row<'_>| row.calls.label())
        .text("function", "Full name.", |row| row.calls.name().into())
        .text("module", "File name of its module; empty where unknown.", |row| row.calls.modules().into())
        .flag("owned", "Whether it is code that the user's team can change.", |row| {
            row.attributed.map(|_| row.calls.is_owned())
        })
        .count(
            "count",
            "samples",
            "Number of samples that contain it; missing if only sums of weights were imported.",
            |row| row.calls.weights.counts_known.then_some(row.inclusive.count),
        )
        .weight("self", unit, "Weight of the samples whose leaf it is.", |row| row.own.weight)
        .weight("inclusive", unit, "Weight of the samples that contain it, recursion counted once.", |row| {
            row.inclusive.weight
        })
        .weight("attributed", unit, "Weight of the samples whose nearest owned function it is.", |row| {
            row.attributed.map(|amount| amount.weight)
        })
        .percentage("self_share", "Self in percent of all weight.", |row| row.own.percent_of(row.total))
        .percentage("inclusive_share", "Inclusive in percent of all weight.", |row| row.inclusive.percent_of(row.total))
        .percentage("attributed_share", "Attributed in percent of all weight.", |row| {
            row.attributed.and_then(|amount| amount.percent_of(row.total))
        })
        .essential("self_share inclusive_share attributed_share")
        .detail("module owned count")
        .table("explain_costs", format!("Cost of {asked}"), rows)
}

/// The function's rows of the ranks, under their own name. Unlike captures have a rank each.
fn in_rank(selections: &[Selection<'_>], wanted: &BTreeSet<String>, options: &rank::Options) -> Vec<Table> {
    let mut tables = rank::tables(selections, options);
    for table in &mut tables {
        let function = table.column("function").expect("the rank has functions");
        table.rows.retain(|row| matches!(&row[function], Value::Text(name) if wanted.contains(name)));
        table.name = "explain_rank".to_owned();
    }
    tables
}

/// The function's share of the cache misses of each capture that has some.
fn in_cache(selections: &[Selection<'_>], wanted: &BTreeSet<String>) -> Vec<Table> {
    let of_function = |selection: &Selection<'_>| {
        let mut table = cache::by_function(selection);
        let function = table.column("function").expect("cache misses are of functions");
        table.rows.retain(|row| matches!(&row[function], Value::Text(name) if wanted.contains(name)));
        table.notes.clear();
        table.name = "explain_cache".to_owned();
        table.title = format!("Its cache misses in {}", selection.capture().info.name());
        table
    };
    selections.iter().map(of_function).collect()
}

/// A table of a list: its name, title, first column with doc, and what makes the list.
struct ListTable {
    name: &'static str,
    title: &'static str,
    column: &'static str,
    doc: &'static str,
    list: fn(&Calls<'_, '_>) -> Vec<(String, Amount)>,
}

const LISTS: [ListTable; 5] = [
    ListTable {
        name: "explain_paths",
        title: "Paths of owned functions",
        column: "call_path",
        doc: "Owned functions from the root down to it, as own qualified names.",
        list: |calls| calls.paths(),
    },
    ListTable {
        name: "explain_callers",
        title: "Callers",
        column: "caller",
        doc: "The function directly above its outermost call.",
        list: |calls| calls.callers(),
    },
    ListTable {
        name: "explain_callees",
        title: "Callees",
        column: "callee",
        doc: "The function directly below its innermost call; `(self)` for itself.",
        list: |calls| calls.callees(),
    },
    ListTable {
        name: "explain_leaves",
        title: "Leaves of the cost attributed to it",
        column: "leaf",
        doc: "Leaf of the samples.",
        list: |calls| calls.leaves(),
    },
    ListTable {
        name: "explain_threads",
        title: "Threads that run it",
        column: "thread",
        doc: "Name and id of the thread.",
        list: |calls| calls.threads(),
    },
];

/// A table of one list a capture, heaviest first, cut at [`LONGEST_LIST`] with the rest added up.
fn listed(calls: &[Calls<'_, '_>], about: &ListTable) -> Table {
    struct Row {
        label: String,
        text: String,
        amount: Amount,
        count: Option<u64>,
        whole: Amount,
        total: Amount,
    }
    let of_capture = |one: &Calls<'_, '_>| {
        let mut rows = merged((about.list)(one));
        let whole: Amount = rows.iter().map(|(_, amount)| *amount).sum();
        if rows.len() > LONGEST_LIST {
            let rest = rows.split_off(LONGEST_LIST - 1);
            let sum = rest.iter().map(|(_, amount)| *amount).sum();
            rows.push((format!("({} more)", rest.len()), sum));
        }
        let (label, total, counts_known) = (one.label(), one.weights.total(), one.weights.counts_known);
        rows.into_iter().map(move |(text, amount)| Row {
            label: label.clone(),
            text,
            amount,
            count: counts_known.then_some(amount.count),
            whole,
            total,
        })
    };
    capture(|row: &Row| row.label.clone())
        .with(Column::text(about.column, about.doc).essential(), |row| row.text.as_str().into())
        .count("count", "samples", "Number of samples; missing if only sums of weights were imported.", |row| row.count)
        .weight("weight", common_unit(calls), "Weight of the samples.", |row| row.amount.weight)
        .percentage("share", "Weight in percent of all rows of this capture.", |row| row.amount.percent_of(row.whole))
        .percentage("total_share", "Weight in percent of all weight of the capture.", |row| {
            row.amount.percent_of(row.total)
        })
        .essential("weight share")
        .detail("count total_share")
        .table(about.name, about.title, calls.iter().flat_map(of_capture))
}

/// Equal texts together, heaviest first, then by text.
fn merged(rows: Vec<(String, Amount)>) -> Vec<(String, Amount)> {
    let mut sums: FxHashMap<String, Amount> = FxHashMap::default();
    for (text, amount) in rows {
        *sums.entry(text).or_default() += amount;
    }
    let mut rows: Vec<(String, Amount)> = sums.into_iter().collect();
    rows.sort_by(|a, b| (Reverse(a.1.weight), &a.0).cmp(&(Reverse(b.1.weight), &b.0)));
    rows
}

/// The cost at one source line of the function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LineCost {
    own: u128,
    inclusive: u128,
}

fn lines(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        source: String,
        cost: LineCost,
        whole: u128,
    }
    let of_capture = |one: &Calls<'_, '_>| {
        let (label, whole) = (one.label(), one.inclusive().weight);
        let mut rows: Vec<(String, LineCost)> = line_costs(one).into_iter().collect();
        rows.sort_by(|(a, a_cost), (b, b_cost)| (Reverse(a_cost), a).cmp(&(Reverse(b_cost), b)));
        rows.truncate(LONGEST_LIST);
        rows.into_iter().map(move |(source, cost)| Row { label: label.clone(), source, cost, whole })
    };
    let unit = common_unit(calls);
    capture(|row: &Row| row.label.clone())
        .text("source", "Source file and line.", |row| row.source.as_str().into())
        .weight("self", unit, "Weight of the samples whose leaf is this line of it.", |row| row.cost.own)
        .weight("inclusive", unit, "Weight of the samples whose innermost call of it is at this line.", |row| {
            row.cost.inclusive
        })
        .percentage("share", "Inclusive in percent of the function's.", |row| percent(row.cost.inclusive, row.whole))
        .essential("source inclusive")
        .table("explain_lines", "Lines of its source", calls.iter().flat_map(of_capture))
}

fn line_costs(calls: &Calls<'_, '_>) -> FxHashMap<String, LineCost> {
    let capture = calls.selection.capture();
    let mut sums: FxHashMap<String, LineCost> = FxHashMap::default();
    for (stack, call, amount) in calls.stacks() {
        let innermost = match call.below {
            Some(below) => capture.stacks[below.index()].parent.expect("the call is above"),
            None => stack,
        };
        let frame = capture.stacks[innermost.index()].frame;
        if capture.frames[frame.index()].line.is_none() {
            continue;
        }
        let line = sums.entry(source_of(capture, frame)).or_default();
        line.inclusive += amount.weight;
        if call.below.is_none() {
            line.own += amount.weight;
        }
    }
    sums.remove("");
    sums
}

/// The waits of one class under the function.
#[derive(Debug, Clone, Copy, Default)]
struct ClassTime {
    blocked: u128,
    attributed: u128,
    waits: u64,
    longest: u64,
}

fn blocked(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        class: WaitClass,
        time: ClassTime,
    }
    let of_capture = |one: &Calls<'_, '_>| {
        let times = class_times(one);
        let mut rows: Vec<(WaitClass, ClassTime)> =
            WaitClass::ALL.into_iter().zip(times).filter(|(_, time)| time.waits > 0).collect();
        rows.sort_by_key(|(class, time)| (Reverse(time.blocked), *class));
        let label = one.label();
        rows.into_iter().map(move |(class, time)| Row { label: label.clone(), class, time })
    };
    capture(|row: &Row| row.label.clone())
        .text("class", "What it waited for.", |row| row.class.name().into())
        .duration("blocked", "Blocked time at stacks that contain it.", |row| row.time.blocked)
        .duration("attributed", "The part of it whose nearest owned caller it is.", |row| row.time.attributed)
        .count("waits", "", "Number of waits.", |row| row.time.waits)
        .duration("longest", "The longest wait.", |row| row.time.longest)
        .table("explain_blocked", "Blocked time under it", calls.iter().flat_map(of_capture))
}

fn class_times(calls: &Calls<'_, '_>) -> [ClassTime; WaitClass::ALL.len()] {
    let mut times = [ClassTime::default(); WaitClass::ALL.len()];
    for wait in calls.selection.waits().filter(|wait| wait.state == WaitState::Blocked) {
        let Some(stack) = wait.stack.filter(|stack| calls.calls[stack.index()].is_some()) else { continue };
        let blocked = blocked_ns(&wait);
        let class = wait_class::of_stack(calls.selection.capture(), calls.all(), stack);
        let time = &mut times[class.index()];
        time.blocked += u128::from(blocked);
        if calls.is_attributed(stack) {
            time.attributed += u128::from(blocked);
        }
        time.waits += u64::from(wait.count);
        time.longest = time.longest.max(blocked / u64::from(wait.count.max(1)));
    }
    times
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event, MemoryError};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn explained(capture: &Capture, asked: &str) -> Result<Vec<Table>, ExplainError> {
        drawn::selected(capture, &["gz::"], |selection| {
            tables(std::slice::from_ref(selection), asked, &rank::Options::default())
        })
    }

    /// The named table's columns; empty if it was left out.
    fn rows(capture: &Capture, asked: &str, table: &str, columns: &[&str]) -> Vec<String> {
        let tables = explained(capture, asked).unwrap();
        tables.iter().find(|one| one.name == table).map(|one| cells(one, columns)).unwrap_or_default()
    }

    const STACKS: &str = "
        main;gz::Run;gz::Recreate;void gz::Each<int>;gz::Matches;find 20
        main;gz::Run;gz::Recreate;void gz::Each<int>;gz::Matches 5
        main;gz::Run;void gz::Each<long>;gz::Matches;gz::Matches;find 10
        worker;gz::Matches;malloc 3
        worker;other 62
        ";

    #[test]
    fn callers_add_up_to_inclusive_and_callees_with_self_do_too() {
        let capture = drawn::folded(STACKS);
        assert_eq!(
            rows(&capture, "gz::Matches", "explain_costs", &["self", "inclusive", "attributed", "inclusive_share"]),
            ["5 | 38 | 38 | 38"]
        );
        assert_eq!(
            rows(&capture, "gz::Matches", "explain_callers", &["caller", "weight"]),
            ["void gz::Each<int> | 25", "void gz::Each<long> | 10", "(root) | 3",]
        );
        assert_eq!(
            rows(&capture, "gz::Matches", "explain_callees", &["callee", "weight"]),
            ["find | 30", "(self) | 5", "malloc | 3",]
        );
    }

    #[test]
    fn paths_are_the_owned_functions_that_led_to_it() {
        assert_eq!(
            rows(&drawn::folded(STACKS), "gz::Matches", "explain_paths", &["call_path", "weight", "total_share"]),
            [
                "gz::Run > gz::Recreate > gz::Each > gz::Matches | 25 | 25",
                "gz::Run > gz::Each > gz::Matches | 10 | 10",
                "gz::Matches | 3 | 3",
            ]
        );
    }

    #[test]
    fn leaves_and_threads_are_named() {
        let capture = drawn::folded(STACKS);
        assert_eq!(
            rows(&capture, "gz::Matches", "explain_leaves", &["leaf", "weight"]),
            ["find | 30", "gz::Matches | 5", "malloc | 3",]
        );
        assert_eq!(
            rows(&capture, "gz::Matches", "explain_threads", &["thread", "weight"]),
            ["main (100) | 35", "worker (101) | 3"]
        );
    }

    #[test]
    fn an_own_qualified_name_means_every_instance_of_a_template() {
        let capture = drawn::folded(STACKS);
        let columns = ["function", "inclusive"];
        assert_eq!(rows(&capture, "gz::Each", "explain_costs", &columns), ["gz::Each (2 instances) | 35"]);
        assert_eq!(rows(&capture, "void gz::Each<long>", "explain_costs", &columns), ["void gz::Each<long> | 10"]);
        assert_eq!(rows(&capture, "Each", "explain_costs", &columns), ["gz::Each (2 instances) | 35"]);
        assert_eq!(rows(&capture, "gz::Match*", "explain_costs", &columns), ["gz::Matches | 38"]);
    }

    #[test]
    fn lines_are_of_the_innermost_call() {
        let capture = drawn::columns(
            "
            main                     main                     main
            gz::Step [file:s.cc:10]  gz::Step [file:s.cc:20]  gz::Step [file:s.cc:20]
            find                                              gz::Step [file:s.cc:10]
            4                        3                        2
            ",
        );
        assert_eq!(
            rows(&capture, "gz::Step", "explain_lines", &["source", "self", "inclusive"]),
            ["s.cc:20 | 3 | 3", "s.cc:10 | 2 | 6",]
        );
    }

    #[test]
    fn a_file_without_a_line_is_no_line() {
        let mut capture = drawn::columns(
            "
            main                     main
            gz::Step [file:s.cc:10]  gz::Step [file:other.cc:1]
            4                        3
            ",
        );
        capture.frames.iter_mut().filter(|frame| frame.line == Some(1)).for_each(|frame| frame.line = None);
        assert_eq!(rows(&capture, "gz::Step", "explain_lines", &["source", "self"]), ["s.cc:10 | 4"]);
    }

    #[test]
    fn blocked_time_and_rank_are_shown() {
        let capture = Drawing::new()
            .window(0..1_000)
            .folded(Event::sampled("cpu-clock", "ns"), "main;gz::Run;gz::Push 10")
            .blocked("main", 0..100, "gz::Run;gz::Push;pthread_mutex_lock")
            .blocked("main", 200..230, "gz::Run;usleep")
            .capture;
        let columns = ["class", "blocked", "attributed", "waits", "longest"];
        assert_eq!(
            rows(&capture, "gz::Run", "explain_blocked", &columns),
            ["lock | 100 | 0 | 1 | 100", "sleep | 30 | 30 | 1 | 30"]
        );
        assert_eq!(
            rows(&capture, "gz::Push", "explain_rank", &["rank", "score", "evidence"]),
            ["1 | 55 | cpu 40/40, offcpu 15/15, sched 0/10"]
        );
    }

    #[test]
    fn its_share_of_the_cache_misses_is_set_against_its_share_of_the_cost() {
        let capture = Drawing::new()
            .folded(Event::weighed("cycles", "cycles"), "main;gz::Chase 20\nmain;gz::Run 80")
            .folded(Event::weighed("cache-misses", "misses"), "main;gz::Chase 80\nmain;gz::Run 20")
            .capture;
        assert_eq!(rows(&capture, "gz::Chase", "explain_cache", &["verdict", "ratio"]), ["hostile | 4"]);
    }

    #[test]
    fn memory_errors_of_a_function_are_those_that_it_made_and_those_of_its_memory() {
        let mut capture = drawn::folded("main;sim::Use 1\nmain;sim::Make;malloc 1\nmain;sim::Other 1");
        let [used, made, other] = [0, 1, 2].map(|sample: usize| capture.samples[sample].stack);
        for (kind, stack, allocated, count) in
            [("use after free", used, made, 3), ("leak", made, None, 2), ("data race", other, used, 1)]
        {
            capture.memory_errors.push(MemoryError {
                tool: "asan".into(),
                kind: kind.into(),
                message: "m".into(),
                process: None,
                stack,
                allocated,
                other: None,
                count,
                bytes: None,
                first_ns: None,
            });
        }
        assert_eq!(
            rows(&capture, "sim::Make", "explain_memory_errors", &["kind", "role", "count"]),
            ["use after free | allocated the memory | 3", "leak | made it | 2"]
        );
    }

    #[test]
    fn steps_heap_and_system_calls_of_a_function_are_on_its_page() {
        let samples = "@5 main;gz::Save;write 10\n@15 main;gz::Save;write 30\n@25 main;gz::Run 7";
        let drawing = Drawing::new().window(0..100).process(7, "/usr/bin/sim").steps("main", 0, 10, 4, 1);
        let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), samples).capture;
        drawn::allocations(
            &mut capture,
            10..20,
            "main;gz::Save;gz::Name;malloc 8 80 8 0 16\nmain;gz::Save;malloc 2 20 0 20 4",
        );
        drawn::allocations(&mut capture, 20..40, "main;gz::Run;malloc 5 50 0 0 0");
        drawn::system_calls(&mut capture, 15, "main;gz::Save;gz::Name;openat", "openat", 6);
        drawn::system_calls(&mut capture, 35, "main;gz::Save;write", "write", 2);
        drawn::system_calls(&mut capture, 36, "main;gz::Run;write", "write", 50);
        for calls in &mut capture.system_calls[..2] {
            calls.file = Some("/tmp/stats".into());
        }
        let rows = |table: &str, columns: &[&str]| rows(&capture, "gz::Save", table, columns);
        assert_eq!(rows("explain_steps", &["steps", "per_step", "per_slow_step"]), ["4 | 10 | -"]);
        assert_eq!(
            rows("explain_heap", &["calls", "attributed_calls", "temporary", "bytes", "peak_bytes", "leaked_bytes"]),
            ["10 | 2 | 8 | 100 | 20 | 20"]
        );
        // Intervals within steps start after the first one: 3 steps.
        assert_eq!(rows("explain_heap", &["calls_per_step", "bytes_per_step"]), ["3.333333 | 33.333333"]);
        assert_eq!(
            rows("explain_syscalls", &["call", "count", "attributed", "calls_per_step"]),
            ["openat | 6 | 0 | 1.5", "write | 2 | 2 | 0.5"]
        );
        assert_eq!(rows("explain_files", &["file", "sequence"]), ["/tmp/stats | openat × 6, write × 2"]);
    }

    #[test]
    fn case_and_underscores_do_not_matter_and_a_part_of_the_name_is_enough() {
        let capture = drawn::folded("main;gz::Run;gz::sim::entity_matches 3\nmain;gz::Run;gz::EachNew 1");
        let columns = ["function", "inclusive"];
        for asked in ["EntityMatches", "entitymatches", "sim::EntityMatches", "ity_mat"] {
            assert_eq!(rows(&capture, asked, "explain_costs", &columns), ["gz::sim::entity_matches | 3"], "{asked}");
        }
    }

    #[test]
    fn functions_that_match_a_glob_are_added_up() {
        let capture = drawn::folded(STACKS);
        let columns = ["function", "inclusive"];
        assert_eq!(rows(&capture, "gz::R*", "explain_costs", &columns), ["(2 functions) | 35"]);
    }

    #[test]
    fn an_ambiguous_or_unknown_name_is_refused_with_names() {
        let capture = drawn::folded(STACKS);
        assert_eq!(
            explained(&capture, "xyz").unwrap_err().to_string(),
            "no function matches `xyz`; `stepscope show` lists the functions"
        );
        assert_eq!(
            explained(&capture, "at").unwrap_err().to_string(),
            "`at` matches several functions: `gz::Matches`, `gz::Recreate`; name one, or add them up with `'*at*'`"
        );
        assert_eq!(
            explained(&capture, "gz::Machtes").unwrap_err().to_string(),
            "no function matches `gz::Machtes`; did you mean `gz::Matches`?"
        );
        assert_eq!(
            explained(&capture, "nothing").unwrap_err().to_string(),
            "no function matches `nothing`; `stepscope show` lists the functions"
        );
    }
}

//! One function explained: what it costs where, who calls it, on which paths, what it calls, on which threads and lines.
//!
//! The rank says *that* a function costs; these tables say *why*, so that the next step is an edit and not another
//! profile. All weights are of stacks that hold the function, each stack counted once:
//!
//! - *callers* are what is directly above its outermost call: they add up to the inclusive weight, recursion or not.
//! - *callees* are what is directly below its innermost call, and `(self)` where nothing is: they add up to it too, and
//!   `(self)` is the self weight.
//! - *paths* are the owned functions from the root down to it, as own qualified names: who decided that it runs.
//! - *leaves* are where the weight that is attributed to it was spent.
//!
//! A function is asked for by its full name; by its own qualified name, which means all instances of a template; by the end of
//! that name (`EntityMatches`), or by a pattern, if only one function fits.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Column, StackId, Table, Value, WaitState};
use thiserror::Error;

use crate::analyses::rank;
use crate::analyses::summary::label;
use crate::columns;
use crate::query::functions::source_of;
use crate::query::functions::{FunctionId, Functions};
use crate::query::pattern::{Pattern, offered};
use crate::query::qualified_name::own_name;
use crate::query::select::Selection;
use crate::query::wait_class::{self, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::{Amount, StackWeights, percent};

/// The callee of weight that was spent in the function itself.
pub const SELF: &str = "(self)";

/// The caller of a function at the root of its stacks.
pub const ROOT: &str = "(root)";

/// Rows of a table that may be long, at most this many for each capture.
const LONGEST_LIST: usize = 20;

/// A function that cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExplainError {
    /// No function is called so.
    #[error("no function is called `{asked}`{}", suggestions(.similar))]
    NotFound {
        /// What was asked for.
        asked: String,
        /// Names that hold it.
        similar: Vec<String>,
    },
    /// More than one function fits.
    #[error("`{asked}` may be any of {}: ask for one of them", offered(.names))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// Own qualified names of the functions.
        names: Vec<String>,
    },
}

fn suggestions(similar: &[String]) -> String {
    if similar.is_empty() {
        return " in these captures; `--view hotspots` lists what there is".to_owned();
    }
    format!("; did you mean {}?", offered(similar))
}

/// The tables that explain a function: `explain_costs`, `explain_rank`, `explain_paths`, `explain_callers`,
/// `explain_callees`, `explain_leaves`, `explain_threads`, `explain_lines`, `explain_blocked`; those without rows are left
/// out.
///
/// # Errors
/// If no function or more than one fits what was asked for.
pub fn tables(selections: &[Selection<'_>], asked: &str, options: &rank::Options) -> Result<Vec<Table>, ExplainError> {
    let wanted = find(selections, asked)?;
    let calls: Vec<Calls<'_, '_>> = selections
        .iter()
        .map(|selection| Calls::of(selection, &wanted))
        .filter(|calls| !calls.functions.is_empty())
        .collect();
    let all = [
        costs(&calls, asked),
        in_rank(selections, &wanted, options),
        listed(
            &calls,
            "explain_paths",
            "Paths of owned functions to it",
            "path",
            "Owned functions from the root down to it, as own qualified names.",
            Calls::paths,
        ),
        listed(
            &calls,
            "explain_callers",
            "What calls it",
            "caller",
            "The function directly above its outermost call.",
            Calls::callers,
        ),
        listed(
            &calls,
            "explain_callees",
            "What it calls",
            "callee",
            "The function directly below its innermost call; `(self)` for itself.",
            Calls::callees,
        ),
        listed(
            &calls,
            "explain_leaves",
            "Where the cost attributed to it was spent",
            "leaf",
            "The function that the samples end in.",
            Calls::leaves,
        ),
        listed(
            &calls,
            "explain_threads",
            "Which threads run it",
            "thread",
            "Name and id of the thread.",
            Calls::threads,
        ),
        lines(&calls),
        blocked(&calls),
    ];
    Ok(all.into_iter().filter(|table| !table.rows.is_empty()).collect())
}

/// Full names of the functions that were asked for.
fn find(selections: &[Selection<'_>], asked: &str) -> Result<BTreeSet<String>, ExplainError> {
    let names: BTreeSet<&str> = selections
        .iter()
        .flat_map(|selection| selection.functions().all())
        .map(|(_, function)| &*function.name)
        .collect();
    let that = |fits: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        names.iter().filter(|name| fits(name)).map(|name| (*name).to_owned()).collect()
    };
    let mut found = that(&|name| name == asked);
    if found.is_empty() {
        found = that(&|name| own_name(name) == asked);
    }
    if !found.is_empty() {
        return Ok(found);
    }
    if let Ok(pattern) = asked.parse::<Pattern>() {
        found = that(&|name| pattern.matches(name) || pattern.matches(&own_name(name)));
    }
    if found.is_empty() {
        let end = format!("::{asked}");
        found = that(&|name| own_name(name).ends_with(&end));
    }
    let own: BTreeSet<String> = found.iter().map(|name| own_name(name).into_owned()).collect();
    match own.len() {
        0 => {
            let part = asked.to_lowercase();
            let similar = that(&|name| name.to_lowercase().contains(&part)).into_iter().collect();
            Err(ExplainError::NotFound { asked: asked.to_owned(), similar })
        }
        1 => Ok(found),
        _ => Err(ExplainError::Ambiguous { asked: asked.to_owned(), names: own.into_iter().collect() }),
    }
}

/// The calls of the wanted functions in one selection.
struct Calls<'s, 'a> {
    selection: &'s Selection<'a>,
    weights: StackWeights,
    functions: FxHashSet<FunctionId>,
    /// By node: the outermost call on the path to it, and the node below the innermost call (or the call itself).
    calls: Vec<Option<Call>>,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    outermost: StackId,
    /// The node directly below the innermost call; absent at the call itself.
    below: Option<StackId>,
}

impl<'s, 'a> Calls<'s, 'a> {
    fn of(selection: &'s Selection<'a>, wanted: &BTreeSet<String>) -> Self {
        let (capture, all) = (selection.capture(), selection.functions());
        let functions: FxHashSet<FunctionId> =
            all.all().filter(|(_, function)| wanted.contains(&*function.name)).map(|(id, _)| id).collect();
        let mut calls: Vec<Option<Call>> = Vec::with_capacity(capture.stacks.len());
        for (index, node) in capture.stacks.iter().enumerate() {
            let here = StackId::from_index(index);
            let above = node.parent.and_then(|parent| calls[parent.index()]);
            calls.push(if functions.contains(&all.of_frame(node.frame)) {
                Some(Call { outermost: above.map_or(here, |call| call.outermost), below: None })
            } else {
                above.map(|call| Call { below: call.below.or(Some(here)), ..call })
            });
        }
        Self { selection, weights: StackWeights::of_samples(selection), functions, calls }
    }

    fn label(&self) -> String {
        label(self.selection.capture())
    }

    fn unit(&self) -> &str {
        self.selection.event().map_or("", |event| &event.unit)
    }

    fn all(&self) -> &'a Functions {
        self.selection.functions()
    }

    fn name_at(&self, node: StackId) -> String {
        self.all().get(self.all().of_node(self.selection.capture(), node)).name.to_string()
    }

    /// The stacks that hold the function, with what ends at them.
    fn stacks(&self) -> impl Iterator<Item = (StackId, Call, Amount)> + '_ {
        self.weights.occupied().filter_map(|(stack, amount)| Some((stack, self.calls[stack.index()]?, amount)))
    }

    fn sum(&self, counts: impl Fn(StackId, Call) -> bool) -> Amount {
        self.stacks().filter(|(stack, call, _)| counts(*stack, *call)).map(|(.., amount)| amount).sum()
    }

    fn inclusive(&self) -> Amount {
        self.sum(|_, _| true)
    }

    fn own(&self) -> Amount {
        self.sum(|_, call| call.below.is_none())
    }

    fn is_attributed(&self, stack: StackId) -> bool {
        self.all().attributed(stack).is_some_and(|owner| self.functions.contains(&owner))
    }

    fn by_key<K: std::hash::Hash + Eq>(&self, key: impl Fn(StackId, Call) -> Option<K>) -> FxHashMap<K, Amount> {
        let mut sums: FxHashMap<K, Amount> = FxHashMap::default();
        for (stack, call, amount) in self.stacks() {
            if let Some(key) = key(stack, call) {
                *sums.entry(key).or_default() += amount;
            }
        }
        sums
    }

    fn callers(&self) -> Vec<(String, Amount)> {
        let capture = self.selection.capture();
        let above = |_, call: Call| Some(capture.stacks[call.outermost.index()].parent.map(|node| self.id_at(node)));
        self.named(self.by_key(above), ROOT)
    }

    fn callees(&self) -> Vec<(String, Amount)> {
        self.named(self.by_key(|_, call| Some(call.below.map(|node| self.id_at(node)))), SELF)
    }

    fn leaves(&self) -> Vec<(String, Amount)> {
        let leaf = |stack, _| self.is_attributed(stack).then(|| Some(self.id_at(stack)));
        self.named(self.by_key(leaf), SELF)
    }

    fn id_at(&self, node: StackId) -> FunctionId {
        self.all().of_node(self.selection.capture(), node)
    }

    fn named(&self, sums: FxHashMap<Option<FunctionId>, Amount>, none: &str) -> Vec<(String, Amount)> {
        let name = |id: Option<FunctionId>| id.map_or(none.to_owned(), |id| self.all().get(id).name.to_string());
        sums.into_iter().map(|(id, amount)| (name(id), amount)).collect()
    }

    /// Recursion on a path is shown once.
    fn paths(&self) -> Vec<(String, Amount)> {
        let by_call = self.by_key(|_, call| Some(call.outermost));
        let mut sums: FxHashMap<String, Amount> = FxHashMap::default();
        for (call, amount) in by_call {
            let capture = self.selection.capture();
            let above = capture.nodes_of(capture.stacks[call.index()].parent);
            let owned = above.map(|node| self.id_at(node)).filter(|id| self.all().get(*id).owned);
            let mut path: Vec<String> = vec![own_name(&self.name_at(call)).into_owned()];
            path.extend(owned.map(|id| own_name(&self.all().get(id).name).into_owned()));
            path.dedup();
            path.reverse();
            *sums.entry(path.join(" > ")).or_default() += amount;
        }
        sums.into_iter().collect()
    }

    fn threads(&self) -> Vec<(String, Amount)> {
        let Some(event) = self.selection.event() else { return Vec::new() };
        let mut sums: FxHashMap<_, Amount> = FxHashMap::default();
        for sample in self.selection.samples() {
            if sample.stack.is_some_and(|stack| self.calls[stack.index()].is_some()) {
                let count = event.count_of(sample.weight).unwrap_or(0);
                *sums.entry(sample.thread).or_default() += Amount { weight: sample.weight.into(), count };
            }
        }
        let threads = &self.selection.capture().threads;
        let name =
            |id: stepscope_model::ThreadId| format!("{} ({})", threads[id.index()].name, threads[id.index()].tid);
        sums.into_iter().map(|(id, amount)| (name(id), amount)).collect()
    }
}

/// The unit of all selections' weights, empty where they differ.
fn common_unit<'c>(calls: &'c [Calls<'_, '_>]) -> &'c str {
    let unit = calls.first().map_or("", Calls::unit);
    if calls.iter().all(|one| one.unit() == unit) { unit } else { "" }
}

fn capture_column() -> Column {
    columns::text("capture", "Scenario, variant and phase; for imported evidence its file.")
}

fn costs(calls: &[Calls<'_, '_>], asked: &str) -> Table {
    let unit = common_unit(calls);
    let mut table = Table::new(
        "explain_costs",
        format!("What {asked} costs"),
        vec![
            capture_column(),
            columns::text("function", "Full name."),
            columns::text("module", "File name of the module its code is in; empty where unknown.").detail(),
            columns::flag("owned", "Whether it is code that the user's team can change."),
            columns::count(
                "count",
                "samples",
                "Number of samples that hold it; missing where only sums of weights were imported.",
            )
            .detail(),
            columns::weight("self", unit, "Weight of the samples whose leaf it is."),
            columns::weight("inclusive", unit, "Weight of the samples that hold it, recursion counted once."),
            columns::weight("attributed", unit, "Weight of the samples whose nearest owned function it is.").detail(),
            columns::percent("self_share", "Self in percent of all weight.").essential(),
            columns::percent("inclusive_share", "Inclusive in percent of all weight.").essential(),
            columns::percent("attributed_share", "Attributed in percent of all weight."),
        ],
    );
    for one in calls {
        let total = one.weights.total();
        let (own, inclusive) = (one.own(), one.inclusive());
        let attributed = one.sum(|stack, _| one.is_attributed(stack));
        let functions: Vec<_> = one.functions.iter().map(|id| one.all().get(*id)).collect();
        let together = |of: fn(&crate::Function) -> &str| -> String {
            functions
                .iter()
                .map(|function| of(function))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(", ")
        };
        let name = match functions.as_slice() {
            [function] => function.name.to_string(),
            several => format!("{} ({} instances)", own_name(&several[0].name), several.len()),
        };
        let known = one.all().ownership_known();
        table.push(vec![
            one.label().into(),
            name.into(),
            together(|function| &function.module).into(),
            known.then(|| functions.iter().any(|function| function.owned)).into(),
            one.weights.counts_known.then_some(inclusive.count).into(),
            own.weight.into(),
            inclusive.weight.into(),
            known.then_some(attributed.weight).into(),
            own.percent_of(total).into(),
            inclusive.percent_of(total).into(),
            known.then(|| attributed.percent_of(total)).flatten().into(),
        ]);
    }
    table
}

/// The function's rows of the rank, under their own name.
fn in_rank(selections: &[Selection<'_>], wanted: &BTreeSet<String>, options: &rank::Options) -> Table {
    let mut table = rank::table(selections, options);
    let function = table.column("function").expect("the rank has functions");
    table.rows.retain(|row| matches!(&row[function], Value::Text(name) if wanted.contains(name)));
    table.name = "explain_rank".to_owned();
    table
}

/// A table of one list a capture, heaviest first, cut at [`LONGEST_LIST`] with the rest added up.
fn listed<'s, 'a>(
    calls: &[Calls<'s, 'a>],
    name: &str,
    title: &str,
    column: &str,
    doc: &str,
    list: fn(&Calls<'s, 'a>) -> Vec<(String, Amount)>,
) -> Table {
    let mut table = Table::new(
        name,
        title,
        vec![
            capture_column(),
            columns::text(column, doc).essential(),
            columns::count("count", "samples", "Number of samples; missing where only sums of weights were imported.")
                .detail(),
            columns::weight("weight", common_unit(calls), "Weight of the samples.").essential(),
            columns::percent("share", "Weight in percent of the rows of this capture together.").essential(),
            columns::percent("total_share", "Weight in percent of all weight of the capture.").detail(),
        ],
    );
    for one in calls {
        let mut rows = merged(list(one));
        let whole: Amount = rows.iter().map(|(_, amount)| *amount).sum();
        if rows.len() > LONGEST_LIST {
            let rest = rows.split_off(LONGEST_LIST - 1);
            let sum = rest.iter().map(|(_, amount)| *amount).sum();
            rows.push((format!("({} more)", rest.len()), sum));
        }
        for (text, amount) in rows {
            table.push(vec![
                one.label().into(),
                text.into(),
                one.weights.counts_known.then_some(amount.count).into(),
                amount.weight.into(),
                amount.percent_of(whole).into(),
                amount.percent_of(one.weights.total()).into(),
            ]);
        }
    }
    table
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

fn lines(calls: &[Calls<'_, '_>]) -> Table {
    let unit = common_unit(calls);
    let mut table = Table::new(
        "explain_lines",
        "Lines of its source",
        vec![
            capture_column(),
            columns::text("source", "Source file and line.").essential(),
            columns::weight("self", unit, "Weight of the samples that end at this line of it."),
            columns::weight("inclusive", unit, "Weight of the samples whose innermost call of it is at this line.")
                .essential(),
            columns::percent("share", "Inclusive in percent of the function's."),
        ],
    );
    for one in calls {
        let capture = one.selection.capture();
        let mut sums: FxHashMap<String, (u128, u128)> = FxHashMap::default();
        for (stack, call, amount) in one.stacks() {
            let innermost = match call.below {
                Some(below) => capture.stacks[below.index()].parent.expect("the call is above"),
                None => stack,
            };
            let frame = capture.stacks[innermost.index()].frame;
            if capture.frames[frame.index()].line.is_none() {
                continue;
            }
            let line = sums.entry(source_of(capture, frame)).or_default();
            line.1 += amount.weight;
            if call.below.is_none() {
                line.0 += amount.weight;
            }
        }
        sums.remove("");
        let whole = one.inclusive().weight;
        let mut rows: Vec<(String, (u128, u128))> = sums.into_iter().collect();
        rows.sort_by(|(a, a_sums), (b, b_sums)| (Reverse(a_sums), a).cmp(&(Reverse(b_sums), b)));
        for (source, (own, inclusive)) in rows.into_iter().take(LONGEST_LIST) {
            table.push(vec![
                one.label().into(),
                source.into(),
                own.into(),
                inclusive.into(),
                percent(inclusive, whole).into(),
            ]);
        }
    }
    table
}

fn blocked(calls: &[Calls<'_, '_>]) -> Table {
    let mut table = Table::new(
        "explain_blocked",
        "Time blocked under it",
        vec![
            capture_column(),
            columns::text("class", "What was waited for."),
            columns::duration("blocked", "Blocked time of waits at stacks that hold it."),
            columns::duration("attributed", "The part of it of which it is the nearest owned caller."),
            columns::count("waits", "", "Number of waits."),
            columns::duration("longest", "The longest of them."),
        ],
    );
    for one in calls {
        let mut sums = [(0_u128, 0_u128, 0_u64, 0_u64); WaitClass::ALL.len()];
        let waits = one.selection.waits().filter(|wait| wait.state == WaitState::Blocked);
        for wait in waits {
            let Some(stack) = wait.stack.filter(|stack| one.calls[stack.index()].is_some()) else { continue };
            let blocked = blocked_ns(&wait);
            let class = wait_class::of_stack(one.selection.capture(), one.all(), stack);
            let (sum, attributed, count, longest) = &mut sums[class.index()];
            *sum += u128::from(blocked);
            if one.is_attributed(stack) {
                *attributed += u128::from(blocked);
            }
            *count += 1;
            *longest = (*longest).max(blocked);
        }
        let mut rows: Vec<_> = WaitClass::ALL.into_iter().zip(sums).filter(|(_, sums)| sums.2 > 0).collect();
        rows.sort_by_key(|(class, sums)| (Reverse(sums.0), *class));
        for (class, (sum, attributed, count, longest)) in rows {
            table.push(vec![
                one.label().into(),
                class.name().into(),
                sum.into(),
                attributed.into(),
                count.into(),
                longest.into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Event};

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
            rows(&drawn::folded(STACKS), "gz::Matches", "explain_paths", &["path", "weight", "total_share"]),
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
    fn what_is_not_there_or_not_one_function_is_refused_with_names() {
        let capture = drawn::folded(STACKS);
        assert_eq!(
            explained(&capture, "match").unwrap_err().to_string(),
            "no function is called `match`; did you mean `gz::Matches`?"
        );
        assert_eq!(
            explained(&capture, "gz::R*").unwrap_err().to_string(),
            "`gz::R*` may be any of `gz::Recreate`, `gz::Run`: ask for one of them"
        );
        assert_eq!(
            explained(&capture, "nothing").unwrap_err().to_string(),
            "no function is called `nothing` in these captures; `--view hotspots` lists what there is"
        );
    }
}

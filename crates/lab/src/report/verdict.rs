//! The section `verdict` of a report: what the program keeps up with, what a change would gain, what is doubtful.
//!
//! It is the first screen of the app, and made of the analyses that the other sections show in full:
//!
//! | table | a row is | from |
//! |---|---|---|
//! | `verdict_speed` | a scenario and variant with steps: RTF, step time, budget; repetitions are one row | [`speed`](super::speed) |
//! | `verdict_gains` | a finding, or a function on the critical path, with what it would gain | [`diagnose`](stepscope_analyze::diagnose), [`critical_path`], [`rank`] |
//! | `verdict_doubts` | a loss, or a dimension that was not recorded, and the fix | [`summary`] |

use std::collections::HashSet;

use stepscope_analyze::qualified_name::own_name;
use stepscope_analyze::query::events::{self, Role};
use stepscope_analyze::query::waits::runnable_ns;
use stepscope_analyze::{Selection, cost_tree, critical_path, rank, summary};
use stepscope_model::quantity::{number, percent, plural};
use stepscope_model::{Columns, Note, NoteKind, Phase, Table, Value};
use stepscope_view::report::Section;

use super::speed::{self, Repeated, Speed};
use crate::run::AbInfo;

/// Name of the section in links.
pub const ANCHOR: &str = "verdict";

/// Findings that are listed.
const MOST_FINDINGS: usize = 5;
/// Functions that are listed for each capture, if captures are few.
const MOST_FUNCTIONS: usize = 3;
/// Functions of all captures, as long as each has one.
const MOST_OF_ALL: usize = 12;
/// A function below this share of the step is not listed, in percent.
const LEAST_SHARE: f64 = 5.0;
/// A function with this share of the CPU time is always listed, in percent: its thread may wait for CPUs most of the time.
const LARGE_SHARE: f64 = 25.0;
/// A part of the cost tree with more than this share is nearly all of it, in percent.
const NEARLY_ALL: f64 = 75.0;
/// From this share of waiting for CPUs on, times say more about the machine than about the program, in percent.
const MUCH_WAITING: f64 = 50.0;

/// The section of captures with these findings. Of an A/B run, the functions are those of the candidate.
pub fn verdict(ab: Option<&AbInfo>, selections: &[Selection<'_>], findings: &Table) -> Section {
    let repeated = Repeated::all(&judged(selections));
    let is_candidate = |one: &&Repeated<'_, '_>| {
        ab.is_none_or(|ab| one.typical.capture().info.variant.as_deref() == Some(ab.candidate.as_str()))
    };
    let candidates: Vec<&Repeated<'_, '_>> = repeated.iter().filter(is_candidate).collect();
    let gains = gains(selections, findings, &candidates);
    section([speed::table(&repeated), gains_table(&gains), doubts_table(&doubts(selections, findings.notes.iter()))])
}

/// The section of a comparison: what its sides keep up with, and what is doubtful.
pub fn of_sides(selections: &[Selection<'_>]) -> Section {
    section([speed::table(&Repeated::all(&judged(selections))), doubts_table(&doubts(selections, []))])
}

fn section(tables: impl IntoIterator<Item = Table>) -> Section {
    let filled = tables.into_iter().filter(|table| !table.rows.is_empty());
    filled.fold(Section::new("Verdict").anchor(ANCHOR), Section::table)
}

/// The section of a sweep: its capacities in place of speeds.
pub fn of_sweep(selections: &[Selection<'_>], findings: &Table, capacities: &[Table]) -> Section {
    let mut found: Vec<Gain> = (0..findings.rows.len()).map(|row| of_finding(selections, findings, row)).collect();
    found.truncate(MOST_FINDINGS);
    let capacity = capacities.iter().find(|table| table.name == "capacity").cloned();
    section(capacity.into_iter().chain([gains_table(&found), doubts_table(&doubts(selections, findings.notes.iter()))]))
}

/// Captures of the steady phase; all if there are none.
fn judged<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<&'s Selection<'a>> {
    let is_steady = |one: &&Selection<'_>| one.capture().info.phase == Some(Phase::Steady);
    let steady: Vec<_> = selections.iter().filter(is_steady).collect();
    if steady.is_empty() { selections.iter().collect() } else { steady }
}

/// A change and what it would gain.
struct Gain {
    what: String,
    /// The function to look at.
    function: Option<String>,
    capture: Option<String>,
    gain: Value,
    share: Value,
    rtf_after: Value,
    confidence: &'static str,
    /// Whether waits show it, and not CPU time.
    is_waiting: bool,
}

impl Gain {
    /// Whether neither a gain nor a cost is known.
    fn is_unknown(&self) -> bool {
        self.gain == Value::Missing && self.share == Value::Missing
    }
}

/// The findings, then functions of the typical capture of each scenario, then findings without a gain that are weak or name no
/// function. As in the terminal, functions come first if no finding has a gain.
fn gains(selections: &[Selection<'_>], findings: &Table, repeated: &[&Repeated<'_, '_>]) -> Vec<Gain> {
    let mut gains: Vec<Gain> = (0..findings.rows.len()).map(|row| of_finding(selections, findings, row)).collect();
    gains.truncate(MOST_FINDINGS);
    let found = gains.len();
    let none_gains = gains.iter().all(Gain::is_unknown);
    let named: HashSet<String> = gains.iter().filter_map(|gain| gain.function.clone()).collect();
    let most = (MOST_OF_ALL / repeated.len().max(1)).clamp(1, MOST_FUNCTIONS);
    for one in repeated {
        let label = one.typical.capture().info.name();
        let is_new = |gain: &Gain| !gain.function.as_ref().is_some_and(|function| named.contains(function));
        let on_path = on_the_path(one.typical, one.speed(), &label);
        let least = on_path.as_ref().map_or(LEAST_SHARE, |_| LARGE_SHARE);
        let by_cost = by_cost(one.typical, &label, least);
        let is_found = by_cost.iter().any(|gain| !is_new(gain));
        let mut functions: Vec<Gain> = on_path.into_iter().flatten().filter(is_new).take(most).collect();
        for costly in by_cost.into_iter().filter(is_new) {
            let is_listed = functions.iter().any(|gain| gain.function == costly.function);
            if functions.len() < most && !is_listed {
                functions.push(costly);
            }
        }
        // A finding may name what costs most.
        if functions.is_empty() && !is_found {
            functions.extend(subtrees(one.typical, one.speed(), &label).into_iter().filter(is_new).take(most));
        }
        gains.extend(functions);
    }
    match none_gains {
        true => gains.rotate_left(found),
        false => {
            gains.sort_by_key(|gain| gain.is_unknown() && (gain.confidence == "weak" || gain.function.is_none()));
        }
    }
    gains
}

fn text(table: &Table, row: usize, column: &str) -> Option<String> {
    table.text(row, column).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn value(table: &Table, row: usize, column: &str) -> Value {
    table.get(row, column).cloned().unwrap_or(Value::Missing)
}

fn of_finding(selections: &[Selection<'_>], findings: &Table, row: usize) -> Gain {
    let what = text(findings, row, "finding").unwrap_or_default();
    let (scenario, phase) = (text(findings, row, "scenario"), text(findings, row, "phase"));
    let is_of = |selection: &&Selection<'_>| {
        let info = &selection.capture().info;
        let label = selection.capture().info.name();
        let is_of_phase = phase.is_none() || phase == info.phase.map(|phase| phase.to_string());
        scenario.as_ref().is_none_or(|scenario| label == *scenario || label.starts_with(&format!("{scenario}/")))
            && is_of_phase
    };
    let selection = selections.iter().find(is_of);
    let is_function = |name: &&str| {
        selection.is_some_and(|selection| selection.functions().all().any(|(_, function)| *function.name == **name))
    };
    let function = what.split('`').skip(1).step_by(2).find(is_function).map(str::to_owned);
    Gain {
        function,
        capture: selection.map(|selection| selection.capture().info.name()),
        gain: value(findings, row, "gain"),
        share: value(findings, row, "gain_share"),
        rtf_after: value(findings, row, "rtf_after"),
        confidence: match text(findings, row, "confidence").as_deref() {
            Some("strong") => "strong",
            Some("fair") => "fair",
            _ => "weak",
        },
        is_waiting: text(findings, row, "how").is_some_and(|how| how.starts_with("waits of")),
        what,
    }
}

/// The functions with the largest attributed time on the critical path. `None` if the path is unknown.
fn on_the_path(selection: &Selection<'_>, speed: Option<&Speed>, capture: &str) -> Option<Vec<Gain>> {
    let tables = critical_path::tables(selection);
    let table = tables.iter().find(|table| table.name == "critical_path" && !table.rows.is_empty())?;
    let gain = |row: usize| {
        let path = value(table, row, "path");
        let function = text(table, row, "function").filter(|function| is_code(function))?;
        let share = number(&value(table, row, "share")).filter(|share| *share >= LEAST_SHARE)?;
        let rtf_after = speed.and_then(|speed| speed.without(number(&path)?));
        Some(Gain {
            what: format!("`{}` takes {} of the step", own_name(&function), percent(share)),
            function: Some(function),
            capture: Some(capture.to_owned()),
            gain: path,
            share: share.into(),
            rtf_after: rtf_after.into(),
            confidence: "upper bound",
            is_waiting: false,
        })
    };
    Some((0..table.rows.len()).take(2 * MOST_FUNCTIONS).filter_map(gain).collect())
}

/// Whether a name is that of a function, and not of time without a stack.
fn is_code(function: &str) -> bool {
    !function.starts_with('(')
}

/// The functions with the largest attributed cost, of at least this share in percent. What they would gain is unknown.
fn by_cost(selection: &Selection<'_>, capture: &str, least: f64) -> Vec<Gain> {
    let options = rank::Options { by: rank::Order::Cost, phase: selection.capture().info.phase };
    let table = rank::table(std::slice::from_ref(selection), &options);
    (0..table.rows.len())
        .take(2 * MOST_FUNCTIONS)
        .filter_map(|row| cost_of(selection, capture, &table, row, least))
        .collect()
}

/// The largest parts of the cost tree that lie beside each other, each a function with all that it calls: where the cost is spread over many
/// functions, or under no owned one. What is nearly everything says nothing, so its parts stand in its place.
fn subtrees(selection: &Selection<'_>, speed: Option<&Speed>, capture: &str) -> Vec<Gain> {
    let options = cost_tree::Options { phase: selection.capture().info.phase, ..cost_tree::Options::default() };
    let table = cost_tree::table(std::slice::from_ref(selection), &options);
    let depth = |row: usize| number(&value(&table, row, "depth")).unwrap_or(0.0);
    let mut found: Vec<Gain> = Vec::new();
    let (mut inside, mut has_owner) = (None, false);
    for row in 0..table.rows.len() {
        if inside.is_some_and(|depth_of| depth(row) > depth_of) {
            continue;
        }
        inside = None;
        if depth(row) <= 1.0 {
            has_owner = table.text(row, "kind") != Some("group");
        }
        // What an owned function calls belongs to it.
        if has_owner && table.text(row, "kind") == Some("member") {
            continue;
        }
        let has_parts = row + 1 < table.rows.len() && depth(row + 1) > depth(row);
        let Some(mut gain) = cost_of(selection, capture, &table, row, LEAST_SHARE) else { continue };
        if has_parts && number(&gain.share).is_some_and(|share| share > NEARLY_ALL) {
            continue;
        }
        inside = Some(depth(row));
        if has_parts {
            gain.what = gain.what.replacen("` takes ", "` and what it calls take ", 1);
        }
        gain.gain = value(&table, row, "gain_bound");
        if let Some(bound) = number(&gain.gain) {
            gain.rtf_after = speed.and_then(|speed| speed.without(bound)).into();
            gain.confidence = "upper bound";
        }
        found.push(gain);
    }
    found.sort_by(|a, b| number(&b.share).unwrap_or(0.0).total_cmp(&number(&a.share).unwrap_or(0.0)));
    found
}

/// A function and its share of the cost, if it has at least this one in percent.
fn cost_of(selection: &Selection<'_>, capture: &str, table: &Table, row: usize, least: f64) -> Option<Gain> {
    let counted = match selection.event() {
        Some(event) if events::role(event) != Role::Cpu => format!("the {}", event.unit),
        _ => "the CPU time".to_owned(),
    };
    let function = text(table, row, "function").filter(|function| is_code(function))?;
    let share = number(&value(table, row, "share")).filter(|share| *share >= least)?;
    Some(Gain {
        what: format!("`{}` takes {} of {counted}", own_name(&function), percent(share)),
        function: Some(function),
        capture: Some(capture.to_owned()),
        gain: Value::Missing,
        share: share.into(),
        rtf_after: Value::Missing,
        confidence: "cost",
        is_waiting: false,
    })
}

fn gains_table(gains: &[Gain]) -> Table {
    Columns::<Gain>::new()
        .prose("what", "What costs.", |row| row.what.as_str().into())
        .text("function", "The function to look at.", |row| row.function.as_deref().into())
        .text("capture", "Scenario, variant and phase.", |row| row.capture.as_deref().into())
        .duration("gain", "Time that a change would gain per step, or of the phase where it has no steps.", |row| {
            row.gain.clone()
        })
        .percentage("gain_share", "The gain in percent of the step or phase; without a gain, the share of the cost.", |row| {
            row.share.clone()
        })
        .number("rtf_after", "", "Real-time factor with that gain, if the program runs as fast as it can.", |row| {
            row.rtf_after.clone()
        })
        .text(
            "confidence",
            "strong, fair, weak: a finding's evidence. upper bound: the function's whole time on the critical path. cost: the \
             gain is unknown.",
            |row| row.confidence.into(),
        )
        .text("evidence", "What shows it: `waits`, or empty for CPU time.", |row| row.is_waiting.then_some("waits").into())
        .essential("what gain gain_share")
        .detail("evidence")
        .table("verdict_gains", "What a change would gain", gains)
}

/// What limits the figures, and the fix.
#[derive(Debug, PartialEq)]
struct Doubt {
    what: String,
    fix: String,
    captures: Vec<String>,
}

/// What limits the findings, then losses and missing dimensions. Those of several captures are one.
fn doubts<'n>(selections: &[Selection<'_>], of_findings: impl IntoIterator<Item = &'n Note>) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    let mut add = |what: String, fix: String, capture: String| {
        match doubts.iter_mut().find(|doubt| doubt.what == what) {
            Some(doubt) => doubt.captures.push(capture),
            None => doubts.push(Doubt { what, fix, captures: vec![capture] }),
        };
    };
    let mut limited: HashSet<String> = HashSet::new();
    for note in of_findings.into_iter().filter(|note| note.kind() == NoteKind::Limit && !note.subject().is_empty()) {
        limited.insert(note.subject().to_owned());
        add(note.clone().about("").to_string(), String::new(), note.subject().to_owned());
    }
    for selection in selections {
        let label = selection.capture().info.name();
        let waited = waited_percent(selection).filter(|share| *share >= MUCH_WAITING && !limited.contains(&label));
        if let Some(share) = waited {
            add(
                format!(
                    "Threads waited for a CPU for {} of the time in which they could run: other programs had the CPUs, or \
                     the program has more threads than there are CPUs.",
                    percent(share)
                ),
                String::new(),
                label.clone(),
            );
        }
        let losses = summary::table(std::slice::from_ref(selection)).notes;
        for note in losses.iter().filter(|note| note.kind() == NoteKind::Loss) {
            add(note.to_string(), String::new(), label.clone());
        }
        let dimensions = summary::dimensions(std::slice::from_ref(selection));
        for row in 0..dimensions.rows.len() {
            let Some(detail) = text(&dimensions, row, "detail") else { continue };
            let name = text(&dimensions, row, "dimension").unwrap_or_default();
            let status = text(&dimensions, row, "status").unwrap_or_default();
            let fix = text(&dimensions, row, "remedy").unwrap_or_default();
            add(format!("{name} ({status}): {detail}"), fix, label.clone());
        }
    }
    doubts
}

/// How long threads waited for CPUs, in percent of the time in which they could run.
fn waited_percent(selection: &Selection<'_>) -> Option<f64> {
    let waited: u128 = selection.waits().map(|wait| u128::from(runnable_ns(&wait))).sum();
    let ran: u128 = selection.cpu_times().into_iter().flatten().map(u128::from).sum();
    (selection.has_switches() && waited + ran > 0).then(|| 100.0 * waited as f64 / (waited + ran) as f64)
}

fn doubts_table(doubts: &[Doubt]) -> Table {
    Columns::<Doubt>::new()
        .prose("doubt", "What is lost, missing or uncertain.", |row| row.what.as_str().into())
        .prose("fix", "The command or change that would mend it.", |row| row.fix.as_str().into())
        .text("captures", "The captures that it is about.", |row| match row.captures.as_slice() {
            [one] => one.as_str().into(),
            several => plural(several.len(), "capture").into(),
        })
        .essential("doubt fix")
        .table("verdict_doubts", "What is doubtful", doubts)
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::{Functions, Ownership};
    use stepscope_model::{Capture, Event, Sample, Step, ThreadId, Wait, WaitState, note};
    use stepscope_view::report::Block;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Ten steps that take 2 ms and simulate 1 ms, with a sample of one function in each.
    fn slow() -> Capture {
        steps_of(2 * MS)
    }

    /// A repetition of a variant with steps of this length.
    fn repetition(variant: &str, repetition: u32, step_ns: u64) -> Capture {
        let mut capture = steps_of(step_ns);
        capture.info.scenario = Some("shapes".to_owned());
        capture.info.variant = Some(variant.to_owned());
        capture.info.repetition = Some(repetition);
        capture
    }

    fn steps_of(step_ns: u64) -> Capture {
        let mut capture = Capture::default();
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let thread = capture.add_thread_named("main");
        let function = capture.intern_function("gz::Physics::Update");
        let stack = capture.intern_stack([function]);
        for index in 0..10 {
            let (start_ns, end_ns) = (index * step_ns, (index + 1) * step_ns);
            capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: Some((index + 1) * MS), thread });
            let time_ns = Some(start_ns + step_ns / 2);
            capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight: MS });
        }
        capture
    }

    fn tables(capture: &Capture, findings: &Table) -> Vec<Table> {
        tables_of(None, std::slice::from_ref(capture), findings)
    }

    fn tables_of(ab: Option<&AbInfo>, captures: &[Capture], findings: &Table) -> Vec<Table> {
        let owned = Ownership::default().compile().expect("no patterns");
        let functions: Vec<Functions> = captures.iter().map(|capture| Functions::of(capture, &owned)).collect();
        let selections: Vec<Selection<'_>> =
            captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
        let section = verdict(ab, &selections, findings);
        assert_eq!(section.anchor, ANCHOR);
        let table = |block: Block| if let Block::Table(table) = block { Some(table) } else { None };
        section.blocks.into_iter().filter_map(table).collect()
    }

    #[test]
    fn a_step_that_takes_longer_than_it_simulates_is_slower_than_real_time() {
        let tables = tables(&slow(), &Table::new("findings", "", Vec::new()));
        let speed = tables.iter().find(|table| table.name == "verdict_speed").expect("there are steps");
        let said = "Slower than real time: a step simulates 1.00 ms and takes 2.00 ms on average.";
        assert_eq!(speed.get(0, "verdict"), Some(&said.into()));
        assert_eq!(speed.get(0, "rtf"), Some(&0.5.into()));
        assert_eq!(speed.get(0, "budget"), Some(&1e6.into()));
        assert_eq!(speed.get(0, "over_budget"), Some(&100.0.into()));
    }

    #[test]
    fn counts_of_an_unknown_kind_are_no_cpu_time() {
        let mut capture = slow();
        capture.steps = Default::default();
        capture.info.events[0] = Event::weighed("weight", "weight");
        let tables = tables(&capture, &Table::new("findings", "", Vec::new()));
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there is a function");
        assert_eq!(gains.text(0, "what"), Some("`gz::Physics::Update` takes 100.00 % of the weight"));
    }

    #[test]
    fn repetitions_are_one_row_with_their_spread_and_functions_are_those_of_the_candidate() {
        let captures = [
            repetition("before", 1, 4 * MS),
            repetition("before", 2, 2 * MS),
            repetition("before", 3, MS),
            repetition("after", 1, MS),
        ];
        let ab = AbInfo { candidate: "after".to_owned(), ..AbInfo::default() };
        let tables = tables_of(Some(&ab), &captures, &Table::new("findings", "", Vec::new()));
        let speed = tables.iter().find(|table| table.name == "verdict_speed").expect("there are steps");
        let of = |row: usize, names: &[&str]| -> Vec<Value> {
            names.iter().map(|name| speed.get(row, name).cloned().expect("a column")).collect()
        };
        assert_eq!(speed.rows.len(), 2);
        let names = ["runs", "repetition", "rtf", "rtf_low", "rtf_high", "step_median", "steps"];
        let before: [Value; 7] =
            [3_u32.into(), 2_u32.into(), 0.5.into(), 0.25.into(), 1.0.into(), 2e6.into(), 24_u32.into()];
        assert_eq!(of(0, &names), before);
        assert_eq!(of(1, &["runs", "rtf_low"]), [1_u32.into(), Value::Missing]);
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there is a function");
        assert_eq!(gains.rows.len(), 1);
        assert_eq!(gains.get(0, "capture"), Some(&"shapes/after".into()));
    }

    #[test]
    fn findings_come_first_and_functions_of_findings_are_not_repeated() {
        let rows = ["`gz::Physics::Update` builds a container in every step", "Thread `main` does all the work"];
        let columns = Columns::<(&str, f64)>::new().prose("finding", "What happens.", |row| row.0.into()).duration(
            "gain",
            "Its gain.",
            |row| row.1,
        );
        let findings = columns.table("findings", "", [(rows[0], 5e5), (rows[1], 1e5)]);
        let tables = tables(&slow(), &findings);
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there are findings");
        assert_eq!(gains.rows.len(), 2);
        assert_eq!(gains.get(0, "function"), Some(&"gz::Physics::Update".into()));
        assert_eq!(gains.get(0, "gain"), Some(&5e5.into()));
        assert_eq!(gains.get(1, "function"), Some(&Value::Missing), "`main` is a thread");
    }

    #[test]
    fn what_is_about_no_function_and_gains_nothing_comes_last() {
        let rows = [("`main` is no function", Some(5e5)), ("Thread `main` does all the work", None)];
        let columns = Columns::<(&str, Option<f64>)>::new().prose("finding", "What happens.", |row| row.0.into());
        let columns = columns.duration("gain", "Its gain.", |row| row.1);
        let tables = tables(&slow(), &columns.table("findings", "", rows));
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there are findings");
        assert_eq!(gains.get(1, "function"), Some(&"gz::Physics::Update".into()));
        assert_eq!(gains.get(2, "what"), Some(&"Thread `main` does all the work".into()));
    }

    #[test]
    fn functions_come_before_findings_if_none_has_a_gain() {
        let columns = Columns::<&str>::new().prose("finding", "What happens.", |row| (*row).into());
        let findings = columns.table("findings", "", ["Thread `main` does all the work"]);
        let tables = tables(&slow(), &findings);
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there are findings");
        assert_eq!(gains.get(0, "function"), Some(&"gz::Physics::Update".into()));
        assert_eq!(gains.get(1, "what"), Some(&"Thread `main` does all the work".into()));
    }

    #[test]
    fn without_a_critical_path_functions_have_a_cost_and_no_gain() {
        let tables = tables(&slow(), &Table::new("findings", "", Vec::new()));
        let gains = tables.iter().find(|table| table.name == "verdict_gains").expect("there is a function");
        assert_eq!(gains.get(0, "what"), Some(&"`gz::Physics::Update` takes 100.00 % of the CPU time".into()));
        assert_eq!(gains.get(0, "gain"), Some(&Value::Missing));
    }

    /// What the first screen shows of samples with these stacks, root first, by the functions of a namespace.
    fn costs_of(stacks: &[&[&str]]) -> Vec<String> {
        let mut capture = slow();
        capture.steps = Default::default();
        let event = capture.samples[0].event;
        capture.samples = Default::default();
        for (index, names) in stacks.iter().enumerate() {
            let frames: Vec<_> = names.iter().map(|name| capture.intern_function(name)).collect();
            let (stack, time_ns) = (capture.intern_stack(frames), Some(index as u64 * MS));
            capture.samples.push(Sample { time_ns, thread: ThreadId(0), cpu: None, stack, event, weight: MS });
        }
        let owned = Ownership { namespaces: vec!["gz::".to_owned()], ..Ownership::default() };
        let functions = Functions::of(&capture, &owned.compile().expect("a pattern"));
        let section = verdict(None, &[Selection::all(&capture, &functions)], &Table::new("findings", "", Vec::new()));
        let table = section.blocks.iter().find_map(|block| match block {
            Block::Table(table) if table.name == "verdict_gains" => Some(table),
            _ => None,
        });
        let rows = table.into_iter().flat_map(|table| (0..table.rows.len()).map(|row| text(table, row, "what")));
        rows.flatten().collect()
    }

    #[test]
    fn what_no_owned_function_calls_is_shown_where_no_owned_function_costs_much() {
        let stack: &[&str] = &["main", "ZSTD_compressBlock"];
        assert_eq!(costs_of(&[stack; 4]), ["`ZSTD_compressBlock` takes 100.00 % of the CPU time"]);
    }

    #[test]
    fn where_many_functions_cost_little_the_parts_of_the_tree_are_shown() {
        let leaves: Vec<[String; 3]> = (0..30)
            .map(|leaf| {
                let part = if leaf < 18 { "gz::Send" } else { "gz::Receive" };
                ["gz::Run".to_owned(), part.to_owned(), format!("gz::f{leaf}")]
            })
            .collect();
        let stacks: Vec<Vec<&str>> = leaves.iter().map(|stack| stack.iter().map(String::as_str).collect()).collect();
        let stacks: Vec<&[&str]> = stacks.iter().map(Vec::as_slice).collect();
        let said = ["Send` and what it calls take 60.00 %", "Receive` and what it calls take 40.00 %"];
        assert_eq!(costs_of(&stacks), said.map(|said| format!("`gz::{said} of the CPU time")));
    }

    #[test]
    fn what_limits_the_findings_of_a_capture_is_doubtful() {
        let mut findings = Table::new("findings", "", Vec::new());
        let busy = note!(Limit, "The machine was busy.");
        findings.notes =
            vec![busy.about("shapes/steady"), note!(Limit, "Of all captures."), note!(Hint, "Name your code.")];
        let tables = tables(&slow(), &findings);
        let doubts = tables.iter().find(|table| table.name == "verdict_doubts").expect("there is a doubt");
        assert_eq!(doubts.rows.len(), 1);
        assert_eq!(doubts.get(0, "doubt"), Some(&"The machine was busy.".into()));
        assert_eq!(doubts.get(0, "captures"), Some(&"shapes/steady".into()));
    }

    #[test]
    fn threads_that_mostly_wait_for_a_cpu_are_doubtful() {
        let mut capture = slow();
        capture.threads[0].cpu_ns = Some(4 * MS);
        let preempted = |length_ns: u64| Wait {
            start_ns: 0,
            end_ns: length_ns,
            thread: ThreadId(0),
            stack: None,
            state: WaitState::Preempted,
            runnable_ns: None,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        let waiting = |capture: &Capture| {
            let tables = tables(capture, &Table::new("findings", "", Vec::new()));
            let doubts = tables.iter().find(|table| table.name == "verdict_doubts")?;
            (0..doubts.rows.len()).filter_map(|row| text(doubts, row, "doubt")).find(|doubt| doubt.contains("waited"))
        };
        capture.waits.push(preempted(12 * MS));
        let said = waiting(&capture).expect("there is a doubt");
        assert!(said.starts_with("Threads waited for a CPU for 75.00 % of the time"), "{said}");
        capture.threads[0].cpu_ns = Some(20 * MS);
        assert_eq!(waiting(&capture), None);
    }

    #[test]
    fn a_capture_of_nothing_has_no_verdict() {
        assert!(tables(&Capture::default(), &Table::new("findings", "", Vec::new())).is_empty());
    }
}

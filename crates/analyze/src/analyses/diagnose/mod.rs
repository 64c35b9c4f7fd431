//! Diagnosis: what to change first, why, and what it would gain.
//!
//! A *finding* names a known kind of performance defect, the owned function that decides it, the numbers that show it and
//! the gain of a change. [`KINDS`] lists every kind; each is one module with its definition and its limits. A kind looks
//! at evidence, such as system calls, allocations, waits and times. Names of the program's own functions are never evidence.
//!
//! # Gain
//! Each finding names the stacks whose cost a change takes away. Their time on the
//! [critical path](crate::analyses::critical_path) per step is the gain; without wake-ups their CPU time per step, in
//! loading their CPU time. It is what is there to gain: what the replacement costs is not known. Shares are of the step without the sleep
//! that keeps its pace, which gets longer when the work gets shorter. The interval is that of sampling.
//! With several captures of a scenario it is that of their spread, if that is wider.
//!
//! Findings overlap: the same allocation may be part of two. `within` names the earlier finding that has most of a later
//! one's gain, and the total counts each stack once.
//!
//! # Order
//! By gain in percent of the step, or of loading. Findings without a known gain come last, but for memory that grows below a known
//! function: it comes before gains of less than 5 %. A build without optimisation comes first: with it, all other numbers are others.

mod calls;
mod code;
mod doubts;
mod finding;
mod gain;
mod kinds;
mod laws;
mod libraries;
mod pacing;
mod pieces;
mod python;
mod recorded;
mod seen;
mod stage;
mod step_waits;
mod table;
mod tenths;
mod unexplained;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;

use stepscope_model::{Note, Phase, Table, note};
use stepscope_stats::{Estimate, student};

pub use self::calls::{
    Calls, FunctionCalls, FunctionEffects, FunctionMathematics, FunctionRepeats, FunctionScans, PythonRepeats,
};
pub use self::code::{ReadCode, WantedCode, WantedFile, wanted, wanted_files};
pub use self::finding::Confidence;
use self::finding::Found;
use self::gain::Gain;
use self::kinds::KINDS;
use self::laws::Laws;
use self::libraries::InLibrary;
use self::seen::Seen;
pub use self::table::none_found;
use crate::analyses::build;
use crate::analyses::growth::{self, Series};
use crate::analyses::rank::pairing;
use crate::parallel;
use crate::query::functions::Identity;
use crate::query::select::Selection;

/// A kind of finding.
trait Kind: Sync {
    /// Its name in tables, e.g. `file-opened-each-time`; also its heading in `docs/analyses/diagnose.md`.
    fn name(&self) -> &'static str;

    /// What to do about it.
    fn advice(&self) -> &'static str;

    /// What would confirm it.
    fn confirm(&self) -> &'static str;

    /// Kinds of findings that are an effect of this one if they name the same function.
    fn effects(&self) -> &'static [&'static str] {
        &[]
    }

    /// Kinds that say more. A finding of this kind is dropped if one of theirs names its function or has most of its cost.
    fn outranked_by(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it means where its function is of an installed library.
    fn in_library(&self) -> InLibrary {
        InLibrary::Alike
    }

    /// Whether it ends the program in time, whatever it gains: memory that grows.
    fn ends_program(&self) -> bool {
        false
    }

    /// Whether the costs of all functions would be others without it: the build.
    fn changes_all_costs(&self) -> bool {
        false
    }

    /// Whether it looks at captures of builds; others look at all but these.
    fn is_of_builds(&self) -> bool {
        false
    }

    /// What a capture shows. `other` is the capture of the same execution's other phase.
    fn find(&self, seen: &Seen<'_, '_>, other: Option<&Seen<'_, '_>>) -> Vec<Found>;
}

/// Gains below this percent come after what ends the program in time.
const ENDS_PROGRAM: f64 = 5.0;

/// Gains below this percent of the step or the phase are left out.
const LEAST_GAIN: f64 = 1.0;

/// A finding over all captures of a scenario.
struct Finding {
    kind: &'static dyn Kind,
    scenario: String,
    phase: Option<Phase>,
    function: Option<Identity>,
    place: Option<(String, u32)>,
    found: Found,
    gain: Option<Gain>,
    real_time_factor: Option<f64>,
    /// Captures that show it, and all of the scenario's phase.
    captures: (usize, usize),
    /// Other scenarios that show it.
    also_in: Vec<String>,
    /// The finding that has most of its gain.
    within: Option<Cause>,
}

/// What tells findings of a scenario apart.
type Cause = (&'static str, Option<Identity>);

impl Finding {
    fn cause(&self) -> Cause {
        (self.kind.name(), self.function.clone())
    }

    /// Gain in percent; below zero if it is not known.
    fn share(&self) -> f64 {
        self.gain.map_or(-1.0, |gain| gain.share().value)
    }

    /// The largest gain first. What has no gain comes last, but for what ends the program in time, and for a build that makes all numbers others.
    fn order(&self, other: &Self) -> Ordering {
        let urgency = |one: &Self| {
            if one.kind.changes_all_costs() && one.found.confidence == Confidence::Strong {
                f64::INFINITY
            } else if one.kind.ends_program() && one.function.is_some() {
                one.share().max(ENDS_PROGRAM)
            } else {
                one.share()
            }
        };
        urgency(other).total_cmp(&urgency(self)).then_with(|| self.cause().cmp(&other.cause()))
    }
}

/// What all findings of a scenario's phase would gain together.
struct Total {
    scenario: String,
    phase: Option<Phase>,
    gain: Gain,
    real_time_factor: Option<f64>,
}

/// A capture, and what it shows.
struct Shown<'e, 's, 'a> {
    seen: &'e Seen<'s, 'a>,
    found: Vec<(&'static dyn Kind, Found)>,
}

impl Shown<'_, '_, '_> {
    fn cause(&self, (kind, found): &(&'static dyn Kind, Found)) -> Cause {
        (kind.name(), found.function.map(|function| self.seen.functions().get(function).identity()))
    }

    /// For each cause, the one with more gain that has most of its cost.
    fn nested(&self) -> BTreeMap<Cause, Cause> {
        let gain = |found: &Found| found.gain.map_or(0.0, |gain| gain.time.value);
        let mut order: Vec<_> = self.found.iter().filter(|(_, found)| !found.without.is_empty()).collect();
        order.sort_by(|a, b| gain(&b.1).total_cmp(&gain(&a.1)));
        let mut nested = BTreeMap::new();
        for (place, one) in order.iter().enumerate() {
            if let Some(earlier) = order[..place].iter().find(|earlier| has_most(self.seen, &earlier.1, &one.1)) {
                nested.insert(self.cause(one), self.cause(earlier));
            }
        }
        nested
    }

    /// What all of it gains together: each stack counts once.
    fn together(&self) -> Gain {
        let mut without = vec![0.0_f32; self.seen.capture().stacks.len()];
        for (_, one) in &self.found {
            without.iter_mut().zip(&one.without).for_each(|(all, one)| *all = all.max(*one));
        }
        self.seen.gain(&without)
    }
}

/// The table `findings` of captures, with counts of calls as evidence.
pub fn table(selections: &[Selection<'_>], calls: &Calls) -> Table {
    table_with_code(selections, calls, &ReadCode::default())
}

/// The table `findings` of captures, with counts of calls and loops of code as evidence: those of the [`wanted`] machine code and of the
/// [`wanted_files`].
pub fn table_with_code(selections: &[Selection<'_>], calls: &Calls, code: &ReadCode) -> Table {
    table::table(selections, &Diagnosis::of(selections, calls, code))
}

/// What all captures show.
#[derive(Default)]
struct Diagnosis {
    /// The largest gain first.
    findings: Vec<Finding>,
    totals: Vec<Total>,
    /// Captures that are kept apart.
    notes: Vec<Note>,
    /// Functions that cost much, and that no finding is about.
    unexplained: Vec<Note>,
}

impl Diagnosis {
    fn of(selections: &[Selection<'_>], calls: &Calls, code: &ReadCode) -> Self {
        let indices: Vec<usize> = (0..selections.len()).collect();
        let laws = laws_of_sweeps(selections);
        let is_smaller = |index: usize| matches!(laws[index], InSweep::Smaller);
        let see = |&index: &usize| if is_smaller(index) { None } else { Seen::of(&selections[index]) };
        let mut seen: Vec<Option<Seen<'_, '_>>> = parallel::map(&indices, see);
        for (one, laws) in seen.iter_mut().zip(&laws) {
            if let (Some(one), InSweep::Largest(laws)) = (one, laws) {
                one.laws.clone_from(laws);
            }
        }
        for one in seen.iter_mut().flatten() {
            one.take_calls(calls);
            one.take_code(code);
            one.pacing = pacing::of(one);
        }
        let shown: Vec<Option<Shown<'_, '_, '_>>> = parallel::map(&indices, |&index| {
            let own = seen[index].as_ref()?;
            let other = other_phase(selections, index).and_then(|other| seen[other].as_ref());
            let of_kind = |kind: &&'static dyn Kind| {
                let kind = *kind;
                if kind.is_of_builds() != build::is_build(own.capture()) {
                    return Vec::new();
                }
                let found = kind.find(own, other).into_iter();
                let named =
                    found.map(|found| python::without_interpreter(own, with_calls(own, without_closure(own, found))));
                let named = named.map(|found| stage::with_part(own, found));
                named.map(|found| (kind, found)).collect::<Vec<_>>()
            };
            let found = without_effects(own, KINDS.iter().flat_map(of_kind).collect());
            Some(Shown { seen: own, found: libraries::for_users(own, found) })
        });
        let mut diagnosis = Self::default();
        if indices.iter().any(|&index| is_smaller(index)) {
            diagnosis.notes.push(note!(Fact, "Findings of a sweep are those at its largest size."));
        }
        let groups = pairing::references_alike(selections);
        for group in &groups {
            let mut findings = Vec::new();
            for paired in pairing::of_each_phase(group, &mut diagnosis.notes) {
                let is_of =
                    |one: &&Shown<'_, '_, '_>| paired.captures.iter().any(|of| ptr::eq(*of, one.seen.selection));
                let captures: Vec<&Shown<'_, '_, '_>> = shown.iter().flatten().filter(is_of).collect();
                let Some(first) = captures.first() else { continue };
                let scenario = Scenario { label: paired.label, phase: first.seen.capture().info.phase };
                // Those of a build are of CPU time and of wall time.
                if !build::is_build(first.seen.capture()) {
                    diagnosis.totals.extend(total(&scenario, &captures));
                }
                let of_scenario = of_scenario(&scenario, &captures);
                if !build::is_build(first.seen.capture()) {
                    diagnosis.unexplained.extend(unexplained::note(first.seen, &of_scenario));
                }
                diagnosis.notes.extend(pacing::note(first.seen));
                diagnosis.notes.extend(doubts::notes(first.seen));
                findings.extend(of_scenario);
            }
            diagnosis.findings.extend(joined(findings));
        }
        diagnosis.findings.sort_by(Finding::order);
        if groups.len() > 1 {
            diagnosis.notes.push(pairing::apart_note());
        }
        diagnosis
    }
}

/// Findings without those that are an effect of another one, or that a more specific one replaces.
fn without_effects(seen: &Seen<'_, '_>, found: Vec<(&'static dyn Kind, Found)>) -> Vec<(&'static dyn Kind, Found)> {
    let is_left = |(kind, one): &(&'static dyn Kind, Found)| {
        found.iter().any(|(other_kind, other)| {
            let is_of_same = one.function.is_some() && other.function == one.function;
            is_of_same && other_kind.effects().contains(&kind.name())
                || kind.outranked_by().contains(&other_kind.name()) && (is_of_same || has_most(seen, other, one))
        })
    };
    let left: Vec<bool> = found.iter().map(is_left).collect();
    found.into_iter().zip(left).filter_map(|(one, is_left)| (!is_left).then_some(one)).collect()
}

/// Whether one finding has more than half of another one's cost.
fn has_most(seen: &Seen<'_, '_>, one: &Found, of: &Found) -> bool {
    if one.without.is_empty() || of.without.is_empty() {
        return false;
    }
    let (mut common, mut all) = (0.0, 0.0);
    for (stack, amount) in seen.cpu.occupied() {
        let (one, of) = (one.without[stack.index()], of.without[stack.index()]);
        common += f64::from(one.min(of)) * amount.weight as f64;
        all += f64::from(of) * amount.weight as f64;
    }
    common > all / 2.0
}

/// A finding that names the function that its closure is written in.
fn without_closure(seen: &Seen<'_, '_>, found: Found) -> Found {
    let Some((closure, outer)) = found.function.map(|function| (function, seen.enclosing(function))) else {
        return found;
    };
    if closure == outer {
        return found;
    }
    let quoted = |function| format!("`{}`", seen.name(function));
    let title = found.title.replace(&quoted(closure), &quoted(outer));
    Found { function: Some(outer), title, ..found }
}

/// A finding with the calls of its function as evidence.
fn with_calls(seen: &Seen<'_, '_>, found: Found) -> Found {
    match seen.calls.iter().find(|rate| Some(rate.function) == found.function) {
        Some(rate) => found.because_of_calls(rate.sentence()),
        None => found,
    }
}

/// The place of a capture in a sweep.
#[derive(Clone, Default)]
enum InSweep {
    /// It is of no sweep.
    #[default]
    Apart,
    /// The same scenario was recorded at a larger size, which is diagnosed instead.
    Smaller,
    /// At the largest size, with the laws, if there are enough sizes for one.
    Largest(Option<Arc<Laws>>),
}

/// The place of each capture in its sweep, and the laws of the sweep.
fn laws_of_sweeps(selections: &[Selection<'_>]) -> Vec<InSweep> {
    let mut places = vec![InSweep::default(); selections.len()];
    for series in growth::series(selections).into_iter().flat_map(Series::by_cores) {
        let largest = series.sizes().last().copied().unwrap_or(0.0);
        let laws = Laws::of(&series).map(Arc::new);
        for run in &series.runs {
            if let Some(index) = selections.iter().position(|one| ptr::eq(one, run.selection)) {
                let is_smaller = run.n < largest;
                places[index] = if is_smaller { InSweep::Smaller } else { InSweep::Largest(laws.clone()) };
            }
        }
    }
    places
}

/// A scenario's phase.
struct Scenario {
    label: String,
    phase: Option<Phase>,
}

/// The capture of the other phase of the same execution: that of the same scenario which is nearest in time.
fn other_phase(selections: &[Selection<'_>], index: usize) -> Option<usize> {
    let own = &selections[index].capture().info;
    own.scenario.as_ref()?;
    let same_execution = |&other: &usize| {
        let info = &selections[other].capture().info;
        let same = (&info.scenario, &info.variant, &info.command) == (&own.scenario, &own.variant, &own.command);
        same && info.phase.is_some() && info.phase != own.phase
    };
    let start = |index: usize| selections[index].capture().info.start_ns.unwrap_or(0);
    (0..selections.len()).filter(same_execution).min_by_key(|&other| start(other).abs_diff(start(index)))
}

/// What the captures of one scenario show, by cause.
fn of_scenario(scenario: &Scenario, captures: &[&Shown<'_, '_, '_>]) -> Vec<Finding> {
    let mut by_cause: BTreeMap<Cause, Vec<(&Shown<'_, '_, '_>, &'static dyn Kind, &Found)>> = BTreeMap::new();
    for shown in captures {
        for one in &shown.found {
            by_cause.entry(shown.cause(one)).or_default().push((shown, one.0, &one.1));
        }
    }
    let nested = captures.first().map(|shown| shown.nested()).unwrap_or_default();
    let mut findings = Vec::new();
    for (cause, shown) in by_cause {
        // What only a minority of equal captures shows is chance.
        if shown.len() * 2 < captures.len() {
            continue;
        }
        let gains: Vec<Gain> = shown.iter().filter_map(|(.., found)| found.gain).collect();
        let gain = mean_gain(&gains);
        let is_loading = scenario.phase == Some(Phase::Loading);
        // Of a recording without steps, loading is a small part; what is sure there counts as in loading.
        let has_no_steps = captures.iter().all(|shown| shown.seen.loops.is_none());
        let is_sure = shown.iter().all(|(.., found)| found.is_confirmed) && has_no_steps && !is_loading;
        let is_small = |gain: Gain| match is_sure {
            true => gain.is_short(),
            false => gain.share().value < LEAST_GAIN || (is_loading && gain.is_short()),
        };
        if gain.is_some_and(is_small) {
            continue;
        }
        let share = |found: &Found| found.gain.map_or(0.0, |gain| gain.share().value);
        let most = shown.iter().max_by(|a, b| share(a.2).total_cmp(&share(b.2)));
        let &(of_most, kind, found) = most.expect("a cause was shown");
        findings.push(Finding {
            kind,
            scenario: scenario.label.clone(),
            phase: scenario.phase,
            place: found.function.and_then(|function| of_most.seen.place(function)),
            within: nested.get(&cause).cloned(),
            function: cause.1,
            found: found.clone(),
            gain,
            real_time_factor: real_time_factor(captures),
            captures: (shown.len(), captures.len()),
            also_in: Vec::new(),
        });
    }
    findings
}

fn total(scenario: &Scenario, captures: &[&Shown<'_, '_, '_>]) -> Option<Total> {
    let gains: Vec<Gain> = captures.iter().map(|shown| shown.together()).collect();
    let gain = mean_gain(&gains).filter(|gain| gain.share().value >= LEAST_GAIN)?;
    let (label, phase) = (scenario.label.clone(), scenario.phase);
    Some(Total { scenario: label, phase, gain, real_time_factor: real_time_factor(captures) })
}

/// The mean real-time factor.
fn real_time_factor(captures: &[&Shown<'_, '_, '_>]) -> Option<f64> {
    // A loop that keeps a pace gets no faster.
    let is_paced = |shown: &Shown<'_, '_, '_>| pacing::note(shown.seen).is_some();
    let of_one = |shown: &&Shown<'_, '_, '_>| match is_paced(shown) {
        true => None,
        false => shown.seen.loops.as_ref()?.main().real_time_factor,
    };
    let factors: Vec<f64> = captures.iter().filter_map(of_one).collect();
    (!factors.is_empty()).then(|| factors.iter().sum::<f64>() / factors.len() as f64)
}

/// The mean of the gains of several captures. The interval is the wider one of sampling and of repetition.
fn mean_gain(gains: &[Gain]) -> Option<Gain> {
    let first = gains.first()?;
    let number = gains.len() as f64;
    let mean = |of: fn(&Gain) -> f64| gains.iter().map(of).sum::<f64>() / number;
    let (value, whole_ns) = (mean(|gain| gain.time.value), mean(|gain| gain.whole_ns));
    // Some gains may be larger rather than smaller.
    let below = mean(|gain| gain.time.value - gain.time.low) / number.sqrt();
    let above = mean(|gain| gain.time.high - gain.time.value) / number.sqrt();
    let of_repetition = match gains.len() {
        1 => 0.0,
        _ => {
            let variance = gains.iter().map(|gain| (gain.time.value - value).powi(2)).sum::<f64>() / (number - 1.0);
            student::quantile(0.975, number - 1.0) * (variance / number).sqrt()
        }
    };
    let (low, high) = (value - below.max(of_repetition), value + above.max(of_repetition));
    let time = Estimate { value, low: low.max(0.0), high: high.min(whole_ns) };
    Some(Gain { time, whole_ns, basis: first.basis })
}

/// The findings of all scenarios, by gain: one row a cause and phase, that of the scenario where it gains most.
fn joined(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(Finding::order);
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let same = |one: &&mut Finding| one.phase == finding.phase && one.cause() == finding.cause();
        match kept.iter_mut().find(same) {
            Some(one) => one.also_in.push(finding.scenario),
            None => kept.push(finding),
        }
    }
    kept
}

#[cfg(test)]
mod always_tests;
#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod hand_over_tests;
#[cfg(test)]
mod kind_tests;
#[cfg(test)]
mod paced_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_kind_tests;

//! The rank: which functions of yours to look at first, over several scenarios.
//!
//! Two orders over the same rows, one row a function that costs are attributed to.
//!
//! # Cost
//! The cost of a function in a scenario is its attributed weight: the samples whose nearest owned function it is. Every
//! sample is attributed once, so the rows of a scenario add up to the cost under owned code, and wrappers (`Run`, `Step`,
//! `main`), which lead every inclusive ranking, have what they spent themselves (errata 2 and 13 of the Gazebo study).
//!
//! Cost is given *per step* where the steps of all scenarios are known, which two recordings of different length share; else
//! per second of wall time; else in percent of the scenario's weight. It is in percent too where the coverage of a
//! capture is below [50 %](crate::query::coverage::LEAST_PERCENT): a share of what was sampled must not be turned into
//! time (erratum 3). With steps, samples outside of them (before the first, after the last) do not count.
//!
//! Over scenarios, `cost` is the mean, absence counting as zero, so that rows still add up; beside it are the range, the
//! number of scenarios in which the function costs anything, and the worst scenario: the one where its cost *is*
//! largest (erratum 9).
//!
//! # Score
//! The study's composite, from 0 to 100, of a scenario's evidence, by [exact values](score) (erratum 8):
//!
//! | dimension | points |
//! |---|---|
//! | cpu | attributed share above 10 %: 40; 5 to 10 %: 25; 1 to 5 %: 10 |
//! | cache | share of cache misses over share of CPU above 2.0: 20; above 1.3: 10 |
//! | offcpu | among the 5 callers with most blocked time: 15; among the first 10: 8 |
//! | sharing | share of modified-line hits above 5 %: 15; 1 to 5 %: 8 |
//! | sched | runs on a thread that is [flagged](crate::analyses::sched) for its delay: 10 |
//!
//! A dimension that was not recorded gives no points and lowers what can be reached (`score_max`); `evidence` lists the
//! dimensions that there were, with points. A function's score is that of the scenario in which it is highest. No data is not
//! zero: without cache misses of the same scenario there is no ratio (erratum 5).
//!
//! # What belongs together
//! Evidence of several captures is joined only if scenario, variant, phase, command and build are the same (erratum 4: a
//! join by file names paired loading with runtime, and one world with another's misses). What does not match stays
//! apart and is named in the notes. One table is about one phase. Functions are joined by their exact name and module
//! (erratum 5), delays only with functions on the threads that were delayed (erratum 10), waits by nearest owned caller
//! (erratum 11). Ties are in the order of the other figure, then of names (erratum 16).
//!
//! Where nothing was said about ownership, costs are attributed to the nearest function that is neither of a run-time library
//! nor of the kernel.

pub mod pairing;
pub mod score;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Column, Kind, Phase, Table, Value, quantity};

use crate::analyses::sched;
use crate::columns;
use crate::notes::ownership_note;
use crate::query::basis::Basis;
use crate::query::coverage;
use crate::query::events::{self, Role};
use crate::query::functions::Identity;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{Amount, StackWeights, percent};
use pairing::Scenario;
use score::{Evidence, Part, Score};

/// How to rank.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Order of the rows.
    pub by: Order,
    /// The phase to rank; by default `steady` if any capture is of it.
    pub phase: Option<Phase>,
    /// Which threads are delayed.
    pub sched: sched::Options,
}

/// What the rows are ordered by; ties by the other one, then by name and module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Cost, the mean over scenarios.
    #[default]
    Cost,
    /// The composite score.
    Score,
}

/// The evidence of one scenario, by function.
struct Costs {
    label: String,
    unit: String,
    /// All weight, and what is attributed to any function.
    total: u128,
    under_owned: u128,
    by_function: FxHashMap<Identity, (u128, u128)>,
    steps: Option<u64>,
    wall_ns: Option<u64>,
    low_coverage: Option<f64>,
    misses: Option<(u128, FxHashMap<Identity, u128>)>,
    blocked: Option<Blocked>,
    delayed: Option<FxHashSet<Identity>>,
}

/// Blocked time by attributed caller, and the callers' places, the most blocked one first.
struct Blocked {
    ns: FxHashMap<Identity, u128>,
    places: FxHashMap<Identity, u64>,
}

impl Costs {
    fn of(scenario: &Scenario<'_, '_>, options: &Options) -> Self {
        let mut costs = Self {
            label: scenario.label.clone(),
            unit: String::new(),
            total: 0,
            under_owned: 0,
            by_function: FxHashMap::default(),
            steps: None,
            wall_ns: None,
            low_coverage: None,
            misses: None,
            blocked: None,
            delayed: None,
        };
        for (index, selection) in scenario.cpu().enumerate() {
            costs.add_cpu(selection, index == 0);
        }
        for selection in &scenario.captures {
            costs.add_misses(selection);
            costs.add_blocked(selection);
            costs.add_delays(selection, &options.sched);
        }
        costs.place_blocked();
        costs
    }

    fn add_cpu(&mut self, selection: &Selection<'_>, first: bool) {
        let loops = Loops::of(selection);
        let count = loops.as_ref().map(|loops| loops.main().count() as u64);
        // Of several captures all must say, or the sum means nothing.
        let plus = |sum: Option<u64>, part: Option<u64>| if first { part } else { Some(sum?.saturating_add(part?)) };
        self.steps = plus(self.steps, count);
        self.wall_ns = plus(self.wall_ns, selection.wall_ns().filter(|wall| *wall > 0));
        if let Some(coverage) = coverage::percent(selection).filter(|percent| *percent < coverage::LEAST_PERCENT) {
            self.low_coverage = Some(self.low_coverage.map_or(coverage, |lowest| lowest.min(coverage)));
        }
        let timed = || selection.samples().all(|sample| sample.time_ns.is_some());
        self.unit = selection.event().map_or(String::new(), |event| event.unit.clone());
        let weights = match loops.filter(|_| timed()) {
            Some(loops) => loops.sample_weights(selection),
            None => StackWeights::of_samples(selection),
        };
        let functions = selection.functions();
        let attributed = weights.attributed_by_function(functions);
        let inclusive = weights.inclusive_by_function(selection.capture(), functions);
        self.total += weights.total().weight;
        self.under_owned += attributed.iter().map(|amount| amount.weight).sum::<u128>();
        for (id, function) in functions.all().filter(|(id, _)| !attributed[id.index()].is_zero()) {
            let sums = self.by_function.entry(function.identity()).or_default();
            sums.0 += attributed[id.index()].weight;
            sums.1 += inclusive[id.index()].weight;
        }
    }

    fn add_misses(&mut self, selection: &Selection<'_>) {
        for event in events::of_role(selection.capture(), Role::CacheMisses) {
            let (total, by_function) = self.misses.get_or_insert_default();
            let weights = StackWeights::of_samples(&selection.of_event(event));
            *total += weights.total().weight;
            add_by_identity(by_function, selection, &weights.attributed_by_function(selection.functions()));
        }
    }

    fn add_blocked(&mut self, selection: &Selection<'_>) {
        if !selection.has_switches() {
            return;
        }
        let blocked =
            self.blocked.get_or_insert_with(|| Blocked { ns: FxHashMap::default(), places: FxHashMap::default() });
        let weights = StackWeights::of_blocked(selection);
        add_by_identity(&mut blocked.ns, selection, &weights.attributed_by_function(selection.functions()));
    }

    /// Callers with equal times share the better place.
    fn place_blocked(&mut self) {
        let Some(blocked) = &mut self.blocked else { return };
        let mut order: Vec<(u128, &Identity)> = blocked.ns.iter().map(|(identity, ns)| (*ns, identity)).collect();
        order.sort_by(|a, b| b.cmp(a));
        let place = |ns: u128| order.partition_point(|(other, _)| *other > ns) as u64 + 1;
        blocked.places = order.iter().map(|(ns, identity)| ((*identity).clone(), place(*ns))).collect();
    }

    /// Notes the functions that run on delayed threads.
    fn add_delays(&mut self, selection: &Selection<'_>, options: &sched::Options) {
        if !selection.has_switches() {
            return;
        }
        let delayed = self.delayed.get_or_insert_default();
        for delays in sched::delays(selection).iter().filter(|delays| delays.is_flagged(options)) {
            let weights = StackWeights::of_samples(&selection.of_thread(delays.thread));
            let attributed = weights.attributed_by_function(selection.functions());
            let running = selection.functions().all().filter(|(id, _)| !attributed[id.index()].is_zero());
            delayed.extend(running.map(|(_, function)| function.identity()));
        }
    }

    fn possible_basis(&self) -> Basis {
        match () {
            _ if self.low_coverage.is_some() => Basis::Share,
            _ if self.steps.is_some_and(|steps| steps > 0) => Basis::PerStep,
            _ if self.unit == "ns" && self.wall_ns.is_some() => Basis::PerSecond,
            _ => Basis::Share,
        }
    }

    fn cost(&self, weight: u128, basis: Basis) -> f64 {
        let weight_f64 = weight as f64;
        match basis {
            Basis::PerStep => weight_f64 / self.steps.unwrap_or(1) as f64,
            Basis::PerSecond => weight_f64 * 1e9 / self.wall_ns.unwrap_or(1) as f64,
            Basis::Share => percent(weight, self.total).unwrap_or(0.0),
        }
    }

    fn attributed(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.0)
    }

    fn inclusive(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.1)
    }

    fn has_cpu(&self) -> bool {
        self.total > 0
    }

    fn evidence(&self, function: &Identity) -> Evidence {
        let part = Part { part: self.attributed(function), whole: self.total };
        let misses = self.misses.as_ref().map(|(whole, by_function)| {
            // A function of which no miss was sampled has no ratio: nothing was measured.
            by_function.get(function).map(|part| Part { part: *part, whole: *whole })
        });
        Evidence {
            cpu: self.has_cpu().then_some(part),
            misses,
            blocked_place: self.blocked.as_ref().map(|blocked| blocked.places.get(function).copied()),
            modified_hits: None,
            delayed: self.delayed.as_ref().map(|delayed| delayed.contains(function)),
        }
    }

    fn blocked_ns(&self, function: &Identity) -> Option<u128> {
        Some(self.blocked.as_ref()?.ns.get(function).copied().unwrap_or(0))
    }

    /// Every function with any evidence.
    fn functions(&self) -> impl Iterator<Item = &Identity> {
        let blocked = self.blocked.as_ref().map(|blocked| blocked.ns.keys());
        self.by_function.keys().chain(blocked.into_iter().flatten())
    }
}

fn add_by_identity(sums: &mut FxHashMap<Identity, u128>, selection: &Selection<'_>, amounts: &[Amount]) {
    for (id, function) in selection.functions().all() {
        let amount = amounts[id.index()];
        if amount.weight > 0 {
            *sums.entry(function.identity()).or_default() += amount.weight;
        }
    }
}

/// A function's place in the rank.
struct Ranked<'a> {
    function: Identity,
    cost: f64,
    least: f64,
    most: f64,
    worst: Option<&'a Costs>,
    scenarios: u64,
    score: Score,
    scored_in: &'a Costs,
}

/// The table `rank`.
pub fn table(selections: &[Selection<'_>], options: &Options) -> Table {
    let mut notes = Vec::new();
    let phase = pairing::phase(selections, options.phase);
    let scenarios = pairing::pair(selections, phase, &mut notes);
    let all: Vec<Costs> = scenarios.iter().map(|scenario| Costs::of(scenario, options)).collect();
    let costs: Vec<&Costs> = all.iter().filter(|costs| costs.has_cpu()).collect();
    let basis = common_basis(&costs, &mut notes);
    let mut ranked = rank(&costs, basis);
    ranked.sort_by(|a, b| a.compare(b, options.by));
    let mut table = Table::new("rank", title(options.by, phase), table_columns(&costs, basis));
    for (index, one) in ranked.iter().enumerate() {
        table.push(row(index + 1, one));
    }
    table.add_notes(scenario_notes(&costs, basis));
    table.add_notes(left_without_cpu(&all));
    table.add_notes(notes);
    table.add_notes(ownership_note(selections));
    if selections.iter().all(|selection| !selection.functions().ownership_known()) {
        table.note(
            "No code is said to be owned: costs are attributed to the nearest function outside of run-time libraries and the kernel. Name your own with --owned 'gz::*'."
                .to_owned(),
        );
    }
    table
}

fn rank<'a>(costs: &[&'a Costs], basis: Basis) -> Vec<Ranked<'a>> {
    let functions: std::collections::BTreeSet<&Identity> = costs.iter().flat_map(|one| one.functions()).collect();
    functions.into_iter().filter_map(|function| Ranked::of(function, costs, basis)).collect()
}

impl<'a> Ranked<'a> {
    /// `None` if the function neither costs nor scores anything.
    fn of(function: &Identity, costs: &[&'a Costs], basis: Basis) -> Option<Self> {
        let in_scenario = |one: &&'a Costs| (*one, one.attributed(function), one.cost(one.attributed(function), basis));
        let found: Vec<(&Costs, u128, f64)> =
            costs.iter().map(in_scenario).filter(|(_, attributed, _)| *attributed > 0).collect();
        // Of equal ones the first by label: a later one must be strictly worse.
        let worse = |a: &(&'a Costs, u128, f64), b: &(&'a Costs, u128, f64)| {
            a.2.total_cmp(&b.2).then_with(|| b.0.label.cmp(&a.0.label))
        };
        let worst = found.iter().copied().max_by(worse);
        let scored = costs.iter().map(|one| (*one, Score::of(&one.evidence(function))));
        let (scored_in, score) = scored.max_by(|(a, a_score), (b, b_score)| {
            let cost = |one: &Costs| one.cost(one.attributed(function), basis);
            let by_cost = || cost(a).total_cmp(&cost(b)).then_with(|| b.label.cmp(&a.label));
            a_score.points.cmp(&b_score.points).then_with(by_cost)
        })?;
        if found.is_empty() && score.points == 0 {
            return None;
        }
        Some(Self {
            function: function.clone(),
            cost: found.iter().fold(0.0, |sum, (.., cost)| sum + cost) / costs.len() as f64,
            least: found.iter().map(|(.., cost)| *cost).min_by(f64::total_cmp).unwrap_or(0.0),
            most: worst.map_or(0.0, |(.., cost)| cost),
            worst: worst.map(|(one, ..)| one),
            scenarios: found.len() as u64,
            score,
            scored_in,
        })
    }

    fn compare(&self, other: &Self, by: Order) -> Ordering {
        let cost = other.cost.total_cmp(&self.cost);
        let score = other.score.points.cmp(&self.score.points);
        let ordered = match by {
            Order::Cost => cost.then(score),
            Order::Score => score.then(cost),
        };
        ordered.then_with(|| self.function.cmp(&other.function))
    }
}

/// What all scenarios can be measured in, and why it is not better.
fn common_basis(costs: &[&Costs], notes: &mut Vec<String>) -> Basis {
    let named = |of: &dyn Fn(&Costs) -> bool| -> String {
        costs.iter().filter(|one| of(one)).map(|one| one.label.as_str()).collect::<Vec<_>>().join(", ")
    };
    let units: BTreeMap<&str, ()> = costs.iter().map(|one| (one.unit.as_str(), ())).collect();
    let all = |basis| costs.iter().all(|one| one.possible_basis() == basis);
    let timed = |one: &Costs| one.low_coverage.is_none() && one.unit == "ns" && one.wall_ns.is_some();
    if costs.is_empty() {
        return Basis::Share;
    }
    let low = named(&|one| one.low_coverage.is_some());
    if !low.is_empty() {
        notes.push(format!(
            "Costs are shares: coverage is below {} % in {low}, so they cannot be turned into time.",
            coverage::LEAST_PERCENT
        ));
        return Basis::Share;
    }
    if units.len() > 1 {
        let units: Vec<&str> = units.keys().copied().collect();
        notes.push(format!("Costs are shares: the scenarios' weights have different units ({}).", units.join(", ")));
        return Basis::Share;
    }
    if all(Basis::PerStep) {
        return Basis::PerStep;
    }
    let stepless = named(&|one| one.steps.is_none());
    if costs.iter().all(|one| timed(one)) {
        notes.push(format!("Costs are per second of wall time: no steps are known in {stepless}."));
        return Basis::PerSecond;
    }
    notes.push(format!("Costs are shares: no steps are known in {stepless}, and not all weights are times."));
    Basis::Share
}

fn title(by: Order, phase: Option<Phase>) -> String {
    let by = match by {
        Order::Cost => "cost",
        Order::Score => "score",
    };
    match phase {
        Some(phase) => format!("Rank by {by}, {phase} phase"),
        None => format!("Rank by {by}"),
    }
}

fn cost_column(name: &str, costs: &[&Costs], basis: Basis, doc: &str) -> Column {
    let unit = costs.first().map_or("", |one| one.unit.as_str());
    let kind = if unit == "ns" { Kind::Duration } else { Kind::Number };
    Column::new(name, if basis == Basis::Share { Kind::Percent } else { kind }, basis.unit(unit), doc)
}

fn table_columns(costs: &[&Costs], basis: Basis) -> Vec<Column> {
    let cost = |name: &str, doc: &str| cost_column(name, costs, basis, doc);
    vec![
        columns::count("rank", "", "Place in the order of the table."),
        columns::text("function", "Full name of the function that costs are attributed to.").essential(),
        columns::text("module", "File name of the module its code is in; empty where unknown.").detail(),
        cost(
            "cost",
            "Attributed cost: the mean over all scenarios, absence counting as zero. The column adds up to the cost under owned code.",
        ).essential(),
        columns::text("worst_scenario", "The scenario in which its cost is largest."),
        columns::percent("share", "Its attributed weight in percent of all weight, in the worst scenario.").essential(),
        columns::percent("inclusive_share", "Its inclusive weight in percent of all weight, in the worst scenario."),
        columns::count("scenarios", "scenarios", "Number of scenarios in which it costs anything.").detail(),
        cost("cost_min", "Its least cost over those scenarios.").detail(),
        cost("cost_max", "Its largest cost over those scenarios: that of the worst one.").detail(),
        columns::count("score", "points", "Composite score, in the scenario in which it is highest."),
        columns::count("score_max", "points", "The highest score that the evidence of that scenario allows.").detail(),
        columns::text("score_scenario", "That scenario.").detail(),
        columns::text("evidence", "Its dimensions, each with points of the most that it can give.").detail(),
        columns::number(
            "cache_ratio",
            "",
            "Share of cache misses over share of CPU, there: above 1.3 is cache-hostile. Missing without cache evidence.",
        ).detail(),
        columns::count("offcpu_place", "", "Place among the callers with most blocked time, there.").detail(),
        columns::duration("blocked", "Blocked time attributed to it, there."),
        columns::flag("delayed", "Whether it runs on a thread with scheduler delay, there.").detail(),
    ]
}

fn row(place: usize, one: &Ranked<'_>) -> Vec<Value> {
    let share =
        |of: fn(&Costs, &Identity) -> u128| one.worst.and_then(|worst| percent(of(worst, &one.function), worst.total));
    let there = one.scored_in;
    let evidence = there.evidence(&one.function);
    vec![
        place.into(),
        (&*one.function.name).into(),
        (&*one.function.module).into(),
        one.cost.into(),
        one.worst.map(|worst| worst.label.as_str()).into(),
        share(Costs::attributed).into(),
        share(Costs::inclusive).into(),
        one.scenarios.into(),
        one.least.into(),
        one.most.into(),
        one.score.points.into(),
        one.score.reachable.into(),
        there.label.as_str().into(),
        one.score.to_string().into(),
        evidence.cache_ratio().into(),
        evidence.blocked_place.flatten().into(),
        there.blocked_ns(&one.function).into(),
        evidence.delayed.into(),
    ]
}

fn scenario_notes(costs: &[&Costs], basis: Basis) -> Vec<String> {
    let note = |one: &&Costs| {
        let share = quantity::percent(percent(one.under_owned, one.total).unwrap_or(0.0));
        let cost = quantity::weight(one.cost(one.under_owned, basis).round() as u128, &one.unit);
        let cost = match basis {
            Basis::PerStep => {
                format!(", {cost} per step over {} steps", quantity::grouped(one.steps.unwrap_or(0).into()))
            }
            Basis::PerSecond => format!(", {cost} per second"),
            Basis::Share => String::new(),
        };
        format!("{}: {share} of the weight is under the ranked functions{cost}.", one.label)
    };
    costs.iter().map(note).collect()
}

/// Evidence that belongs to no scenario with CPU samples, and so is not used.
fn left_without_cpu(all: &[Costs]) -> Vec<String> {
    let without = all.iter().filter(|costs| !costs.has_cpu());
    let note = |one: &Costs| {
        format!("{} has no CPU samples and pairs with no capture that has: its evidence is not used.", one.label)
    };
    without.map(note).collect()
}

#[cfg(test)]
mod tests;

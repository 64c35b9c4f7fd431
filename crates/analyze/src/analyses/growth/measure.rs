//! [`Series`]: the runs of a sweep, and everything that was measured once per run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use stepscope_model::{CaptureInfo, Phase};
use stepscope_stats::growth::{Growth, Point};

use super::LEAST_SHARE;
use crate::analyses::metrics;
use crate::analyses::rank::extent::Extent;
use crate::analyses::resources;
use crate::query::basis::Basis;
use crate::query::family::Family;
use crate::query::functions::FunctionId;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::StackWeights;

/// The axis of CPU sets. Every other one is an axis of sizes.
const CORES: &str = "cores";

/// Metrics whose growth other metrics show.
const RATIOS: [&str; 2] = ["rtf", "cores"];

/// Counters that are metrics, too.
const ALSO_METRICS: [&str; 2] = ["threads", "peak_rss_bytes"];

/// The runs of one scenario, variant and phase.
pub(crate) struct Series<'s, 'a> {
    /// Scenario, and variant without the axes of the sweep.
    pub label: String,
    pub phase: Option<Phase>,
    /// Name of the axis of sizes; empty without one.
    pub axis: String,
    pub runs: Vec<Run<'s, 'a>>,
}

/// A run of a series.
pub(crate) struct Run<'s, 'a> {
    /// Its size; 1 without an axis of sizes.
    pub n: f64,
    /// How many CPUs it could use, if the sweep says so.
    pub cores: Option<f64>,
    pub selection: &'s Selection<'a>,
}

/// What a value is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Measured {
    Metric,
    Counter,
    Function,
    Inclusive,
    Family,
}

impl Measured {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One quantity of a series, run by run.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    pub kind: Measured,
    pub name: String,
    pub unit: String,
    values: Vec<Option<Value>>,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    cost: f64,
    /// The number of samples that it is; `None` if it is exact.
    events: Option<u64>,
    /// Percent of the whole cost.
    share: Option<f64>,
}

/// What the captures of a series have in common, but for their phase: scenario, and variant without the axes of the sweep.
pub fn series_label(info: &CaptureInfo) -> String {
    let is_axis = |part: &str| info.sweep.iter().any(|(axis, value)| part == format!("{axis}={value}"));
    let variant = info.variant.as_deref().unwrap_or("").split('+').filter(|part| !part.is_empty() && !is_axis(part));
    info.scenario.as_deref().into_iter().chain(variant).collect::<Vec<_>>().join("/")
}

/// The captures of a sweep by series, each with its runs by size. Captures without a size or number of CPUs are left out.
pub(crate) fn series<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<Series<'s, 'a>> {
    /// Label, phase and axis.
    type Key = (String, Reverse<Option<Phase>>, String);
    let mut all: BTreeMap<Key, Vec<Run<'s, 'a>>> = BTreeMap::new();
    for selection in selections {
        let info = &selection.capture().info;
        if info.sweep.is_empty() {
            continue;
        }
        let size = info.sweep.iter().find(|(axis, _)| *axis != CORES);
        let (axis, n) = size.map_or((String::new(), 1.0), |(axis, n)| (axis.clone(), *n));
        let label = series_label(info);
        let run = Run { n, cores: info.sweep.get(CORES).copied(), selection };
        all.entry((label, Reverse(info.phase), axis)).or_default().push(run);
    }
    let series = all.into_iter().map(|((label, Reverse(phase), axis), mut runs)| {
        runs.sort_by(|a, b| a.n.total_cmp(&b.n));
        Series { label, phase, axis, runs }
    });
    series.collect()
}

impl<'s, 'a> Series<'s, 'a> {
    /// The series of each number of CPUs, fewest first.
    pub fn by_cores(self) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for run in self.runs {
            match all.iter_mut().find(|series| series.runs[0].cores == run.cores) {
                Some(series) => series.runs.push(run),
                None => {
                    let cores = run.cores.map(|cores| format!("/{CORES}={cores}")).unwrap_or_default();
                    let label = format!("{}{cores}", self.label);
                    all.push(Self { label, phase: self.phase, axis: self.axis.clone(), runs: vec![run] });
                }
            }
        }
        all.sort_by(|a, b| a.runs[0].cores.partial_cmp(&b.runs[0].cores).expect("numbers of CPUs are finite"));
        all
    }

    /// The sizes, ascending.
    pub fn sizes(&self) -> Vec<f64> {
        let mut sizes: Vec<f64> = self.runs.iter().map(|run| run.n).collect();
        sizes.dedup();
        sizes
    }

    pub fn basis(&self) -> Basis {
        Basis::common(self.runs.iter().map(|run| run.selection))
    }

    /// Everything that was measured.
    pub fn measures(&self) -> Vec<Measure> {
        let basis = self.basis();
        let mut found = Found { runs: self.runs.len(), measures: BTreeMap::new() };
        for (index, run) in self.runs.iter().enumerate() {
            found.metrics(index, run.selection, basis, self.phase);
            found.counters(index, run.selection);
            found.costs(index, run.selection, basis, self.phase);
        }
        found.measures.into_values().filter(Measure::matters).collect()
    }
}

/// Costs by function of the thread that runs the steps, run by run: what its steps wait for.
pub(crate) struct LoopCosts {
    /// Time of a step.
    pub step: Measure,
    /// Attributed cost of each function on the loop's thread.
    pub functions: Vec<Measure>,
    /// Simulated time of a step, where it is known.
    pub simulated_ns: Option<f64>,
}

impl LoopCosts {
    /// `None` without steps.
    pub fn of(series: &Series<'_, '_>) -> Option<Self> {
        if series.basis() != Basis::PerStep {
            return None;
        }
        let mut found = Found { runs: series.runs.len(), measures: BTreeMap::new() };
        let mut simulated = Vec::new();
        for (index, run) in series.runs.iter().enumerate() {
            let metrics = metrics::of(run.selection, Basis::PerStep);
            let named = |name: &str| Some(metrics.iter().find(|metric| metric.name == name)?.value);
            let step = named("step.mean")?;
            found.set(index, (Measured::Metric, "step.mean"), "ns", Value { cost: step, events: None, share: None });
            simulated.extend(named("rtf").map(|rtf| rtf * step));
            let loops = Loops::of(run.selection)?;
            let thread = loops.main().first()?.thread;
            found.costs(index, &run.selection.of_thread(thread), Basis::PerStep, series.phase);
        }
        let simulated_ns = stepscope_stats::median(&simulated).filter(|ns| *ns > 0.0);
        let mut functions: Vec<Measure> = found.measures.into_values().collect();
        let step = functions.remove(functions.iter().position(|measure| measure.name == "step.mean")?);
        functions.retain(|measure| measure.kind == Measured::Function && measure.matters());
        Some(Self { step, functions, simulated_ns })
    }
}

/// Costs of owned functions and of everything, run by run.
pub(crate) struct FunctionCosts {
    /// All cost.
    pub whole: Measure,
    /// Attributed and inclusive costs of functions.
    pub functions: Vec<Measure>,
    /// The largest resident memory of all processes together.
    pub memory: Measure,
}

impl FunctionCosts {
    pub fn of(series: &Series<'_, '_>) -> Self {
        let basis = series.basis();
        let mut found = Found { runs: series.runs.len(), measures: BTreeMap::new() };
        let costs = series.runs.iter().enumerate();
        let values = costs.map(|(index, run)| Some(found.costs(index, run.selection, basis, series.phase))).collect();
        let metric =
            |name: &str, values| Measure { kind: Measured::Metric, name: name.into(), unit: "".into(), values };
        let whole = metric("cost", values);
        let bytes = series.runs.iter().map(|run| resources::peak_rss_together(run.selection));
        let value = |bytes: i64| Value { cost: bytes as f64, events: None, share: None };
        let memory = metric("rss.peak", bytes.map(|bytes| bytes.map(value)).collect());
        let is_of_function = |measure: &Measure| matches!(measure.kind, Measured::Function | Measured::Inclusive);
        let functions = found.measures.into_values().filter(|one| is_of_function(one) && one.matters()).collect();
        Self { whole, functions, memory }
    }
}

impl Measure {
    /// Whether it is large enough to have a row.
    fn matters(&self) -> bool {
        let mut shares = self.values.iter().flatten().filter_map(|value| value.share).peekable();
        shares.peek().is_none() || shares.any(|share| share >= LEAST_SHARE)
    }

    /// The costs at each size, for a fit.
    pub fn points(&self, sizes: impl Iterator<Item = f64>) -> Vec<Point> {
        self.points_less(&[], sizes)
    }

    /// The same, less the costs of others.
    pub fn points_less(&self, others: &[&Measure], sizes: impl Iterator<Item = f64>) -> Vec<Point> {
        let mut by_size: Vec<(f64, Vec<CostAndEvents>)> = Vec::new();
        for (index, n) in sizes.enumerate() {
            let Some(value) = self.values[index] else { continue };
            let less: f64 = others.iter().filter_map(|other| other.values[index]).map(|value| value.cost).sum();
            let entry = (value.cost - less, value.events);
            match by_size.last_mut().filter(|(last, _)| *last == n) {
                Some((_, values)) => values.push(entry),
                None => by_size.push((n, vec![entry])),
            }
        }
        by_size.into_iter().filter_map(|(n, values)| point(n, &values)).collect()
    }

    /// Its mean share at the largest size, in percent.
    pub fn share_at(&self, largest: f64, sizes: impl Iterator<Item = f64>) -> Option<f64> {
        let at = sizes.zip(&self.values).filter(|(n, _)| *n == largest).map(|(_, value)| value.as_ref());
        let shares: Vec<Option<f64>> = at.map(|value| value.map_or(Some(0.0), |value| value.share)).collect();
        let known: Option<Vec<f64>> = shares.into_iter().collect();
        known.filter(|known| !known.is_empty()).map(|known| known.iter().sum::<f64>() / known.len() as f64)
    }

    pub fn growth(&self, sizes: impl Iterator<Item = f64>) -> Option<Growth> {
        Growth::of(&self.points(sizes))
    }
}

/// The cost of a run, and the number of samples that it is.
type CostAndEvents = (f64, Option<u64>);

/// A point of positive costs. Runs of which any is without cost count as one, their mean.
fn point(n: f64, values: &[CostAndEvents]) -> Option<Point> {
    let costs: Vec<f64> = values.iter().map(|(cost, _)| *cost).collect();
    let events: Option<u64> = values.iter().map(|(_, events)| *events).sum();
    let runs = costs.len() as f64;
    if costs.iter().all(|cost| *cost > 0.0) {
        return Some(Point { n, values: costs, events: events.map(|events| events as f64 / runs) });
    }
    let mean = costs.iter().sum::<f64>() / runs;
    (mean > 0.0).then(|| Point { n, values: vec![mean], events: events.map(|events| events as f64) })
}

struct Found {
    runs: usize,
    measures: BTreeMap<(Measured, String), Measure>,
}

impl Found {
    fn set(&mut self, run: usize, (kind, name): (Measured, &str), unit: &str, value: Value) {
        let new = || Measure { kind, name: name.to_owned(), unit: unit.to_owned(), values: vec![None; self.runs] };
        self.measures.entry((kind, name.to_owned())).or_insert_with(new).values[run] = Some(value);
    }

    fn metrics(&mut self, run: usize, selection: &Selection<'_>, basis: Basis, phase: Option<Phase>) {
        let loading_s = selection.wall_ns().filter(|_| phase == Some(Phase::Loading)).map(|ns| ns as f64 / 1e9);
        for metric in metrics::of(selection, basis) {
            // The length of a steady recording is that of the lab file.
            let says_nothing = metric.name == "wall" && phase != Some(Phase::Loading);
            if says_nothing || RATIOS.contains(&&*metric.name) {
                continue;
            }
            let (cost, unit) = match (metric.unit.strip_suffix("/s"), loading_s) {
                (Some(unit), Some(seconds)) => (metric.value * seconds, unit),
                _ => (metric.value, metric.unit.as_str()),
            };
            self.set(run, (Measured::Metric, &metric.name), unit, Value { cost, events: None, share: None });
        }
        let threads = selection.threads().count() as f64;
        self.set(run, (Measured::Metric, "threads"), "threads", Value { cost: threads, events: None, share: None });
    }

    fn counters(&mut self, run: usize, selection: &Selection<'_>) {
        let levels = resources::largest_levels(selection).into_iter();
        for (name, level) in levels.filter(|(name, _)| !ALSO_METRICS.contains(&name.as_str())) {
            let value = Value { cost: level, events: None, share: None };
            self.set(run, (Measured::Counter, &name), "", value);
        }
    }

    /// Adds the costs of a run. Returns all cost of it.
    fn costs(&mut self, run: usize, selection: &Selection<'_>, basis: Basis, phase: Option<Phase>) -> Value {
        let mut extent = Extent::default();
        let weights = extent.add(selection);
        let (functions, capture) = (selection.functions(), selection.capture());
        // A loading phase is one piece of work: its cost is the whole.
        let whole = phase == Some(Phase::Loading) && basis == Basis::PerSecond;
        let unit = if whole { extent.unit.clone() } else { basis.unit(&extent.unit) };
        let value = |weight: u128, count: u64| Value {
            cost: if whole { weight as f64 } else { extent.cost(weight, basis) },
            events: weights.counts_known.then_some(count),
            share: crate::query::weights::percent(weight, extent.total),
        };
        let attributed = weights.attributed_by_function(functions);
        let inclusive = weights.inclusive_by_function(capture, functions);
        for (id, function) in functions.all().filter(|(id, _)| functions.is_owner(*id)) {
            for (kind, amount) in
                [(Measured::Function, attributed[id.index()]), (Measured::Inclusive, inclusive[id.index()])]
            {
                if !amount.is_zero() {
                    self.set(run, (kind, &function.name), &unit, value(amount.weight, amount.count));
                }
            }
        }
        for (family, (weight, count)) in families(selection, &weights) {
            self.set(run, (Measured::Family, family.name()), &unit, value(weight, count));
        }
        // What has no sample in this run costs nothing in it.
        let zero = Value { cost: 0.0, events: Some(0), share: Some(0.0) };
        for measure in self.measures.values_mut().filter(|measure| measure.kind > Measured::Counter) {
            measure.values[..=run].iter_mut().filter(|value| value.is_none()).for_each(|value| *value = Some(zero));
        }
        let all = weights.total();
        value(all.weight, all.count)
    }
}

/// Weight and count of each family's own code.
fn families(selection: &Selection<'_>, weights: &StackWeights) -> BTreeMap<Family, (u128, u64)> {
    let (functions, capture) = (selection.functions(), selection.capture());
    let mut known: BTreeMap<usize, Option<Family>> = BTreeMap::new();
    let mut sums: BTreeMap<Family, (u128, u64)> = BTreeMap::new();
    for (stack, amount) in weights.occupied() {
        let id: FunctionId = functions.of_node(capture, stack);
        let family =
            known.entry(id.index()).or_insert_with(|| functions.family(id).filter(|_| !functions.is_owner(id)));
        if let Some(family) = family {
            let sum = sums.entry(family.clone()).or_default();
            *sum = (sum.0 + amount.weight, sum.1 + amount.count);
        }
    }
    sums
}

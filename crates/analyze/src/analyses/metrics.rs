//! The metrics of a whole recording, under stable names: for comparison, gate and history.
//!
//! | metric | is |
//! |---|---|
//! | `rtf` | simulated time over wall time |
//! | `step.mean`, `step.median`, `step.p99`, `step.max` | time of a step of the main loop |
//! | `wall` | length of the recording: of a loading phase, the time until ready |
//! | `cpu` | exact CPU time of all threads, else the sampled one; per step |
//! | `cores` | CPU time over wall time |
//! | `blocked`, `runnable` | blocked and runnable time of the loop's thread; per step (without steps, of all threads) |
//! | `flows.median`, `flows.p99` | [latency](crate::analyses::flows) of the messages of all topics |
//! | `flows.late`, `flows.lost` | percentage of the messages that were late, and that were lost |
//! | `timers.jitter` | 99th percentile of the [jitter](crate::analyses::timers) of all timers |
//! | `timers.missed` | percentage of the due calls of timers that did not come |
//! | `rss.peak` | largest resident memory of all processes together |
//! | `faults.minor`, `faults.major` | page faults; per step |
//! | `switches` | context switches; per step |
//! | `io.read`, `io.written` | bytes from and to storage; per step |
//! | `heap.allocations`, `heap.temporary` | heap allocations, and the [temporary](crate::analyses::heap) ones; per step |
//! | `heap.allocated` | bytes that they asked for; per step |
//! | `heap.peak` | live bytes when a process had most, of all processes together |
//! | `heap.leaked` | live bytes at the end, of all processes together |
//! | `syscalls.count`, `syscalls.errors` | system calls, and those that failed; per step |
//! | `sharing.hitm` | sampled loads of [lines](crate::analyses::sharing) that another core had modified; per step |
//! | `sharing.awaited` | CPU samples at which a CPU waits for a line that threads share, where accesses were sampled in software; per step |
//! | `memory_errors` | rows of [memory errors](crate::analyses::memory_errors), if a checker ran |
//! | `syscalls.time` | time within system calls that do not wait for others; per step |
//! | `instructions` | instructions that the CPU counted; per step. In a simulation, all of the program's |
//! | `cache.ipc`, `cache.mpki`, `cache.branch_miss_rate` | the [rates](crate::analyses::cache) of the whole recording |
//!
//! "Per step" is per second of wall time if no steps are known. Metrics that were not recorded are absent, not zero.

use std::borrow::Cow;

pub use stepscope_model::Better;
use stepscope_model::{DataAccess, OwnMetric, WaitState};

use crate::analyses::sharing::{Line, hitm};
use crate::analyses::{cache, flows, memory_errors, resources, timers};
use crate::analysis::has_checker;
use crate::query::basis::Basis;
use crate::query::coverage::{cpu_ns, known_cpu_ns};
use crate::query::events;
use crate::query::heap::HeapSums;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};
use crate::query::system_calls::SelectedCalls;
use crate::query::waits::{blocked_ns, runnable_ns};

/// A metric of a whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name: one of [`NAMES`], or `metric.NAME.STATISTIC` for one of the user's own.
    pub name: Cow<'static, str>,
    /// Its unit: `ns`, `ns/step`, `bytes`, `faults/s`, `cores`, ...; empty for ratios.
    pub unit: String,
    /// Which way it should go.
    pub better: Better,
    /// Its value.
    pub value: f64,
}

/// The statistics of a user's own metric, in the order of tables.
pub const OWN_STATISTICS: [&str; 4] = ["mean", "median", "p95", "p99"];

/// The prefix of a user's own metrics; [`NAMES`] have none.
pub const OWN_PREFIX: &str = "metric.";

/// The [`OWN_STATISTICS`] of one recording's values: `metric.latency.p99` and so on. Empty without finite values.
///
/// Percentiles are values that occurred (nearest rank), as those of step times.
pub fn of_own(own: &OwnMetric) -> Vec<Metric> {
    let mut sorted: Vec<f64> = own.values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let percentile = |percent: f64| {
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted[rank.saturating_sub(1).min(last)]
    };
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let values = [mean, percentile(50.0), percentile(95.0), percentile(99.0)];
    let metric = |(statistic, value)| Metric {
        name: format!("{OWN_PREFIX}{}.{statistic}", own.name).into(),
        unit: own.unit.clone(),
        better: own.better,
        value,
    };
    OWN_STATISTICS.into_iter().zip(values).map(metric).collect()
}

/// Every name among these metrics, once: the user's own first, then those of [`NAMES`] in their order.
pub fn names<'m>(metrics: impl IntoIterator<Item = &'m Metric>) -> Vec<Cow<'static, str>> {
    let mut names: Vec<Cow<'static, str>> = Vec::new();
    for metric in metrics {
        if !names.contains(&metric.name) {
            names.push(metric.name.clone());
        }
    }
    names.sort_by_key(|name| place(name));
    names
}

/// A metric of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantMetric {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its unit.
    pub unit: String,
    /// The index of the variant.
    pub variant: usize,
    /// A value for each run that has the metric. Never empty.
    pub values: Vec<f64>,
}

impl VariantMetric {
    /// The mean of the runs.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }
}

/// The metrics of the runs of several variants: by [name](names), then by variant. A variant without a metric has no row of it.
pub fn by_variant(variants: &[Vec<&[Metric]>]) -> Vec<VariantMetric> {
    let of_variant = |name: &Cow<'static, str>, variant: usize| {
        let of_run = |run: &&'_ [Metric]| run.iter().find(|metric| metric.name == *name).cloned();
        let found: Vec<Metric> = variants[variant].iter().filter_map(of_run).collect();
        let unit = found.first()?.unit.clone();
        let values = found.iter().map(|metric| metric.value).collect();
        Some(VariantMetric { name: name.clone(), unit, variant, values })
    };
    let names = names(variants.iter().flatten().copied().flatten());
    names.iter().flat_map(|name| (0..variants.len()).filter_map(|variant| of_variant(name, variant))).collect()
}

/// The place of a metric in tables. The user's own come first, so that a limit on rows does not hide them.
pub fn place(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).map_or(0, |index| index + 1)
}

/// Every metric, in the order of tables.
pub const NAMES: [&str; 37] = [
    "rtf",
    "step.mean",
    "step.median",
    "step.p99",
    "step.max",
    "wall",
    "cpu",
    "cores",
    "blocked",
    "runnable",
    "flows.median",
    "flows.p99",
    "flows.late",
    "flows.lost",
    "timers.jitter",
    "timers.missed",
    "rss.peak",
    "faults.minor",
    "faults.major",
    "switches",
    "io.read",
    "io.written",
    "heap.allocations",
    "heap.temporary",
    "heap.allocated",
    "heap.peak",
    "heap.leaked",
    "syscalls.count",
    "syscalls.errors",
    "syscalls.time",
    "sharing.hitm",
    "sharing.awaited",
    "memory_errors",
    "instructions",
    "cache.ipc",
    "cache.mpki",
    "cache.branch_miss_rate",
];

/// The figures that a change is judged by first, the most informative first; after the user's own.
pub const HEADLINES: [&str; 5] = ["step.median", "step.mean", "wall", "cpu", "rtf"];

/// Whether a metric is one of the headline figures: one of [`HEADLINES`], or one of the [user's own](is_own_headline). The length of
/// a recording with steps is not one.
pub fn is_headline(name: &str, has_steps: bool) -> bool {
    HEADLINES.contains(&name) && !(has_steps && name == "wall") || is_own_headline(name)
}

/// Whether a metric is the median or the 99th percentile of one of the user's own.
pub fn is_own_headline(name: &str) -> bool {
    name.starts_with(OWN_PREFIX) && [".median", ".p99"].iter().any(|end| name.ends_with(end))
}

/// Which way the metric of this name should go: costs should fall; the real-time factor and instructions per cycle should rise.
pub fn better(name: &str) -> Better {
    if matches!(name, "rtf" | "cache.ipc") { Better::Higher } else { Better::Lower }
}

/// The metrics of a recording, as far as they are known, in the order of [`NAMES`]. Those that are of a step need
/// [`Basis::PerStep`].
pub fn of(selection: &Selection<'_>, basis: Basis) -> Vec<Metric> {
    let steps = if basis == Basis::PerStep { Steps::of(selection) } else { None };
    let wall = selection.wall_ns().filter(|wall| *wall > 0);
    let mut found = Found { basis, divisor: divisor(basis, steps.as_ref(), wall), metrics: Vec::new() };
    // What belongs to steps is of their time alone, so that numerator and denominator are of the same.
    let of_steps =
        steps.as_ref().filter(|steps| !steps.span.is_empty()).map(|steps| selection.within(steps.span.clone()));
    let inside = of_steps.as_ref().unwrap_or(selection);
    if let Some(steps) = &steps {
        found.of_steps(steps);
    }
    found.add("wall", "ns", wall.map(|ns| ns as f64));
    found.of_time(inside, selection);
    found.of_messages(inside);
    found.add("rss.peak", "bytes", resources::peak_rss_together(selection).map(|bytes| bytes as f64));
    found.of_totals(inside);
    found.of_heap(selection);
    found.of_system_calls(inside);
    found.of_sharing(selection);
    found.of_memory_errors(selection);
    found.of_cache(selection);
    found.metrics.extend(selection.capture().info.own_metrics.iter().flat_map(of_own));
    found.metrics.sort_by_key(|metric| place(&metric.name));
    found.metrics
}

/// What a cost of the whole recording is divided by.
fn divisor(basis: Basis, steps: Option<&Steps>, wall_ns: Option<u64>) -> Option<f64> {
    match basis {
        Basis::PerStep => Some(steps?.count() as f64),
        Basis::PerBuild => Some(1.0),
        Basis::PerSecond => Some(wall_ns? as f64 / 1e9),
        Basis::Share => None,
    }
}

struct Found {
    basis: Basis,
    divisor: Option<f64>,
    metrics: Vec<Metric>,
}

impl Found {
    fn add(&mut self, name: &'static str, unit: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.metrics.push(Metric { name: name.into(), unit: unit.to_owned(), better: better(name), value });
        }
    }

    /// A cost, on the basis.
    fn add_cost(&mut self, name: &'static str, unit: &str, cost: Option<f64>) {
        let unit = self.basis.unit(unit);
        self.add(name, &unit, cost.zip(self.divisor).map(|(cost, divisor)| cost / divisor));
    }

    fn of_steps(&mut self, steps: &Steps) {
        let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
        self.add("rtf", "", steps.real_time_factor);
        self.add("step.mean", "ns", steps.times.mean());
        self.add("step.median", "ns", ns(steps.times.median()));
        self.add("step.p99", "ns", ns(steps.times.percentile(99.0)));
        self.add("step.max", "ns", ns(steps.times.max()));
    }

    fn of_time(&mut self, inside: &Selection<'_>, whole: &Selection<'_>) {
        self.add_cost("cpu", "ns", known_cpu_ns(inside));
        let wall = whole.wall_ns().filter(|wall| *wall > 0);
        self.add("cores", "cores", cpu_ns(whole).zip(wall).map(|(cpu, wall)| cpu as f64 / wall as f64));
        if !inside.has_switches() {
            return;
        }
        let loops = if self.basis == Basis::PerStep { Loops::of(inside) } else { None };
        let in_loop = |thread| loops.as_ref().is_none_or(|loops| loops.in_main(thread));
        // Workers that idle are blocked all the time, and say nothing.
        let mut runs_it = vec![loops.is_none(); inside.capture().threads.len()];
        loops.iter().flat_map(|loops| loops.main().rows()).for_each(|step| runs_it[step.thread.index()] = true);
        let mut sums = (0.0, 0.0, 0.0);
        for wait in inside.thread_waits().filter(|wait| in_loop(wait.thread)) {
            if runs_it[wait.thread.index()] {
                sums.0 += if wait.state == WaitState::Blocked { blocked_ns(&wait) as f64 } else { 0.0 };
                sums.1 += runnable_ns(&wait) as f64;
            }
            sums.2 += 1.0;
        }
        self.add_cost("blocked", "ns", Some(sums.0));
        self.add_cost("runnable", "ns", Some(sums.1));
        self.add_cost("switches", "switches", Some(sums.2));
    }

    fn of_messages(&mut self, inside: &Selection<'_>) {
        let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
        if let Some(flows) = flows::Totals::of(inside) {
            self.add("flows.median", "ns", ns(flows.latencies.median()));
            self.add("flows.p99", "ns", ns(flows.latencies.percentile(99.0)));
            self.add("flows.late", "percent", Some(flows.late_percent));
            self.add("flows.lost", "percent", Some(flows.lost_percent));
        }
        if let Some(timers) = timers::Totals::of(inside) {
            self.add("timers.jitter", "ns", ns(timers.jitter.percentile(99.0)));
            self.add("timers.missed", "percent", Some(timers.missed_percent));
        }
    }

    fn of_totals(&mut self, inside: &Selection<'_>) {
        for (name, unit, quantity) in [
            ("faults.minor", "faults", "minor_faults"),
            ("faults.major", "faults", "major_faults"),
            ("io.read", "bytes", "io_read_bytes"),
            ("io.written", "bytes", "io_write_bytes"),
        ] {
            self.add_cost(name, unit, resources::change_together(inside, quantity).map(|change| change as f64));
        }
    }
}

impl Found {
    /// Allocations: they have a rate per step of their own, because tables are read at other times than steps start.
    fn of_heap(&mut self, whole: &Selection<'_>) {
        if whole.capture().allocations.is_empty() {
            return;
        }
        let heap = HeapSums::of(whole);
        let (total, per_step) = (heap.total(), self.basis == Basis::PerStep);
        let rates = [
            ("heap.allocations", "allocations", total.calls, total.step.calls),
            ("heap.temporary", "allocations", total.temporary, total.step.temporary),
            ("heap.allocated", "bytes", total.bytes, total.step.bytes),
        ];
        // Of massif, only live bytes are known.
        for (name, unit, all, in_step) in rates.into_iter().filter(|_| total.calls > 0 || total.peak_bytes == 0) {
            match per_step {
                true => self.add(name, &self.basis.unit(unit), heap.has_steps.then_some(in_step)),
                false => self.add_cost(name, unit, Some(all as f64)),
            }
        }
        self.add("heap.peak", "bytes", Some(total.peak_bytes.max(0) as f64));
        self.add("heap.leaked", "bytes", heap.knows_leaks(&total).then_some(total.live_bytes.max(0) as f64));
    }

    /// Accesses to lines that threads share. They have no times, so all of the recording counts.
    fn of_sharing(&mut self, whole: &Selection<'_>) {
        let accesses = &whole.capture().data_accesses;
        let lines = Line::all(whole);
        let sum = |of: fn(&DataAccess) -> Option<u64>| {
            let in_lines = || lines.iter().filter_map(|line| line.known_sum(of)).sum::<u64>();
            accesses.iter().any(|access| of(access).is_some()).then(|| in_lines() as f64)
        };
        self.add_cost("sharing.hitm", "loads", sum(hitm));
        self.add_cost("sharing.awaited", "samples", sum(|access| access.awaited));
    }

    fn of_memory_errors(&mut self, whole: &Selection<'_>) {
        let errors = has_checker(whole.capture()).then(|| memory_errors::count(whole) as f64);
        self.add("memory_errors", "errors", errors);
    }

    fn of_system_calls(&mut self, inside: &Selection<'_>) {
        if inside.capture().system_calls.is_empty() {
            return;
        }
        let sum = SelectedCalls::of(inside).total();
        self.add_cost("syscalls.count", "calls", Some(sum.count as f64));
        self.add_cost("syscalls.errors", "calls", Some(sum.errors as f64));
        self.add_cost("syscalls.time", "ns", Some(sum.busy_ns as f64));
    }

    /// Rates of the whole recording: counters are read at its end.
    fn of_cache(&mut self, whole: &Selection<'_>) {
        let reading = cache::whole(whole);
        let instructions = reading.instructions().map(|count| count as f64);
        // A simulated run is another one than that of the steps.
        match whole.capture().info.events.iter().any(events::is_simulated) {
            true => self.add("instructions", "instructions", instructions),
            false => self.add_cost("instructions", "instructions", instructions),
        }
        self.add("cache.ipc", "", reading.ipc());
        self.add("cache.mpki", "", reading.mpki());
        self.add("cache.branch_miss_rate", "percent", reading.branch_miss_rate());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};

    fn named(metrics: &[Metric]) -> Vec<(&str, &str, f64)> {
        metrics.iter().map(|metric| (&*metric.name, metric.unit.as_str(), metric.value)).collect()
    }

    fn drawing() -> Drawing {
        Drawing::new()
            .window(0..10_000)
            .process(7, "/usr/bin/gz")
            .lived("main", 0..10_000, 8_000)
            .preempted("main", 1_000..1_500, "main;step")
            .blocked("main", 4_000..5_000, "main;poll")
            .blocked("main", 8_000..8_500, "main;poll")
            .steps("main", 1_000, 1_000, 5, 500)
    }

    #[test]
    fn costs_per_step_are_those_within_steps_divided_by_their_number() {
        let capture = drawing().capture;
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerStep));
        assert_eq!(
            named(&metrics),
            [
                ("rtf", "", 0.5),
                ("step.mean", "ns", 1_000.0),
                ("step.median", "ns", 1_000.0),
                ("step.p99", "ns", 1_000.0),
                ("step.max", "ns", 1_000.0),
                ("wall", "ns", 10_000.0),
                ("cpu", "ns/step", 3_500.0 / 5.0),
                ("cores", "cores", 0.8),
                ("blocked", "ns/step", 1_000.0 / 5.0),
                ("runnable", "ns/step", 500.0 / 5.0),
                ("switches", "switches/step", 2.0 / 5.0),
            ]
        );
    }

    #[test]
    fn allocations_are_those_of_intervals_within_steps_divided_by_the_steps_in_them() {
        let mut capture = drawing().capture;
        // Steps last from 1,000 to 6,000; the first one does not count.
        drawn::allocations(&mut capture, 0..2_500, "main;main;gz::Load;malloc 9000 90000 0 0 7");
        drawn::allocations(&mut capture, 2_500..4_000, "main;main;gz::Step;malloc 30 300 15 0 3");
        drawn::allocations(&mut capture, 4_000..5_000, "main;main;gz::Step;malloc 20 200 10 0 3");
        drawn::allocations(&mut capture, 5_000..9_000, "main;main;gz::Step;malloc 99 990 99 0 3");
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerStep));
        let heap: Vec<_> = named(&metrics).into_iter().filter(|(name, ..)| name.starts_with("heap")).collect();
        assert_eq!(
            heap,
            [
                ("heap.allocations", "allocations/step", 20.0),
                ("heap.temporary", "allocations/step", 10.0),
                ("heap.allocated", "bytes/step", 200.0),
                ("heap.peak", "bytes", 10.0),
                ("heap.leaked", "bytes", 0.0),
            ]
        );
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerSecond));
        assert_eq!(named(&metrics[6..7]), [("heap.allocations", "allocations/s", 9_149.0 / 10e-6)]);
    }

    #[test]
    fn system_calls_are_those_that_end_within_steps_and_waits_are_no_time() {
        let mut capture = drawing().capture;
        for (call, end_ns, count) in [("write", 500, 7), ("write", 1_500, 10), ("futex", 3_000, 5)] {
            drawn::system_calls(&mut capture, end_ns, "main;main;gz::Save;write", call, count);
        }
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerStep));
        let calls: Vec<_> = named(&metrics).into_iter().filter(|(name, ..)| name.starts_with("sysc")).collect();
        assert_eq!(
            calls,
            [
                ("syscalls.count", "calls/step", 3.0),
                ("syscalls.errors", "calls/step", 0.0),
                ("syscalls.time", "ns/step", 20.0)
            ]
        );
    }

    #[test]
    fn without_steps_costs_are_per_second_and_without_a_duration_there_are_none() {
        let capture = drawing().capture;
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerSecond));
        assert_eq!(named(&metrics[1..2]), [("cpu", "ns/s", 8_000.0 / 10e-6)]);
        assert!(metrics.iter().all(|metric| !metric.name.starts_with("step.") && metric.name != "rtf"));
        let folded = drawn::folded("main;a 1");
        let metrics = drawn::selected(&folded, &[], |selection| {
            assert_eq!(Basis::of(selection), Basis::Share);
            of(selection, Basis::Share)
        });
        assert_eq!(metrics, []);
    }

    #[test]
    fn properties_unknown_on_one_side_are_not_compared() {
        let (with, without) = (drawing().capture, Drawing::new().window(0..100).capture);
        drawn::selected(&with, &[], |with| {
            drawn::selected(&without, &[], |without| {
                assert_eq!((Basis::of(with), Basis::of(without)), (Basis::PerStep, Basis::PerSecond));
                assert_eq!(Basis::common([with, without]), Basis::PerSecond);
            });
        });
    }

    fn latencies(values: Vec<f64>) -> OwnMetric {
        OwnMetric { name: "latency".into(), unit: "ns".into(), better: Better::Lower, values }
    }

    #[test]
    fn own_metrics_come_first_and_their_percentiles_are_values_that_occurred() {
        let mut capture = drawing().capture;
        capture.info.own_metrics = vec![latencies((1..=200).rev().map(f64::from).collect())];
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerStep));
        assert_eq!(
            named(&metrics[..4]),
            [
                ("metric.latency.mean", "ns", 100.5),
                ("metric.latency.median", "ns", 100.0),
                ("metric.latency.p95", "ns", 190.0),
                ("metric.latency.p99", "ns", 198.0),
            ]
        );
    }

    #[test]
    fn an_own_metric_without_finite_values_is_unknown() {
        assert_eq!(of_own(&latencies(vec![f64::NAN, f64::INFINITY])), []);
        assert_eq!(of_own(&latencies(Vec::new())), []);
    }
}

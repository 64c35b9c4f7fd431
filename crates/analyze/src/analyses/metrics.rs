//! The figures of a whole recording that are compared, gated and followed over time, under names that stay.
//!
//! | metric | is |
//! |---|---|
//! | `rtf` | simulated time over wall time |
//! | `step.mean`, `step.median`, `step.p99`, `step.max` | time of a step of the main loop |
//! | `wall` | length of the recording: of a loading phase, the time until ready |
//! | `cpu` | exact CPU time of all threads, else the sampled one; per step |
//! | `cores` | CPU time over wall time |
//! | `blocked`, `runnable` | time that the loop's thread waited, for something and for a processor; per step (without steps, of all threads) |
//! | `rss.peak` | largest resident memory of all processes together |
//! | `faults.minor`, `faults.major` | page faults; per step |
//! | `switches` | context switches; per step |
//! | `io.read`, `io.written` | bytes from and to storage; per step |
//!
//! "Per step" is per second of wall time where no steps are known. What was not recorded is left out: no data is not zero.

use stepscope_model::WaitState;

use crate::analyses::resources;
use crate::analyses::summary::cpu_ns;
use crate::query::basis::Basis;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};
use crate::query::weights::{StackWeights, blocked_ns, runnable_ns};

/// A figure of a whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name, one of [`NAMES`].
    pub name: &'static str,
    /// Its unit: `ns`, `ns/step`, `bytes`, `faults/s`, `cores`, ...; empty for ratios.
    pub unit: String,
    /// The figure.
    pub value: f64,
}

/// Which way a figure should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl Better {
    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }
}

/// Every metric, in the order of tables.
pub const NAMES: [&str; 16] = [
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
    "rss.peak",
    "faults.minor",
    "faults.major",
    "switches",
    "io.read",
    "io.written",
];

/// Which way the metric of this name should go: costs should fall, and only the real-time factor should rise.
pub fn better(name: &str) -> Better {
    if name == "rtf" { Better::Higher } else { Better::Lower }
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
    found.add("rss.peak", "bytes", resources::peak_rss_together(selection).map(|bytes| bytes as f64));
    found.of_totals(inside);
    found.metrics.sort_by_key(|metric| NAMES.iter().position(|name| *name == metric.name));
    found.metrics
}

/// What a cost of the whole recording is divided by.
fn divisor(basis: Basis, steps: Option<&Steps>, wall_ns: Option<u64>) -> Option<f64> {
    match basis {
        Basis::PerStep => Some(steps?.count() as f64),
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
            self.metrics.push(Metric { name, unit: unit.to_owned(), value });
        }
    }

    /// A cost, by step or second.
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
        let exact = cpu_ns(inside).map(|ns| ns as f64);
        let sampled = || {
            let in_ns = inside.event().is_some_and(|event| event.unit == "ns");
            in_ns.then(|| StackWeights::of_samples(inside).total().weight as f64)
        };
        self.add_cost("cpu", "ns", exact.or_else(sampled));
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

    fn of_totals(&mut self, inside: &Selection<'_>) {
        let totals: [(&str, &str, &[&str]); 4] = [
            ("faults.minor", "faults", &["minor_faults"]),
            ("faults.major", "faults", &["major_faults"]),
            ("io.read", "bytes", &["io_read_bytes"]),
            ("io.written", "bytes", &["io_write_bytes"]),
        ];
        for (name, unit, quantities) in totals {
            let changes = quantities.iter().filter_map(|quantity| resources::change_together(inside, quantity));
            let sum = changes.reduce(i64::saturating_add);
            let name = NAMES.iter().find(|known| **known == name).expect("every total is a metric");
            self.add_cost(name, unit, sum.map(|sum| sum as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};

    fn named(metrics: &[Metric]) -> Vec<(&str, &str, f64)> {
        metrics.iter().map(|metric| (metric.name, metric.unit.as_str(), metric.value)).collect()
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
    fn what_belongs_to_steps_is_of_their_time_and_divided_by_their_number() {
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
    fn without_steps_costs_are_per_second_and_without_a_duration_there_are_none() {
        let capture = drawing().capture;
        let metrics = drawn::selected(&capture, &[], |selection| of(selection, Basis::PerSecond));
        assert_eq!(metrics[1], Metric { name: "cpu", unit: "ns/s".to_owned(), value: 8_000.0 / 10e-6 });
        assert!(metrics.iter().all(|metric| !metric.name.starts_with("step.") && metric.name != "rtf"));
        let folded = drawn::folded("main;a 1");
        let metrics = drawn::selected(&folded, &[], |selection| {
            assert_eq!(Basis::of(selection), Basis::Share);
            of(selection, Basis::Share)
        });
        assert_eq!(metrics, []);
    }

    #[test]
    fn what_one_does_not_know_is_not_compared() {
        let (with, without) = (drawing().capture, Drawing::new().window(0..100).capture);
        drawn::selected(&with, &[], |with| {
            drawn::selected(&without, &[], |without| {
                assert_eq!((Basis::of(with), Basis::of(without)), (Basis::PerStep, Basis::PerSecond));
                assert_eq!(Basis::common([with, without]), Basis::PerSecond);
            });
        });
    }
}

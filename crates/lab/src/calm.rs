//! The background load: waits for a low one before a trial, and sums up that of its captures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stepscope_assemble::MachineReading;
use stepscope_model::{CaptureInfo, Machine};
use stepscope_record::conditions::read_machine;
use stepscope_record::machine;

use crate::conditions::{Before, CALM_PERCENT, During};
use crate::event::{Event, Listener};

/// Length of a measurement.
const LOOK: Duration = Duration::from_millis(200);

/// Waits for a low background load before each trial.
#[derive(Debug, Clone)]
pub struct Calm {
    patience: Duration,
    accepted_percent: f64,
}

impl Calm {
    /// Waits at most `patience` before each trial.
    pub fn new(patience: Duration) -> Self {
        Self { patience, accepted_percent: CALM_PERCENT }
    }

    /// Waits while the background load is high. If it stays high, it is accepted for later trials, because more waiting
    /// would not help.
    pub fn before(&mut self, interrupt: &AtomicBool, listener: &mut dyn Listener) -> Before {
        let start = Instant::now();
        let mut waited = Duration::ZERO;
        let mut least = f64::INFINITY;
        let (reading, others_percent) = loop {
            let (reading, others) = look();
            least = least.min(others.unwrap_or(0.0));
            let calm = others.is_none_or(|others| others <= self.accepted_percent);
            if calm || interrupt.load(Ordering::Relaxed) {
                break (reading, others);
            }
            waited = start.elapsed();
            if waited >= self.patience {
                if !self.patience.is_zero() {
                    self.accepted_percent = self.accepted_percent.max(1.25 * least);
                }
                break (reading, others);
            }
            let others_percent = others.unwrap_or(0.0);
            listener.notify(&Event::Waiting { others_percent, waited, limit: self.patience });
        };
        let Machine { load_milli, .. } = machine::describe();
        Before {
            load_milli,
            others_percent: others_percent.map(rounded),
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            temperature_mc: reading.temperature_mc,
            governor: reading.governor,
        }
    }
}

/// The state of the machine, and its background load during a short measurement.
fn look() -> (MachineReading, Option<f64>) {
    let (first, start) = (read_machine(), Instant::now());
    std::thread::sleep(LOOK);
    let now = read_machine();
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    let capacity_ns = start.elapsed().as_nanos() as f64 * cpus as f64;
    let others = now.busy_of_others_since(&first).map(|ns| 100.0 * ns as f64 / capacity_ns);
    (now, others)
}

/// Sums over the captures of one trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DuringSum {
    captures: u32,
    capacity_ns: f64,
    others: Sum,
    stolen: Sum,
}

/// A sum over a number of captures.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: f64,
    captures: u32,
}

impl Sum {
    fn add(&mut self, ns: Option<u64>) {
        if let Some(ns) = ns {
            self.ns += ns as f64;
            self.captures += 1;
        }
    }
}

impl DuringSum {
    pub(crate) fn add(&mut self, info: &CaptureInfo) {
        let cores = info.machine.as_ref().map_or(0, |machine| machine.cores);
        self.captures += 1;
        self.capacity_ns += info.wall_ns().unwrap_or(0) as f64 * f64::from(cores);
        let conditions = info.conditions.as_ref();
        self.others.add(conditions.and_then(|conditions| conditions.others_cpu_ns));
        self.stolen.add(conditions.and_then(|conditions| conditions.stolen_ns));
    }

    pub(crate) fn percent(&self) -> During {
        let percent = |sum: Sum| {
            let known = sum.captures == self.captures && self.capacity_ns > 0.0;
            known.then(|| rounded(100.0 * sum.ns / self.capacity_ns))
        };
        During { others_percent: percent(self.others), stolen_percent: percent(self.stolen) }
    }
}

/// Rounded to hundredths.
fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use stepscope_model::Conditions;

    use super::*;

    #[test]
    fn without_patience_the_machine_is_looked_at_once() {
        let mut never = |_: &Event<'_>| panic!("it does not wait");
        let before = Calm::new(Duration::ZERO).before(&AtomicBool::new(false), &mut never);
        assert!(before.others_percent.is_some_and(|percent| (0.0..=150.0).contains(&percent)), "{before:?}");
    }

    #[test]
    fn the_share_of_others_is_over_all_phases_and_known_only_if_it_is_of_each() {
        let info = |wall, others, stolen| CaptureInfo {
            start_ns: Some(0),
            end_ns: Some(wall),
            machine: Some(Machine { cores: 2, ..Machine::default() }),
            conditions: Some(Conditions { others_cpu_ns: others, stolen_ns: stolen, ..Conditions::default() }),
            ..CaptureInfo::default()
        };
        let mut sum = DuringSum::default();
        assert_eq!(sum.percent(), During::default());
        sum.add(&info(1_000, Some(100), Some(0)));
        sum.add(&info(9_000, Some(900), None));
        assert_eq!(sum.percent(), During { others_percent: Some(5.0), stolen_percent: None });
    }
}

//! What else goes on on the machine: before a trial, during it, and whether that spoils it.
//!
//! # Which trials are disturbed
//!
//! Other work on the machine slows a program without being in it, so a trial during which others did much more than usual
//! says little. Leaving out trials can make any difference out of nothing, though, if what is left out depends on what
//! was measured. So the criterion looks **only at the CPU time of others** ([`stepscope_model::Conditions`]), never at
//! a time, a step or a sample of the program:
//!
//! - The share of others is their CPU time over the capacity of the machine (all processors for the length of the
//!   recording), in percent.
//! - A trial is disturbed if that share is more than 10 points above the median of the trials of the same scenario and
//!   variant, or more than three times the median and 2 points above it.
//!
//! The median is that of the same variant, because a variant may have work done outside of what is recorded (by a
//! driver, a daemon, the kernel): what belongs to it in every trial disturbs none. A machine on which others are
//! always busy disturbs no single trial either; that makes the results less certain, and the intervals tell so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stepscope_model::{CaptureInfo, Machine};
use stepscope_record::conditions::Reading;
use stepscope_record::machine;
use stepscope_stats::median;

/// Others may have so much of the machine, in percent, for it to be calm.
pub const CALM_PERCENT: f64 = 5.0;

/// How long the machine is watched at a time.
const LOOK: Duration = Duration::from_millis(200);

/// Points above the median beyond which a trial is disturbed.
const POINTS: f64 = 10.0;

/// The same for a trial that is also beyond [`TIMES`] the median.
const FEW_POINTS: f64 = 2.0;

/// See [`FEW_POINTS`].
const TIMES: f64 = 3.0;

/// The machine just before a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Load average over the last minute, in thousandths.
    pub load_milli: u64,
    /// What others had of all processors at the last look, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// How long the trial waited for the machine to become calm.
    pub waited_ms: u64,
    /// The hottest processor sensor, in thousandths of a degree Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_mc: Option<i64>,
    /// The frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

/// What others had of the machine while a trial was recorded, in percent of its capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct During {
    /// Other processes and the kernel. Absent where it is not known of every phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Other guests of the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_percent: Option<f64>,
}

/// Sums over the captures of one trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DuringSum {
    captures: u32,
    capacity_ns: f64,
    others: Sum,
    stolen: Sum,
}

/// A sum, and of how many captures it is.
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

/// To hundredths, which is more than is known.
fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

/// Waits for the machine to be calm before each trial.
#[derive(Debug, Clone)]
pub struct Calm {
    patience: Duration,
    accepted_percent: f64,
}

impl Calm {
    /// Waits at most `patience` each time.
    pub fn new(patience: Duration) -> Self {
        Self { patience, accepted_percent: CALM_PERCENT }
    }

    /// Looks at the machine, and waits while others use much of it. Where they do not leave it alone for as long as we
    /// wait, what they use is accepted from then on: waiting before every trial would not make them.
    pub fn before(&mut self, interrupt: &AtomicBool, mut waiting: impl FnMut(f64, Duration)) -> Before {
        let begun = Instant::now();
        let mut waited = Duration::ZERO;
        let mut least = f64::INFINITY;
        let (reading, others_percent) = loop {
            let (reading, others) = look();
            least = least.min(others.unwrap_or(0.0));
            let calm = others.is_none_or(|others| others <= self.accepted_percent);
            if calm || interrupt.load(Ordering::Relaxed) {
                break (reading, others);
            }
            waited = begun.elapsed();
            if waited >= self.patience {
                if !self.patience.is_zero() {
                    self.accepted_percent = self.accepted_percent.max(1.25 * least);
                }
                break (reading, others);
            }
            waiting(others.unwrap_or(0.0), waited);
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

/// What others had of the machine in the median of trials, in percent, where that is more than a calm machine has.
pub fn busy_percent<'t>(trials: impl IntoIterator<Item = &'t During>) -> Option<f64> {
    let shares: Vec<f64> = trials.into_iter().filter_map(|during| during.others_percent).collect();
    median(&shares).filter(|share| *share > CALM_PERCENT)
}

/// The machine now, and what others had of it since shortly before.
fn look() -> (Reading, Option<f64>) {
    let (first, begun) = (Reading::now(), Instant::now());
    std::thread::sleep(LOOK);
    let now = Reading::now();
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let capacity_ns = begun.elapsed().as_nanos() as f64 * processors as f64;
    let others = now.busy_of_others_since(&first).map(|ns| 100.0 * ns as f64 / capacity_ns);
    (now, others)
}

/// Of trials of the same scenario and variant, given what others had of the machine in each, why each is disturbed, if
/// it is. Those of which it is not known are not.
pub fn disturbed(others_percent: &[Option<f64>]) -> Vec<Option<String>> {
    let mut known: Vec<f64> = others_percent.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let Some(&median) = known.get(known.len().saturating_sub(1) / 2) else { return vec![None; others_percent.len()] };
    let why = |share: &Option<f64>| {
        let share = (*share)?;
        let beyond = share > median + POINTS || (share > TIMES * median && share > median + FEW_POINTS);
        beyond.then(|| {
            format!("others had {share:.1} % of the processors, where {median:.1} % is the median of such trials")
        })
    };
    others_percent.iter().map(why).collect()
}

#[cfg(test)]
mod tests {
    use stepscope_model::Conditions;

    use super::*;

    fn marked(shares: &[f64]) -> Vec<usize> {
        let shares: Vec<Option<f64>> = shares.iter().copied().map(Some).collect();
        let found = disturbed(&shares);
        found.iter().enumerate().filter(|(_, why)| why.is_some()).map(|(index, _)| index).collect()
    }

    #[test]
    fn a_machine_is_busy_if_others_have_much_of_it_most_of_the_time() {
        let busy = |shares: &[Option<f64>]| {
            let trials: Vec<During> =
                shares.iter().map(|share| During { others_percent: *share, ..During::default() }).collect();
            busy_percent(&trials)
        };
        assert_eq!(busy(&[Some(50.0), Some(48.0), None, Some(0.5)]), Some(48.0));
        assert_eq!(busy(&[Some(1.0), Some(60.0), Some(0.5)]), None);
        assert_eq!(busy(&[None]), None);
    }

    #[test]
    fn a_trial_is_disturbed_by_what_others_did_beyond_the_median_of_its_kind() {
        assert_eq!(marked(&[0.5, 0.6, 11.0, 0.4]), [2]);
        assert_eq!(marked(&[0.1, 0.1, 1.9]), [0_usize; 0], "many times the median, and still nothing");
        assert_eq!(marked(&[1.0, 1.0, 3.5]), [2]);
        assert_eq!(marked(&[40.0, 41.0, 49.0, 52.0]), [3], "what others always do disturbs no trial");
        assert_eq!(marked(&[1.0, 60.0]), [1]);
        assert_eq!(marked(&[60.0]), [0_usize; 0]);
        assert_eq!(marked(&[]), [0_usize; 0]);
        assert_eq!(disturbed(&[None, Some(1.0), Some(30.0)])[0], None);
        let why = disturbed(&[Some(1.0), Some(30.0)])[1].clone().unwrap();
        assert_eq!(why, "others had 30.0 % of the processors, where 1.0 % is the median of such trials");
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

    #[test]
    fn without_patience_the_machine_is_looked_at_once() {
        let before = Calm::new(Duration::ZERO).before(&AtomicBool::new(false), |_, _| panic!("it does not wait"));
        assert!(before.others_percent.is_some_and(|percent| (0.0..=150.0).contains(&percent)), "{before:?}");
    }
}

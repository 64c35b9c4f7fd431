//! The background load before and during a trial, and whether it disturbed the trial.
//!
//! # Disturbed trials
//!
//! Other processes slow the program, so a trial with an unusually high background load is unreliable. But excluding trials by
//! their measurements would bias the comparison. So the criterion uses **only the CPU time of other processes**
//! ([`stepscope_model::Conditions`]), never times, steps or samples of the program:
//!
//! - The background load is the CPU time of other processes over the capacity of the machine (all CPUs for the length of the
//!   recording), in percent.
//! - A trial is disturbed if that share is more than 10 points above the median of the trials of the same scenario and
//!   variant, or more than three times the median and 2 points above it.
//!
//! The median is that of the same variant, because a variant may cause work outside the recorded processes (in a
//! driver, a daemon, the kernel). A constant background load disturbs no trial; it makes the intervals wider.

use serde::{Deserialize, Serialize};
use stepscope_stats::median;

/// Highest background load of a quiet machine, in percent.
pub const CALM_PERCENT: f64 = 5.0;

/// A trial is disturbed beyond this many percentage points above the median.
const POINTS: f64 = 10.0;

/// The same for a trial beyond [`TIMES`] the median.
const FEW_POINTS: f64 = 2.0;

/// See [`FEW_POINTS`].
const TIMES: f64 = 3.0;

/// The machine just before a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Load average over the last minute, in thousandths.
    pub load_milli: u64,
    /// Background load at the last look, in percent of all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// How long the trial waited for a low background load.
    pub waited_ms: u64,
    /// The hottest CPU sensor, in thousandths of a degree Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_mc: Option<i64>,
    /// The frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

/// Background load while a trial was recorded, in percent of the capacity of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct During {
    /// Other processes and the kernel. `None` unless known for every phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Other guests of the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_percent: Option<f64>,
}

/// Median background load of the trials, in percent, if it exceeds that of a quiet machine.
pub fn busy_percent<'t>(trials: impl IntoIterator<Item = &'t During>) -> Option<f64> {
    let shares: Vec<f64> = trials.into_iter().filter_map(|during| during.others_percent).collect();
    median(&shares).filter(|share| *share > CALM_PERCENT)
}

/// For each trial of a scenario and variant, the reason why it is disturbed, if it is. Trials with an unknown background
/// load are not.
pub fn disturbed(others_percent: &[Option<f64>]) -> Vec<Option<String>> {
    let mut known: Vec<f64> = others_percent.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let Some(&median) = known.get(known.len().saturating_sub(1) / 2) else { return vec![None; others_percent.len()] };
    let why = |share: &Option<f64>| {
        let share = (*share)?;
        let beyond = share > median + POINTS || (share > TIMES * median && share > median + FEW_POINTS);
        beyond.then(|| format!("other processes used {share:.1} % of the CPU (typical: {median:.1} %)"))
    };
    others_percent.iter().map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(shares: &[f64]) -> Vec<usize> {
        let shares: Vec<Option<f64>> = shares.iter().copied().map(Some).collect();
        let found = disturbed(&shares);
        found.iter().enumerate().filter(|(_, why)| why.is_some()).map(|(index, _)| index).collect()
    }

    #[test]
    fn a_machine_is_busy_if_the_median_background_load_is_high() {
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
    fn a_trial_is_disturbed_by_background_load_far_above_its_median() {
        assert_eq!(marked(&[0.5, 0.6, 11.0, 0.4]), [2]);
        assert_eq!(marked(&[0.1, 0.1, 1.9]), [0_usize; 0], "many times the median, and still nothing");
        assert_eq!(marked(&[1.0, 1.0, 3.5]), [2]);
        assert_eq!(marked(&[40.0, 41.0, 49.0, 52.0]), [3], "constant background load disturbs no trial");
        assert_eq!(marked(&[1.0, 60.0]), [1]);
        assert_eq!(marked(&[60.0]), [0_usize; 0]);
        assert_eq!(marked(&[]), [0_usize; 0]);
        assert_eq!(disturbed(&[None, Some(1.0), Some(30.0)])[0], None);
        let why = disturbed(&[Some(1.0), Some(30.0)])[1].clone().unwrap();
        assert_eq!(why, "other processes used 30.0 % of the CPU (typical: 1.0 %)");
    }
}

//! [`Strata`]: runs of two sides on several machines, where each machine has runs of both.
//!
//! Machines differ, and their runs scatter with them. Where each machine ran both sides, that part of the scatter says nothing
//! about the change: the machines are *blocks* of the experiment (Fisher, *The Design of Experiments*, 1935).
//!
//! # Model
//! `y_i = m_s + u_k + e_i` for run i of side s on machine k; y is the logarithm of a cost. The effects of machines `u_k` are
//! fitted by least squares, and runs are moved to the mean machine, `m_i exp(-u_k)`, with their blocks of steps. The runs then
//! go through the [hierarchical bootstrap](crate::hierarchical).
//!
//! # Error
//! K machines take K - 1 degrees of freedom. The variance of N runs is larger by `(N - 2) / (N - K - 1)`: their scatter was
//! measured from fitted effects. Where machines have unequal numbers of runs, the variance of the difference is
//! larger by `1 / sum (a_k b_k / (a_k + b_k))` over `1 / A + 1 / B`. Machine k has `a_k` runs of one side and `b_k` of the other;
//! A and B are their sums.
//!
//! # p
//! The [permutation test](Permutations::within) exchanges labels within machines only, of values that do not
//! depend on the labels: logarithms minus the mean of their machine. So it is exact.

use crate::control_variate::Adjusted;
use crate::hierarchical::{Change, HierarchicalBootstrap, Run};
use crate::permutation::Permutations;

/// Fewest degrees of freedom that are left for the scatter.
const LEAST_DEGREES: usize = 2;

/// Steps of the fit, which converges within a few for designs as balanced as ours.
const ITERATIONS: usize = 100;

/// The machine of each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strata {
    before: Vec<usize>,
    after: Vec<usize>,
    count: usize,
}

impl Strata {
    /// The machines of the runs before and after, by name.
    ///
    /// `None` for one machine, for a machine with runs of one side only, and for too few runs.
    pub fn new<T: PartialEq>(before: &[T], after: &[T]) -> Option<Self> {
        let mut known: Vec<&T> = Vec::new();
        let mut number = |name| {
            known.iter().position(|one| *one == name).unwrap_or_else(|| {
                known.push(name);
                known.len() - 1
            })
        };
        let before: Vec<usize> = before.iter().map(&mut number).collect();
        let after: Vec<usize> = after.iter().map(&mut number).collect();
        let count = known.len();
        let complete = (0..count).all(|machine| before.contains(&machine) && after.contains(&machine));
        let enough = before.len() + after.len() > count + LEAST_DEGREES;
        (count > 1 && complete && enough).then_some(Self { before, after, count })
    }

    /// Number of machines.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The splits of the runs that keep the machine of each.
    pub fn permutations(&self, seed: u64) -> Permutations {
        Permutations::within(&self.before, &self.after, seed)
    }

    /// The change of a number on the mean machine, with the test within machines; `None` if a mean is not positive.
    ///
    /// # Panics
    /// As [`HierarchicalBootstrap::change`]; or if the numbers of runs differ from those of the machines.
    pub fn change(
        &self,
        bootstrap: &HierarchicalBootstrap,
        permutations: &Permutations,
        (before, after): (&[Run], &[Run]),
        confidence: f64,
    ) -> Option<Adjusted> {
        let moved = self.on_mean_machine(before, after)?;
        let change = self.with_uncertainty(bootstrap.change(&moved[0], &moved[1], confidence)?, confidence);
        let [values_before, values_after] = self.within_machines(before, after);
        let test = permutations.test(&values_before, &values_after)?;
        let means = moved.map(|runs| runs.iter().map(|run| run.mean).collect());
        Some(Adjusted { change, test, by: None, means })
    }

    /// The runs of both sides as on the mean machine; `None` if a mean is not positive.
    fn on_mean_machine(&self, before: &[Run], after: &[Run]) -> Option<[Vec<Run>; 2]> {
        assert_eq!((before.len(), after.len()), (self.before.len(), self.after.len()), "each run has a machine");
        let is_positive = |run: &Run| run.mean > 0.0 && run.mean.is_finite();
        if !before.iter().chain(after).all(is_positive) {
            return None;
        }
        let effects = self.effects(before, after);
        let moved = |runs: &[Run], machines: &[usize]| -> Vec<Run> {
            let at_mean = |(run, machine): (&Run, &usize)| {
                let factor = (-effects[*machine]).exp();
                Run { mean: run.mean * factor, residuals: run.residuals.iter().map(|one| one * factor).collect() }
            };
            runs.iter().zip(machines).map(at_mean).collect()
        };
        Some([moved(before, &self.before), moved(after, &self.after)])
    }

    /// Each run's logarithm minus the mean of its machine, for the permutation test.
    fn within_machines(&self, before: &[Run], after: &[Run]) -> [Vec<f64>; 2] {
        assert_eq!((before.len(), after.len()), (self.before.len(), self.after.len()), "each run has a machine");
        let machines = || self.before.iter().chain(&self.after);
        let (mut sums, mut counts) = (vec![0.0; self.count], vec![0.0; self.count]);
        for (run, machine) in before.iter().chain(after).zip(machines()) {
            sums[*machine] += run.mean.ln();
            counts[*machine] += 1.0;
        }
        let of = |(run, machine): (&Run, &usize)| run.mean.ln() - sums[*machine] / counts[*machine];
        [before.iter().zip(&self.before).map(of).collect(), after.iter().zip(&self.after).map(of).collect()]
    }

    /// The change between moved runs, with the uncertainty of the fit.
    fn with_uncertainty(&self, change: Change, confidence: f64) -> Change {
        let runs = (self.before.len() + self.after.len()) as f64;
        let fitted = (self.count - 1) as f64;
        let of_scatter = (runs - 2.0) / (runs - 2.0 - fitted);
        change.with_fitted(of_scatter * self.imbalance(), fitted, confidence)
    }

    /// The effects of the machines; their mean over all runs is 0.
    fn effects(&self, before: &[Run], after: &[Run]) -> Vec<f64> {
        let logs = |runs: &[Run]| runs.iter().map(|run| run.mean.ln()).collect::<Vec<f64>>();
        let sides = [(logs(before), &self.before), (logs(after), &self.after)];
        let mut effects = vec![0.0; self.count];
        for _ in 0..ITERATIONS {
            let (mut sums, mut counts) = (vec![0.0; self.count], vec![0.0; self.count]);
            for (logs, machines) in &sides {
                let rests = logs.iter().zip(*machines).map(|(log, machine)| log - effects[*machine]);
                let level = rests.sum::<f64>() / logs.len() as f64;
                for (log, machine) in logs.iter().zip(*machines) {
                    sums[*machine] += log - level;
                    counts[*machine] += 1.0;
                }
            }
            let next: Vec<f64> = sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect();
            let moved = next.iter().zip(&effects).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
            effects = next;
            if moved < 1e-12 {
                break;
            }
        }
        let all = self.before.iter().chain(&self.after);
        let mean = all.map(|machine| effects[*machine]).sum::<f64>() / (before.len() + after.len()) as f64;
        effects.iter().map(|effect| effect - mean).collect()
    }

    /// Variance of the difference of the sides, over that of as many runs on one machine.
    fn imbalance(&self) -> f64 {
        let of = |machines: &[usize], machine: usize| machines.iter().filter(|one| **one == machine).count() as f64;
        let information = |machine| {
            let (before, after) = (of(&self.before, machine), of(&self.after, machine));
            before * after / (before + after)
        };
        let all = 1.0 / self.before.len() as f64 + 1.0 / self.after.len() as f64;
        1.0 / (0..self.count).map(information).sum::<f64>() / all
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::random::SplitMix64;

    fn runs(means: &[f64]) -> Vec<Run> {
        means.iter().map(|mean| Run { mean: *mean, residuals: vec![-0.1 * mean, 0.1 * mean] }).collect()
    }

    #[test]
    fn machines_with_one_side_and_too_few_runs_are_no_strata() {
        assert_eq!(Strata::new(&["a", "a"], &["a", "a"]), None);
        assert_eq!(Strata::new(&["a", "b", "b"], &["a", "a", "a"]), None);
        assert_eq!(Strata::new(&["a", "b"], &["b", "a"]), None, "1 degree of freedom");
        assert_eq!(Strata::new(&["a", "b", "c"], &["b", "a", "c"]).unwrap().count(), 3);
    }

    /// Machine b takes three times as long as a; the change is 10 %.
    #[test]
    fn the_effects_of_machines_are_taken_out() {
        let strata = Strata::new(&["a", "b", "a", "b"], &["a", "b", "a", "b"]).unwrap();
        let [before, after] =
            strata.on_mean_machine(&runs(&[1.0, 3.0, 1.0, 3.0]), &runs(&[1.1, 3.3, 1.1, 3.3])).unwrap();
        for (run, expected) in
            before.iter().chain(&after).zip([3.0_f64.sqrt(); 4].into_iter().chain([1.1 * 3.0_f64.sqrt(); 4]))
        {
            assert!((run.mean - expected).abs() < 1e-9, "{run:?}");
            assert!((run.residuals[1] - 0.1 * expected).abs() < 1e-9);
        }
        assert_eq!(strata.on_mean_machine(&runs(&[0.0, 3.0, 1.0, 3.0]), &runs(&[1.0; 4])), None);
    }

    #[test]
    fn unequal_numbers_of_runs_do_not_bias_the_change() {
        let strata = Strata::new(&["a", "b", "b", "b"], &["a", "a", "a", "b"]).unwrap();
        let [before, after] =
            strata.on_mean_machine(&runs(&[1.0, 3.0, 3.0, 3.0]), &runs(&[1.1, 1.1, 1.1, 3.3])).unwrap();
        let mean = |runs: &[Run]| runs.iter().map(|run| run.mean.ln()).sum::<f64>() / 4.0;
        assert!((mean(&after) - mean(&before) - 1.1_f64.ln()).abs() < 1e-9);
        // 2 machines of 3/4 each, over 1/2.
        assert!((strata.imbalance() - 4.0 / 3.0).abs() < 1e-9);
    }

    struct Draw(SplitMix64);

    impl Draw {
        fn normal(&mut self) -> f64 {
            let uniform = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            Normal::standard().inverse_cdf(uniform.max(1e-300))
        }
    }

    /// 1,000 comparisons have a standard error of 0.7 %. Machines differ ten times as much as the runs of one.
    #[test]
    fn intervals_hold_the_truth_a_a_is_silent_and_intervals_are_narrow() {
        let designs: [(&[usize], &[usize]); 3] = [
            (&[0, 0, 0, 1, 1, 1], &[0, 0, 0, 1, 1, 1]),
            (&[0, 1, 2, 3, 0, 1, 2, 3], &[0, 1, 2, 3, 0, 1, 2, 3]),
            (&[0, 0, 0, 0, 1, 1], &[0, 0, 1, 1, 1, 1]),
        ];
        for (before, after) in designs {
            let strata = Strata::new(before, after).unwrap();
            let permutations = strata.permutations(1);
            let bootstrap = HierarchicalBootstrap::new(&vec![0; before.len()], &vec![0; after.len()], 300, 1);
            let mut random = Draw(SplitMix64::new(5));
            let (mut held, mut significant, mut wide) = (0, 0, 0.0);
            for _ in 0..1_000 {
                let machines: Vec<f64> = (0..strata.count()).map(|_| 0.3 * random.normal()).collect();
                let mut side = |of: &[usize]| -> Vec<Run> {
                    let log = |machine: &usize| machines[*machine] + 0.03 * random.normal();
                    of.iter().map(log).map(|log| Run { mean: log.exp(), residuals: Vec::new() }).collect()
                };
                let (first, second) = (side(before), side(after));
                let sides = (&first[..], &second[..]);
                let Adjusted { change, test, .. } = strata.change(&bootstrap, &permutations, sides, 0.95).unwrap();
                significant += u32::from(test.p <= 0.05);
                let ratio = change.ratio.unwrap();
                held += u32::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
                wide += (ratio.high / ratio.low).ln() / 1_000.0;
            }
            assert!((930..=985).contains(&held), "{before:?} {after:?}: {held}");
            assert!(significant <= 65, "{before:?} {after:?}: {significant}");
            assert!(wide < 0.13, "{before:?} {after:?}: {wide}");
        }
    }
}

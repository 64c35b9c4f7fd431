//! The verdict on one number: how well its change is known, and what may be said of it.

use std::collections::HashMap;

use stepscope_model::Verdict;
use stepscope_model::quantity;
use stepscope_stats::counts::{self, Count};
use stepscope_stats::hierarchical::{Change, HierarchicalBootstrap, Run};
use stepscope_stats::multiple::benjamini_hochberg;
use stepscope_stats::permutation::{self, Permutations};
use stepscope_stats::power::Goal;
use stepscope_stats::{Estimate, student};

use super::rows::blocks_of;
use super::{Options, Side};
use crate::query::basis::Basis;

/// What the intervals of a comparison know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noise {
    /// How runs differ, and steps within them.
    Runs,
    /// Sampling alone: what the next run would show is not in it.
    Sampling,
    /// Nothing: why nothing is tested.
    Unknown(String),
}

impl Noise {
    fn of(before: &Side, after: &Side) -> Self {
        let all = || before.runs.iter().chain(&after.runs);
        if all().any(|run| run.basis == Basis::Share) {
            // Said with the basis.
            let counted = all().all(|run| run.counts_known);
            let weights = "The weights are sums of periods, not numbers of samples, so no test of significance is possible: shares alone are shown.";
            let shares = "Shares are not tested.";
            return Noise::Unknown(if counted { shares } else { weights }.to_owned());
        }
        if before.runs.len() > 1 && after.runs.len() > 1 {
            return Noise::Runs;
        }
        if all().all(|run| run.counts_known) {
            return Noise::Sampling;
        }
        Noise::Unknown("The weights are sums of periods, not numbers of samples, so one run a side cannot be tested: record several of each.".to_owned())
    }

    /// What a reader must know of it.
    pub(super) fn notes(&self, runs: (usize, usize), options: &Options) -> Vec<String> {
        let least = permutation::least_runs(options.alpha).unwrap_or(usize::MAX);
        match self {
            Noise::Unknown(reason) => vec![reason.clone()],
            Noise::Sampling => vec![
                "Sampling noise only: one run a side does not tell how runs differ, which is often more. `stepscope ab` makes and compares several.".to_owned(),
            ],
            Noise::Runs if runs.0.min(runs.1) < least => vec![format!(
                "With {} before and {} after, an exact permutation test cannot reach p = {}, so nothing is called changed. {least} runs per side can; 8 are better.",
                quantity::plural(runs.0, "run"),
                quantity::plural(runs.1, "run"),
                options.alpha,
            )],
            Noise::Runs => Vec::new(),
        }
    }
}

/// Numbers of samples behind a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) before: u64,
    pub(super) after: u64,
    /// Whether they are samples, and not all that there was.
    pub(super) sampled: bool,
}

/// A number on both sides, and what is said of its change.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// After less before; ends are infinite where its noise is not known.
    pub difference: Estimate,
    /// After over before; `None` unless both are more than nothing.
    pub ratio: Option<Estimate>,
    /// Probability of a difference as large or larger if nothing had changed; `None` where that cannot be tested.
    pub p: Option<f64>,
    /// The same, corrected for the number of rows; `None` of rows that are not tested.
    pub q: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
    /// Where it cannot be told: how many more runs a side would tell.
    pub more_runs: Option<u64>,
    /// The smallest change, in percent, that would be seen in four of five cases.
    pub detectable_percent: Option<f64>,
    /// Numbers of samples before and after, where they are known.
    pub counts: Option<(u64, u64)>,
    tested: bool,
    /// How well it is known, until it is decided on.
    change: Option<Change>,
}

impl Judged {
    /// What would have been seen, and how many more runs would tell.
    fn look_ahead(&mut self, change: &Change, options: &Options) {
        let goal = goal(options);
        let detectable = |error| (goal.detectable_ratio(error, change.degrees_of_freedom) - 1.0) * 100.0;
        self.detectable_percent = change.log_ratio_standard_error.map(detectable);
        if self.verdict == Verdict::Inconclusive {
            let have = change.spread_before.runs.min(change.spread_after.runs);
            self.more_runs = goal.runs_needed(change).map(|runs| runs.saturating_sub(have).max(1) as u64);
        }
    }

    /// Whether it changed.
    pub fn is_changed(&self) -> bool {
        self.verdict == Verdict::Changed
    }
}

/// What judges the numbers of two sides: resamples and splits are drawn once, so that rows are comparable.
pub(super) struct Judge {
    noise: Noise,
    bootstrap: HierarchicalBootstrap,
    /// The same variances, without resamples.
    unresampled: HierarchicalBootstrap,
    permutations: Permutations,
    exposures: (f64, f64),
    options: Options,
}

impl Judge {
    pub(super) fn new(before: &Side, after: &Side, options: &Options) -> Self {
        let exposure = |side: &Side| side.runs.iter().map(|run| run.whole_exposure()).sum::<f64>();
        let mut judge = Self::of_shape(&blocks_of(before), &blocks_of(after), options);
        judge.noise = Noise::of(before, after);
        judge.exposures = (exposure(before), exposure(after));
        judge
    }

    /// Of sides with these numbers of blocks in their runs, as [`HierarchicalBootstrap::new`] takes them.
    pub(super) fn of_shape(before: &[usize], after: &[usize], options: &Options) -> Self {
        let several = before.len() > 1 && after.len() > 1;
        Self {
            noise: if several { Noise::Runs } else { Noise::Sampling },
            bootstrap: HierarchicalBootstrap::new(before, after, options.replicates, options.seed),
            unresampled: HierarchicalBootstrap::new(before, after, 0, options.seed),
            permutations: Permutations::new(before.len(), after.len(), options.seed),
            exposures: (0.0, 0.0),
            options: options.clone(),
        }
    }

    /// Of paths: numbers of runs, and exposures of either side. They are not resampled: there are thousands of them.
    pub(super) fn of_paths(runs: (usize, usize), exposures: (f64, f64), noise: Noise, options: &Options) -> Self {
        let options = Options { replicates: 0, ..options.clone() };
        Self { noise, exposures, ..Self::of_shape(&vec![0; runs.0], &vec![0; runs.1], &options) }
    }

    /// As [`row`](Self::row), of a path.
    pub(super) fn path(&self, before: &[Run], after: &[Run], counted: Counted) -> Judged {
        if self.noise != Noise::Runs {
            return self.row(before, after, Some(counted));
        }
        let Some(change) = self.roughly(before, after) else { return untested(before, after, Some(counted)) };
        let few = permutation::least_runs(self.options.alpha).is_none_or(|least| before.len().min(after.len()) < least);
        Judged {
            difference: change.difference,
            ratio: change.ratio,
            // As of every row, so few runs never tell a change.
            p: Some(if few { 1.0 } else { change.p }),
            tested: self.is_enough(counted),
            ..untested(before, after, Some(counted))
        }
    }

    pub(super) fn noise(&self) -> &Noise {
        &self.noise
    }

    /// A number of every run of both sides, with the number of samples behind it where it comes from samples.
    pub(super) fn row(&self, before: &[Run], after: &[Run], counted: Option<Counted>) -> Judged {
        match &self.noise {
            Noise::Runs => self.by_runs(before, after, counted),
            Noise::Sampling => match counted.filter(|counted| counted.sampled) {
                Some(counted) => self.by_counts(before, after, counted),
                None => untested(before, after, counted),
            },
            Noise::Unknown(_) => untested(before, after, counted),
        }
    }

    fn by_runs(&self, before: &[Run], after: &[Run], counted: Option<Counted>) -> Judged {
        let enough = counted.is_none_or(|counted| self.is_enough(counted));
        // There are many rows with few samples, and a rough interval does for what is not tested.
        let change = match enough {
            true => self.bootstrap.change(before, after, self.options.confidence),
            false => self.roughly(before, after),
        };
        let Some(change) = change else { return untested(before, after, counted) };
        Judged {
            p: if enough { self.p_of(before, after, &change) } else { Some(change.p) },
            before: change.before,
            after: change.after,
            difference: change.difference,
            ratio: change.ratio,
            tested: enough,
            change: Some(change),
            ..untested(before, after, counted)
        }
    }

    /// The change with intervals of Student's t, which take no resamples.
    fn roughly(&self, before: &[Run], after: &[Run]) -> Option<Change> {
        let confidence = self.options.confidence;
        Some(with_normal_intervals(self.unresampled.change(before, after, confidence)?, confidence))
    }

    /// The permutation test's p. Where no other split is as extreme, it has said all that it can, and the tail of
    /// Student's t goes on; but not where so few runs that it can never say anything are all there is.
    fn p_of(&self, before: &[Run], after: &[Run], change: &Change) -> Option<f64> {
        let means = |runs: &[Run]| runs.iter().map(|run| run.mean).collect::<Vec<f64>>();
        let test = self.permutations.test(&means(before), &means(after))?;
        let goes_on = test.at_floor && test.floor < self.options.alpha;
        Some(if goes_on { test.p.min(change.p) } else { test.p })
    }

    fn by_counts(&self, before: &[Run], after: &[Run], counted: Counted) -> Judged {
        let confidence = self.options.confidence;
        let of = |samples, exposure| Count { samples, exposure };
        let [old, new] = [of(counted.before, self.exposures.0), of(counted.after, self.exposures.1)];
        let mut judged = untested(before, after, Some(counted));
        let Some(change) = counts::rate_change(old, new, confidence) else { return judged };
        // Samples may stand for weights of different sizes: then the numbers say how well the weights are known.
        let weight = self.weight_of_a_sample(&judged, counted);
        let scaled = |estimate: Estimate, value: f64, factor: f64| Estimate { value, ..estimate.times(factor) };
        judged.difference = scaled(change.difference, judged.after - judged.before, weight);
        judged.ratio = change.ratio.filter(|_| judged.before > 0.0 && judged.after > 0.0).map(|ratio| {
            let value = judged.after / judged.before;
            let factor = if ratio.value > 0.0 { value / ratio.value } else { 1.0 };
            scaled(ratio, value, factor)
        });
        judged.p = Some(change.p);
        judged.tested = self.is_enough(counted);
        let goal = goal(&self.options);
        if let Some(ratio) = judged.ratio.filter(|_| counted.before.min(counted.after) > 0) {
            let times = goal.sample_factor(counted.before, counted.after, ratio.value);
            judged.more_runs = times.map(|times| ((times - 1.0).ceil() as u64).max(1));
            let error = (1.0 / counted.before as f64 + 1.0 / counted.after as f64).sqrt();
            judged.detectable_percent = Some((goal.detectable_ratio(error, f64::INFINITY) - 1.0) * 100.0);
        }
        judged
    }

    fn weight_of_a_sample(&self, judged: &Judged, counted: Counted) -> f64 {
        let weight = judged.before * self.exposures.0 + judged.after * self.exposures.1;
        let samples = counted.before + counted.after;
        if samples > 0 { weight / samples as f64 } else { 0.0 }
    }

    fn is_enough(&self, counted: Counted) -> bool {
        counted.before.saturating_add(counted.after) >= self.options.least_count
    }
}

fn goal(options: &Options) -> Goal {
    Goal { alpha: options.alpha, tolerance: options.tolerance, ..Goal::default() }
}

/// The change with intervals of Student's t in place of resampled ones.
fn with_normal_intervals(mut change: Change, confidence: f64) -> Change {
    let quantile = student::quantile(f64::midpoint(1.0, confidence), change.degrees_of_freedom);
    let half = quantile * change.standard_error;
    change.difference.low = change.difference.value - half;
    change.difference.high = change.difference.value + half;
    if let Some((ratio, error)) = change.ratio.as_mut().zip(change.log_ratio_standard_error) {
        let factor = (quantile * error).exp();
        (ratio.low, ratio.high) = (ratio.value / factor, ratio.value * factor);
    }
    change
}

/// A row of which only the values are known.
fn untested(before: &[Run], after: &[Run], counted: Option<Counted>) -> Judged {
    let mean = |runs: &[Run]| runs.iter().map(|run| run.mean).sum::<f64>() / runs.len().max(1) as f64;
    let (old, new) = (mean(before), mean(after));
    let unknown = |value, low| Estimate { value, low, high: f64::INFINITY };
    Judged {
        before: old,
        after: new,
        difference: unknown(new - old, f64::NEG_INFINITY),
        ratio: (old > 0.0 && new > 0.0).then(|| unknown(new / old, f64::NEG_INFINITY)),
        p: None,
        q: None,
        verdict: Verdict::Inconclusive,
        more_runs: None,
        detectable_percent: None,
        counts: counted.map(|counted| (counted.before, counted.after)),
        tested: false,
        change: None,
    }
}

/// Corrects the rows of one family for their number, and decides on each.
pub(super) fn decide<'a>(rows: impl Iterator<Item = &'a mut Judged>, options: &Options) {
    let mut rows: Vec<&mut Judged> = rows.collect();
    let tested: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].tested && rows[*row].p.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|row| rows[*row].p).collect();
    let q: HashMap<usize, f64> = tested.into_iter().zip(benjamini_hochberg(&p)).collect();
    for (index, row) in rows.iter_mut().enumerate() {
        row.q = q.get(&index).copied();
        row.verdict = verdict(row, options);
        if let Some(change) = row.change.take().filter(|_| row.tested) {
            row.look_ahead(&change, options);
        }
        if row.verdict != Verdict::Inconclusive {
            row.more_runs = None;
        }
    }
}

fn verdict(row: &Judged, options: &Options) -> Verdict {
    let within =
        |ratio: Estimate| ratio.low >= 1.0 / (1.0 + options.tolerance) && ratio.high <= 1.0 + options.tolerance;
    // What never happens, before and after: there is no ratio, and nothing to be unsure of.
    let nothing = row.before == 0.0 && row.after == 0.0 && row.difference.low == 0.0 && row.difference.high == 0.0;
    match row.q {
        Some(_) if nothing => Verdict::Equivalent,
        Some(q) if q <= options.alpha && row.difference.excludes_zero() => Verdict::Changed,
        Some(_) if row.ratio.is_some_and(within) => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    }
}

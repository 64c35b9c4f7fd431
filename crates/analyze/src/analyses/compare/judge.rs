//! The assessment of one number: the estimate of its change, its interval, p and verdict.

use std::collections::HashMap;

use stepscope_model::{Note, NoteValue, Verdict, note};
use stepscope_stats::control_variate::{self, Adjustment, Covariate, adjusted_change};
use stepscope_stats::counts::{self, Count};
use stepscope_stats::covariance::Direction;
use stepscope_stats::hierarchical::{Change, HierarchicalBootstrap, Run};
use stepscope_stats::multiple::benjamini_hochberg;
use stepscope_stats::permutation::{self, PermutationTest, Permutations};
use stepscope_stats::power::Goal;
use stepscope_stats::strata::Strata;
use stepscope_stats::{Estimate, Levels, student, two_levels_of_runs};

use super::machines;
use super::options::Options;
use super::side::Side;
use super::speed;
use crate::query::basis::Basis;

/// The noise that the intervals of a comparison account for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noise {
    /// Differences between runs, and between the steps of a run.
    Runs,
    /// Sampling noise alone; differences between runs are unknown.
    Sampling,
    /// None, so nothing is tested.
    Unknown(Untested),
}

/// Why rows are not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untested {
    /// Only shares are known.
    Shares,
    /// Only shares of weights are known, and the weights are sums of periods.
    SharesOfPeriods,
    /// The weights are sums of periods, and a side has one run.
    Periods,
    /// The costs of a build are exact, and a side has one build.
    Builds,
    /// Waits are not sampled, and a side has one run.
    Waits,
}

impl Noise {
    fn of(before: &Side, after: &Side) -> Self {
        let all = || before.runs.iter().chain(&after.runs);
        let counted = all().all(|run| run.counts_known);
        if all().any(|run| run.basis == Basis::Share) {
            return Noise::Unknown(if counted { Untested::Shares } else { Untested::SharesOfPeriods });
        }
        if before.runs.len() > 1 && after.runs.len() > 1 {
            return Noise::Runs;
        }
        if all().all(|run| run.basis == Basis::PerBuild) {
            return Noise::Unknown(Untested::Builds);
        }
        if counted { Noise::Sampling } else { Noise::Unknown(Untested::Periods) }
    }

    /// What a reader must know about it.
    pub(super) fn note(&self, (before, after): (usize, usize), options: &Options) -> Option<Note> {
        let least = permutation::least_runs(options.alpha).unwrap_or(usize::MAX);
        Some(match self {
            Noise::Unknown(Untested::Shares) => note!(Limit, "Shares are not tested."),
            Noise::Unknown(Untested::SharesOfPeriods) => note!(
                Limit,
                "Weights are sums of periods, not counts of samples, so no test of significance is possible. Only shares are \
                 shown."
            ),
            Noise::Unknown(Untested::Periods) => note!(
                Limit,
                "Weights are sums of periods, not counts of samples, so one run per side cannot be tested. Record several \
                 runs per side."
            ),
            Noise::Unknown(Untested::Builds) => note!(
                Limit,
                "One build per side cannot be tested: how much builds vary is unknown. Record several builds per side."
            ),
            Noise::Unknown(Untested::Waits) => return None,
            Noise::Sampling => note!(
                Limit,
                "Sampling noise only: with one run per side, the difference between runs is unknown, and it \
                 is often larger. `stepscope ab` makes and compares several runs."
            ),
            Noise::Runs if before.min(after) < least => note!(
                Limit,
                "With {} before and {} after, an exact permutation test cannot reach p = {}, so nothing can be `changed`. At least {} per \
                 side are needed; 8 are better.",
                NoteValue::plural(before, "run"),
                NoteValue::plural(after, "run"),
                options.alpha.to_string(),
                NoteValue::plural(least, "run")
            ),
            Noise::Runs => return None,
        })
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

/// The intervals that a verdict rests on.
///
/// Those of rows that changed, and of inconclusive rows, have the level `1 - R alpha / m`: R of the m tested rows of the
/// family are significant (1 if none is). Of the intervals of the significant rows, at most `alpha` are then expected to miss
/// the true value: the false coverage-statement rate (Benjamini and Yekutieli, *False Discovery Rate-Adjusted Multiple
/// Confidence Intervals for Selected Parameters*, JASA 100, 2005). Intervals of equivalent rows have the level of
/// [`Options::confidence`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjusted {
    /// After minus before.
    pub difference: Estimate,
    /// After over before; `None` unless both are positive.
    pub ratio: Option<Estimate>,
    /// Confidence level.
    pub confidence: f64,
}

/// A number on both sides, with its estimated change and verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// After minus before, of this row alone; bounds are infinite where the noise is unknown.
    pub difference: Estimate,
    /// After over before, of this row alone; `None` unless both are positive.
    pub ratio: Option<Estimate>,
    /// The intervals that the verdict rests on, adjusted for the number of rows.
    pub adjusted: Adjusted,
    /// Probability of a difference this large or larger if nothing had changed; `None` if no test is possible.
    pub p: Option<f64>,
    /// Adjusted for the number of rows; `None` for rows that are not tested.
    pub q: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// If inconclusive: estimated extra runs needed per side.
    pub more_runs: Option<u64>,
    /// The smallest change, in percent, that such runs detect in four of five cases.
    pub detectable_percent: Option<f64>,
    /// Numbers of samples before and after, if known.
    pub counts: Option<(u64, u64)>,
    /// The levels of the runs before and after, of figures of the whole run whose runs lie on two.
    pub levels: [Option<Levels>; 2],
    /// How it is adjusted for the machine's speed; `None` if it is as measured.
    pub speed: Option<Adjustment>,
    tested: bool,
    degrees_of_freedom: f64,
    /// Estimate and errors, until [`decide`] has used them.
    change: Option<Change>,
}

impl Assessment {
    /// Adds the levels of the runs, given their means. Thousands of functions have none: some would look like it by chance.
    fn with_levels(mut self, counted: Option<Counted>, means: &[Vec<f64>; 2]) -> Self {
        if counted.is_none() {
            self.levels = [0, 1].map(|side| two_levels_of_runs(&means[side]));
        }
        self
    }

    /// Adds the detectable change and the extra runs needed.
    fn look_ahead(&mut self, change: &Change, goal: &Goal) {
        let detectable = |error| (goal.detectable_ratio(error, change.degrees_of_freedom) - 1.0) * 100.0;
        self.detectable_percent = change.log_ratio_standard_error.map(detectable);
        if self.verdict == Verdict::Inconclusive {
            let have = change.spread_before.runs.min(change.spread_after.runs);
            self.more_runs = goal.runs_needed(change).map(|runs| runs.saturating_sub(have).max(1) as u64);
        }
    }

    /// Its intervals at another confidence level.
    fn at(&self, confidence: f64, options: &Options) -> Adjusted {
        let quantile = |level: f64| student::quantile(f64::midpoint(1.0, level), self.degrees_of_freedom);
        let factor = quantile(confidence) / quantile(options.confidence);
        Adjusted {
            difference: self.difference.stretched(factor),
            ratio: self.ratio.map(|ratio| ratio.stretched_log(factor)),
            confidence,
        }
    }

    /// Whether it is zero in every run of both sides.
    fn is_nothing(&self) -> bool {
        self.before == 0.0 && self.after == 0.0 && self.difference.low == 0.0 && self.difference.high == 0.0
    }

    /// Whether it changed.
    pub fn is_changed(&self) -> bool {
        self.verdict == Verdict::Changed
    }
}

/// Assesses the numbers of two sides. Resamples and splits are drawn once, so that rows are comparable.
pub(super) struct Judge {
    noise: Noise,
    bootstrap: HierarchicalBootstrap,
    /// The same variances, without resamples.
    unresampled: HierarchicalBootstrap,
    permutations: Permutations,
    exposures: (f64, f64),
    /// The machine's speed in each run; none where the machines themselves are taken out.
    speeds: Vec<Covariate>,
    /// The machines of the runs, if each of several ran both sides.
    machines: Option<Strata>,
    options: Options,
}

impl Judge {
    pub(super) fn new(before: &Side, after: &Side, options: &Options) -> Self {
        let exposure = |side: &Side| side.runs.iter().map(|run| run.whole_exposure()).sum::<f64>();
        let mut judge = Self::of_shape(&before.blocks(), &after.blocks(), options);
        judge.noise = Noise::of(before, after);
        judge.exposures = (exposure(before), exposure(after));
        judge.machines = machines::strata(before, after);
        // The costs of builds are exact sums, without samples.
        if before.runs.iter().chain(&after.runs).all(|run| run.basis == Basis::PerBuild) {
            judge.options.least_count = 0;
        }
        match &judge.machines {
            Some(machines) => judge.permutations = machines.permutations(options.seed),
            None if options.adjust_for_speed => judge.speeds = speed::covariates(before, after),
            None => {}
        }
        judge
    }

    /// For sides with these numbers of blocks in their runs, as [`HierarchicalBootstrap::new`] takes them.
    pub(super) fn of_shape(before: &[usize], after: &[usize], options: &Options) -> Self {
        let several = before.len() > 1 && after.len() > 1;
        Self {
            noise: if several { Noise::Runs } else { Noise::Sampling },
            bootstrap: HierarchicalBootstrap::new(before, after, options.replicates, options.seed),
            unresampled: HierarchicalBootstrap::new(before, after, 0, options.seed),
            permutations: Permutations::new(before.len(), after.len(), options.seed),
            exposures: (0.0, 0.0),
            speeds: Vec::new(),
            machines: None,
            options: options.clone(),
        }
    }

    /// For paths of a call tree, by numbers of runs and exposures of both sides. Thousands of paths are too many to resample.
    pub(super) fn of_paths(runs: (usize, usize), exposures: (f64, f64), noise: Noise, options: &Options) -> Self {
        let options = Options { replicates: 0, ..options.clone() };
        Self { noise, exposures, ..Self::of_shape(&vec![0; runs.0], &vec![0; runs.1], &options) }
    }

    /// Like [`row`](Self::row), for a path.
    pub(super) fn path(&self, before: &[Run], after: &[Run], counted: Counted) -> Assessment {
        if self.noise != Noise::Runs {
            return self.row(before, after, Some(counted), None);
        }
        let Some(change) = self.roughly(before, after) else { return untested(before, after, Some(counted)) };
        let few = permutation::least_runs(self.options.alpha).is_none_or(|least| before.len().min(after.len()) < least);
        Assessment {
            difference: change.difference,
            ratio: change.ratio,
            // As for rows, so few runs never show a change.
            p: Some(if few { 1.0 } else { change.p }),
            tested: self.is_enough(counted),
            degrees_of_freedom: change.degrees_of_freedom,
            ..untested(before, after, Some(counted))
        }
    }

    /// What became of the differences between machines; `None` for one machine.
    pub(super) fn machines_note(&self, before: &Side, after: &Side) -> Option<Note> {
        machines::note(before, after, self.machines.as_ref().map(|_| self.permutations.least_p()), &self.options)
    }

    pub(super) fn noise(&self) -> &Noise {
        &self.noise
    }

    /// Assesses a number from the value of each run, with the counts of samples behind it if it comes from samples, and the
    /// direction in which it goes on a slower machine.
    pub(super) fn row(
        &self,
        before: &[Run],
        after: &[Run],
        counted: Option<Counted>,
        direction: Option<Direction>,
    ) -> Assessment {
        match &self.noise {
            Noise::Runs => self.by_runs(before, after, counted, direction),
            Noise::Sampling => match counted.filter(|counted| counted.sampled) {
                Some(counted) => self.by_counts(before, after, counted),
                None => untested(before, after, counted),
            },
            Noise::Unknown(_) => untested(before, after, counted),
        }
    }

    fn by_runs(
        &self,
        before: &[Run],
        after: &[Run],
        counted: Option<Counted>,
        direction: Option<Direction>,
    ) -> Assessment {
        let enough = counted.is_none_or(|counted| self.is_enough(counted));
        if enough && let Some(adjusted) = self.adjusted(before, after, direction) {
            let control_variate::Adjusted { test, change, by, means } = adjusted;
            let assessment = self.of_change(before, after, counted, change);
            let p = Some(self.refined(test, &change));
            return Assessment { p, tested: true, speed: by, ..assessment }.with_levels(counted, &means);
        }
        // Many rows have few samples and are not tested: a rough interval is enough.
        let change = match enough {
            true => self.bootstrap.change(before, after, self.options.confidence),
            false => self.roughly(before, after),
        };
        let Some(change) = change else { return untested(before, after, counted) };
        Assessment {
            p: if enough { self.p_of(before, after, &change) } else { Some(change.p) },
            tested: enough,
            ..self.of_change(before, after, counted, change)
        }
        .with_levels(counted, &[before, after].map(|runs| runs.iter().map(|run| run.mean).collect()))
    }

    /// The change without what the machines of the runs, or their speed, explain; `None` if neither is known, or the runs are too few.
    fn adjusted(
        &self,
        before: &[Run],
        after: &[Run],
        direction: Option<Direction>,
    ) -> Option<control_variate::Adjusted> {
        let (bootstrap, permutations, sides) = (&self.bootstrap, &self.permutations, (before, after));
        let confidence = self.options.confidence;
        match &self.machines {
            Some(machines) => machines.change(bootstrap, permutations, sides, confidence),
            None => adjusted_change(bootstrap, permutations, sides, &self.speeds, direction?, confidence),
        }
    }

    fn of_change(&self, before: &[Run], after: &[Run], counted: Option<Counted>, change: Change) -> Assessment {
        Assessment {
            before: change.before,
            after: change.after,
            difference: change.difference,
            ratio: change.ratio,
            degrees_of_freedom: change.degrees_of_freedom,
            change: Some(change),
            ..untested(before, after, counted)
        }
    }

    /// The change with intervals of Student's t, which take no resamples.
    fn roughly(&self, before: &[Run], after: &[Run]) -> Option<Change> {
        let confidence = self.options.confidence;
        Some(with_normal_intervals(self.unresampled.change(before, after, confidence)?, confidence))
    }

    /// The permutation test's p. If no other split is as extreme, p is at its floor, and the tail of Student's t refines
    /// it; but not with so few runs that the floor is above alpha.
    fn p_of(&self, before: &[Run], after: &[Run], change: &Change) -> Option<f64> {
        let means = |runs: &[Run]| runs.iter().map(|run| run.mean).collect::<Vec<f64>>();
        let test = self.permutations.test(&means(before), &means(after))?;
        Some(self.refined(test, change))
    }

    fn refined(&self, test: PermutationTest, change: &Change) -> f64 {
        let refined = test.at_floor && test.floor < self.options.alpha;
        if refined { test.p.min(change.p) } else { test.p }
    }

    fn by_counts(&self, before: &[Run], after: &[Run], counted: Counted) -> Assessment {
        let confidence = self.options.confidence;
        let of = |samples, exposure| Count { samples, exposure };
        let [old, new] = [of(counted.before, self.exposures.0), of(counted.after, self.exposures.1)];
        let mut assessment = untested(before, after, Some(counted));
        let Some(change) = counts::rate_change(old, new, confidence) else { return assessment };
        // Samples may have different weights: the counts give the error of the weights.
        let weight = self.weight_of_a_sample(&assessment, counted);
        let scaled = |estimate: Estimate, value: f64, factor: f64| Estimate { value, ..estimate.times(factor) };
        assessment.difference = scaled(change.difference, assessment.after - assessment.before, weight);
        assessment.ratio = change.ratio.filter(|_| assessment.before > 0.0 && assessment.after > 0.0).map(|ratio| {
            let value = assessment.after / assessment.before;
            let factor = if ratio.value > 0.0 { value / ratio.value } else { 1.0 };
            scaled(ratio, value, factor)
        });
        assessment.p = Some(change.p);
        assessment.tested = self.is_enough(counted);
        let goal = goal(&self.options, self.options.alpha);
        if let Some(ratio) = assessment.ratio.filter(|_| counted.before.min(counted.after) > 0) {
            let times = goal.sample_factor(counted.before, counted.after, ratio.value);
            assessment.more_runs = times.map(|times| ((times - 1.0).ceil() as u64).max(1));
            let error = (1.0 / counted.before as f64 + 1.0 / counted.after as f64).sqrt();
            assessment.detectable_percent = Some((goal.detectable_ratio(error, f64::INFINITY) - 1.0) * 100.0);
        }
        assessment
    }

    fn weight_of_a_sample(&self, assessment: &Assessment, counted: Counted) -> f64 {
        let weight = assessment.before * self.exposures.0 + assessment.after * self.exposures.1;
        let samples = counted.before + counted.after;
        if samples > 0 { weight / samples as f64 } else { 0.0 }
    }

    fn is_enough(&self, counted: Counted) -> bool {
        counted.before.saturating_add(counted.after) >= self.options.least_count
    }
}

fn goal(options: &Options, alpha: f64) -> Goal {
    Goal { alpha, tolerance: options.tolerance, ..Goal::default() }
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

/// A row with values and no test.
fn untested(before: &[Run], after: &[Run], counted: Option<Counted>) -> Assessment {
    let mean = |runs: &[Run]| runs.iter().map(|run| run.mean).sum::<f64>() / runs.len().max(1) as f64;
    let (old, new) = (mean(before), mean(after));
    let unknown = |value, low| Estimate { value, low, high: f64::INFINITY };
    let difference = unknown(new - old, f64::NEG_INFINITY);
    let ratio = (old > 0.0 && new > 0.0).then(|| unknown(new / old, f64::NEG_INFINITY));
    Assessment {
        before: old,
        after: new,
        difference,
        ratio,
        adjusted: Adjusted { difference, ratio, confidence: 0.0 },
        p: None,
        q: None,
        verdict: Verdict::Inconclusive,
        more_runs: None,
        detectable_percent: None,
        counts: counted.map(|counted| (counted.before, counted.after)),
        levels: [None; 2],
        speed: None,
        tested: false,
        degrees_of_freedom: f64::INFINITY,
        change: None,
    }
}

/// Adjusts p and the intervals for the number of rows of a family, and decides each verdict.
///
/// Rows that are zero in every run are equivalent without a test.
pub(super) fn decide<'a>(rows: impl Iterator<Item = &'a mut Assessment>, options: &Options) {
    let mut rows: Vec<&mut Assessment> = rows.collect();
    rows.iter_mut().filter(|row| row.is_nothing()).for_each(|row| row.tested = false);
    let tested: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].tested && rows[*row].p.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|row| rows[*row].p).collect();
    let q: HashMap<usize, f64> = tested.into_iter().zip(benjamini_hochberg(&p)).collect();
    let significant = q.values().filter(|q| **q <= options.alpha).count();
    let alpha = options.alpha * significant.max(1) as f64 / q.len().max(1) as f64;
    let goal = goal(options, alpha);
    for (index, row) in rows.iter_mut().enumerate() {
        row.q = q.get(&index).copied();
        (row.verdict, row.adjusted) = judged(row, 1.0 - alpha, options);
        if let Some(change) = row.change.take().filter(|_| row.tested) {
            row.look_ahead(&change, &goal);
        }
        if row.verdict != Verdict::Inconclusive {
            row.more_runs = None;
        }
    }
}

/// The verdict, and the intervals that it rests on.
fn judged(row: &Assessment, adjusted_confidence: f64, options: &Options) -> (Verdict, Adjusted) {
    let within =
        |ratio: Estimate| ratio.low >= 1.0 / (1.0 + options.tolerance) && ratio.high <= 1.0 + options.tolerance;
    let own = Adjusted { difference: row.difference, ratio: row.ratio, confidence: options.confidence };
    let adjusted = row.at(adjusted_confidence, options);
    match row.q {
        _ if row.is_nothing() => (Verdict::Equivalent, own),
        Some(q) if q <= options.alpha && adjusted.difference.excludes_zero() => (Verdict::Changed, adjusted),
        Some(_) if row.ratio.is_some_and(within) => (Verdict::Equivalent, own),
        // The test may be stricter than the interval: where it finds no change, the interval includes none.
        _ => {
            let difference = adjusted.difference.including(0.0);
            let ratio = adjusted.ratio.map(|ratio| ratio.including(1.0));
            (Verdict::Inconclusive, Adjusted { difference, ratio, ..adjusted })
        }
    }
}

//! Which steps are slow, and which are typical: see [Which steps](super#which-steps).

use std::ops::Range;

use stepscope_model::{Note, NoteValue, note};
use stepscope_stats::bootstrap::Set;
use stepscope_stats::{Distribution, Levels, two_levels};

/// Which steps are slow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Slow {
    /// Steps beyond a natural gap in their work or time; else those on the upper of two levels; else from the 95th percentile
    /// on.
    #[default]
    Natural,
    /// Steps whose time on the clock is at this percentile or above, 60 to 100.
    Percentile(f64),
}

/// The rule that separates slow steps from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Split {
    /// By a natural gap.
    Gap,
    /// By the upper of two levels.
    Levels(Levels),
    /// By a percentile.
    Percentile,
}

/// The percentile of slow steps if there is no natural gap.
const PERCENTILE: f64 = 95.0;

/// Percentiles between which steps are typical.
const TYPICAL: (f64, f64) = (40.0, 60.0);

/// Fewer steps than this are not split.
const FEWEST_STEPS: usize = 20;

/// Fewer slow steps than this are no group of their own, and have no interval.
pub(super) const FEWEST_SLOW: usize = 5;

/// The shortest time of a separate group of slow steps, if there is one.
///
/// The k-th *normalised spacing* of a distribution's upper end is k times the logarithm of the ratio of its k-th largest
/// value to the next smaller one. For an even tail, however heavy (Pareto), these spacings are independent and
/// exponentially distributed with one mean (Rényi, *On the Theory of Order Statistics*, 1953). So a spacing of many times
/// the mean of the others is a gap, not part of a tail. With `m` spacings, the largest exceeds `ln m + 5` means in fewer than
/// one in a hundred tails; the threshold is half as much again, since real tails are less even.
///
/// The gap is searched among the slowest tenth of the steps, then the slowest two fifths. A group has at least 5 steps, and
/// its shortest step takes 5 % longer than any step outside.
pub fn natural_gap(times: &Distribution) -> Option<u64> {
    let of = |part: f64| gap_among((times.len() as f64 * part) as usize, times.values());
    of(0.1).or_else(|| of(0.4))
}

fn gap_among(slowest: usize, sorted: &[u64]) -> Option<u64> {
    const LEAST_RATIO: f64 = 1.05;
    const MARGIN: f64 = 1.5;
    let n = sorted.len();
    if slowest < FEWEST_SLOW || n <= slowest || sorted[n - slowest - 1] == 0 {
        return None;
    }
    let log_ratio = |k: usize| (sorted[n - k] as f64 / sorted[n - k - 1] as f64).ln();
    let spacing = |k: usize| k as f64 * log_ratio(k);
    let sum: f64 = (1..=slowest).map(spacing).sum();
    let wide = (FEWEST_SLOW..=slowest).filter(|k| log_ratio(*k) >= LEAST_RATIO.ln());
    let largest = wide.max_by(|a, b| spacing(*a).total_cmp(&spacing(*b)))?;
    let mean_of_others = (sum - spacing(largest)) / (slowest - 1) as f64;
    let is_gap = spacing(largest) > MARGIN * ((slowest as f64).ln() + 5.0) * mean_of_others;
    is_gap.then_some(sorted[n - largest])
}

/// The time by which steps are split, without pacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Their time without waits for a CPU.
    Work,
    /// Their time.
    Clock,
}

/// Slow and typical steps of the main loop.
#[derive(Debug, Clone)]
pub struct Sets {
    /// Positions of the slow steps, in order of time.
    pub slow: Vec<usize>,
    /// Positions of the typical ones.
    pub typical: Vec<usize>,
    /// The time by which they were split.
    pub measure: Measure,
    /// Slow steps took at least this long.
    pub threshold_ns: u64,
    /// How the threshold was found.
    pub split: Split,
    /// The percentile of the threshold, if it is one.
    pub percentile: f64,
    /// Shortest and longest typical step.
    pub typical_ns: (u64, u64),
    /// Other steps in the slowest twentieth by the clock.
    pub others_above_p95: usize,
    /// The set of each step, by position. The first step is in neither.
    pub(super) of_step: Vec<Set>,
}

impl Sets {
    /// Splits the steps by their times; `Err` says why that is impossible.
    pub(super) fn of(kept: Range<usize>, clock: &[u64], work: Option<&[u64]>, slow: Slow) -> Result<Self, Note> {
        if kept.len() < FEWEST_STEPS {
            return Err(note!(
                Limit,
                "{} after the first are too few for slow and typical steps: at least {} are needed.",
                NoteValue::plural(kept.len(), "step"),
                NoteValue::number(FEWEST_STEPS)
            ));
        }
        let distribution = |times: &[u64]| times[kept.clone()].iter().copied().collect::<Distribution>();
        let on_clock = distribution(clock);
        let gap = |times: &Distribution| if slow == Slow::Natural { natural_gap(times) } else { None };
        let measures = || work.map(|work| (Measure::Work, work)).into_iter().chain([(Measure::Clock, clock)]);
        let by_gap = || {
            measures().find_map(|(measure, times)| {
                let sorted = distribution(times);
                Some((measure, times, gap(&sorted)?, sorted, Split::Gap))
            })
        };
        let by_levels = || {
            measures().filter(|_| slow == Slow::Natural).find_map(|(measure, times)| {
                let sorted = distribution(times);
                let levels = levels(&sorted)?;
                let threshold = sorted.values().iter().copied().find(|ns| levels.is_upper(*ns as f64))?;
                Some((measure, times, threshold, sorted, Split::Levels(levels)))
            })
        };
        let percentile = match slow {
            Slow::Natural => PERCENTILE,
            Slow::Percentile(percentile) => percentile.clamp(TYPICAL.1, 100.0),
        };
        let at = |times: &Distribution, percent: f64| times.percentile(percent).expect("there are steps");
        let by_percentile = || (Measure::Clock, clock, at(&on_clock, percentile), on_clock.clone(), Split::Percentile);
        let (measure, times, threshold_ns, sorted, split) = by_gap().or_else(by_levels).unwrap_or_else(by_percentile);
        // With two levels, typical steps are the middle ones of the lower level.
        let lower_share = if let Split::Levels(levels) = split { 1.0 - levels.upper_share } else { 1.0 };
        let typical_ns = (at(&sorted, TYPICAL.0 * lower_share), at(&sorted, TYPICAL.1 * lower_share));
        if threshold_ns <= typical_ns.1 {
            return Err(note!(
                Fact,
                "The slowest steps take as long as typical steps ({}): nothing to compare.",
                NoteValue::ns(threshold_ns)
            ));
        }
        let set = |position: usize| match times[position] {
            _ if !kept.contains(&position) => Set::Neither,
            time if time >= threshold_ns => Set::This,
            time if (typical_ns.0..=typical_ns.1).contains(&time) => Set::Other,
            _ => Set::Neither,
        };
        let of_step: Vec<Set> = (0..times.len()).map(set).collect();
        let positions = |wanted: Set| (0..of_step.len()).filter(|position| of_step[*position] == wanted).collect();
        let p95 = at(&on_clock, PERCENTILE);
        let is_other = |position: &usize| clock[*position] >= p95 && of_step[*position] != Set::This;
        Ok(Self {
            slow: positions(Set::This),
            typical: positions(Set::Other),
            measure,
            threshold_ns,
            split,
            percentile,
            typical_ns,
            others_above_p95: kept.clone().filter(is_other).count(),
            of_step,
        })
    }

    pub(super) fn of_position(&self, position: usize) -> Option<StepKind> {
        match self.of_step[position] {
            Set::This => Some(StepKind::Slow),
            Set::Other => Some(StepKind::Typical),
            Set::Neither => None,
        }
    }
}

fn levels(times: &Distribution) -> Option<Levels> {
    two_levels(&times.values().iter().map(|ns| *ns as f64).collect::<Vec<f64>>())
}

/// The two kinds of steps that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    Slow,
    Typical,
}

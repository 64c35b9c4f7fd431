//! The table `step_histogram`.

use std::ops::Range;

use stepscope_model::{Columns, Table};
use stepscope_stats::Distribution;

use super::StepParts;
use crate::query::steps::Steps;
use crate::query::weights::percent;

/// The largest number of bins.
pub(super) const BINS: usize = 30;

/// The table `step_histogram`: step times in bins of equal ratio.
///
/// Step times spread over decades and cluster within a few percent, so bins are equal on a logarithmic scale. Their width
/// there is that of Freedman and Diaconis (1981), 2 IQR / n^(1/3), with at most 30 bins.
pub(super) fn table(steps: &Steps, parts: &StepParts) -> Table {
    let times: Distribution = parts.durations[steps.after_first()].iter().copied().filter(|ns| *ns > 0).collect();
    let bins = bins(&times);
    let fullest = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let share = |count: usize| percent(count as u128, times.len() as u128);
    Columns::<Bin>::new()
        .duration("from", "Shortest time of the bin.", |bin| bin.range.start)
        .duration("to", "First time beyond the bin.", |bin| bin.range.end)
        .count("steps", "steps", "Number of steps, without the loop's first.", |bin| bin.count)
        .percentage("share", "Share of the steps.", |bin| share(bin.count))
        .percentage("cumulative", "Share of the steps in this bin and all bins of shorter times.", |bin| {
            share(bin.up_to)
        })
        .percentage("time_share", "Share of all steps' time.", |bin| percent(bin.sum, times.sum()))
        .text("bar", "The share as a bar; the fullest bin fills it.", |bin| bar(bin.count, fullest).into())
        .essential("from to steps")
        .detail("cumulative")
        .table("step_histogram", "Distribution of step times", &bins)
}

fn bar(count: usize, fullest: usize) -> String {
    const LENGTH: usize = 24;
    let eighths = (count * LENGTH * 8).div_ceil(fullest.max(1));
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

pub(super) struct Bin {
    range: Range<u64>,
    pub count: usize,
    /// Number of steps in this bin and all before it.
    up_to: usize,
    pub sum: u128,
}

pub(super) fn bins(times: &Distribution) -> Vec<Bin> {
    let (Some(min), Some(max)) = (times.min(), times.max()) else { return Vec::new() };
    let log = |ns: u64| (ns as f64).ln();
    let quartile = |percent: f64| times.percentile(percent).map_or(0.0, log);
    let rule = 2.0 * (quartile(75.0) - quartile(25.0)) / (times.len() as f64).cbrt();
    let range = log(max) - log(min);
    let count = if rule > 0.0 { (range / rule).ceil().clamp(1.0, BINS as f64) as usize } else { BINS };
    let edge = |bin: usize| match bin {
        0 => min,
        _ if bin == count => max + 1,
        _ => (log(min) + range * bin as f64 / count as f64).exp().round() as u64,
    };
    let mut edges: Vec<u64> = (0..=count).map(edge).collect();
    edges.dedup();
    let values = times.values();
    let bin = |pair: &[u64]| {
        let (from, to) = (values.partition_point(|ns| *ns < pair[0]), values.partition_point(|ns| *ns < pair[1]));
        let sum = values[from..to].iter().map(|ns| u128::from(*ns)).sum();
        Bin { range: pair[0]..pair[1], count: to - from, up_to: to, sum }
    };
    edges.windows(2).map(bin).collect()
}

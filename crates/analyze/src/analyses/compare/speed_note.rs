//! The note on rows that are adjusted for the machine's speed.

use stepscope_model::{Note, note};
use stepscope_stats::control_variate::Adjustment;
use stepscope_stats::median;

use super::Comparison;
use super::evidence::Family;
use super::rows::MetricRow;

/// Says which rows are adjusted, and by how much that narrowed their intervals.
pub(super) fn of(comparison: &Comparison) -> Option<Note> {
    let narrower = |by: &Adjustment| format!("{:.0} %", (1.0 - by.width_share) * 100.0);
    let metric = |row: &MetricRow| {
        row.assessment.speed.as_ref().map(|by| format!("{} (interval {} narrower)", row.name, narrower(by)))
    };
    let mut adjusted: Vec<String> = comparison.metrics.iter().filter_map(metric).collect();
    for (family, rows) in [(Family::Attributed, "attributed"), (Family::Own, "self")] {
        let all = comparison.rows(family).iter().filter(|row| row.assessment.q.is_some());
        let used: Vec<&Adjustment> = all.clone().filter_map(|row| row.assessment.speed.as_ref()).collect();
        let widths: Vec<f64> = used.iter().map(|by| (1.0 - by.width_share) * 100.0).collect();
        if let Some(median) = median(&widths) {
            let (used, all) = (used.len(), all.count());
            adjusted.push(format!("{used} of {all} functions by {rows} cost (median {median:.0} % narrower)"));
        }
    }
    (!adjusted.is_empty()).then(|| {
        note!(
            Fact,
            "Adjusted for the machine's speed in each run: {}. Values are at the mean speed of all runs; \
             --no-speed-adjustment shows them as measured.",
            adjusted.join(", ")
        )
    })
}

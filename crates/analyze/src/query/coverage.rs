//! Coverage: sampled CPU time in percent of exact CPU time.

use crate::query::events::{self, Role};
use crate::query::select::Selection;
use crate::query::weights;

/// Coverage below which shares must not be turned into time.
pub const LEAST_PERCENT: f64 = 50.0;

/// Exact CPU time of the selected threads, if context switches were recorded.
pub fn cpu_ns(selection: &Selection<'_>) -> Option<u64> {
    let sum = selection.cpu_times().into_iter().flatten().reduce(u64::saturating_add);
    let whole = || selection.capture().info.losses.cpu_time_ns;
    sum.or_else(|| if selection.filters_threads() || selection.filters_time() { None } else { whole() })
}

/// Coverage of the selected threads. `None` if either time is unknown, or only some stacks are selected.
pub fn percent(selection: &Selection<'_>) -> Option<f64> {
    selection.event().filter(|event| event.unit == "ns" && events::role(event) == Role::Cpu)?;
    if selection.filters_stacks() {
        return None;
    }
    let sampled = selection.samples().map(|sample| u128::from(sample.weight)).sum();
    weights::percent(sampled, u128::from(cpu_ns(selection)?))
}

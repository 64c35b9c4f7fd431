//! Coverage: sampled CPU time in percent of exact CPU time.

use stepscope_model::{Capture, Note, NoteValue, note};

use crate::query::events;
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

/// CPU time of the selected threads: the exact one, else the sampled one. `None` if neither was recorded.
pub(crate) fn known_cpu_ns(selection: &Selection<'_>) -> Option<f64> {
    let is_in_ns = selection.event().is_some_and(|event| event.unit == "ns");
    let sampled = || is_in_ns.then(|| weights::StackWeights::of_samples(selection).total().weight as f64);
    cpu_ns(selection).map(|ns| ns as f64).or_else(sampled)
}

/// What is wrong with the CPU time by context switches: the kernel's own account differs, or switches were lost.
///
/// The kernel's account is read a little earlier or later (20 ms, and 1 %), and does not have the time that a hypervisor took.
/// A launched program's account has only the children that were waited for, so that several processes may have used more. Where
/// records were lost, that is the less likely reason.
pub fn cpu_notes(capture: &Capture) -> Vec<Note> {
    const ERROR_NS: u64 = 20_000_000;
    let losses = &capture.info.losses;
    let mut notes = Vec::new();
    if let (Some(switches_ns), Some(kernel_ns)) = (losses.cpu_time_ns, losses.kernel_cpu_ns) {
        let stolen_ns = capture.info.conditions.as_ref().and_then(|conditions| conditions.stolen_ns).unwrap_or(0);
        let error_ns = ERROR_NS + kernel_ns / 100;
        let lacks = kernel_ns.saturating_sub(switches_ns) > error_ns;
        let exceeds = switches_ns.saturating_sub(kernel_ns) > error_ns.saturating_add(stolen_ns);
        if lacks || exceeds && (capture.processes.len() == 1 || losses.lost_records > 0) {
            let (switches, kernel) = (NoteValue::ns(switches_ns), NoteValue::ns(kernel_ns));
            notes.push(note!(
                Loss,
                "CPU time is not exact: {} by context switches, {} by the kernel's account.",
                switches,
                kernel
            ));
        }
    }
    // A thread whose switches are not all known had at most the time that the kernel counts more.
    let most_ns =
        losses.kernel_cpu_ns.zip(losses.cpu_time_ns).map(|(kernel, switches)| kernel.saturating_sub(switches));
    let unknown_ns = losses.unknown_cpu_ns.map(|unknown| unknown.min(most_ns.unwrap_or(u64::MAX)));
    let error_ns = ERROR_NS + losses.kernel_cpu_ns.or(losses.cpu_time_ns).unwrap_or(0) / 100;
    if let Some(unknown_ns) = unknown_ns.filter(|&ns| ns > error_ns) {
        let unknown = NoteValue::ns(unknown_ns);
        notes.push(note!(Loss, "Not all context switches are known: {} may be CPU time and is not counted.", unknown));
    }
    notes
}

/// Coverage of the selected threads. `None` if either time is unknown, or only some stacks are selected.
pub fn percent(selection: &Selection<'_>) -> Option<f64> {
    selection.event().filter(|event| events::is_cpu_time(event))?;
    if selection.filters_stacks() {
        return None;
    }
    let sampled = selection.samples().map(|sample| u128::from(sample.weight)).sum();
    weights::percent(sampled, u128::from(cpu_ns(selection)?))
}

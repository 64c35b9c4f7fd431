//! The times of a capture on another clock.

use stepscope_model::Capture;

/// Converts all times. Durations stay as they were measured.
pub(super) fn convert(capture: &mut Capture, to: impl Fn(u64) -> u64) {
    let at = |time_ns: &mut u64| *time_ns = to(*time_ns);
    let maybe = |time_ns: &mut Option<u64>| *time_ns = time_ns.map(&to);
    let info = &mut capture.info;
    [&mut info.start_ns, &mut info.end_ns, &mut info.recording_start_ns].into_iter().for_each(maybe);
    for process in &mut capture.processes {
        [&mut process.start_ns, &mut process.end_ns].into_iter().for_each(maybe);
    }
    for thread in &mut capture.threads {
        [&mut thread.start_ns, &mut thread.end_ns].into_iter().for_each(maybe);
        thread.names.iter_mut().for_each(|name| at(&mut name.time_ns));
    }
    capture.samples.iter_mut().for_each(|sample| maybe(&mut sample.time_ns));
    capture.waits.change_all(|wait| {
        let before_ns = wait.end_ns.saturating_sub(wait.start_ns);
        [&mut wait.start_ns, &mut wait.end_ns].into_iter().for_each(at);
        let now_ns = wait.end_ns.saturating_sub(wait.start_ns);
        // A wait is not longer runnable than it lasts, and one that is runnable throughout stays so.
        wait.runnable_ns = wait.runnable_ns.map(|ns| if ns >= before_ns { now_ns } else { ns.min(now_ns) });
    });
    for step in capture.steps.iter_mut() {
        [&mut step.start_ns, &mut step.end_ns].into_iter().for_each(at);
    }
    for scope in capture.scopes.iter_mut() {
        [&mut scope.start_ns, &mut scope.end_ns].into_iter().for_each(at);
    }
    capture.counters.iter_mut().for_each(|counter| at(&mut counter.time_ns));
    for calls in capture.system_calls.iter_mut() {
        [&mut calls.start_ns, &mut calls.end_ns].into_iter().for_each(at);
    }
    for row in &mut capture.allocations {
        [&mut row.start_ns, &mut row.end_ns].into_iter().for_each(at);
    }
    for row in &mut capture.allocation_bursts {
        [&mut row.start_ns, &mut row.end_ns].into_iter().for_each(at);
    }
    for row in &mut capture.event_counts {
        [&mut row.start_ns, &mut row.end_ns].into_iter().for_each(maybe);
    }
    capture.memory_errors.iter_mut().for_each(|error| maybe(&mut error.first_ns));
    capture.flows.iter_mut().for_each(|event| at(&mut event.time_ns));
}

//! Traces of the kernel's ftrace: files of trace-cmd, and the text of the kernel and of `trace-cmd report`.

mod event;
pub(super) mod format;
mod marker;
mod text;
mod trace_dat;

pub(super) use event::{Fields, Ftrace, Head as EventHead, Kind, NUMBERS, TEXTS};
pub(super) use format::IN_INTERRUPT;
pub use text::FtraceText;
pub use trace_dat::TraceDat;

use super::trace::Remedies;

const REMEDIES: Remedies = Remedies {
    wake_ups: "record sched:sched_waking, too (`trace-cmd record -e sched`)",
    processes: "Record task:task_newtask, too, to know those of new threads.",
    stacks: "ftrace records none",
};

/// Start, end, state, time runnable and tid of the waker.
#[cfg(test)]
type TestedWait = (u64, u64, stepscope_model::WaitState, Option<u64>, Option<u32>);

/// The waits of a thread, without those of no length at its start and end.
#[cfg(test)]
fn waits_of(capture: &stepscope_model::Capture, tid: u32) -> Vec<TestedWait> {
    let is_of =
        |wait: &stepscope_model::Wait| wait.end_ns > wait.start_ns && capture.threads[wait.thread.index()].tid == tid;
    let tid_of = |thread: stepscope_model::ThreadId| capture.threads[thread.index()].tid;
    let waits = capture.waits.iter().filter(is_of);
    waits.map(|wait| (wait.start_ns, wait.end_ns, wait.state, wait.runnable_ns, wait.waker.map(tid_of))).collect()
}

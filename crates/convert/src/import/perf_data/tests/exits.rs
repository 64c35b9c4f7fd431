//! Threads that exit, in recordings of the tracepoint `sched:sched_switch`.

use super::*;

const RAW: u64 = 1 << 10;
/// `prev_state` of the tracepoint.
const RUNNABLE: u64 = 0x100;
const UNINTERRUPTIBLE: u64 = 2;
const DEAD: u64 = 0x10;
/// The id in the record of a thread that the kernel has removed.
const REMOVED: u32 = u32::MAX;

impl Drawing {
    /// `perf sched record`, without callchains.
    fn traced() -> Self {
        let mut drawing = Self::new();
        let format = (PERIODS & !(1 << 5)) | RAW;
        let attribute = drawing.bytes().u32s(&[2, 128]).u64s(&[0x174, 1, format, 0, SAMPLE_ID_ALL]);
        let mut attribute = attribute.0;
        attribute.resize(128, 0);
        drawing.attributes.push(attribute);
        drawing.event_names(&["sched:sched_switch"]);
        drawing
    }

    /// A thread in this state hands CPU 1 to another.
    fn hand_over(&mut self, (tid, state): (u32, u64), next: u32, time: u64) -> &mut Self {
        self.hand_over_as(tid, (tid, state), next, time)
    }

    fn hand_over_as(&mut self, recorded: u32, (tid, state): (u32, u64), next: u32, time: u64) -> &mut Self {
        let raw = self.bytes().u64s(&[0]).text("", 16).u32s(&[tid, 120]).u64s(&[state]).text("", 16);
        let raw = raw.u32s(&[next, 120]);
        let body = self.bytes().u64s(&[100, 0]).u32s(&[recorded, recorded]).u64s(&[time]).u32s(&[1, 0]);
        let body = body.u64s(&[1]).u32s(&[raw.0.len() as u32 + 4]).bytes(&raw.0).u32s(&[0]);
        self.record(9, USER_MODE, body)
    }

    fn exit(&mut self, tid: u32, time: u64) -> &mut Self {
        let body = self.bytes().u32s(&[tid, 1, tid, 1]).u64s(&[time]);
        let body = body.u32s(&[tid, tid]).u64s(&[time]).u32s(&[1, 0]).u64s(&[100]);
        self.record(4, 0, body)
    }

    /// Two threads: 41 gets CPU 1 from 40 at 2 us, and exits at 4 us.
    fn exiting() -> Self {
        let mut drawing = Self::traced();
        drawing.comm(40, "sim", 0).comm(41, "worker", 0);
        drawing.hand_over((41, UNINTERRUPTIBLE), 40, 1_000).hand_over((40, RUNNABLE), 41, 2_000).exit(41, 4_000);
        drawing
    }

    /// End and CPU time of thread 41.
    fn last_of_41(&mut self) -> (Option<u64>, Option<u64>) {
        let capture = read(&self.file());
        let thread = capture.threads.iter().find(|thread| thread.tid == 41).unwrap();
        (thread.end_ns, thread.cpu_ns)
    }
}

#[test]
fn an_exiting_thread_ends_with_its_last_switch_on_a_cpu_that_is_never_idle() {
    let mut drawing = Drawing::exiting();
    drawing.hand_over((41, DEAD), 40, 4_300).hand_over((40, UNINTERRUPTIBLE), 7, 9_000);
    assert_eq!(drawing.last_of_41(), (Some(4_300), Some(2_300)));
}

#[test]
fn preemption_and_a_lock_do_not_end_an_exiting_thread() {
    let mut drawing = Drawing::exiting();
    drawing.hand_over((41, UNINTERRUPTIBLE), 40, 4_100).hand_over((40, RUNNABLE), 41, 5_000);
    drawing.hand_over_as(REMOVED, (41, RUNNABLE), 40, 5_200).hand_over((40, RUNNABLE), 41, 7_000);
    drawing.hand_over_as(REMOVED, (41, DEAD), 40, 7_400).hand_over((40, UNINTERRUPTIBLE), 7, 9_000);
    assert_eq!(drawing.last_of_41(), (Some(7_400), Some(2_100 + 200 + 400)));
}

#[test]
fn without_a_last_switch_a_thread_ends_with_its_exit() {
    // A recording of single threads has no switch of a thread that exited.
    let mut drawing = Drawing::exiting();
    drawing.hand_over((40, UNINTERRUPTIBLE), 7, 9_000);
    assert_eq!(drawing.last_of_41(), (Some(4_000), Some(2_000)));
    let mut drawing = Drawing::exiting();
    drawing.sample(0, 7, 9_000, 1, &[]);
    assert_eq!(drawing.last_of_41(), (Some(4_000), Some(2_000)));
}

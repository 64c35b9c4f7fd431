use stepscope_model::{Counter, Dimension, Event, Module, WaitState};

use super::*;

/// A segment from `start_ns` on for 100 ns: thread 41 runs, but for waits; its step lasts over all cuts.
struct Segment(Capture);

impl Segment {
    fn at(start_ns: u64) -> Self {
        let mut capture = Capture::of(CaptureInfo {
            start_ns: Some(start_ns),
            end_ns: Some(start_ns + 100),
            recording_start_ns: (start_ns > 0).then_some(0),
            ..CaptureInfo::default()
        });
        capture.info.dimensions.insert(Dimension::Cpu, DimensionStatus::Recorded);
        capture.info.losses = Losses { lost_records: 2, cpu_time_ns: Some(60), ..Losses::default() };
        capture.add_event(Event::sampled("cpu-clock", "ns"));
        let process = capture.add_process(Process { pid: 40, ..Process::default() });
        let (start, end) = (Some(start_ns), Some(start_ns + 100));
        let thread = |tid, name: &str| Thread {
            tid,
            process: Some(process),
            name: name.into(),
            start_ns: start,
            end_ns: end,
            cpu_ns: Some(60),
            ..Thread::default()
        };
        // In another order in each segment.
        let threads =
            if start_ns.is_multiple_of(200) { [(41, "main"), (42, "other")] } else { [(42, "other"), (41, "main")] };
        for (tid, name) in threads {
            capture.add_thread(thread(tid, name));
        }
        capture.add_module(Module { path: "/bin/sim".into(), ..Module::default() });
        Self(capture)
    }

    fn main(&self) -> ThreadId {
        let main = self.0.threads.iter().position(|thread| thread.tid == 41);
        ThreadId::from_index(main.unwrap())
    }

    fn stack(&mut self, functions: &[&str]) -> Option<StackId> {
        let frames: Vec<FrameId> = functions.iter().map(|function| self.0.intern_function(function)).collect();
        self.0.intern_stack(frames)
    }

    fn sample(mut self, time_ns: u64, functions: &[&str], weight: u64) -> Self {
        let (thread, stack) = (self.main(), self.stack(functions));
        let event = EventId(0);
        self.0.samples.push(Sample { time_ns: Some(time_ns), thread, cpu: None, stack, event, weight });
        self
    }

    fn wait(mut self, start_ns: u64, end_ns: u64, functions: &[&str], runnable_ns: Option<u64>) -> Self {
        let (thread, stack) = (self.main(), self.stack(functions));
        let state = WaitState::Blocked;
        let wait = Wait {
            start_ns,
            end_ns,
            thread,
            stack,
            state,
            runnable_ns,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        self.0.waits.push(wait);
        self
    }

    fn step(mut self, index: u64, start_ns: u64, end_ns: u64) -> Self {
        let thread = self.main();
        self.0.steps.push(Step { index, start_ns, end_ns, sim_time_ns: None, thread });
        self
    }

    fn scope(mut self, name: &str, start_ns: u64, end_ns: u64) -> Self {
        let thread = self.main();
        self.0.scopes.push(Scope { thread, name: name.into(), start_ns, end_ns, depth: 0 });
        self
    }

    fn counter(mut self, time_ns: u64, value: i64) -> Self {
        let name = self.0.intern_text("rss_bytes");
        self.0.counters.push(Counter { time_ns, process: Some(ProcessId(0)), thread: None, name, value });
        self
    }
}

fn joined(segments: impl IntoIterator<Item = Segment>) -> Capture {
    let mut joiner = Joiner::default();
    segments.into_iter().for_each(|segment| joiner.add(&segment.0));
    let joined = joiner.finish();
    joined.check().unwrap();
    joined
}

#[test]
fn threads_that_live_on_are_one_row_and_their_times_add_up() {
    let all = joined([Segment::at(0), Segment::at(100), Segment::at(200)]);
    let threads: Vec<_> = all.threads.iter().map(|thread| (thread.tid, thread.start_ns, thread.end_ns)).collect();
    assert_eq!(threads, [(41, Some(0), Some(300)), (42, Some(0), Some(300))]);
    assert_eq!(all.threads[0].cpu_ns, Some(180));
    assert_eq!((all.processes.len(), all.modules.len(), all.info.events.len()), (1, 1, 1));
    assert_eq!((all.info.start_ns, all.info.end_ns, all.info.recording_start_ns), (Some(0), Some(300), None));
    assert_eq!((all.info.losses.lost_records, all.info.losses.cpu_time_ns), (6, Some(180)));
}

#[test]
fn a_thread_id_that_was_used_again_is_another_thread() {
    let mut second = Segment::at(100);
    let main = second.main();
    second.0.threads[main.index()].start_ns = Some(130);
    assert_eq!(joined([Segment::at(0), second]).threads.len(), 3);
}

#[test]
fn a_wait_over_several_segments_is_one_wait() {
    let all = joined([
        Segment::at(0).wait(10, 20, &["main", "read"], None).wait(70, 100, &["main", "poll"], None),
        Segment::at(100).wait(100, 200, &[], None),
        Segment::at(200).wait(200, 230, &[], Some(5)).wait(240, 250, &["main", "read"], None),
    ]);
    let leaf = |wait: &Wait| wait.stack.map(|stack| all.function(all.stacks[stack.index()].frame).to_owned());
    let waits: Vec<_> =
        all.waits.iter().map(|wait| (wait.start_ns, wait.end_ns, wait.runnable_ns, leaf(&wait).unwrap())).collect();
    let row = |start, end, runnable, leaf: &str| (start, end, runnable, leaf.to_owned());
    assert_eq!(waits, [row(10, 20, None, "read"), row(70, 230, Some(5), "poll"), row(240, 250, None, "read")]);
}

#[test]
fn a_missing_segment_leaves_its_time_out_and_nothing_else() {
    let all = joined([Segment::at(0).wait(70, 100, &["poll"], None), Segment::at(200).wait(200, 230, &[], None)]);
    let waits: Vec<_> = all.waits.iter().map(|wait| (wait.start_ns, wait.end_ns)).collect();
    assert_eq!(waits, [(70, 100), (200, 230)]);
    assert_eq!(all.threads.iter().map(|thread| thread.cpu_ns).collect::<Vec<_>>(), [Some(60); 4]);
    assert_eq!(all.processes.len(), 1);
}

#[test]
fn steps_are_numbered_on_and_samples_keep_their_stacks() {
    let all = joined([
        Segment::at(0).step(0, 10, 50).step(1, 50, 90).sample(20, &["main", "step"], 7),
        // No step ends here.
        Segment::at(100).sample(150, &["main", "idle"], 5),
        Segment::at(200).step(0, 90, 210).step(1, 210, 240).sample(220, &["main", "step"], 7),
    ]);
    let steps: Vec<_> = all.steps.iter().map(|step| (step.index, step.start_ns, step.end_ns)).collect();
    assert_eq!(steps, [(0, 10, 50), (1, 50, 90), (2, 90, 210), (3, 210, 240)]);
    assert_eq!(all.samples[0].stack, all.samples[2].stack);
    assert_eq!(all.samples.iter().map(|sample| sample.weight).sum::<u64>(), 19);
    assert_eq!(all.stacks.len(), 3);
}

#[test]
fn a_scope_of_several_segments_encloses_those_that_ended_before_it() {
    let all = joined([Segment::at(0).scope("inner", 20, 30), Segment::at(100).scope("outer", 10, 150)]);
    let scopes: Vec<_> = all.scopes.iter().map(|scope| (&*scope.name, scope.depth)).collect();
    assert_eq!(scopes, [("outer", 0), ("inner", 1)]);
}

#[test]
fn a_reading_that_is_repeated_at_a_cut_counts_once() {
    let all = joined([Segment::at(0).counter(50, 7), Segment::at(100).counter(100, 7).counter(150, 8)]);
    let readings: Vec<_> = all.counters.iter().map(|counter| (counter.time_ns, counter.value)).collect();
    assert_eq!(readings, [(50, 7), (150, 8)]);
}

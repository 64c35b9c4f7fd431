//! A raw log as of a long recording of a program that switches often, written in seconds.

use std::io;

use stepscope_assemble::{
    Entry, EventRef, FrameRef, MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd,
    Sample, Sink, StackRef, ThreadRef, Wait, raw_log,
};
use stepscope_model::{CaptureInfo, Dimension, DimensionStatus, Event, Origin, WaitState};

const SECOND_NS: u64 = 1_000_000_000;
const PID: u32 = 4_000;
/// They wake each other in pairs.
const THREADS: u32 = 8;
const STACKS: u32 = 256;
const SAMPLES_HZ: u64 = 997;

/// What was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Recording {
    /// Length in seconds.
    pub seconds: u64,
    /// Context switches per second, of all threads together.
    pub switches_hz: u64,
    /// Marked steps per second, each with a scope around it and four in it, and a marked reading.
    pub steps_hz: u64,
}

impl Recording {
    /// Writes its log.
    pub fn write(self, out: impl io::Write) -> io::Result<()> {
        let mut log = raw_log::Writer::new(out)?;
        let end_ns = self.seconds * SECOND_NS;
        start(&mut log);
        let period_ns = SECOND_NS / self.switches_hz;
        let (mut next_sample, mut next_reading, mut next_step) = (0, 0, 0);
        for number in 0..self.seconds * self.switches_hz {
            let now_ns = (number + 1) * period_ns;
            while next_sample < now_ns {
                sample(&mut log, next_sample);
                next_sample += SECOND_NS / SAMPLES_HZ;
            }
            while next_reading < now_ns {
                (0..THREADS).for_each(|thread| reading(&mut log, thread, next_reading));
                next_reading += SECOND_NS / 2;
            }
            while next_step < now_ns {
                let sim_time_ns = Some(next_step as i64);
                log.take(Entry::StepMark { thread: MarkThreadRef(0), time_ns: next_step, sim_time_ns });
                step(&mut log, next_step, SECOND_NS / self.steps_hz);
                next_step += SECOND_NS / self.steps_hz;
            }
            wait(&mut log, number, now_ns, period_ns);
        }
        scope(&mut log, 0, 0, end_ns);
        for thread in 0..THREADS {
            let time_ns = Some(end_ns);
            let cpu_ns = Some(end_ns / u64::from(THREADS));
            log.take(Entry::ThreadEnd { thread: ThreadRef(thread), time_ns, cpu_ns, runnable_ns: Some(0) });
        }
        let end = RecordingEnd { end_ns: Some(end_ns), ..RecordingEnd::default() };
        log.take(Entry::RecordingEnd(Box::new(end)));
        log.flush();
        log.error().map_or(Ok(()), |error| Err(io::Error::other(error.to_string())))
    }
}

fn start(log: &mut impl Sink) {
    let dimensions = [Dimension::Cpu, Dimension::Offcpu, Dimension::Sched];
    let info = CaptureInfo {
        origin: Origin::Recorded,
        command: vec!["ping-pong".into()],
        start_ns: Some(0),
        dimensions: dimensions.into_iter().map(|dimension| (dimension, DimensionStatus::Recorded)).collect(),
        ..CaptureInfo::default()
    };
    log.take(Entry::Start(Box::new(info)));
    log.take(Entry::Event(Event::sampled("cpu-clock", "ns")));
    log.take(Entry::Process { pid: PID, parent_pid: None, start_ns: None });
    for thread in 0..THREADS {
        let name = format!("worker-{thread}");
        log.take(Entry::Thread { tid: PID + thread, process: ProcessRef(0), start_ns: Some(0), name });
    }
    log.take(Entry::MarkThread { pid: PID, tid: PID, time_ns: 0 });
    for name in ["run", "step", "physics", "contacts"] {
        log.take(Entry::MarkName { name: name.to_owned() });
    }
    log.take(Entry::Module(Module { kind: ModuleKind::File, path: "/bin/ping-pong".into(), build_id: None }));
    for stack in 0..STACKS {
        log.take(Entry::Frame { module: Some(ModuleRef(0)), offset: 0x1000 + 16 * u64::from(stack) });
        let parent = (stack % 16 != 0).then(|| StackRef(stack - 1));
        log.take(Entry::Stack { parent, frame: FrameRef(stack) });
    }
}

fn stack(number: u64) -> Option<StackRef> {
    Some(StackRef((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % STACKS))
}

fn sample(log: &mut impl Sink, time_ns: u64) {
    let thread = ThreadRef((time_ns / 7_919) as u32 % THREADS);
    let weight = SECOND_NS / SAMPLES_HZ;
    let (stack, event) = (stack(time_ns), EventRef(0));
    log.take(Entry::Sample(Sample { time_ns: Some(time_ns), thread, cpu: Some(0), stack, event, weight }));
}

fn scope(log: &mut impl Sink, name: u32, start_ns: u64, end_ns: u64) {
    log.take(Entry::Scope { thread: MarkThreadRef(0), name: MarkNameRef(name), start_ns, end_ns });
}

/// The scopes and the reading of a step.
fn step(log: &mut impl Sink, start_ns: u64, length_ns: u64) {
    for (name, from, to) in [(3, 10, 20), (3, 30, 40), (2, 10, 50), (2, 50, 90), (1, 0, 95)] {
        scope(log, name, start_ns + length_ns * from / 100, start_ns + length_ns * to / 100);
    }
    let (thread, name) = (MarkThreadRef(0), MarkNameRef(3));
    log.take(Entry::MarkedCounter { thread, name, time_ns: start_ns + length_ns, value: (start_ns % 1_000) as i64 });
}

fn reading(log: &mut impl Sink, thread: u32, time_ns: u64) {
    let value = (time_ns / u64::from(THREADS)) as i64;
    let (process, thread, name) = (ProcessRef(0), Some(ThreadRef(thread)), "thread_cpu_ns".to_owned());
    log.take(Entry::Counter { time_ns, process, thread, name, value });
}

/// The threads run one after the other, so each waits while the others run.
fn wait(log: &mut impl Sink, number: u64, now_ns: u64, period_ns: u64) {
    let thread = (number % u64::from(THREADS)) as u32;
    let length_ns = period_ns * u64::from(THREADS - 1) - number % 1_000;
    log.take(Entry::Wait(Wait {
        start_ns: now_ns.saturating_sub(length_ns),
        end_ns: now_ns,
        thread: ThreadRef(thread),
        stack: stack(number / 64),
        state: if number.is_multiple_of(50) { WaitState::Preempted } else { WaitState::Blocked },
        runnable_ns: Some(number % 3_000),
        cpu: Some(thread % 4),
        waker: Some(ThreadRef(thread ^ 1)),
        waker_stack: stack(number / 128),
        count: 1,
    }));
}

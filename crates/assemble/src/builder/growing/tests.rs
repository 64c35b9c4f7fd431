use stepscope_model::{CaptureInfo, Event, Origin, WaitState};

use super::*;
use crate::entry::{
    self, EventRef, FrameRef, MarkNameRef, Module, ModuleKind, ModuleRef, ProcessRef, StackRef, ThreadRef,
};
use crate::symbols::NoSymbols;

const MILLISECOND: u64 = 1_000_000;

fn definitions() -> Vec<Entry> {
    let info = CaptureInfo { origin: Origin::Recorded, start_ns: Some(100), ..CaptureInfo::default() };
    vec![
        Entry::Start(Box::new(info)),
        Entry::Event(Event::sampled("cpu-clock", "ns")),
        Entry::Process { pid: 40, parent_pid: None, start_ns: Some(100) },
        Entry::Thread { tid: 40, process: ProcessRef(0), start_ns: Some(100), name: "sim".into() },
        Entry::MarkName { name: "physics".into() },
        Entry::MarkThread { pid: 40, tid: 40, time_ns: 100 },
        Entry::Module(Module { kind: ModuleKind::File, path: "/bin/sim".into(), build_id: None }),
    ]
}

/// Half a second of a loop of 10 ms. Each half second finds another function.
fn half_second(number: u32) -> Vec<Entry> {
    let first = u64::from(number) * 500 * MILLISECOND + 200;
    let stack = Some(StackRef(number));
    let mut entries = vec![
        Entry::Frame { module: Some(ModuleRef(0)), offset: 0x1000 + u64::from(number) },
        Entry::Stack { parent: number.checked_sub(1).map(StackRef), frame: FrameRef(number) },
    ];
    for step in 0..50 {
        let time_ns = first + step * 10 * MILLISECOND;
        let thread = ThreadRef(0);
        entries.push(Entry::StepMark { thread: MarkThreadRef(0), time_ns, sim_time_ns: Some(time_ns as i64) });
        let (start_ns, end_ns) = (time_ns + MILLISECOND, time_ns + 3 * MILLISECOND);
        entries.push(Entry::Scope { thread: MarkThreadRef(0), name: MarkNameRef(0), start_ns, end_ns });
        entries.push(Entry::Sample(entry::Sample {
            time_ns: Some(time_ns + 2 * MILLISECOND),
            thread,
            cpu: Some(0),
            stack,
            event: EventRef(0),
            weight: 1_003_009,
        }));
        entries.push(Entry::Wait(entry::Wait {
            start_ns: time_ns + 5 * MILLISECOND,
            end_ns: time_ns + 6 * MILLISECOND,
            thread,
            stack,
            state: WaitState::Blocked,
            runnable_ns: Some(10),
            cpu: Some(0),
            waker: None,
            waker_stack: None,
            count: 1,
        }));
        let name = "rss_bytes".to_owned();
        entries.push(Entry::Counter { time_ns, process: ProcessRef(0), thread: None, name, value: 1 });
    }
    entries
}

/// The rows of all rounds together, and the capture without rows.
fn grown(rounds: Vec<Vec<Entry>>) -> (Rows, Growing) {
    let mut growing = Growing::default();
    let mut all = Rows::default();
    for entries in rounds {
        entries.into_iter().for_each(|entry| growing.take(entry));
        let rows = growing.grow(&mut NoSymbols);
        all.samples.extend(rows.samples);
        all.waits.extend(rows.waits);
        all.steps.extend(rows.steps);
        all.scopes.extend(rows.scopes);
        all.counters.extend(rows.counters);
    }
    (all, growing)
}

#[test]
fn rows_of_all_rounds_are_those_of_the_finished_capture() {
    let mut rounds = vec![definitions()];
    rounds.extend((0..4).map(half_second));
    rounds.push(vec![Entry::RecordingEnd(Box::default())]);
    let mut builder = Builder::default();
    rounds.concat().into_iter().for_each(|entry| builder.take(entry));
    let finished = builder.build(&mut NoSymbols);
    let (rows, growing) = grown(rounds);
    assert_eq!(rows.samples, finished.samples.to_vec());
    assert_eq!(rows.waits, finished.waits.iter().collect::<Vec<_>>());
    assert_eq!(rows.steps, finished.steps.to_vec());
    assert_eq!((rows.steps.len(), rows.scopes.len()), (199, 200));
    assert_eq!(rows.scopes, finished.scopes.to_vec());
    assert_eq!(rows.counters, finished.counters.to_vec());
    let live = growing.capture();
    assert_eq!((&live.stacks, &live.frames), (&finished.stacks, &finished.frames));
    assert_eq!(live.modules, finished.modules);
    assert!(growing.has_ended());
}

#[test]
fn steps_come_when_no_earlier_start_can() {
    let (rows, growing) = grown(vec![definitions(), half_second(0)]);
    let last_ns = growing.last_ns().unwrap();
    assert!(!rows.steps.is_empty());
    assert!(rows.steps.iter().all(|step| step.end_ns < last_ns - ORDERED_AFTER_NS));
    assert_eq!(rows.samples.len(), 50);
}

#[test]
fn a_mark_waits_for_the_record_of_its_thread() {
    let mut early = definitions();
    let thread = early.remove(3);
    let mark = |time_ns| Entry::StepMark { thread: MarkThreadRef(0), time_ns, sim_time_ns: None };
    early.push(mark(200));
    let (rows, growing) = grown(vec![early, vec![thread, mark(300), Entry::RecordingEnd(Box::default())]]);
    assert_eq!(rows.steps.len(), 1);
    assert_eq!(growing.marks_without_thread(), 0);
}

#[test]
fn marks_of_a_thread_that_is_never_recorded_are_counted() {
    let mut entries = definitions();
    entries.remove(3);
    entries.push(Entry::StepMark { thread: MarkThreadRef(0), time_ns: 200, sim_time_ns: None });
    let mut rounds = vec![entries];
    rounds.extend(vec![Vec::new(); 8]);
    let (rows, growing) = grown(rounds);
    assert_eq!((rows.steps.len(), growing.marks_without_thread()), (0, 1));
}

#[test]
fn scopes_that_are_written_together_have_their_depth() {
    let scope = |start_ns, end_ns| Entry::Scope { thread: MarkThreadRef(0), name: MarkNameRef(0), start_ns, end_ns };
    let (rows, _) = grown(vec![definitions(), vec![scope(120, 130), scope(110, 140)], vec![scope(105, 150)]]);
    let depths: Vec<(u64, u32)> = rows.scopes.iter().map(|scope| (scope.start_ns, scope.depth)).collect();
    assert_eq!(depths, [(110, 0), (120, 1), (105, 0)]);
}

#[test]
fn a_thread_that_runs_has_the_time_that_is_known_of_it() {
    let (_, growing) = grown(vec![definitions(), half_second(0)]);
    let thread = &growing.capture().threads[0];
    let last_wait_end_ns = 200 + 496 * MILLISECOND;
    assert_eq!((thread.start_ns, thread.end_ns), (Some(100), Some(last_wait_end_ns)));
    assert_eq!(thread.cpu_ns, Some(last_wait_end_ns - 100 - 50 * MILLISECOND));
    let end = Entry::ThreadEnd { thread: ThreadRef(0), time_ns: Some(900), cpu_ns: Some(7), runnable_ns: None };
    let (_, growing) = grown(vec![definitions(), half_second(0), vec![end]]);
    let thread = &growing.capture().threads[0];
    assert_eq!((thread.end_ns, thread.cpu_ns), (Some(900), Some(7)));
}

#[test]
fn samples_and_waits_wait_for_the_names_of_their_stacks_and_steps_do_not() {
    let mut growing = Growing::default();
    let add = |growing: &mut Growing, entries: Vec<Entry>| {
        entries.into_iter().for_each(|entry| growing.take(entry));
        let rows = growing.rows();
        (rows.samples.len(), rows.waits.len(), rows.steps.len() > 40)
    };
    add(&mut growing, definitions());
    assert_eq!(add(&mut growing, half_second(0)), (0, 0, false), "the last 100 ms may get earlier steps");
    let first = growing.unnamed().unwrap();
    assert_eq!(add(&mut growing, half_second(1)), (0, 0, true));
    assert!(growing.unnamed().is_none(), "the code before has no names yet");
    assert_eq!(growing.nameless_since(), Some(200 + 2 * MILLISECOND));
    assert_eq!(growing.known_until(ThreadId(0)), Some(0));
    growing.add_names(first.name(&mut NoSymbols));
    assert_eq!(add(&mut growing, Vec::new()), (50, 50, false), "rows of the first half second have names");
    assert_eq!(growing.nameless_since(), Some(500 * MILLISECOND + 200 + 2 * MILLISECOND));
    let second = growing.unnamed().unwrap();
    growing.add_names(second.name(&mut NoSymbols));
    assert_eq!(add(&mut growing, Vec::new()), (50, 50, false));
    assert!(growing.is_named() && growing.unnamed().is_none());
    assert_eq!(growing.known_until(ThreadId(0)), None);
}

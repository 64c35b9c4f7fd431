//! A trace that Perfetto's own Python package wrote, whole and damaged.

use stepscope_model::{Capture, WaitState};

use crate::{ImportOptions, Source, import};

/// Switches of two CPUs (columns and messages), a wake-up, marks of systrace; slices and a counter of a thread on another clock, with
/// interned and own names; a compressed packet.
const TRACE: &[u8] = include_bytes!("../../../../../fuzz/seeds/perfetto/sdk.pftrace");

fn read(bytes: &[u8]) -> Capture {
    import(Source::stream("it", bytes), &ImportOptions::default()).unwrap()
}

fn tid(capture: &Capture, thread: stepscope_model::ThreadId) -> u32 {
    capture.threads[thread.index()].tid
}

fn scopes(capture: &Capture) -> Vec<String> {
    let mut scopes: Vec<String> = capture
        .scopes
        .iter()
        .map(|it| format!("{} {}-{} {} {}", tid(capture, it.thread), it.start_ns, it.end_ns, it.depth, it.name))
        .collect();
    scopes.sort();
    scopes
}

#[test]
fn switches_slices_and_counters_fill_their_tables() {
    let capture = read(TRACE);
    let waits: Vec<_> = capture
        .waits
        .iter()
        .filter(|wait| tid(&capture, wait.thread) == 11 && wait.end_ns > wait.start_ns)
        .map(|wait| (wait.start_ns, wait.end_ns, wait.state, wait.runnable_ns, wait.waker.map(|it| tid(&capture, it))))
        .collect();
    assert_eq!(
        waits,
        [(1150, 1190, WaitState::Blocked, Some(20), Some(20)), (1200, 1230, WaitState::Preempted, Some(30), None),]
    );
    // The clock of the program is 500 ns behind the boot clock.
    assert_eq!(scopes(&capture), ["11 1110-1150 0 step", "11 1120-1140 1 physics", "20 1175-1176 0 send"]);
    let reading = &capture.counters[0];
    assert_eq!((&*reading.name, reading.time_ns, reading.value), ("entities", 1125, 42));
    let thread = capture.threads.iter().find(|thread| thread.tid == 11).unwrap();
    let process = &capture.processes[thread.process.unwrap().index()];
    assert_eq!((thread.name.as_str(), process.pid, process.executable.as_str()), ("gz sim", 10, "/usr/bin/gz"));
    assert!(capture.info.notes.iter().any(|note| note == "1 instant events fill no table and were skipped."));
}

#[test]
fn a_truncated_trace_keeps_what_is_whole_and_says_what_is_lost() {
    let capture = read(&TRACE[..TRACE.len() - 3]);
    // The end of the outer slice is in the last packet.
    assert_eq!(scopes(&capture), ["11 1120-1140 0 physics", "20 1175-1176 0 send"]);
    assert_eq!(capture.info.losses.malformed_records, 1);
    assert!(capture.info.notes[0].starts_with("The trace is damaged in 1 place; "), "{:?}", capture.info.notes);
}

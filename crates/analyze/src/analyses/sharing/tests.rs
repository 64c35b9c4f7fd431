use stepscope_model::{Capture, DataAccess, Process, ProcessId, ThreadId};

use super::tables::{LineOfFunction, tables};
use crate::analyses::metrics;
use crate::columns::read::cells;
use crate::drawn;
use crate::query::basis::Basis;

/// Threads `a`, `b` and `c` of a process, each in a function of its name.
fn capture() -> Capture {
    let mut capture = drawn::folded("a;sim::A 1\nb;sim::B 1\nc;sim::C 1");
    let process = capture.add_process(Process { pid: 7, ..Process::default() });
    capture.threads.iter_mut().for_each(|thread| thread.process = Some(process));
    capture
}

/// Accesses to a line: `thread offset bytes reads writes`, and local HITM if the CPU sampled them.
fn add(capture: &mut Capture, line: u64, text: &str) {
    for row in text.split(", ") {
        let words: Vec<&str> = row.split(' ').collect();
        let thread = capture.threads.iter().position(|thread| thread.name == words[0]).unwrap();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let hitm = words.get(5).map(|word| word.parse().unwrap());
        capture.data_accesses.push(DataAccess {
            thread: ThreadId::from_index(thread),
            stack: capture.samples[thread].stack,
            address: line + number(1),
            bytes: Some(number(2)).filter(|bytes| *bytes > 0),
            object: None,
            reads: number(3),
            writes: number(4),
            awaited: None,
            local_hitm: hitm,
            remote_hitm: hitm.map(|_| 0),
            latency_cycles: hitm.map(|hits: u64| 100 * hits),
        });
    }
}

/// Line, verdict, shared accesses and share of true sharing of each line.
fn lines(capture: &Capture) -> Vec<String> {
    let tables = drawn::selected(capture, &["sim::"], tables);
    cells(&tables[0], &["line", "verdict", "shared_accesses", "true_share"])
}

#[test]
fn threads_that_write_different_bytes_share_falsely_and_the_same_bytes_truly() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 30 30, b 8 8 30 30");
    add(&mut capture, 0x2000, "a 16 8 20 20, b 16 8 20 20, c 16 8 20 20");
    add(&mut capture, 0x3000, "a 0 8 50 50");
    add(&mut capture, 0x4000, "a 0 8 90 0, b 0 8 90 0");
    assert_eq!(
        lines(&capture),
        ["0x1000 | false sharing | 60 | 0", "0x2000 | true sharing | 60 | 100"],
        "a line of one thread and a line that nobody writes are left out"
    );
}

#[test]
fn metrics_count_what_happens_on_shared_lines_alone_and_only_what_was_recorded() {
    let metrics = |capture: &Capture| -> Vec<(String, f64)> {
        let all = drawn::selected(capture, &[], |selection| metrics::of(selection, Basis::PerSecond));
        let of_sharing = all.into_iter().filter(|metric| metric.name.starts_with("sharing."));
        of_sharing.map(|metric| (metric.name.into_owned(), metric.value)).collect()
    };
    let mut sampled = capture();
    (sampled.info.start_ns, sampled.info.end_ns) = (Some(0), Some(1_000_000_000));
    let mut decoded = sampled.clone();
    add(&mut sampled, 0x1000, "a 0 8 30 30 5, b 8 8 30 30 6, c 64 8 9 9 7");
    assert_eq!(metrics(&sampled), [("sharing.hitm".to_owned(), 11.0)]);
    add(&mut decoded, 0x1000, "a 0 8 30 30, b 8 8 30 30, c 64 8 9 9");
    decoded.data_accesses.iter_mut().for_each(|access| access.awaited = Some(4));
    assert_eq!(metrics(&decoded), [("sharing.awaited".to_owned(), 8.0)]);
}

#[test]
fn readers_of_one_writer_share_truly_and_a_stray_write_does_not_change_the_verdict() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 0 40, b 0 8 60 0, c 0 8 50 0");
    // Before the threads started, `c` wrote the counters of all.
    add(&mut capture, 0x2000, "a 0 8 40 40, b 8 8 40 40, c 0 8 0 1, c 8 8 0 1");
    assert_eq!(lines(&capture), ["0x2000 | false sharing | 82 | 3.542393", "0x1000 | true sharing | 80 | 100"]);
}

#[test]
fn a_line_with_own_and_common_bytes_has_both_and_few_samples_have_no_verdict() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 20 20, a 32 8 20 20, b 8 8 20 20, b 32 8 20 20");
    add(&mut capture, 0x2000, "a 0 8 3 3, b 0 8 3 3");
    assert_eq!(lines(&capture), ["0x1000 | both | 80 | 25", "0x2000 | - | 6 | 100"]);
}

#[test]
fn loads_of_modified_lines_decide_the_order_and_are_missing_in_software() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 90 90, b 8 8 90 90");
    add(&mut capture, 0x2000, "a 0 0 20 20 15, b 8 0 20 20 5");
    let tables = drawn::selected(&capture, &["sim::"], tables);
    assert_eq!(
        cells(&tables[0], &["line", "verdict", "offsets", "functions", "local_hitm", "remote_hitm", "latency"]),
        [
            "0x2000 | false sharing | 0 rw: a; 8 rw: b | sim::A, sim::B | 20 | 0 | 50",
            "0x1000 | false sharing | 0 rw: a; 8 rw: b | sim::A, sim::B | - | - | -",
        ]
    );
    assert_eq!(
        cells(&tables[1], &["line", "offset", "size", "thread", "function", "reads", "local_hitm"]),
        [
            "0x2000 | 0 | - | a | sim::A | 20 | 15",
            "0x2000 | 8 | - | b | sim::B | 20 | 5",
            "0x1000 | 0 | 8 | a | sim::A | 90 | -",
            "0x1000 | 8 | 8 | b | sim::B | 90 | -",
        ]
    );
}

#[test]
fn software_sampling_says_that_it_knows_no_cost_and_what_is_left_out() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 30 30, b 8 8 30 30");
    (capture.info.losses.private_accesses, capture.info.losses.dropped_accesses) = (Some(140), Some(5));
    let tables = drawn::selected(&capture, &["sim::"], tables);
    assert_eq!(
        tables[0].notes,
        [
            "Addresses were sampled in software: the table shows which lines several threads write, not what that costs.",
            "140 of 200 sampled accesses are to lines that one thread alone used.",
            "5 sampled accesses had no room and are not counted.",
        ]
    );
}

#[test]
fn addresses_of_two_processes_are_two_lines() {
    let mut capture = capture();
    let other = capture.add_process(Process { pid: 8, ..Process::default() });
    capture.threads[1].process = Some(other);
    add(&mut capture, 0x1000, "a 0 8 30 30, b 8 8 30 30");
    assert_eq!(lines(&capture), Vec::<String>::new());
    capture.threads[1].process = Some(ProcessId(0));
    assert_eq!(lines(&capture).len(), 1);
}

#[test]
fn a_function_has_its_lines() {
    let mut capture = capture();
    add(&mut capture, 0x1000, "a 0 8 30 30, b 8 8 30 30");
    let stack = capture.samples[1].stack;
    let rows = drawn::selected(&capture, &["sim::"], |selection| LineOfFunction::all(selection, |at| at == stack));
    assert_eq!((rows.len(), rows[0].samples, rows[0].verdict), (1, 30, Some("false sharing")));
}

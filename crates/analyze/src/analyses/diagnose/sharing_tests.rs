//! False sharing, and what looks like it.

use stepscope_model::{Capture, DataAccess, Process, ThreadId};

use super::*;
use crate::columns::read::cells;
use crate::drawn;

/// Threads `a`, `b` and `c` of a process, each in a function of its name.
fn capture() -> Capture {
    let mut capture = drawn::folded("a;sim::A 1\nb;sim::B 1\nc;sim::C 1");
    let process = capture.add_process(Process { pid: 7, ..Process::default() });
    capture.threads.iter_mut().for_each(|thread| thread.process = Some(process));
    capture
}

/// Accesses of 8 bytes: `thread offset reads writes`, and local HITM if the CPU sampled them.
fn add(capture: &mut Capture, line: u64, object: Option<&str>, text: &str) {
    for row in text.split(", ") {
        let words: Vec<&str> = row.split(' ').collect();
        let thread = capture.threads.iter().position(|thread| thread.name == words[0]).unwrap();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let hitm = words.get(4).map(|word| word.parse().unwrap());
        capture.data_accesses.push(DataAccess {
            thread: ThreadId::from_index(thread),
            stack: capture.samples[thread].stack,
            address: line + number(1),
            bytes: Some(8),
            object: object.map(|name| format!("{name}+0x{:x}", number(1)).into()),
            reads: number(2),
            writes: number(3),
            awaited: None,
            local_hitm: hitm,
            remote_hitm: hitm.map(|_| 0),
            latency_cycles: hitm.map(|hits: u64| 100 * hits),
        });
    }
}

fn found(capture: &Capture, columns: &[&str]) -> Vec<String> {
    drawn::selected(capture, &["sim::"], |selection| {
        let table = table(std::slice::from_ref(selection), &Calls::default());
        let kinds = cells(&table, &["kind"]);
        let rows = cells(&table, columns).into_iter().zip(kinds);
        let is_of_lines = |kind: &str| ["false-sharing", "contended-data"].contains(&kind);
        rows.filter(|(_, kind)| is_of_lines(kind)).map(|(row, _)| row).collect()
    })
}

const WORDS: [&str; 4] = ["finding", "function", "confidence", "gain"];

#[test]
fn threads_that_write_different_bytes_of_a_line_are_found_with_the_variable_and_without_a_gain() {
    let mut capture = capture();
    add(&mut capture, 0x1000, Some("counters"), "a 0 30 30, b 8 40 40");
    add(&mut capture, 0x1040, Some("counters"), "a 0 30 30, c 8 30 30");
    assert_eq!(
        found(&capture, &WORDS),
        ["Threads write different data on one cache line, of `counters` | sim::A | fair | -"]
    );
    let why = found(&capture, &["why", "confirm"]).swap_remove(0);
    assert!(why.contains("2 cache lines with 100.00 % of the sampled accesses"), "{why}");
    assert!(why.contains("0 rw: a; 8 rw: b, by sim::B, sim::A."), "{why}");
    assert!(why.contains("the cost, and the gain, is unknown"), "{why}");
    assert!(why.contains("HITM"), "{why}");
}

#[test]
fn three_quarters_of_the_time_right_behind_the_accesses_are_the_gain() {
    let mut capture = capture();
    add(&mut capture, 0x1000, Some("counters"), "a 0 30 30, b 8 40 40");
    capture.data_accesses.iter_mut().for_each(|access| access.awaited = Some(0));
    let unknown = ["Threads write different data on one cache line, of `counters` | sim::A | fair | -"];
    assert_eq!(found(&capture, &WORDS), unknown, "plain stores show no waits");
    capture.info.losses.private_accesses = Some(1_000);
    assert!(found(&capture, &WORDS).is_empty(), "few accesses, and no waits");

    capture.data_accesses[0].awaited = Some(1);
    let found = found(&capture, &["function", "confidence", "gain_share", "why"]).swap_remove(0);
    assert!(found.starts_with("sim::A | fair | 25 | "), "{found}");
    assert!(found.contains("33.33 % of the CPU time is spent right behind these accesses"), "{found}");
}

#[test]
fn data_that_several_threads_change_in_place_is_contended() {
    let contended = |change: fn(&mut DataAccess)| {
        let mut capture = capture();
        add(&mut capture, 0x1000, Some("next"), "a 0 30 30, b 0 40 40");
        capture.data_accesses.iter_mut().for_each(|access| {
            access.awaited = Some(1);
            change(access);
        });
        found(&capture, &["finding", "confidence", "gain_share"])
    };
    let expected = ["Threads change the same data at once, of `next` | fair | 50"];
    assert_eq!(contended(|_| ()), expected);
    assert!(contended(|access| access.awaited = Some(0)).is_empty(), "no CPU waits");
    assert!(contended(|access| access.awaited = None).is_empty(), "nothing says that CPUs wait");
    assert!(contended(|access| access.reads = 0).is_empty(), "handed over by stores");
}

#[test]
fn loads_that_found_the_line_modified_make_it_sure() {
    let mut capture = capture();
    add(&mut capture, 0x1000, None, "a 0 30 30 25, b 8 40 40 30");
    assert_eq!(
        found(&capture, &WORDS),
        ["Threads write different data on one cache line, in `sim::B` | sim::B | strong | -"]
    );
    let why = found(&capture, &["why"]).swap_remove(0);
    assert!(why.contains("55 sampled loads found the line modified in another core's cache."), "{why}");
}

#[test]
fn a_line_of_the_heap_is_weak_because_a_block_that_changes_hands_looks_the_same() {
    let mut capture = capture();
    add(&mut capture, 0x1000, None, "a 0 30 30, b 8 40 40");
    assert_eq!(
        found(&capture, &WORDS),
        ["Threads write different data on one cache line, in `sim::B` | sim::B | weak | -"]
    );
}

#[test]
fn shared_data_one_thread_after_the_other_and_lines_that_hardly_matter_are_no_false_sharing() {
    let with = |change: fn(&mut Capture)| {
        let mut capture = capture();
        change(&mut capture);
        found(&capture, &WORDS)
    };
    let same_bytes = with(|capture| add(capture, 0x1000, Some("total"), "a 0 30 30, b 0 40 40"));
    let partly = with(|capture| add(capture, 0x1000, Some("total"), "a 0 30 30, a 8 30 30, b 0 40 40, b 16 30 30"));
    let readers = with(|capture| add(capture, 0x1000, Some("state"), "a 0 0 40, b 0 60 0"));
    let few = with(|capture| add(capture, 0x1000, Some("counters"), "a 0 3 3, b 8 4 4"));
    let cold = with(|capture| {
        add(capture, 0x1000, Some("counters"), "a 0 30 30, b 8 40 40");
        capture.info.losses.private_accesses = Some(10_000);
    });
    let after_each_other = with(|capture| {
        add(capture, 0x1000, None, "a 0 30 30, b 8 40 40");
        capture.threads[0].end_ns = Some(50);
        capture.threads[1].start_ns = Some(50);
    });
    for (case, found) in [same_bytes, partly, readers, few, cold, after_each_other].into_iter().enumerate() {
        assert!(found.is_empty(), "case {case}: {found:?}");
    }
}

#[test]
fn code_that_is_not_owned_decides_nothing() {
    let mut capture = capture();
    add(&mut capture, 0x1000, Some("counters"), "a 0 30 30, b 8 40 40");
    capture.data_accesses.iter_mut().for_each(|access| access.stack = None);
    assert!(found(&capture, &WORDS).is_empty());
}

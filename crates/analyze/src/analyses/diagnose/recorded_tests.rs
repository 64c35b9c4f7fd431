//! Findings with recorded allocations and system calls.

use std::ops::Range;

use stepscope_model::{Capture, Counter, ProcessId, SystemCalls, ThreadId};

use super::tests::{found, loading, looping, work};
use super::*;
use crate::columns::read::cells;
use crate::drawn;

/// Steps last from 0 to 100 ms; the first one does not count.
const STEPS: Range<u64> = 1_000_000..100_000_000;

fn columns_of(capture: &Capture, columns: &[&str]) -> Vec<String> {
    drawn::selected(capture, &["sim::"], |selection| {
        cells(&table(std::slice::from_ref(selection), &Calls::default()), columns)
    })
}

/// The same capture with allocations; its thread gets a process.
fn with_heap(mut capture: Capture, interval: Range<u64>, text: &str) -> Capture {
    if capture.processes.is_empty() {
        let process = capture.add_process(stepscope_model::Process { pid: 1, ..Default::default() });
        capture.threads[0].process = Some(process);
    }
    drawn::allocations(&mut capture, interval, text);
    capture
}

/// Calls of 1 µs each in each of the 100 steps, or as many in loading: name, stack, file, number, failed ones.
type Call<'t> = (&'t str, &'t str, &'t str, u64, u64);

fn with_calls(mut capture: Capture, calls: &[Call<'_>]) -> Capture {
    for ms in 0..100_u64 {
        for &(call, stack, file, count, errors) in calls {
            drawn::system_calls(&mut capture, ms * 1_000_000 + 500_000, stack, call, count);
            let row: &mut SystemCalls = capture.system_calls.last_mut().unwrap();
            (row.file, row.errors) = (Some(file.replace("{ms}", &ms.to_string()).into()), errors);
            (row.total_ns, row.bytes) = (count * 1_000, count * 100_000);
        }
    }
    capture
}

const FIND: &str = "sim::Look;std::map<std::string, int>::find";

#[test]
fn temporaries_of_a_recorded_heap_are_found_at_a_small_cost_and_are_sure() {
    let capture = || {
        looping(|step, tenth| match (step % 5, tenth) {
            (0, 0) => "sim::Look;malloc".to_owned(),
            (step, 1) if step % 5 < 4 => FIND.to_owned(),
            _ => "sim::Move".to_owned(),
        })
    };
    assert_eq!(
        columns_of(&capture(), &["finding", "confidence"]),
        ["`sim::Look` makes a temporary for each look-up | fair"]
    );
    let keys = format!("main;main;sim::Step;sim::Look;malloc {} {} {} 0 0", 99 * 40, 99 * 40 * 24, 99 * 40 - 3);
    let columns = ["finding", "confidence", "confirm", "why"];
    assert_eq!(
        columns_of(&with_heap(capture(), STEPS, &keys), &columns),
        ["`sim::Look` makes a temporary for each look-up | strong | - | \
          Allocation and growing containers take 2.00 % of the CPU time, all the time. See `stepscope explain 'sim::Look' RUN`.\n\
          It makes 40.0 allocations per step, 99.92 % of them temporary, 24 B each. See `stepscope show RUN --view heap --sort temporary`."]
    );
}

#[test]
fn where_the_heap_shows_hardly_any_allocation_there_is_no_finding() {
    let insert = "sim::Poses;std::map<int, int>::insert;operator new;malloc";
    let capture = || looping(|_, tenth| work(tenth, &[(4, insert)], "sim::Move"));
    let at = |calls: u64| format!("main;main;sim::Step;{insert} {calls} {} 0 0 0", calls * 48);
    let many = with_heap(capture(), STEPS, &at(99 * 200));
    assert_eq!(
        columns_of(&many, &["finding", "confidence"]),
        ["`sim::Poses` builds a container in every step | strong"]
    );
    assert_eq!(found(&with_heap(capture(), STEPS, &at(3))), [""; 0]);
}

const OPEN: &str = "sim::Save;open64;__x64_sys_openat [kernel]";

#[test]
fn a_file_that_is_opened_for_each_record_is_distinguished_from_files_that_are_opened_once() {
    let capture = || looping(|_, tenth| work(tenth, &[(1, OPEN)], "sim::Move"));
    let save = "main;main;sim::Step;sim::Save";
    let calls = |file| {
        let open = (("openat", save, file, 20, 0), ("write", save, file, 20, 0), ("close", save, file, 20, 0));
        with_calls(capture(), &[open.0, open.1, open.2])
    };
    assert_eq!(
        columns_of(&calls("/tmp/stats"), &["kind", "confidence", "confirm"]),
        ["file-opened-each-time | strong | -"]
    );
    assert!(columns_of(&calls("/tmp/stats"), &["why"])[0].contains(
        "It opens 1 file 2,000 times (20.0 per step): `/tmp/stats` is opened 2,000 times for 2,000 writes and 0 reads."
    ));
    // Twenty calls are of one file a step: that is 20 opens of each. One open of each is no finding.
    let once = with_calls(capture(), &[("openat", save, "/tmp/{ms}", 1, 0), ("write", save, "/tmp/{ms}", 1, 0)]);
    assert_eq!(found(&once), [""; 0]);
}

#[test]
fn a_table_of_the_kernel_that_is_read_for_each_process_gains_all_reads_but_one() {
    let read = "sim::Watch;read;__x64_sys_read [kernel];seq_read_iter [kernel]";
    let capture = || looping(|_, tenth| work(tenth, &[(8, read)], "sim::Move"));
    assert_eq!(found(&capture()), ["kernel-files-read-again | sim::Watch | -"]);
    let watch = "main;main;sim::Step;sim::Watch";
    let paths: Vec<String> = (0..40).map(|pid| format!("/proc/{pid}/net/tcp")).collect();
    let calls: Vec<Call<'_>> =
        paths.iter().flat_map(|path| [("openat", watch, &**path, 1, 0), ("read", watch, &**path, 2, 0)]).collect();
    let each = with_calls(capture(), &calls);
    assert_eq!(
        columns_of(&each, &["finding", "gain_share", "confidence"]),
        ["`sim::Watch` reads `/proc/[pid]/net/tcp` for each of 40 processes in every step | 78.000002 | strong"]
    );
    let once = with_calls(capture(), &[("openat", watch, "/proc/stat", 1, 0), ("read", watch, "/proc/stat", 2, 0)]);
    assert_eq!(found(&once), [""; 0], "a monitor may read each file once in a step");
}

#[test]
fn a_file_that_each_process_reads_is_found_by_its_calls() {
    let mut capture = loading(|_| "sim::Parse".to_owned());
    let read = "main;main;sim::Read";
    let (open, data) = (("openat", read, "/maps/world.json", 1, 0), ("read", read, "/maps/world.json", 300, 0));
    capture = with_calls(capture, &[open, data]);
    // 100 opens: 99 of 100 reads, which take 30.1 ms of 100 ms in all.
    assert_eq!(
        columns_of(&capture, &["kind", "finding", "gain_share", "how"]),
        ["file-read-again | `sim::Read` reads `/maps/world.json` 100 times | 29.799 | time in system calls"]
    );
    let second = capture.add_process(stepscope_model::Process { pid: 2, ..Default::default() });
    let first = capture.add_process(stepscope_model::Process { pid: 1, ..Default::default() });
    capture.threads[0].process = Some(first);
    let other = capture.add_thread(stepscope_model::Thread { tid: 9, process: Some(second), ..Default::default() });
    capture.system_calls.iter_mut().skip(100).for_each(|row| row.thread = other);
    assert_eq!(columns_of(&capture, &["finding"]), ["`sim::Read` reads `/maps/world.json` in each of 2 processes"]);
    let written = with_calls(capture, &[("write", read, "/maps/world.json", 1, 0)]);
    assert_eq!(found(&written), [""; 0], "what is written may have changed");
}

#[test]
fn look_ups_that_fail_are_found_where_they_cost_time() {
    let capture = || loading(|_| "sim::Parse".to_owned());
    let search = "main;main;sim::Find;openat";
    let calls = [("openat", search, "/opt/{ms}/libode.so.8", 200, 200), ("openat", search, "/lib/libode.so.8", 1, 0)];
    assert_eq!(
        columns_of(&with_calls(capture(), &calls), &["kind", "finding", "function", "gain_share", "confidence"]),
        ["failed-look-ups | Libraries are looked for where they are not | sim::Find | 20 | strong"]
    );
    let files = with_calls(capture(), &[("newfstatat", search, "/maps/{ms}.sdf", 200, 200)]);
    assert_eq!(columns_of(&files, &["finding"]), ["`sim::Find` asks for files that do not exist"]);
    let few = with_calls(capture(), &[("newfstatat", search, "/maps/{ms}.sdf", 4, 4)]);
    assert_eq!(found(&few), [""; 0], "what takes less than 1 % is nothing to change");
}

#[test]
fn a_heap_that_grows_is_found_with_the_function_that_holds_it_and_a_full_cache_is_not() {
    let growing = |until: u64| {
        let mut capture = looping(|_, _| "sim::Move".to_owned());
        capture = with_heap(capture, 0..2_000_000, "main;main;sim::Log;malloc 10 1000 0 1000 0");
        drawn::allocations(&mut capture, 2_000_000..90_000_000, "main;main;sim::Log;malloc 90 900000 0 901000 0");
        drawn::allocations(&mut capture, 2_000_000..90_000_000, "main;main;sim::Keep;malloc 1 10 0 10 0");
        let name = capture.intern_text("heap_live_bytes");
        for ms in 0..100_u64 {
            let value = 1_000_000 + 10_000 * ms.min(until) as i64 + if ms % 3 == 0 { 500_000 } else { 0 };
            let process = Some(ProcessId(0));
            capture.counters.push(Counter {
                time_ns: ms * 1_000_000,
                process,
                thread: None,
                name: name.clone(),
                value,
            });
        }
        capture
    };
    assert_eq!(
        columns_of(&growing(100), &["kind", "finding", "confidence", "gain"]),
        ["memory-grows-over-time | `sim::Log` holds ever more memory | strong | -"]
    );
    assert_eq!(found(&growing(30)), [""; 0], "it grows at first only");
}

#[test]
fn files_of_processes_are_one_file_but_for_the_number() {
    let mut capture = looping(|_, _| "sim::Move".to_owned());
    let at = "main;main;sim::Step";
    let calls = [
        ("read", at, "/proc/12/stat", 1, 0),
        ("read", at, "/proc/13/stat", 1, 0),
        ("read", at, "/proc/self/stat", 1, 0),
    ];
    capture = with_calls(capture, &calls);
    assert_eq!(capture.system_calls[0].thread, ThreadId(0));
    drawn::selected(&capture, &["sim::"], |selection| {
        let seen = seen::Seen::of(selection).unwrap();
        let files = recorded::Recorded::files(selection, seen.recorded.calls(|_| true));
        let named: Vec<(&str, usize, u64)> = files.iter().map(|one| (&*one.path, one.files, one.reads)).collect();
        assert_eq!(named, [("/proc/[pid]/stat", 2, 200), ("/proc/self/stat", 1, 100)]);
    });
}

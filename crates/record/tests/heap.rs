//! Heaps of programs whose allocations are known.

mod launched;

use std::path::Path;
use std::process::Command;

use stepscope_model::{Allocation, Capture, Dimension, DimensionStatus};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

use launched::record;

/// Compiles a program of the heap library's tests. `None`, with a line, if this machine cannot.
fn program(test: &str, folder: &Path) -> Option<std::path::PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap/tests/programs/counts.cc");
    let program = folder.join("counts");
    let compiled = Command::new("g++").args(["-O1", "-g"]).arg(source).arg("-o").arg(&program).arg("-pthread").status();
    if compiled.is_ok_and(|status| status.success()) && cfg!(target_arch = "x86_64") {
        return Some(program);
    }
    println!("skipped: {test}: needs g++ and x86-64");
    None
}

fn with_heap() -> Options {
    Options { dimensions: [Dimension::Cpu, Dimension::Heap].into(), ..Options::default() }
}

/// Names of a stack, from the leaf on.
fn names<'c>(capture: &'c Capture, row: &Allocation) -> Vec<&'c str> {
    capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect()
}

/// The rows of stacks with this function.
fn of<'c>(capture: &'c Capture, function: &str) -> Vec<&'c Allocation> {
    capture.allocations.iter().filter(|row| names(capture, row).contains(&function)).collect()
}

#[test]
fn allocations_have_named_stacks_and_exact_counts() {
    let test = "allocations_have_named_stacks_and_exact_counts";
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path()) else { return };
    let Some(capture) = record(test, Launch::new([program.into_os_string()]), &with_heap()) else { return };
    assert_eq!(capture.info.dimensions[&Dimension::Heap], DimensionStatus::Recorded);
    let sum = |function: &str, of_row: fn(&Allocation) -> u64| -> u64 {
        of(&capture, function).into_iter().map(of_row).sum()
    };
    assert_eq!(sum("temporaries", |row| row.calls), 1000);
    assert_eq!(sum("temporaries", |row| row.temporary), 1000);
    assert_eq!(sum("not_temporary", |row| row.bytes), 45_000);
    assert_eq!(sum("leaks", |row| row.calls), 7);
    assert_eq!(of(&capture, "leaks").iter().map(|row| row.live_bytes).max(), Some(7_000));
    let leaks = of(&capture, "leaks")[0];
    assert_eq!(names(&capture, leaks)[..2], ["leaks", "main"]);
    assert!(leaks.thread.is_some());
    assert!(capture.counters.iter().all(|counter| counter.value >= 0));
}

#[test]
fn children_that_fork_and_run_other_programs_are_counted_by_process() {
    let test = "children_that_fork_and_run_other_programs_are_counted_by_process";
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path()) else { return };
    let path = program.to_string_lossy();
    let script = format!("'{path}' fork; '{path}' exec; '{path}' kill; true");
    let Some(capture) = record(test, Launch::new(["sh", "-c", &script]), &with_heap()) else { return };
    let calls = |function: &str| of(&capture, function).iter().map(|row| row.calls).sum::<u64>();
    // The parent of `fork`, the program after `exec`, and the killed one.
    assert_eq!(calls("leaks"), 3 * 7);
    assert_eq!(calls("in_child"), 2 * 33);
    let mut processes: Vec<_> = of(&capture, "leaks").iter().map(|row| row.process).collect();
    processes.dedup();
    assert_eq!(processes.len(), 3);
}

#[test]
fn a_static_program_has_no_heap_and_says_why() {
    let test = "a_static_program_has_no_heap_and_says_why";
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("none.c"), folder.path().join("none"));
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let compiled = Command::new("gcc").args(["-static", "-o"]).arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return println!("skipped: {test}: no static C library");
    }
    let Some(capture) = record(test, Launch::new([program.into_os_string()]), &with_heap()) else { return };
    let DimensionStatus::Missing { reason, .. } = &capture.info.dimensions[&Dimension::Heap] else {
        panic!("{:?}", capture.info.dimensions)
    };
    assert!(reason.contains("static"), "{reason}");
    assert!(capture.allocations.is_empty());
}

#[test]
fn a_program_with_a_malloc_of_its_own_has_no_heap_and_says_why() {
    let test = "a_program_with_a_malloc_of_its_own_has_no_heap_and_says_why";
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("own.c"), folder.path().join("own"));
    let text = "#include <stddef.h>
        static char pool[1 << 20];
        static size_t used;
        void *malloc(size_t size) { void *block = pool + used; used += (size + 15) & ~(size_t)15; return block; }
        void free(void *block) {}
        int main(void) { return malloc(100) == NULL; }";
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("gcc").args(["-fno-builtin", "-o"]).arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) || !cfg!(target_arch = "x86_64") {
        return println!("skipped: {test}: needs gcc and x86-64");
    }
    let Some(capture) = record(test, Launch::new([program.into_os_string()]), &with_heap()) else { return };
    let DimensionStatus::Partial { lacks } = &capture.info.dimensions[&Dimension::Heap] else {
        panic!("{:?}", capture.info.dimensions)
    };
    assert!(lacks.iter().any(|lack| lack.contains("an allocator of its own")), "{lacks:?}");
}

//! Cache lines of programs whose sharing is known, by addresses that are sampled in software.

mod launched;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_model::{CACHE_LINE_BYTES, Capture, DataAccess, Dimension, DimensionStatus};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

use launched::record;

/// Compiles the program. `None`, with a line, if this machine cannot.
fn program(test: &str, folder: &Path, optimised: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sharing.c");
    let program = folder.join("sharing");
    let mut compiler = Command::new("gcc");
    compiler.args([optimised, "-g", "-pthread"]).arg(source).arg("-o").arg(&program);
    if compiler.status().is_ok_and(|status| status.success()) {
        return Some(program);
    }
    println!("skipped: {test}: needs gcc");
    None
}

/// Records the program in a mode.
fn recorded_with(test: &str, optimised: &str, mode: &str, options: &Options) -> Option<Capture> {
    let folder = tempfile::tempdir().unwrap();
    let program = program(test, folder.path(), optimised)?;
    record(test, Launch::new([program.into_os_string(), mode.into()]), options)
}

/// Records the program in a mode. `None` where the CPU samples accesses itself, or nothing can be recorded.
fn recorded(test: &str, optimised: &str, mode: &str) -> Option<Capture> {
    let dimensions = [Dimension::Cpu, Dimension::Sharing].into();
    let capture = recorded_with(test, optimised, mode, &Options { dimensions, ..Options::default() })?;
    match &capture.info.dimensions[&Dimension::Sharing] {
        DimensionStatus::Partial { lacks } if lacks.iter().any(|lack| lack.contains("code at CPU samples")) => {
            Some(capture)
        }
        status => {
            println!("skipped: {test}: {status:?}");
            None
        }
    }
}

/// Threads by offset, of all accesses to a global variable that `wanted` accepts.
fn offsets(capture: &Capture, object: &str, wanted: impl Fn(&DataAccess) -> bool) -> BTreeMap<u64, BTreeSet<u32>> {
    let mut offsets: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let is_of = |access: &&DataAccess| access.object.as_ref().is_some_and(|name| name.starts_with(object));
    for access in capture.data_accesses.iter().filter(is_of).filter(|access| wanted(access)) {
        offsets.entry(access.address % CACHE_LINE_BYTES).or_default().insert(access.thread.0);
    }
    offsets
}

#[test]
fn counters_on_one_line_are_used_at_different_offsets() {
    let test = "counters_on_one_line_are_used_at_different_offsets";
    for optimised in ["-O2", "-O0"] {
        let Some(capture) = recorded(test, optimised, "packed") else { return };
        // Which of a counter's instructions is hit more often, its read or its write, is up to the CPU.
        let written = offsets(&capture, "packed_counters", |access| access.writes > 0);
        assert!(!written.is_empty(), "{optimised}");
        let found = offsets(&capture, "packed_counters", |_| true);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 8], "{optimised}: {found:?}");
        assert!(found.values().all(|threads| threads.len() == 1), "{optimised}: {found:?}");
        assert_ne!(found[&0], found[&8], "{optimised}");
        assert!(capture.data_accesses.iter().all(|access| access.local_hitm.is_none()), "software knows no cost");
    }
}

#[test]
fn padded_counters_are_not_shared() {
    let test = "padded_counters_are_not_shared";
    let Some(capture) = recorded(test, "-O2", "padded") else { return };
    assert_eq!(offsets(&capture, "padded_counters", |_| true), BTreeMap::new());
    assert!(capture.info.losses.private_accesses.is_some_and(|count| count > 0));
}

#[test]
fn one_atomic_counter_is_written_by_all_at_one_offset() {
    let test = "one_atomic_counter_is_written_by_all_at_one_offset";
    let Some(capture) = recorded(test, "-O2", "atomic") else { return };
    let found = offsets(&capture, "one_counter", |access| access.reads > 0 && access.writes > 0);
    assert_eq!(found.iter().map(|(offset, threads)| (*offset, threads.len())).collect::<Vec<_>>(), [(0, 2)]);
}

#[test]
fn readers_of_one_writer_are_distinguished_from_it() {
    let test = "readers_of_one_writer_are_distinguished_from_it";
    let Some(capture) = recorded(test, "-O2", "publish") else { return };
    let writers = offsets(&capture, "published", |access| access.writes > 0);
    let readers = offsets(&capture, "published", |access| access.reads > 0);
    assert_eq!((writers[&0].len(), readers[&0].len()), (1, 1));
    assert_ne!(writers, readers);
}

#[test]
fn a_recording_that_does_not_ask_for_it_has_shared_lines_and_what_waits_for_them() {
    let test = "a_recording_that_does_not_ask_for_it_has_shared_lines_and_what_waits_for_them";
    let Some(capture) = recorded_with(test, "-O2", "atomic", &Options::default()) else { return };
    assert!(!capture.info.dimensions.contains_key(&Dimension::Sharing), "{:?}", capture.info.dimensions);
    let found = offsets(&capture, "one_counter", |access| access.awaited.is_some_and(|count| count > 0));
    assert_eq!(found.iter().map(|(offset, threads)| (*offset, threads.len())).collect::<Vec<_>>(), [(0, 2)]);
}

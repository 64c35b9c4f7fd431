//! The preloaded library in real programs: exact counts, and stacks that a second unwinder checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use stepscope_heap::layout::{Record, VARIABLE, flag};
use stepscope_heap::{LIBRARY, Snapshot, TableFile};
use tempfile::TempDir;

/// A folder with a compiled program and the library.
struct Program {
    folder: TempDir,
}

/// The sums of a table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    bytes: u64,
    temporary: u64,
    frees: u64,
    foreign_frees: u64,
    live_bytes: i64,
}

fn sums<'a>(records: impl IntoIterator<Item = &'a Record>) -> Sums {
    let mut sums = Sums::default();
    for record in records {
        sums.calls += record.calls;
        sums.bytes += record.bytes;
        sums.temporary += record.temporary;
        sums.frees += record.frees;
        sums.foreign_frees += record.foreign_frees;
        sums.live_bytes += record.live_bytes();
    }
    sums
}

impl Program {
    /// Compiles a program of `tests/programs`. `None`, with a line, if this machine cannot.
    fn compile(test: &str, source: &str, flags: &[&str]) -> Option<Self> {
        let Some(library) = LIBRARY else {
            println!("skipped: {test}: heap recording is for x86-64");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let program = folder.path().join("program");
        let compiler =
            Command::new("g++").args(flags).arg("-g").arg(&source).arg("-o").arg(&program).arg("-pthread").status();
        if !compiler.is_ok_and(|status| status.success()) {
            println!("skipped: {test}: g++ is missing, or does not know {flags:?}");
            return None;
        }
        fs::write(folder.path().join("library.so"), library).unwrap();
        Some(Self { folder })
    }

    fn command(&self, options: &str) -> Command {
        let mut command = Command::new(self.folder.path().join("program"));
        let prefix = self.folder.path().join("table-");
        command
            .env("LD_PRELOAD", self.folder.path().join("library.so"))
            .env(VARIABLE, format!("{};ticks=1000;{options}", prefix.display()));
        command
    }

    /// Runs it, and reads its tables in the order in which they were made.
    fn run(&self, arguments: &[&str], options: &str) -> (ExitStatus, Vec<(TableFile, Snapshot)>) {
        let status = self.command(options).args(arguments).status().unwrap();
        (status, self.tables())
    }

    fn tables(&self) -> Vec<(TableFile, Snapshot)> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let is_table = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("table-");
        let mut tables: Vec<_> = files.filter(is_table).map(|path| read(&path)).collect();
        tables.sort_by_key(|(_, snapshot)| snapshot.header.start_ns);
        tables
    }
}

fn read(path: &Path) -> (TableFile, Snapshot) {
    let mut table = TableFile::open(path).unwrap().unwrap();
    let snapshot = table.read().unwrap();
    fs::remove_file(path).unwrap();
    (table, snapshot)
}

#[test]
fn a_snapshot_uses_the_memory_of_the_one_before() {
    let test = "a_snapshot_uses_the_memory_of_the_one_before";
    let Some(program) = Program::compile(test, "counts.cc", &["-O1"]) else { return };
    let (status, mut tables) = program.run(&["all"], "");
    assert!(status.success());
    let (mut table, first) = tables.swap_remove(0);
    let memory = (first.records.as_ptr(), first.records.len());
    assert!(memory.1 > 0);
    table.recycle(first);
    let second = table.read().unwrap();
    assert_eq!((second.records.as_ptr(), second.records.len()), memory);
}

#[test]
fn counts_of_the_whole_family_are_exact() {
    let Some(program) = Program::compile("counts_of_the_whole_family_are_exact", "counts.cc", &["-O1"]) else { return };
    let (status, tables) = program.run(&["all"], "verify=1");
    assert!(status.success());
    let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    let family = 33 + 200 + 400 + 640 + 256 + 96 + 5000 + 8192 + 1 + 80 + 128 + 77 + 5;
    let expected = Sums {
        calls: 1000 + 1000 + 7 + 13,
        bytes: 100_000 + 45_000 + 7_000 + family,
        temporary: 1000 + 13,
        frees: 1000 + 1000 + 13,
        foreign_frees: 0,
        live_bytes: 7_000,
    };
    // libstdc++ takes a reserve for exceptions when it is loaded.
    let reserve = |record: &&Record| record.bytes != 72_704;
    let mut sums = sums(snapshot.records.iter().filter(reserve));
    // `free(two)` follows `free(one)`, and no allocation came between `two` and its release.
    assert_eq!(sums.temporary, expected.temporary + 500);
    sums.temporary = expected.temporary;
    assert_eq!(sums, expected);
    assert_eq!((snapshot.header.missed, snapshot.header.unknown_frees, snapshot.header.mismatches), (0, 0, 0));
    assert_eq!(snapshot.header.flags, 0);
}

#[test]
fn blocks_freed_by_other_threads_are_counted_as_such() {
    let test = "blocks_freed_by_other_threads_are_counted_as_such";
    let Some(program) = Program::compile(test, "counts.cc", &["-O2"]) else { return };
    let (_, tables) = program.run(&["threads"], "verify=1");
    let [(table, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    let of_size = |bytes: u64| snapshot.records.iter().filter(move |record| record.bytes == bytes * record.calls);
    let blocks: Vec<_> = of_size(48).filter(|record| record.calls == 200).collect();
    let [allocated] = blocks[..] else { panic!("{blocks:?}") };
    assert_eq!((allocated.frees, allocated.foreign_frees, allocated.temporary), (0, 0, 0));
    let released = snapshot.records.iter().find(|record| record.foreign_frees == 200).unwrap();
    assert_ne!(released.thread, allocated.thread);
    assert_eq!((released.node, released.foreign_freed_bytes), (allocated.node, 200 * 48));
    let short = sums(of_size(16).filter(|record| record.calls == 50));
    assert_eq!((short.calls, short.temporary), (40 * 8 * 50, 40 * 8 * 50));
    let (stack, _) = table.stack(allocated.node);
    assert!(stack.len() >= 3, "{stack:x?}");
    assert_eq!(snapshot.header.mismatches, 0);
}

#[test]
fn allocations_after_a_silence_are_a_burst_of_their_own() {
    let test = "allocations_after_a_silence_are_a_burst_of_their_own";
    let Some(program) = Program::compile(test, "counts.cc", &["-O2"]) else { return };
    let (_, tables) = program.run(&["bursts"], "");
    let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    let (id, record) = snapshot.records.iter().enumerate().find(|(_, record)| record.calls == 5 * 33).unwrap();
    let ended: Vec<_> = snapshot.bursts.iter().filter(|burst| burst.record as usize == id).collect();
    let counts: Vec<u64> = ended.iter().map(|burst| burst.calls).collect();
    assert!([33, 66, 99, 132].iter().all(|count| counts.contains(count)), "{counts:?}");
    assert!(ended.iter().all(|burst| burst.bytes == burst.calls && burst.first_ticks <= burst.last_ticks), "{ended:?}");
    // 20 ms of sleep, at 1000 ticks a µs at least.
    let last = ended.iter().find(|burst| burst.calls == 132).unwrap();
    assert!(record.burst_first - last.last_ticks > 10_000_000, "{last:?} {record:?}");
    assert!(!snapshot.has_lost_bursts);
}

#[test]
fn the_peak_and_its_owners_are_exact() {
    let Some(program) = Program::compile("the_peak_and_its_owners_are_exact", "counts.cc", &["-O2"]) else { return };
    let (_, tables) = program.run(&["peak"], "");
    let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    let peak: i64 = snapshot.records.iter().map(|record| record.at_peak(snapshot.header.epoch)).sum();
    assert_eq!(peak, snapshot.header.peak_bytes);
    let at_peak = |bytes: u64| {
        let of = snapshot.records.iter().find(|record| record.bytes == bytes * record.calls).unwrap();
        of.at_peak(snapshot.header.epoch)
    };
    assert_eq!((at_peak(1 << 20), at_peak(1000), at_peak(70_000)), (1 << 20, 1000, 0));
}

#[test]
fn children_and_programs_after_exec_have_tables_of_their_own() {
    let test = "children_and_programs_after_exec_have_tables_of_their_own";
    let Some(program) = Program::compile(test, "counts.cc", &["-O1"]) else { return };
    let calls = |bytes: u64, snapshot: &Snapshot| {
        sums(snapshot.records.iter().filter(|record| record.bytes == bytes * record.calls)).calls
    };
    let (_, tables) = program.run(&["fork"], "");
    let [(_, parent), (_, child)] = &tables[..] else { panic!("{} tables", tables.len()) };
    assert_eq!((calls(1000, parent), calls(1, parent)), (7, 0));
    assert_eq!((calls(1000, child), calls(1, child)), (0, 33));
    assert_eq!((parent.header.unknown_frees, child.header.unknown_frees), (0, 1));
    assert_ne!(parent.header.pid, child.header.pid);
    let (_, tables) = program.run(&["exec"], "");
    let [(_, before), (_, after)] = &tables[..] else { panic!("{} tables", tables.len()) };
    assert_eq!((calls(1, before), calls(1000, after)), (33, 7));
    assert_eq!(before.header.pid, after.header.pid);
}

#[test]
fn a_killed_program_loses_nothing() {
    let Some(program) = Program::compile("a_killed_program_loses_nothing", "counts.cc", &["-O1"]) else { return };
    let (status, tables) = program.run(&["kill"], "");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    assert!(snapshot.records.iter().any(|record| (record.calls, record.live_bytes()) == (7, 7000)));
}

#[test]
fn stacks_are_those_of_a_full_walk_and_of_the_compilers_unwinder() {
    let test = "stacks_are_those_of_a_full_walk_and_of_the_compilers_unwinder";
    for flags in
        [&["-O2"][..], &["-O0"], &["-O3", "-fno-omit-frame-pointer"], &["-O2", "-mstackrealign", "-fcf-protection"]]
    {
        let Some(program) = Program::compile(test, "stacks.cc", flags) else { return };
        let (status, tables) = program.run(&[], "verify=1");
        assert!(status.success());
        let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
        assert!(snapshot.header.verified > 8_000, "{}", snapshot.header.verified);
        assert_eq!(snapshot.header.mismatches, 0, "{flags:?}");
        assert_eq!(snapshot.header.missed, 0);
    }
}

#[test]
fn samples_estimate_calls_and_bytes() {
    let Some(program) = Program::compile("samples_estimate_calls_and_bytes", "counts.cc", &["-O1"]) else { return };
    let (_, tables) = program.run(&["all"], "every=1000");
    let [(_, snapshot)] = &tables[..] else { panic!("{} tables", tables.len()) };
    assert_eq!(snapshot.header.flags, flag::SAMPLED);
    let (calls, bytes) =
        snapshot.threads.iter().fold((0, 0), |(calls, bytes), thread| (calls + thread.calls, bytes + thread.bytes));
    // The exact totals, with the reserve of libstdc++.
    assert_eq!(calls, 2_021);
    let estimated = sums(&snapshot.records);
    // Some 170 samples: a standard deviation of 8 %.
    assert!((estimated.bytes as f64 / bytes as f64 - 1.0).abs() < 0.6, "{estimated:?} of {bytes}");
    assert!(estimated.frees <= estimated.calls);
}

#[test]
fn the_environment_without_the_variable_records_nothing() {
    let test = "the_environment_without_the_variable_records_nothing";
    let Some(program) = Program::compile(test, "counts.cc", &["-O1"]) else { return };
    let status = program.command("").env_remove(VARIABLE).arg("all").status().unwrap();
    assert!(status.success());
    assert!(program.tables().is_empty());
}

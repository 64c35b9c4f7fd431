//! Logs and tables of strace: drawn, and of one program.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::import::{Source, import};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name)
}

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

fn open(path: &Path) -> Capture {
    import(Source::open(path).unwrap(), &ImportOptions::default()).unwrap()
}

/// Thread, call, file, start, duration, errors and bytes of each row.
fn rows(capture: &Capture) -> Vec<String> {
    let row = |row: &stepscope_model::SystemCalls| {
        let tid = capture.threads[row.thread.index()].tid;
        let file = row.file.as_deref().unwrap_or("-");
        let start_us = row.start_ns / 1000;
        format!("{tid} {} {file} {start_us} {} {} {}", row.call, row.total_ns / 1000, row.errors, row.bytes)
    };
    capture.system_calls.iter().map(row).collect()
}

/// Calls and errors by name.
fn sums(capture: &Capture) -> std::collections::BTreeMap<String, (u64, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for row in capture.system_calls.iter() {
        let sum: &mut (u64, u64) = sums.entry(row.call.to_string()).or_default();
        *sum = (sum.0 + row.count, sum.1 + row.errors);
    }
    sums
}

#[test]
fn calls_have_files_durations_errors_and_bytes() {
    let capture = read(
        "7 10:00:00.000100 openat(AT_FDCWD</w>, \"/tmp/a) = 3 <x\", O_RDONLY) = 3</tmp/a> <0,000020>\n\
         7 10:00:00.000200 read(3</tmp/a>, \") = 1\\\"\", 10)      = 10 <0.000030>\n\
         7 10:00:00.000300 openat(AT_FDCWD</w>, \"/no\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000002>\n\
         7 10:00:00.000400 mmap(NULL, 8, PROT_READ, MAP_PRIVATE, 3</tmp/a>, 0) = 0x7f00 <0.000001>\n\
         7 10:00:00.000500 write(4<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"x\", 1) = 1 <0.000004>\n\
         7 10:00:00.000600 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
         7 10:00:00.000700 pause()         = ? ERESTARTNOHAND (To be restarted if no handler) <0.000009>\n\
         7 10:00:00.000800 exit_group(0)   = ?\n7 10:00:00.000900 +++ exited with 4 +++\n",
    );
    let at = |us: u64| 36_000_000_000 + us;
    let expected = [
        format!("7 openat /tmp/a {} 20 0 0", at(100)),
        format!("7 read /tmp/a {} 30 0 10", at(200)),
        format!("7 openat /no {} 2 1 0", at(300)),
        format!("7 mmap - {} 1 0 0", at(400)),
        format!("7 write TCP:[127.0.0.1:1->127.0.0.1:2] {} 4 0 1", at(500)),
        format!("7 pause - {} 9 1 0", at(700)),
    ];
    assert_eq!(rows(&capture), expected);
    assert_eq!(capture.processes[0].exit_status, Some(4));
    assert_eq!(capture.info.losses.malformed_records, 0);
}

#[test]
fn interrupted_calls_are_put_together_and_threads_know_their_process() {
    let capture = read(
        "execve(\"/bin/sim\", [\"sim\", \"-x\"], 0x7f /* 3 vars */) = 0 <0.000001>\n\
         [pid  11] clone3({flags=CLONE_VM|CLONE_THREAD} <unfinished ...>\n\
         [pid  12] read(3</a>,  <unfinished ...>\n\
         [pid  11] <... clone3 resumed>)        = 12 <0.000010>\n\
         [pid  12] <... read resumed>\"x\", 5)   = 5 <0.000020>\n\
         [pid  12] <... close resumed>)         = 0 <0.000003>\n\
         [pid  11] fork()                       = 13 <0.000010>\n\
         [pid  13] write(1, \"x\", 1 <unfinished ...>\n",
    );
    let calls: Vec<_> = capture.system_calls.iter().map(|row| (&*row.call, row.file.as_deref())).collect();
    assert_eq!(
        calls,
        [("execve", Some("/bin/sim")), ("clone3", None), ("read", Some("/a")), ("close", None), ("fork", None)]
    );
    let thread = |tid: u32| capture.threads.iter().find(|thread| thread.tid == tid).unwrap();
    assert_eq!(thread(12).process, thread(11).process);
    let DimensionStatus::Partial { lacks } = &capture.info.dimensions[&Dimension::Syscalls] else { panic!() };
    assert_eq!(lacks[1], "1 calls had not returned where the log ends; they are not counted.");
}

#[test]
fn stacks_belong_to_the_call_before() {
    let capture = read(
        "write(1, \"x\", 1) = 1 <0.000004>\n > /lib/libc.so.6(write+0x14) [0xf7ac4]\n > /bin/sim(main+0x3) [0x10]\n\
         close(1) = 0 <0.000004>\n > /bin/sim() [0x20]\n",
    );
    let stacks = capture.system_calls.iter().map(|row| {
        let names: Vec<&str> = capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect();
        names.join(" ")
    });
    assert_eq!(stacks.collect::<Vec<_>>(), ["write main", "sim+0x20"]);
}

#[test]
fn times_of_day_go_on_after_midnight_and_relative_times_add_up() {
    let starts = |text: &str| read(text).system_calls.iter().map(|row| row.start_ns / 1_000_000).collect::<Vec<_>>();
    assert_eq!(starts("23:59:59 a() = 0 <0.1>\n00:00:01 b() = 0 <0.1>\n"), [86_399_000, 86_401_000]);
    assert_eq!(starts("     0.000000 a() = 0 <0.1>\n     0.250000 b() = 0 <0.1>\n"), [0, 250]);
    assert_eq!(starts("1700000000 a() = 0 <0.1>\n"), [1_700_000_000_000]);
    assert_eq!(starts("5 1700000000.5 a() = 0 <0.1>\n"), [1_700_000_000_500]);
    assert_eq!(starts("10:00:00 (+     0.5) a() = 0 <0.1>\n"), [36_000_000]);
    assert_eq!(starts("a() = 0 <0.1>\n"), [0]);
}

#[test]
fn logs_in_all_variants_have_the_same_calls() {
    // The kernel may interrupt a wait, so calls of `futex`, `wait4` and those that start a program differ.
    let comparable = |name: &str| {
        let mut sums = sums(&open(&seed(name)));
        sums.retain(|call, _| ["openat", "write", "lseek", "unlink", "clone3", "prctl", "munmap"].contains(&&**call));
        sums
    };
    let expected = comparable("strace/times.log");
    assert_eq!(expected["write"], (6, 0));
    assert_eq!(expected["openat"].1, 2);
    for name in ["plain.log", "relative.log"] {
        assert_eq!(comparable(&format!("strace/{name}")), expected, "{name}");
    }
    for name in ["table.txt", "comma.txt", "elapsed.txt"] {
        assert_eq!(comparable(&format!("strace_c/{name}")), expected, "{name}");
    }
    let capture = open(&seed("strace/times.log"));
    let first = capture.threads.iter().find(|thread| thread.name == "first").unwrap();
    assert_eq!(first.process, capture.threads[0].process);
    assert_eq!(capture.processes[1].exit_status, Some(3));
}

#[test]
fn a_log_that_is_cut_anywhere_keeps_the_calls_before() {
    let text = std::fs::read_to_string(seed("strace/times.log")).unwrap();
    let first = text.find('\n').unwrap();
    for end in (first + 1..text.len()).step_by(41) {
        let capture = read(text.get(..end).unwrap());
        let whole_lines = text[..end].lines().filter(|line| line.ends_with('>') && line.contains(" = ")).count();
        assert!(capture.system_calls.len() >= whole_lines.saturating_sub(1), "{end}");
        assert!(capture.info.losses.malformed_records <= 1, "{end}");
    }
    let end = text.len() / 2;
    assert!(!read(&text[text[end..].find('\n').unwrap() + end + 1..]).system_calls.is_empty());
}

#[test]
fn lines_of_the_program_are_counted_as_malformed() {
    let capture = read("a() = 0 <0.1>\nhello\nb() = 0 <0.1>\nc( = 0\n");
    assert_eq!((capture.system_calls.len(), capture.info.losses.malformed_records), (2, 2));
}

#[test]
fn a_table_that_is_cut_says_so() {
    let text = std::fs::read_to_string(seed("strace_c/table.txt")).unwrap();
    let capture = read(&text[..text.len() / 2]);
    let DimensionStatus::Partial { lacks } = &capture.info.dimensions[&Dimension::Syscalls] else { panic!() };
    assert!(lacks.contains(&"The table has no sum at its end: it may be truncated.".to_owned()));
    assert_eq!(capture.info.losses.malformed_records, 1);
}

#[test]
fn a_log_has_the_calls_that_strace_itself_counts() {
    const NAME: &str = "a_log_has_the_calls_that_strace_itself_counts";
    let folder = tempfile::tempdir().unwrap();
    let (log, table) = (folder.path().join("log"), folder.path().join("table"));
    let run = |options: &[&str], output: &Path| {
        let mut strace = Command::new("strace");
        strace.args(options).arg("-o").arg(output).args(["cat", "/etc/passwd"]);
        strace.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status()
    };
    match (run(&["-f", "-T", "-y"], &log), run(&["-f", "-c"], &table)) {
        (Ok(first), Ok(second)) if first.success() && second.success() => {}
        (Err(_), _) => return eprintln!("skipped: {NAME}: strace is missing"),
        _ => return eprintln!("skipped: {NAME}: strace may not trace here"),
    }
    assert_eq!(sums(&open(&log)), sums(&open(&table)));
}

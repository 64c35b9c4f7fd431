//! Memory errors of programs whose errors are known, by each checker.

mod launched;

use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_model::{Capture, Dimension, DimensionStatus, StackId};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

use launched::record;

/// Compiles the program with known errors. `None`, with a line, if this machine cannot.
fn program(test: &str, folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/errors.cc");
    let program = folder.join("errors");
    let mut compiler = Command::new("g++");
    compiler.args(["-O0", "-g", "-w"]).args(flags).arg(source).arg("-o").arg(&program).arg("-pthread");
    if compiler.status().is_ok_and(|status| status.success()) {
        return Some(program);
    }
    println!("skipped: {test}: needs g++ with {flags:?}");
    None
}

fn with(checker: Dimension) -> Options {
    Options { dimensions: [Dimension::Cpu, checker].into(), ..Options::default() }
}

/// `function:line` of the first frame with a line of the program.
fn place(capture: &Capture, stack: Option<StackId>) -> String {
    let frames = capture.frames_of(stack).map(|frame| &capture.frames[frame.index()]);
    let mut of_program = frames.filter(|frame| frame.file.as_deref().is_some_and(|file| file.ends_with("errors.cc")));
    of_program.next().map_or("-".to_owned(), |frame| format!("{}:{}", frame.function, frame.line.unwrap_or(0)))
}

/// Kind, place, where allocated and count of each error.
fn errors(capture: &Capture) -> Vec<String> {
    let row = |error: &stepscope_model::MemoryError| {
        let places = [error.stack, error.allocated].map(|stack| place(capture, stack)).join(" ");
        format!("{} {places} {}", error.kind, error.count)
    };
    capture.memory_errors.iter().map(row).collect()
}

fn check(test: &str, flags: &[&str], checker: Dimension, error: &str, expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path(), flags) else { return };
    let launch = Launch::new([program.into_os_string(), error.into()]);
    let Some(capture) = record(test, launch, &with(checker)) else { return };
    if let DimensionStatus::Missing { reason, .. } = &capture.info.dimensions[&checker] {
        return println!("skipped: {test}: {reason}");
    }
    assert_eq!(errors(&capture), expected);
    let first_ns = capture.memory_errors[0].first_ns.expect("the recorder saw the log grow");
    assert!((capture.info.start_ns.unwrap()..=capture.info.end_ns.unwrap()).contains(&first_ns));
    assert!(capture.memory_errors.iter().all(|error| error.process.is_some()));
}

#[test]
fn valgrind_finds_use_after_free_and_the_capture_says_that_it_is_slow() {
    let test = "valgrind_finds_use_after_free_and_the_capture_says_that_it_is_slow";
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path(), &[]) else { return };
    let launch = Launch::new([program.into_os_string(), "use".into()]);
    let Some(capture) = record(test, launch, &with(Dimension::Memcheck)) else { return };
    if let DimensionStatus::Missing { reason, .. } = &capture.info.dimensions[&Dimension::Memcheck] {
        return println!("skipped: {test}: {reason}");
    }
    assert_eq!(errors(&capture), ["use after free use_after_free:11 use_after_free:9 3"]);
    assert!(capture.info.notes.iter().any(|note| note.contains("ran under valgrind")), "{:?}", capture.info.notes);
    assert!(capture.info.command[0].ends_with("/errors"), "{:?}", capture.info.command);
}

#[test]
fn address_sanitizer_finds_overflows_and_leaks() {
    let test = "address_sanitizer_finds_overflows_and_leaks";
    let flags = ["-fsanitize=address"];
    check(test, &flags, Dimension::Asan, "overflow", &["heap buffer overflow overflow:15 overflow:14 1"]);
    check(test, &flags, Dimension::Asan, "leak", &["leak leak:19 leak:19 3"]);
}

#[test]
fn undefined_behaviour_has_its_stack() {
    let test = "undefined_behaviour_has_its_stack";
    check(test, &["-fsanitize=undefined"], Dimension::Ubsan, "signed", &["signed overflow signed_overflow:30 - 1"]);
}

#[test]
fn thread_sanitizer_finds_a_data_race() {
    let test = "thread_sanitizer_finds_a_data_race";
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path(), &["-fsanitize=thread"]) else { return };
    // Old versions do not know the addresses that new kernels give.
    let works = Command::new(&program).status().is_ok_and(|status| status.success());
    if !works {
        return println!("skipped: {test}: ThreadSanitizer does not run on this kernel");
    }
    check(test, &["-fsanitize=thread"], Dimension::Tsan, "race", &["data race count:29 - 1"]);
}

#[test]
fn a_program_without_a_sanitizer_says_how_to_build_it() {
    let test = "a_program_without_a_sanitizer_says_how_to_build_it";
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(test, folder.path(), &[]) else { return };
    let Some(capture) = record(test, Launch::new([program.into_os_string()]), &with(Dimension::Asan)) else { return };
    let DimensionStatus::Missing { reason, remedy } = &capture.info.dimensions[&Dimension::Asan] else {
        panic!("{:?}", capture.info.dimensions)
    };
    assert_eq!(reason, "The program is not built with -fsanitize=address.");
    assert_eq!(remedy.as_deref(), Some("build it with -g -fsanitize=address"));
}

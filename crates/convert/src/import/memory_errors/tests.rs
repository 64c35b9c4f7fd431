//! Reports of one program with known errors, from each checker.

use std::path::{Path, PathBuf};

use super::*;
use crate::import::{ImportOptions, Source, import};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name)
}

fn of_seed(name: &str) -> Capture {
    import(Source::open(&seed(name)).unwrap(), &ImportOptions::default()).unwrap()
}

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// The first frame of the program: `function:line`.
fn place(capture: &Capture, stack: Option<StackId>) -> String {
    let frames = capture.frames_of(stack).map(|frame| &capture.frames[frame.index()]);
    let mut of_program = frames.filter(|frame| frame.file.as_deref().is_some_and(|file| file.starts_with("/src/")));
    of_program.next().map_or("-".to_owned(), |frame| format!("{}:{}", frame.function, frame.line.unwrap_or(0)))
}

/// Tool, kind, place, where allocated, other place, count, bytes.
fn rows(capture: &Capture) -> Vec<String> {
    let row = |error: &MemoryError| {
        let places = [error.stack, error.allocated, error.other].map(|stack| place(capture, stack)).join(" ");
        format!("{} | {} | {places} | {} {}", error.tool, error.kind, error.count, error.bytes.unwrap_or(0))
    };
    capture.memory_errors.iter().map(row).collect()
}

#[test]
fn memcheck_and_asan_find_the_same_errors_in_the_same_words() {
    let memcheck = |name: &str| rows(&of_seed(&format!("valgrind/{name}.xml")));
    let asan = |name: &str| rows(&of_seed(&format!("sanitizer/asan-{name}.log")));
    assert_eq!(
        memcheck("use"),
        ["memcheck | use after free | use_after_free:11 use_after_free:9 use_after_free:10 | 3 0"]
    );
    assert_eq!(asan("use"), ["asan | use after free | use_after_free:11 use_after_free:9 use_after_free:10 | 1 0"]);
    assert_eq!(memcheck("overflow"), ["memcheck | heap buffer overflow | overflow:15 overflow:14 - | 3 0"]);
    assert_eq!(asan("overflow"), ["asan | heap buffer overflow | overflow:15 overflow:14 - | 1 0"]);
    assert_eq!(memcheck("leak"), ["memcheck | leak | leak:19 leak:19 - | 3 99"]);
    assert_eq!(asan("leak"), ["lsan | leak | leak:19 leak:19 - | 3 99"]);
    assert_eq!(memcheck("uninitialised"), ["memcheck | uninitialised value | uninitialised:26 - - | 3 0"]);
}

#[test]
fn undefined_behaviour_and_races_have_their_places() {
    assert_eq!(rows(&of_seed("sanitizer/ubsan.log")), ["ubsan | signed overflow | signed_overflow:30 - - | 1 0"]);
    assert_eq!(rows(&of_seed("sanitizer/tsan.log")), ["tsan | data race | count:29 - count:29 | 1 0"]);
    let helgrind = of_seed("valgrind/helgrind.xml");
    assert!(helgrind.memory_errors.iter().all(|error| &*error.tool == "helgrind" && &*error.kind == "data race"));
    assert_eq!(rows(&helgrind)[0].split(" | ").nth(2), Some("count:29 - count:29"));
}

#[test]
fn ubsan_without_stacks_has_the_place_of_its_line() {
    let capture =
        read("a.cc:30:100: runtime error: shift exponent 40 is too large\na.cc:31: runtime error: division by zero\n");
    let places = capture.frames.iter().map(|frame| (frame.file.as_deref(), frame.line));
    assert_eq!(places.collect::<Vec<_>>(), [(Some("a.cc"), Some(30)), (Some("a.cc"), Some(31))]);
    let kinds = capture.memory_errors.iter().map(|error| &*error.kind);
    assert_eq!(kinds.collect::<Vec<_>>(), ["bad shift", "division by zero"]);
}

#[test]
fn files_that_are_cut_anywhere_keep_the_errors_before() {
    for name in ["valgrind/use.xml", "sanitizer/asan-use.log"] {
        let text = std::fs::read_to_string(seed(name)).unwrap();
        let error = text.find("</error>").or_else(|| text.find("SUMMARY")).unwrap();
        for end in (error + 8..text.len()).step_by(37) {
            let capture = read(text.get(..end).unwrap());
            assert_eq!(capture.memory_errors.len(), 1, "{name}: {end}");
            let is_whole = text[..end].trim_end().ends_with("</valgrindoutput>") || text[..end].ends_with('\n');
            assert!(is_whole || capture.info.losses.malformed_records == 1, "{name}: {end}");
        }
    }
}

#[test]
fn a_file_without_errors_is_read_as_such() {
    let capture = read("<?xml version=\"1.0\"?>\n<valgrindoutput><tool>memcheck</tool></valgrindoutput>\n");
    assert!(capture.memory_errors.is_empty());
    assert_eq!(capture.info.dimensions[&Dimension::Memcheck], DimensionStatus::Recorded);
}

#[test]
fn parameters_of_functions_are_left_out() {
    let names =
        ["leak()", "ns::f(int (*)(char)) const", "ns::C::operator()(int)", "main", "(anonymous namespace)::f()"];
    let expected = ["leak", "ns::f", "ns::C::operator()", "main", "(anonymous namespace)::f"];
    assert_eq!(names.map(without_parameters), expected);
}

#[test]
fn logs_beside_a_recording_become_its_errors_with_times() {
    let folder = tempfile::tempdir().unwrap();
    let errors = folder.path().join("errors");
    std::fs::create_dir(&errors).unwrap();
    let log = std::fs::read(seed("sanitizer/ubsan.log")).unwrap();
    std::fs::write(errors.join("ubsan.42"), &log).unwrap();
    std::fs::write(errors.join("memcheck.43"), std::fs::read(seed("valgrind/leak.xml")).unwrap()).unwrap();
    std::fs::write(errors.join(logs::TIMES), format!("1000 ubsan.42 10\n2000 ubsan.42 {}\nbad\n", log.len())).unwrap();
    let mut capture = Capture::default();
    for checker in logs::CHECKERS {
        capture.info.dimensions.insert(checker, DimensionStatus::Recorded);
    }
    logs::add(folder.path(), &mut capture);
    let found: Vec<_> = capture.memory_errors.iter().map(|error| (&*error.tool, error.first_ns)).collect();
    assert_eq!(found, [("memcheck", None), ("ubsan", Some(2000))]);
    assert_eq!(capture.processes[1].pid, 42);
    let DimensionStatus::Missing { reason, .. } = &capture.info.dimensions[&Dimension::Tsan] else { panic!() };
    assert_eq!(reason, "The program is not built with -fsanitize=thread.");
    assert_eq!(capture.info.dimensions[&Dimension::Ubsan], DimensionStatus::Recorded);
}

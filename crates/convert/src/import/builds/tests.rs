use stepscope_model::compiler_work::CompilerWork;

use super::super::{ImportOptions, Source, import};
use super::*;

fn read(name: &str, text: &str) -> Capture {
    import(Source::stream(name, text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// Each stack with its weight, root first.
fn stacks(capture: &Capture) -> Vec<String> {
    let line = |sample: &stepscope_model::Sample| {
        let names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        format!("{} {}", names.into_iter().rev().collect::<Vec<_>>().join(";"), sample.weight)
    };
    let mut lines: Vec<String> = capture.samples.iter().map(line).collect();
    lines.sort();
    lines
}

const CLANG: &str = r#"{"traceEvents":[
    {"pid":1,"tid":1,"ph":"X","ts":10,"dur":30,"name":"Source","args":{"detail":"/s/./inc/../b.h"}},
    {"pid":1,"tid":1,"ph":"X","ts":5,"dur":50,"name":"Source","args":{"detail":"a.h"}},
    {"pid":1,"tid":1,"ph":"X","ts":60,"dur":10,"name":"InstantiateClass","args":{"detail":"V<int>"}},
    {"pid":1,"tid":1,"ph":"X","ts":0,"dur":80,"name":"Frontend","args":{"detail":""}},
    {"pid":1,"tid":1,"ph":"X","ts":82,"dur":9,"name":"OptFunction","args":{"detail":"_Z1fi"}},
    {"pid":1,"tid":1,"ph":"X","ts":80,"dur":20,"name":"Backend","args":{"detail":""}},
    {"pid":1,"tid":1,"ph":"X","ts":0,"dur":101,"name":"ExecuteCompiler","args":{"detail":""}},
    {"pid":1,"tid":9,"ph":"X","ts":0,"dur":80,"name":"Total Frontend","args":{"count":1}}]}"#;

#[test]
fn clangs_intervals_are_a_tree_with_what_each_part_took_itself() {
    let capture = read("src/a.cpp.json", CLANG);
    assert_eq!(capture.processes[0].command_line, "a.cpp");
    assert_eq!(
        stacks(&capture),
        [
            "back end 11000",
            "back end;f 9000",
            "front end 20000",
            "front end;V<int> 10000",
            "front end;a.h 20000",
            "front end;a.h;/s/b.h 30000",
        ]
    );
    let scopes: Vec<(&str, u64, u32)> =
        capture.scopes.iter().map(|scope| (&*scope.name, scope.end_ns - scope.start_ns, scope.depth)).collect();
    assert_eq!(scopes[..3], [("front end", 80_000, 0), ("header a.h", 50_000, 1), ("header /s/b.h", 30_000, 2)]);
}

#[test]
fn sources_that_newer_clangs_write_as_pairs_are_intervals_too() {
    let text = r#"{"traceEvents":[
        {"pid":1,"tid":1,"ph":"b","id":0,"ts":1,"cat":"Source","name":"Source","args":{"detail":"a.h"}},
        {"pid":1,"tid":1,"ph":"e","id":0,"ts":5,"cat":"Source","name":"Source"},
        {"pid":1,"tid":1,"ph":"e","id":0,"ts":9,"cat":"Source","name":"Source"}]}"#;
    let capture = read("a.json", text);
    assert_eq!(stacks(&capture), ["a.h 4000"]);
    assert_eq!(capture.info.losses.malformed_records, 1);
}

const GCC: &str = "\
. a.h
.. b.h
. c.h

Time variable                                   usr           sys          wall           GGC
 phase setup                        :   0.20 (  0%)   0.00 (  0%)   0.01 (  0%)  1803k (  1%)
 phase parsing                      :   0.70 ( 50%)   0.10 ( 50%)   1.00 ( 50%)    90M ( 50%)
 phase opt and generate             :   1.00 ( 50%)   0.10 ( 50%)   1.00 ( 50%)    90M ( 50%)
 |name lookup                       :   0.30 ( 50%)   0.10 ( 50%)   1.00 ( 50%)    90M ( 50%)
 preprocessing                      :   0.20 ( 10%)   0.00 (  0%)   0.20 ( 10%)    90M ( 50%)
 template instantiation             :   0.10 ( 10%)   0.00 (  0%)   0.20 ( 10%)    90M ( 50%)
 integrated RA                      :   0.40 ( 10%)   0.00 (  0%)   0.20 ( 10%)    90M ( 50%)
 TOTAL                              :   1.90          0.20          2.02          234M
";

#[test]
fn gccs_phases_divide_the_whole_and_its_passes_are_parts_of_them() {
    let capture = read("a.report", GCC);
    assert_eq!(
        stacks(&capture),
        [
            "back end 600000000",
            "back end;integrated RA 400000000",
            "front end 600000000",
            "front end;preprocessing 200000000",
            "front end;template instantiation 100000000",
        ]
    );
}

#[test]
fn headers_of_gcc_have_the_front_end_by_how_much_code_they_have() {
    let code = |path: &str| Some(if path == "b.h" { 50 } else { 10 });
    let tree = WorkTree::of_gcc_report(GCC.as_bytes(), &code);
    // The unit, a.h and c.h have 10 each, b.h has 50: of 0.8 s.
    assert_eq!(tree.inclusive_ns(CompilerWork::Header), 700_000_000);
    assert_eq!(tree.inclusive_ns(CompilerWork::FrontEnd), 900_000_000);
    assert_eq!(tree.total_ns(), 1_900_000_000);
    let mut capture = Capture::default();
    let (thread, event) = (capture.add_thread_named("a"), capture.add_event(Event::weighed("cpu", "ns")));
    // Scaled to half, with nothing lost.
    tree.add_samples(&mut capture, thread, None, event, Some(950_000_001));
    assert!(stacks(&capture).contains(&"front end;a.h;b.h 250000000".to_owned()), "{:?}", stacks(&capture));
    assert_eq!(capture.samples.iter().map(|sample| sample.weight).sum::<u64>(), 950_000_001);
}

#[test]
fn commands_of_cmake_have_their_place() {
    let text = r#"[{"args":{"functionArgs":"p CXX","location":"/s/CMakeLists.txt:2"},"cat" : "cmake","name":"project","ph":"B","ts":100},
        {"args":{"functionArgs":"a b","location":"/m/x.cmake:7"},"cat":"cmake","name":"if","ph":"B","ts":110},
        {"ph":"E","ts":130},{"ph":"E","ts":200},{"args":{"functionArgs":"Boost REQUIRED","location":"/s/CMakeLists.txt:3"},
        "cat":"cmake","name":"find_package","ph":"B","ts":200}"#;
    let capture = read("profile.json", text);
    assert_eq!(stacks(&capture), ["project(p) 80000", "project(p);if 20000"]);
    let frame = &capture.frames[0];
    assert_eq!((frame.file.as_deref(), frame.line), (Some("/s/CMakeLists.txt"), Some(2)));
    assert_eq!(capture.info.losses.malformed_records, 1, "the text is cut");
}

#[test]
fn ninjas_last_build_has_one_process_for_each_command() {
    let text = "# ninja log v5\n1\t900\t17\tfirst.o\taa\n1\t200\t17\ta.o\tbb\n1\t300\t17\tb.o\tcc\n1\t300\t17\tb.d\tcc\n\
                300\t400\t17\tp\tdd\n7\tx\ty\n";
    let capture = read(".ninja_log", text);
    let rows: Vec<(&str, u64)> =
        capture.processes.iter().map(|one| (one.command_line.as_str(), one.end_ns.unwrap() / 1_000_000)).collect();
    assert_eq!(rows, [("a.o", 200), ("b.o", 300), ("p", 400)]);
    assert_eq!(capture.info.notes[0], ".ninja_log: the last build of 2 was imported.");
    assert_eq!(capture.info.losses.malformed_records, 1);
}

#[test]
fn crates_of_cargo_have_their_times_and_the_end_of_their_front_end() {
    let text = r#"<html><title>Cargo Build Timings - c</title><script>const UNIT_DATA = [
        {"i":0,"name":"c","version":"0.1.0","mode":"todo","target":"","start":0.5,"duration":2.0,
         "sections":[["frontend",{"start":0.0,"end":1.5}],["codegen",{"start":1.5,"end":2.0}]]},
        {"i":1,"name":"d","version":"1.0.0","mode":"todo","target":" d \"bin\"","start":1.0,"duration":1.0,"rmeta_time":0.25},
        {"i":2,"name":""}];</script>"#;
    let capture = read("cargo-timing.html", text);
    let names: Vec<&str> = capture.processes.iter().map(|one| one.command_line.as_str()).collect();
    assert_eq!(names, ["c 0.1.0", "d 1.0.0 d \"bin\""]);
    let counters: Vec<(&str, i64)> = capture.counters.iter().map(|one| (&*one.name, one.value)).collect();
    assert_eq!(counters[..2], [("front_end_wall_ns", 1_500_000_000), ("back_end_wall_ns", 500_000_000)]);
    assert_eq!(counters[2], ("front_end_wall_ns", 250_000_000));
    assert_eq!(capture.info.losses.malformed_records, 1);
}

#[test]
fn files_that_are_cut_or_hold_huge_numbers_do_no_harm() {
    let huge =
        CLANG.replace("\"dur\":30", "\"dur\":18446744073709551615").replace("\"ts\":0", "\"ts\":18446744073709551615");
    let gcc = GCC.replace("0.70", "99999999999999999999999999").replace(". c.h", ".... c.h");
    let ninja = "# ninja log v5\n1\t18446744073709551615\t17\tfirst.o\taa\n";
    for (format, text) in
        [("clang-time-trace", CLANG), ("clang-time-trace", &huge), ("gcc-time-report", &gcc), ("ninja-log", ninja)]
    {
        let options = ImportOptions { format: super::super::format_named(format), ..ImportOptions::default() };
        for end in 1..=text.len() {
            let capture = import(Source::stream("it", &text.as_bytes()[..end]), &options);
            assert!(!matches!(capture, Err(ImportError::Inconsistent { .. })), "{format}: {capture:?}");
        }
    }
}

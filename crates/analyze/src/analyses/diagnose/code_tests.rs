//! Loops of machine code as evidence. The address of a drawn frame is its line.

use std::ops::Range;

use stepscope_model::{Capture, CodeLoop, FileLoops, LineLoop, LoopShape, ModuleLoops};

use super::tests::{looping, work};
use super::{Calls, ReadCode, table_with_code, wanted};
use crate::columns::read::cells;
use crate::drawn;

const INSIDE: &str = "sim::Look [lib:/bin/sim] [file:look.cpp:100]";
const EDGE: &str = "sim::Look [lib:/bin/sim] [file:look.cpp:200]";
const USES: &str = "sim::Look [lib:/bin/sim] [file:look.cpp:300]";
const OTHER: &str = "sim::Look [lib:/bin/sim] [file:look.cpp:400]";

/// The addresses near a line.
fn near(line: u64) -> Vec<Range<u64>> {
    std::iter::once(line - 5..line + 5).collect()
}

fn with_addresses(mut capture: Capture) -> Capture {
    for frame in &mut capture.frames {
        frame.address = frame.line.map(u64::from);
    }
    for module in &mut capture.modules {
        module.build_id = Some("ab".to_owned());
    }
    capture
}

/// Kind, function and gain of what a loop of this shape shows, at the lines above.
fn found_with(capture: &Capture, shape: LoopShape, calls: bool) -> Vec<String> {
    let one = CodeLoop { shape, inside: near(100), edges: near(200), uses: near(300), calls, is_nested: false };
    let module = ModuleLoops {
        path: "/bin/sim".to_owned(),
        build_id: Some("ab".to_owned()),
        loops: vec![one],
        ..ModuleLoops::default()
    };
    found_in(capture, &module)
}

fn found_in(capture: &Capture, module: &ModuleLoops) -> Vec<String> {
    drawn::selected(capture, &["sim::"], |selection| {
        let code = ReadCode { modules: vec![module.clone()], files: Vec::new() };
        let table = table_with_code(std::slice::from_ref(selection), &Calls::default(), &code);
        cells(&table, &["kind", "function", "gain_share"])
    })
}

/// Tenths of each step at these lines, the others in `sim::Move`.
fn drawn(of: &'static [(u64, &'static str)]) -> Capture {
    with_addresses(looping(|_, tenth| work(tenth, of, "sim::Move [lib:/bin/sim] [file:move.cpp:900]")))
}

#[test]
fn a_matrix_that_is_passed_by_columns_gains_half_of_the_loop() {
    let capture = drawn(&[(4, INSIDE), (5, OTHER)]);
    assert_eq!(found_with(&capture, LoopShape::Columns, false), ["matrix-by-columns | sim::Look | 20"]);
    let with_entries = drawn(&[(4, INSIDE), (5, EDGE)]);
    assert_eq!(
        found_with(&with_entries, LoopShape::Columns, false),
        Vec::<String>::new(),
        "it goes round a few times only"
    );
}

#[test]
fn a_loop_that_searches_is_found_where_no_name_is_left() {
    let capture = drawn(&[(4, INSIDE), (5, OTHER)]);
    assert_eq!(found_with(&capture, LoopShape::Search, false), ["list-search | sim::Look | 40"]);
    let title = drawn::selected(&capture, &["sim::"], |selection| {
        let wanted = wanted(std::slice::from_ref(selection));
        assert_eq!((wanted.len(), &wanted[0].addresses[..]), (1, &[100, 400, 900][..]));
        let one = CodeLoop {
            shape: LoopShape::Search,
            inside: near(100),
            edges: Vec::new(),
            uses: Vec::new(),
            calls: false,
            is_nested: false,
        };
        let module = ModuleLoops {
            path: "/bin/sim".to_owned(),
            build_id: Some("ab".to_owned()),
            loops: vec![one],
            ..ModuleLoops::default()
        };
        let code = ReadCode { modules: vec![module], files: Vec::new() };
        cells(&table_with_code(std::slice::from_ref(selection), &Calls::default(), &code), &["finding"])
    });
    assert_eq!(
        title,
        ["`sim::Look` searches a list from its start: the loop at look.cpp:100 compares one element after the other"]
    );
}

#[test]
fn a_loop_that_looks_for_the_least_element_searches_a_list_that_should_be_a_heap() {
    let capture = drawn(&[(4, INSIDE), (5, OTHER)]);
    assert_eq!(found_with(&capture, LoopShape::Least, false), ["list-search | sim::Look | 40"]);
    let once_for_new_keys = drawn(&[(1, INSIDE), (5, OTHER)]);
    assert_eq!(found_with(&once_for_new_keys, LoopShape::Least, false), Vec::<String>::new());
}

#[test]
fn a_loop_that_goes_round_a_few_times_is_no_search() {
    let capture = drawn(&[(4, INSIDE), (6, EDGE)]);
    assert!(found_with(&capture, LoopShape::Search, false).is_empty());
}

#[test]
fn a_loop_around_short_ones_has_what_they_cost() {
    let capture = drawn(&[(3, INSIDE), (4, EDGE), (6, OTHER)]);
    let one =
        |shape, inside, edges, is_nested| CodeLoop { shape, inside, edges, uses: Vec::new(), calls: false, is_nested };
    let whole = || [near(100), near(200), near(400)].concat();
    let loops =
        vec![one(LoopShape::Search, near(100), near(200), true), one(LoopShape::Scan, whole(), near(300), false)];
    let module =
        ModuleLoops { path: "/bin/sim".to_owned(), build_id: Some("ab".to_owned()), loops, ..ModuleLoops::default() };
    assert_eq!(found_in(&capture, &module), ["full-scan-each-step | sim::Look | 60"]);
}

#[test]
fn a_loop_of_another_build_is_no_evidence() {
    let mut capture = drawn(&[(4, INSIDE)]);
    capture.modules[0].build_id = Some("cd".to_owned());
    assert!(found_with(&capture, LoopShape::Search, false).is_empty());
}

#[test]
fn a_loop_that_calls_is_a_search_if_the_call_compares() {
    let compares = "sim::Look [lib:/bin/sim] [file:look.cpp:100];strcmp [lib:/lib/libc.so.6]";
    let computes = "sim::Look [lib:/bin/sim] [file:look.cpp:100];sim::Price [lib:/bin/sim] [file:price.cpp:700]";
    let of = |call: &'static str| {
        let capture = with_addresses(looping(|_, tenth| {
            work(tenth, &[(1, INSIDE), (4, call)], "sim::Move [lib:/bin/sim] [file:move.cpp:900]")
        }));
        let rows = found_with(&capture, LoopShape::Search, true);
        rows.into_iter().filter(|row| row.starts_with("list")).collect::<Vec<_>>()
    };
    assert_eq!(of(compares), ["list-search | sim::Look | 40"]);
    assert!(of(computes).is_empty());
}

#[test]
fn a_scan_passes_over_nearly_all_elements() {
    let scan = |of| found_with(&drawn(of), LoopShape::Scan, false);
    assert_eq!(scan(&[(5, INSIDE), (6, USES)]), ["full-scan-each-step | sim::Look | 50"]);
    assert!(scan(&[(5, INSIDE), (8, USES)]).is_empty(), "much is done with those that fit");
    assert!(scan(&[(1, INSIDE)]).is_empty(), "a flag of all is asked for");
}

#[test]
fn a_loop_that_reads_the_same_memory_waits_for_another_thread() {
    assert_eq!(found_with(&drawn(&[(3, INSIDE)]), LoopShape::Spin, false), ["busy-wait | sim::Look | 30"]);
}

#[test]
fn a_chain_is_climbed_again_and_again_if_the_loop_is_entered_often() {
    let chain = |entered: bool| {
        let capture = with_addresses(looping(|step, tenth| match tenth {
            0 if entered && step % 10 == 0 => EDGE.to_owned(),
            tenth => work(tenth, &[(4, INSIDE)], "sim::Move [lib:/bin/sim] [file:move.cpp:900]"),
        }));
        found_with(&capture, LoopShape::Chain, false)
    };
    assert_eq!(chain(true), ["chain-climbed-each-time | sim::Look | 39"]);
    assert!(chain(false).is_empty(), "one list that is summed");
}

#[test]
fn a_wrapper_of_the_clock_whose_code_has_no_wait_reads_it_often() {
    let clock =
        "sim::Push [lib:/bin/sim] [file:push.cpp:500];sim::Now [lib:/bin/sim] [file:now.cpp:600];__vdso_clock_gettime";
    let capture =
        with_addresses(looping(|_, tenth| work(tenth, &[(6, clock)], "sim::Push [lib:/bin/sim] [file:push.cpp:510]")));
    let of = |no_waits: Vec<u64>| {
        let path = "/bin/sim".to_owned();
        let module = ModuleLoops { path, build_id: Some("ab".to_owned()), no_waits, ..ModuleLoops::default() };
        found_in(&capture, &module).remove(0)
    };
    assert_eq!(of(vec![500, 600]), "clock-read-often | sim::Now | 60");
    assert_eq!(of(vec![600]), "busy-wait-for-time | sim::Now | 60", "its caller may call it until it is time");
}

#[test]
fn a_wrapper_of_the_clock_without_a_loop_that_several_functions_call_reads_it_often() {
    let clock = "sim::Now [lib:/bin/sim] [file:now.cpp:600];__vdso_clock_gettime";
    let (begin, end) = (format!("sim::Begin;{clock}"), format!("sim::End;{clock}"));
    let capture = with_addresses(looping(|_, tenth| work(tenth, &[(3, &begin), (6, &end)], "sim::Move")));
    let of = |no_waits: Vec<u64>| {
        let path = "/bin/sim".to_owned();
        let module = ModuleLoops { path, build_id: Some("ab".to_owned()), no_waits, ..ModuleLoops::default() };
        found_in(&capture, &module).remove(0)
    };
    assert_eq!(of(vec![600]), "clock-read-often | sim::Now | 60");
    assert_eq!(of(Vec::new()), "busy-wait-for-time | sim::Now | 60", "it may have a loop");
}

#[test]
fn lines_that_raise_and_catch_exceptions_belong_to_them() {
    let at = |line: u32, below: &str| {
        format!("py::World.find:/srv/sim.py [file:/srv/sim.py:{line}];{below} [lib:/usr/bin/python3.11]")
    };
    let capture = looping(|_, tenth| match tenth {
        0 => at(11, "PyTraceBack_Here"),
        1 | 2 => at(11, "PyUnicode_Format"),
        3 => at(20, "PyUnicode_Format"),
        _ => "py::World.move:/srv/sim.py [file:/srv/sim.py:30]".to_owned(),
    });
    let of = |raises: Vec<u32>| found_in_file(&capture, FileLoops { raises, ..FileLoops::default() });
    assert_eq!(of(vec![11]), ["exceptions-each-step | py::World.find:/srv/sim.py | 30"]);
    assert_eq!(of(Vec::new()), ["exceptions-each-step | py::World.find:/srv/sim.py | 10"]);
}

/// Findings of a Python program whose source has these loops.
fn found_in_file(capture: &Capture, file: FileLoops) -> Vec<String> {
    let code = ReadCode { modules: Vec::new(), files: vec![FileLoops { path: "/srv/sim.py".to_owned(), ..file }] };
    drawn::selected(capture, &[], |selection| {
        let table = table_with_code(std::slice::from_ref(selection), &Calls::default(), &code);
        cells(&table, &["kind", "function", "gain_share"])
    })
}

#[test]
fn a_loop_of_a_python_source_is_a_search_or_a_scan_by_its_lines() {
    let at = |line: u32| {
        format!(
            "py::World.find:/srv/sim.py [file:/srv/sim.py:{line}];_PyEval_EvalFrameDefault [lib:/usr/bin/python3.11]"
        )
    };
    let capture = looping(|_, tenth| match tenth {
        0..4 => at(11),
        4 => at(13),
        5 => at(10),
        _ => "py::World.move:/srv/sim.py [file:/srv/sim.py:30]".to_owned(),
    });
    let of = |shape: LoopShape, edges: Vec<u32>, uses: Vec<u32>| {
        let one = LineLoop { shape, inside: vec![11, 12], edges, uses };
        found_in_file(&capture, FileLoops { loops: vec![one], ..FileLoops::default() })
    };
    assert_eq!(of(LoopShape::Search, Vec::new(), Vec::new()), ["list-search | py::World.find:/srv/sim.py | 40"]);
    assert!(of(LoopShape::Search, vec![10], Vec::new()).is_empty(), "it goes round a few times");
    assert_eq!(of(LoopShape::Scan, Vec::new(), vec![13]), ["full-scan-each-step | py::World.find:/srv/sim.py | 40"]);
    assert!(of(LoopShape::Scan, Vec::new(), vec![13, 30]).is_empty(), "much is done with those that fit");
}

#[test]
fn a_generator_that_searches_is_found_at_the_function_around_it() {
    let generator = "py::World.find:/srv/sim.py [file:/srv/sim.py:11];builtin_any [lib:/usr/bin/python3.11];\
                     py::World.find.<locals>.<genexpr>:/srv/sim.py [file:/srv/sim.py:11]";
    let capture =
        looping(|_, tenth| work(tenth, &[(4, generator)], "py::World.move:/srv/sim.py [file:/srv/sim.py:30]"));
    let search = LineLoop { shape: LoopShape::Search, inside: vec![11], edges: vec![10], uses: Vec::new() };
    let found = found_in_file(&capture, FileLoops { loops: vec![search], ..FileLoops::default() });
    assert_eq!(found, ["list-search | py::World.find:/srv/sim.py | 40"]);
}

/// A function that is asked ten times in each step, where `sim::Step` calls it from a loop of this shape.
fn asked(shape: Option<LoopShape>, is_nested: bool) -> Vec<String> {
    let question = "sim::Look [lib:/bin/sim] [file:look.cpp:100];sim::Is [lib:/bin/sim] [file:is.cpp:600]";
    let capture = with_addresses(looping(|_, tenth| {
        work(tenth, &[(2, INSIDE), (5, question)], "sim::Move [lib:/bin/sim] [file:move.cpp:900]")
    }));
    let one =
        |shape| CodeLoop { shape, inside: near(100), edges: Vec::new(), uses: Vec::new(), calls: true, is_nested };
    let module = ModuleLoops {
        path: "/bin/sim".to_owned(),
        build_id: Some("ab".to_owned()),
        loops: shape.map(one).into_iter().collect(),
        questions: near(600),
        ..ModuleLoops::default()
    };
    found_in(&capture, &module)
}

#[test]
fn a_function_that_only_loads_and_compares_is_asked_very_often() {
    assert_eq!(asked(None, false), ["called-very-often | sim::Is | 30"]);
    assert_eq!(asked(Some(LoopShape::Scan), true), ["called-very-often | sim::Is | 50"], "all pairs are asked");
}

#[test]
fn a_loop_that_asks_each_element_passes_over_nearly_all() {
    assert_eq!(asked(Some(LoopShape::Scan), false), ["full-scan-each-step | sim::Look | 50"]);
    assert_eq!(asked(Some(LoopShape::Visit), false), ["full-scan-each-step | sim::Look | 50"]);
}

#[test]
fn a_loop_that_visits_each_element_for_work_is_no_scan() {
    let works = "sim::Look [lib:/bin/sim] [file:look.cpp:100];sim::Burn [lib:/bin/sim] [file:burn.cpp:700]";
    let capture = with_addresses(looping(|_, tenth| work(tenth, &[(5, INSIDE), (7, works)], "sim::Move")));
    assert!(found_with(&capture, LoopShape::Visit, true).is_empty());
}

/// Steps in which a function is on the stack up to six times.
fn calling_itself() -> Capture {
    let depth = |depth: u64| {
        let up = "sim::Up [lib:/bin/sim] [file:up.cpp:500]";
        vec![up; depth as usize].join(";")
    };
    with_addresses(looping(|step, tenth| match tenth {
        0..6 => depth(1 + (step + tenth) % 6),
        _ => "sim::Move [lib:/bin/sim] [file:move.cpp:900]".to_owned(),
    }))
}

#[test]
fn a_function_that_calls_itself_in_a_loop_climbs_no_chain() {
    let of = |looped_calls: Vec<u64>| {
        let (path, build_id) = ("/bin/sim".to_owned(), Some("ab".to_owned()));
        found_in(&calling_itself(), &ModuleLoops { path, build_id, looped_calls, ..ModuleLoops::default() })
    };
    assert_eq!(of(Vec::new()), ["chain-climbed-each-time | sim::Up | 60"]);
    assert!(of(vec![500]).is_empty(), "it may search a game tree");
}

#[test]
fn without_steps_a_chain_of_calls_needs_code_without_loops() {
    let mut capture = calling_itself();
    capture.steps.clear();
    let of = |straight_calls: Vec<u64>| {
        let (path, build_id) = ("/bin/sim".to_owned(), Some("ab".to_owned()));
        found_in(&capture, &ModuleLoops { path, build_id, straight_calls, ..ModuleLoops::default() })
    };
    assert_eq!(of(vec![500]), ["chain-climbed-each-time | sim::Up | 60"]);
    assert!(of(Vec::new()).is_empty(), "the function may walk a tree");
}

#[test]
fn a_line_of_python_searches_a_long_list_if_the_search_costs_many_times_the_rest() {
    let lib = "[lib:/usr/lib/libpython3.11.so]";
    let line =
        |number: u32| format!("py::City.alarm:/srv/sim.py [file:/srv/sim.py:{number}];_PyEval_EvalFrameDefault {lib}");
    // An element whose comparison is a Python function of its own.
    let eq = format!("PyObject_RichCompare {lib};py::Key.__eq__:/srv/sim.py [file:/srv/sim.py:3]");
    let search = format!("{};list_contains {lib};{eq}", line(20));
    let of = |search_of_ten: u64| {
        let capture = looping(|step, tenth| match (step % 2, tenth) {
            (0, 0) if search_of_ten < 10 => line(20),
            (_, 0) => search.clone(),
            (_, 1) => line(21),
            _ => "py::City.move:/srv/sim.py [file:/srv/sim.py:30]".to_owned(),
        });
        found_in_file(&capture, FileLoops::default())
    };
    assert_eq!(of(10), ["list-search | py::City.alarm:/srv/sim.py | 10"]);
    assert!(of(5).is_empty(), "a list of a few: {:?}", of(5));
}

//! Loops of machine code as evidence. The address of a drawn frame is its line.

use std::ops::Range;

use stepscope_model::{Capture, CodeLoop, LoopShape, ModuleLoops};

use super::tests::{looping, work};
use super::{Calls, table_with_code, wanted};
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
    let one = CodeLoop { shape, inside: near(100), edges: near(200), uses: near(300), calls };
    let module = ModuleLoops {
        path: "/bin/sim".to_owned(),
        build_id: Some("ab".to_owned()),
        loops: vec![one],
        no_waits: Vec::new(),
    };
    found_in(capture, &module)
}

fn found_in(capture: &Capture, module: &ModuleLoops) -> Vec<String> {
    drawn::selected(capture, &["sim::"], |selection| {
        let table = table_with_code(std::slice::from_ref(selection), &Calls::default(), std::slice::from_ref(module));
        cells(&table, &["kind", "function", "gain_share"])
    })
}

/// Tenths of each step at these lines, the others in `sim::Move`.
fn drawn(of: &'static [(u64, &'static str)]) -> Capture {
    with_addresses(looping(|_, tenth| work(tenth, of, "sim::Move [lib:/bin/sim] [file:move.cpp:900]")))
}

#[test]
fn a_loop_that_searches_is_found_where_no_name_is_left() {
    let capture = drawn(&[(4, INSIDE), (5, OTHER)]);
    assert_eq!(found_with(&capture, LoopShape::Search, false), ["list-search | sim::Look | 40"]);
    let title = drawn::selected(&capture, &["sim::"], |selection| {
        let wanted = wanted(std::slice::from_ref(selection));
        assert_eq!((wanted.len(), &wanted[0].addresses[..]), (1, &[100, 400, 900][..]));
        let one =
            CodeLoop { shape: LoopShape::Search, inside: near(100), edges: Vec::new(), uses: Vec::new(), calls: false };
        let module = ModuleLoops {
            path: "/bin/sim".to_owned(),
            build_id: Some("ab".to_owned()),
            loops: vec![one],
            no_waits: Vec::new(),
        };
        cells(&table_with_code(std::slice::from_ref(selection), &Calls::default(), &[module]), &["finding"])
    });
    assert_eq!(
        title,
        ["`sim::Look` searches a list from its start: the loop at look.cpp:100 compares one element after the other"]
    );
}

#[test]
fn a_loop_that_goes_round_a_few_times_is_no_search() {
    let capture = drawn(&[(4, INSIDE), (6, EDGE)]);
    assert!(found_with(&capture, LoopShape::Search, false).is_empty());
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
        let module = ModuleLoops { path, build_id: Some("ab".to_owned()), loops: Vec::new(), no_waits };
        found_in(&capture, &module).remove(0)
    };
    assert_eq!(of(vec![500, 600]), "clock-read-often | sim::Now | 60");
    assert_eq!(of(vec![600]), "busy-wait-for-time | sim::Now | 60", "its caller may call it until it is time");
}

use stepscope_model::{Capture, Counter, Origin, ProcessId, Table};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};

fn example() -> Capture {
    let drawing = Drawing::new().window(0..3_000).process(7, "/usr/bin/sim").lived("main", 0..3_000, 100);
    let mut capture = drawing.steps("main", 500, 100, 20, 1_000).capture;
    drawn::allocations(&mut capture, 0..1_000, "main;main;gz::Load;malloc 10 1000 0 1000 1000");
    let text = "main;main;gz::Step;gz::Find;std::string::string;malloc 40 800 40 0 0
                main;main;gz::Step;operator new;malloc 20 600 0 600 300";
    drawn::allocations(&mut capture, 1_000..2_000, text);
    drawn::allocations(&mut capture, 2_000..3_000, "main;main;gz::Load;malloc 0 0 0 400 1000");
    capture
}

fn tables(view: fn(&Selection<'_>) -> Table, columns: &[&str]) -> Vec<String> {
    cells(&drawn::selected(&example(), &["gz::"], view), columns)
}

#[test]
fn each_allocation_counts_for_its_nearest_owned_function() {
    let columns =
        ["function", "calls", "temporary", "bytes", "peak_bytes", "leaked_bytes", "inclusive_calls", "calls_per_step"];
    assert_eq!(
        tables(by_function, &columns),
        [
            "gz::Find | 40 | 40 | 800 | 0 | 0 | 40 | 4",
            "gz::Step | 20 | 0 | 600 | 300 | 600 | 60 | 2",
            "gz::Load | 10 | 0 | 1000 | 1000 | 400 | 10 | 0",
        ]
    );
}

#[test]
fn totals_say_what_lives_at_the_end_of_the_last_interval() {
    let columns = ["calls", "temporary", "temporary_share", "bytes", "peak_bytes", "leaked_bytes", "leaked_blocks"];
    assert_eq!(tables(totals, &columns), ["70 | 40 | 57.142857 | 2400 | 1300 | 1000 | 2"]);
}

#[test]
fn kinds_of_blocks_that_a_memray_file_leaves_out_are_unknown() {
    let mut capture = Drawing::new().window(0..100).process(7, "/usr/bin/python3").lived("main", 0..100, 100).capture;
    drawn::allocations(&mut capture, 0..10, "main;list;malloc 10 1000 0 0 1000");
    capture.info.origin = Origin::Imported { format: "memray".to_owned(), file: "peak.csv".to_owned() };
    let columns = ["calls", "temporary", "temporary_share", "bytes", "peak_bytes", "leaked_bytes", "foreign_frees"];
    let table = drawn::selected(&capture, &[], totals);
    assert_eq!(cells(&table, &columns), ["10 | - | - | 1000 | 1000 | - | -"]);
    assert!(table.notes.is_empty(), "{:?}", table.notes);
}

#[test]
fn blocks_are_counted_by_thread_size_and_lifetime() {
    assert_eq!(tables(by_thread, &["thread", "calls", "bytes"]), ["main | 70 | 2400"]);
    assert_eq!(tables(by_size, &["larger_than", "up_to_size", "calls", "share"]), ["16 | 32 | 70 | 100"]);
    assert_eq!(tables(by_lifetime, &["longer_than", "up_to_time", "blocks"]), ["0 | 1000 | 40"]);
}

#[test]
fn pictures_of_bytes_are_in_bytes() {
    let capture = example();
    drawn::selected(&capture, &[], |selection| {
        let tree = |measure| calltree::heap(selection, &calltree::Options::default(), measure);
        let peak = tree(Measure::Peak);
        assert_eq!((&*peak.title, &*peak.unit, peak.nodes[0].total), ("Heap at its peak", "bytes", 1300));
        assert_eq!(tree(Measure::Temporary).nodes[0].total, 40);
        assert_eq!(tree(Measure::Leaked).nodes[0].total, 1000);
    });
}

#[test]
fn the_curve_has_the_readings_of_each_process() {
    let mut capture = example();
    for (time_ns, live) in [(100, 5), (200, 9)] {
        let (process, name) = (Some(ProcessId(0)), capture.intern_text("heap_live_bytes"));
        capture.counters.push(Counter { time_ns, process, thread: None, name, value: live });
    }
    let table = drawn::selected(&capture, &[], over_time);
    assert_eq!(cells(&table, &["time", "live_bytes", "calls"]), ["100 | 5 | -", "200 | 9 | -"]);
}

#[test]
fn a_capture_without_a_heap_says_how_to_record_one() {
    let capture = drawn::folded("main;a 1");
    drawn::selected(&capture, &[], |selection| {
        let tables = crate::analysis::tables(&ANALYSIS, &ANALYSIS.views[0], selection, &Default::default());
        assert_eq!(tables[0].notes, ["`heap` was not recorded; fix: `stepscope record --with heap`."]);
        assert!((ANALYSIS.report)(selection).is_empty());
    });
}

//! Exports of memray: one recording, in all forms.

use std::path::{Path, PathBuf};

use super::*;
use crate::import::{Source, import};

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/memray").join(name)
}

fn of_seed(name: &str) -> Capture {
    import(Source::open(&seed(name)).unwrap(), &ImportOptions::default()).unwrap()
}

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

fn sum(capture: &Capture, of: fn(&Allocation) -> u64) -> u64 {
    capture.allocations.iter().map(of).sum()
}

/// Bytes and calls of the blocks that the script holds, by the stack that allocated them.
fn held(capture: &Capture) -> Vec<String> {
    let row = |row: &Allocation| {
        let mut names: Vec<&str> = capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect();
        names.reverse();
        (names.last() == Some(&"<listcomp>")).then(|| format!("{} {} {}", names.join(";"), row.calls, row.bytes))
    };
    capture.allocations.iter().filter_map(row).collect()
}

/// What `memray stats` says of the recording.
const PEAK_BYTES: u64 = 262_993;

#[test]
fn all_forms_have_the_blocks_of_the_peak() {
    let from_tracker = |capture: &Capture| held(capture)[0].rsplit_once(';').unwrap().0.to_owned();
    let csv = of_seed("rows.csv");
    assert!(from_tracker(&csv).ends_with("<module>;main;hold"));
    for name in ["rows.csv", "speedscope.json", "gprof2dot.json", "flame.html", "table.html"] {
        let capture = of_seed(name);
        // Profiles leave out blocks without a stack.
        let (bytes, calls) = if name.ends_with(".json") { (PEAK_BYTES - 16_416, 69) } else { (PEAK_BYTES, 71) };
        assert_eq!(sum(&capture, |row| row.bytes), bytes, "{name}");
        assert_eq!(sum(&capture, |row| row.peak_bytes as u64), bytes, "{name}");
        let has_calls = name != "gprof2dot.json";
        assert_eq!(sum(&capture, |row| row.calls), if has_calls { calls } else { 0 }, "{name}");
        assert!(
            held(&capture)[0].ends_with(&format!("<listcomp> {} 200020", if has_calls { 20 } else { 0 })),
            "{name}"
        );
        assert_eq!(capture.info.losses.malformed_records, 0, "{name}");
        if name != "table.html" {
            assert_eq!(from_tracker(&capture), from_tracker(&csv), "{name}");
        }
    }
    let frame = csv.frames.iter().find(|frame| &*frame.function == "hold").unwrap();
    assert_eq!((frame.file.as_deref(), frame.line, frame.language), (Some("alloc.py"), Some(4), Language::Python));
}

#[test]
fn totals_name_the_functions_that_allocate_most() {
    let capture = of_seed("stats.json");
    assert_eq!((sum(&capture, |row| row.calls), sum(&capture, |row| row.bytes)), (255, 967_250));
    let row = capture.allocations.iter().find(|row| row.calls == 100).unwrap();
    let leaf = capture.frames_of(row.stack).next().unwrap();
    assert_eq!((capture.function(leaf), row.bytes), ("temporary", 500_100));
}

#[test]
fn a_page_of_leaks_has_what_lives_at_the_end() {
    let page = std::fs::read_to_string(seed("table.html")).unwrap();
    let capture = read(&page.replace("table report", "table report (memory leaks)"));
    assert_eq!(sum(&capture, |row| row.live_bytes as u64), PEAK_BYTES);
    assert_eq!(sum(&capture, |row| row.peak_bytes as u64), 0);
}

#[test]
fn exports_that_are_cut_keep_what_is_before() {
    for name in ["rows.csv", "speedscope.json", "gprof2dot.json", "flame.html", "table.html"] {
        let text = std::fs::read_to_string(seed(name)).unwrap();
        let capture = read(text.get(..text.len() * 9 / 10).unwrap());
        let bytes = sum(&capture, |row| row.bytes);
        assert!(bytes <= PEAK_BYTES && bytes > PEAK_BYTES / 100, "{name}: {bytes}");
        assert!(capture.info.losses.malformed_records > 0, "{name}");
    }
}

#[test]
fn quoted_columns_and_bad_rows_are_distinguished() {
    let text = "allocator,num_allocations,size,tid,thread_name,stack_trace\n\
        MALLOC,2,10,1,\"a \"\"b\"\", c\",\"f<int, int>;a,b.py;3|main;a.py;1\"\nMALLOC,x,10,1,a,f;b;1\nMALLOC,1\n";
    let capture = read(text);
    assert_eq!(capture.threads[0].name, "a \"b\", c");
    assert_eq!(&*capture.frames[1].function, "f<int, int>");
    assert_eq!(capture.info.losses.malformed_records, 2);
}

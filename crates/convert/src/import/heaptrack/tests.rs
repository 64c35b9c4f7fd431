//! Files of heaptrack, drawn as text, and one that heaptrack itself wrote.

use super::*;
use crate::import::{Source, import};

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// Function names from the root, then calls, bytes, temporary, live and peak bytes.
fn rows(capture: &Capture) -> Vec<String> {
    let row = |row: &stepscope_model::Allocation| {
        let mut names: Vec<&str> = capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect();
        names.reverse();
        let names = names.join(";");
        format!("{names} {} {} {} {} {}", row.calls, row.bytes, row.temporary, row.live_bytes, row.peak_bytes)
    };
    capture.allocations.iter().map(row).collect()
}

const INTERPRETED: &str = "v 10400 3\nX ./sim --fast\nI 1000 10\ns 5 /a/so\ns 4 main\ns 5 inner\ns 3 a.c\ni 10 1 2 4 5\n\
    t 1 0\ni 20 1 3 4 7 2 4 9\nt 2 1\na 64 2\na 10 1\n+ 0\n- 0\n+ 0\n+ 1\nc a\nR 3\n- 0\n";

#[test]
fn an_interpreted_file_has_sums_by_stack_and_the_heap_over_time() {
    let capture = read(INTERPRETED);
    assert_eq!(rows(&capture), ["main 1 16 0 16 16", "main;main;inner 2 200 1 0 100"]);
    let inner = capture.frames.iter().find(|frame| &*frame.function == "inner").unwrap();
    assert_eq!((inner.line, inner.inlined, inner.file.as_deref()), (Some(7), true, Some("a.c")));
    assert_eq!(capture.info.command, ["./sim", "--fast"]);
    let readings: Vec<_> = capture.counters.iter().map(|read| (read.time_ns, &*read.name, read.value)).collect();
    let expected = [("heap_live_bytes", 116), ("heap_calls", 3), ("heap_bytes", 216), ("rss_bytes", 3 * 4096)];
    assert_eq!(readings, expected.map(|(name, value)| (10_000_000, name, value)));
    assert_eq!(capture.info.losses.malformed_records, 0);
}

#[test]
fn format_2_has_texts_without_lengths() {
    let text = "v 10200 2\nX a\ns /lib\ns f with space\ni 1 1 2\nt 1 0\na 8 1\n+ 0\n";
    assert_eq!(rows(&read(text)), ["f with space 1 8 0 8 8"]);
}

#[test]
fn a_function_without_a_name_has_its_address_and_line() {
    let capture = read("v 10400 3\nX a\ns 6 /ld.so\ns 6 rtld.c\ni 9f 1 0 2 7\nt 1 0\na 8 1\n+ 0\n");
    assert_eq!(rows(&capture), ["ld.so+0x9f 1 8 0 8 8"]);
    assert_eq!((capture.frames[0].line, capture.info.losses.malformed_records), (Some(7), 0));
}

#[test]
fn a_raw_file_has_blocks_by_pointer_and_the_modules_of_their_time() {
    let text = "v 10400 3\nx 9 /no/where\nX a\nm 1 x 1000 0 100\nt 1011 0\n+ 20 1 f00\n- f00\n+ 30 1 f00\nm 1 -\n\
        m 5 /b.so 1000 0 100\nt 1021 1\n+ 5 2 f10\n- 123\nc 1\n";
    let capture = read(text);
    assert_eq!(rows(&capture), ["where+0x10 2 80 1 48 48", "where+0x10;b.so+0x20 1 5 0 5 5"]);
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_what_is_before() {
    let whole = rows(&read(INTERPRETED));
    for end in INTERPRETED.find("+ 0").unwrap() + 4..INTERPRETED.len() {
        let capture = read(&INTERPRETED[..end]);
        assert!(!capture.allocations.is_empty());
        let is_cut_in_a_line = !INTERPRETED[..end].ends_with('\n');
        assert_eq!(capture.info.losses.malformed_records, u64::from(is_cut_in_a_line), "{end}");
    }
    assert_eq!(whole.len(), 2);
}

#[test]
fn lines_that_are_no_records_are_counted_and_numbers_stay() {
    let text = "v 10400 3\nX a\ns 99 x\ns 1 f\ni zz\ni 1 0 1\nt 9 0\nt 2 0\na 8 7\na 8 2\n+ 9\n+ 1\n- 9\n?\n+ ffffffffffffffffff\n";
    let capture = read(text);
    assert_eq!(rows(&capture), ["f 1 8 0 8 8"]);
    assert_eq!(capture.info.losses.malformed_records, 8);
    assert!(capture.info.notes[0].ends_with("the first is line 3: it is shorter than its text."));
}

/// What `heaptrack_print` says of a file.
fn printed(file: &std::path::Path) -> Option<[u64; 3]> {
    let output = std::process::Command::new("heaptrack_print").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |label: &str| {
        let line = text.lines().find(|line| line.starts_with(label))?;
        let word = line[label.len()..].trim().split([' ', '(']).next()?;
        let (digits, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len()));
        // heaptrack's units are decimal.
        let factor = match unit {
            "K" => 1e3,
            "M" => 1e6,
            _ => 1.0,
        };
        Some((digits.parse::<f64>().ok()? * factor) as u64)
    };
    Some([
        number("calls to allocation functions:")?,
        number("temporary memory allocations:")?,
        number("peak heap memory consumption:")?,
    ])
}

#[test]
fn sums_are_those_of_heaptrack_print() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/heaptrack");
    let interpreted = folder.join("interpreted.zst");
    let Some([calls, temporary, peak]) = printed(&interpreted) else {
        eprintln!("skipped: sums_are_those_of_heaptrack_print: heaptrack_print is missing");
        return;
    };
    // It calls one more release temporary, see above; and in interpreted files also that of another block of the same kind.
    for (file, more) in [(interpreted, 1), (folder.join("raw.zst"), 2)] {
        let capture = import(Source::open(&file).unwrap(), &ImportOptions::default()).unwrap();
        let sum = |of: fn(&stepscope_model::Allocation) -> u64| capture.allocations.iter().map(of).sum::<u64>();
        assert_eq!(sum(|row| row.calls), calls);
        assert_eq!(sum(|row| row.temporary) + more, temporary);
        // It rounds to tens of bytes here.
        assert_eq!((sum(|row| row.peak_bytes.max(0) as u64) + 5) / 10, peak / 10);
    }
}

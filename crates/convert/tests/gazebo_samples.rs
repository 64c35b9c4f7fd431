//! The public stacks of the Gazebo study, against values that were computed independently.
//!
//! The samples lie beside the checkout; without them the checks are skipped by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use stepscope_convert::export::{self, ExportOptions, Format};
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::Capture;

/// Sample file and the file of its expected values, under `gazebo/`.
const CASES: [(&str, &str); 5] = [
    ("expected/micro.folded", "micro"),
    ("3k_shapes_static.steady.cpu.folded", "runtime__3k_shapes_static"),
    ("3k_shapes_static.steady.cache-misses.folded", "cache__3k_static_rt_cachemiss"),
    ("jetty.steady.cpu.folded", "runtime__jetty_headless"),
    ("sensors_nonrendering.loading.cpu.folded", "loading__sensors_nonrendering_loading"),
];

fn samples(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let folder = std::env::var_os("STEPSCOPE_SAMPLES").map_or(beside, PathBuf::from).join("gazebo");
    if !folder.is_dir() {
        println!("skipped: {test}: no samples beside the checkout, and STEPSCOPE_SAMPLES names none");
        return None;
    }
    Some(folder)
}

fn read(path: &Path) -> Capture {
    import(Source::open(path).unwrap(), &ImportOptions::default()).unwrap()
}

/// What the expected values hold of the facts that need no analysis.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    lines: u64,
    total: u64,
    distinct_functions: u64,
    deepest: u64,
    with_recursion: u64,
    without_stack: u64,
    by_thread: BTreeMap<String, u64>,
}

impl Facts {
    fn expected(expected: &Value) -> Self {
        let number = |key: &str| expected[key].as_u64().unwrap();
        let thread = |thread: &Value| (thread["comm"].as_str().unwrap().to_owned(), thread["weight"].as_u64().unwrap());
        Self {
            lines: number("lines"),
            total: number("total"),
            distinct_functions: number("distinct_functions"),
            deepest: number("max_function_depth"),
            with_recursion: number("lines_with_recursion"),
            without_stack: number("comm_only_weight"),
            by_thread: expected["comm"].as_array().unwrap().iter().map(thread).collect(),
        }
    }

    fn of(capture: &Capture) -> Self {
        let mut facts = Self {
            lines: 0,
            total: 0,
            distinct_functions: capture.frames.iter().map(|frame| &frame.function).collect::<BTreeSet<_>>().len()
                as u64,
            deepest: 0,
            with_recursion: 0,
            without_stack: 0,
            by_thread: BTreeMap::new(),
        };
        for sample in &capture.samples {
            let frames: Vec<_> = capture.frames_of(sample.stack).collect();
            let distinct: BTreeSet<_> = frames.iter().collect();
            facts.lines += 1;
            facts.total += sample.weight;
            facts.deepest = facts.deepest.max(frames.len() as u64);
            facts.with_recursion += u64::from(distinct.len() < frames.len());
            facts.without_stack += if frames.is_empty() { sample.weight } else { 0 };
            *facts.by_thread.entry(capture.threads[sample.thread.index()].name.clone()).or_default() += sample.weight;
        }
        facts
    }
}

#[test]
fn the_studys_folded_stacks_import_to_exactly_the_expected_values() {
    let Some(folder) = samples("the_studys_folded_stacks_import_to_exactly_the_expected_values") else { return };
    for (file, expected) in CASES {
        let expected = std::fs::read(folder.join(format!("expected/{expected}.json"))).unwrap();
        let expected = Facts::expected(&serde_json::from_slice(&expected).unwrap());
        let capture = read(&folder.join(file));
        assert_eq!(Facts::of(&capture), expected, "{file}");
        assert_eq!(capture.info.losses.malformed_records, 0, "{file}");
    }
}

#[test]
fn the_studys_folded_stacks_are_exported_byte_for_byte() {
    let Some(folder) = samples("the_studys_folded_stacks_are_exported_byte_for_byte") else { return };
    for (file, _) in CASES {
        let path = folder.join(file);
        let mut written = Vec::new();
        export::write(&read(&path), Format::Folded, &mut written, &ExportOptions::default()).unwrap();
        assert!(written == std::fs::read(&path).unwrap(), "{file}");
    }
}

//! Inputs of every format, damaged at random: nothing panics, and what is read keeps the capture's rules.
//!
//! The fuzz targets in `fuzz/` search deeper; this runs everywhere, from the same seeds.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stepscope_convert::export::{self, Evidence, ExportOptions, Format};
use stepscope_convert::import::{FORMATS, format_named};
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, EventId};

/// One way to damage a file.
#[derive(Debug, Clone)]
enum Damage {
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize, usize),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..20),
        prop::sample::select(vec![
            &b"\n"[..],
            b"\n\n",
            b"\t",
            b" ",
            b";",
            b"99999999999999999999",
            b"18446744073709551615",
            b"4294967296",
            b"-1",
            b"0x",
            b"+0x",
            b"(",
            b")",
            b"(inlined)",
            b"/",
            b":",
            b"[",
            b"]",
            b"\xff\xfe",
            b"\0",
            b"# ",
            b"PERF_RECORD_LOST lost 18446744073709551615",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop_oneof![
        place().prop_map(Damage::Cut),
        (place(), 1usize..40).prop_map(|(at, length)| Damage::Remove(at, length)),
        (place(), 1usize..60, 1usize..5).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        (place(), 1u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (place(), piece).prop_map(|(at, piece)| Damage::Insert(at, piece)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let end = |at: usize, length: usize, bytes: &[u8]| (at + length).min(bytes.len());
        match self {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Remove(at, length) => {
                let at = at.index(bytes.len());
                bytes.drain(at..end(at, *length, bytes));
            }
            Damage::Repeat(at, length, times) => {
                let at = at.index(bytes.len());
                let piece = bytes[at..end(at, *length, bytes)].repeat(*times);
                bytes.splice(at..at, piece);
            }
            Damage::Flip(at, bits) => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            Damage::Insert(at, piece) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

/// Reads it, by content and as the format it was, and writes what was read.
fn survives(bytes: &[u8], format: &str) {
    for format in [None, format_named(format)] {
        let options = ImportOptions { format, ..ImportOptions::default() };
        match import(Source::stream("it", bytes), &options) {
            // `import` has checked the capture's handles.
            Ok(capture) => write_all(&capture),
            Err(error) => {
                let message = error.to_string();
                assert!(!message.contains("defect of stepscope"), "{message}");
            }
        }
    }
}

fn write_all(capture: &Capture) {
    for format in Format::ALL {
        for evidence in [None, Some(Evidence::OffCpu), Some(Evidence::Event(EventId(0)))] {
            let options = ExportOptions { evidence, ..ExportOptions::default() };
            // What cannot be written so (several events in one file, no times) says so.
            let _ = export::write(capture, format, &mut std::io::sink(), &options);
        }
    }
}

#[test]
fn damaged_inputs_are_read_as_far_as_they_are_good_and_never_panic() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    // Traces in folders are damaged in `crates/ctf/tests/damaged.rs`.
    for format in FORMATS.iter().filter(|format| !format.is_a_folder()) {
        let folder = seeds.join(format.name().replace(['-', '.'], "_"));
        let files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{} has no file", folder.display());
        for file in files {
            let seed = std::fs::read(&file).unwrap();
            let read = import(Source::stream("it", &seed[..]), &ImportOptions::default());
            assert!(read.is_ok(), "the seed {} is good", file.display());
            let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(400) });
            let damages = prop::collection::vec(damage(), 1..6);
            let outcome = runner.run(&damages, |damages| {
                let mut bytes = seed.clone();
                damages.iter().for_each(|damage| damage.apply(&mut bytes));
                survives(&bytes, format.name());
                Ok(())
            });
            outcome.unwrap();
        }
    }
}

/// `./dev fuzz` runs the targets that have seeds.
#[test]
fn every_fuzz_target_has_seeds_and_is_built() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names = |folder: &str| -> std::collections::BTreeSet<String> {
        let entries = fuzz.join(folder).read_dir().unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets = names("targets");
    assert_eq!(targets, names("seeds"));
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for target in targets {
        assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
    }
}

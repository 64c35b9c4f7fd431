//! The seeds of every target, damaged at random: nothing panics, and what is read keeps the capture's rules.
//!
//! `./dev fuzz` searches deeper; this runs everywhere, from the same seeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stepscope_analyze::parallel;
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_fuzz::Target;

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

/// The seeds of `target`.
fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let files = folder.read_dir().unwrap_or_else(|_| panic!("{} has no seeds", folder.display()));
    files.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn damaged_inputs_are_read_as_far_as_they_are_good_and_never_panic() {
    let targets = Target::all();
    let inputs = targets.iter().flat_map(|target| {
        let seeds = seeds(&target.name);
        assert!(!seeds.is_empty(), "{target:?} has no seed");
        seeds.into_iter().map(move |seed| (target, seed))
    });
    parallel::map(&inputs.collect::<Vec<_>>(), |(target, seed)| read_damaged(target, seed));
}

fn read_damaged(target: &Target, seed: &Path) {
    let bytes = std::fs::read(seed).unwrap();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(400) });
    let outcome = runner.run(&prop::collection::vec(damage(), 1..6), |damages| {
        let mut bytes = bytes.clone();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        target.read(&bytes);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{}: {error}", seed.display()));
}

#[test]
fn the_seeds_of_importers_are_good_and_recognised() {
    for target in Target::all().iter().filter(|target| target.is_importer()) {
        for seed in seeds(&target.name) {
            let bytes = std::fs::read(&seed).unwrap();
            let read = import(Source::stream("it", &bytes[..]), &ImportOptions::default());
            assert!(read.is_ok(), "{}: {read:?}", seed.display());
        }
    }
}

#[test]
fn every_folder_of_seeds_has_a_target() {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").read_dir().unwrap();
    let folders: BTreeSet<_> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, Target::all().into_iter().map(|target| target.name).collect());
}

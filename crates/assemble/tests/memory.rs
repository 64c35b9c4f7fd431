//! The end of a recording takes no memory for each row of the long tables, and reading takes at most 64 bytes for each.

mod long_log;
mod peak;

use std::fs::File;
use std::path::Path;

use long_log::Recording;
use peak::peak_of;
use stepscope_assemble::{NoSymbols, finish, finish_in};
use stepscope_model::disk;

/// Writes a log with this many waits to a folder, and makes its capture there.
fn finished(folder: &Path, waits: u64) {
    let log = folder.join(disk::RAW_LOG_FILE);
    Recording { seconds: waits / 10_000, switches_hz: 10_000, steps_hz: 2_000 }
        .write(File::create(&log).unwrap())
        .unwrap();
    let capture = finish_in(folder, File::open(&log).unwrap(), &mut NoSymbols).unwrap();
    disk::write(&capture, folder).unwrap();
    assert_eq!(capture.waits.len() as u64, waits);
    assert_eq!(capture.steps.len() as u64, waits / 5 - 1);
    assert_eq!(capture.scopes.len() as u64, waits + 1);
}

/// One test, because the allocator counts for the whole process.
#[test]
fn memory_is_bounded_and_the_capture_is_the_same() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (few, many) = (600_000, 1_200_000);
    let ((), for_few) = peak_of(|| finished(folders[0].path(), few));
    let ((), for_many) = peak_of(|| finished(folders[1].path(), many));
    println!("finishing {few} waits: {for_few} bytes, {many} waits: {for_many} bytes");
    // Each table has two groups of rows, up to 6 MiB each, and the columns of one. How many tables encode at the same time is
    // chance. In memory, the rows would take 58 MB more.
    assert!(for_many < for_few + (32 << 20), "{for_few} bytes for few waits, {for_many} for many");

    let (capture, to_open) = peak_of(|| disk::open(folders[1].path()).unwrap());
    assert!(to_open < 4 << 20, "opening takes {to_open} bytes");
    let (loaded, to_load) = peak_of(|| capture.load());
    loaded.unwrap();
    println!("loading {many} waits: {to_load} bytes");
    let rows = many as usize + capture.steps.len() + capture.scopes.len() + capture.counters.len();
    assert!(to_load < 64 * rows + (16 << 20), "loading takes {to_load} bytes");

    // Made in memory and at once, it is the same.
    let log = File::open(folders[1].path().join(disk::RAW_LOG_FILE)).unwrap();
    let at_once = finish(log, &mut NoSymbols).unwrap();
    assert!(capture.samples == at_once.samples, "other samples");
    assert!(capture.waits == at_once.waits, "other waits");
    assert!(capture.steps == at_once.steps, "other steps");
    assert!(capture.scopes == at_once.scopes, "other scopes");
    assert!(capture.counters == at_once.counters, "other readings");
    let deepest = capture.scopes.iter().map(|scope| scope.depth).max();
    assert_eq!(deepest, Some(3), "run, step, physics, contacts");
    let infos = [&capture, &at_once].map(|capture| capture.info.losses.clone());
    assert_eq!(infos[0], infos[1]);
    assert_eq!(capture.threads, at_once.threads);
}

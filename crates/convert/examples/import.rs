//! Imports a file, and prints what it has, how long it took, and the most memory that it used.
//!
//! `cargo run --release -p stepscope-convert --example import FILE [-o FOLDER]`: with a folder, it writes the capture there, and
//! tables that may be long are not kept in memory.

use std::path::PathBuf;
use std::time::Instant;

use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::disk;

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let path = arguments.first().expect("usage: import FILE [-o FOLDER]");
    let folder = arguments.iter().position(|argument| argument == "-o").and_then(|at| arguments.get(at + 1));
    let folder = folder.map(PathBuf::from);
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    let start = Instant::now();
    let source = Source::open(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let options = ImportOptions { folder: folder.clone(), ..ImportOptions::default() };
    let capture = import(source, &options).unwrap_or_else(|error| panic!("{error}"));
    if let Some(folder) = &folder {
        disk::write(&capture, folder).unwrap_or_else(|error| panic!("{error}"));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} threads, {} waits, {} scopes, {} counters, {} flows in {seconds:.2} s",
        capture.threads.len(),
        capture.waits.len(),
        capture.scopes.len(),
        capture.counters.len(),
        capture.flows.len()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("RssAnon"))
        .for_each(|line| println!("{line}"));
    capture.info.notes.iter().for_each(|note| println!("{note}"));
}

//! Imports a file, and prints what it has, how long it took, and the most memory that it used.
//!
//! `cargo run --release -p stepscope-convert --example import FILE`

use std::time::Instant;

use stepscope_convert::{ImportOptions, Source, import};

fn main() {
    let path = std::env::args_os().nth(1).expect("usage: import FILE");
    let start = Instant::now();
    let source = Source::open(path.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let capture = import(source, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} threads, {} waits, {} scopes, {} counters in {seconds:.2} s",
        capture.threads.len(),
        capture.waits.len(),
        capture.scopes.len(),
        capture.counters.len()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("RssAnon"))
        .for_each(|line| println!("{line}"));
    capture.info.notes.iter().for_each(|note| println!("{note}"));
}

//! `stepscope diagnose --deepen` of a capture: its command runs again.

#![cfg(target_arch = "x86_64")]

mod common;

use std::fs;
use std::process::Command;

use serde_json::Value;

use common::{json, stepscope, text};

/// Sorts places that never change in each step, and moves bodies.
const SOURCE: &str = r#"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>
struct Index {
    std::vector<double> sorted;
    __attribute__((noinline)) void build(const std::vector<double> &places) {
        sorted = places;
        std::sort(sorted.begin(), sorted.end());
    }
};
__attribute__((noinline)) double move(std::vector<double> &bodies, double time) {
    double sum = 0;
    for (double &body : bodies) { body += std::sin(time + body) * 1e-3; sum += body; }
    return sum;
}
int main() {
    std::vector<double> places, bodies(3000, 1.5);
    for (int i = 0; i < 2000; ++i) places.push_back((i * 7919) % 10007);
    Index index;
    double total = 0;
    for (int step = 0; step < 100000000; ++step) {
        index.build(places);
        total += index.sorted[step % 2000] + move(bodies, step * 0.01);
    }
    printf("%f\n", total);
}
"#;

#[test]
fn work_that_is_done_again_is_found_when_the_command_runs_again() {
    const NAME: &str = "work_that_is_done_again_is_found_when_the_command_runs_again";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("world.cpp"), SOURCE).unwrap();
    let compiler = Command::new("g++").args(["-O2", "-g", "-o", "world", "world.cpp"]).current_dir(at).status();
    let Ok(compiled) = compiler else { return println!("skipped: {NAME}: no g++ to build the program") };
    assert!(compiled.success());
    let recorded = stepscope(at, &["record", "-o", "c", "--duration", "2s", "--", "./world"]);
    if !recorded.status.success() {
        return println!("skipped: {NAME}: nothing can be recorded: {}", text(&recorded.stderr));
    }
    let rows = |arguments: &[&str]| {
        let found = stepscope(at, &[&["diagnose", "c", "--format", "json"], arguments].concat());
        let (table, notes) = (json(&found), text(&found.stderr));
        let rows = table["rows"].as_array().unwrap().clone();
        (rows.into_iter().filter(|row| row["kind"] == "same-work-again").collect::<Vec<Value>>(), notes)
    };
    let (before, _) = rows(&[]);
    assert!(before.is_empty(), "samples do not show it: {before:?}");
    let (found, notes) = rows(&["--deepen"]);
    assert!(notes.contains("runs again: ./world"), "{notes}");
    if notes.contains("calls were not replayed") {
        return println!("skipped: {NAME}: {notes}");
    }
    let [one] = &found[..] else { panic!("{found:?} {notes}") };
    assert_eq!(one["function"], "Index::build", "{one}");
    assert!(one["gain_share"].as_f64().unwrap() > 10.0, "{one}");
    // It is kept.
    assert_eq!(rows(&[]).0.len(), 1);
}

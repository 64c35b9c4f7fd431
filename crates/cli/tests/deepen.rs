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

/// Plans ways on a map that changes each 50 steps, for three robots with few goals. A second argument keeps the ways.
const PYTHON: &str = r#"
import random, sys
FIXED = len(sys.argv) > 2

class World:
    def __init__(self):
        self.random = random.Random(1)
        self.heights = [self.random.random() for _ in range(200)]
        self.kept, self.total, self.places = {}, 0.0, [0.0] * 300

    def plan(self, start, goal):
        costs = list(self.heights)
        for turn in range(20):
            for one in range(1, len(costs)):
                costs[one] = min(costs[one], costs[one - 1] * 1.01 + start)
        return [round(cost * goal, 6) for cost in costs]

    def way(self, start, goal):
        if not FIXED:
            return self.plan(start, goal)
        if (start, goal) not in self.kept:
            self.kept[start, goal] = self.plan(start, goal)
        return self.kept[start, goal]

    def move(self):
        for turn in range(10):
            for one in range(len(self.places)):
                self.places[one] += self.random.random()

    def step(self, number):
        if number % 50 == 0:
            self.heights[number % 200] += 1.0
            self.kept.clear()
        for robot in range(3):
            self.total += self.way(robot, 5)[-1]
        self.move()

world = World()
for number in range(int(sys.argv[1])):
    world.step(number)
"#;

#[test]
fn work_of_python_functions_is_compared_when_the_command_runs_again() {
    const NAME: &str = "work_of_python_functions_is_compared_when_the_command_runs_again";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let version = Command::new("python3").args(["-c", "import sys; print(sys.version_info[1])"]).output();
    let version = version.ok().and_then(|out| text(&out.stdout).trim().parse::<u32>().ok());
    if !version.is_some_and(|minor| (9..=13).contains(&minor)) {
        return println!("skipped: {NAME}: no python3 of 3.9 to 3.13");
    }
    fs::write(at.join("world.py"), PYTHON).unwrap();
    for (name, fixed) in [("slow", false), ("mended", true)] {
        // Also without the site's modules and the user's variables.
        let command = ["record", "-o", name, "--duration", "2s", "--", "python3", "-I", "-S", "world.py", "10000000"];
        let recorded = stepscope(at, &[&command[..], if fixed { &["fixed"] } else { &[] }].concat());
        if !recorded.status.success() {
            return println!("skipped: {NAME}: nothing can be recorded: {}", text(&recorded.stderr));
        }
        let found = stepscope(at, &["diagnose", name, "--format", "json", "--deepen"]);
        let (table, notes) = (json(&found), text(&found.stderr));
        let rows = table["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "same-work-again");
        let rows: Vec<&Value> = rows.collect();
        assert!(!notes.contains("were not compared: no process"), "{notes}");
        if fixed {
            assert!(rows.is_empty(), "{rows:?} {notes}");
            continue;
        }
        let [one] = &rows[..] else { panic!("{rows:?} {notes}") };
        let function = one["function"].as_str().unwrap();
        assert!(function.starts_with("py::World.plan:") || function.starts_with("py::World.way:"), "{one}");
        assert!(one["gain_share"].as_f64().unwrap() > 10.0, "{one}");
        assert!(one["why"].as_str().unwrap().contains("`self.heights`"), "{one}");
        assert!(one["advice"].as_str().unwrap().contains("lru_cache"), "{one}");
    }
}

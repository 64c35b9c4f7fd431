//! Calls of a running program are replayed, and the program does not notice.

#![cfg(target_arch = "x86_64")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use stepscope_record::replay::{ReplaySite, Replays, replay_calls};
use stepscope_symbolize::{Code, Options, Symbolizer, entries, inlined_code};

/// Three threads. Each step rebuilds an index of places that change each 50th step, and moves bodies.
const SOURCE: &str = r#"
#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>
struct Index {
    std::vector<double> sorted;
    __attribute__((noinline)) void build(const std::vector<double> &places) {
        sorted = places;
        std::sort(sorted.begin(), sorted.end());
    }
};
struct Codec {
    // Inlined into `loop`.
    __attribute__((always_inline)) unsigned encode(const std::vector<int> &blocks) {
        unsigned hash = 2166136261u;
        for (int block : blocks) hash = (hash ^ (unsigned)block) * 16777619u;
        return hash;
    }
};
__attribute__((noinline)) double move(std::vector<double> &bodies, double time) {
    double sum = 0;
    for (double &body : bodies) { body += time; sum += body / (1 + body); }
    return sum;
}
double totals[3];
void loop(int number) {
    std::vector<double> places, bodies(500, 1.5);
    std::vector<int> blocks;
    for (int i = 0; i < 300; ++i) { places.push_back((i * 7919) % 1000 + number); blocks.push_back(i * 31 % 17); }
    Index index;
    Codec codec;
    double total = 0;
    for (int step = 0; step < STEPS; ++step) {
        if (step % 50 == 0) places[step % 300] += 1;
        index.build(places);
        total += index.sorted[step % 300] + move(bodies, step) * 1e-6;
        if (step % 7 == 0) total += codec.encode(blocks) % 97;
        if (number == 0 && step == 100) { puts("started"); fflush(stdout); }
    }
    totals[number] = total;
}
int main() {
    std::thread one(loop, 1), two(loop, 2);
    loop(0);
    one.join();
    two.join();
    printf("%.6f\n", totals[0] + totals[1] + totals[2]);
}
"#;

/// The compiled program, and the folder that holds it.
fn program(test: &str, steps: u32) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("world.cpp"), folder.path().join("world"));
    std::fs::write(&source, SOURCE.replace("STEPS", &steps.to_string())).unwrap();
    let arguments = ["-O2", "-g", "-std=c++17", "-pthread", "-o"];
    let Ok(compiled) = Command::new("g++").args(arguments).arg(&program).arg(&source).status() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    assert!(compiled.success());
    Some((folder, program))
}

fn start(program: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    (child, output)
}

fn site(program: &Path, name: &str) -> ReplaySite {
    let found = entries(program, &Options::default(), |demangled, _| demangled == name).unwrap();
    ReplaySite { module: program.to_owned(), offset: found[0].offset, inlined: Vec::new() }
}

/// The place where `inlined` is inlined into `function`.
fn inlined_site(program: &Path, function: &str, inlined: &str) -> ReplaySite {
    let start = site(program, function).offset;
    let offsets: Vec<u64> = (start..start + 3000).collect();
    let named = Symbolizer::default().name(&Code::file(program), &offsets);
    let is_inside = |place: &&stepscope_symbolize::Place| place.frames.iter().any(|frame| *frame.function == *inlined);
    let address = named.places.iter().find(is_inside).and_then(|place| place.address).expect("it is inlined");
    let code = inlined_code(program, &Options::default(), &[(address, inlined)]).unwrap().remove(0).unwrap();
    ReplaySite { module: program.to_owned(), offset: code.entry, inlined: code.code }
}

/// `None` if the kernel or the machine refuses.
fn replayed(test: &str, pid: u32, sites: &[ReplaySite]) -> Option<Vec<Replays>> {
    match replay_calls(pid, sites, &AtomicBool::new(false)) {
        Ok(found) => Some(found),
        Err(error) => {
            println!("skipped: {test}: the kernel refuses hardware breakpoints: {error}");
            None
        }
    }
}

#[test]
fn calls_that_repeat_others_are_distinguished_from_those_that_do_not() {
    const NAME: &str = "calls_that_repeat_others_are_distinguished_from_those_that_do_not";
    let Some((_folder, program)) = program(NAME, 400_000_000) else { return };
    let (mut child, _output) = start(&program);
    let sites =
        [site(&program, "Index::build"), site(&program, "move"), inlined_site(&program, "loop", "Codec::encode")];
    let found = replayed(NAME, child.id(), &sites);
    let _ = child.kill();
    child.wait().unwrap();
    let Some(found) = found else { return };
    let [build, moved, encode] = &found[..] else { panic!("{found:?}") };
    assert!(build.repeated >= 10 && build.part > 0.8, "{build:?}");
    assert!(build.input_bytes >= 2400 && build.output_bytes >= 2400, "{build:?}");
    assert!(moved.followed >= 10 && moved.repeated == 0, "{moved:?}");
    assert!(encode.repeated >= 10 && encode.part > 0.8, "{encode:?}");
}

#[test]
fn a_program_whose_calls_are_replayed_computes_what_it_would_have() {
    const NAME: &str = "a_program_whose_calls_are_replayed_computes_what_it_would_have";
    let Some((_folder, program)) = program(NAME, 60_000) else { return };
    let last = |output: BufReader<std::process::ChildStdout>| output.lines().last().unwrap().unwrap();
    let (mut alone, output) = start(&program);
    let expected = last(output);
    assert!(alone.wait().unwrap().success());
    let (mut child, output) = start(&program);
    let sites = [site(&program, "Index::build"), site(&program, "move")];
    let found = replayed(NAME, child.id(), &sites);
    let result = last(output);
    assert!(child.wait().unwrap().success());
    assert_eq!(result, expected);
    if let Some(found) = found {
        assert!(found.iter().all(|one| one.followed > 0), "{found:?}");
    }
}

#[test]
fn what_was_replayed_before_a_program_ends_stays() {
    const NAME: &str = "what_was_replayed_before_a_program_ends_stays";
    let Some((_folder, program)) = program(NAME, 400_000_000) else { return };
    let (child, _output) = start(&program);
    // Four at a time: the program ends before the last ones are looked at.
    let two = [site(&program, "Index::build"), site(&program, "move")];
    let sites: Vec<ReplaySite> = two.iter().cycle().take(80).cloned().collect();
    let pid = child.id();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_secs(4));
        let mut child = child;
        child.kill().unwrap();
        // The thread that traces it may have taken its status.
        let _ = child.wait();
    });
    let found = replayed(NAME, pid, &sites);
    killer.join().unwrap();
    let Some(found) = found else { return };
    assert!((4..sites.len()).contains(&found.len()), "{}", found.len());
    assert!(found.iter().any(|one| one.followed > 0), "{found:?}");
}

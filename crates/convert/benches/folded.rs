//! Reading folded stacks, against inferno reading the same file: time and peak memory. 100 MB with stacks that repeat or
//! share their callers, and 5,000,000 stacks that are all different.
//!
//! `cargo bench -p stepscope-convert --bench folded`. Each reading is a process of its own, ours and inferno's by
//! turns. inferno draws next to nothing here (`min_width` leaves out all narrower than everything), and is spared its
//! sort where the file is sorted.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use stepscope_convert::{ImportOptions, Source, import};

const MEGABYTES: usize = 100;
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, reader, order, file] = &arguments[..] {
        return read(reader, order, Path::new(file));
    }
    let folder = tempfile::tempdir().expect("a folder for the input");
    println!("folded stacks, medians of {ROUNDS} rounds by turns");
    for (order, distinct) in [("sorted", usize::MAX), ("unsorted", 20_000), ("distinct", usize::MAX)] {
        let file = folder.path().join(order);
        let lines = if order == "distinct" { generate_distinct(&file) } else { generate(&file, order, distinct) };
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (reader, measured) in ["stepscope", "inferno"].into_iter().zip(&mut measured) {
                measured.push(measure(reader, order, &file));
            }
        }
        let [ours, theirs] = measured.map(median);
        println!(
            "{order:9} {lines:>8} lines: stepscope {:.0} ms, {} MB; inferno {:.0} ms, {} MB; time ratio {:.2}, memory ratio {:.2}",
            ours.0,
            ours.1 / 1024,
            theirs.0,
            theirs.1 / 1024,
            ours.0 / theirs.0,
            ours.1 as f64 / theirs.1 as f64
        );
    }
}

/// Reads the file as the child process, and prints milliseconds and peak KiB.
fn read(reader: &str, order: &str, file: &Path) {
    let started = Instant::now();
    match reader {
        "stepscope" => {
            let capture = import(Source::open(file).expect("the input"), &ImportOptions::default()).expect("an import");
            assert_eq!(capture.info.losses.malformed_records, 0);
            std::hint::black_box(capture);
        }
        _ => {
            let mut options = inferno::flamegraph::Options::default();
            options.min_width = 100.0;
            options.no_sort = order != "unsorted";
            let input = std::fs::File::open(file).expect("the input");
            inferno::flamegraph::from_reader(&mut options, input, std::io::sink()).expect("a picture");
        }
    }
    let millis = started.elapsed().as_secs_f64() * 1e3;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("{millis} {}", peak.trim().trim_end_matches(" kB"));
}

fn measure(reader: &str, order: &str, file: &Path) -> (f64, u64) {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args([reader, order]).arg(file).output().expect("a process");
    let output = String::from_utf8(output.stdout).expect("two numbers");
    let (millis, peak) = output.trim().split_once(' ').expect("two numbers");
    (millis.parse().expect("milliseconds"), peak.parse().expect("KiB"))
}

fn median(mut measured: Vec<(f64, u64)>) -> (f64, u64) {
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    measured[measured.len() / 2]
}

/// Writes stacks of 8 to 40 frames of 300 functions with names of a C++ simulator's lengths: a random walk, so that
/// neighbours share most of their frames, as they do in sorted files. Gives the number of lines.
fn generate(file: &Path, order: &str, distinct: usize) -> usize {
    let mut random = Random(42);
    let names: Vec<String> = (0..300).map(|index| name(index, &mut random)).collect();
    let mut stacks: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut walk: Vec<usize> = Vec::new();
    while bytes < MEGABYTES << 20 && stacks.len() < distinct {
        walk.truncate(walk.len().saturating_sub(1 + random.below(6)).max(7));
        while walk.len() < 8 || (walk.len() < 40 && random.below(4) > 0) {
            walk.push(random.below(names.len()));
        }
        let frames: Vec<&str> = walk.iter().map(|&index| names[index].as_str()).collect();
        stacks.push(format!("{};{}", ["gz-sim-main", "RenderThread"][random.below(8) / 7], frames.join(";")));
        bytes += stacks[stacks.len() - 1].len();
    }
    if order == "sorted" {
        stacks.sort_unstable();
    }
    let mut out = BufWriter::new(std::fs::File::create(file).expect("the input"));
    let (mut written, mut lines) = (0, 0);
    while written < MEGABYTES << 20 {
        let stack = if order == "sorted" {
            match stacks.get(lines) {
                Some(stack) => stack,
                None => break,
            }
        } else {
            &stacks[random.below(stacks.len())]
        };
        writeln!(out, "{stack} {}", 1 + random.below(1_000_000)).expect("the input");
        written += stack.len() + 8;
        lines += 1;
    }
    lines
}

/// Writes 171 functions called by 171 functions called by 171 functions, in order. Gives the number of lines.
fn generate_distinct(file: &Path) -> usize {
    const FUNCTIONS: usize = 171;
    let mut random = Random(42);
    let names: Vec<String> = (0..FUNCTIONS).map(|index| format!("gz::sim::Component{index:03}::Update")).collect();
    let mut out = BufWriter::new(std::fs::File::create(file).expect("the input"));
    for outer in &names {
        for middle in &names {
            for inner in &names {
                let count = 1 + random.below(100_000);
                writeln!(out, "gz-sim-main;main;{outer};{middle};{inner} {count}").expect("the input");
            }
        }
    }
    FUNCTIONS.pow(3)
}

fn name(index: usize, random: &mut Random) -> String {
    let arguments =
        ["", "<int, std::pair<long, long> >", "<gz::math::v8::Pose3<double> const&, std::allocator<char> >"];
    format!("gz::sim::v9::systems::Component{index}{}::Update", arguments[random.below(3)])
}

/// xorshift: the same input every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

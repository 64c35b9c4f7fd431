//! Programs whose profile or whose waits are known by construction, built and recorded.
#![allow(dead_code)] // Each test binary uses a part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use stepscope_model::{Capture, FrameId, Sample};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Options, RecordError, Recording, Until, finish};
use stepscope_symbolize::Symbolizer;

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    WithoutFramePointers,
    WithFramePointers,
    Stripped,
}

pub const BUILDS: [Build; 3] = [Build::WithoutFramePointers, Build::WithFramePointers, Build::Stripped];

/// The folder with the programs of all builds, made once.
pub fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(build_programs).as_deref()
}

fn build_programs() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth");
    // Test binaries may run at the same time: each has programs of its own.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("truth").join(env!("CARGO_CRATE_NAME"));
    std::fs::create_dir_all(&folder).unwrap();
    let compile = |name: &str, source: &str, flags: &[&str]| {
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-fno-ipa-icf"]).args(flags).arg("-o").arg(folder.join(name)).arg(sources.join(source));
        compiler.args(["-ldl", "-lpthread"]).status().is_ok_and(|status| status.success())
    };
    let with_frame_pointers = ["-g1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    let built = compile("WithoutFramePointers", "truth.cpp", &["-g1", "-fomit-frame-pointer"])
        && compile("WithFramePointers", "truth.cpp", &with_frame_pointers)
        && compile("Stripped", "truth.cpp", &["-fomit-frame-pointer", "-rdynamic", "-s"])
        && compile("plugin.so", "plugin.cpp", &["-shared", "-fPIC", "-s"])
        && compile("waits", "waits.cpp", &["-g1"])
        && compile("steps", "steps.cpp", &["-g1"]);
    built.then_some(folder)
}

/// A recording of one case, and what the program said of it.
pub struct Recorded {
    pub case: String,
    pub build: Build,
    pub capture: Capture,
    /// What the program printed.
    pub lines: Vec<String>,
    /// CPU time by the program's own clocks, of functions and in `total`.
    pub truth_ns: BTreeMap<String, u64>,
}

/// Records a case in every build; skips it, by name, where that is impossible.
pub fn record(test: &str, case: &[&str], check: impl Fn(&Recorded)) {
    let Some(programs) = programs() else {
        println!("skipped: {test}: there is no g++ to build the program with");
        return;
    };
    for build in BUILDS {
        let plugin = programs.join("plugin.so");
        let arguments = case.iter().map(|&argument| match argument {
            "PLUGIN" => plugin.clone().into_os_string(),
            argument => argument.into(),
        });
        let command = std::iter::once(programs.join(format!("{build:?}")).into_os_string()).chain(arguments);
        let Some((capture, lines)) = record_command(test, Launch::new(command)) else { return };
        let mut truth_ns = BTreeMap::new();
        for (function, ns) in lines.iter().filter_map(|line| truth(line)) {
            *truth_ns.entry(function).or_insert(0) += ns;
        }
        check(&Recorded { case: case[0].to_owned(), build, capture, lines, truth_ns });
    }
}

/// Records a program from its first instruction to its end. Gives the capture, and the lines it printed.
pub fn record_command(test: &str, launch: Launch) -> Option<(Capture, Vec<String>)> {
    record_command_with(test, launch, &Options::default())
}

/// The same with options.
pub fn record_command_with(test: &str, launch: Launch, options: &Options) -> Option<(Capture, Vec<String>)> {
    record_launched(test, launch, options).map(|(_, capture, lines)| (capture, lines))
}

/// The same, with the id that the process had.
pub fn record_launched(test: &str, launch: Launch, options: &Options) -> Option<(u32, Capture, Vec<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let launch = launch.output(Output::captured(1000));
    let (mut launched, recording) = match Recording::launch(launch, options, folder.path()) {
        Ok(recording) => recording,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    recording.wait(&Until { duration: None, flag: None });
    let pid = launched.pid();
    launched.stop(&Grace::default()).unwrap();
    recording.stop().unwrap();
    Some((pid, captured(folder.path()), launched.last_lines()))
}

/// The capture that the log in a folder becomes.
pub fn captured(folder: &Path) -> Capture {
    let capture = finish(folder, &mut Symbolizer::default()).unwrap();
    capture.check().unwrap();
    capture
}

fn truth(line: &str) -> Option<(String, u64)> {
    let mut words = line.strip_prefix("truth ")?.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

impl Recorded {
    pub fn cpu_samples(&self) -> impl Iterator<Item = &Sample> {
        let is_cpu = |sample: &&Sample| ["cpu-clock", "cycles"].contains(&&*self.capture.event(sample.event).name);
        self.capture.samples.iter().filter(is_cpu)
    }

    /// A function's name without parameters.
    fn name(&self, frame: FrameId) -> &str {
        self.capture.function(frame).split('(').next().unwrap_or("")
    }

    /// Names of a sample's functions, leaf first, without parameters.
    pub fn names(&self, sample: &Sample) -> Vec<&str> {
        self.capture.frames_of(sample.stack).map(|frame| self.name(frame)).collect()
    }

    pub fn total(&self) -> u64 {
        self.cpu_samples().map(|sample| sample.weight).sum()
    }

    /// Weight of the samples with this function anywhere in the stack.
    pub fn inclusive(&self, function: &str) -> u64 {
        let hits = self.cpu_samples().filter(|sample| self.names(sample).contains(&function));
        hits.map(|sample| sample.weight).sum()
    }

    /// The share of a function is that by the program's own clocks, within 1.5 points or three standard errors.
    pub fn has_the_true_share_of(&self, function: &str) {
        let total = self.total() as f64;
        let share = 100.0 * self.inclusive(function) as f64 / total;
        let true_share = 100.0 * self.truth_ns[function] as f64 / self.truth_ns["total"] as f64;
        let samples = self.cpu_samples().count() as f64;
        let standard_error = 100.0 * (true_share / 100.0 * (1.0 - true_share / 100.0) / samples).sqrt();
        let tolerance = f64::max(1.5, 3.0 * standard_error);
        let Self { case, build, .. } = self;
        println!("{case} {build:?}: {function} {share:.2} %, true {true_share:.2} %, {:+.2}", share - true_share);
        assert!(
            (share - true_share).abs() <= tolerance,
            "{build:?}: {function} has {share:.1} % instead of {true_share:.1} % (± {tolerance:.1})",
        );
    }

    /// Of the samples in `function`, 99 % have one of `callers` as what called it.
    pub fn is_called_by(&self, function: &str, callers: &[&str]) {
        let (mut with, mut without) = (0, BTreeMap::new());
        for sample in self.cpu_samples() {
            let names = self.names(sample);
            let Some(at) = names.iter().rposition(|&name| name == function) else { continue };
            match names.get(at + 1) {
                Some(caller) if callers.contains(caller) => with += 1,
                other => *without.entry(format!("{other:?}")).or_insert(0) += 1,
            }
        }
        let lost: u64 = without.values().sum();
        let Self { case, build, .. } = self;
        println!("{case} {build:?}: {function} kept its caller in {with} of {}", with + lost);
        assert!(with > 20, "{build:?}: {function} was hit {with} times only; others: {without:?}");
        assert!(lost * 100 <= with + lost, "{build:?}: {lost} of {} callers of {function}: {without:?}", with + lost);
    }

    /// Less than 1 % of the samples end before a root, and less than 1 % of the weight is in code that has no name
    /// although its module has symbols, or that is in no module.
    pub fn is_rooted_and_named(&self) {
        let losses = &self.capture.info.losses;
        let Self { case, build, .. } = self;
        println!("{case} {build:?}: {} of {} stacks without a root", losses.truncated_stacks, losses.samples);
        assert!(losses.truncated_stacks * 100 <= losses.samples.max(100), "{build:?}: {losses:?}");
        let unnamed = |sample: &&Sample| {
            let mut frames = self.capture.frames_of(sample.stack);
            sample.stack.is_none() || frames.any(|frame| self.lacks_a_name(frame))
        };
        let unnamed: u64 = self.cpu_samples().filter(unnamed).map(|sample| sample.weight).sum();
        println!("{case} {build:?}: {unnamed} of {} ns unnamed", self.total());
        assert!(unnamed * 100 <= self.total(), "{build:?}: {unnamed} of {} ns", self.total());
    }

    /// Whether a frame is `[unmapped ...]`, or `module+0x...` in a module of ours that has all its symbols.
    fn lacks_a_name(&self, frame: FrameId) -> bool {
        let name = self.name(frame);
        name.starts_with("[unmapped")
            || name.starts_with(&format!("{:?}+0x", self.build)) && self.build != Build::Stripped
    }
}

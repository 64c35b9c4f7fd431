//! Programs whose profile or waits are known by construction, built and recorded.
#![allow(dead_code)] // Each test binary uses a part.

pub mod nobody;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

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
    /// Unwind tables only for debuggers.
    DebugFrame,
    /// Static, with a C library without unwind tables.
    Musl,
}

pub const BUILDS: [Build; 3] = [Build::WithoutFramePointers, Build::WithFramePointers, Build::Stripped];

/// The folder with the programs of all builds. All test binaries share it.
pub fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(programs_of_present_sources).as_deref()
}

/// Builds the programs, unless they were built from the same sources by the same commands.
fn programs_of_present_sources() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let built_from = texts.chain([include_str!("mod.rs").to_owned()]).collect::<String>();
    let noted = folder.join("built-from");
    if std::fs::read_to_string(&noted).is_ok_and(|noted| noted == built_from) {
        return Some(folder);
    }
    build_programs(&sources, &folder)?;
    std::fs::write(noted, built_from).unwrap();
    Some(folder)
}

fn build_programs(sources: &Path, folder: &Path) -> Option<()> {
    let compile = |name: &str, source: &str, flags: &[&str]| {
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-fno-ipa-icf"]).args(flags).arg("-o").arg(folder.join(name)).arg(sources.join(source));
        compiler.args(["-ldl", "-lpthread"]).status().is_ok_and(|status| {
            assert!(status.success(), "{source} does not compile");
            true
        })
    };
    let with_frame_pointers = ["-g1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    let built = compile("WithoutFramePointers", "truth.cpp", &["-g1", "-fomit-frame-pointer"])
        && compile("WithFramePointers", "truth.cpp", &with_frame_pointers)
        && compile("Stripped", "truth.cpp", &["-fomit-frame-pointer", "-rdynamic", "-s"])
        && compile("plugin.so", "plugin.cpp", &["-shared", "-fPIC", "-s"])
        && compile("waits", "waits.cpp", &["-g1"])
        && compile("steps", "steps.cpp", &["-g1"])
        && compile("ends", "ends.cpp", &["-g1"])
        && compile("naps", "naps.cpp", &["-g1"])
        && compile("hurry", "hurry.cpp", &["-g1"])
        && compile("short", "short.cpp", &["-g1"])
        && compile("starting", "starting.cpp", &["-g1"]);
    let compile_c = |compiler: &str, name: &str, flags: &[&str]| {
        let mut compiler = Command::new(compiler);
        compiler.args(["-O2", "-g1", "-fomit-frame-pointer"]).args(flags).arg("-o").arg(folder.join(name));
        compiler.arg(sources.join("unwinding.c")).status().is_ok_and(|status| status.success())
    };
    let compile_switches = |name: &str, flag: &str| {
        let mut compiler = Command::new("gcc");
        compiler.args(["-O2", "-g1", "-pthread", flag, "-o"]).arg(folder.join(name)).arg(sources.join("switches.c"));
        compiler.status().is_ok_and(|status| status.success())
    };
    let built = built
        && compile_switches("switches-WithoutFramePointers", "-fomit-frame-pointer")
        && compile_switches("switches-WithFramePointers", "-fno-omit-frame-pointer")
        && compile_c("gcc", "unwinding-WithoutFramePointers", &[])
        && compile_c("gcc", "unwinding-DebugFrame", &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
    // These need Debian's musl-tools and libc6-dev-i386.
    compile_c("musl-gcc", "unwinding-Musl", &["-static"]);
    compile_c("gcc", "unwinding-32", &["-m32"]);
    built.then_some(())
}

/// A recording of one case, and the program's own account of it.
pub struct Recorded {
    pub case: String,
    pub build: Build,
    pub capture: Capture,
    test: String,
    command: Vec<OsString>,
    /// The program's output.
    pub lines: Vec<String>,
    /// CPU time of functions, and in `total`, by the program's own clocks.
    pub truth_ns: BTreeMap<String, u64>,
}

/// Records a case in every build and checks each recording. Where recording is impossible, says so and skips.
pub fn record(test: &str, case: &[&str], check: impl Fn(&Recorded)) {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return;
    };
    for build in BUILDS {
        let plugin = programs.join("plugin.so");
        let arguments = case.iter().map(|&argument| match argument {
            "PLUGIN" => plugin.clone().into_os_string(),
            argument => argument.into(),
        });
        let command = std::iter::once(programs.join(format!("{build:?}")).into_os_string()).chain(arguments);
        let Some(recorded) = Recorded::new(test, case[0], build, command.collect()) else { return };
        check(&recorded);
    }
}

/// Records a case of the program about unwinding in each build, and checks each recording.
pub fn record_unwinding(test: &str, case: &str, check: impl Fn(&Recorded)) {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no compiler to build the program");
        return;
    };
    for build in [Build::WithoutFramePointers, Build::DebugFrame, Build::Musl] {
        let program = programs.join(format!("unwinding-{build:?}"));
        if !program.exists() {
            println!("skipped: {test}: {build:?} needs musl-gcc (Debian package: musl-tools)");
            continue;
        }
        let command = vec![program.into_os_string(), case.into()];
        let Some(recorded) = Recorded::new(test, case, build, command) else { return };
        check(&recorded);
    }
}

/// Records a program from its first instruction to its end. Returns the capture and the lines that it printed.
pub fn record_command(test: &str, launch: Launch) -> Option<(Capture, Vec<String>)> {
    record_command_with(test, launch, &Options::default())
}

/// The same, with options.
pub fn record_command_with(test: &str, launch: Launch, options: &Options) -> Option<(Capture, Vec<String>)> {
    record_launched(test, launch, options).map(|(_, capture, lines)| (capture, lines))
}

/// The same, and the id of the process.
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
    if let Some(exit) = launched.wait_for(Duration::from_secs(60)).unwrap() {
        recording.note_exit(pid, &exit);
    }
    launched.stop(&Grace::default()).unwrap();
    recording.stop().unwrap();
    Some((pid, captured(folder.path()), launched.last_lines()))
}

/// The capture made of the log in a folder.
pub fn captured(folder: &Path) -> Capture {
    let capture = finish(folder, &mut Symbolizer::default()).unwrap();
    capture.check().unwrap();
    capture.load().unwrap();
    capture
}

fn truth(line: &str) -> Option<(String, u64)> {
    let mut words = line.strip_prefix("truth ")?.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// The share of a function in a recording, and by the program's own clocks.
struct Share {
    sampled_ns: [u64; 2],
    true_ns: [u64; 2],
    samples: usize,
}

impl Share {
    fn of(recorded: &Recorded, function: &str) -> Self {
        Self {
            sampled_ns: [recorded.inclusive(function), recorded.total()],
            true_ns: [recorded.truth_ns[function], recorded.truth_ns["total"]],
            samples: recorded.cpu_samples().count(),
        }
    }

    /// The sampled and the true share, and the tolerance of their difference: 1.5 points or three standard errors.
    fn percent(&self) -> (f64, f64, f64) {
        let share = |[part, total]: [u64; 2]| part as f64 / total as f64;
        let (sampled, truth) = (share(self.sampled_ns), share(self.true_ns));
        let standard_error = (truth * (1.0 - truth) / self.samples as f64).sqrt();
        (100.0 * sampled, 100.0 * truth, f64::max(1.5, 300.0 * standard_error))
    }

    fn is_true(&self) -> bool {
        let (sampled, truth, tolerance) = self.percent();
        (sampled - truth).abs() <= tolerance
    }
}

impl Recorded {
    /// Where the host stops one CPU, which may be the recorder's, the others go on and rings overflow. The recorder has to say so; then
    /// the case is recorded again, up to twice. An error of the recorder is in all of them.
    fn new(test: &str, case: &str, build: Build, command: Vec<OsString>) -> Option<Self> {
        let (mut capture, mut lines) = record_command(test, Launch::new(command.clone()))?;
        for _ in 0..2 {
            let lost = capture.info.losses.lost_records;
            if lost == 0 {
                break;
            }
            println!("{case} {build:?}: {lost} records lost; recording again");
            (capture, lines) = record_command(test, Launch::new(command.clone()))?;
        }
        let mut truth_ns = BTreeMap::new();
        for (function, ns) in lines.iter().filter_map(|line| truth(line)) {
            *truth_ns.entry(function).or_insert(0) += ns;
        }
        Some(Self { case: case.to_owned(), build, capture, test: test.to_owned(), command, lines, truth_ns })
    }

    pub fn cpu_samples(&self) -> impl Iterator<Item = &Sample> {
        let is_cpu = |sample: &&Sample| ["cpu-clock", "cycles"].contains(&&*self.capture.event(sample.event).name);
        self.capture.samples.iter().filter(is_cpu)
    }

    /// A function's name without parameters.
    fn name(&self, frame: FrameId) -> &str {
        self.capture.function(frame).split('(').next().unwrap_or("")
    }

    /// The functions of a sample, leaf first, without parameters.
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

    /// Asserts that a function's sampled share is its true share, within 1.5 points or three standard errors.
    ///
    /// Chance alone exceeds three standard errors in one of 370 comparisons, and there are a hundred of them. And where the
    /// host stops the machine for a while, the program's clock goes on and its timer does not. So a recording that is off is
    /// repeated, up to twice, and one true recording is enough: an error of the recorder is in all of them.
    pub fn has_the_true_share_of(&self, function: &str) {
        let mut share = Share::of(self, function);
        for _ in 0..2 {
            if share.is_true() {
                break;
            }
            println!("{} {:?}: {function} is off by more than chance allows; recording again", self.case, self.build);
            let Some(again) = Self::new(&self.test, &self.case, self.build, self.command.clone()) else { break };
            share = Share::of(&again, function);
        }
        let (sampled, truth, tolerance) = share.percent();
        let Self { case, build, .. } = self;
        println!("{case} {build:?}: {function} {sampled:.2} %, true {truth:.2} %, {:+.2}", sampled - truth);
        assert!(
            share.is_true(),
            "{build:?}: {function} has {sampled:.1} % instead of {truth:.1} % (± {tolerance:.1}) of {} samples",
            share.samples
        );
    }

    /// Asserts that 99 % of the samples in `function` have one of `callers` as its caller.
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

    /// Asserts that a share of the samples in `function` have `caller` somewhere above it.
    pub fn is_under(&self, function: &str, caller: &str, least_percent: u64) {
        let (mut with, mut without) = (0, BTreeMap::new());
        for sample in self.cpu_samples() {
            let names = self.names(sample);
            let Some(at) = names.iter().position(|&name| name == function) else { continue };
            match names[at..].contains(&caller) {
                true => with += 1,
                false => *without.entry(format!("{:?}", &names[at..names.len().min(at + 6)])).or_insert(0) += 1,
            }
        }
        let lost: u64 = without.values().sum();
        let Self { case, build, .. } = self;
        println!("{case} {build:?}: {function} is under {caller} in {with} of {}", with + lost);
        assert!(with > 20, "{build:?}: {function} was hit {with} times only; others: {without:?}");
        assert!(with * 100 >= (with + lost) * least_percent, "{build:?}: {lost} of {}: {without:?}", with + lost);
    }

    /// Samples whose stack has this mark.
    pub fn marked(&self, mark: &str) -> usize {
        self.cpu_samples().filter(|sample| self.names(sample).contains(&mark)).count()
    }

    /// Asserts that less than 1 % of the stacks end before a root, and that less than 1 % of the weight is in code without
    /// a name (although its module has symbols) or without a module.
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

    /// Whether a frame is `[unmapped ...]`, or `module+0x...` in the program, which has all its symbols.
    fn lacks_a_name(&self, frame: FrameId) -> bool {
        let name = self.name(frame);
        name.starts_with("[unmapped")
            || name.starts_with(&format!("{:?}+0x", self.build)) && self.build != Build::Stripped
    }
}

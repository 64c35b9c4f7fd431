//! Recordings of a program whose profile is known by construction: `truth/truth.cpp` says what each of its functions
//! burnt by the thread's own clock, and the recording must say the same.
//!
//! Built three ways: without frame pointers (as distributions do), with them (where leaf functions still have no
//! prologue), and stripped (where exported names and unwind tables are all that is left).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use stepscope_model::{Capture, Sample};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Options, RecordError, Recording, Until, finish};
use stepscope_symbolize::Symbolizer;

/// How the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    WithoutFramePointers,
    WithFramePointers,
    Stripped,
}

const BUILDS: [Build; 3] = [Build::WithoutFramePointers, Build::WithFramePointers, Build::Stripped];

/// The folder with the programs of all builds, made once.
fn programs() -> Option<&'static Path> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(build_programs).as_deref()
}

fn build_programs() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("truth");
    std::fs::create_dir_all(&folder).unwrap();
    let compile = |name: &str, source: &str, flags: &[&str]| {
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-fno-ipa-icf"]).args(flags).arg("-o").arg(folder.join(name)).arg(sources.join(source));
        compiler.args(["-ldl", "-lpthread"]).status().is_ok_and(|status| status.success())
    };
    let built = compile("WithoutFramePointers", "truth.cpp", &["-g1", "-fomit-frame-pointer"])
        && compile(
            "WithFramePointers",
            "truth.cpp",
            &["-g1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"],
        )
        && compile("Stripped", "truth.cpp", &["-fomit-frame-pointer", "-rdynamic", "-s"])
        && compile("plugin.so", "plugin.cpp", &["-shared", "-fPIC", "-s"]);
    built.then_some(folder)
}

/// A recording of one case, and what the program said of it.
struct Recorded {
    build: Build,
    capture: Capture,
    truth_ns: BTreeMap<String, u64>,
}

/// Records a case in every build; skips it, by name, where that is impossible.
fn record(test: &str, case: &[&str], check: impl Fn(&Recorded)) {
    let Some(programs) = programs() else {
        println!("skipped: {test}: there is no g++ to build the program with");
        return;
    };
    for build in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let program = programs.join(format!("{build:?}"));
        let plugin = programs.join("plugin.so");
        let arguments = case.iter().map(|&argument| match argument {
            "PLUGIN" => plugin.clone().into_os_string(),
            argument => argument.into(),
        });
        let launch = Launch::new(std::iter::once(program.into_os_string()).chain(arguments));
        let launch = launch.output(Output::captured(1000));
        let (mut launched, recording) = match Recording::launch(launch, &Options::default(), folder.path()) {
            Ok(recording) => recording,
            Err(RecordError::Refused { what, source }) => {
                println!("skipped: {test}: the kernel refuses to record {what}: {source}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        recording.wait(&Until { duration: None, flag: None });
        launched.stop(&Grace::default()).unwrap();
        recording.stop().unwrap();
        let truth_ns = launched.last_lines().iter().filter_map(|line| truth(line)).collect();
        let capture = finish(folder.path(), &mut Symbolizer::default()).unwrap();
        capture.check().unwrap();
        check(&Recorded { build, capture, truth_ns });
    }
}

fn truth(line: &str) -> Option<(String, u64)> {
    let mut words = line.strip_prefix("truth ")?.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

impl Recorded {
    fn cpu_samples(&self) -> impl Iterator<Item = &Sample> {
        let is_cpu = |sample: &&Sample| ["cpu-clock", "cycles"].contains(&&*self.capture.event(sample.event).name);
        self.capture.samples.iter().filter(is_cpu)
    }

    /// Names of a sample's functions, leaf first, without parameters.
    fn names(&self, sample: &Sample) -> Vec<&str> {
        let frames = self.capture.frames_of(sample.stack);
        frames.map(|frame| self.capture.function(frame).split('(').next().unwrap_or("")).collect()
    }

    fn total(&self) -> u64 {
        self.cpu_samples().map(|sample| sample.weight).sum()
    }

    /// Weight and number of the samples with this function anywhere in the stack.
    fn inclusive(&self, function: &str) -> (u64, u64) {
        let hits = self.cpu_samples().filter(|sample| self.names(sample).contains(&function));
        hits.fold((0, 0), |(weight, count), sample| (weight + sample.weight, count + 1))
    }

    /// The share of a function is that by the program's own clocks, within 1.5 points or three standard errors.
    fn has_the_true_share_of(&self, function: &str) {
        let total = self.total() as f64;
        let truth = self.truth_ns[function] as f64;
        // The program's clocks do not see what it does outside its cases; exact thread times do.
        let exact = self.capture.info.losses.cpu_time_ns.unwrap_or(self.truth_ns.values().sum()) as f64;
        let (weight, _) = self.inclusive(function);
        let (share, true_share) = (100.0 * weight as f64 / total, 100.0 * truth / exact);
        let standard_error = 100.0 * (true_share / 100.0 * (1.0 - true_share / 100.0) / self.samples() as f64).sqrt();
        let tolerance = f64::max(1.5, 3.0 * standard_error);
        assert!(
            (share - true_share).abs() <= tolerance,
            "{:?}: {function} has {share:.1} % instead of {true_share:.1} % (± {tolerance:.1})",
            self.build
        );
    }

    fn samples(&self) -> usize {
        self.cpu_samples().count()
    }

    /// Of the samples in `function`, 99 % have one of `callers` as what called it.
    fn is_called_by(&self, function: &str, callers: &[&str]) {
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
        assert!(with > 20, "{:?}: {function} was hit {with} times only; others: {without:?}", self.build);
        assert!(
            lost * 100 <= with + lost,
            "{:?}: {lost} of {} callers of {function}: {without:?}",
            self.build,
            with + lost
        );
    }

    /// Less than 1 % of the samples end before a root.
    fn has_roots(&self) {
        let losses = &self.capture.info.losses;
        assert!(losses.truncated_stacks * 100 <= losses.samples.max(100), "{:?}: {losses:?}", self.build);
    }
}

#[test]
fn shares_are_those_that_were_burnt() {
    record("shares_are_those_that_were_burnt", &["shares"], |recorded| {
        for function in ["fifty", "thirty", "fifteen", "five"] {
            recorded.has_the_true_share_of(function);
            recorded.is_called_by(function, &["main"]);
        }
        recorded.has_roots();
    });
}

#[test]
fn a_hot_leaf_without_a_prologue_keeps_its_callers() {
    record("a_hot_leaf_without_a_prologue_keeps_its_callers", &["leaf"], |recorded| {
        recorded.is_called_by("hot_leaf", &["leaf_often", "leaf_seldom"]);
        recorded.has_the_true_share_of("leaf_often");
        recorded.has_the_true_share_of("leaf_seldom");
        recorded.has_roots();
    });
}

#[test]
fn a_callback_is_below_the_library_function_that_calls_it() {
    record("a_callback_is_below_the_library_function_that_calls_it", &["callback"], |recorded| {
        recorded.has_the_true_share_of("sorting");
        recorded.is_called_by("hot_leaf", &["slow_compare", "sorting"]);
        recorded.has_roots();
    });
}

#[test]
fn recursion_of_three_hundred_frames_keeps_its_root() {
    record("recursion_of_three_hundred_frames_keeps_its_root", &["recursion"], |recorded| {
        recorded.has_the_true_share_of("deep");
        recorded.is_called_by("recurse", &["deep"]);
        let hot = recorded.cpu_samples().filter(|sample| recorded.names(sample).contains(&"deep"));
        let depths: Vec<usize> =
            hot.map(|sample| recorded.names(sample).iter().filter(|&&name| name == "recurse").count()).collect();
        let whole = depths.iter().filter(|&&depth| depth == 301).count();
        assert!(whole * 100 >= depths.len() * 95, "{:?}: {whole} of {} at full depth", recorded.build, depths.len());
    });
}

#[test]
fn a_frame_larger_than_the_stack_copy_keeps_its_caller() {
    record("a_frame_larger_than_the_stack_copy_keeps_its_caller", &["big-frame"], |recorded| {
        recorded.has_the_true_share_of("big_frame");
        recorded.is_called_by("under_big_frame", &["big_frame"]);
        recorded.is_called_by("big_frame", &["main"]);
        recorded.has_roots();
    });
}

#[test]
fn a_realigned_frame_keeps_its_callers() {
    record("a_realigned_frame_keeps_its_callers", &["realigned"], |recorded| {
        recorded.has_the_true_share_of("realigns");
        recorded.is_called_by("under_realigned", &["realigned"]);
        recorded.is_called_by("realigned", &["realigns"]);
        recorded.is_called_by("realigns", &["main"]);
        recorded.has_roots();
    });
}

#[test]
fn an_inlined_function_is_a_frame_of_its_own() {
    record("an_inlined_function_is_a_frame_of_its_own", &["inlined"], |recorded| {
        recorded.has_the_true_share_of("inlines");
        if recorded.build != Build::Stripped {
            recorded.is_called_by("inlined_work", &["inlines"]);
        }
    });
}

#[test]
fn a_plugin_that_was_closed_keeps_its_names_and_callers() {
    record("a_plugin_that_was_closed_keeps_its_names_and_callers", &["plugin", "PLUGIN"], |recorded| {
        recorded.has_the_true_share_of("plugs");
        recorded.is_called_by("plugin_work", &["plugs"]);
        recorded.has_roots();
    });
}

#[test]
fn two_hundred_threads_are_each_accounted_for() {
    record("two_hundred_threads_are_each_accounted_for", &["crowd"], |recorded| {
        recorded.has_the_true_share_of("crowd_work");
        recorded.has_roots();
        assert_eq!(recorded.capture.threads.len(), 201, "{:?}", recorded.build);
        let exact: u64 = recorded.capture.threads.iter().filter_map(|thread| thread.cpu_ns).sum();
        let burnt = recorded.truth_ns["crowd_work"];
        assert!(exact >= burnt && exact <= burnt + burnt / 4, "{:?}: {exact} ns of {burnt} ns", recorded.build);
    });
}

#[test]
fn threads_that_live_a_millisecond_have_their_share() {
    record("threads_that_live_a_millisecond_have_their_share", &["brief"], |recorded| {
        recorded.has_the_true_share_of("brief_work");
        recorded.has_the_true_share_of("fifty");
        assert_eq!(recorded.capture.threads.len(), 401, "{:?}", recorded.build);
    });
}

#[test]
fn children_are_recorded_through_fork_and_exec() {
    record("children_are_recorded_through_fork_and_exec", &["children"], |recorded| {
        recorded.has_the_true_share_of("forked_work");
        recorded.has_the_true_share_of("executed_work");
        recorded.is_called_by("executed_work", &["main"]);
        let executed = recorded.capture.processes.iter().find(|process| process.command_line.ends_with(" executed"));
        assert!(executed.is_some(), "{:?}: {:?}", recorded.build, recorded.capture.processes);
    });
}

#[test]
fn generated_code_is_named_by_its_map_and_keeps_its_caller() {
    record("generated_code_is_named_by_its_map_and_keeps_its_caller", &["generated"], |recorded| {
        recorded.has_the_true_share_of("calls_generated");
        recorded.is_called_by("generated_loop", &["calls_generated"]);
    });
}

#[test]
fn running_runnable_and_blocked_add_up_to_the_lifetime_of_each_thread() {
    record("running_runnable_and_blocked_add_up_to_the_lifetime_of_each_thread", &["crowd"], |recorded| {
        let capture = &recorded.capture;
        for (index, thread) in capture.threads.iter().enumerate() {
            let waits = capture.waits.iter().filter(|wait| wait.thread.index() == index);
            let off_ns: u64 = waits.map(|wait| wait.end_ns - wait.start_ns).sum();
            let lifetime_ns = thread.end_ns.unwrap() - thread.start_ns.unwrap();
            assert_eq!(thread.cpu_ns.unwrap() + off_ns, lifetime_ns, "{:?}: {thread:?}", recorded.build);
        }
    });
}

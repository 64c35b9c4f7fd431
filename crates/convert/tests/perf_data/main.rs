//! Recordings made here and now by the installed perf, against what `perf script` says of the same file: every sample,
//! its time, thread, event, period and stack. Skipped by name where perf or a C compiler is missing or perf may not
//! record.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, Frame, StackId, SymbolSource, WaitState};

/// The program, with and without frame pointers; or why it could not be built.
fn programs() -> &'static Result<PathBuf, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("perf_data");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data/work.c");
        for (name, flag) in [("frame_pointers", "-fno-omit-frame-pointer"), ("tables", "-fomit-frame-pointer")] {
            let mut compiler = Command::new("cc");
            compiler.args(["-O2", "-g", flag, "-pthread", "-w", "-o"]).arg(folder.join(name)).arg(&source);
            let output = compiler.output().map_err(|error| format!("cc: {error}"))?;
            if !output.status.success() {
                return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(folder)
    })
}

/// Records a program into `to`, or says why not.
fn record(to: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let program = programs().as_ref().map_err(Clone::clone)?.join(program);
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-o"]).arg(to).args(arguments).arg("--").arg(program);
    run(&mut perf)
}

/// The same, through a pipe.
fn record_piped(to: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let program = programs().as_ref().map_err(Clone::clone)?.join(program);
    let out = std::fs::File::create(to).map_err(|error| error.to_string())?;
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-o", "-"]).args(arguments).arg("--").arg(program).stdout(out);
    run(&mut perf)
}

fn run(perf: &mut Command) -> Result<(), String> {
    let output = perf.stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
    let output = output.map_err(|error| format!("perf: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.lines().next().unwrap_or("perf record failed").to_owned()) }
}

fn read(file: &Path) -> Capture {
    let capture = import(Source::open(file).unwrap(), &ImportOptions::default()).unwrap();
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
    capture
}

/// What `perf script` prints of the file, read by the importer of that text, which is tested against another's.
fn by_perf_script(file: &Path) -> Capture {
    let fields = "comm,pid,tid,time,event,period,ip,sym,dso";
    // A cache of its own: perf 6.1 crashes if another test's perf fills the user's at the same time.
    let cache = tempfile::tempdir().unwrap();
    let mut perf = Command::new("perf");
    perf.env("PERF_BUILDID_DIR", cache.path()).args(["script", "--ns", "--no-inline", "-F", fields, "-i"]).arg(file);
    let output = perf.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    import(Source::stream("script", &output.stdout[..]), &ImportOptions::default()).unwrap()
}

/// The same of what came through a pipe. perf 6.1 reads that from a pipe only, cannot name its addresses, and often
/// crashes on it.
fn agrees_without_stacks(test: &str, ours: &Capture, file: &Path) {
    let input = std::fs::File::open(file).unwrap();
    let mut perf = Command::new("perf");
    perf.args(["script", "--ns", "-F", "comm,pid,tid,time,event,period", "-i", "-"]).stdin(input);
    let output = perf.output().unwrap();
    if !output.status.success() {
        return println!("skipped: {test} (comparison): perf script cannot read what perf record piped");
    }
    let theirs = import(Source::stream("script", &output.stdout[..]), &ImportOptions::default()).unwrap();
    assert_eq!(samples_of(ours).keys().collect::<Vec<_>>(), samples_of(&theirs).keys().collect::<Vec<_>>());
}

/// A sample in both formats: time, thread, event, weight.
type PrintedSample = (u64, u32, String, u64);

fn samples_of(capture: &Capture) -> BTreeMap<PrintedSample, Vec<Option<StackId>>> {
    let mut all: BTreeMap<PrintedSample, Vec<Option<StackId>>> = BTreeMap::new();
    for sample in &capture.samples {
        let thread = capture.threads[sample.thread.index()].tid;
        let event = capture.event(sample.event).name.clone();
        all.entry((sample.time_ns.unwrap(), thread, event, sample.weight)).or_default().push(sample.stack);
    }
    all
}

/// Names of a stack's functions, leaf first, without inlined ones. Only the program and the kernel are compared by name:
/// the C library has several for each of its functions. What comes before the first of them is often no stack at all,
/// as the C library keeps no frame pointers.
fn functions(capture: &Capture, stack: Option<StackId>) -> Vec<String> {
    let frames = capture.frames_of(stack).map(|frame| &capture.frames[frame.index()]);
    let mut names: Vec<_> = frames.filter(|frame| !frame.inlined).map(|frame| plain(frame, capture)).collect();
    names.truncate(names.iter().rposition(|name| name != "?").map_or(0, |last| last + 1));
    names
}

fn plain(frame: &Frame, capture: &Capture) -> String {
    let module = frame.module.map_or("", |module| capture.modules[module.index()].name());
    let is_compared = ["frame_pointers", "tables", "[kernel.kallsyms]"].contains(&module);
    let is_named = is_compared && !frame.function.starts_with('[') && !frame.function.contains("+0x");
    if is_named { frame.function.split('.').next().unwrap().to_owned() } else { "?".to_owned() }
}

/// How much of a stack both must agree on.
#[derive(Clone, Copy)]
enum Extent {
    /// All of it.
    Whole,
    /// From the leaf to the program's outermost function; what comes before it is the C library's affair.
    ToOutermost,
}

/// Both tell the same samples with the same stacks; gives the share of the stacks that are equal.
fn agreement(ours: &Capture, theirs: &Capture, extent: Extent) -> f64 {
    let (our_samples, their_samples) = (samples_of(ours), samples_of(theirs));
    let keys = |samples: &BTreeMap<PrintedSample, Vec<_>>| samples.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&our_samples), keys(&their_samples));
    let cut = |names: Vec<String>| match extent {
        Extent::Whole => names,
        Extent::ToOutermost => {
            let outermost = names.iter().position(|name| name == "main" || name == "work");
            outermost.map_or(Vec::new(), |at| names[..=at].to_vec())
        }
    };
    let (mut equal, mut total) = (0, 0);
    for (key, stacks) in &our_samples {
        for (&our, &their) in stacks.iter().zip(&their_samples[key]) {
            let (our, their) = (cut(functions(ours, our)), cut(functions(theirs, their)));
            total += 1;
            if our == their {
                equal += 1;
            } else {
                println!("{key:?}\n   ours: {our:?}\n theirs: {their:?}");
            }
        }
    }
    assert!(total > 50, "{total} samples");
    f64::from(equal) / f64::from(total)
}

fn in_folder(test: &str, check: impl FnOnce(&Path) -> Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    if let Err(reason) = check(&folder.path().join("perf.data")) {
        println!("skipped: {test}: {reason}");
    }
}

/// Weight of the samples with this function somewhere in the stack.
fn inclusive(capture: &Capture, function: &str) -> u64 {
    let holds = |stack| capture.frames_of(stack).any(|frame| capture.function(frame) == function);
    capture.samples.iter().filter(|sample| holds(sample.stack)).map(|sample| sample.weight).sum()
}

fn inlined_into(capture: &Capture, inlined: &str, into: &str) -> usize {
    let calls = |stack: StackId| {
        let node = &capture.stacks[stack.index()];
        let frame = &capture.frames[node.frame.index()];
        let caller = node.parent.map(|parent| capture.function(capture.stacks[parent.index()].frame));
        &*frame.function == inlined && frame.inlined && frame.line.is_some() && caller == Some(into)
    };
    capture.samples.iter().filter(|sample| sample.stack.is_some_and(calls)).count()
}

#[test]
fn frame_pointer_stacks_are_those_that_perf_script_prints() {
    in_folder("frame_pointer_stacks_are_those_that_perf_script_prints", |file| {
        record(file, "frame_pointers", &["-F", "999", "-e", "cpu-clock", "-g"])?;
        let ours = read(file);
        assert!(agreement(&ours, &by_perf_script(file), Extent::Whole) > 0.99);
        assert!(inlined_into(&ours, "burn_inlined", "around_inlined") > 5);
        assert_eq!(ours.info.command.len(), 1, "{:?}", ours.info.command);
        assert_eq!(ours.info.events.len(), 1);
        assert_eq!(ours.info.events[0].unit, "ns");
        let named = |module: &&stepscope_model::Module| module.path.ends_with("/frame_pointers");
        let module = ours.modules.iter().find(named).unwrap();
        assert!(module.symbols == SymbolSource::DebugInfo && module.build_id.is_some());
        Ok(())
    });
}

#[test]
fn copied_stacks_are_unwound_to_what_perf_unwinds_them_to() {
    in_folder("copied_stacks_are_unwound_to_what_perf_unwinds_them_to", |file| {
        record(file, "tables", &["-F", "999", "-e", "cpu-clock", "--call-graph", "dwarf,8192"])?;
        let ours = read(file);
        assert!(agreement(&ours, &by_perf_script(file), Extent::ToOutermost) > 0.97);
        let (all, rooted) = (ours.info.losses.samples, ours.info.losses.truncated_stacks);
        assert!(rooted * 50 <= all, "{rooted} of {all} stacks are truncated");
        Ok(())
    });
}

#[test]
fn a_pipe_is_read_like_a_file() {
    in_folder("a_pipe_is_read_like_a_file", |file| {
        record_piped(file, "tables", &["-F", "999", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,4096"])?;
        let ours = read(file);
        agrees_without_stacks("a_pipe_is_read_like_a_file", &ours, file);
        let total: u64 = ours.samples.iter().filter(|sample| sample.event.0 == 0).map(|sample| sample.weight).sum();
        assert!(inclusive(&ours, "descend") * 4 > total);
        // The same bytes, when they cannot be mapped.
        let mut bytes = Vec::new();
        std::fs::File::open(file).unwrap().read_to_end(&mut bytes).unwrap();
        let streamed = import(Source::stream("-", &bytes[..]), &ImportOptions::default()).unwrap();
        assert_eq!(streamed.samples, ours.samples);
        Ok(())
    });
}

#[test]
fn compressed_recordings_are_unpacked() {
    in_folder("compressed_recordings_are_unpacked", |file| {
        record(file, "frame_pointers", &["-z", "-F", "999", "-e", "cpu-clock", "-g"])?;
        assert!(agreement(&read(file), &by_perf_script(file), Extent::Whole) > 0.99);
        record_piped(file, "frame_pointers", &["-z", "-F", "999", "-e", "cpu-clock", "-g"])?;
        let ours = read(file);
        agrees_without_stacks("compressed_recordings_are_unpacked", &ours, file);
        assert!(inclusive(&ours, "burn") > 0);
        Ok(())
    });
}

#[test]
fn several_events_are_kept_apart_each_with_its_unit() {
    in_folder("several_events_are_kept_apart_each_with_its_unit", |file| {
        record(file, "frame_pointers", &["-F", "999", "-e", "cpu-clock,page-faults", "-g"])?;
        let ours = read(file);
        let events: Vec<_> = ours.info.events.iter().map(|event| (&*event.name, &*event.unit)).collect();
        assert_eq!(events, [("cpu-clock", "ns"), ("page-faults", "faults")]);
        assert!(agreement(&ours, &by_perf_script(file), Extent::Whole) > 0.99);
        Ok(())
    });
}

#[test]
fn switch_records_become_waits_that_add_up_with_the_time_on_cpu() {
    in_folder("switch_records_become_waits_that_add_up_with_the_time_on_cpu", |file| {
        record(file, "frame_pointers", &["-F", "999", "-e", "cpu-clock", "-g", "--switch-events"])?;
        let ours = read(file);
        assert!(agreement(&ours, &by_perf_script(file), Extent::Whole) > 0.99);
        assert!(ours.waits.iter().filter(|wait| wait.state == WaitState::Blocked).count() >= 60);
        for (index, thread) in ours.threads.iter().enumerate() {
            let waits = ours.waits.iter().filter(|wait| wait.thread.index() == index);
            let off: u64 = waits.map(|wait| wait.end_ns - wait.start_ns).sum();
            let lifetime = thread.end_ns.unwrap() - thread.start_ns.unwrap();
            assert_eq!(off + thread.cpu_ns.unwrap(), lifetime, "{}", thread.name);
        }
        Ok(())
    });
}

#[test]
fn the_scheduler_tracepoints_become_waits_with_stacks_and_wakers() {
    in_folder("the_scheduler_tracepoints_become_waits_with_stacks_and_wakers", |file| {
        let events = "cpu-clock,sched:sched_switch,sched:sched_waking";
        record(file, "tables", &["-e", events, "--call-graph", "dwarf,4096"])?;
        let ours = read(file);
        assert_eq!(ours.info.events.len(), 1, "{:?}", ours.info.events);
        let sleeps = ours.waits.iter().filter(|wait| {
            let mut functions = ours.frames_of(wait.stack).map(|frame| ours.function(frame));
            wait.state == WaitState::Blocked && functions.any(|function| function == "work")
        });
        assert!(sleeps.count() >= 50);
        assert!(inclusive(&ours, "descend") > 0);
        Ok(())
    });
}

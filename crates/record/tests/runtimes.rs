//! Stacks of programs whose runtimes have stacks and code of their own.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::record_command;
use stepscope_model::{Capture, FrameId, Sample};
use stepscope_record::launch::Launch;

/// Builds a Go program. `None` without Go.
fn build_go(test: &str, source: &str, folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth").join(source);
    let program = folder.join("program");
    let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go else {
        println!("skipped: {test}: no Go compiler (Debian package: golang-go)");
        return None;
    };
    let mut build = Command::new(go);
    build.args(["build", "-o"]).arg(&program).args(flags).arg(source).current_dir(folder);
    let built = build.env("GOFLAGS", "-mod=mod").env("GOTOOLCHAIN", "local").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

fn cpu_samples(capture: &Capture) -> Vec<&Sample> {
    capture
        .samples
        .iter()
        .filter(|sample| ["cpu-clock", "cycles"].contains(&&*capture.event(sample.event).name))
        .collect()
}

/// Frames from leaf to root.
fn names<'a>(capture: &'a Capture, sample: &Sample) -> Vec<&'a str> {
    capture.frames_of(sample.stack).map(|frame: FrameId| capture.function(frame)).collect()
}

#[test]
fn stacks_of_goroutines_continue_from_the_threads_own_stack() {
    const TEST: &str = "stacks_of_goroutines_continue_from_the_threads_own_stack";
    for (build, flags) in [("with symbols", &[][..]), ("stripped", &["-ldflags=-s -w"])] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = build_go(TEST, "stacks.go", folder.path(), flags) else { return };
        let Some((capture, _)) = record_command(TEST, Launch::new([program.into_os_string()])) else { return };
        let in_go = |names: &[&str]| names.iter().any(|name| name.starts_with("runtime.") || name.starts_with("main."));
        let mut samples = cpu_samples(&capture);
        samples.retain(|sample| in_go(&names(&capture, sample)));
        let share = |holds: &dyn Fn(&[&str]) -> bool| {
            let count = samples.iter().filter(|sample| holds(&names(&capture, sample))).count();
            count * 100 / samples.len()
        };
        assert!(samples.len() > 20, "{build}: {} samples", samples.len());
        // A goroutine, a scheduler, a thread, or the program itself.
        const ROOTS: [&str; 5] =
            ["runtime.goexit", "[on the scheduler's stack]", "runtime.mstart", "runtime.rt0_go", "runtime.clone"];
        let rooted = share(&|names| names.last().is_some_and(|root| ROOTS.contains(root)));
        assert!(rooted >= 90, "{build}: {rooted} %");
        let on_thread = |names: &[&str]| names.iter().any(|name| name.starts_with("runtime.systemstack"));
        let whole = |names: &[&str]| on_thread(names) && names.last() == Some(&"runtime.goexit");
        let (all, whole) = (share(&on_thread), share(&whole));
        assert!(all == 0 || whole * 100 >= all * 50, "{build}: {whole} of {all} %");
        let truncated = capture.info.losses.truncated_stacks * 100 / capture.info.losses.samples.max(1);
        assert!(truncated <= 10, "{build}: {truncated} %");
    }
}

#[test]
fn a_goroutine_that_calls_c_keeps_its_callers_in_a_stripped_program() {
    const TEST: &str = "a_goroutine_that_calls_c_keeps_its_callers_in_a_stripped_program";
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-buildmode=pie", "-ldflags=-s -w"];
    let Some(program) = build_go(TEST, "calls_c.go", folder.path(), &flags) else { return };
    let Some((capture, _)) = record_command(TEST, Launch::new([program.into_os_string()])) else { return };
    let stacks: Vec<Vec<&str>> = cpu_samples(&capture).into_iter().map(|sample| names(&capture, sample)).collect();
    let in_c: Vec<&Vec<&str>> = stacks.iter().filter(|names| names.contains(&"runtime.asmcgocall")).collect();
    assert!(in_c.len() > 20, "{} of {}: {:?}", in_c.len(), stacks.len(), stacks.last());
    let whole = |names: &&&Vec<&str>| names.contains(&"main.calls") && names.last() == Some(&"runtime.goexit");
    let whole = in_c.iter().filter(whole).count();
    assert!(whole * 100 >= in_c.len() * 90, "{whole} of {}: {:?}", in_c.len(), in_c.last());
}

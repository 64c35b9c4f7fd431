//! Stacks of waits where BPF programs are refused: busy threads have a few, and leave the others theirs.

use stepscope_model::{Capture, Dimension, DimensionStatus, ThreadId, Wait, WaitState};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

mod recorded;

use recorded::nobody;

const MILLISECONDS: u64 = 3_500;

#[test]
fn quiet_threads_have_stacks_beside_busy_ones_without_bpf() {
    let test = "quiet_threads_have_stacks_beside_busy_ones_without_bpf";
    let perfmon = ["--inh-caps=+perfmon", "--ambient-caps=+perfmon"];
    nobody::run(test, "quiet_threads_as_nobody", "hurry", &perfmon);
}

#[test]
#[ignore = "run by another test, as a user with rights for events only"]
fn quiet_threads_as_nobody() {
    let Some(program) = nobody::program() else { return };
    let launch = Launch::new([program, MILLISECONDS.to_string().into()]);
    // So few that there is a slice with all stacks once in a few seconds.
    let options = Options { max_switch_stacks_hz: 400, ..Options::default() };
    let Some((capture, _)) = recorded::record_command_with("quiet_threads", launch, &options) else { return };
    let period = capture.info.losses.offcpu_stack_period.unwrap_or(1);
    println!("one of {period} slices has all stacks, {:?}", capture.info.losses);
    if period < 20 {
        return println!("skipped: quiet_threads: switches are few or have no stacks here");
    }
    // The main thread sleeps 10 ms again and again, and waits for the others at the end.
    let main = ThreadId(0);
    let naps = |from_ms: u64, to_ms: u64| {
        let start_ns = capture.threads[0].start_ns.unwrap();
        let is_within =
            move |wait: &Wait| (from_ms..to_ms).contains(&(wait.start_ns.saturating_sub(start_ns) / 1_000_000));
        capture
            .waits
            .iter()
            .filter(move |wait| wait.thread == main && wait.state == WaitState::Blocked && is_within(wait))
    };
    for second in 0..MILLISECONDS / 1_000 {
        let (from_ms, to_ms) = (second * 1_000, (second + 1) * 1_000);
        let placed = naps(from_ms, to_ms).filter(|wait| calls(&capture, wait, "nap")).count();
        println!("second {second}: {placed} of {} naps have a stack", naps(from_ms, to_ms).count());
        // Some 10 looks a second; a busy machine delays some.
        assert!(placed >= 3, "{placed} waits have a stack in second {second}");
    }
}

#[test]
fn long_waits_have_stacks_without_any_rights() {
    let test = "long_waits_have_stacks_without_any_rights";
    nobody::run(test, "long_waits_as_nobody", "hurry", &[]);
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn long_waits_as_nobody() {
    let Some(program) = nobody::program() else { return };
    let launch = Launch::new([program, "2000".into()]);
    let Some((capture, _)) = recorded::record_command_with("long_waits", launch, &Options::default()) else { return };
    let status = &capture.info.dimensions[&Dimension::Offcpu];
    let DimensionStatus::Partial { lacks } = status else {
        return println!("skipped: long_waits: this user has stacks at context switches: {status:?}");
    };
    assert!(lacks.join(" ").contains("looks at blocked threads"), "{lacks:?}");
    let of_main = || capture.waits.iter().filter(|wait| wait.thread == ThreadId(0) && wait.state == WaitState::Blocked);
    let placed = of_main().filter(|wait| wait.stack.is_some()).count();
    let napping = of_main().filter(|wait| calls(&capture, wait, "nap") && calls(&capture, wait, "main")).count();
    let losses = &capture.info.losses;
    println!("{placed} of {} waits of the main thread have a stack, {napping} in `nap`: {losses:?}", of_main().count());
    if placed == 0 && capture.info.losses.offcpu_stack_period.is_none() {
        return println!("skipped: long_waits: this user may not read the program's memory");
    }
    // Some 20 looks a second; a busy machine delays some.
    assert!(placed >= 10, "{placed} waits have a stack");
    assert!(napping * 10 >= placed * 9, "{napping} of {placed} stacks are those of the nap");
}

fn calls(capture: &Capture, wait: &Wait, function: &str) -> bool {
    capture.frames_of(wait.stack).any(|frame| capture.function(frame) == function)
}

//! CPU time by context switches and samples agrees with the kernel's own account, in programs where it is hard to see.

mod recorded;

use std::process::{Child, Command};
use std::time::Duration;

use recorded::{captured, programs, record_command};
use stepscope_model::{Capture, DimensionStatus};
use stepscope_record::launch::Launch;
use stepscope_record::{Options, RecordError, Recording, Until, proc};

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn recorded(test: &str, arguments: &[&str]) -> Option<Capture> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    let program = programs.join("ends").into_os_string();
    let command = std::iter::once(program).chain(arguments.iter().map(|&argument| argument.into()));
    let (capture, _) = record_command(test, Launch::new(command.collect::<Vec<_>>()))?;
    if capture.info.dimensions.values().any(|status| *status != DimensionStatus::Recorded) {
        println!("skipped: {test}: this user may not record the whole machine");
        return None;
    }
    Some(capture)
}

/// Asserts that the CPU time is the kernel's within 5 %, apart from what the hypervisor took.
fn agrees(what: &str, capture: &Capture) {
    let losses = &capture.info.losses;
    let (switches, kernel, sampled) =
        (losses.cpu_time_ns.unwrap(), losses.kernel_cpu_ns.unwrap(), losses.sampled_ns.unwrap());
    let stolen = capture.info.conditions.as_ref().and_then(|conditions| conditions.stolen_ns).unwrap_or(0);
    let percent = |ns: u64| 100.0 * ns as f64 / kernel as f64;
    println!("{what}: {:.1} % by switches, {:.1} % sampled of {kernel} ns", percent(switches), percent(sampled));
    let error = kernel / 20 + 10_000_000;
    assert!(switches.abs_diff(kernel) <= error + stolen, "{what}: {switches} ns, {kernel} by the kernel");
    // A thousand samples have a standard error of 3 %.
    assert!(sampled.abs_diff(kernel) <= 3 * error + stolen, "{what}: {sampled} ns sampled, {kernel} by the kernel");
}

#[test]
fn switching_costs_what_the_kernel_charges_for_it() {
    let test = "switching_costs_what_the_kernel_charges_for_it";
    let Some(capture) = recorded(test, &["pingpong", "30000"]) else { return };
    let (switches, kernel) = (capture.info.losses.cpu_time_ns.unwrap(), capture.info.losses.kernel_cpu_ns.unwrap());
    println!("ping-pong: {:.1} % by switches of {kernel} ns", 100.0 * switches as f64 / kernel as f64);
    if capture.info.losses.lost_records == 0 {
        assert!(switches + kernel / 100 + 10_000_000 >= kernel, "{switches} ns, {kernel} by the kernel");
    }
    // The kernel charges no thread for interrupts and for what the hypervisor takes.
    let stolen = capture.info.conditions.as_ref().and_then(|conditions| conditions.stolen_ns).unwrap_or(0);
    assert!(switches <= kernel + kernel / 10 + 10_000_000 + stolen, "{switches} ns, {kernel} by the kernel");
}

#[test]
fn short_processes_have_their_time_until_their_last_switch() {
    let test = "short_processes_have_their_time_until_their_last_switch";
    let Some(capture) = recorded(test, &["forks", "500"]) else { return };
    assert_eq!(capture.processes.len(), 501);
    agrees("forks", &capture);
}

#[test]
fn freeing_memory_in_the_exit_is_sampled_and_the_peak_known() {
    let test = "freeing_memory_in_the_exit_is_sampled_and_the_peak_known";
    let Some(capture) = recorded(test, &["exit", "600"]) else { return };
    agrees("exit", &capture);
    assert!(
        capture.counters.iter().all(|counter| Some(counter.time_ns) >= capture.info.start_ns),
        "read before its start"
    );
    let peak =
        capture.counters.iter().filter(|counter| &*counter.name == "peak_rss_bytes").map(|peak| peak.value).max();
    assert!(peak >= Some(600 << 20), "{peak:?}");
}

#[test]
fn a_program_that_waits_in_its_exit_has_its_time_after_that() {
    let test = "a_program_that_waits_in_its_exit_has_its_time_after_that";
    let Some(capture) = recorded(test, &["late", "400"]) else { return };
    let (switches, kernel) = (capture.info.losses.cpu_time_ns.unwrap(), capture.info.losses.kernel_cpu_ns.unwrap());
    println!("late: {:.1} % by switches of {kernel} ns", 100.0 * switches as f64 / kernel as f64);
    // A tenth of the time is in the exit.
    assert!(switches + kernel / 50 + 5_000_000 >= kernel, "{switches} ns, {kernel} by the kernel");
}

/// Attaches to a program of [`programs`] until it has used some CPU time.
fn attached(test: &str, arguments: &[&str], is_ready: impl Fn(u32) -> bool) -> Option<Capture> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    let program = Running(Command::new(programs.join("ends")).args(arguments).spawn().unwrap());
    while !is_ready(program.0.id()) {
        std::thread::yield_now();
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = match Recording::attach(program.0.id(), &Options::default(), folder.path()) {
        Ok(recording) => recording,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    while recording.progress().cpu_samples < 500 {
        recording.wait(&Until { duration: Some(Duration::from_millis(50)), flag: None });
    }
    recording.stop().unwrap();
    Some(captured(folder.path()))
}

#[test]
fn attaching_to_many_busy_threads_loses_nothing() {
    let test = "attaching_to_many_busy_threads_loses_nothing";
    let all_run = |pid: u32| proc::threads(pid).is_ok_and(|threads| threads.len() == 64);
    // Recorders that run beside this one, and machines of others, can delay it once or twice.
    let mut lost = Vec::new();
    for _ in 0..3 {
        let Some(capture) = attached(test, &["busy", "64"], all_run) else { return };
        if capture.info.dimensions.values().any(|status| *status != DimensionStatus::Recorded) {
            println!("skipped: {test}: this user may not raise the recorder's priority");
            return;
        }
        let losses = capture.info.losses;
        if losses.lost_records == 0 {
            assert!(losses.coverage().is_some_and(|share| share > 0.9), "{losses:?}");
            return;
        }
        lost.push(losses);
    }
    panic!("{lost:?}");
}

#[test]
fn a_process_goes_on_without_its_first_thread() {
    let test = "a_process_goes_on_without_its_first_thread";
    let first_ended = |pid: u32| proc::stat(pid).is_ok_and(|stat| stat.state.has_ended() && stat.threads == 1 + 1);
    let Some(capture) = attached(test, &["headless"], first_ended) else { return };
    let spins = |sample: &stepscope_model::Sample| {
        capture.frames_of(sample.stack).any(|frame| capture.function(frame).contains("spin"))
    };
    let (spinning, all) = (capture.samples.iter().filter(|sample| spins(sample)).count(), capture.samples.len());
    assert!(spinning * 10 > all * 9, "{spinning} of {all} samples in the thread that runs");
}

#[test]
fn a_recording_that_ends_while_threads_switch_counts_nothing_after_its_end() {
    let test = "a_recording_that_ends_while_threads_switch_counts_nothing_after_its_end";
    let both_run = |pid: u32| proc::threads(pid).is_ok_and(|threads| threads.len() == 2);
    let Some(capture) = attached(test, &["pingpong", "1000000000"], both_run) else { return };
    for (index, thread) in capture.threads.iter().enumerate() {
        let waits = capture.waits.iter().filter(|wait| wait.thread.index() == index);
        let off_ns: u64 = waits.map(|wait| wait.end_ns - wait.start_ns).sum();
        let lifetime_ns = thread.end_ns.unwrap() - thread.start_ns.unwrap();
        let open_ns = lifetime_ns.abs_diff(thread.cpu_ns.unwrap() + off_ns);
        assert!(
            open_ns <= capture.info.losses.unknown_cpu_ns.unwrap_or(0),
            "{open_ns} of {lifetime_ns} ns: {thread:?}"
        );
    }
}

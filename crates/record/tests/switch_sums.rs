//! Threads that switch all the time: their waits are added up in the kernel, and have their times and stacks all the same.

mod recorded;

use std::time::Duration;

use recorded::{Build, captured, programs, record_command_with};
use stepscope_model::{Capture, Dimension, DimensionStatus, ThreadId, Wait, WaitState};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Options, Recording, Until};

/// Few waits one by one, so that a busy machine, too, switches too often for them.
fn few_single_waits() -> Options {
    Options { max_switch_stacks_hz: 200, ..Options::default() }
}

/// Pairs of threads that hand a token to and fro.
fn switches(build: Build, kind: &str, milliseconds: u32) -> Option<Launch> {
    let program = programs()?.join(format!("switches-{build:?}"));
    Some(Launch::new([program.into_os_string(), kind.into(), "1".into(), milliseconds.to_string().into()]))
}

/// Says why this test is skipped, if it is.
fn skips(test: &str, capture: &Capture) -> bool {
    let dimensions = &capture.info.dimensions;
    if dimensions.get(&Dimension::Sched) != Some(&DimensionStatus::Recorded) {
        println!("skipped: {test}: this user may not record wake-ups: {dimensions:?}");
        return true;
    }
    let in_first_namespace =
        std::fs::read_link("/proc/self/ns/pid").is_ok_and(|pid| pid.as_os_str() == "pid:[4026531836]");
    if !in_first_namespace || !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: {test}: BPF programs are not used here");
        return true;
    }
    if capture.info.losses.lost_records > 0 || all_waits(capture) < 4_000 {
        println!("skipped: {test}: the machine is too busy to switch often");
        return true;
    }
    false
}

fn all_waits(capture: &Capture) -> u64 {
    capture.waits.iter().map(|wait| u64::from(wait.count)).sum()
}

fn calls(capture: &Capture, wait: &Wait, function: &str) -> bool {
    capture.nodes_of(wait.stack).any(|node| {
        let frame = capture.stacks[node.index()].frame;
        &*capture.frames[frame.index()].function == function
    })
}

fn thread_named(capture: &Capture, name: &str) -> ThreadId {
    let index = capture.threads.iter().position(|thread| thread.name == name);
    ThreadId::from_index(index.unwrap_or_else(|| panic!("no thread is named {name}")))
}

fn blocked_ns(wait: &Wait) -> u64 {
    wait.end_ns - wait.start_ns - wait.runnable_ns.unwrap_or(0)
}

/// Of each thread, the longest time for which it ran, and when in its life that ended.
fn longest_running(capture: &Capture) -> Vec<(String, u64, u64)> {
    let of_thread = |(index, thread): (usize, &stepscope_model::Thread)| {
        let (start_ns, end_ns) = (thread.start_ns.unwrap(), thread.end_ns.unwrap());
        let waits = capture.waits.iter().filter(|wait| wait.thread.index() == index);
        let waits: Vec<(u64, u64)> = waits.map(|wait| (wait.start_ns, wait.end_ns)).collect();
        let starts = std::iter::once(start_ns).chain(waits.iter().map(|wait| wait.1));
        let ends = waits.iter().map(|wait| wait.0).chain([end_ns]);
        let longest = starts.zip(ends).map(|(start, end)| (end.saturating_sub(start), end - start_ns)).max().unwrap();
        (thread.name.clone(), longest.0, longest.1)
    };
    capture.threads.iter().enumerate().map(of_thread).collect()
}

/// Each thread is in one state at any time, and running, runnable and blocked time add up to its life.
fn check_that_times_add_up(capture: &Capture) {
    for (index, thread) in capture.threads.iter().enumerate() {
        let waits: Vec<Wait> = capture.waits.iter().filter(|wait| wait.thread.index() == index).collect();
        assert!(
            waits.is_sorted_by(|first, second| first.end_ns <= second.start_ns),
            "waits of {} overlap",
            thread.name
        );
        let off_ns: u64 = waits.iter().map(|wait| wait.end_ns - wait.start_ns).sum();
        let life_ns = thread.end_ns.unwrap() - thread.start_ns.unwrap();
        assert_eq!(thread.cpu_ns.unwrap() + off_ns, life_ns, "{}", thread.name);
    }
}

#[test]
fn waits_that_are_added_up_have_their_stacks_with_and_without_frame_pointers() {
    let test = "waits_that_are_added_up_have_their_stacks_with_and_without_frame_pointers";
    let cases = [
        (Build::WithoutFramePointers, "pipe"),
        (Build::WithFramePointers, "futex"),
        (Build::WithoutFramePointers, "condition"),
        (Build::WithFramePointers, "epoll"),
    ];
    for (build, kind) in cases {
        let Some(launch) = switches(build, kind, 400) else {
            return println!("skipped: {test}: no compiler to build the program");
        };
        let Some((capture, lines)) = record_command_with(test, launch, &few_single_waits()) else { return };
        if skips(test, &capture) {
            continue;
        }
        let losses = &capture.info.losses;
        println!(
            "{kind} {build:?}: {lines:?}, {} waits in {} rows, {:?} aggregated, {:?} of {:?} stacks differ",
            all_waits(&capture),
            capture.waits.len(),
            losses.aggregated_waits,
            losses.differing_stacks,
            losses.checked_stacks
        );
        check_that_times_add_up(&capture);
        assert!(losses.aggregated_waits.is_some_and(|waits| waits * 2 > all_waits(&capture)));
        assert!(capture.waits.len() as u64 * 2 < all_waits(&capture), "rows are few");

        // The kernel's own count has the switches before the exec as well.
        let switches: u64 = lines[0].rsplit(' ').next().unwrap().parse().unwrap();
        assert!(all_waits(&capture).abs_diff(switches) < 40 + switches / 100, "{} of {switches}", all_waits(&capture));

        let asks = thread_named(&capture, "asks");
        let waits = || capture.waits.iter().filter(|wait| wait.thread == asks && wait.state == WaitState::Blocked);
        let at = |function: &str| -> u64 {
            waits().filter(|wait| calls(&capture, wait, function)).map(|wait| u64::from(wait.count)).sum()
        };
        let (seventy, thirty) = (at("seventy"), at("thirty"));
        let share = seventy as f64 * 100.0 / (seventy + thirty).max(1) as f64;
        assert!((67.0..=73.0).contains(&share), "{seventy} and {thirty} of the waits: {share:.1} %");
        let blocked: u64 = waits().map(|wait| blocked_ns(&wait)).sum();
        let placed: u64 = waits().filter(|wait| wait.stack.is_some()).map(|wait| blocked_ns(&wait)).sum();
        assert!(placed * 100 >= blocked * 95, "{placed} of {blocked} ns have a stack");
    }
}

#[test]
fn a_thread_that_switches_all_the_time_takes_neither_waits_nor_stacks_from_others() {
    let test = "a_thread_that_switches_all_the_time_takes_neither_waits_nor_stacks_from_others";
    let Some(launch) = switches(Build::WithoutFramePointers, "pipe", 400) else {
        return println!("skipped: {test}: no compiler to build the program");
    };
    let Some((capture, _)) = record_command_with(test, launch, &few_single_waits()) else { return };
    if skips(test, &capture) {
        return;
    }
    let waits: Vec<Wait> = capture
        .waits
        .iter()
        .filter(|wait| capture.threads[wait.thread.index()].name.starts_with("switches"))
        .filter(|wait| wait.state == WaitState::Blocked && calls(&capture, wait, "nap"))
        .collect();
    assert!(waits.iter().all(|wait| wait.count == 1), "its waits are single");
    assert!((38..=42).contains(&waits.len()), "{} of 40 naps have their stack", waits.len());
}

#[test]
fn sums_that_span_a_cut_are_divided_at_it() {
    let test = "sums_that_span_a_cut_are_divided_at_it";
    let Some(launch) = switches(Build::WithoutFramePointers, "pipe", 500) else {
        return println!("skipped: {test}: no compiler to build the program");
    };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let started = Recording::launch(launch.output(Output::captured(10)), &few_single_waits(), folders[0].path());
    let Ok((mut launched, recording)) = started else { return println!("skipped: {test}: it cannot be recorded") };
    recording.wait(&Until { duration: Some(Duration::from_millis(200)), flag: None });
    recording.rotate(folders[1].path()).unwrap();
    recording.wait(&Until { duration: None, flag: None });
    launched.wait_for(Duration::from_secs(60)).unwrap();
    launched.stop(&Grace::default()).unwrap();
    recording.stop().unwrap();
    let captures = folders.map(|folder| captured(folder.path()));
    if captures.iter().any(|capture| skips(test, capture)) {
        return;
    }
    captures.iter().for_each(check_that_times_add_up);
    let switches: u64 = launched.last_lines()[0].rsplit(' ').next().unwrap().parse().unwrap();
    let recorded: u64 = captures.iter().map(all_waits).sum();
    assert!(
        recorded.abs_diff(switches) < 50 + switches / 100,
        "{recorded} of {switches}; longest time without a wait: {:?}",
        captures.each_ref().map(longest_running)
    );
    let [_, second] = &captures;
    let asks = thread_named(second, "asks");
    let stacks = second.waits.iter().filter(|wait| wait.thread == asks && calls(second, wait, "seventy")).count();
    assert!(stacks > 0, "stacks are known again after the cut");
}

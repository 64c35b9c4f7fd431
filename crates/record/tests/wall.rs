//! Each thread's life adds up: running, runnable and blocked, against what the threads measured of themselves.

mod recorded;

use std::collections::HashMap;

use recorded::{programs, record_command_with};
use stepscope_model::{Capture, DimensionStatus, Thread, Wait, WaitState};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

/// What a thread of `truth/waits.cpp` says of itself.
struct Told {
    /// When it said so; all else is what had been until then.
    at_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
    /// In calls that wait.
    off_ns: u64,
}

fn told(lines: &[String]) -> HashMap<String, Told> {
    let parse = |line: &String| {
        let words: Vec<&str> = line.strip_prefix("thread ")?.split(' ').collect();
        let [name, numbers @ ..] = &words[..] else { return None };
        let numbers: Option<Vec<u64>> = numbers.iter().map(|number| number.parse().ok()).collect();
        let [at_ns, running_ns, runnable_ns, off_ns] = numbers?[..] else { return None };
        Some(((*name).to_owned(), Told { at_ns, running_ns, runnable_ns, off_ns }))
    };
    lines.iter().filter_map(parse).collect()
}

/// A thread's recorded life.
struct Life<'a> {
    thread: &'a Thread,
    waits: Vec<&'a Wait>,
}

/// What a part of a life consists of.
struct Parts {
    all_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
    blocked_ns: u64,
}

impl<'a> Life<'a> {
    fn of(capture: &'a Capture, index: usize) -> Self {
        let waits = capture.waits.iter().filter(|wait| wait.thread.index() == index);
        Self { thread: &capture.threads[index], waits: waits.collect() }
    }

    fn named(capture: &'a Capture, name: &str) -> Self {
        let index = capture.threads.iter().position(|thread| thread.name == name);
        Self::of(capture, index.unwrap_or_else(|| panic!("no thread is named {name}")))
    }

    /// The life up to a time at which the thread ran.
    fn until(&self, time_ns: u64) -> Parts {
        let all_ns = time_ns - self.thread.start_ns.unwrap();
        let waits = self.waits.iter().filter(|wait| wait.start_ns < time_ns);
        let off_ns: u64 = waits.clone().map(|wait| wait.end_ns - wait.start_ns).sum();
        let runnable_ns = waits.filter_map(|wait| wait.runnable_ns).sum();
        Parts { all_ns, running_ns: all_ns - off_ns, runnable_ns, blocked_ns: off_ns - runnable_ns }
    }

    fn whole(&self) -> Parts {
        self.until(self.thread.end_ns.unwrap())
    }
}

/// What the hypervisor and interrupts took from all processors so far: the kernel's accounts do not count it as a
/// thread's, but the thread was not off its processor.
fn stolen_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> = stat.lines().next().unwrap_or("").split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal, in hundredths of a second.
    [5, 6, 7].iter().filter_map(|&column| ticks.get(column)).sum::<u64>() * 10_000_000
}

/// Asserts that two times agree within a tolerance.
fn agree(what: &str, recorded_ns: u64, told_ns: u64, tolerance_ns: u64) {
    println!("{what}: {:.3} ms, told {:.3} ms", recorded_ns as f64 / 1e6, told_ns as f64 / 1e6);
    assert!(recorded_ns.abs_diff(told_ns) <= tolerance_ns, "{what}: {recorded_ns} ns, told {told_ns} ns");
}

/// On a busy machine threads are switched so often that some of the time no stacks are taken, unless they all are.
fn every_stack() -> Options {
    Options { max_switch_stacks_hz: u64::MAX, ..Options::default() }
}

fn recorded(test: &str) -> Option<(Capture, Vec<String>)> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: there is no g++ to build the program with");
        return None;
    };
    record_command_with(test, Launch::new([programs.join("waits")]), &every_stack())
}

#[test]
fn running_runnable_and_blocked_are_what_each_thread_measured_and_add_up_to_its_lifetime() {
    let test = "running_runnable_and_blocked_are_what_each_thread_measured_and_add_up_to_its_lifetime";
    let stolen_before_ns = stolen_ns();
    let Some((capture, lines)) = recorded(test) else { return };
    let stolen_ns = stolen_ns() - stolen_before_ns;
    println!("{:.0} ms were stolen from the machine meanwhile", stolen_ns as f64 / 1e6);
    let told = told(&lines);
    assert_eq!(told.len(), 6, "{lines:?}");
    let complete = capture.info.dimensions.values().all(|status| *status == DimensionStatus::Recorded);
    for (name, told) in &told {
        let life = Life::named(&capture, name);
        let whole = life.whole();
        assert_eq!(whole.running_ns, life.thread.cpu_ns.unwrap(), "{name}");
        let Parts { all_ns, running_ns, runnable_ns, blocked_ns } = life.until(told.at_ns);
        // 1 %, the time between reading one clock and the other, and what was stolen.
        let slack_ns = all_ns / 100 + 300_000 + stolen_ns;
        agree(&format!("{name} running"), running_ns, told.running_ns, slack_ns);
        if !complete {
            println!("skipped: {test}: {name}'s runnable time needs wake-ups, which this user may not record");
            continue;
        }
        if told.runnable_ns > 0 {
            agree(&format!("{name} runnable"), runnable_ns, told.runnable_ns, slack_ns);
            agree(&format!("{name} blocked"), blocked_ns, all_ns - told.running_ns - told.runnable_ns, slack_ns);
        }
        // In calls that wait a thread is blocked, and then waits for a processor.
        assert!(blocked_ns + runnable_ns + slack_ns >= told.off_ns, "{name}: {} ns off", told.off_ns);
    }
    let blocked = |name: &str| Life::named(&capture, name).whole().blocked_ns;
    // By construction: 15 sleeps of 30 ms, 8 of 50 ms; a lock that is held for 50 ms, nearly always.
    assert!(blocked("sleeper") >= 450_000_000, "{}", blocked("sleeper"));
    assert!(blocked("holder") >= 400_000_000, "{}", blocked("holder"));
    assert!(blocked("waiter") >= 100_000_000, "{}", blocked("waiter"));
}

#[test]
fn starved_threads_are_runnable_and_not_blocked() {
    let Some((capture, _)) = recorded("starved_threads_are_runnable_and_not_blocked") else { return };
    for name in ["starved1", "starved2", "starved3"] {
        let Parts { all_ns, runnable_ns, blocked_ns, .. } = Life::named(&capture, name).whole();
        // The first to end had two rivals all the while, the last one had one for most of it.
        assert!(runnable_ns * 10 > all_ns * 4, "{name}: {runnable_ns} of {all_ns} ns");
        assert!(blocked_ns * 20 < all_ns, "{name}: {blocked_ns} of {all_ns} ns");
    }
}

#[test]
fn who_waits_for_a_lock_is_woken_by_who_holds_it() {
    let test = "who_waits_for_a_lock_is_woken_by_who_holds_it";
    let Some((capture, _)) = recorded(test) else { return };
    let sched = capture.info.dimensions.get(&stepscope_model::Dimension::Sched);
    if sched != Some(&DimensionStatus::Recorded) {
        println!("skipped: {test}: wake-ups were not recorded: {sched:?}");
        return;
    }
    let waiter = Life::named(&capture, "waiter");
    let functions =
        |wait: &Wait| -> Vec<&str> { capture.frames_of(wait.stack).map(|frame| capture.function(frame)).collect() };
    // On a busy machine it may also be preempted there, and nobody wakes it then.
    let for_lock = |wait: &&&Wait| {
        wait.state == WaitState::Blocked && functions(wait).iter().any(|name| name.contains("pthread_mutex_lock"))
    };
    let locks: Vec<_> = waiter.waits.iter().filter(for_lock).collect();
    // With eight recorders at once on two processors the kernel now and then passes over a stack.
    assert!(locks.len() >= 2, "{} waits for the lock", locks.len());
    for wait in &locks {
        assert!(functions(wait).iter().any(|name| name.starts_with("waits_for_lock")), "{:?}", functions(wait));
        let waker = wait.waker.map(|thread| &*capture.threads[thread.index()].name);
        assert_eq!(waker, Some("holder"));
        let from: Vec<&str> = capture.frames_of(wait.waker_stack).map(|frame| capture.function(frame)).collect();
        assert!(from.iter().any(|name| name.contains("pthread_mutex_unlock")), "{from:?}");
        assert!(!from.iter().any(|name| name.contains("bpf")), "what records is no part of what is recorded: {from:?}");
    }
}

#[test]
fn processes_that_end_before_the_recorder_hears_of_them_have_the_stacks_they_blocked_at() {
    let test = "processes_that_end_before_the_recorder_hears_of_them_have_the_stacks_they_blocked_at";
    let sleeps = "i=0; while [ $i -lt 30 ]; do sleep 0.015; i=$((i+1)); done";
    let launch = Launch::new(["sh", "-c", sleeps]);
    let Some((capture, _)) = record_command_with(test, launch, &every_stack()) else { return };
    assert_eq!(capture.info.losses.lost_records, 0);
    let offcpu = capture.info.dimensions.get(&stepscope_model::Dimension::Offcpu);
    if offcpu != Some(&DimensionStatus::Recorded) {
        println!("skipped: {test}: stacks at switches were not recorded: {offcpu:?}");
        return;
    }
    let asleep = |wait: &&Wait| {
        let is_sleep = capture.threads[wait.thread.index()].name == "sleep";
        is_sleep && wait.state == WaitState::Blocked && wait.end_ns - wait.start_ns >= 14_000_000
    };
    let slept: Vec<_> = capture.waits.iter().filter(asleep).collect();
    assert_eq!(slept.len(), 30);
    let with_stack = slept.iter().filter(|wait| wait.stack.is_some());
    assert!(with_stack.clone().count() >= 27, "the kernel passes over a stack now and then, when it is very busy");
    for wait in with_stack {
        let functions: Vec<&str> = capture.frames_of(wait.stack).map(|frame| capture.function(frame)).collect();
        assert!(functions.iter().any(|name| name.contains("nanosleep")), "{functions:?}");
    }
}

#[test]
fn every_thread_of_a_crowd_is_in_exactly_one_state_at_any_time() {
    recorded::record("every_thread_of_a_crowd_is_in_exactly_one_state_at_any_time", &["crowd"], |recorded| {
        for index in 0..recorded.capture.threads.len() {
            let life = Life::of(&recorded.capture, index);
            assert_eq!(life.whole().running_ns, life.thread.cpu_ns.unwrap(), "{:?}: {:?}", recorded.build, life.thread);
            let disjoint = life.waits.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns);
            assert!(disjoint, "{:?}: {:?}", recorded.build, life.thread);
        }
    });
}

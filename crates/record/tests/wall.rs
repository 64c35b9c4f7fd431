//! The time of each thread: running, runnable and blocked add up, and agree with what the threads measured themselves.

mod recorded;

use std::collections::HashMap;
use std::ops::RangeInclusive;

use recorded::{programs, record_command_with};
use stepscope_model::{Capture, DimensionStatus, Thread, Wait, WaitState};
use stepscope_record::Options;
use stepscope_record::launch::Launch;

/// A thread's own measurements, printed by `truth/waits.cpp`.
struct Measured {
    /// Time of the measurement; the other fields are totals until then.
    at_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
    /// Time in calls that wait.
    off_ns: u64,
}

fn measured(lines: &[String]) -> HashMap<String, Measured> {
    let parse = |line: &String| {
        let words: Vec<&str> = line.strip_prefix("thread ")?.split(' ').collect();
        let [name, numbers @ ..] = &words[..] else { return None };
        let numbers: Option<Vec<u64>> = numbers.iter().map(|number| number.parse().ok()).collect();
        let [at_ns, running_ns, runnable_ns, off_ns] = numbers?[..] else { return None };
        Some(((*name).to_owned(), Measured { at_ns, running_ns, runnable_ns, off_ns }))
    };
    lines.iter().filter_map(parse).collect()
}

/// A thread's recorded lifetime.
struct Life<'a> {
    thread: &'a Thread,
    waits: Vec<Wait>,
}

/// The parts of a lifetime.
struct Parts {
    all_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
    blocked_ns: u64,
    /// The part of `blocked_ns` in waits without a wake-up: the thread may have been runnable.
    unsplit_ns: u64,
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

    /// The lifetime up to a time at which the thread ran.
    fn until(&self, time_ns: u64) -> Parts {
        let all_ns = time_ns - self.thread.start_ns.unwrap();
        let waits = self.waits.iter().filter(|wait| wait.start_ns < time_ns);
        let off_ns: u64 = waits.clone().map(|wait| wait.end_ns - wait.start_ns).sum();
        let runnable_ns = waits.clone().filter_map(|wait| wait.runnable_ns).sum();
        let unsplit_ns = waits.filter(|wait| wait.runnable_ns.is_none()).map(|wait| wait.end_ns - wait.start_ns).sum();
        Parts { all_ns, running_ns: all_ns - off_ns, runnable_ns, blocked_ns: off_ns - runnable_ns, unsplit_ns }
    }

    fn whole(&self) -> Parts {
        self.until(self.thread.end_ns.unwrap())
    }
}

/// CPU time that the hypervisor and interrupts have taken so far. The kernel does not account it to a thread, although
/// the thread was not switched out.
fn stolen_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> = stat.lines().next().unwrap_or("").split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal, in hundredths of a second.
    [5, 6, 7].iter().filter_map(|&column| ticks.get(column)).sum::<u64>() * 10_000_000
}

/// Asserts that a measured time is in the range that the recording gives, within a tolerance.
fn agrees(what: &str, recorded_ns: RangeInclusive<u64>, measured_ns: u64, tolerance_ns: u64) {
    println!("{what}: {recorded_ns:?} ns, measured {measured_ns} ns");
    let accepted_ns = recorded_ns.start().saturating_sub(tolerance_ns)..=recorded_ns.end() + tolerance_ns;
    assert!(accepted_ns.contains(&measured_ns), "{what}: {recorded_ns:?} ns, measured {measured_ns} ns");
}

/// Takes the stack at every switch. On a busy machine, threads are switched so often that stacks would be thinned.
fn every_stack() -> Options {
    Options { max_switch_stacks_hz: u64::MAX, ..Options::default() }
}

fn recorded(test: &str) -> Option<(Capture, Vec<String>)> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    record_command_with(test, Launch::new([programs.join("waits")]), &every_stack())
}

#[test]
fn running_runnable_and_blocked_agree_with_each_thread_and_add_up_to_its_lifetime() {
    let test = "running_runnable_and_blocked_agree_with_each_thread_and_add_up_to_its_lifetime";
    let stolen_before_ns = stolen_ns();
    let Some((capture, lines)) = recorded(test) else { return };
    let stolen_ns = stolen_ns() - stolen_before_ns;
    println!("{:.0} ms of CPU time were stolen meanwhile", stolen_ns as f64 / 1e6);
    let measured = measured(&lines);
    assert_eq!(measured.len(), 6, "{lines:?}");
    let complete = capture.info.dimensions.values().all(|status| *status == DimensionStatus::Recorded);
    for (name, measured) in &measured {
        let life = Life::named(&capture, name);
        let whole = life.whole();
        assert_eq!(whole.running_ns, life.thread.cpu_ns.unwrap(), "{name}");
        let Parts { all_ns, running_ns, runnable_ns, blocked_ns, unsplit_ns } = life.until(measured.at_ns);
        // 1 %, the time between reading two clocks, and stolen time.
        let slack_ns = all_ns / 100 + 300_000 + stolen_ns;
        agrees(&format!("{name} running"), running_ns..=running_ns, measured.running_ns, slack_ns);
        if !complete {
            println!("skipped: {test}: {name}'s runnable time needs wake-ups, which this user may not record");
            continue;
        }
        if measured.runnable_ns > 0 {
            let may_be_runnable_ns = runnable_ns..=runnable_ns + unsplit_ns;
            agrees(&format!("{name} runnable"), may_be_runnable_ns, measured.runnable_ns, slack_ns);
            let measured_ns = all_ns.saturating_sub(measured.running_ns + measured.runnable_ns);
            agrees(&format!("{name} blocked"), blocked_ns - unsplit_ns..=blocked_ns, measured_ns, slack_ns);
        }
        // A thread in a waiting call is blocked, and then waits for a CPU.
        assert!(blocked_ns + runnable_ns + slack_ns >= measured.off_ns, "{name}: {} ns off", measured.off_ns);
    }
    if complete {
        // A sandbox can hide its own threads from perf, and with them the timers that fire while they run. Wake-ups by
        // the program's own threads are all there.
        let life = Life::named(&capture, "waiter");
        let woken = life.waits.iter().filter(|wait| wait.state == WaitState::Blocked && wait.runnable_ns.is_some());
        assert!(woken.count() > 0, "no wait of the waiter has a wake-up");
        let lives: Vec<_> = measured.keys().map(|name| Life::named(&capture, name)).collect();
        let blocked = || lives.iter().flat_map(|life| &life.waits).filter(|wait| wait.state == WaitState::Blocked);
        let unsplit = blocked().filter(|wait| wait.runnable_ns.is_none() && wait.end_ns > wait.start_ns).count();
        println!("{unsplit} of {} waits have no wake-up", blocked().count());
    }
    let blocked = |name: &str| Life::named(&capture, name).whole().blocked_ns;
    // By construction: 15 sleeps of 30 ms, 8 of 50 ms; a lock that is nearly always held, for 50 ms.
    assert!(blocked("sleeper") >= 450_000_000, "{}", blocked("sleeper"));
    assert!(blocked("holder") >= 400_000_000, "{}", blocked("holder"));
    assert!(blocked("waiter") >= 100_000_000, "{}", blocked("waiter"));
}

#[test]
fn threads_without_a_cpu_are_runnable_and_not_blocked() {
    let Some((capture, _)) = recorded("threads_without_a_cpu_are_runnable_and_not_blocked") else { return };
    for name in ["starved1", "starved2", "starved3"] {
        let Parts { all_ns, runnable_ns, blocked_ns, .. } = Life::named(&capture, name).whole();
        // The first to end had two rivals all the time; the last one had one for most of the time.
        assert!(runnable_ns * 10 > all_ns * 4, "{name}: {runnable_ns} of {all_ns} ns");
        assert!(blocked_ns * 20 < all_ns, "{name}: {blocked_ns} of {all_ns} ns");
    }
}

#[test]
fn the_holder_of_a_lock_is_the_waker_of_its_waiter() {
    let test = "the_holder_of_a_lock_is_the_waker_of_its_waiter";
    let Some((capture, _)) = recorded(test) else { return };
    let sched = capture.info.dimensions.get(&stepscope_model::Dimension::Sched);
    if sched != Some(&DimensionStatus::Recorded) {
        println!("skipped: {test}: wake-ups were not recorded: {sched:?}");
        return;
    }
    let waiter = Life::named(&capture, "waiter");
    let functions =
        |wait: &Wait| -> Vec<&str> { capture.frames_of(wait.stack).map(|frame| capture.function(frame)).collect() };
    // On a busy machine it may also be preempted there; a preempted thread has no waker.
    let for_lock = |wait: &&Wait| {
        wait.state == WaitState::Blocked && functions(wait).iter().any(|name| name.contains("pthread_mutex_lock"))
    };
    let locks: Vec<_> = waiter.waits.iter().filter(for_lock).collect();
    // With eight recorders at once on two CPUs, the kernel sometimes skips a stack.
    assert!(locks.len() >= 2, "{} waits for the lock", locks.len());
    for wait in &locks {
        assert!(functions(wait).iter().any(|name| name.starts_with("waits_for_lock")), "{:?}", functions(wait));
        let waker = wait.waker.map(|thread| &*capture.threads[thread.index()].name);
        assert_eq!(waker, Some("holder"));
        let from: Vec<&str> = capture.frames_of(wait.waker_stack).map(|frame| capture.function(frame)).collect();
        assert!(from.iter().any(|name| name.contains("pthread_mutex_unlock")), "{from:?}");
        assert!(!from.iter().any(|name| name.contains("bpf")), "the recorder's own frames are left out: {from:?}");
    }
}

#[test]
fn processes_too_short_for_the_recorder_to_notice_have_their_blocking_stacks() {
    let test = "processes_too_short_for_the_recorder_to_notice_have_their_blocking_stacks";
    let sleeps = "i=0; while [ $i -lt 30 ]; do sleep 0.015; i=$((i+1)); done";
    let launch = Launch::new(["sh", "-c", sleeps]);
    let Some((capture, _)) = record_command_with(test, launch, &every_stack()) else { return };
    assert_eq!(capture.info.losses.lost_records, 0);
    let offcpu = capture.info.dimensions.get(&stepscope_model::Dimension::Offcpu);
    if offcpu != Some(&DimensionStatus::Recorded) {
        println!("skipped: {test}: stacks at switches were not recorded: {offcpu:?}");
        return;
    }
    // Each sleeps for 15 ms. On a busy machine it may be preempted in the call before it blocks, and it may also wait this
    // long for its files.
    let in_sleep = |wait: &Wait| {
        let mut frames = capture.frames_of(wait.stack);
        wait.end_ns - wait.start_ns >= 14_000_000 && frames.any(|frame| capture.function(frame).contains("nanosleep"))
    };
    let sleepers = (0..capture.threads.len()).filter(|&index| capture.threads[index].name == "sleep");
    let lives: Vec<_> = sleepers.map(|index| Life::of(&capture, index)).collect();
    assert_eq!(lives.len(), 30);
    for life in &lives {
        assert!(life.waits.iter().any(in_sleep), "{:?}: {:#?}", life.thread, life.waits);
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

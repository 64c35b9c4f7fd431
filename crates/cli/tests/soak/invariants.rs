//! What must hold of every capture, whatever happened while it was recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use stepscope_convert::ImportOptions;
use stepscope_lab::source;
use stepscope_model::{Capture, DimensionStatus, Origin, Sample, Thread, Wait, WaitState, disk};

use crate::workbench::{Ended, Trial};

/// What the load counted itself, over its whole life.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    pub threads: u64,
    pub processes: u64,
    pub switches: u64,
}

impl Account {
    /// Reads the line that the load prints when it ends.
    pub fn of(ended: &Ended) -> Option<Self> {
        let line = ended.out.lines().chain(ended.err.lines()).find(|line| line.starts_with("account "))?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |name: &str| words.iter().skip_while(|&&word| word != name).nth(1)?.parse().ok();
        Some(Self { threads: number("threads")?, processes: number("processes")?, switches: number("switches")? })
    }
}

/// Reads a capture and requires what holds of every one of them.
pub fn of_capture(folder: &Path) -> Result<Capture, String> {
    let capture = disk::read(folder).map_err(|error| error.to_string())?;
    adds_up(&capture)?;
    if capture.info.origin == Origin::Recorded {
        agrees_with_the_kernel(&capture)?;
        samples_stand_for_the_cpu_time(&capture)?;
    }
    Ok(capture)
}

/// Reads the segments of a recording as one capture. Each adds up, and so does the whole.
///
/// The kernel's account is not compared: in a segment of a second, what its readings lack matters.
pub fn of_segments(folder: &Path) -> Result<Capture, String> {
    for segment in disk::segments(folder) {
        let capture = disk::read(&segment).map_err(|error| error.to_string())?;
        adds_up(&capture).map_err(|broken| format!("{}: {broken}", segment.display()))?;
    }
    let whole = source::read_one(folder, &ImportOptions::default(), &AtomicU64::default());
    let whole = whole.map_err(|error| error.to_string())?;
    adds_up(&whole).map_err(|broken| format!("the whole: {broken}"))?;
    Ok(whole)
}

fn adds_up(capture: &Capture) -> Result<(), String> {
    capture.check()?;
    times_add_up(capture)?;
    waits_are_in_order(capture)?;
    cpus_are_not_overbooked(capture)
}

/// Whether everything was recorded that this program can record.
pub fn is_whole(capture: &Capture) -> bool {
    capture.info.dimensions.values().all(|status| *status == DimensionStatus::Recorded)
}

fn named(thread: &Thread) -> String {
    format!("thread {} ({})", thread.tid, thread.name)
}

/// Running + off the CPU = lifetime, of each thread; the rest is a number in the losses.
fn times_add_up(capture: &Capture) -> Result<(), String> {
    let mut off_ns: BTreeMap<usize, u64> = BTreeMap::new();
    for wait in &capture.waits {
        *off_ns.entry(wait.thread.index()).or_default() += wait.end_ns - wait.start_ns;
    }
    let (mut open_ns, mut most) = (0, (0, String::new()));
    for (index, thread) in capture.threads.iter().enumerate() {
        let (Some(start), Some(end), Some(cpu)) = (thread.start_ns, thread.end_ns, thread.cpu_ns) else {
            if capture.info.origin == Origin::Recorded && capture.info.losses.lost_samples.is_none() {
                return Err(format!("{} has no times: {thread:?}", named(thread)));
            }
            continue;
        };
        let off = off_ns.get(&index).copied().unwrap_or(0);
        let apart = (end - start).abs_diff(cpu + off);
        open_ns += apart;
        if apart > most.0 {
            most = (apart, format!("{}: lifetime {}, running {cpu}, off the CPU {off} ns", named(thread), end - start));
        }
    }
    let losses = &capture.info.losses;
    let unknown = losses.unknown_cpu_ns.unwrap_or(0) + losses.lost_wait_ns.unwrap_or(0);
    if open_ns > unknown {
        return Err(format!(
            "{open_ns} ns of lifetime are unaccounted for, {unknown} by the losses; most in {}",
            most.1
        ));
    }
    Ok(())
}

/// The waits of a thread lie in its life and do not overlap.
fn waits_are_in_order(capture: &Capture) -> Result<(), String> {
    let mut of_threads: BTreeMap<usize, Vec<Wait>> = BTreeMap::new();
    for wait in &capture.waits {
        of_threads.entry(wait.thread.index()).or_default().push(wait);
    }
    for (index, mut waits) in of_threads {
        let thread = &capture.threads[index];
        waits.sort_by_key(|wait| (wait.start_ns, wait.end_ns));
        if let Some(pair) = waits.windows(2).find(|pair| pair[1].start_ns < pair[0].end_ns) {
            return Err(format!("waits of {} overlap: {pair:?}", named(thread)));
        }
        let (first, last) = (waits[0].start_ns, waits[waits.len() - 1].end_ns);
        if thread.start_ns.is_some_and(|start| first < start) || thread.end_ns.is_some_and(|end| last > end) {
            return Err(format!("{} waits from {first} to {last} ns, outside of its life: {thread:?}", named(thread)));
        }
        if let Some(wait) = waits.iter().find(|wait| wait.runnable_ns.unwrap_or(0) > wait.end_ns - wait.start_ns) {
            return Err(format!("a wait of {} is longer runnable than it lasts: {wait:?}", named(thread)));
        }
    }
    Ok(())
}

/// The program has at most all CPUs.
fn cpus_are_not_overbooked(capture: &Capture) -> Result<(), String> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let used: u64 = capture.threads.iter().filter_map(|thread| thread.cpu_ns).sum();
    match capture.info.wall_ns() {
        Some(wall) if used > wall * cpus + MS => Err(format!("{used} ns of CPU time in {wall} ns on {cpus} CPUs")),
        _ => Ok(()),
    }
}

const MS: u64 = 1_000_000;

fn stolen_ns(capture: &Capture) -> u64 {
    capture.info.conditions.as_ref().and_then(|conditions| conditions.stolen_ns).unwrap_or(0)
}

/// CPU time by switches is the kernel's account within 5 %, apart from what the hypervisor took. It may fall short where threads
/// switch all the time, as docs/recording.md says under "Limits".
fn agrees_with_the_kernel(capture: &Capture) -> Result<(), String> {
    let losses = &capture.info.losses;
    let (Some(switches), Some(kernel)) = (losses.cpu_time_ns, losses.kernel_cpu_ns) else { return Ok(()) };
    let error = kernel / 20 + 10 * MS + stolen_ns(capture);
    let idle_switches = 2_000 * all_waits(capture);
    let unknown = losses.unknown_cpu_ns.unwrap_or(0);
    // A lost switch-out that no reading shows, in one of several processes, is only said: `summary` has a warning.
    let is_said = losses.lost_records > 0 && capture.processes.len() > 1;
    if switches > kernel + error && !is_said {
        return Err(format!("{switches} ns of CPU time by switches exceed {kernel} ns by the kernel"));
    }
    // Without rights for the whole machine the time after the record of a thread's exit is not known.
    if is_whole(capture) && switches + unknown + idle_switches + error < kernel {
        return Err(format!("{switches} ns of CPU time by switches, {kernel} ns by the kernel, unknown {unknown} ns"));
    }
    Ok(())
}

pub fn cpu_samples(capture: &Capture) -> impl Iterator<Item = &Sample> {
    let is_cpu = |sample: &&Sample| ["cpu-clock", "cycles"].contains(&&*capture.event(sample.event).name);
    capture.samples.iter().filter(is_cpu)
}

/// The samples stand for the CPU time within their error: four times that of as many samples at random, and 5 %.
fn samples_stand_for_the_cpu_time(capture: &Capture) -> Result<(), String> {
    let losses = &capture.info.losses;
    if losses.lost_samples.is_some() {
        return Ok(());
    }
    let (Some(cpu), Some(sampled)) = (losses.cpu_time_ns, losses.sampled_ns) else { return Ok(()) };
    let random_ns = (4.0 * (cpu as f64 / MS as f64).sqrt()) as u64 * MS;
    let error = cpu / 20 + random_ns + 5 * MS + stolen_ns(capture);
    let samples = cpu_samples(capture).count();
    let describe = || format!("{samples} samples stand for {sampled} ns of {cpu} ns CPU time: {losses:?}");
    if sampled > cpu + error {
        return Err(describe());
    }
    // Others than root do not see the kernel's part, nor threads without a sample.
    if is_whole(capture) && sampled + error < cpu {
        return Err(describe());
    }
    Ok(())
}

/// What the load counted is in the capture, or in the numbers of what was lost.
pub fn counts_match(capture: &Capture, account: Account) -> Result<(), String> {
    let losses = &capture.info.losses;
    let lost = losses.lost_records;
    let load = |name: &str| ["load", "stepscope"].contains(&name);
    let of_load =
        capture.threads.iter().filter(|thread| load(&thread.name) || thread.names.iter().any(|name| load(&name.name)));
    let threads = of_load.count() as u64;
    if threads.abs_diff(account.threads) > lost {
        return Err(format!("{threads} threads recorded of {}, {lost} records lost", account.threads));
    }
    let processes = capture.processes.len() as u64;
    if processes < account.processes.saturating_sub(lost) {
        return Err(format!("{processes} processes recorded of {}, {lost} records lost", account.processes));
    }
    // A thread first waits for a CPU, without a switch before; the account is read before the exit. Without rights for the
    // whole machine, the switches of a process that frees its memory in its exit are not seen.
    let waits = all_waits(capture);
    let in_exits = if is_whole(capture) { 0 } else { 5 * (account.processes - 1) };
    let (least, most) =
        (account.switches.saturating_sub(lost + in_exits + 3), account.switches + 3 * account.threads + 50);
    if !(least..=most).contains(&waits) {
        return Err(format!("{waits} waits recorded of {} switches, {lost} records lost", account.switches));
    }
    Ok(())
}

/// Blocked intervals have their stacks, but for one in a hundred and the first of each thread, where no number says otherwise.
/// A thread that exits has given its memory back: it has no stack while the kernel waits for the rest of its exit, which for
/// the first process of a container is that of all others.
pub fn blocked_time_has_stacks(capture: &Capture) -> Result<(), String> {
    let losses = &capture.info.losses;
    if !is_whole(capture) || losses.lost_records > 0 || losses.offcpu_stack_period.is_some_and(|period| period > 1) {
        return Ok(());
    }
    let waits: Vec<Wait> = capture.waits.iter().collect();
    let mut last_stacks = vec![None; capture.threads.len()];
    for wait in waits.iter().filter(|wait| wait.stack.is_some()) {
        let last = &mut last_stacks[wait.thread.index()];
        *last = Some(wait.start_ns).max(*last);
    }
    let is_of_the_exit = |wait: &Wait| {
        let thread = wait.thread.index();
        capture.threads[thread].end_ns.is_some() && last_stacks[thread].is_some_and(|last| last < wait.start_ns)
    };
    let blocked: Vec<&Wait> =
        waits.iter().filter(|wait| wait.state == WaitState::Blocked && !is_of_the_exit(wait)).collect();
    let count = |sum: u64, wait: &&Wait| sum + u64::from(wait.count);
    let all = blocked.iter().fold(0, count);
    let without = blocked.iter().filter(|wait| wait.stack.is_none()).fold(0, count);
    if without > all / 100 + capture.threads.len() as u64 + 2 {
        return Err(format!("{without} of {all} blocked waits have no stack, and no loss says so"));
    }
    Ok(())
}

/// The number of waits, also of those that were added up.
fn all_waits(capture: &Capture) -> u64 {
    capture.waits.iter().map(|wait| u64::from(wait.count)).sum()
}

/// The recorder's memory does not grow with what it records, also not when it finishes.
pub fn memory_is_bounded(recorder: &Ended, capture: &Capture) -> Result<(), String> {
    if recorder.peak_bytes > 256 << 20 {
        let (peak, waits) = (recorder.peak_bytes >> 20, capture.waits.len());
        return Err(format!("{} had {peak} MiB of memory, for {waits} waits", recorder.name));
    }
    Ok(())
}

/// Subcommands that read a capture (`CAPTURE` in their arguments).
pub const READERS: &[&[&str]] = &[
    &["show", "CAPTURE", "--view", "summary", "--format", "json"],
    &["show", "CAPTURE", "--view", "wall", "--format", "json"],
    &["show", "CAPTURE", "--view", "dimensions", "--format", "json"],
    &["show", "CAPTURE", "--view", "cost-tree", "--format", "json"],
    &["show", "CAPTURE", "--view", "hotspots", "--format", "json"],
    &["show", "CAPTURE", "--view", "edges", "--format", "tsv"],
    &["show", "CAPTURE", "--view", "tree", "--format", "json"],
    &["show", "CAPTURE", "--view", "inverted-tree", "--format", "json"],
    &["show", "CAPTURE", "--view", "threads"],
    &["show", "CAPTURE", "--view", "thread-names", "--format", "csv"],
    &["show", "CAPTURE", "--view", "wall-names", "--format", "json"],
    &["show", "CAPTURE", "--view", "blocked", "--format", "json"],
    &["show", "CAPTURE", "--view", "sched", "--format", "json"],
    &["show", "CAPTURE", "--view", "faults", "--format", "json"],
    &["show", "CAPTURE", "--view", "resources", "--format", "json"],
    &["show", "CAPTURE", "--view", "counters", "--format", "json"],
    &["explain", "burn", "CAPTURE", "--format", "json"],
    &["rank", "CAPTURE", "--format", "json"],
    &["compare", "CAPTURE", "CAPTURE", "--format", "json"],
    &["report", "CAPTURE", "-o", "report.html"],
    &["flamegraph", "CAPTURE", "-o", "flame.svg"],
    &["flamegraph", "CAPTURE", "--off-cpu", "-o", "off-cpu.svg"],
    &["export", "CAPTURE", "--format", "folded", "-o", "exported.folded"],
    &["export", "CAPTURE", "--format", "pprof", "-o", "exported.pprof"],
    &["export", "CAPTURE", "--format", "firefox", "-o", "exported.firefox"],
    &["export", "CAPTURE", "--format", "speedscope", "-o", "exported.speedscope"],
    &["export", "CAPTURE", "--format", "chrome", "-o", "exported.chrome"],
];

/// Opens a capture with some of the subcommands that read captures. Over a run, each has its turn.
pub fn is_readable(trial: &mut Trial, capture: &str) -> Result<(), String> {
    for _ in 0..3 {
        let reader = trial.random.choice(READERS).expect("there are some");
        let arguments: Vec<&str> = reader.iter().map(|&word| if word == "CAPTURE" { capture } else { word }).collect();
        let ended = trial.stepscope("reader", &[&arguments[..], &["--no-pager"]].concat()).end()?;
        let said = format!("stepscope {}: {}: {}", arguments.join(" "), ended.status, ended.err);
        // 1: nothing of that kind is in the capture, which the program says.
        let code = ended.status.code();
        if code != Some(0) && !(code == Some(1) && is_empty_of(&ended.err)) {
            return Err(said);
        }
        if code == Some(0)
            && reader.last() == Some(&"json")
            && serde_json::from_str::<serde_json::Value>(&ended.out).is_err()
        {
            return Err(format!("no JSON: {said}"));
        }
    }
    Ok(())
}

/// Whether a reader says that the capture has nothing of what it shows.
fn is_empty_of(message: &str) -> bool {
    ["no samples", "no function", "no waits", "nothing", "not recorded", "has no", "have no"]
        .iter()
        .any(|says| message.contains(says))
}

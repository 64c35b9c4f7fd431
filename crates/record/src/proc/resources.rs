//! Resources that each process of a program uses, read from `/proc` a few times per second.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::{Duration, Instant};

use super::files::Files;
use super::{Io, ProcessTree, SchedStat, Stat, Status, page_bytes, ticks_per_second};
use crate::clock;

/// Readings that are closer together have one time.
const SAME_TIME_NS: u64 = 1_000_000;

/// How often threads are read again, each time that all are read.
const MOST_REPEATS: u32 = 4;

/// A quantity of a process or a thread. Its [`name`](Self::name) carries the unit.
///
/// Quantities of which the documentation says *total* count from the beginning of the process, not of the recording,
/// and never fall; the others are momentary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Total CPU time in user mode, ended threads included. The kernel gives it in steps of 10 ms.
    CpuUser,
    /// Total CPU time in the kernel, likewise.
    CpuSystem,
    /// Resident memory.
    Rss,
    /// Largest resident memory so far.
    PeakRss,
    /// Threads.
    Threads,
    /// Total of voluntary context switches. The kernel counts per thread and drops the count when the thread ends, so an
    /// ended thread contributes its last reading.
    VoluntarySwitches,
    /// Total of involuntary context switches, likewise.
    InvoluntarySwitches,
    /// Total of bytes fetched from storage.
    IoRead,
    /// Total of bytes to be sent to storage.
    IoWrite,
    /// Total of bytes that read calls returned, wherever they came from: files in memory and pipes count, sockets
    /// do not.
    IoReadCalls,
    /// Total of bytes given to write calls, likewise.
    IoWriteCalls,
    /// Open file descriptors.
    Fds,
    /// Total of page faults that needed no storage.
    MinorFaults,
    /// Total of page faults that read from storage.
    MajorFaults,
    /// Of a thread: total, exact CPU time.
    ThreadCpu,
    /// Of a thread: total time runnable, waiting for a CPU.
    RunQueueDelay,
}

impl Quantity {
    /// Every quantity in the order of the variants, which tables show, with its name in the `counters` table.
    const NAMED: [(Quantity, &'static str); 16] = [
        (Quantity::CpuUser, "cpu_user_ns"),
        (Quantity::CpuSystem, "cpu_system_ns"),
        (Quantity::Rss, "rss_bytes"),
        (Quantity::PeakRss, "peak_rss_bytes"),
        (Quantity::Threads, "threads"),
        (Quantity::VoluntarySwitches, "context_switches_voluntary"),
        (Quantity::InvoluntarySwitches, "context_switches_involuntary"),
        (Quantity::IoRead, "io_read_bytes"),
        (Quantity::IoWrite, "io_write_bytes"),
        (Quantity::IoReadCalls, "io_read_call_bytes"),
        (Quantity::IoWriteCalls, "io_write_call_bytes"),
        (Quantity::Fds, "fds"),
        (Quantity::MinorFaults, "minor_faults"),
        (Quantity::MajorFaults, "major_faults"),
        (Quantity::ThreadCpu, "thread_cpu_ns"),
        (Quantity::RunQueueDelay, "run_queue_delay_ns"),
    ];

    /// The name in the `counters` table, with its unit.
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].1
    }

    /// Whether it counts from the beginning of the process, so that differences are what is of interest.
    pub fn is_total(self) -> bool {
        !matches!(self, Quantity::Rss | Quantity::PeakRss | Quantity::Threads | Quantity::Fds)
    }
}

/// One reading of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When it was read, at most 1 ms too early.
    pub time_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread, for the quantities of threads.
    pub tid: Option<u32>,
    /// What was read.
    pub quantity: Quantity,
    /// The value, in the quantity's unit.
    pub value: i64,
}

/// Reads what the processes of a tree use.
///
/// The first reading is reported, and later ones only if they differ from the one before. So an idle process costs no rows,
/// and a chart holds each value until the next. Reads about five small files per process and one per thread, and a second
/// one for threads that ran since.
#[derive(Debug)]
pub struct ResourceSampler {
    tree: ProcessTree,
    processes: HashMap<u32, Used>,
    denied: BTreeSet<&'static str>,
    files: Files,
    /// How often a thread may still be read again in this pass.
    repeats_left: u32,
    tick_ns: i64,
    page_bytes: i64,
    /// Processes that this pass has still to read.
    unread: Vec<Stat>,
    /// Whether their state was read just now.
    is_fresh: bool,
}

/// What is remembered of a process.
#[derive(Debug, Default)]
struct Used {
    start_ticks: u64,
    given: HashMap<(Option<u32>, Quantity), i64>,
    threads: HashMap<u32, ThreadUsed>,
    /// Switches of threads that have ended, as far as they were read.
    ended_switches: (u64, u64),
}

#[derive(Debug, Default, Clone, Copy)]
struct ThreadUsed {
    timeslices: u64,
    switches: (u64, u64),
}

impl ResourceSampler {
    /// A sampler of these processes.
    pub fn new(tree: ProcessTree) -> Self {
        Self {
            tree,
            processes: HashMap::new(),
            denied: BTreeSet::new(),
            files: Files::default(),
            repeats_left: 0,
            tick_ns: (1_000_000_000 / ticks_per_second()) as i64,
            page_bytes: page_bytes() as i64,
            unread: Vec::new(),
            is_fresh: false,
        }
    }

    /// The processes that are read.
    pub fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    /// The tree, for [`ProcessTree::add`].
    pub fn tree_mut(&mut self) -> &mut ProcessTree {
        &mut self.tree
    }

    /// Quantities that could not be read for lack of rights.
    pub fn lacks(&self) -> Vec<String> {
        let lack = |what| format!("{what} of processes of other users, or that forbid to be looked at");
        self.denied.iter().map(lack).collect()
    }

    /// Reads everything once and appends the changes to `readings`.
    pub fn sample(&mut self, readings: &mut Vec<Reading>) {
        self.start_again();
        while !self.sample_for(Duration::MAX, readings) {}
    }

    /// Lets the next call of [`sample_for`](Self::sample_for) read everything, also if a pass is unfinished.
    pub fn start_again(&mut self) {
        self.unread.clear();
    }

    /// Begins to read everything once, or goes on with it, for about this long. Returns whether all is read. With thousands of threads,
    /// all of it takes so long that rings would fill meanwhile.
    pub fn sample_for(&mut self, limit: Duration, readings: &mut Vec<Reading>) -> bool {
        let began = Instant::now();
        if self.unread.is_empty() {
            self.begin_pass();
        }
        while let Some(stat) = self.unread.pop() {
            // What was read before a pause would be a time of CPU that is too short by the pause.
            match self.is_fresh.then_some(stat.clone()).or_else(|| self.tree.read_again(&stat)) {
                Some(stat) => self.sample_process(&stat, readings),
                None => drop(self.processes.remove(&stat.pid)),
            }
            if began.elapsed() >= limit {
                break;
            }
        }
        self.is_fresh = false;
        self.unread.is_empty()
    }

    fn begin_pass(&mut self) {
        self.repeats_left = MOST_REPEATS;
        self.is_fresh = true;
        self.tree.refresh();
        self.unread = self.tree.members().map(|member| member.stat.clone()).collect();
        let is_there = |pid: &u32| self.unread.binary_search_by_key(pid, |stat| stat.pid).is_ok();
        self.processes.retain(|pid, _| is_there(pid));
        self.unread.retain(|stat| !stat.process_has_ended());
        // They are taken from the end.
        self.unread.reverse();
    }

    fn sample_process(&mut self, stat: &Stat, readings: &mut Vec<Reading>) {
        let mut used = self.processes.remove(&stat.pid).unwrap_or_default();
        if used.start_ticks != stat.start_ticks {
            used = Used { start_ticks: stat.start_ticks, ..Used::default() };
        }
        let mut now = Now { time_ns: clock::now_ns(), pid: stat.pid, used: &mut used, readings };
        now.give(Quantity::CpuUser, signed(stat.user_ticks).saturating_mul(self.tick_ns));
        now.give(Quantity::CpuSystem, signed(stat.system_ticks).saturating_mul(self.tick_ns));
        now.give(Quantity::Rss, signed(stat.rss_pages).saturating_mul(self.page_bytes));
        now.give(Quantity::Threads, signed(stat.threads));
        now.give(Quantity::MinorFaults, signed(stat.minor_faults));
        now.give(Quantity::MajorFaults, signed(stat.major_faults));
        if let Some(peak) = self.status(stat.pid, stat.pid).and_then(|status| status.peak_rss_bytes) {
            now.give(Quantity::PeakRss, signed(peak));
        }
        if let Some(io) = self.io(stat.pid) {
            now.give(Quantity::IoRead, signed(io.read_bytes));
            now.give(Quantity::IoWrite, signed(io.write_bytes));
            now.give(Quantity::IoReadCalls, signed(io.read_call_bytes));
            now.give(Quantity::IoWriteCalls, signed(io.write_call_bytes));
        }
        if let Some(fds) = self.fds(stat.pid) {
            now.give(Quantity::Fds, fds);
        }
        let has_other_threads = stat.threads != now.used.threads.len() as u64;
        self.sample_threads(has_other_threads, &mut now);
        self.processes.insert(stat.pid, used);
    }

    fn sample_threads(&mut self, look_for_new: bool, now: &mut Now) {
        if look_for_new || now.used.threads.is_empty() {
            for tid in super::numbered_entries(now.pid, "task").unwrap_or_default() {
                now.used.threads.entry(tid).or_default();
            }
        }
        let mut switches = now.used.ended_switches;
        for (tid, before) in now.used.threads.clone() {
            match self.timed_schedstat(tid, now) {
                Some(sched) => {
                    let after = self.switches_since(before, sched, now.pid, tid);
                    now.used.threads.insert(tid, after);
                    add(&mut switches, after.switches);
                    now.give_thread(tid, Quantity::ThreadCpu, signed(sched.cpu_ns));
                    now.give_thread(tid, Quantity::RunQueueDelay, signed(sched.run_queue_delay_ns));
                }
                None => {
                    now.forget_thread(tid);
                    add(&mut now.used.ended_switches, before.switches);
                    add(&mut switches, before.switches);
                }
            }
        }
        now.give(Quantity::VoluntarySwitches, signed(switches.0));
        now.give(Quantity::InvoluntarySwitches, signed(switches.1));
    }

    /// A thread that has not run since has not switched either. Kernels without these statistics report 0 for all.
    fn switches_since(&mut self, before: ThreadUsed, sched: SchedStat, pid: u32, tid: u32) -> ThreadUsed {
        if sched.timeslices == before.timeslices && sched.timeslices != 0 {
            return before;
        }
        let switches = self.status(pid, tid).map(|status| (status.voluntary_switches, status.involuntary_switches));
        ThreadUsed { timeslices: sched.timeslices, switches: switches.unwrap_or(before.switches) }
    }

    fn status(&mut self, pid: u32, tid: u32) -> Option<Status> {
        Status::parse(self.files.of_thread(pid, tid, "status").ok()?)
    }

    /// Notes the time, too. If the recorder lost the CPU meanwhile, it reads again: CPU time is compared with that by switches. But not for
    /// many threads, because records are lost where a busy machine keeps the recorder from reading them.
    fn timed_schedstat(&mut self, tid: u32, now: &mut Now<'_>) -> Option<SchedStat> {
        let mut read = None;
        loop {
            let start_ns = clock::now_ns();
            if start_ns - now.time_ns > SAME_TIME_NS {
                now.time_ns = start_ns;
            }
            read = self.schedstat(now.pid, tid).or(read);
            if clock::now_ns() - start_ns < SAME_TIME_NS || self.repeats_left == 0 {
                return read;
            }
            self.repeats_left -= 1;
        }
    }

    fn schedstat(&mut self, pid: u32, tid: u32) -> Option<SchedStat> {
        SchedStat::parse(self.files.of_thread(pid, tid, "schedstat").ok()?)
    }

    fn io(&mut self, pid: u32) -> Option<Io> {
        match self.files.of_process(pid, "io") {
            Ok(text) => Io::parse(text),
            Err(error) => {
                self.note_denial(&error, "bytes read and written");
                None
            }
        }
    }

    fn fds(&mut self, pid: u32) -> Option<i64> {
        match super::fd_count(pid) {
            Ok(count) => Some(signed(count)),
            Err(super::ProcError::Denied { .. }) => {
                self.denied.insert("open file descriptors");
                None
            }
            Err(_) => None,
        }
    }

    fn note_denial(&mut self, error: &io::Error, what: &'static str) {
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.denied.insert(what);
        }
    }
}

/// The process being read.
struct Now<'a> {
    time_ns: u64,
    pid: u32,
    used: &'a mut Used,
    readings: &'a mut Vec<Reading>,
}

impl Now<'_> {
    fn give(&mut self, quantity: Quantity, value: i64) {
        self.give_if_changed(None, quantity, value);
    }

    fn give_thread(&mut self, tid: u32, quantity: Quantity, value: i64) {
        self.give_if_changed(Some(tid), quantity, value);
    }

    fn give_if_changed(&mut self, tid: Option<u32>, quantity: Quantity, value: i64) {
        if self.used.given.insert((tid, quantity), value) != Some(value) {
            self.readings.push(Reading { time_ns: self.time_ns, pid: self.pid, tid, quantity, value });
        }
    }

    fn forget_thread(&mut self, tid: u32) {
        self.used.threads.remove(&tid);
        for quantity in [Quantity::ThreadCpu, Quantity::RunQueueDelay] {
            self.used.given.remove(&(Some(tid), quantity));
        }
    }
}

fn add(sum: &mut (u64, u64), more: (u64, u64)) {
    sum.0 = sum.0.saturating_add(more.0);
    sum.1 = sum.1.saturating_add(more.1);
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(readings: &[Reading], tid: Option<u32>, quantity: Quantity) -> Option<i64> {
        let found = readings.iter().rev().find(|reading| (reading.tid, reading.quantity) == (tid, quantity));
        found.map(|reading| reading.value)
    }

    fn own_sampler() -> ResourceSampler {
        ResourceSampler::new(ProcessTree::of(std::process::id()))
    }

    fn own(readings: &[Reading]) -> Vec<Reading> {
        readings.iter().copied().filter(|reading| reading.pid == std::process::id()).collect()
    }

    #[test]
    fn every_quantity_of_our_own_process_is_read() {
        let mut readings = Vec::new();
        own_sampler().sample(&mut readings);
        // SAFETY: gettid only returns a number.
        let tid = unsafe { libc::gettid() } as u32;
        for (quantity, _) in Quantity::NAMED {
            let of_thread = matches!(quantity, Quantity::ThreadCpu | Quantity::RunQueueDelay);
            assert!(value(&own(&readings), of_thread.then_some(tid), quantity).is_some(), "{}", quantity.name());
        }
    }

    #[test]
    fn written_bytes_open_files_and_memory_show_in_the_next_reading() {
        let mut sampler = own_sampler();
        let mut before = Vec::new();
        sampler.sample(&mut before);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1_u8; 3_000_000]).unwrap();
        let memory = vec![1_u8; 64 << 20];
        let mut after = before.clone();
        sampler.sample(&mut after);
        let growth =
            |quantity| value(&own(&after), None, quantity).unwrap() - value(&own(&before), None, quantity).unwrap();
        assert!(growth(Quantity::IoWriteCalls) >= 3_000_000);
        assert!(growth(Quantity::MinorFaults) >= 1);
        assert!(value(&own(&after), None, Quantity::PeakRss).unwrap() >= memory.len() as i64);
    }

    #[test]
    fn a_pass_that_pauses_after_each_process_reads_them_all_once() {
        let mut sleepers: Vec<_> =
            (0..3).map(|_| std::process::Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let mut tree = ProcessTree::of(sleepers[0].id());
        sleepers.iter().for_each(|sleeper| tree.add(sleeper.id()));
        let mut sampler = ResourceSampler::new(tree);
        let (mut readings, mut parts) = (Vec::new(), 1);
        while !sampler.sample_for(Duration::ZERO, &mut readings) {
            parts += 1;
        }
        assert_eq!(parts, 3);
        let read = readings.iter().filter(|reading| reading.quantity == Quantity::Rss).map(|reading| reading.pid);
        let mut pids: Vec<u32> = sleepers.iter().map(|sleeper| sleeper.id()).collect();
        pids.sort_unstable();
        assert_eq!(read.collect::<Vec<_>>(), pids);

        // One that ends in a pause is not read.
        assert!(!sampler.sample_for(Duration::ZERO, &mut readings));
        sleepers.iter_mut().for_each(|sleeper| {
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
        });
        readings.clear();
        while !sampler.sample_for(Duration::ZERO, &mut readings) {}
        assert_eq!(readings, []);
    }

    #[test]
    fn a_process_that_sleeps_is_given_once() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        while super::super::stat(child.id()).unwrap().state != super::super::State::Sleeping
            || super::super::thread_name(child.id(), child.id()).unwrap() != "sleep"
        {
            std::thread::yield_now();
        }
        let mut sampler = ResourceSampler::new(ProcessTree::of(child.id()));
        let mut readings = Vec::new();
        sampler.sample(&mut readings);
        assert_eq!(readings.len(), Quantity::NAMED.len());
        readings.clear();
        sampler.sample(&mut readings);
        assert_eq!(readings, []);
        child.kill().unwrap();
        child.wait().unwrap();
        sampler.sample(&mut readings);
        assert_eq!(readings, []);
    }

    #[test]
    fn switches_of_a_thread_that_ended_stay_in_the_total() {
        let mut used = Used::default();
        used.threads.insert(u32::MAX, ThreadUsed { timeslices: 9, switches: (5, 4) });
        let mut readings = Vec::new();
        let pid = std::process::id();
        let mut now = Now { time_ns: 0, pid, used: &mut used, readings: &mut readings };
        own_sampler().sample_threads(false, &mut now);
        assert_eq!(used.ended_switches, (5, 4));
        assert_eq!(value(&readings, None, Quantity::VoluntarySwitches), Some(5));
        assert_eq!(value(&readings, None, Quantity::InvoluntarySwitches), Some(4));
    }

    #[test]
    fn totals_and_momentary_values_differ_by_name() {
        let momentary: Vec<&str> =
            Quantity::NAMED.iter().filter(|(quantity, _)| !quantity.is_total()).map(|(_, name)| *name).collect();
        assert_eq!(momentary, ["rss_bytes", "peak_rss_bytes", "threads", "fds"]);
    }
}

//! Counts calls of functions in running threads for a short time, by uprobes.
//!
//! A uprobe costs its target some microseconds per call, and the kernel needs up to 0.1 s to set and to remove it. So functions that are
//! called very often are found by hardware breakpoints before. What these miss is found in the first moments of the uprobes,
//! which are removed; what they were called then is no part of the count.
//!
//! Each event observes one thread and is not inherited: an inherited uprobe breaks the target when it starts a thread, and
//! one of the whole machine would also stop other programs that use the same library.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::perf::{Arrivals, BREAKPOINTS, Breakpoint, CallRings};
use crate::proc::{Mapping, SchedStat};
use crate::{clock, proc};

pub use crate::perf::CountedCall;

/// A function that is called more often costs its program too much while it is counted, also for somebody who asked for the count.
pub const MOST_PER_SECOND: f64 = 20_000.0;
/// How long calls are counted before a function can be found to be called too often.
const LEAST_LOOK: Duration = Duration::from_millis(20);
/// How long hardware breakpoints count before the uprobes.
const BRIEF_LOOK: Duration = Duration::from_millis(5);
/// How often they look again if the threads had no CPU meanwhile.
const MOST_BRIEF_LOOKS: usize = 4;
/// CPU time of a thread in which it shows what it calls often, in ns.
const TELLING_CPU_NS: u64 = 1_000_000;
/// How often the rings are read.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The longest count, in multiples of the asked duration.
const MOST_TIMES: u32 = 6;
/// A function with as many calls has been counted enough.
const MANY: usize = 1_000;
/// A thread that has had the CPU as often has been observed enough: each of its context switches costs a microsecond more while it has probes.
const MANY_SWITCHES: u64 = 50_000;
/// How often the switches are read.
const SWITCHES_EVERY: Duration = Duration::from_millis(50);
/// 256 KiB: some 4,000 calls of one thread between two looks.
const PAGES: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// A function whose calls are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The file that holds it.
    pub module: PathBuf,
    /// File offset of its first instruction.
    pub offset: u64,
    /// Ids of the threads whose calls are counted.
    pub threads: Vec<u32>,
}

/// The calls of one [`CallSite`].
#[derive(Debug, Clone, PartialEq)]
pub enum SiteCalls {
    /// Its calls within the window.
    Counted {
        /// Each call.
        calls: Vec<CountedCall>,
        /// When they were counted, in ns of `CLOCK_MONOTONIC`.
        window: Range<u64>,
    },
    /// It is called too often to be counted.
    TooOften {
        /// Calls per second before the probe was removed. More without a probe.
        per_second: f64,
        /// When these were counted, in ns of `CLOCK_MONOTONIC`.
        window: Range<u64>,
    },
    /// The kernel refuses the probe.
    Refused(String),
}

/// The result of [`count_calls`].
#[derive(Debug, Clone, PartialEq)]
pub struct CallCounts {
    /// One for each site, in their order.
    pub sites: Vec<SiteCalls>,
    /// Calls that came faster than they could be read.
    pub lost: u64,
}

/// An open probe of a site in one thread. Closed when dropped.
struct Probe {
    site: usize,
    tid: u32,
    id: u64,
    /// Removes the probe when it is closed.
    _event: File,
}

/// Counts calls of `sites` for this long, or until `stop` is set. Functions that are called more often than `most_per_second`
/// ([`MOST_PER_SECOND`] at most) are left alone after the first moments.
///
/// `enough` gets the number of calls of each site after this time and often after it. While it is `false`, counting goes on, but
/// not longer than six times as long. Probes of functions with very many calls are removed by then, and those of a thread once it has
/// had the CPU 50,000 times: probes make each of its context switches slower. The window of a function says how long it was counted.
///
/// # Errors
/// If the kernel refuses all of them, e.g. because uprobes need `CAP_PERFMON`.
pub fn count_calls(
    sites: &[CallSite],
    duration: Duration,
    most_per_second: f64,
    enough: impl Fn(&[usize]) -> bool,
    stop: &AtomicBool,
) -> io::Result<CallCounts> {
    let most_per_second = most_per_second.min(MOST_PER_SECOND);
    let too_often = often_called(sites, most_per_second, stop);
    let mut rings = CallRings::new(PAGES);
    let mut probes = Vec::new();
    let mut refused: BTreeMap<usize, io::Error> = BTreeMap::new();
    for (index, site) in sites.iter().enumerate().filter(|(index, _)| !too_often.contains_key(index)) {
        let Ok(path) = CString::new(site.module.as_os_str().as_bytes()) else { continue };
        for &tid in &site.threads {
            // The kernel needs up to 0.1 s to remove each probe.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match rings.probe(tid, &path, site.offset) {
                Ok((event, id)) => probes.push(Probe { site: index, tid, id, _event: event }),
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => drop(refused.insert(index, error)),
            }
        }
    }
    if probes.is_empty() && too_often.is_empty() {
        let first = refused.into_values().next();
        return Err(first.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ESRCH)));
    }
    let mut count =
        Count { rings, probes, calls: vec![Vec::new(); sites.len()], too_often, ended_ns: BTreeMap::new(), lost: 0 };
    let switches = SwitchesSince::now(count.probes.iter().map(|probe| probe.tid).collect());
    let since_ns = count.settle(most_per_second);
    let begin = Instant::now();
    let mut next_switches = SWITCHES_EVERY;
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < duration * MOST_TIMES {
        if begin.elapsed() >= duration {
            if enough(&count.calls.iter().map(Vec::len).collect::<Vec<_>>()) {
                break;
            }
            count.remove(|_, calls| calls >= MANY);
        }
        if begin.elapsed() >= next_switches {
            next_switches = begin.elapsed() + SWITCHES_EVERY;
            let busy = switches.threads_with(MANY_SWITCHES);
            count.remove(|tid, _| busy.contains(&tid));
        }
        if count.probes.is_empty() {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
        count.read();
    }
    Ok(count.result(since_ns..clock::now_ns(), &refused))
}

/// The functions that are called more often than `most_per_second`, with the rate, and when it was counted.
fn often_called(sites: &[CallSite], most_per_second: f64, stop: &AtomicBool) -> BTreeMap<usize, (f64, Range<u64>)> {
    // The threads of a process have the same files at the same addresses.
    let mut mapped: BTreeMap<u32, Vec<Mapping>> = BTreeMap::new();
    let mut processes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut often = BTreeMap::new();
    let indices: Vec<usize> = (0..sites.len()).collect();
    for some in indices.chunks(BREAKPOINTS) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut set: Vec<(usize, u32, Breakpoint)> = Vec::new();
        for &index in some {
            for &tid in &sites[index].threads {
                let process =
                    *processes.entry(tid).or_insert_with(|| proc::status(tid).map_or(tid, |status| status.process));
                let mappings = mapped.entry(process).or_insert_with(|| proc::maps(tid).unwrap_or_default());
                let address = address_of(&sites[index], mappings);
                let breakpoint = address.and_then(|address| Breakpoint::set(tid, address).ok());
                set.extend(breakpoint.map(|breakpoint| (index, tid, breakpoint)));
            }
        }
        if set.is_empty() {
            continue;
        }
        let active = ActiveTime::since_now(set.iter().map(|(_, tid, _)| *tid));
        let begin_ns = clock::now_ns();
        let mut counted: BTreeMap<usize, BTreeMap<u32, u64>> = BTreeMap::new();
        for _ in 0..MOST_BRIEF_LOOKS {
            std::thread::sleep(BRIEF_LOOK);
            let mut longest_ns = 0;
            for (index, tid, breakpoint) in &mut set {
                let Arrivals { count, cpu_ns } = breakpoint.read().unwrap_or_default();
                counted.entry(*index).or_default().insert(*tid, count);
                longest_ns = longest_ns.max(cpu_ns);
            }
            if longest_ns >= TELLING_CPU_NS {
                break;
            }
        }
        let seconds = active.seconds();
        drop(set);
        let window = begin_ns..clock::now_ns();
        let rates = counted.into_iter().map(|(index, of_threads)| (index, seconds.rate(of_threads)));
        often.extend(
            rates.filter(|(_, rate)| *rate > most_per_second).map(|(index, rate)| (index, (rate, window.clone()))),
        );
    }
    often
}

/// Measures how long threads were not waiting for a CPU, so that a function is called as often per second on a busy machine.
struct ActiveTime {
    begin: Instant,
    delays: BTreeMap<u32, u64>,
}

impl ActiveTime {
    fn since_now(threads: impl Iterator<Item = u32>) -> Self {
        let tids: BTreeSet<u32> = threads.collect();
        Self { begin: Instant::now(), delays: tids.into_iter().filter_map(|tid| Some((tid, delay_ns(tid)?))).collect() }
    }

    fn seconds(&self) -> ActiveSeconds {
        /// What is left of the time of a thread that always waits: its delay is known only when it runs again.
        const LEAST: f64 = 0.1;
        let whole = self.begin.elapsed().as_secs_f64();
        let waited = |tid: u32, before: u64| delay_ns(tid).unwrap_or(before).saturating_sub(before) as f64 / 1e9;
        let active = self.delays.iter().map(|(&tid, &before)| (tid, (whole - waited(tid, before)).max(LEAST * whole)));
        ActiveSeconds { whole, of_thread: active.collect() }
    }
}

/// How long a thread waited for a CPU so far.
fn delay_ns(tid: u32) -> Option<u64> {
    schedule(tid).map(|schedule| schedule.run_queue_delay_ns)
}

/// The time of threads, in seconds, without waits for a CPU.
struct ActiveSeconds {
    whole: f64,
    of_thread: BTreeMap<u32, f64>,
}

impl ActiveSeconds {
    /// Calls per second of all threads, from how often each called.
    fn rate(&self, calls: impl IntoIterator<Item = (u32, u64)>) -> f64 {
        let seconds = |tid: u32| self.of_thread.get(&tid).copied().unwrap_or(self.whole);
        calls.into_iter().map(|(tid, count)| count as f64 / seconds(tid)).sum()
    }
}

/// Where a thread's process has the first instruction of a site.
fn address_of(site: &CallSite, mappings: &[Mapping]) -> Option<u64> {
    let mut of_file = mappings.iter().filter(|mapping| mapping.backing.path() == Some(&site.module));
    of_file.find_map(|mapping| mapping.address_of(site.offset))
}

/// How often threads have had the CPU since a moment.
struct SwitchesSince(BTreeMap<u32, u64>);

impl SwitchesSince {
    fn now(threads: BTreeSet<u32>) -> Self {
        Self(threads.into_iter().filter_map(|tid| Some((tid, timeslices(tid)?))).collect())
    }

    /// The threads that have had it at least as often.
    fn threads_with(&self, least: u64) -> BTreeSet<u32> {
        let has = |tid: u32, before: u64| timeslices(tid).is_some_and(|now| now.saturating_sub(before) >= least);
        self.0.iter().filter(|(tid, before)| has(**tid, **before)).map(|(tid, _)| *tid).collect()
    }
}

/// How often this thread has had the CPU.
fn timeslices(tid: u32) -> Option<u64> {
    schedule(tid).map(|schedule| schedule.timeslices)
}

/// `/proc` knows each thread by its own id, too.
fn schedule(tid: u32) -> Option<SchedStat> {
    proc::schedstat(tid, tid).ok()
}

struct Count {
    rings: CallRings,
    probes: Vec<Probe>,
    /// By site.
    calls: Vec<Vec<CountedCall>>,
    too_often: BTreeMap<usize, (f64, Range<u64>)>,
    /// When the probes of a site were removed, because it had been counted enough.
    ended_ns: BTreeMap<usize, u64>,
    lost: u64,
}

impl Count {
    fn read(&mut self) {
        let sites: BTreeMap<u64, usize> = self.probes.iter().map(|probe| (probe.id, probe.site)).collect();
        let calls = &mut self.calls;
        self.lost += self.rings.read(|id, call| {
            if let Some(&site) = sites.get(&id) {
                calls[site].push(call);
            }
        });
    }

    /// Removes the probes of functions that are called too often, until none is left. Gives the time from which all calls of
    /// the others are counted.
    fn settle(&mut self, most_per_second: f64) -> u64 {
        loop {
            self.calls.iter_mut().for_each(Vec::clear);
            self.rings.read(|_, _| ());
            let active = ActiveTime::since_now(self.probes.iter().map(|probe| probe.tid));
            let begin = Instant::now();
            let since_ns = clock::now_ns();
            while begin.elapsed() < LEAST_LOOK {
                std::thread::sleep(LOOK_EVERY);
                self.read();
            }
            let seconds = active.seconds();
            let rate = |calls: &Vec<CountedCall>| seconds.rate(calls.iter().map(|call| (call.tid, 1)));
            let often: BTreeMap<usize, f64> =
                self.calls.iter().map(rate).enumerate().filter(|(_, rate)| *rate > most_per_second).collect();
            if often.is_empty() {
                self.lost = 0;
                self.calls.iter_mut().for_each(|calls| calls.retain(|call| call.time_ns >= since_ns));
                return since_ns;
            }
            self.probes.retain(|probe| !often.contains_key(&probe.site));
            self.leave_threads_without_probes();
            let window = since_ns..clock::now_ns();
            self.too_often.extend(often.into_iter().map(|(site, rate)| (site, (rate, window.clone()))));
        }
    }

    /// Ends the count of each site that has been counted enough by one of its threads and the number of its calls.
    fn remove(&mut self, is_enough: impl Fn(u32, usize) -> bool) {
        let ended = self.probes.iter().filter(|probe| is_enough(probe.tid, self.calls[probe.site].len()));
        let ended: BTreeSet<usize> = ended.map(|probe| probe.site).collect();
        if ended.is_empty() {
            return;
        }
        let now_ns = clock::now_ns();
        self.ended_ns.extend(ended.iter().map(|site| (*site, now_ns)));
        self.probes.retain(|probe| !ended.contains(&probe.site));
        self.leave_threads_without_probes();
    }

    /// Closes all events of threads that have no probe any more.
    fn leave_threads_without_probes(&mut self) {
        let probed: BTreeSet<u32> = self.probes.iter().map(|probe| probe.tid).collect();
        self.rings.retain(|tid| probed.contains(&tid));
    }

    fn result(self, window: Range<u64>, refused: &BTreeMap<usize, io::Error>) -> CallCounts {
        let mut observed: BTreeSet<usize> = self.probes.iter().map(|probe| probe.site).collect();
        observed.extend(self.ended_ns.keys());
        let site = |(index, mut calls): (usize, Vec<CountedCall>)| {
            match (self.too_often.get(&index), refused.get(&index)) {
                (Some((per_second, window)), _) => {
                    SiteCalls::TooOften { per_second: *per_second, window: window.clone() }
                }
                (None, Some(error)) if !observed.contains(&index) => SiteCalls::Refused(error.to_string()),
                _ => {
                    let window = window.start..self.ended_ns.get(&index).copied().unwrap_or(window.end);
                    // Some may be read after their probe was removed.
                    calls.retain(|call| call.time_ns < window.end);
                    SiteCalls::Counted { calls, window }
                }
            }
        };
        CallCounts { sites: self.calls.into_iter().enumerate().map(site).collect(), lost: self.lost }
    }
}

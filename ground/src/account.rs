//! Exact counts and timings of a run, taken by the program itself: the ground truth for profilers.
//!
//! - [`count`] counts events such as queries, decodes and datagrams. It is always on and costs one addition.
//! - [`scope`] times calls by their thread's CPU clock after [`time_scopes`], in runs that are not profiled. Reading the
//!   clock twice costs about half a microsecond, so only calls of 50 us or more have a scope.
//! - [`CountingAllocator`] counts allocations after [`count_allocations`], and [`allocations_for`] those of a call.
//!
//! An [`Account`] is the difference of all of these between two moments.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use crate::switches::name_of;

/// A counted event. Its name in JSON is the variant in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Counter {
    /// Steps simulated.
    Steps,
    /// JPEG textures decoded.
    Decodes,
    /// SQL statements run.
    Queries,
    /// Scripts compiled.
    Compilations,
    /// Datagrams sent.
    DatagramsSent,
    /// Datagrams received.
    DatagramsReceived,
    /// Files opened.
    FileOpens,
    /// `write` calls on files.
    FileWrites,
    /// `read` calls on files.
    FileReads,
    /// Kernel tables that changed while they were read, and were read again.
    TablesReadAgain,
    /// Directory entries examined.
    DirectoryEntries,
    /// Look-ups by name.
    LookUps,
    /// Messages published.
    MessagesPublished,
    /// Messages taken by callbacks.
    MessagesTaken,
    /// Ends of an executor's wait.
    Wakes,
    /// Wait sets built.
    WaitSetsBuilt,
    /// Keys stored in maps of counts. Of each look-up by a new string, the string is stored or released at once.
    KeysStored,
    /// Allocations while drops are counted.
    AllocationsForDrops,
    /// Allocations while poses are written.
    AllocationsForPoses,
    /// Allocations while frames are prepared.
    AllocationsForFrames,
}

const COUNTERS: usize = Counter::AllocationsForFrames as usize + 1;

static COUNTS: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];

/// Adds one.
pub fn count(counter: Counter) {
    count_many(counter, 1);
}

/// Adds a number.
pub fn count_many(counter: Counter, number: u64) {
    COUNTS[counter as usize].fetch_add(number, Ordering::Relaxed);
}

pub(crate) fn step_ended() {
    count(Counter::Steps);
}

static TIMES_SCOPES: AtomicBool = AtomicBool::new(false);
static SCOPES: Mutex<BTreeMap<&'static str, Timed>> = Mutex::new(BTreeMap::new());

/// Calls of a function and their CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Timed {
    /// Number of calls.
    pub calls: u64,
    /// CPU time of the calling threads within them, ns.
    pub cpu_ns: u64,
}

/// Makes [`scope`] measure from now on.
pub fn time_scopes() {
    TIMES_SCOPES.store(true, Ordering::Relaxed);
}

/// Times the enclosing call until it is dropped. `function` is the full name, as profiles show it.
#[must_use]
pub fn scope(function: &'static str) -> Scope {
    let start = TIMES_SCOPES.load(Ordering::Relaxed).then(|| cpu_time(libc::CLOCK_THREAD_CPUTIME_ID));
    Scope { function, start }
}

/// The same without [`time_scopes`]: for calls of a millisecond or more, where the cost is negligible.
#[must_use]
pub fn scope_of_long_call(function: &'static str) -> Scope {
    Scope { function, start: Some(cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)) }
}

/// The timed calls of a function so far.
pub fn timed(function: &str) -> Timed {
    SCOPES.lock().expect("nothing panics while it is held").get(function).copied().unwrap_or_default()
}

/// A call that is timed until it is dropped.
pub struct Scope {
    function: &'static str,
    start: Option<Duration>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        let Some(start) = self.start else { return };
        let took = cpu_time(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(start);
        let mut scopes = SCOPES.lock().expect("nothing panics while it is held");
        let timed = scopes.entry(self.function).or_default();
        timed.calls += 1;
        timed.cpu_ns += took.as_nanos() as u64;
    }
}

static COUNTS_ALLOCATIONS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Makes [`CountingAllocator`] count from now on.
pub fn count_allocations() {
    COUNTS_ALLOCATIONS.store(true, Ordering::Relaxed);
}

/// The system's allocator, which can count. A reallocation counts as an allocation of its new size.
pub struct CountingAllocator;

thread_local! {
    /// Allocations of this thread.
    static OWN_ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of this thread until it is dropped, after [`count_allocations`].
#[must_use]
pub fn allocations_for(counter: Counter) -> Allocations {
    Allocations { counter, before: OWN_ALLOCATIONS.get() }
}

/// Allocations that are counted until it is dropped.
pub struct Allocations {
    counter: Counter,
    before: u64,
}

impl Drop for Allocations {
    fn drop(&mut self) {
        count_many(self.counter, OWN_ALLOCATIONS.get() - self.before);
    }
}

fn allocated(size: usize) {
    if COUNTS_ALLOCATIONS.load(Ordering::Relaxed) {
        OWN_ALLOCATIONS.set(OWN_ALLOCATIONS.get() + 1);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATED_BYTES.fetch_add(size as u64, Ordering::Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        allocated(new_size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A moment, with all counts up to it.
#[derive(Debug, Clone)]
pub struct Moment {
    at: Instant,
    cpu: Duration,
    switches: ContextSwitches,
    counts: BTreeMap<String, u64>,
    scopes: BTreeMap<&'static str, Timed>,
}

#[derive(Debug, Clone, Copy)]
struct ContextSwitches {
    voluntary: u64,
    involuntary: u64,
}

/// The counts and times between two moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// Wall time, s.
    pub wall_s: f64,
    /// CPU time of all threads, s.
    pub cpu_s: f64,
    /// Voluntary context switches of all threads: they waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches of all threads: they were preempted.
    pub involuntary_switches: u64,
    /// Counts by name, without zeros.
    pub counts: BTreeMap<String, u64>,
    /// Timed functions by their full name. Empty if nothing was timed.
    pub scopes: BTreeMap<&'static str, Timed>,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let mut counts: BTreeMap<_, _> = Counter::value_variants()
            .iter()
            .map(|counter| (name_of(counter), COUNTS[*counter as usize].load(Ordering::Relaxed)))
            .collect();
        counts.insert("allocations".to_owned(), ALLOCATIONS.load(Ordering::Relaxed));
        counts.insert("allocated_bytes".to_owned(), ALLOCATED_BYTES.load(Ordering::Relaxed));
        let scopes = SCOPES.lock().expect("nothing panics while it is held").clone();
        let cpu = cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID);
        Self { at: Instant::now(), cpu, switches: context_switches(), counts, scopes }
    }

    /// The account since an earlier moment.
    pub fn since(&self, earlier: &Moment) -> Account {
        let before = |name: &str| earlier.counts.get(name).copied().unwrap_or(0);
        let counts = self.counts.iter().map(|(name, count)| (name.clone(), count - before(name)));
        let scopes = self.scopes.iter().map(|(name, timed)| {
            let before = earlier.scopes.get(name).copied().unwrap_or_default();
            (*name, Timed { calls: timed.calls - before.calls, cpu_ns: timed.cpu_ns - before.cpu_ns })
        });
        Account {
            wall_s: self.at.duration_since(earlier.at).as_secs_f64(),
            cpu_s: self.cpu.saturating_sub(earlier.cpu).as_secs_f64(),
            voluntary_switches: self.switches.voluntary - earlier.switches.voluntary,
            involuntary_switches: self.switches.involuntary - earlier.switches.involuntary,
            counts: counts.filter(|(_, count)| *count > 0).collect(),
            scopes: scopes.filter(|(_, timed)| timed.calls > 0).collect(),
        }
    }
}

/// A CPU clock of this process or thread.
fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(done, 0, "Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn context_switches() -> ContextSwitches {
    let usage = usage();
    ContextSwitches { voluntary: usage.ru_nvcsw as u64, involuntary: usage.ru_nivcsw as u64 }
}

/// The resources that this process used, from the kernel.
pub(crate) fn usage() -> libc::rusage {
    // SAFETY: all-zero bytes are a valid rusage, which is nothing but numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a rusage that lives through the call.
    let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    assert_eq!(done, 0, "a process can ask about itself");
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_own_place_and_name() {
        assert_eq!(Counter::value_variants().len(), COUNTERS);
        for (index, counter) in Counter::value_variants().iter().enumerate() {
            assert_eq!(*counter as usize, index);
        }
    }

    #[test]
    fn an_account_holds_only_counts_and_times_between_its_moments() {
        time_scopes();
        count_many(Counter::Queries, 3);
        let before = Moment::now();
        count_many(Counter::Queries, 4);
        let mut sum = 0_u64;
        {
            let _timed = scope("account::tests::busy");
            (0..3_000_000_u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
        }
        let account = Moment::now().since(&before);
        assert_eq!(account.counts["queries"], 4);
        let busy = account.scopes["account::tests::busy"];
        assert_eq!(busy.calls, 1);
        let timed_s = busy.cpu_ns as f64 * 1e-9;
        assert!(timed_s > 0.0 && timed_s <= account.cpu_s, "{timed_s} of {}", account.cpu_s);
    }
}

//! The speed of the machine while it records: short fixed loops on each CPU in use.
//!
//! The same work takes longer while a neighbour uses the other hardware thread of a core, the shared cache or the memory, or
//! while the clock rate is low. CPU time counts all of that as the program's. A loop of fixed work, timed at the same moments
//! on the same CPU, measures it, so that a comparison can correct for it.
//!
//! # Loops
//! | loop | work |
//! |---|---|
//! | `integer` | independent chains of multiplications in registers, which compete for the core's units |
//! | `cache` | four chains of dependent loads from a table of 16 KiB, which fits the first-level cache |
//! | `memory` | dependent loads of lines that were flushed from every cache, one per page |
//!
//! Flushing makes the memory loop miss a last-level cache of any size, with a buffer of half a megabyte. Machines other than
//! x86-64 and aarch64 have no such instruction for programs, and no memory loop.
//!
//! # Timing
//! Each loop runs in [`PARTS`] equal parts. The reading is the lower median of their times: an interrupt, or a hypervisor that
//! takes the CPU away, lengthens one part. A probe during which the kernel preempted the thread is discarded.
//!
//! Each CPU has a thread of its own, pinned to it, with the recorder's priority: the program cannot delay it, and it delays
//! the program by one probe (some 60 us). Probes come at random intervals, so that they cannot be in step with a program's
//! loop, and two CPUs are not probed together as a rule: hardware threads of one core would slow each other down. Intervals are
//! lengthened where probes would take more than [`MOST_SHARE`] of the CPU.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stepscope_model::MACHINE_SPEED;

use super::privilege::raise_priority;
use crate::clock;
use crate::launch::restrict_to_cpus;

/// Shortest and longest interval between probes of a CPU, unless probes are expensive.
const INTERVAL_US: std::ops::Range<u64> = 13_000..20_000;

/// Largest share of a CPU that its probes take.
pub(super) const MOST_SHARE: f64 = 0.0045;

/// Parts of a loop that are timed apart.
const PARTS: usize = 4;

/// Loops per second, in the order of [`MACHINE_SPEED`].
pub(super) type Speeds = [Option<i64>; MACHINE_SPEED.len()];

/// The speed of a CPU at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub cpu: u32,
    pub time_ns: u64,
    /// Loops per second of each of [`MACHINE_SPEED`]; `None` without such a loop.
    pub speeds: Speeds,
}

/// The probes of all CPUs. Their threads end when it is dropped.
#[derive(Debug)]
pub(super) struct Probes {
    threads: BTreeMap<u32, Probe>,
    sender: Sender<Reading>,
    readings: Receiver<Reading>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// CPU time of all probes.
    cpu_ns: AtomicU64,
    /// Why a CPU cannot be probed.
    failures: Mutex<BTreeMap<u32, String>>,
}

/// The thread of one CPU.
#[derive(Debug)]
struct Probe {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Orders {
    wanted: AtomicBool,
    ended: AtomicBool,
}

impl Default for Probes {
    fn default() -> Self {
        let (sender, readings) = mpsc::channel();
        Self { threads: BTreeMap::new(), sender, readings, shared: Arc::default() }
    }
}

impl Probes {
    /// Probes these CPUs, and no others, from now on.
    pub fn want(&mut self, cpus: impl Iterator<Item = u32>) {
        let mut rest: BTreeMap<u32, &mut Probe> = self.threads.iter_mut().map(|(cpu, probe)| (*cpu, probe)).collect();
        let mut new = Vec::new();
        for cpu in cpus {
            match rest.remove(&cpu) {
                Some(probe) => probe.set_wanted(true),
                None => new.push(cpu),
            }
        }
        rest.into_values().for_each(|probe| probe.set_wanted(false));
        for cpu in new {
            self.threads.insert(cpu, Probe::start(cpu, self.sender.clone(), self.shared.clone()));
        }
    }

    /// The readings since the last call, in the order of their arrival.
    pub fn readings(&self) -> impl Iterator<Item = Reading> {
        self.readings.try_iter()
    }

    /// CPU time of all probes since the last call.
    pub fn take_cpu_ns(&self) -> u64 {
        self.shared.cpu_ns.swap(0, Ordering::Relaxed)
    }

    /// CPUs that could not be probed, with the reason.
    pub fn failures(&self) -> BTreeMap<u32, String> {
        self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Probe {
    fn start(cpu: u32, readings: Sender<Reading>, shared: Arc<Shared>) -> Self {
        let orders = Arc::new(Orders { wanted: AtomicBool::new(true), ended: AtomicBool::new(false) });
        let own = orders.clone();
        let thread = thread::Builder::new().name(format!("speed-{cpu}")).spawn(move || {
            if let Err(why) = run(cpu, &own, &readings, &shared) {
                shared.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(cpu, why);
            }
        });
        Self { orders, thread: thread.ok() }
    }

    fn set_wanted(&self, wanted: bool) {
        if self.orders.wanted.swap(wanted, Ordering::Relaxed) != wanted && wanted {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.orders.ended.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Probes one CPU until the end.
fn run(cpu: u32, orders: &Orders, readings: &Sender<Reading>, shared: &Shared) -> Result<(), String> {
    restrict_to_cpus(0, &[cpu as usize]).map_err(|error| error.to_string())?;
    raise_priority();
    let mut loops = Loops::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64 ^ (u64::from(cpu) << 32) ^ clock::now_ns();
    let start = Instant::now();
    let mut counted_ns = 0;
    loop {
        if orders.ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !orders.wanted.load(Ordering::Relaxed) {
            thread::park();
            continue;
        }
        if let Some(speeds) = undisturbed(|| loops.probe())
            && readings.send(Reading { cpu, time_ns: clock::now_ns(), speeds }).is_err()
        {
            return Ok(());
        }
        let cpu_ns = clock::thread_cpu_ns();
        shared.cpu_ns.fetch_add(cpu_ns - counted_ns, Ordering::Relaxed);
        counted_ns = cpu_ns;
        let earliest = Duration::from_secs_f64(cpu_ns as f64 / 1e9 / MOST_SHARE).saturating_sub(start.elapsed());
        thread::park_timeout(random_interval(&mut seed).max(earliest));
    }
}

fn random_interval(seed: &mut u64) -> Duration {
    // xorshift64 (Marsaglia, 2003).
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    Duration::from_micros(INTERVAL_US.start + *seed % (INTERVAL_US.end - INTERVAL_US.start))
}

/// The result, unless the kernel preempted this thread meanwhile.
fn undisturbed<T>(probe: impl FnOnce() -> T) -> Option<T> {
    let before = preemptions();
    let result = probe();
    (preemptions() == before).then_some(result)
}

fn preemptions() -> i64 {
    // SAFETY: zeroed memory is a valid `rusage`, and it outlives the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw
    }
}

/// Rounds of the integer loop in one part.
const INTEGER_ROUNDS: u64 = 2_200;
/// Rounds of the cache loop in one part.
const CACHE_ROUNDS: u64 = 1_500;
/// Loads of the memory loop in one part.
const MEMORY_LOADS: usize = 24;
/// Words of the cache loop's table.
const TABLE_WORDS: usize = 2_048;
/// Distance of lines in the memory loop: another page, and another place in it.
const LINE_DISTANCE: usize = 4_096 + 64;

/// An odd constant with evenly spread bits (Steele and Vigna, 2022).
const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;

/// What the loops work on.
struct Loops {
    table: Box<[u64; TABLE_WORDS]>,
    lines: Vec<u8>,
}

impl Loops {
    fn new() -> Self {
        let mut value = 1_u64;
        let table = std::array::from_fn(|_| {
            value = value.wrapping_mul(MULTIPLIER).wrapping_add(1);
            value
        });
        let lines = if flush::AVAILABLE { chain(PARTS * MEMORY_LOADS) } else { Vec::new() };
        let loops = Self { table: Box::new(table), lines };
        loops.flush();
        loops
    }

    fn flush(&self) {
        self.lines.iter().step_by(LINE_DISTANCE).for_each(flush::line);
    }

    /// Runs every loop once.
    fn probe(&mut self) -> Speeds {
        // A CPU that was idle takes some microseconds to reach its speed.
        let mut state = integers([1_u64, 2, 3, 4, 5, 6]);
        let integer = per_second(|| state = integers(state));
        // The program may have replaced the table in the cache.
        let first = black_box(self.table.iter().fold(0, |sum: u64, word| sum ^ word));
        let mut words = [first, !first, first.rotate_left(32), !first.rotate_left(32)];
        let cache = per_second(|| words = loads(&self.table, words));
        black_box((state, words));
        [Some(integer), Some(cache), self.memory()]
    }

    fn memory(&self) -> Option<i64> {
        if self.lines.is_empty() {
            return None;
        }
        let mut at = 0;
        let speed = per_second(|| at = follow(&self.lines, at));
        self.flush();
        Some(speed)
    }
}

/// The speed of a loop of [`PARTS`] parts, in loops per second.
fn per_second(mut part: impl FnMut()) -> i64 {
    let mut times = [0_u64; PARTS];
    let mut start = clock::now_ns();
    for time in &mut times {
        part();
        let end = clock::now_ns();
        *time = end - start;
        start = end;
    }
    times.sort_unstable();
    let usual = times[(PARTS - 1) / 2].max(1);
    (1_000_000_000 / (usual * PARTS as u64)) as i64
}

#[inline(never)]
fn integers(mut state: [u64; 6]) -> [u64; 6] {
    for round in 0..INTEGER_ROUNDS {
        for lane in &mut state {
            *lane = lane.wrapping_mul(MULTIPLIER).rotate_left(23) ^ round;
        }
    }
    black_box(state)
}

#[inline(never)]
fn loads(table: &[u64; TABLE_WORDS], mut words: [u64; 4]) -> [u64; 4] {
    for _ in 0..CACHE_ROUNDS {
        for word in &mut words {
            *word = table[(*word >> 53) as usize].wrapping_add(*word << 7);
        }
    }
    black_box(words)
}

/// Lines that each hold the offset of another, in one cycle through all, in an order that no prefetcher follows.
fn chain(count: usize) -> Vec<u8> {
    let mut order: Vec<usize> = (1..count).collect();
    let mut value = 1_u64;
    for place in (1..order.len()).rev() {
        value = value.wrapping_mul(MULTIPLIER).wrapping_add(1);
        order.swap(place, (value >> 33) as usize % (place + 1));
    }
    let mut lines = vec![0_u8; count * LINE_DISTANCE];
    let mut at = 0;
    for next in order.into_iter().chain([0]) {
        let offset = (next * LINE_DISTANCE) as u64;
        lines[at * LINE_DISTANCE..][..8].copy_from_slice(&offset.to_ne_bytes());
        at = next;
    }
    lines
}

#[inline(never)]
fn follow(lines: &[u8], mut at: usize) -> usize {
    for _ in 0..MEMORY_LOADS {
        let bytes: [u8; 8] = lines[at..at + 8].try_into().expect("a slice of 8 bytes");
        at = u64::from_ne_bytes(bytes) as usize;
    }
    black_box(at)
}

/// Removes a line from every cache.
#[cfg(target_arch = "x86_64")]
mod flush {
    pub const AVAILABLE: bool = true;

    pub fn line(byte: &u8) {
        // SAFETY: the address is valid, and the instruction (of SSE2, which x86-64 has) changes no contents.
        unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(byte)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod flush {
    pub const AVAILABLE: bool = true;

    pub fn line(byte: &u8) {
        // SAFETY: the address is valid, and the instruction changes no contents. Linux allows it for programs.
        unsafe { std::arch::asm!("dc civac, {}", in(reg) std::ptr::from_ref(byte), options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod flush {
    pub const AVAILABLE: bool = false;

    pub fn line(_byte: &u8) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_visits_every_line_once_and_returns() {
        let lines = chain(PARTS * MEMORY_LOADS);
        let mut at = 0;
        let mut met = std::collections::BTreeSet::new();
        for _ in 0..PARTS {
            at = follow(&lines, at);
            met.insert(at);
        }
        assert_eq!((at, met.len()), (0, PARTS));
    }

    #[test]
    fn memory_is_slower_than_the_cache_and_every_loop_has_a_speed() {
        let mut loops = Loops::new();
        let best = |index: usize, speeds: &[[Option<i64>; 3]]| speeds.iter().filter_map(|one| one[index]).max();
        let speeds: Vec<_> = (0..50).map(|_| loops.probe()).collect();
        assert!(best(0, &speeds) > Some(0) && best(1, &speeds) > Some(0), "{speeds:?}");
        let Some(memory) = best(2, &speeds) else {
            println!("skipped: memory: this machine has no instruction that flushes a line");
            return;
        };
        // Loads per second.
        let cache = best(1, &speeds).unwrap() as u64 * CACHE_ROUNDS * 4;
        assert!(memory as u64 * (MEMORY_LOADS as u64) < cache / 4, "{memory} against {cache}");
    }

    #[test]
    fn probes_stop_where_they_are_not_wanted_and_stay_within_their_share() {
        let cpu = crate::launch::allowed_cpus().unwrap()[0] as u32;
        let mut probes = Probes::default();
        let start = Instant::now();
        probes.want([cpu].into_iter());
        let first = probes.readings.recv_timeout(Duration::from_secs(20)).expect("a reading");
        assert_eq!(first.cpu, cpu);
        assert!(first.speeds[0] > Some(0));
        probes.readings.recv_timeout(Duration::from_secs(20)).expect("another reading");
        probes.want(std::iter::empty());
        // Dropping waits for the threads.
        let shared = probes.shared.clone();
        drop(probes);
        // A probe is made before its interval.
        let allowed_ns = start.elapsed().as_nanos() as f64 * MOST_SHARE;
        let one_ns = 2_000_000.0;
        assert!((shared.cpu_ns.load(Ordering::Relaxed) as f64) < allowed_ns + one_ns);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_reported() {
        let mut probes = Probes::default();
        probes.want([1_000_000].into_iter());
        while probes.failures().is_empty() {
            thread::yield_now();
        }
        assert!(probes.failures().contains_key(&1_000_000));
        assert_eq!(probes.readings().count(), 0);
    }
}

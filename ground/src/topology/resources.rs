//! What the process takes: CPU time in the framework's measure and in the study's, and memory.

use std::time::{Duration, Instant};

use crate::account;

/// CPU time of the process so far.
#[derive(Debug, Clone, Copy)]
struct CpuTime {
    user: Duration,
    system: Duration,
}

impl CpuTime {
    fn now() -> (Self, u64) {
        let usage = account::usage();
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
        (Self { user: time(usage.ru_utime), system: time(usage.ru_stime) }, usage.ru_maxrss as u64)
    }
}

/// Resources that the process used up to a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// Time since the start.
    pub elapsed: Duration,
    /// CPU time (user and system) over elapsed time and number of CPUs, in percent, as the framework defines it.
    pub cpu_percent: f64,
    /// User CPU time over elapsed time, in percent, as the study defines it.
    pub user_percent: f64,
    /// CPU time of the process, user and system.
    pub cpu: Duration,
    /// Memory of the allocator outside of mappings, KiB. 0 where the C library does not count it, like the next two.
    pub arena_kb: u64,
    /// The part of it that is in use, KiB.
    pub in_use_kb: u64,
    /// Memory of the allocator in mappings, KiB.
    pub mmap_kb: u64,
    /// Resident memory now, KiB.
    pub rss_kb: u64,
    /// Peak resident memory, KiB. The framework calls this `rss`.
    pub peak_rss_kb: u64,
    /// Address space, KiB.
    pub vsz_kb: u64,
}

/// The moment from which resources are counted.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    at: Instant,
    cpu: CpuTime,
    cpus: usize,
}

impl Start {
    /// Now.
    pub fn now() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { at: Instant::now(), cpu: CpuTime::now().0, cpus }
    }

    /// The resources used since then.
    pub fn until_now(&self) -> Resources {
        let (cpu, peak_rss_kb) = CpuTime::now();
        let elapsed = self.at.elapsed();
        let (user, system) = (cpu.user.saturating_sub(self.cpu.user), cpu.system.saturating_sub(self.cpu.system));
        let percent = |part: Duration| 100.0 * part.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let [arena_kb, in_use_kb, mmap_kb] = allocator_kb();
        let [vsz_kb, rss_kb] = pages_kb();
        Resources {
            elapsed,
            cpu_percent: percent(user + system) / self.cpus as f64,
            user_percent: percent(user),
            cpu: user + system,
            arena_kb,
            in_use_kb,
            mmap_kb,
            rss_kb,
            peak_rss_kb,
            vsz_kb,
        }
    }
}

#[cfg(target_env = "gnu")]
fn allocator_kb() -> [u64; 3] {
    // SAFETY: it only reads the allocator's own counts, under its locks.
    let info = unsafe { libc::mallinfo() };
    // The counts are ints that wrap at 4 GiB.
    [info.arena, info.uordblks, info.hblkhd].map(|bytes| u64::from(bytes as u32) >> 10)
}

#[cfg(not(target_env = "gnu"))]
fn allocator_kb() -> [u64; 3] {
    [0; 3]
}

/// Address space and resident memory, the first two numbers of `/proc/self/statm`.
fn pages_kb() -> [u64; 2] {
    // SAFETY: it takes a number and returns one.
    let page_kb = (unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64) >> 10;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = text.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
    [(); 2].map(|()| pages.next().unwrap_or(0) * page_kb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_falls_when_memory_is_given_back_and_its_peak_does_not() {
        let start = Start::now();
        let before = start.until_now();
        let much = std::hint::black_box(vec![1_u8; 256 << 20]);
        let with = start.until_now();
        drop(much);
        let after = start.until_now();
        let quarter = (256 << 10) * 3 / 4;
        assert!(with.rss_kb > before.rss_kb + quarter, "{with:?}");
        assert!(after.rss_kb + quarter < with.rss_kb, "{after:?}");
        assert!(after.peak_rss_kb >= with.rss_kb - 4_096, "{after:?}");
        assert!(after.cpu_percent > 0.0 && after.cpu >= with.cpu);
    }
}

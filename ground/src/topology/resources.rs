//! What a run takes: CPU time in the framework's measure and in the study's, and memory.

use std::time::{Duration, Instant};

use crate::account;

/// Resources that the process used in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// Wall time.
    pub elapsed: Duration,
    /// CPU time (user and system) over elapsed time and number of CPUs, in percent, as the framework defines it.
    pub cpu_percent: f64,
    /// User CPU time over elapsed time, in percent, as the study defines it.
    pub user_percent: f64,
    /// CPU time of the process, user and system.
    pub cpu: Duration,
    /// Resident memory at the end, KiB.
    pub rss_kb: u64,
    /// Peak resident memory, KiB. The framework calls this `rss`.
    pub peak_rss_kb: u64,
}

/// The moment from which resources are counted.
pub struct Start {
    at: Instant,
    user: Duration,
    system: Duration,
}

impl Start {
    /// Now.
    pub fn now() -> Self {
        let (at, usage) = (Instant::now(), account::usage());
        Self { at, user: duration(usage.ru_utime), system: duration(usage.ru_stime) }
    }

    /// The resources used since then.
    pub fn until_now(&self) -> Resources {
        let (usage, elapsed) = (account::usage(), self.at.elapsed());
        let user = duration(usage.ru_utime).saturating_sub(self.user);
        let cpu = user + duration(usage.ru_stime).saturating_sub(self.system);
        let percent = |part: Duration| 100.0 * part.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Resources {
            elapsed,
            cpu_percent: percent(cpu) / cpus as f64,
            user_percent: percent(user),
            cpu,
            rss_kb: rss_kb(),
            peak_rss_kb: usage.ru_maxrss as u64,
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000)
}

/// Resident memory: the second number of `/proc/self/statm`, in pages.
fn rss_kb() -> u64 {
    // SAFETY: it takes a number and returns one.
    let page_kb = (unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64) >> 10;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * page_kb
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

//! Clocks of timers and stamps.

use std::sync::atomic::{AtomicU64, Ordering};

/// Time of the machine's monotonic clock, ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(done, 0, "Linux has this clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of a timer.
#[derive(Debug)]
pub enum Clock {
    /// The machine's monotonic clock.
    Steady,
    /// Simulated time, ns, which passes in [`advance`](Self::advance).
    Simulated(AtomicU64),
}

impl Clock {
    /// Its time, ns.
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Steady => now_ns(),
            Clock::Simulated(now_ns) => now_ns.load(Ordering::Relaxed),
        }
    }

    /// Advances simulated time. Does nothing to the machine's clock.
    pub fn advance(&self, by_ns: u64) {
        if let Clock::Simulated(now_ns) = self {
            now_ns.fetch_add(by_ns, Ordering::Relaxed);
        }
    }

    /// Whether time passes without [`advance`](Self::advance).
    pub fn passes_by_itself(&self) -> bool {
        matches!(self, Clock::Steady)
    }
}

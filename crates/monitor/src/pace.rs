//! How often figures are read.
//!
//! A figure that costs more is read less often: at its own interval, or more rarely, so that all figures of its kind together take no
//! more than a fixed share of one CPU. One process with many gigabytes, whose `smaps_rollup` takes 100 ms, therefore does not make
//! the monitor expensive, and one with 500 threads does not either.

use std::time::Duration;

/// The share of one CPU that all figures of one kind may take in the long run.
const SHARE: f64 = 0.000_5;

/// How often figures are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// CPU time, memory, faults, I/O, and the machine.
    pub usual: Duration,
    /// Descriptors, context switches, scheduling delay, swap, temperatures: at most this often.
    pub slow: Duration,
    /// Proportional memory, sockets, GPU clients: at most this often.
    pub rare: Duration,
}

impl Pace {
    /// The pace of a monitor that reads at this interval: 10 s and 60 s for more expensive figures.
    pub fn every(usual: Duration) -> Self {
        Self { usual, slow: usual.max(Duration::from_secs(10)), rare: usual.max(Duration::from_secs(60)) }
    }
}

/// When a figure is read next.
#[derive(Debug, Clone, Copy)]
pub struct ReadTimer {
    every_ns: u64,
    next_ns: u64,
    /// The longest interval so far.
    longest_ns: u64,
}

impl ReadTimer {
    /// A timer that is due at once.
    pub fn new(every: Duration) -> Self {
        Self { every_ns: every.as_nanos() as u64, next_ns: 0, longest_ns: 0 }
    }

    /// Whether it is time.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Since when it is due, or from when on.
    pub fn due_ns(&self) -> u64 {
        self.next_ns
    }

    /// It was read, at this cost. `among` figures of this kind share the CPU time.
    pub fn was_read(&mut self, now_ns: u64, cost_ns: u64, among: usize) {
        let affordable_ns = (cost_ns as f64 * among.max(1) as f64 / SHARE) as u64;
        let interval_ns = self.every_ns.max(affordable_ns);
        self.longest_ns = self.longest_ns.max(interval_ns);
        // A reading that comes a little early must not miss its time.
        self.next_ns = now_ns + interval_ns - interval_ns / 50;
    }

    /// The longest interval between two readings so far.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_cheap_figure_keeps_its_interval_and_a_dear_one_is_read_more_rarely() {
        let mut timer = ReadTimer::new(Duration::from_secs(10));
        assert!(timer.is_due(0));
        timer.was_read(S, 1_000, 100);
        assert!(!timer.is_due(10 * S) && timer.is_due(11 * S));
        // 100 processes at 0.4 ms each take 40 ms: 0.05 % of a CPU at one round in 80 s.
        timer.was_read(S, 400_000, 100);
        assert!(!timer.is_due(79 * S) && timer.is_due(81 * S));
        assert_eq!(timer.longest(), Duration::from_secs(80));
    }
}

//! Bounds the cost of context switches: of their stacks, and of waits that are recorded one by one.

use std::time::{Duration, Instant};

/// Bounds the cost of stacks at context switches: they are taken in one of several slices of time.
///
/// The period of an inherited event cannot be changed, but the event can be stopped in all threads.
pub(super) struct Thinning {
    pub max_hz: u64,
    /// One of this many slices has stacks.
    pub slices: u64,
    pub slice: u64,
    pub since: Instant,
    /// Stacks in the slice with stacks.
    pub stacks: u64,
}

/// Whether the next slice of time has stacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slice {
    /// As in the last slice.
    Same,
    WithStacks,
    Without,
}

impl Thinning {
    const SLICE: Duration = Duration::from_millis(50);

    pub fn next(&mut self) -> Slice {
        let elapsed = self.since.elapsed();
        if elapsed < Self::SLICE {
            return Slice::Same;
        }
        self.since = Instant::now();
        if self.slice == 0 {
            let stacks_hz = self.stacks as f64 / elapsed.as_secs_f64();
            self.slices = (stacks_hz / self.max_hz as f64).ceil().clamp(1.0, 1000.0) as u64;
        }
        self.stacks = 0;
        let had_stacks = self.slice == 0;
        self.slice = (self.slice + 1) % self.slices;
        match (had_stacks, self.slice == 0) {
            (true, false) => Slice::Without,
            (false, true) => Slice::WithStacks,
            _ => Slice::Same,
        }
    }
}

/// Bounds the records of context switches that programs of ours write: each thread may have as many a second.
///
/// A thread with few switches never reaches that. If all threads together have too many, the busiest get fewer.
pub(super) struct Budget {
    max_hz: u32,
    each_hz: u32,
    since: Instant,
    records: u64,
}

impl Budget {
    /// How long records are counted.
    const PERIOD: Duration = Duration::from_millis(250);
    /// More would be no limit: no thread switches as often.
    const LARGEST_HZ: u64 = 10_000_000;

    /// Of many threads, each may take a burst before its part is known, so each starts with a quarter.
    pub fn new(max_hz: u64) -> Self {
        let max_hz = max_hz.clamp(1, Self::LARGEST_HZ) as u32;
        Self { max_hz, each_hz: max_hz.div_ceil(4), since: Instant::now(), records: 0 }
    }

    /// What each thread may have.
    pub fn each_hz(&self) -> u64 {
        self.each_hz.into()
    }

    /// Counts records. Returns whether what each thread may have has changed.
    pub fn add(&mut self, records: u64) -> bool {
        self.records += records;
        let elapsed = self.since.elapsed();
        if elapsed < Self::PERIOD {
            return false;
        }
        let records_hz = self.records as f64 / elapsed.as_secs_f64();
        (self.since, self.records) = (Instant::now(), 0);
        self.adjust(records_hz)
    }

    fn adjust(&mut self, records_hz: f64) -> bool {
        let used = records_hz / f64::from(self.max_hz);
        let factor = match used {
            1.0.. => 1.0 / used,
            0.8..1.0 => 1.0,
            _ => 1.5,
        };
        // The budget of a thread is for a second, so large corrections come in steps.
        let next = (f64::from(self.each_hz) * factor.max(0.5)).ceil().clamp(1.0, f64::from(self.max_hz)) as u32;
        std::mem::replace(&mut self.each_hz, next) != next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_threads_share_what_is_allowed_and_get_it_back() {
        let mut budget = Budget::new(2_000);
        assert_eq!(budget.each_hz(), 500);
        assert!(!budget.adjust(1_900.0), "nobody takes too much");
        assert!(budget.adjust(2_500.0) && budget.each_hz() == 400);
        assert!(budget.adjust(200_000.0) && budget.each_hz() == 200);
        assert!(budget.adjust(100.0) && budget.each_hz() == 300);
        for _ in 0..20 {
            budget.adjust(100.0);
        }
        assert_eq!(budget.each_hz(), 2_000);
    }
}

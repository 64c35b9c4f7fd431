//! Bounds the cost of stacks at context switches.

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

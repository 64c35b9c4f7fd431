//! When records allocate: [bursts](crate::layout::Burst), at a bounded rate.

use core::sync::atomic::{AtomicU64, Ordering::*};

use crate::layout::{BURST_US, Burst, Record};
use crate::process::Process;

/// A burst is also over after a silence of this part of its longest time: the next step allocates then, perhaps.
const SILENCE_PART: u64 = 8;
/// Bursts after which their rate is looked at.
const LOOK_EVERY: u64 = 256;
/// Bursts in a second, at most about.
const RATE: u64 = 4_000;
/// From this number on, the rate falls with the square of their number: half a million in ten minutes, two millions in a day.
const MANY: u64 = 150_000;
/// The longest limit to the time of a burst.
const LONGEST_US: u64 = 1_000_000;

/// How long bursts are. With many of them, they get longer: none is lost.
pub struct Bursts {
    ticks_per_us: u64,
    /// The longest time of a burst.
    ticks: AtomicU64,
    /// When the rate was last looked at.
    looked: AtomicU64,
}

impl Bursts {
    pub fn init(&mut self, ticks_per_us: u64, now: u64) {
        self.ticks_per_us = ticks_per_us;
        self.ticks.store(BURST_US * ticks_per_us, Relaxed);
        self.looked.store(now, Relaxed);
    }

    fn look(&self, number: u64, now: u64) {
        let passed = now.saturating_sub(self.looked.swap(now, Relaxed));
        let times = number / MANY + 1;
        let wanted = (LOOK_EVERY * self.ticks_per_us * 1_000_000 / RATE).saturating_mul(times.saturating_mul(times));
        let ticks = self.ticks.load(Relaxed);
        let (shortest, longest) = (BURST_US * self.ticks_per_us, LONGEST_US * self.ticks_per_us);
        if passed < wanted {
            self.ticks.store((ticks * 2).min(longest), Relaxed);
        } else if passed / 4 > wanted {
            self.ticks.store((ticks / 2).max(shortest), Relaxed);
        }
    }
}

/// Says that a record is about to count an allocation: the one before may have been the last of its burst.
///
/// # Safety
/// The record is mapped.
#[inline]
pub unsafe fn allocates(process: &Process, id: u32, record: *mut Record, now: u64) {
    // SAFETY: the caller's.
    unsafe {
        let ticks = process.bursts.ticks.load(Relaxed);
        let is_over = now.wrapping_sub((*record).burst_first) > ticks;
        if is_over || now.wrapping_sub((*record).burst_last) > ticks / SILENCE_PART {
            end(process, id, record);
            (*record).burst_first = now;
        }
        (*record).burst_last = now;
    }
}

#[cold]
unsafe fn end(process: &Process, id: u32, record: *mut Record) {
    // SAFETY: the caller's.
    let Record { burst_first, burst_last, calls, bytes, .. } = unsafe { *record };
    if burst_first == 0 {
        return;
    }
    let burst = Burst { record: id, first_ticks: burst_first, last_ticks: burst_last, calls, bytes, ..Burst::default() };
    let number = process.table.add_burst(burst);
    if number % LOOK_EVERY == 0 {
        process.bursts.look(number, burst_last);
    }
}

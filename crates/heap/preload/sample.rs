//! Recording by samples: a Poisson process over the bytes that each thread allocates.
//!
//! A block of `s` bytes is sampled with probability `1 - exp(-s / mean)`, and stands for the inverse of that many blocks. The
//! weight is a whole number, rounded up or down at random so that sums have no bias.

use core::sync::atomic::{AtomicU8, Ordering::*};

use crate::link::Slot;
use crate::process::Process;
use crate::sys;

/// When a thread samples next. The countdown itself is in its [`Slot`], for the hooks: an allocation that is not sampled
/// needs no more than that.
pub struct Sampler {
    /// The countdown when it was last set.
    distance: u64,
    /// Allocations that the table has.
    written_calls: u64,
    random: u64,
}

/// What a thread allocated since its last sample.
pub struct Since {
    pub calls: u64,
    pub bytes: u64,
}

impl Sampler {
    pub fn start(&mut self, process: &Process, tid: u32, slot: &mut Slot) {
        self.random = sys::ticks() ^ u64::from(tid).rotate_left(32) | 1;
        self.written_calls = slot.calls;
        self.distance = if process.sample_bytes > 0 { self.next_distance(process.sample_bytes) } else { 0 };
        slot.left = self.distance;
    }

    /// Counts an allocation. `true` if it is sampled.
    #[inline]
    pub fn is_due(slot: &mut Slot, size: u64) -> bool {
        slot.calls += 1;
        if slot.left > size {
            slot.left -= size;
            return false;
        }
        true
    }

    /// What was allocated since the last sample, with this block. The next sample is drawn.
    #[cold]
    pub fn since(&mut self, slot: &mut Slot, size: u64, mean: u64) -> Since {
        let bytes = self.distance.wrapping_sub(slot.left).wrapping_add(size);
        let calls = slot.calls.wrapping_sub(self.written_calls);
        self.written_calls = slot.calls;
        self.distance = self.next_distance(mean);
        slot.left = self.distance;
        Since { calls, bytes }
    }

    /// What was allocated since the last sample, at the end of the program.
    pub fn tail(&mut self, slot: &Slot) -> Since {
        let since = Since {
            calls: slot.calls.wrapping_sub(self.written_calls),
            bytes: self.distance.wrapping_sub(slot.left),
        };
        (self.written_calls, self.distance) = (slot.calls, slot.left);
        since
    }

    /// How many blocks a sampled one stands for.
    pub fn weight(&mut self, size: u64, mean: u64) -> u64 {
        const MOST: f64 = ((1 << 20) - 1) as f64;
        let chance = 1.0 - exp(-(size.max(1) as f64) / mean as f64);
        let weight = 1.0 / chance;
        let rounded = (weight + self.uniform()).min(MOST) as u64;
        rounded.max(1)
    }

    /// Exponentially distributed.
    fn next_distance(&mut self, mean: u64) -> u64 {
        (-ln(self.uniform()) * mean as f64) as u64 + 1
    }

    /// Above 0, below 1: xorshift64*.
    fn uniform(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let bits = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// The natural logarithm of a positive normal number.
fn ln(x: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let m = f64::from_bits(x.to_bits() & FRACTION | 1023 << 52);
    // ln m = 2 artanh((m - 1) / (m + 1)), by its series.
    let t = (m - 1.0) / (m + 1.0);
    let square = t * t;
    let (mut sum, mut power, mut n) = (0.0, t, 1.0);
    while n < 30.0 {
        sum += power / n;
        power *= square;
        n += 2.0;
    }
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * sum
}

/// `exp(x)` for `x <= 0`.
fn exp(x: f64) -> f64 {
    if x < -40.0 {
        return 0.0;
    }
    // (exp(x / 2^k))^(2^k), so that the series is short.
    let (mut small, mut doublings) = (x, 0);
    while small < -0.5 {
        small /= 2.0;
        doublings += 1;
    }
    let (mut sum, mut term, mut n) = (1.0, 1.0, 1.0);
    while n < 16.0 {
        term *= small / n;
        sum += term;
        n += 1.0;
    }
    for _ in 0..doublings {
        sum *= sum;
    }
    sum
}

/// Which addresses may be sampled blocks: most calls of `free` need no more than this.
///
/// A slot is for 16 bytes, so that neighbouring blocks have neighbouring slots: releases touch few lines of the cache.
#[repr(align(64))]
pub struct Filter([AtomicU8; Filter::SLOTS]);

pub static FILTER: Filter = Filter([const { AtomicU8::new(0) }; Filter::SLOTS]);

impl Filter {
    /// `free` takes 16 bits of an address, above the lowest four.
    const SLOTS: usize = 1 << 16;
    const SHIFT: u32 = 4;

    #[inline]
    fn slot(&self, address: u64) -> &AtomicU8 {
        &self.0[(address >> Self::SHIFT) as usize % Self::SLOTS]
    }

    #[inline]
    pub fn may_have(&self, address: u64) -> bool {
        self.slot(address).load(Relaxed) != 0
    }

    pub fn add(&self, address: u64) {
        // A full counter stays full.
        let _ = self.slot(address).fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
    }

    pub fn remove(&self, address: u64) {
        let less = |count: u8| (count != u8::MAX).then(|| count.saturating_sub(1));
        let _ = self.slot(address).fetch_update(Relaxed, Relaxed, less);
    }

    /// Has these addresses from now on.
    pub fn add_all(&self, addresses: core::ops::Range<u64>) {
        for address in addresses.step_by(1 << Self::SHIFT) {
            self.slot(address).store(u8::MAX, Relaxed);
        }
    }
}

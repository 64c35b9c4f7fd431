//! The clock of marks: the CPU's time stamp counter if it has a constant rate, else `CLOCK_MONOTONIC`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The header's value for nanoseconds of `CLOCK_MONOTONIC`.
const MONOTONIC: u32 = 0;
/// The header's value for the CPU's counter: `rdtsc`, or `cntvct_el0`.
const COUNTER: u32 = if cfg!(target_arch = "aarch64") { 2 } else { 1 };

static CLOCK: AtomicU32 = AtomicU32::new(MONOTONIC);

/// Chooses the clock once, before the first mark. Returns the header's value.
pub fn choose() -> u32 {
    let clock = if has_invariant_counter() { COUNTER } else { MONOTONIC };
    CLOCK.store(clock, Ordering::Relaxed);
    clock
}

#[cfg(target_arch = "x86_64")]
fn has_invariant_counter() -> bool {
    use core::arch::x86_64::__cpuid;
    // Intel SDM 18.17.1: leaf 0x80000007, EDX bit 8.
    #[allow(unused_unsafe)] // Safe in newer compilers.
    // SAFETY: every CPU of this architecture has the instruction.
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has_invariant_counter() -> bool {
    cfg!(target_arch = "aarch64")
}

/// The time in ticks, never 0.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if CLOCK.load(Ordering::Relaxed) == COUNTER {
        // SAFETY: reads a register that every CPU of this architecture has.
        return unsafe { core::arch::x86_64::_rdtsc() } | 1;
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a register that the kernel makes readable for all.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        return ticks | 1;
    }
    #[allow(unreachable_code)]
    {
        monotonic_ns() | 1
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

//! A lock that is held for some instructions, and allocates nothing.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::sys;

#[repr(transparent)]
pub struct Lock(AtomicU32);

pub struct Held<'a>(&'a Lock);

impl Lock {
    #[allow(dead_code)]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    pub fn hold(&self) -> Held<'_> {
        if self.0.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        const SPINS: u32 = 100;
        let mut spins = 0;
        while self.0.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            spins += 1;
            // The holder may wait for this CPU.
            if spins % SPINS == 0 { sys::yield_now() } else { spin_loop() }
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(0, Release);
    }
}

//! Marks that are written to shared memory.

mod clock;
mod layout;
mod names;
mod process;
mod segment;
mod system;
mod thread;
mod write;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use write::Kind;

/// Unknown simulated time.
const UNTIMED: i64 = i64::MIN;

/// A call site of a mark, with its name.
#[doc(hidden)]
pub struct Site {
    name: &'static str,
    /// The name's number plus one; 0 if it has none yet.
    known: AtomicU64,
}

impl Site {
    /// A call site.
    pub const fn new(name: &'static str) -> Self {
        Self { name, known: AtomicU64::new(0) }
    }

    /// The name's number. `None` while not recording.
    #[inline]
    fn name(&self) -> Option<u32> {
        if !process::is_recording() {
            return None;
        }
        match self.known.load(Ordering::Relaxed) {
            0 => self.learn(),
            known => Some((known - 1) as u32),
        }
    }

    #[cold]
    fn learn(&self) -> Option<u32> {
        let number = process::intern(self.name)?;
        self.known.store(u64::from(number) + 1, Ordering::Relaxed);
        Some(number)
    }
}

/// An open scope, which ends when this is dropped.
#[must_use = "a scope ends when this is dropped"]
pub struct Scope {
    /// 0 if not recording at its start.
    start: u64,
    name: u32,
    /// A scope ends on the thread on which it started.
    thread: PhantomData<*const ()>,
}

impl Scope {
    #[inline]
    fn start(name: Option<u32>) -> Self {
        match name {
            Some(name) => Self { start: clock::now(), name, thread: PhantomData },
            None => Self { start: 0, name: 0, thread: PhantomData },
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if self.start != 0 {
            write::write(self.start, clock::now(), Kind::Scope, self.name);
        }
    }
}

#[doc(hidden)]
#[inline]
pub fn scope_at(site: &Site) -> Scope {
    Scope::start(site.name())
}

/// Starts a scope whose name is known only at run time. The name is looked up on each call, under a lock; with a
/// constant name, [`scope!`](crate::scope) and [`begin!`](crate::begin) are many times faster.
#[inline]
pub fn scope_named(name: &str) -> Scope {
    Scope::start(process::is_recording().then(|| process::intern(name)).flatten())
}

#[doc(hidden)]
#[inline]
pub fn step(sim_time_ns: Option<i64>) {
    if process::is_recording() && process::is_open() {
        write::write(sim_time_ns.unwrap_or(UNTIMED) as u64, clock::now(), Kind::Step, 0);
    }
}

/// Simulated time in whole nanoseconds; unknown beyond 292 years and for NaN.
#[doc(hidden)]
#[inline]
pub fn sim_time_ns(sim_time_s: f64) -> Option<i64> {
    (sim_time_s.abs() < 9.2e9).then(|| (sim_time_s * 1e9).round() as i64)
}

#[doc(hidden)]
#[inline]
pub fn counter(site: &Site, value: i64) {
    if let Some(name) = site.name() {
        write::write(value as u64, clock::now(), Kind::Counter, name);
    }
}

#[doc(hidden)]
#[inline]
pub fn frame_mark(site: &Site) {
    if let Some(name) = site.name() {
        write::write(0, clock::now(), Kind::Frame, name);
    }
}

#[doc(hidden)]
#[inline]
pub fn flow_begin(site: &Site, id: u64) {
    if let Some(topic) = site.name() {
        write::write(id, clock::now(), Kind::FlowBegin, topic);
    }
}

#[doc(hidden)]
#[inline]
pub fn flow_step(site: &Site, id: u64) {
    if let Some(topic) = site.name() {
        write::write(id, clock::now(), Kind::FlowStep, topic);
    }
}

#[doc(hidden)]
#[inline]
pub fn flow_end(site: &Site, id: u64) {
    if let Some(topic) = site.name() {
        write::write(id, clock::now(), Kind::FlowEnd, topic);
    }
}

//! Marks for [Stepscope](https://github.com/stepscope/stepscope): steps, scopes and counters from the program.
//!
//! ```
//! # let (mut time_s, contacts, bodies) = (0.0, 4, [1, 2]);
//! for _ in 0..3 {
//!     stepscope_marks::step!(time_s); // ends a step, starts the next; simulated time in seconds
//!     stepscope_marks::scope!("physics"); // until the end of the block
//!     for body in bodies {
//!         stepscope_marks::scope!("body");
//! #       let _ = body;
//!     }
//!     stepscope_marks::counter!("contacts", contacts); // an integer, with its unit in the name
//!     time_s += 0.001;
//! }
//! stepscope_marks::frame_mark!("render"); // once per iteration of another periodic loop
//! let loading = stepscope_marks::begin!("load"); // without a block
//! drop(loading);
//! ```
//!
//! With the feature `enabled`, marks are written to shared memory while `stepscope record` records the program;
//! otherwise a mark costs a load and a branch. Without the feature, marks compile to nothing. Programs enable it, not
//! libraries:
//!
//! ```toml
//! [features]
//! marks = ["stepscope-marks/enabled"]
//! ```
//!
//! `docs/marks-format.md` describes the shared memory. Signal handlers must not mark. On other systems than Linux,
//! marks compile to nothing.

#[cfg(all(feature = "enabled", target_os = "linux"))]
mod clock;
#[cfg(all(feature = "enabled", target_os = "linux"))]
mod names;
#[cfg(all(feature = "enabled", target_os = "linux"))]
mod ring;
#[cfg(all(feature = "enabled", target_os = "linux"))]
mod segment;
#[cfg(all(feature = "enabled", target_os = "linux"))]
mod system;

#[cfg(all(feature = "enabled", target_os = "linux"))]
mod marks {
    use std::marker::PhantomData;
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::ring::{self, Kind};
    use crate::{clock, names, segment};

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
            if !segment::is_recording() {
                return None;
            }
            match self.known.load(Ordering::Relaxed) {
                0 => self.learn(),
                known => Some((known - 1) as u32),
            }
        }

        #[cold]
        fn learn(&self) -> Option<u32> {
            let number = names::intern(self.name)?;
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
                ring::write(self.start, clock::now(), Kind::Scope, self.name);
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
        Scope::start(segment::is_recording().then(|| names::intern(name)).flatten())
    }

    #[doc(hidden)]
    #[inline]
    pub fn step(sim_time_ns: Option<i64>) {
        if segment::is_recording() && segment::is_open() {
            ring::write(sim_time_ns.unwrap_or(UNTIMED) as u64, clock::now(), Kind::Step, 0);
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
            ring::write(value as u64, clock::now(), Kind::Counter, name);
        }
    }

    #[doc(hidden)]
    #[inline]
    pub fn frame_mark(site: &Site) {
        if let Some(name) = site.name() {
            ring::write(0, clock::now(), Kind::Frame, name);
        }
    }
}

#[cfg(not(all(feature = "enabled", target_os = "linux")))]
mod marks {
    /// An open scope, which ends when this is dropped; empty, because marks are not enabled.
    #[must_use = "a scope ends when this is dropped"]
    pub struct Scope {
        thread: std::marker::PhantomData<*const ()>,
    }

    // Avoids a warning in programs that drop a scope explicitly when marks are off.
    impl Drop for Scope {
        #[inline]
        fn drop(&mut self) {}
    }

    /// Starts a scope; does nothing, because marks are not enabled.
    #[inline]
    pub fn scope_named(_name: &str) -> Scope {
        Scope { thread: std::marker::PhantomData }
    }
}

pub use marks::*;

/// Marks a scope that ends with the block: `scope!("physics");`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _stepscope_scope = $crate::begin!($name);
    };
}

/// Marks a scope; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! scope {
    ($name:literal) => {};
}

/// Marks a scope that ends when the result is dropped: `let loading = begin!("load");`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! begin {
    ($name:literal) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::scope_at(&SITE)
    }};
}

/// Marks a scope; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! begin {
    ($name:literal) => {
        $crate::scope_named($name)
    };
}

/// Ends a step of the simulation and starts the next: `step!(time_s)`, `step!(ns: time_ns)` with integer nanoseconds,
/// `step!()` without simulated time.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! step {
    () => {
        $crate::step(None)
    };
    (ns: $time_ns:expr) => {
        $crate::step(Some($time_ns))
    };
    ($time_s:expr) => {
        $crate::step($crate::sim_time_ns($time_s))
    };
}

/// Ends a step; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! step {
    () => {{}};
    // Compiled but never run, so that variables used only by marks are used and type-checked.
    (ns: $time_ns:expr) => {{
        let _ = || -> i64 { $time_ns };
    }};
    ($time_s:expr) => {{
        let _ = || -> f64 { $time_s };
    }};
}

/// Marks a reading of an integer, with its unit in the name: `counter!("height_um", height)`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! counter {
    ($name:literal, $value:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::counter(&SITE, $value as i64)
    }};
}

/// Marks a reading; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! counter {
    ($name:literal, $value:expr) => {{
        let _ = || $value as i64;
    }};
}

/// Ends an iteration of another periodic loop and starts the next: `frame_mark!("render")`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! frame_mark {
    ($name:literal) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::frame_mark(&SITE)
    }};
}

/// Ends an iteration; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! frame_mark {
    ($name:literal) => {{}};
}

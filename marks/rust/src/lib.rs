//! Marks for [Stepscope](https://github.com/stepscope/stepscope): a program tells its profiler what a step of its
//! simulation is, what it is doing, and what it counts.
//!
//! ```
//! # let (mut time_s, contacts, bodies) = (0.0, 4, [1, 2]);
//! for _ in 0..3 {
//!     stepscope_marks::step!(time_s); // a step ends, and the next one begins; simulated time in seconds
//!     stepscope_marks::scope!("physics"); // from here to the end of the block
//!     for body in bodies {
//!         stepscope_marks::scope!("body");
//! #       let _ = body;
//!     }
//!     stepscope_marks::counter!("contacts", contacts); // an integer, with its unit in the name if it has one
//!     time_s += 0.001;
//! }
//! stepscope_marks::frame_mark!("render"); // once per iteration of another periodic loop
//! let loading = stepscope_marks::begin!("load"); // where a block does not fit
//! drop(loading);
//! ```
//!
//! With the feature `enabled`, marks are written to shared memory while `stepscope record` records the program, and
//! cost a load and a branch while nobody does. Without it they are nothing. Programs, not libraries, enable it:
//!
//! ```toml
//! [features]
//! marks = ["stepscope-marks/enabled"]
//! ```
//!
//! The shared memory is described in `docs/marks-format.md`. Marks may not be made in signal handlers. Linux only;
//! elsewhere they are nothing.

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

    /// Simulated time that is not known.
    const UNTIMED: i64 = i64::MIN;

    /// A place in the program that marks, with its name.
    #[doc(hidden)]
    pub struct Site {
        name: &'static str,
        /// One more than the name's number; 0 before it has one.
        known: AtomicU64,
    }

    impl Site {
        /// A place.
        pub const fn new(name: &'static str) -> Self {
            Self { name, known: AtomicU64::new(0) }
        }

        /// The name's number. `None` while nobody records.
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

    /// A scope that has begun, and ends when this is dropped.
    #[must_use = "a scope ends when this is dropped"]
    pub struct Scope {
        /// 0 if nobody recorded when it began.
        start: u64,
        name: u32,
        /// It ends on the thread that it began on.
        thread: PhantomData<*const ()>,
    }

    impl Scope {
        #[inline]
        fn begun(name: Option<u32>) -> Self {
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
        Scope::begun(site.name())
    }

    /// Begins a scope whose name is found while running. It is looked up each time, under a lock; where the name is
    /// constant, [`scope!`](crate::scope) and [`begin!`](crate::begin) are many times faster.
    #[inline]
    pub fn scope_named(name: &str) -> Scope {
        Scope::begun(segment::is_recording().then(|| names::intern(name)).flatten())
    }

    #[doc(hidden)]
    #[inline]
    pub fn step(sim_time_ns: Option<i64>) {
        if segment::is_recording() && segment::is_open() {
            ring::write(sim_time_ns.unwrap_or(UNTIMED) as u64, clock::now(), Kind::Step, 0);
        }
    }

    /// Simulated time in whole nanoseconds; none beyond 292 years, and where it is no number.
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
    /// A scope that has begun, and ends when this is dropped: nothing, because marks are not enabled.
    #[must_use = "a scope ends when this is dropped"]
    pub struct Scope {
        thread: std::marker::PhantomData<*const ()>,
    }

    // So that programs which drop a scope by hand get no warning for it when marks are off.
    impl Drop for Scope {
        #[inline]
        fn drop(&mut self) {}
    }

    /// Begins a scope: nothing, because marks are not enabled.
    #[inline]
    pub fn scope_named(_name: &str) -> Scope {
        Scope { thread: std::marker::PhantomData }
    }
}

pub use marks::*;

/// From here to the end of the block: `scope!("physics");`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _stepscope_scope = $crate::begin!($name);
    };
}

/// From here to the end of the block: nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! scope {
    ($name:literal) => {};
}

/// From here until what it gives is dropped: `let loading = begin!("load");`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! begin {
    ($name:literal) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::scope_at(&SITE)
    }};
}

/// From here until what it gives is dropped: nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! begin {
    ($name:literal) => {
        $crate::scope_named($name)
    };
}

/// A step of the simulation ends, and the next one begins: `step!(time_s)`; `step!()` where there is no simulated time,
/// `step!(ns: time_ns)` where it is an integer of nanoseconds.
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

/// A step of the simulation ends, and the next one begins: nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! step {
    () => {{}};
    // Not run, and yet compiled: what only a mark uses is used, and stays right.
    (ns: $time_ns:expr) => {{
        let _ = || -> i64 { $time_ns };
    }};
    ($time_s:expr) => {{
        let _ = || -> f64 { $time_s };
    }};
}

/// A reading of an integer, with its unit in the name: `counter!("height_um", height)`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! counter {
    ($name:literal, $value:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::counter(&SITE, $value as i64)
    }};
}

/// A reading of an integer: nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! counter {
    ($name:literal, $value:expr) => {{
        let _ = || $value as i64;
    }};
}

/// An iteration of another periodic loop ends, and the next one begins: `frame_mark!("render")`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! frame_mark {
    ($name:literal) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::frame_mark(&SITE)
    }};
}

/// An iteration of another periodic loop ends: nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! frame_mark {
    ($name:literal) => {{}};
}

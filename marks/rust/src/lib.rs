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
//! # let id = 7;
//! stepscope_marks::flow_begin!("scan", id); // a message is published: its topic, and an integer that names it there
//! stepscope_marks::flow_step!("scan", id); // it passes here, on any thread of any process
//! stepscope_marks::flow_end!("scan", id); // it has arrived; once for each subscriber
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
mod marks;

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

/// Marks that a message is published: `flow_begin!("scan", id)`, with an integer that names it in its topic.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! flow_begin {
    ($topic:literal, $id:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($topic);
        $crate::flow_begin(&SITE, $id as u64)
    }};
}

/// Marks that a message is published; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! flow_begin {
    ($topic:literal, $id:expr) => {{
        let _ = || $id as u64;
    }};
}

/// Marks that a message passes here: `flow_step!("scan", id)`.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! flow_step {
    ($topic:literal, $id:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($topic);
        $crate::flow_step(&SITE, $id as u64)
    }};
}

/// Marks that a message passes here; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! flow_step {
    ($topic:literal, $id:expr) => {{
        let _ = || $id as u64;
    }};
}

/// Marks that a message has arrived: `flow_end!("scan", id)`, once for each subscriber.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[macro_export]
macro_rules! flow_end {
    ($topic:literal, $id:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($topic);
        $crate::flow_end(&SITE, $id as u64)
    }};
}

/// Marks that a message has arrived; does nothing, because marks are not enabled.
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
#[macro_export]
macro_rules! flow_end {
    ($topic:literal, $id:expr) => {{
        let _ = || $id as u64;
    }};
}

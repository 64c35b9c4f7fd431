//! Counts how often threads come to an instruction, by hardware breakpoints.
//!
//! They come and go at once. A uprobe takes the kernel up to 0.1 s each way, in which an instruction that is met a million times a second
//! nearly stops its program.

use std::fs::File;
use std::io::{self, Read as _};

use perf_event_open_sys::bindings as sys;

use super::attributes::disabled_event;
use super::system::open_event;

/// Breakpoints that a thread can have at a time.
pub(crate) const BREAKPOINTS: usize = 4;

/// A count of one thread's arrivals at an address. Ends when dropped.
pub(crate) struct Breakpoint(File);

/// What a breakpoint has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub count: u64,
    /// CPU time of the thread since the breakpoint was set.
    pub cpu_ns: u64,
}

impl Breakpoint {
    /// # Errors
    /// If the thread has ended, has no breakpoint left, or the machine has none.
    pub fn set(tid: u32, address: u64) -> io::Result<Self> {
        let mut attr = disabled_event(sys::PERF_TYPE_BREAKPOINT, 0);
        attr.bp_type = sys::HW_BREAKPOINT_X;
        attr.__bindgen_anon_3.bp_addr = address;
        // What the kernel asks for at instructions.
        attr.__bindgen_anon_4.bp_len = size_of::<libc::c_long>() as u64;
        attr.read_format = sys::PERF_FORMAT_TOTAL_TIME_RUNNING as u64;
        attr.set_exclude_kernel(1);
        attr.set_disabled(0);
        open_event(&mut attr, tid as i32, -1).map(Self)
    }

    pub fn read(&mut self) -> io::Result<Arrivals> {
        let mut words = [0; 16];
        self.0.read_exact(&mut words)?;
        let [count, cpu_ns] = [0, 8].map(|at| u64::from_ne_bytes(words[at..at + 8].try_into().expect("8 bytes")));
        Ok(Arrivals { count, cpu_ns })
    }
}

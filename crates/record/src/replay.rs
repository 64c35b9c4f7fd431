//! Finds calls of functions in a running process that repeat an earlier one.
//!
//! A hardware breakpoint stops the process at the first instruction of a function. The call is replayed here, on a copy of the memory
//! ([`stepscope_replay`]), and then the process goes on and does the call itself.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use stepscope_replay::Replays;

use crate::perf::BREAKPOINTS;

#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod watch;

/// How long calls of four functions are waited for and replayed, if some have repeated others. Half of it if not.
const LONGEST_GROUP: Duration = Duration::from_secs(16);

/// A function whose calls are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySite {
    /// The file that holds it.
    pub module: PathBuf,
    /// File offset of its first instruction.
    pub offset: u64,
    /// File offsets of its code if it is inlined; empty if it has code of its own, and returns.
    pub inlined: Vec<Range<u64>>,
}

/// The longest time that [`replay_calls`] takes for this number of functions.
pub fn longest(functions: usize) -> Duration {
    LONGEST_GROUP * functions.div_ceil(BREAKPOINTS) as u32
}

/// Replays calls of these functions in a running process, until enough is known or `stop` is set.
///
/// One result for each function, in their order; fewer if the process ended before the others were looked at.
///
/// # Errors
/// If the process cannot be traced, or has no hardware breakpoints.
pub fn replay_calls(pid: u32, sites: &[ReplaySite], stop: &AtomicBool) -> io::Result<Vec<Replays>> {
    #[cfg(target_arch = "x86_64")]
    return watch::replay_calls(pid, sites, stop);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (pid, sites, stop);
        Err(io::Error::new(io::ErrorKind::Unsupported, "only calls of programs for x86-64 are replayed"))
    }
}

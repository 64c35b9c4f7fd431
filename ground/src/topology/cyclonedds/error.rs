//! Errors of Cyclone DDS.

/// Why Cyclone DDS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DdsError {
    /// The program was built without it.
    #[error(
        "this program was built without Cyclone DDS; install its development files and its IDL compiler (Debian: \
         cyclonedds-dev and cyclonedds-tools) and build it again"
    )]
    NotBuilt,
    /// Its library cannot be loaded.
    #[error("cannot load Cyclone DDS: {0}; is its library (Debian: libcycloneddsc0) installed?")]
    Load(String),
    /// A call failed.
    #[error("Cyclone DDS: cannot {what}: {why}")]
    Refused {
        /// The call.
        what: &'static str,
        /// The error.
        why: String,
    },
    /// Writers did not find all readers.
    #[error(
        "Cyclone DDS: readers and writers did not match within {0} s; a reliable subscriber cannot match a best_effort \
         publisher"
    )]
    NotMatched(u64),
}

/// Identifies a ready reader of a [`WaitSet`](super::WaitSet).
pub type Token = isize;

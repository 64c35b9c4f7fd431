//! Errors of Cyclone DDS.

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DdsError {
    /// It is not in this build.
    #[error(
        "this program was built without Cyclone DDS; install its development files and its IDL compiler (Debian: \
         cyclonedds-dev and cyclonedds-tools) and build it again"
    )]
    NotBuilt,
    /// Its library cannot be loaded.
    #[error("cannot load Cyclone DDS: {0}; is its library (Debian: libcycloneddsc0) installed?")]
    Load(String),
    /// It refused something.
    #[error("Cyclone DDS: cannot {what}: {why}")]
    Refused {
        /// What it was asked for.
        what: &'static str,
        /// What it says.
        why: String,
    },
    /// Writers did not find all readers.
    #[error(
        "Cyclone DDS: readers and writers did not find each other in {0} s; does a reliable subscriber expect to hear a \
         best_effort publisher?"
    )]
    NotMatched(u64),
}

/// Names a reader in what a [`WaitSet`](super::WaitSet) found ready.
pub type Token = isize;

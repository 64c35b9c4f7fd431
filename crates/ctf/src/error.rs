//! Why a trace cannot be read, and what is lost of one that can.

use std::io;
use std::path::PathBuf;

use crate::tsdl::SyntaxError;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CtfError {
    /// A file or folder cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder has no trace.
    #[error("{}: no CTF trace here; name the folder that has a file `metadata`, or one around it", .0.display())]
    NoTrace(PathBuf),
    /// The metadata describe nothing.
    #[error("the metadata cannot be understood ({0}); was the trace copied whole?")]
    Metadata(SyntaxError),
    /// The metadata are of CTF 2.
    #[error(
        "the trace is of CTF 2, and only CTF 1.8 can be read; `babeltrace2 convert` with `sink.ctf.fs` writes CTF 1.8"
    )]
    Version,
    /// The metadata are compressed or encrypted.
    #[error("the metadata are compressed or encrypted; convert the trace with the tool that wrote it")]
    PackedMetadata,
}

/// What is lost of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the tracer discarded, by its own count (`events_discarded`).
    pub discarded_events: u64,
    /// Packets that are missing, by their numbers (`packet_seq_num`).
    pub lost_packets: u64,
    /// Places from which on a packet, a file or a part of the metadata could not be read.
    pub damaged: u64,
    /// Bytes of packets that were left out for that.
    pub skipped_bytes: u64,
    /// The first damage: file, place, reason.
    pub first_damage: Option<String>,
}

impl Losses {
    /// Whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn add_damage(&mut self, bytes: u64, what: impl FnOnce() -> String) {
        self.damaged += 1;
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
        self.first_damage.get_or_insert_with(what);
    }
}

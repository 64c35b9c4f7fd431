//! How a segment is laid out: `docs/marks-format.md`, read with suspicion.
//!
//! Whatever stands in a segment was written by the recorded program, and may be anything. Everything here is checked
//! before it is used as a place or a length.

/// The first bytes of a segment that is complete.
const MAGIC: &[u8; 8] = b"STEPMARK";
/// The version of the format that this reads.
const VERSION: u32 = 1;
/// What of the header is read.
pub const HEADER_BYTES: usize = 256;
/// Where the recorder writes.
pub const RECORDER_AT: u64 = 64;
/// Where the program counts its rings, names and losses.
pub const PROGRAM_AT: usize = 128;
/// Bytes of a ring's entry in the directory.
pub const ENTRY_BYTES: usize = 128;
/// Where in an entry the recorder says how far it has read.
pub const TAIL_AT: u64 = 64;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

/// What a segment's times are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Monotonic,
    /// Ticks of this machine's counter: `rdtsc` or `cntvct_el0`.
    Counter,
}

/// Why a file is not read as a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is being made, or its program died while making it.
    #[error("it is not complete")]
    Incomplete,
    /// It is of another version.
    #[error(
        "it has version {0} of the format, and this stepscope reads version {VERSION}: use marks and stepscope of one release"
    )]
    Version(u32),
    /// It cannot be what it says.
    #[error("its {0} makes no sense")]
    Nonsense(&'static str),
}

/// Where things are in a segment, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The process that made it.
    pub pid: u32,
    /// Its clock.
    pub clock: Clock,
    /// When the process started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The process' pid namespace.
    pub pid_namespace: u64,
    /// Where names are.
    pub names_at: u64,
    /// How many bytes of names there may be.
    pub names_bytes: u64,
    /// Where the directory of rings is.
    pub directory_at: u64,
    /// How many rings there may be.
    pub rings_max: u64,
    /// Where the first ring is.
    pub rings_at: u64,
    /// From one ring to the next.
    pub ring_stride: u64,
    /// Records in a ring.
    pub ring_records: u64,
}

/// What the recorder's line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorder {
    /// Whether anybody records.
    pub recording: bool,
    /// The process that does.
    pub pid: u32,
    /// Which of its recordings.
    pub token: u64,
}

/// The number of 4 bytes at an offset; 0 beyond the end.
pub fn small(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
}

/// The number of 8 bytes at an offset; 0 beyond the end.
pub fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
}

impl Layout {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Unfit`]
    pub fn parse(header: &[u8]) -> Result<Self, Unfit> {
        if header.len() < HEADER_BYTES || &header[..8] != MAGIC {
            return Err(Unfit::Incomplete);
        }
        if small(header, 8) != VERSION {
            return Err(Unfit::Version(small(header, 8)));
        }
        let clock = match (small(header, 20), cfg!(target_arch = "x86_64"), cfg!(target_arch = "aarch64")) {
            (0, ..) => Clock::Monotonic,
            (1, true, _) | (2, _, true) => Clock::Counter,
            _ => return Err(Unfit::Nonsense("clock")),
        };
        let layout = Self {
            pid: small(header, 16),
            clock,
            start_ticks: number(header, 24),
            pid_namespace: number(header, 32),
            names_at: number(header, 192),
            names_bytes: number(header, 200),
            directory_at: number(header, 208),
            rings_max: number(header, 216),
            rings_at: number(header, 224),
            ring_stride: number(header, 232),
            ring_records: number(header, 240),
        };
        layout.check()?;
        Ok(layout)
    }

    fn check(&self) -> Result<(), Unfit> {
        let rules = [
            ("place of names", self.names_at < 1 << 32 && self.names_bytes <= 16 << 20),
            (
                "directory",
                self.directory_at < 1 << 32 && self.directory_at.is_multiple_of(8) && self.rings_max <= 1 << 13,
            ),
            ("place of rings", self.rings_at < 1 << 32 && self.rings_at.is_multiple_of(8)),
            ("size of rings", (2..=1 << 20).contains(&self.ring_records)),
            (
                "distance of rings",
                (self.ring_records.saturating_mul(RECORD_BYTES as u64)..=1 << 30).contains(&self.ring_stride),
            ),
        ];
        match rules.iter().find(|(_, holds)| !holds) {
            Some((what, _)) => Err(Unfit::Nonsense(what)),
            None => Ok(()),
        }
    }

    /// Where an entry of the directory is.
    pub fn entry_at(&self, ring: usize) -> u64 {
        self.directory_at + ring as u64 * ENTRY_BYTES as u64
    }

    /// Where a ring's record at a position is.
    pub fn record_at(&self, ring: usize, position: u64) -> u64 {
        let in_ring = position % self.ring_records * RECORD_BYTES as u64;
        self.rings_at + ring as u64 * self.ring_stride + in_ring
    }
}

impl Recorder {
    /// Reads the recorder's line of a header.
    pub fn parse(header: &[u8]) -> Self {
        let at = RECORDER_AT as usize;
        Self { recording: small(header, at) != 0, pid: small(header, at + 4), token: number(header, at + 16) }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A header that is fit, with small rings.
    pub fn drawn(ring_records: u64) -> Vec<u8> {
        let mut header = vec![0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(8, &1u32.to_ne_bytes());
        put(16, &40u32.to_ne_bytes());
        for (at, value) in [(192, 4096), (200, 4096), (208, 8192), (216, 8), (224, 12_288), (232, ring_records * 24)] {
            put(at, &u64::to_ne_bytes(value));
        }
        put(240, &ring_records.to_ne_bytes());
        header
    }

    #[test]
    fn a_header_says_where_everything_is() {
        let layout = Layout::parse(&drawn(16)).unwrap();
        assert_eq!((layout.pid, layout.clock), (40, Clock::Monotonic));
        assert_eq!(layout.entry_at(2), 8192 + 256);
        assert_eq!(layout.record_at(1, 17), 12_288 + 16 * 24 + 24);
    }

    #[test]
    fn an_invalid_header_is_refused_with_the_field() {
        let with = |at: usize, value: u64| {
            let mut header = drawn(16);
            header[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            Layout::parse(&header).unwrap_err()
        };
        assert_eq!(with(0, 0), Unfit::Incomplete);
        assert_eq!(with(8, 7), Unfit::Version(7));
        assert_eq!(with(216, u64::MAX), Unfit::Nonsense("directory"));
        assert_eq!(with(240, 0), Unfit::Nonsense("size of rings"));
        assert_eq!(with(240, u64::MAX), Unfit::Nonsense("size of rings"));
        assert_eq!(with(232, 24), Unfit::Nonsense("distance of rings"));
        assert_eq!(with(192, u64::MAX), Unfit::Nonsense("place of names"));
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_places_overflow(bytes in proptest::collection::vec(0u8.., HEADER_BYTES), position: u64) {
            let mut header = bytes;
            header[..12].copy_from_slice(b"STEPMARK\x01\0\0\0");
            if let Ok(layout) = Layout::parse(&header) {
                let ring = layout.rings_max as usize;
                proptest::prop_assert!(layout.record_at(ring, position) < 1 << 48 && layout.entry_at(ring) < 1 << 48);
            }
        }
    }
}

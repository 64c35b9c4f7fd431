//! What the CPU says of a sampled access: `PERF_SAMPLE_DATA_SRC` (`union perf_mem_data_src` in `perf_event.h`).

use strum::FromRepr;

/// Where a load found a line that another core had modified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRepr)]
#[repr(u8)]
pub enum Hitm {
    /// It did not.
    #[default]
    None,
    /// In a cache of the same socket.
    Local,
    /// In a cache of another socket.
    Remote,
}

/// A decoded `PERF_SAMPLE_DATA_SRC`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DataSource {
    pub is_load: bool,
    pub is_store: bool,
    pub hitm: Hitm,
}

impl DataSource {
    /// Decodes it, with the definitions of `perf c2c` (`c2c_decode_stats` in perf's `mem-events.c`). A line that another core of an
    /// Arm CPU gives (`SNOOPX_PEER`) counts like a modified one, as `perf c2c --display peer` counts it.
    pub fn decode(value: u64) -> Self {
        const LOAD: u64 = 0x02;
        const STORE: u64 = 0x04;
        const LEVEL_HIT: u64 = 0x02;
        const LEVEL_2: u64 = 0x20;
        const LEVEL_3: u64 = 0x40;
        const REMOTE_CACHES: u64 = 0x400 | 0x800;
        const SNOOP_HITM: u64 = 0x10;
        const NUMBERED_LEVEL_3: u64 = 0x03;
        const SNOOPX_PEER: u64 = 0x02;
        let field = |shift: u32, bits: u32| value >> shift & ((1 << bits) - 1);
        let (operation, level, snoop) = (field(0, 5), field(5, 14), field(19, 5));
        let (numbered, snoopx) = (field(33, 4), field(38, 2));
        // Of another core of the same node, if the number of hops is known.
        let is_remote = field(37, 1) == 1 && field(43, 3) == 0;
        let is_load = operation & LOAD != 0;
        let is_transfer = snoop & SNOOP_HITM != 0 || snoopx & SNOOPX_PEER != 0;
        let is_near = level & LEVEL_HIT != 0 && level & (LEVEL_2 | LEVEL_3) != 0 || numbered == NUMBERED_LEVEL_3;
        let hitm = match (is_load && is_transfer, level & REMOTE_CACHES != 0 || is_remote) {
            (false, _) => Hitm::None,
            (true, true) => Hitm::Remote,
            (true, false) if is_near || numbered != 0 => Hitm::Local,
            (true, false) => Hitm::None,
        };
        Self { is_load, is_store: operation & STORE != 0, hitm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by hand from the fields in the kernel's `include/uapi/linux/perf_event.h`.
    fn source(operation: u64, level: u64, snoop: u64, remote: u64) -> u64 {
        operation | level << 5 | snoop << 19 | remote << 37
    }

    #[test]
    fn loads_of_modified_lines_are_local_or_remote_and_stores_have_none() {
        let hitm = |value| DataSource::decode(value).hitm;
        assert_eq!(hitm(source(0x02, 0x42, 0x10, 0)), Hitm::Local, "L3 hit, HITM");
        assert_eq!(hitm(source(0x02, 0x402, 0x10, 0)), Hitm::Remote, "a remote cache, one hop");
        assert_eq!(hitm(source(0x02, 0x42, 0x10, 1)), Hitm::Remote, "Skylake's remote bit");
        assert_eq!(hitm(source(0x02, 0x0a, 0x02, 0)), Hitm::None, "L1 hit, no snoop");
        assert_eq!(hitm(source(0x04, 0x42, 0x10, 0)), Hitm::None, "a store");
        assert_eq!(hitm(source(0x02, 0x42, 0, 0) | 0x02 << 38), Hitm::Local, "another core gave the line (Arm SPE)");
        assert_eq!(hitm(source(0x02, 0, 0x10, 0) | 0x03 << 33), Hitm::Local, "L3 by number");
        assert_eq!(hitm(0), Hitm::None);
    }

    #[test]
    fn operations_are_distinguished() {
        let decoded = DataSource::decode(source(0x04, 0x0a, 0, 0));
        assert_eq!((decoded.is_load, decoded.is_store), (false, true));
        assert!(DataSource::decode(u64::MAX).is_load);
    }
}

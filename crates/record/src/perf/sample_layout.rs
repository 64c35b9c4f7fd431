//! The layout of records, and whose they are.

use linux_perf_event_reader::{Endianness, PerfEventAttr, RecordParseInfo};
use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use rustc_hash::FxHashMap;
use std::io;

use super::Kind;

/// The fields that every event records, in this order. Records can then be ordered and filtered before they are parsed: a
/// sample starts with id, ip, pid and tid, time; any other record ends with pid and tid, time, cpu, id.
pub(super) const COMMON: u64 = (sys::PERF_SAMPLE_IDENTIFIER
    | sys::PERF_SAMPLE_IP
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_CPU
    | sys::PERF_SAMPLE_PERIOD) as u64;
pub(super) const SAMPLE_PID_AT: usize = 16;
pub(super) const SAMPLE_TIME_AT: usize = 24;
/// The first word after the time: see [`mark_of`].
const SAMPLE_MARK_AT: usize = 32;
pub(super) const TIME_FROM_END: usize = 24;
const PID_FROM_END: usize = 32;
const CPU_FROM_END: usize = 16;

/// The word after the time in samples of this kind, as a flag of `sample_type`: the id again, the address, or neither and
/// so the CPU's number.
///
/// The kernel prepares one sample for all software events that fire at the same time. The first event fills in its id,
/// and the others keep it (`perf_prepare_sample` skips what is filled in, Linux 6.3 and later). With two recorders of one
/// thread, one of them therefore gets samples with the other's id. Its fields follow its own `sample_type` all the same, so
/// this word shows the kind.
pub(super) fn mark_of(kind: Kind) -> u64 {
    match kind {
        Kind::MinorFaults => sys::PERF_SAMPLE_ID as u64,
        Kind::MajorFaults => sys::PERF_SAMPLE_ADDR as u64,
        _ => 0,
    }
}

/// The kinds of open events, and how their records are read.
#[derive(Default)]
pub(super) struct Layouts {
    by_id: FxHashMap<u64, (Kind, RecordParseInfo)>,
    /// Of the kinds whose samples may carry the id of another recorder's event.
    shared: FxHashMap<Kind, RecordParseInfo>,
}

/// What the common fields of a record say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub kind: Kind,
    pub layout: RecordParseInfo,
    pub pid: Option<u32>,
}

impl Layouts {
    /// Adds an open event.
    pub fn add(&mut self, id: u64, kind: Kind, attr: &perf_event_attr) -> io::Result<()> {
        // SAFETY: a plain C struct without padding that matters, viewed as bytes while it is borrowed.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const *attr).cast::<u8>(), size_of::<perf_event_attr>()) };
        let (parsed, _) = PerfEventAttr::parse::<_, byteorder::NativeEndian>(bytes)?;
        let layout = RecordParseInfo::new(&parsed, Endianness::NATIVE);
        self.by_id.insert(id, (kind, layout));
        if matches!(kind, Kind::SwitchStack | Kind::MinorFaults | Kind::MajorFaults) {
            self.shared.insert(kind, layout);
        }
        Ok(())
    }

    /// Whether the id in a sample is that of an event of ours.
    pub fn knows_id_of(&self, sample: &[u8]) -> bool {
        word(sample, 0).is_some_and(|id| self.by_id.contains_key(&id))
    }

    /// The kind of a sample and its process. `None` if no open event makes such samples.
    pub fn of_sample(&self, body: &[u8]) -> Option<Common> {
        let id = word(body, 0)?;
        let (kind, layout) = match self.by_id.get(&id) {
            Some(&known) => known,
            None => self.of_shared_sample(id, word(body, SAMPLE_MARK_AT)?)?,
        };
        Some(Common { kind, layout, pid: word(body, SAMPLE_PID_AT).map(|word| word as u32) })
    }

    /// The kind of a sample that carries the id of another recorder's event.
    fn of_shared_sample(&self, id: u64, mark: u64) -> Option<(Kind, RecordParseInfo)> {
        /// No fault is below the first page, and no machine has as many CPUs.
        const FIRST_PAGE: u64 = 4096;
        let kind = match mark {
            _ if mark == id => Kind::MinorFaults,
            0..FIRST_PAGE => Kind::SwitchStack,
            _ => Kind::MajorFaults,
        };
        self.shared.get(&kind).map(|&layout| (kind, layout))
    }

    /// The kind of any other record and its process.
    pub fn of_other(&self, body: &[u8]) -> Option<Common> {
        let &(kind, layout) = self.by_id.get(&word(body, body.len().checked_sub(8)?)?)?;
        let pid = body.len().checked_sub(PID_FROM_END).and_then(|at| word(body, at));
        Some(Common { kind, layout, pid: pid.map(|word| word as u32) })
    }
}

/// The common fields of a record that is no sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub tid: u32,
    pub time: u64,
    pub cpu: u32,
}

impl Tail {
    pub fn of(body: &[u8]) -> Option<Self> {
        let word = |from_end: usize| word(body, body.len().checked_sub(from_end)?);
        let tid = (word(PID_FROM_END)? >> 32) as u32;
        Some(Self { tid, time: word(TIME_FROM_END)?, cpu: word(CPU_FROM_END)? as u32 })
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u64 = 70;
    const OTHER: u64 = 81;

    fn layouts() -> Layouts {
        let mut layouts = Layouts::default();
        for (index, kind) in
            [Kind::Cpu, Kind::SwitchStack, Kind::MinorFaults, Kind::MajorFaults].into_iter().enumerate()
        {
            let attr = perf_event_attr {
                size: size_of::<perf_event_attr>() as u32,
                sample_type: COMMON | mark_of(kind),
                ..Default::default()
            };
            layouts.add(OURS + index as u64, kind, &attr).unwrap();
        }
        layouts
    }

    /// A sample: id, ip, pid and tid, time, and the word after it.
    fn sample(id: u64, mark: u64) -> Vec<u8> {
        [id, 0x1000, 9 << 32 | 8, 5_000, mark].iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn kind(body: &[u8]) -> Option<Kind> {
        layouts().of_sample(body).map(|common| common.kind)
    }

    #[test]
    fn a_sample_belongs_to_the_event_whose_id_it_has() {
        assert_eq!(kind(&sample(OURS, 1)), Some(Kind::Cpu));
        assert_eq!(kind(&sample(OURS + 1, 1)), Some(Kind::SwitchStack));
        assert_eq!(layouts().of_sample(&sample(OURS, 1)).unwrap().pid, Some(8));
    }

    #[test]
    fn a_sample_with_the_id_of_another_recorder_shows_its_kind_by_the_word_after_the_time() {
        assert_eq!(kind(&sample(OTHER, 1)), Some(Kind::SwitchStack));
        assert_eq!(kind(&sample(OTHER, OTHER)), Some(Kind::MinorFaults));
        assert_eq!(kind(&sample(OTHER, 0x7fff_0000)), Some(Kind::MajorFaults));
        assert!(!layouts().knows_id_of(&sample(OTHER, 1)));
    }

    #[test]
    fn a_sample_that_is_cut_or_of_no_open_event_has_no_kind() {
        assert_eq!(kind(&sample(OURS, 1)[..7]), None);
        assert!(Layouts::default().of_sample(&sample(OTHER, 1)).is_none());
    }
}

//! From the rings to the assembler.

use std::collections::BTreeMap;

use linux_perf_event_reader::{RawEventRecord, RecordType};
use stepscope_assemble::{Assembler, EventRole};

use super::log::Counted;
use crate::live::LiveTarget;
use crate::perf::{Kind, RecordTaker};
use crate::ros2::Ros2;

/// Passes records from the rings to the assembler.
pub(super) struct AssemblerFeed<'a> {
    pub assembler: &'a mut Assembler<LiveTarget>,
    pub meanings: &'a BTreeMap<Kind, EventRole>,
    pub sink: &'a mut Counted,
    pub ros2: Option<&'a mut Ros2>,
}

impl RecordTaker for AssemblerFeed<'_> {
    fn wants(&self, pid: u32) -> bool {
        self.assembler.follows(pid)
    }

    fn note_other_switch(&mut self, cpu: u32, time_ns: u64, left: Option<u32>) {
        self.assembler.note_other_switch(cpu, time_ns, left, self.sink);
    }

    fn take(&mut self, kind: Kind, record: &RawEventRecord<'_>) {
        if let (Kind::Ros2, RecordType::SAMPLE, Some(ros2)) = (kind, record.record_type, &mut self.ros2) {
            return ros2.take(record);
        }
        let meaning = self.meanings.get(&kind).copied().unwrap_or(EventRole::SideBand);
        self.assembler.add_record(meaning, record, self.sink);
    }
}

/// Passes on how many records were lost, and nothing else.
pub(super) struct LossFeed<'a>(pub AssemblerFeed<'a>);

impl RecordTaker for LossFeed<'_> {
    fn wants(&self, _pid: u32) -> bool {
        false
    }

    fn note_other_switch(&mut self, _cpu: u32, _time_ns: u64, _left: Option<u32>) {}

    fn take(&mut self, kind: Kind, record: &RawEventRecord<'_>) {
        if matches!(record.record_type, RecordType::LOST | RecordType::LOST_SAMPLES) {
            self.0.take(kind, record);
        }
    }
}

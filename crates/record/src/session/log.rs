//! The log of a capture, and what was written to it.

use std::fs::File;
use std::path::PathBuf;

use stepscope_assemble::raw_log::Writer;
use stepscope_assemble::{Entry, EventRef, MachineReading, Sink};

use super::machine_speed::Seen;

/// The destination of entries: a log, or nothing.
pub(super) enum Output {
    Log { writer: Box<Writer<File>>, folder: PathBuf, cpu_before_ns: u64, start: Box<MachineReading> },
    Paused,
}

/// A sink that counts samples, waits and steps.
pub(super) struct Counted {
    pub output: Output,
    /// The event of CPU samples.
    pub cpu_event: Option<EventRef>,
    pub cpu_samples: u64,
    pub waits: u64,
    pub steps: u64,
    pub seen: Seen,
}

impl Counted {
    pub fn new(output: Output) -> Self {
        Self { output, cpu_event: None, cpu_samples: 0, waits: 0, steps: 0, seen: Seen::default() }
    }
}

impl Sink for Counted {
    fn take(&mut self, entry: Entry) {
        self.seen.note(&entry);
        let is_cpu = |event| Some(event) == self.cpu_event;
        self.cpu_samples += u64::from(matches!(&entry, Entry::Sample(sample) if is_cpu(sample.event)));
        self.waits += u64::from(matches!(entry, Entry::Wait(_)));
        self.steps += u64::from(matches!(entry, Entry::StepStart { .. } | Entry::StepMark { .. }));
        if let Output::Log { writer, .. } = &mut self.output {
            writer.take(entry);
        }
    }
}

impl AsRef<Seen> for Counted {
    fn as_ref(&self) -> &Seen {
        &self.seen
    }
}

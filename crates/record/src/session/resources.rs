//! Processes' resources, from `/proc` to the log.

use std::collections::BTreeMap;

use stepscope_assemble::{Assembler, Entry, Sink};

use crate::clock;
use crate::live::LiveTarget;
use crate::proc::{ProcessTree, Reading, ResourceSampler};

/// Most readings kept for processes without a start record. They wait one round, unless that record was lost.
const MOST_WAITING_READINGS: usize = 10_000;

/// Processes' resources over time.
pub(super) struct Resources {
    sampler: ResourceSampler,
    readings: Vec<Reading>,
    /// The last of each, for a capture that begins later.
    last: BTreeMap<(u32, Option<u32>, &'static str), i64>,
}

impl Resources {
    pub fn new(tree: ProcessTree) -> Self {
        Self { sampler: ResourceSampler::new(tree), readings: Vec::new(), last: BTreeMap::new() }
    }

    /// What could not be read.
    pub fn lacks(&self) -> Vec<String> {
        self.sampler.lacks()
    }

    /// Reads all processes. A value is logged once, when it changes.
    pub fn read(&mut self, assembler: &Assembler<LiveTarget>, sink: &mut impl Sink) {
        for pid in assembler.pids() {
            self.sampler.tree_mut().add(pid);
        }
        self.sampler.sample(&mut self.readings);
        let now_ns = clock::now_ns();
        let Self { sampler, readings, last } = self;
        // Where `/proc` is ahead of the rings, a value waits until its process is known.
        readings.retain(|reading| {
            let name = reading.quantity.name();
            let Some(counter) = counter(assembler, now_ns, (reading.pid, reading.tid, name), reading.value) else {
                return sampler.tree().contains(reading.pid);
            };
            last.insert((reading.pid, reading.tid, name), reading.value);
            sink.take(counter);
            false
        });
        readings.truncate(MOST_WAITING_READINGS);
        last.retain(|(pid, ..), _| assembler.process_ref(*pid).is_some());
    }

    /// Logs the last values again, for a capture that begins now.
    pub fn repeat(&self, now_ns: u64, assembler: &Assembler<LiveTarget>, sink: &mut impl Sink) {
        for (&of, &value) in &self.last {
            if let Some(counter) = counter(assembler, now_ns, of, value) {
                sink.take(counter);
            }
        }
    }
}

/// The entry of a value, if its process and thread are known.
fn counter(
    assembler: &Assembler<LiveTarget>,
    time_ns: u64,
    (pid, tid, name): (u32, Option<u32>, &'static str),
    value: i64,
) -> Option<Entry> {
    let process = assembler.process_ref(pid)?;
    let thread = match tid {
        Some(tid) => Some(assembler.thread_ref(tid)?),
        None => None,
    };
    Some(Entry::Counter { time_ns, process, thread, name: name.to_owned(), value })
}

//! MCAP files, as rosbag2 writes them: topics with statistics and diagnostics become counters.
//!
//! Two message types have readings: `statistics_msgs/MetricsMessage` (`/statistics` of ROS 2's topic statistics and system metrics
//! collector) and `diagnostic_msgs/DiagnosticArray` (`/diagnostics`). Messages of other types are counted in a note. Each node, sensor or
//! component that is measured is a process of the capture.
//!
//! Counters are integers: readings with a unit of time are in ns, levels and numbers of samples as they are, and others in thousandths,
//! which their names say.
//!
//! Formats: <https://mcap.dev/spec>; messages are CDR of their `.msg` files (`common_interfaces`, `rcl_interfaces`).

mod cdr;
mod messages;
mod records;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Counter, Losses, Origin, Process, ProcessId};

use super::content::Content;
use super::trace::note_of_damage;
use super::{Head, ImportError, ImportOptions, Input, InputFormat};
use cdr::Cdr;
use messages::Reading;
use records::{MAGIC, Record, Records};

/// The format.
pub struct Mcap;

impl InputFormat for Mcap {
    fn name(&self) -> &'static str {
        "mcap"
    }

    fn describe(&self) -> &'static str {
        "MCAP files of rosbag2: topics with statistics and diagnostics, as counters."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        head.bytes.starts_with(MAGIC)
    }

    fn read(&self, input: Input<'_>, _options: &ImportOptions) -> Result<Capture, ImportError> {
        let name = input.name().to_owned();
        let content = Content::of(input)?;
        let mut import = Import::default();
        import.records(content.bytes().get(MAGIC.len()..).unwrap_or_default(), &content);
        import.has_end = content.bytes().len() > MAGIC.len() && content.bytes().ends_with(MAGIC);
        match import.messages {
            0 => Err(ImportError::Nothing { file: name, format: self.name(), first: import.first_damage }),
            _ => Ok(import.finish()),
        }
    }
}

/// A topic.
#[derive(Debug, Clone, Default)]
struct Channel {
    topic: String,
    schema: String,
    is_cdr: bool,
}

#[derive(Default)]
struct Import {
    capture: Capture,
    /// Whether the file ends as a complete one.
    has_end: bool,
    schemas: FxHashMap<u16, String>,
    channels: FxHashMap<u16, Channel>,
    processes: FxHashMap<String, ProcessId>,
    names: FxHashMap<String, std::sync::Arc<str>>,
    messages: u64,
    /// Messages of types without readings.
    others: BTreeMap<String, u64>,
    first_ns: Option<u64>,
    last_ns: u64,
    damaged: u64,
    skipped_bytes: u64,
    first_damage: Option<String>,
}

impl Import {
    /// Takes the records of a file, and those of its chunks.
    fn records(&mut self, bytes: &[u8], content: &Content<'_>) {
        let (mut records, mut done) = (Records::of(bytes), 0);
        while let Some(record) = records.next() {
            match record {
                Ok(Record::Chunk { compression, size, packed }) => match records::unpack(compression, size, packed) {
                    Ok(unpacked) => self.chunk(&unpacked),
                    Err(what) => self.damage(what, packed.len()),
                },
                Ok(record) => self.record(record),
                Err(what) => self.damage(format!("byte {}: {what}", MAGIC.len() + done), bytes.len() - done),
            }
            content.touch(records.offset() - done);
            done = records.offset();
            content.progress(done);
        }
    }

    fn chunk(&mut self, bytes: &[u8]) {
        let (mut records, mut done) = (Records::of(bytes), 0);
        while let Some(record) = records.next() {
            match record {
                Ok(Record::Chunk { .. }) => self.damage("a chunk is in a chunk".to_owned(), records.offset() - done),
                Ok(record) => self.record(record),
                Err(what) => self.damage(format!("in a chunk: {what}"), bytes.len() - done),
            }
            done = records.offset();
        }
    }

    fn record(&mut self, record: Record<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match record {
            Record::Schema { id, name } => drop(self.schemas.insert(id, text(name))),
            Record::Channel { id, schema, topic, encoding } => {
                let schema = self.schemas.get(&schema).cloned().unwrap_or_else(|| "no type".to_owned());
                self.channels.insert(id, Channel { topic: text(topic), schema, is_cdr: encoding == b"cdr" });
            }
            Record::Message { channel, log_time_ns, data } => {
                let channel = self.channels.get(&channel).cloned().unwrap_or_default();
                self.message(&channel, log_time_ns, data);
            }
            Record::Chunk { .. } => {}
        }
    }

    fn message(&mut self, Channel { topic, schema, is_cdr }: &Channel, time_ns: u64, data: &[u8]) {
        self.messages += 1;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(time_ns);
        let Some(read) = messages::of_type(schema).filter(|_| *is_cdr) else {
            match self.others.get_mut(schema) {
                Some(count) => *count += 1,
                None => drop(self.others.insert(schema.clone(), 1)),
            }
            return;
        };
        let mut add = |reading: Reading<'_>| self.reading(time_ns, &reading);
        if Cdr::of(data).and_then(|mut cdr| read(&mut cdr, &mut add)).is_none() {
            let bytes = data.len();
            self.damage(format!("a message of {topic} ({bytes} bytes) is no {schema}"), bytes);
        }
    }

    fn damage(&mut self, what: String, bytes: usize) {
        self.damaged += 1;
        self.skipped_bytes += bytes as u64;
        self.first_damage.get_or_insert(what);
    }

    fn reading(&mut self, time_ns: u64, reading: &Reading<'_>) {
        let Some(value) = reading.value() else { return };
        let process = match self.processes.get(reading.source) {
            Some(&process) => process,
            None => {
                // There are no process ids in such files.
                let pid = self.capture.processes.len() as u32 + 1;
                let executable = reading.source.to_owned();
                let process = self.capture.add_process(Process { pid, executable, ..Process::default() });
                self.processes.insert(reading.source.to_owned(), process);
                process
            }
        };
        let name = reading.name();
        let name = self.names.entry(name).or_insert_with_key(|name| name.as_str().into()).clone();
        self.capture.counters.push(Counter { time_ns, process: Some(process), thread: None, name, value });
    }

    fn finish(mut self) -> Capture {
        self.capture.counters.sort_by_key(|counter| counter.time_ns);
        let mut notes = Vec::new();
        if let Some(first) = &self.first_damage {
            notes.push(note_of_damage(self.damaged, self.skipped_bytes, first));
        } else if !self.has_end {
            notes.push("The file has no end: its recorder was killed, or it is cut. What is there is kept.".to_owned());
        }
        if self.capture.counters.is_empty() {
            notes.push(
                "No topic of the file has statistics or diagnostics: statistics_msgs/MetricsMessage, \
                 diagnostic_msgs/DiagnosticArray."
                    .to_owned(),
            );
        }
        let others: u64 = self.others.values().sum();
        if others > 0 {
            let mut types: Vec<(&String, &u64)> = self.others.iter().collect();
            types.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
            let shown: Vec<String> =
                types.iter().take(5).map(|(name, count)| format!("{name} ({})", grouped((**count).into()))).collect();
            let messages = plural(self.messages as usize, "message");
            notes.push(format!("{} of {messages} have no readings: {}.", grouped(others.into()), shown.join(", ")));
        }
        self.capture.info = CaptureInfo {
            origin: Origin::Imported { format: Mcap.name().to_owned(), file: String::new() },
            clock: Some("log time of the recorder".to_owned()),
            start_ns: self.first_ns,
            end_ns: Some(self.last_ns),
            losses: Losses { malformed_records: self.damaged, ..Losses::default() },
            notes,
            ..CaptureInfo::default()
        };
        self.capture
    }
}

#[cfg(test)]
mod tests;

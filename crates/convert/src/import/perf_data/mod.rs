//! `perf.data`, written by `perf record` to a file or a pipe, compressed or not.
//!
//! Its records are the kernel's, so the [`Assembler`] and the [`Builder`] of live recordings process them. Specific to
//! the file are its layout (`file`), its machine (`features`), and the order of its records (`order`).

mod elsewhere;
mod events;
mod features;
mod file;
mod order;
mod record;
mod unpack;

use std::collections::BTreeMap;

use linux_perf_event_reader::constants::{
    PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_MMAP_BUILD_ID,
};
use linux_perf_event_reader::{
    AttrFlags, Endianness, RawData, RawEventRecord, RecordParseInfo, RecordType, SampleFormat,
};
use stepscope_assemble::{Assembler, Builder, Entry, EventRole, Follow, RecordingEnd, Sink, Switches};
use stepscope_model::{Capture, CaptureInfo, Dimension, DimensionStatus, Machine, Origin};
use stepscope_symbolize::{RecordedKernel, Symbolizer};

use super::{Head, ImportError, ImportOptions, Input, InputFormat, perf_event};
use crate::import::content::Content;
use crate::import::cursor::Cursor;
use elsewhere::{Elsewhere, Modules};
use file::{Attribute, Missing, PerfFile};
use order::{InOrder, Ordered, Outcome};
use record::Kind;

/// The format.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerfData;

impl InputFormat for PerfData {
    fn name(&self) -> &'static str {
        "perf.data"
    }

    fn describe(&self) -> &'static str {
        "Recordings of `perf record`, from a file or a pipe: any events, frame-pointer and DWARF stacks."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        file::is_perf_data(head.bytes)
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let name = input.name().to_owned();
        let content = Content::of(input)?;
        let nothing = |first| ImportError::Nothing { file: name.clone(), format: self.name(), first };
        let file = PerfFile::parse(&content).map_err(|what| nothing(Some(format!("it {what}"))))?;
        let reading = Reading::new(&file, options);
        let (capture, outcome) = reading.run(InOrder::new(&content, &file));
        if capture.threads.is_empty() && capture.samples.is_empty() {
            return Err(nothing(outcome.first.map(|damage| format!("byte {}: {}", damage.offset, damage.what))));
        }
        Ok(finished(capture, &file, &content, outcome))
    }
}

/// An import in progress.
struct Reading<'a> {
    file: &'a PerfFile,
    options: &'a ImportOptions,
    elsewhere: Elsewhere<'a>,
    sink: Modules<'a, Builder>,
    meanings: Vec<EventRole>,
    layouts: Vec<RecordParseInfo>,
    switches: Switches,
    kernel_text: Option<u64>,
    taken: Taken,
}

/// Numbers of samples given to the assembler.
#[derive(Debug, Default)]
struct Taken {
    samples: u64,
}

impl<'a> Reading<'a> {
    fn new(file: &'a PerfFile, options: &'a ImportOptions) -> Self {
        let elsewhere = Elsewhere::new(file, &options.symbols);
        let mut sink = Modules::new(Builder::default(), elsewhere.clone());
        sink.take(Entry::Start(Box::new(describe(file))));
        // Registers of another architecture cannot be unwound here.
        let layouts = file.attributes.iter().map(|attribute| match elsewhere.same_architecture() {
            true => attribute.parse_info,
            false => RecordParseInfo { sample_regs_user: 0, ..attribute.parse_info },
        });
        let layouts = layouts.collect();
        let switches = events::switches(&file.attributes);
        Self {
            file,
            options,
            elsewhere,
            sink,
            meanings: Vec::new(),
            layouts,
            switches,
            kernel_text: None,
            taken: Taken::default(),
        }
    }

    fn run(mut self, mut records: InOrder<'_>) -> (Capture, Outcome) {
        let start_ns = records.start(self.switches);
        self.sink.inner.info_mut().start_ns = start_ns;
        let mut assembler = Assembler::new(self.elsewhere.clone(), Follow::Everything, self.switches, start_ns);
        self.add_events(&mut assembler);
        while let Some(record) = records.next() {
            self.take(&record, &mut assembler);
        }
        let outcome = records.outcome();
        assembler.finish(outcome.latest_ns, &mut self.sink);
        let losses = assembler.losses();
        let left_out = self.taken.samples.saturating_sub(losses.samples + losses.malformed_records);
        drop(assembler);
        let mut notes = events::notes(&self.file.attributes);
        if left_out > 0 {
            notes.push(format!("{left_out} samples without a thread (idle task, ended threads) skipped."));
        }
        notes.extend(self.elsewhere.notes());
        self.sink.take(Entry::RecordingEnd(Box::new(RecordingEnd {
            end_ns: outcome.latest_ns,
            notes,
            ..RecordingEnd::default()
        })));
        let mut symbolizer = self.symbolizer();
        (self.sink.inner.build(&mut symbolizer), outcome)
    }

    fn add_events(&mut self, assembler: &mut Assembler<Elsewhere<'_>>) {
        for attribute in &self.file.attributes {
            let meaning = events::meaning(attribute, self.switches, |event| assembler.add_event(event, &mut self.sink));
            self.meanings.push(meaning);
        }
    }

    fn take(&mut self, record: &Ordered<'_>, assembler: &mut Assembler<Elsewhere<'_>>) {
        let meaning = self.meanings[record.attribute];
        if record.kind == Kind::SAMPLE && matches!(meaning, EventRole::Sampled { .. } | EventRole::SwitchStack) {
            self.taken.samples += 1;
        }
        if self.kernel_text.is_none() {
            self.kernel_text = kernel_text(record, self.file.endian);
        }
        let layout = self.layouts[record.attribute];
        let kind = RecordType(record.kind.0);
        let misc = if self.has_build_id(record) { record.misc } else { record.misc & !PERF_RECORD_MISC_MMAP_BUILD_ID };
        let raw = RawEventRecord::new(kind, misc, RawData::Single(record.body), layout);
        assembler.add_record(meaning, &raw, &mut self.sink);
    }

    /// Whether a mapping flagged as having a build-id has one, instead of device and inode.
    ///
    /// Linux 6.18 sets the flag for an event that asks for build-ids, and leaves it set for all other events that get
    /// the same record (`perf_event_mmap_output` restores the header's type and size, not `misc`). With two recordings
    /// at a time perf crashes on its own file. So the flag counts only if the event asked, or if the size is that of a
    /// build-id.
    fn has_build_id(&self, record: &Ordered<'_>) -> bool {
        const BUILD_ID_SIZES: [u8; 2] = [16, 20];
        if record.kind != Kind::MMAP2 || record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID == 0 {
            return true;
        }
        let asked = || self.file.attributes.iter().any(|attribute| attribute.flags.contains(AttrFlags::BUILD_ID));
        record.body.get(32).is_some_and(|size| BUILD_ID_SIZES.contains(size)) || asked()
    }

    fn symbolizer(&self) -> Symbolizer {
        let features = &self.file.features;
        let mut options = self.options.symbols.clone();
        options.recorded_kernel =
            Some(RecordedKernel { build_id: features.kernel_build_id.clone(), text_address: self.kernel_text });
        options.recorded_vdso = features.vdso_build_id.clone();
        Symbolizer::new(options)
    }
}

/// Address of the kernel's `_text`: the file offset in perf's mapping of `[kernel.kallsyms]_text`
/// (`perf_event__synthesize_kernel_mmap` in `tools/perf/util/synthetic-events.c`).
fn kernel_text(record: &Ordered<'_>, endian: Endianness) -> Option<u64> {
    let path_at = match record.kind {
        Kind::MMAP => 32,
        Kind::MMAP2 => 64,
        _ => return None,
    };
    if record.misc & PERF_RECORD_MISC_CPUMODE_MASK != PERF_RECORD_MISC_KERNEL {
        return None;
    }
    let path = record.body.get(path_at..)?;
    let is_text = path.starts_with(b"[kernel.kallsyms]_text\0") || path.starts_with(b"[kernel.kallsyms]_stext\0");
    is_text.then(|| Cursor::new(&record.body[24..], endian).u64())?
}

/// The capture's information from the file.
fn describe(file: &PerfFile) -> CaptureInfo {
    let features = &file.features;
    let arguments = &features.command_line;
    let command = arguments.iter().position(|argument| argument == "--").map(|at| arguments[at + 1..].to_vec());
    CaptureInfo {
        // The caller sets the file.
        origin: Origin::Imported { format: PerfData.name().to_owned(), file: String::new() },
        command: command.unwrap_or_default(),
        clock: clock(&file.attributes),
        machine: machine(file),
        ..CaptureInfo::default()
    }
}

fn clock(attributes: &[Attribute]) -> Option<String> {
    let timed = |attribute: &&Attribute| attribute.parse_info.sample_format.contains(SampleFormat::TIME);
    let attribute = attributes.iter().find(timed)?;
    Some(attribute.clock.unwrap_or("perf's clock (CLOCK_MONOTONIC to a few microseconds)").to_owned())
}

fn machine(file: &PerfFile) -> Option<Machine> {
    const KINDS_OF_PMUS: [u32; 3] = [0, 3, 4]; // PERF_TYPE_HARDWARE, _HW_CACHE, _RAW
    let features = &file.features;
    Some(Machine {
        host: features.host.clone()?,
        cpu: features.cpu.clone().unwrap_or_default(),
        cores: features.online_cpus.unwrap_or(0),
        memory_bytes: features.memory_bytes.unwrap_or(0),
        kernel: features.kernel_release.clone().unwrap_or_default(),
        architecture: features.architecture.clone().unwrap_or_default(),
        pmu: file.attributes.iter().any(|attribute| KINDS_OF_PMUS.contains(&attribute.kind)),
        ..Machine::default()
    })
}

/// Adds dimensions and losses.
fn finished(mut capture: Capture, file: &PerfFile, content: &Content<'_>, outcome: Outcome) -> Capture {
    capture.info.dimensions = dimensions(&capture, &file.attributes);
    let info = &mut capture.info;
    info.losses.malformed_records += outcome.damages;
    let mut notes = Vec::new();
    if let Some(cut) = &content.cut {
        notes.push(format!("The packed file is truncated ({cut}); everything before that is kept."));
    }
    match file.missing {
        Missing::Nothing => {}
        Missing::End => notes.push(
            "perf record was killed before it completed the file, so build-ids, the machine and event names are missing."
                .to_owned(),
        ),
        Missing::Description => {
            info.losses.malformed_records += 1;
            notes.push(
                "The file is truncated behind its records: build-ids, the machine or the names of events are missing. Events without a \
                 name fill no view of their own, such as waits."
                    .to_owned(),
            );
        }
        Missing::Bytes(bytes) => {
            info.losses.malformed_records += 1;
            notes.push(format!(
                "The file is truncated: {bytes} bytes of records and everything after them are missing."
            ));
        }
    }
    if let Some(first) = outcome.first {
        let (places, bytes) = (outcome.damages, outcome.lost_bytes);
        let (place, offset, what) = (if places == 1 { "place" } else { "places" }, first.offset, first.what);
        notes.push(format!(
            "The file is damaged at {places} {place}, first at byte {offset} ({what}); {bytes} bytes are lost, the rest is \
             kept."
        ));
    }
    if outcome.has_traces {
        notes.push("Hardware traces (Intel PT, Arm SPE) are ignored.".to_owned());
    }
    if info.losses.lost_records > 0 {
        notes.push(format!("perf lost {} records while recording.", info.losses.lost_records));
    }
    info.notes.splice(0..0, notes);
    capture
}

fn dimensions(capture: &Capture, attributes: &[Attribute]) -> BTreeMap<Dimension, DimensionStatus> {
    let mut dimensions = BTreeMap::new();
    for event in &capture.info.events {
        if let Some(dimension) = perf_event::dimension(event) {
            dimensions.insert(dimension, DimensionStatus::Recorded);
        }
    }
    if !capture.data_accesses.is_empty() || attributes.iter().any(Attribute::samples_accesses) {
        dimensions.insert(Dimension::Sharing, DimensionStatus::Recorded);
    }
    let partial = |lacks: &str| DimensionStatus::Partial { lacks: vec![lacks.to_owned()] };
    let sched = match events::switches(attributes) {
        Switches::Unrecorded => return dimensions,
        Switches::WithWakeUps => DimensionStatus::Recorded,
        Switches::Recorded => partial(
            "wake-ups were not recorded, so waits are not split into blocked and runnable; add -e sched:sched_waking",
        ),
    };
    dimensions.insert(Dimension::Sched, sched);
    let offcpu = match capture.waits.iter().any(|wait| wait.stack.is_some()) {
        true => DimensionStatus::Recorded,
        false => partial("waits have no stacks; record with -g -e sched:sched_switch"),
    };
    dimensions.insert(Dimension::Offcpu, offcpu);
    dimensions
}

impl Attribute {
    /// Whether its samples have the address and the source of an access.
    fn samples_accesses(&self) -> bool {
        self.parse_info.sample_format.contains(SampleFormat::ADDR | SampleFormat::DATA_SRC)
    }

    /// Whether it recorded context switches.
    fn records_switches(&self) -> bool {
        self.flags.contains(AttrFlags::CONTEXT_SWITCH)
    }
}

#[cfg(test)]
mod tests;

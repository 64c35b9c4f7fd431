//! `trace.dat`, the file of trace-cmd: versions 6 and 7, packed or not.

mod cut;
mod file;
mod pages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use stepscope_model::disk::DiskError;
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Losses, Machine, Origin};
use stepscope_symbolize::Symbolizer;

use super::REMEDIES;
use super::event::{Ftrace, Head as EventHead};
use super::format::Class;
use crate::import::content::Content;
use crate::import::trace::{Trace, note_of_damage, others};
use crate::import::{Head, ImportError, ImportOptions, Input, InputFormat};
use file::{Buffer, Compression, File};
use pages::{Gap, PageLosses, Pages};

/// Packed events start with the number of pieces, which trace-cmd leaves out of their size.
const PIECE_COUNT_BYTES: usize = 4;

/// The format.
pub struct TraceDat;

impl InputFormat for TraceDat {
    fn name(&self) -> &'static str {
        "trace.dat"
    }

    fn describe(&self) -> &'static str {
        "Recordings of `trace-cmd record`, versions 6 and 7, packed or not."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        file::is_trace_dat(head.bytes)
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let name = input.name().to_owned();
        let content = Content::of(input)?;
        let nothing = |first| ImportError::Nothing { file: name.clone(), format: self.name(), first };
        let mut file = File::parse(content.bytes()).map_err(|what| nothing(Some(format!("it {what}"))))?;
        cut::find_events(&mut file, content.bytes());
        if let Some(text) = &file.latency {
            let text = Input::of_bytes(name, &content.bytes()[text.clone()])?;
            return super::FtraceText.read(text, options);
        }
        let mut symbolizer = Symbolizer::new(options.symbols.clone());
        let capture = Reading::new(&file, &content, options).run(&mut symbolizer)?;
        capture.ok_or_else(|| nothing(file.damage.first().cloned()))
    }
}

/// An import in progress.
struct Reading<'a> {
    file: &'a File<'a>,
    content: &'a Content<'a>,
    /// Indices of classes, by number.
    classes: Vec<Option<u32>>,
    ftrace: Ftrace<'a>,
    cpus: Vec<Cpu<'a>>,
    /// Buffers with another clock than the first.
    left_out: usize,
    /// Events of each class that fill no table.
    others: Vec<u64>,
    unknown: u64,
    untimed: u64,
    losses: PageLosses,
}

struct Cpu<'a> {
    cpu: u32,
    pages: Pages<'a>,
    gap: Gap,
    /// Bytes that were counted as used.
    counted: usize,
}

impl<'a> Reading<'a> {
    fn new(file: &'a File<'a>, content: &'a Content<'a>, options: &ImportOptions) -> Self {
        let mut classes = Vec::new();
        for (index, class) in file.classes.iter().enumerate() {
            let id = class.id as usize;
            if id > usize::from(u16::MAX) {
                continue;
            }
            if classes.len() <= id {
                classes.resize(id + 1, None);
            }
            classes[id] = Some(index as u32);
        }
        let mut trace = Trace::new(described(file), options.folder.clone());
        for line in file.command_names.split(|&byte| byte == b'\n') {
            let mut words = line.splitn(2, |&byte| byte == b' ');
            let tid = words.next().and_then(crate::import::text::number).and_then(|tid| u32::try_from(tid).ok());
            if let (Some(tid), Some(name)) = (tid, words.next()) {
                trace.describe(tid, None, name);
            }
        }
        Self {
            file,
            content,
            classes,
            ftrace: Ftrace::new(trace, &file.kallsyms),
            cpus: Vec::new(),
            left_out: 0,
            others: vec![0; file.classes.len()],
            unknown: 0,
            untimed: 0,
            losses: PageLosses::default(),
        }
    }

    /// Reads all events by time. `None` if there is none.
    fn run(mut self, symbolizer: &mut Symbolizer) -> Result<Option<Capture>, DiskError> {
        self.open();
        let mut next = BinaryHeap::new();
        for index in 0..self.cpus.len() {
            if self.advance(index) {
                next.push(Reverse((self.cpus[index].pages.clock(), index)));
            }
        }
        while let Some(mut first) = next.peek_mut() {
            let Reverse((_, index)) = *first;
            self.event(index);
            if self.advance(index) {
                first.0.0 = self.cpus[index].pages.clock();
            } else {
                PeekMut::pop(first);
            }
        }
        self.finish(symbolizer)
    }

    /// Finds the events of all CPUs. Those of a buffer with another clock cannot be put in order with the rest.
    fn open(&mut self) {
        let has_events = |buffer: &&Buffer| buffer.cpus.iter().any(|cpu| cpu.size > 0);
        let buffers: Vec<&Buffer> = self.file.buffers.iter().filter(has_events).collect();
        for buffer in &buffers {
            if buffer.clock != buffers[0].clock {
                self.left_out += 1;
                continue;
            }
            for data in &buffer.cpus {
                self.open_cpu(buffer, data.cpu, data.offset, data.size);
            }
        }
    }

    fn open_cpu(&mut self, buffer: &Buffer, cpu: u32, offset: u64, size: u64) {
        let bytes = self.content.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count_bytes = if buffer.is_packed { PIECE_COUNT_BYTES } else { 0 };
        let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(count_bytes);
        let end = start.saturating_add(size).min(bytes.len());
        if end - start < size {
            self.losses.damaged += 1;
            self.losses.skipped_bytes += (size - (end - start)) as u64;
            self.losses.first_damage.get_or_insert("the file ends before its events do");
        }
        let (page, endian, bytes) = (self.file.page, self.file.endian, &bytes[start..end]);
        let pages = match buffer.is_packed {
            true => Pages::packed(bytes, self.file.compression, buffer.page_bytes, page, endian),
            false => Pages::plain(bytes, buffer.page_bytes, page, endian),
        };
        self.cpus.push(Cpu { cpu, pages, gap: Gap::None, counted: 0 });
    }

    /// Goes to the next event of a CPU. False at the end.
    fn advance(&mut self, index: usize) -> bool {
        let cpu = &mut self.cpus[index];
        let gap = cpu.pages.next();
        let used = cpu.pages.used - std::mem::replace(&mut cpu.counted, cpu.pages.used);
        if used > 0 {
            self.content.touch(used);
            self.content.advance(used);
        }
        cpu.gap = gap.unwrap_or(Gap::None);
        gap.is_some()
    }

    /// The time of an event, in ns.
    fn time_ns(&self, clock: u64) -> Option<u64> {
        let ns = self.file.counter.map_or(clock, |counter| counter.ns(clock));
        ns.checked_add_signed(self.file.offset)
    }

    fn event(&mut self, index: usize) {
        let (cpu, endian) = (&self.cpus[index], self.file.endian);
        let event = cpu.pages.event();
        let Some(time_ns) = self.time_ns(cpu.pages.clock()) else {
            self.untimed += 1;
            return;
        };
        self.ftrace.trace.at(time_ns);
        if cpu.gap == Gap::Lost {
            self.ftrace.trace.lose(cpu.cpu, time_ns);
        }
        let id = event.get(..2).map(|id| match endian {
            linux_perf_event_reader::Endianness::LittleEndian => u16::from_le_bytes([id[0], id[1]]),
            linux_perf_event_reader::Endianness::BigEndian => u16::from_be_bytes([id[0], id[1]]),
        });
        let class = id.and_then(|id| *self.classes.get(usize::from(id))?);
        let Some(class_index) = class else {
            self.unknown += 1;
            return;
        };
        let class: &Class = &self.file.classes[class_index as usize];
        let Some(kind) = class.kind else {
            self.others[class_index as usize] += 1;
            return;
        };
        let head = EventHead {
            time_ns,
            cpu: Some(cpu.cpu),
            tid: class.tid(event, endian),
            in_interrupt: class.in_interrupt(event, endian),
        };
        self.ftrace.event(kind, head, &class.fields(event, endian));
    }

    fn finish(mut self, symbolizer: &mut Symbolizer) -> Result<Option<Capture>, DiskError> {
        let mut all = std::mem::take(&mut self.losses);
        for cpu in &self.cpus {
            let losses = cpu.pages.losses();
            all.events = all.events.saturating_add(losses.events);
            all.uncounted += losses.uncounted;
            all.damaged += losses.damaged;
            all.skipped_bytes = all.skipped_bytes.saturating_add(losses.skipped_bytes);
            all.first_damage = all.first_damage.or(losses.first_damage);
        }
        let notes = self.notes(&all);
        let losses = Losses {
            lost_records: all.events.max(self.file.lost),
            malformed_records: all.damaged + self.file.damage.len() as u64,
            ..Losses::default()
        };
        self.ftrace.trace.finish(losses, notes, REMEDIES, symbolizer)
    }

    fn notes(&self, losses: &PageLosses) -> Vec<String> {
        let mut notes = Vec::new();
        let lost = losses.events.max(self.file.lost);
        if lost > 0 || losses.uncounted > 0 {
            let lost = if lost > 0 { grouped(lost.into()) } else { "an unknown number of".to_owned() };
            notes.push(format!(
                "The tracer lost {lost} events, because its buffers were full: waits and scopes around them are not exact. \
                 Larger buffers lose less (`trace-cmd record -b KILOBYTES`)."
            ));
        }
        if let Some(first) = losses.first_damage {
            notes.push(note_of_damage(losses.damaged, losses.skipped_bytes, first));
        }
        notes.extend(
            self.file.damage.iter().map(|damage| format!("The description of the trace is damaged: {damage}.")),
        );
        if self.file.compression == Compression::Other {
            notes.push(
                "The file is packed in a way that is not known; `trace-cmd convert` writes it unpacked.".to_owned(),
            );
        }
        if self.left_out > 0 {
            let buffers = plural(self.left_out, "instance");
            notes.push(format!("{buffers} of the tracer have another clock and were skipped."));
        }
        for (count, why) in [(self.unknown, "an unknown format"), (self.untimed, "no valid time")] {
            if count > 0 {
                notes.push(format!("{} have {why} and were skipped.", plural(count as usize, "event")));
            }
        }
        let names = self.file.classes.iter().map(|class| class.name.as_str());
        let marker = ("print", self.ftrace.unknown_markers);
        notes.extend(others::note(names.zip(self.others.iter().copied()).chain([marker]), self.ftrace.trace.events()));
        notes
    }
}

fn described(file: &File<'_>) -> CaptureInfo {
    let of_buffers = || file.buffers.iter().find_map(|buffer| buffer.clock.clone());
    let clock = file.clock.clone().or_else(of_buffers);
    CaptureInfo {
        // The caller sets the file.
        origin: Origin::Imported { format: TraceDat.name().to_owned(), file: String::new() },
        clock: clock.map(|clock| match clock.as_str() {
            "mono" => "CLOCK_MONOTONIC".to_owned(),
            "mono_raw" => "CLOCK_MONOTONIC_RAW".to_owned(),
            "boot" => "CLOCK_BOOTTIME".to_owned(),
            clock => format!("ftrace's clock `{clock}`"),
        }),
        machine: Some(machine(file)),
        ..CaptureInfo::default()
    }
}

/// `Linux HOST RELEASE VERSION... ARCHITECTURE`
fn machine(file: &File<'_>) -> Machine {
    let words: Vec<&str> = file.machine.as_deref().unwrap_or_default().split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default().to_owned();
    Machine {
        host: word(1),
        kernel: word(2),
        architecture: word(words.len().max(4) - 1),
        cores: file.cpus,
        ..Machine::default()
    }
}

#[cfg(test)]
mod tests;

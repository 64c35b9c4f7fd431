//! Perfetto's traces (`.perfetto-trace`, `.pftrace`): packets of protobuf messages.
//!
//! Packets come in the order of their writers, so all events are read first and put in order by time. An import keeps them in a file
//! until then (56 bytes each); views that read a trace keep them in memory.

mod clocks;
mod order;
mod packets;
mod proto;
mod records;
mod sched;
mod tracks;

use std::io::Read as _;
use std::sync::Arc;

use prost::Message as _;
use rustc_hash::FxHashMap;
use stepscope_model::disk::DiskError;
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Losses, Machine, Origin};
use stepscope_symbolize::Symbolizer;

use super::content::Content;
use super::ftrace::Ftrace;
use super::text::text;
use super::trace::{Caller, Remedies, Trace, note_of_damage};
use super::{Head, ImportError, ImportOptions, Input, InputFormat};
use clocks::{BOOT, Clocks};
use order::{Names, Ordered, What};
use packets::{Damage, Packets};
use proto::{ProcessTree, SystemInfo, TracePacket, TrackEvent};
use sched::Sched;
use tracks::{Owner, Tracks};

const REMEDIES: Remedies = Remedies {
    wake_ups: "add the event sched/sched_waking to the data source linux.ftrace",
    processes: "The data source linux.process_stats records them.",
    stacks: "they are not read from Perfetto's traces",
};

/// Most bytes of compressed packets after unpacking.
const LARGEST_PACKED: u64 = 256 << 20;

/// `TracePacket.SEQ_INCREMENTAL_STATE_CLEARED`
const STATE_CLEARED: u32 = 1;

/// `TrackEvent.Type`, and the phases of older events (`ph` in Chrome's JSON).
mod kind {
    pub const BEGIN: i32 = 1;
    pub const END: i32 = 2;
    pub const INSTANT: i32 = 3;
    pub const COUNTER: i32 = 4;
    pub const PHASE_BEGIN: i32 = b'B' as i32;
    pub const PHASE_END: i32 = b'E' as i32;
    pub const PHASE_COMPLETE: i32 = b'X' as i32;
}

/// The format.
pub struct Perfetto;

impl InputFormat for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn describe(&self) -> &'static str {
        "Traces of Perfetto: the scheduler, slices of threads, counters, processes."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        packets::is_trace(head.bytes)
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let name = input.name().to_owned();
        let content = Content::of(input)?;
        let mut reading = Reading { ordered: Ordered::new(options.folder.clone()), ..Reading::default() };
        let mut packets = Packets::new(content.bytes());
        let mut done = 0;
        while let Some(packet) = packets.next() {
            reading.packet_or_damage(packet);
            content.touch(packets.offset() - done);
            done = packets.offset();
            content.progress(done);
        }
        let first = reading.first_damage.clone();
        let mut symbolizer = Symbolizer::new(options.symbols.clone());
        let capture = reading.finish(&mut symbolizer, options)?;
        capture.ok_or_else(|| ImportError::Nothing { file: name, format: self.name(), first })
    }
}

/// What packets of a sequence refer to.
#[derive(Default)]
struct Sequence {
    event_names: FxHashMap<u64, Arc<str>>,
    clock: Option<u32>,
    track: Option<u64>,
    /// The thread of a sequence of older events.
    thread: Option<Caller>,
}

/// A trace that is read.
#[derive(Default)]
struct Reading {
    sequences: FxHashMap<u32, Sequence>,
    clocks: Clocks,
    tracks: Tracks,
    sched: Sched,
    ordered: Ordered,
    names: Names,
    /// Processes with their programs, and threads with their names.
    processes: Vec<(u32, Vec<u8>)>,
    threads: Vec<(Caller, Vec<u8>)>,
    machine: Option<Machine>,
    /// Slices of tracks without a thread.
    without_thread: u64,
    instants: u64,
    /// Gaps, each of an unknown number of events.
    gaps: u64,
    damaged: u64,
    skipped_bytes: u64,
    first_damage: Option<String>,
}

impl Reading {
    fn packet_or_damage(&mut self, packet: Result<&[u8], Damage>) {
        match packet {
            Ok(bytes) => match TracePacket::decode(bytes) {
                Ok(packet) => self.packet(packet),
                Err(error) => self.damage(format!("a packet is invalid ({error})"), bytes.len()),
            },
            Err(Damage { offset, what, skipped_bytes }) => self.damage(format!("byte {offset}: {what}"), skipped_bytes),
        }
    }

    fn damage(&mut self, what: String, bytes: usize) {
        self.damaged += 1;
        self.skipped_bytes += bytes as u64;
        self.first_damage.get_or_insert(what);
    }

    fn packet(&mut self, mut packet: TracePacket) {
        if let Some(packed) = packet.compressed_packets.take() {
            self.packed(&packed);
        }
        let id = packet.sequence.unwrap_or(0);
        self.gaps += u64::from(packet.previous_packet_dropped.is_some_and(|dropped| dropped != 0));
        let clock = self.sequence(id, &mut packet);
        if let Some(snapshot) = &packet.clock_snapshot {
            self.clocks.snapshot(id, snapshot);
        }
        let time_ns = packet.timestamp.map(|timestamp| self.clocks.ns(id, clock, timestamp));
        self.describe(id, &mut packet);
        if let Some(bundle) = packet.ftrace_events {
            self.gaps += u64::from(bundle.lost_events);
            self.sched.bundle(bundle, &mut self.names, &mut self.ordered);
        }
        if let (Some(event), Some(time_ns)) = (packet.track_event, time_ns) {
            self.track_event(id, &event, time_ns);
        }
    }

    /// Takes what later packets of the sequence refer to. Gives the clock of this one.
    fn sequence(&mut self, id: u32, packet: &mut TracePacket) -> u32 {
        let sequence = self.sequences.entry(id).or_default();
        let flags = packet.sequence_flags.unwrap_or(0);
        if flags & STATE_CLEARED != 0 || packet.incremental_state_cleared == Some(true) {
            *sequence = Sequence { thread: sequence.thread, ..Sequence::default() };
        }
        if let Some(defaults) = &packet.defaults {
            let track = defaults.track_event_defaults.as_ref().and_then(|defaults| defaults.track_uuid);
            sequence.clock = defaults.timestamp_clock_id.or(sequence.clock);
            sequence.track = track.or(sequence.track);
        }
        for name in packet.interned_data.take().map(|interned| interned.event_names).unwrap_or_default() {
            sequence.event_names.insert(name.iid, text(&name.name).into());
        }
        packet.timestamp_clock_id.or(sequence.clock).unwrap_or(BOOT)
    }

    /// Takes what a packet says of processes, threads, tracks and the machine.
    fn describe(&mut self, id: u32, packet: &mut TracePacket) {
        if let Some(thread) = packet.thread_descriptor.take() {
            let caller = self.thread(thread.pid.into(), thread.tid, thread.name);
            self.sequences.entry(id).or_default().thread = caller;
        }
        if let Some(descriptor) = packet.track_descriptor.take() {
            self.tracks.add(&descriptor);
            if let Some(thread) = descriptor.thread {
                self.thread(thread.pid.into(), thread.tid, thread.name);
            }
            if let Some(process) = descriptor.process {
                self.process(process.pid, process.command_line.into_iter().next().or(process.name));
            }
        }
        if let Some(process) = packet.process_descriptor.take() {
            self.process(process.pid, process.command_line.into_iter().next().or(process.name));
        }
        if let Some(ProcessTree { processes, threads }) = packet.process_tree.take() {
            for process in processes {
                self.process(process.pid, process.command_line.into_iter().next());
            }
            for thread in threads {
                self.thread(thread.tgid.into(), thread.tid.into(), thread.name);
            }
        }
        if let Some(info) = packet.system_info.take() {
            self.machine = Some(machine(info));
        }
    }

    fn packed(&mut self, packed: &[u8]) {
        let mut bytes = Vec::new();
        let unpacked = flate2::read::ZlibDecoder::new(packed).take(LARGEST_PACKED).read_to_end(&mut bytes);
        if let Err(error) = unpacked {
            self.damage(format!("compressed packets cannot be unpacked ({error})"), packed.len());
        }
        for packet in Packets::new(&bytes) {
            match packet.map(TracePacket::decode) {
                // None is within another.
                Ok(Ok(packet)) => self.packet(TracePacket { compressed_packets: None, ..packet }),
                _ => self.damage("a compressed packet is invalid".to_owned(), 0),
            }
        }
    }

    fn process(&mut self, pid: i32, program: Option<Vec<u8>>) {
        if let Some(pid) = u32::try_from(pid).ok().filter(|&pid| pid != 0) {
            self.processes.push((pid, program.unwrap_or_default()));
            self.threads.push((Caller { pid, tid: pid }, Vec::new()));
        }
    }

    fn thread(&mut self, pid: i64, tid: i64, name: Option<Vec<u8>>) -> Option<Caller> {
        let pid = u32::try_from(pid).unwrap_or(0);
        let caller = Caller { pid, tid: u32::try_from(tid).ok().filter(|&tid| tid != 0)? };
        self.threads.push((caller, name.unwrap_or_default()));
        Some(caller)
    }

    fn track_event(&mut self, id: u32, event: &TrackEvent, time_ns: u64) {
        let sequence = self.sequences.entry(id).or_default();
        let track = event.track_uuid.or(sequence.track).filter(|&track| track != 0);
        let interned = event.name_iid.and_then(|iid| sequence.event_names.get(&iid).cloned());
        let name = event.name.as_ref().map(|name| Arc::from(text(name))).or(interned);
        let owner = match (track, sequence.thread) {
            (Some(track), _) => self.tracks.owner(track),
            (None, Some(Caller { pid, tid })) => Owner::Thread { pid, tid },
            (None, None) => Owner::Nobody,
        };
        let phase = event.legacy.as_ref().map_or(0, |legacy| legacy.phase);
        if event.kind == kind::COUNTER {
            return self.counter(event, track, owner, time_ns);
        }
        if event.kind == kind::INSTANT {
            self.instants += 1;
            return;
        }
        let of_thread = track.is_none_or(|track| self.tracks.is_of_thread(track));
        let Owner::Thread { pid, tid } = owner else {
            self.without_thread += 1;
            return;
        };
        if !of_thread {
            self.without_thread += 1;
            return;
        }
        let caller = Caller { pid, tid };
        let name = name.unwrap_or_else(|| "[unnamed]".into());
        let what = match (event.kind, phase) {
            (kind::BEGIN, _) | (_, kind::PHASE_BEGIN) => What::Begin { caller, name },
            (kind::END, _) | (_, kind::PHASE_END) => What::End { caller },
            (_, kind::PHASE_COMPLETE) => {
                let duration_us = event.legacy.as_ref().map_or(0, |legacy| legacy.duration_us.max(0)) as u64;
                What::Slice { caller, name, end_ns: time_ns.saturating_add(duration_us.saturating_mul(1000)) }
            }
            _ => {
                self.instants += 1;
                return;
            }
        };
        self.ordered.add(time_ns, what);
    }

    fn counter(&mut self, event: &TrackEvent, track: Option<u64>, owner: Owner, time_ns: u64) {
        let value = event.counter_value.or(event.double_counter_value.map(|value| value.round() as i64));
        let (Some(track), Some(value)) = (track, value) else { return };
        let name = self.tracks.name(track).unwrap_or_else(|| "counter".into());
        let value = self.tracks.reading(track, value);
        let what = match owner {
            Owner::Thread { pid, tid } => What::Count { caller: Caller { pid, tid }, name, value },
            Owner::Process(pid) => What::Measure { pid: Some(pid), name, value },
            Owner::Nobody => What::Measure { pid: None, name, value },
        };
        self.ordered.add(time_ns, what);
    }

    fn finish(mut self, symbolizer: &mut Symbolizer, options: &ImportOptions) -> Result<Option<Capture>, DiskError> {
        let info = CaptureInfo {
            // The caller sets the file.
            origin: Origin::Imported { format: Perfetto.name().to_owned(), file: String::new() },
            clock: Some("CLOCK_BOOTTIME".to_owned()),
            machine: self.machine.take(),
            ..CaptureInfo::default()
        };
        let mut trace = Trace::new(info, options.folder.clone());
        for (caller, name) in &self.threads {
            trace.describe(caller.tid, Some(caller.pid).filter(|&pid| pid != 0), name);
        }
        for (pid, program) in self.processes.iter().filter(|(_, program)| !program.is_empty()) {
            trace.exec(*pid, program);
        }
        let notes = self.notes();
        let losses = Losses { malformed_records: self.damaged, lost_records: self.gaps, ..Losses::default() };
        let mut ftrace = Ftrace::new(trace, b"");
        self.ordered.give(&self.names, &mut ftrace)?;
        ftrace.trace.finish(losses, notes, REMEDIES, symbolizer)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.gaps > 0 {
            notes.push(format!(
                "The trace lost events in {}: waits and scopes around them are not exact. Larger buffers lose less \
                 (`buffers.size_kb`).",
                plural(self.gaps as usize, "place")
            ));
        }
        if let Some(first) = &self.first_damage {
            notes.push(note_of_damage(self.damaged, self.skipped_bytes, first));
        }
        for (count, what) in [
            (self.without_thread, "events of slices belong to no thread"),
            (self.instants, "instant events fill no table"),
        ] {
            if count > 0 {
                notes.push(format!("{} {what} and were skipped.", grouped(count.into())));
            }
        }
        notes
    }
}

fn machine(info: SystemInfo) -> Machine {
    let uts = info.utsname.unwrap_or_default();
    Machine {
        host: text(&info.machine_name).into_owned(),
        kernel: text(&uts.release).into_owned(),
        architecture: text(&uts.machine).into_owned(),
        cores: info.cpus,
        ..Machine::default()
    }
}

#[cfg(test)]
mod tests;

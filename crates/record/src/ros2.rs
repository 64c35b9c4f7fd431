//! Messages and callbacks of ROS 2, by uprobes on the functions of its library `tracetools`.
//!
//! rcl, rmw and rclcpp call these functions whether or not a tracer listens, so programs need no rebuild and no LTTng session. A
//! call costs its program one to three microseconds while it is recorded. The probes are set in the file, before the program
//! starts where the library can be found: names of nodes and topics come once, when they are made. For programs that run
//! already, the topic is read from the transport's handle.
//!
//! The uprobes are of the whole machine and calls of other processes are left out when they are read: see
//! [`calls`](crate::calls) for why a uprobe is not inherited by threads.

mod functions;
mod libraries;
#[cfg(target_arch = "x86_64")]
mod probe_place;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use linux_perf_event_reader::{EventRecord, RawData, RawEventRecord};
use rustc_hash::FxHashMap;
use stepscope_assemble::Sink;
use stepscope_assemble::ros2::{CallbackEvent, Caller, Fields, Kind as Call, Messages};
use stepscope_model::NO_ROS2;
use stepscope_model::quantity::plural;

use crate::clock;
use crate::marks::Marks;
use crate::perf::{Events, FunctionProbe, Kind, Scope};
use functions::{FUNCTIONS, Function, Read};
pub(crate) use libraries::Libraries;
use libraries::Library;

/// 512 KiB of calls for each CPU: some 5,000 between two looks.
const PAGES: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");
/// A process that starts maps the library in one of its first moments.
const LOOKS: u8 = 6;

/// The calls of tracetools in the recorded processes.
pub(crate) struct Ros2 {
    libraries: Libraries,
    /// By the tracepoint's id.
    probes: FxHashMap<u16, Probe>,
    /// How often a process was looked at for libraries.
    looked_at: BTreeMap<u32, u8>,
    messages: Messages,
    scopes: Vec<(Caller, Arc<str>, u64, u64)>,
    calls: u64,
    refused: Option<String>,
    /// Programs had started before their calls were observed.
    is_late: bool,
}

/// A function that is observed, and where its arguments are in the raw data.
struct Probe {
    call: Call,
    arguments: Vec<(&'static str, Read, usize)>,
}

impl Ros2 {
    /// Observes the libraries.
    pub fn new(libraries: Libraries, events: &mut Events) -> Self {
        let mut ros2 = Self {
            libraries,
            probes: FxHashMap::default(),
            looked_at: BTreeMap::new(),
            messages: Messages::new(clock::realtime_offset_ns()),
            scopes: Vec::new(),
            calls: 0,
            refused: None,
            is_late: false,
        };
        if *events.scope() != Scope::Machine {
            ros2.refused = Some("calls can be observed for the whole machine only, which needs root".to_owned());
        }
        ros2.probe_new(events);
        ros2
    }

    /// Observes the libraries of programs that have started.
    pub fn of_running(libraries: Libraries, events: &mut Events) -> Self {
        Self { is_late: true, ..Self::new(libraries, events) }
    }

    /// Observes libraries that processes have mapped since.
    pub fn look(&mut self, pids: impl Iterator<Item = u32>, events: &mut Events) {
        let mut looked_at = std::mem::take(&mut self.looked_at);
        for pid in pids {
            let looks = self.looked_at.entry(pid).or_insert_with(|| looked_at.remove(&pid).unwrap_or(0));
            if *looks < LOOKS {
                *looks += 1;
                self.libraries.add_of_process(pid);
            }
        }
        self.is_late |= self.libraries.has_new();
        self.probe_new(events);
    }

    fn probe_new(&mut self, events: &mut Events) {
        for library in self.libraries.take_new() {
            if self.refused.is_some() {
                return;
            }
            if let Err(error) = self.probe(&library, events) {
                self.refused = Some(format!(
                    "the kernel refuses uprobes on {} ({error}): they need root, and tracefs",
                    library.path.display()
                ));
            }
        }
    }

    fn probe(&mut self, library: &Library, events: &mut Events) -> std::io::Result<()> {
        let mut attributes = Vec::new();
        for Function { call, arguments } in FUNCTIONS {
            let Some(&offset) = library.functions.get(call) else { continue };
            let fetched: Vec<(&str, String)> = arguments.iter().map(|(name, read)| (*name, read.fetched())).collect();
            let probe = FunctionProbe::new(&library.path, offset, &fetched)?;
            let at = |&(name, read): &(&'static str, Read)| Ok((name, read, probe.offset_of(name)?));
            let arguments = arguments.iter().map(at).collect::<std::io::Result<_>>()?;
            // The raw data begin with the tracepoint's id, in 16 bits.
            self.probes.insert(probe.tracepoint.id as u16, Probe { call: *call, arguments });
            attributes.push(events.calls_at(Kind::Ros2, &probe));
            events.keep(probe);
        }
        events.add_together(Kind::Ros2, &attributes, PAGES)
    }

    /// Takes a sample: a call.
    pub fn take(&mut self, record: &RawEventRecord<'_>) {
        let Ok(EventRecord::Sample(sample)) = record.parse() else { return };
        let (Some(pid), Some(tid), Some(time_ns)) = (sample.pid, sample.tid, sample.timestamp) else { return };
        let Some(RawData::Single(raw)) = sample.raw else { return };
        let Some(id) = raw.first_chunk().map(|id| u16::from_ne_bytes(*id)) else { return };
        let Some(probe) = self.probes.get(&id) else { return };
        self.calls += 1;
        let caller = Caller { pid: pid as u32, tid: tid as u32 };
        let event = self.messages.take(probe.call, &Arguments { raw, probe }, caller, time_ns);
        if let Some(CallbackEvent::Ended { started: Some((name, start_ns)), .. }) = event {
            self.scopes.push((caller, name, start_ns, time_ns));
        }
    }

    /// Writes what the calls since the last time say.
    pub fn write(&mut self, marks: &mut Marks, sink: &mut impl Sink) {
        while let Some(stage) = self.messages.next_stage() {
            marks.add_stage(stage, sink);
        }
        for (caller, name, start_ns, end_ns) in self.scopes.drain(..) {
            marks.add_scope(caller, name, start_ns, end_ns, sink);
        }
    }

    /// What there is to know of them.
    pub fn notes(&self) -> Vec<String> {
        if let Some(reason) = &self.refused {
            return vec![format!("{NO_ROS2}: {reason}.")];
        }
        let files = self.libraries.described();
        if files.is_empty() {
            return vec![format!(
                "{NO_ROS2}: no file with the functions of tracetools was found. It is searched as \
                 libtracetools.so in LD_LIBRARY_PATH, AMENT_PREFIX_PATH, /opt/ros and in what the processes map, and in the program."
            )];
        }
        if self.calls == 0 {
            return vec![format!(
                "No messages of ROS 2: no recorded process called tracetools ({files}). Its nodes use another file, or were built \
                 with TRACETOOLS_DISABLED."
            )];
        }
        let mut notes = vec![format!(
            "Messages and callbacks of ROS 2 come from uprobes on {files}. Each call costs its thread some µs."
        )];
        if self.is_late {
            notes.push(
                "The program had started before its calls were observed: earlier messages are missing, and nodes, topics and timers that \
                 were made before have no names. All are there if `record --with ros2` launches the program itself, with its \
                 libtracetools.so in LD_LIBRARY_PATH or AMENT_PREFIX_PATH."
                    .to_owned(),
            );
        }
        let mut note = |count: u64, text: &str| {
            if count > 0 {
                notes.push(format!("{} {text}", plural(count as usize, "message")));
            }
        };
        note(
            self.messages.unmatched,
            "without a publication in the recording: they are of other machines, or were sent before.",
        );
        note(
            self.messages.unknown,
            "of unknown publishers and subscriptions were skipped: their programs ran before the recording, and their version of ROS 2 \
             names no topic when it publishes. Record from their start.",
        );
        notes
    }
}

/// The arguments of a call, as the kernel fetched them.
struct Arguments<'a> {
    raw: &'a [u8],
    probe: &'a Probe,
}

impl Arguments<'_> {
    fn find(&self, field: &str) -> Option<(Read, &[u8])> {
        let &(_, read, at) = self.probe.arguments.iter().find(|(name, ..)| *name == field)?;
        Some((read, self.raw.get(at..)?))
    }
}

impl Fields for Arguments<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        let (read, bytes) = self.find(field)?;
        match read {
            Read::Word(_) | Read::First(_) | Read::Second(_) => {
                bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
            }
            Read::Byte(_) => bytes.first().map(|&byte| byte.into()),
            Read::Text(_) | Read::TopicOf(_) => None,
        }
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        let (read, bytes) = self.find(field)?;
        if !matches!(read, Read::Text(_) | Read::TopicOf(_)) {
            return None;
        }
        // Where it is: 16 bits of offset, and 16 bits of length.
        let place = u32::from_ne_bytes(*bytes.first_chunk()?);
        let (at, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let text = self.raw.get(at..at.checked_add(length)?)?;
        Some(text.split(|&byte| byte == 0).next().unwrap_or_default())
    }
}

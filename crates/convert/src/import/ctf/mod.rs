//! CTF 1.8 traces: LTTng's of the kernel and of programs, and those of ros2_tracing.
//!
//! Scheduler events fill threads and waits (`sched_switch`, `sched_waking`, `sched_wakeup`, `sched_process_*`). Callbacks
//! of ROS 2 (`ros2:callback_start`, `ros2:callback_end`) and functions compiled with `-finstrument-functions`
//! (`lttng_ust_cyg_profile*`) fill scopes; messages of ROS 2 (`ros2:rcl_publish`, `ros2:rmw_take`) and its callbacks fill flows. Fields are found by name, because they differ between versions of the tracers.
//! Other events are counted in a note.

mod functions;
mod kernel;
mod kind;
mod ros2;

use stepscope_ctf::{EnvironmentValue, Event, FieldPlace, Losses, Reader, Trace, Value};
use stepscope_model::disk::DiskError;
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Machine, Origin};
use stepscope_symbolize::Symbolizer;

use super::trace::{self, Caller, Remedies, others};
use super::{Head, ImportError, ImportOptions, Input, InputFormat};
use functions::Functions;
use kind::Kind;
use stepscope_assemble::ros2::Messages;

const REMEDIES: Remedies = Remedies {
    wake_ups: "enable the event sched_waking",
    processes: "`lttng add-context --kernel --type=pid --type=tid` records them.",
    stacks: "CTF traces have none",
};

/// CTF 1.8 traces.
pub struct Ctf;

impl InputFormat for Ctf {
    fn name(&self) -> &'static str {
        "ctf"
    }

    fn describe(&self) -> &'static str {
        "A folder with a CTF 1.8 trace: LTTng of the kernel or of programs, ros2_tracing."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        stepscope_ctf::is_metadata(head.bytes)
    }

    fn is_a_folder(&self) -> bool {
        true
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let Some(folder) = input.folder() else { return Err(ImportError::NotAFolder(file)) };
        let mut reader = Reader::open(folder).map_err(|error| ImportError::Trace { file: file.clone(), error })?;
        let capture = Import::new(&reader, options).run(&mut reader)?;
        capture.ok_or_else(|| ImportError::Nothing {
            file,
            format: self.name(),
            first: reader.losses().first_damage.clone().or_else(|| without_clock(&reader)),
        })
    }
}

/// The reader gives a trace without clocks one without a name.
fn without_clock(reader: &Reader) -> Option<String> {
    let mut clocks = reader.traces().iter().flat_map(|trace| &trace.schema.clocks);
    let has_clock = clocks.any(|clock| !clock.name.is_empty());
    (!has_clock).then(|| "its metadata name no clock, so its events have no times".to_owned())
}

struct Import {
    /// By trace and class.
    classes: Vec<Vec<Class>>,
    /// Events that fill no table, by trace and class.
    others: Vec<Vec<u64>>,
    /// Time zero of the capture, in ns since 1970: that of the first trace's clock.
    origin_ns: i64,
    events: u64,
    untimed: u64,
    /// Events of programs without a thread id.
    without_thread: u64,
    trace: trace::Trace,
    messages: Messages,
    functions: Functions,
    symbolizer: Symbolizer,
    /// The last caller of each stream, by number: most events are of the thread of the event before.
    callers: Vec<LastCaller>,
}

/// A caller that was seen, and the bytes of the context that named it.
#[derive(Default)]
struct LastCaller {
    bytes: Vec<u8>,
    caller: Option<Caller>,
}

/// A class of events, with the places of the fields that all kinds need.
#[derive(Debug)]
struct Class {
    kind: Kind,
    tid: Option<FieldPlace>,
    pid: Option<FieldPlace>,
    /// The thread's name.
    name: Option<FieldPlace>,
    /// The address of a function.
    address: Option<FieldPlace>,
    /// The address of a callback.
    callback: Option<FieldPlace>,
    /// The address of a message.
    message: Option<FieldPlace>,
    /// Whether the context of the stream alone says who made an event.
    names_caller: bool,
    /// Fields of the kernel's events.
    kernel: kernel::Places,
}

impl Class {
    fn all(trace: &Trace) -> Vec<Self> {
        let schema = &trace.schema;
        let of = |(class, event): (usize, &stepscope_ctf::EventClass)| {
            let context = |name| schema.context_field(class, name);
            let tid = context("vtid").or_else(|| context("tid"));
            let pid = context("vpid").or_else(|| context("pid"));
            let name = context("procname");
            Self {
                kind: Kind::of(&event.name),
                tid,
                pid,
                name,
                names_caller: [tid, pid, name].iter().flatten().all(FieldPlace::is_of_stream),
                address: schema.field(class, "addr"),
                callback: schema.field(class, "callback"),
                message: schema.field(class, "message"),
                kernel: kernel::Places::of(schema, class),
            }
        };
        schema.events.iter().enumerate().map(of).collect()
    }

    fn pid(&self, event: &Event<'_>) -> Option<u32> {
        u32::try_from(event.number(self.pid?)?).ok()
    }

    fn address(&self, event: &Event<'_>) -> Option<u64> {
        event.number(self.address?)
    }
}

impl Import {
    fn new(reader: &Reader, options: &ImportOptions) -> Self {
        let traces = reader.traces();
        let classes: Vec<Vec<Class>> = traces.iter().map(Class::all).collect();
        let mut trace = trace::Trace::new(described(reader), options.folder.clone());
        if classes.iter().flatten().any(|class| matches!(class.kind, Kind::Function(_))) {
            trace.name_later();
        }
        let origin = traces.iter().find_map(|trace| trace.schema.clocks.first());
        let origin_ns = origin.map_or(0, |clock| clock.ns(0));
        Self {
            others: classes.iter().map(|classes| vec![0; classes.len()]).collect(),
            classes,
            origin_ns,
            events: 0,
            untimed: 0,
            without_thread: 0,
            trace,
            messages: Messages::new(origin_ns),
            functions: Functions::default(),
            symbolizer: Symbolizer::new(options.symbols.clone()),
            callers: Vec::new(),
        }
    }

    /// Reads all events. `None` if there is no event with a time.
    fn run(mut self, reader: &mut Reader) -> Result<Option<Capture>, DiskError> {
        let vpids: Vec<Option<u32>> = reader.traces().iter().map(environment_pid).collect();
        let classes = std::mem::take(&mut self.classes);
        while let Some(event) = reader.next_event() {
            self.events += 1;
            match event.time_ns().and_then(|ns| u64::try_from(ns.checked_sub(self.origin_ns)?).ok()) {
                Some(time_ns) => {
                    let class = &classes[event.trace()][event.class_index()];
                    self.event(class, &event, time_ns, vpids[event.trace()]);
                }
                None => self.untimed += 1,
            }
            if self.trace.wants_names() {
                self.functions.rename(self.trace.nameless(), &mut self.symbolizer);
                self.trace.named();
            }
        }
        self.finish(reader)
    }

    fn event(&mut self, class: &Class, event: &Event<'_>, time_ns: u64, vpid: Option<u32>) {
        self.trace.at(time_ns);
        match class.kind {
            Kind::Kernel(kind) => kernel::take(kind, &class.kernel, event, time_ns, &mut self.trace),
            Kind::Ros2(kind) => {
                let Some(caller) = self.caller(class, event, time_ns, vpid) else { return };
                ros2::take(kind, &ros2::Call { event, class }, caller, time_ns, &mut self.messages, &mut self.trace);
            }
            Kind::Function(functions::Kind::Enter) => {
                let Some(caller) = self.caller(class, event, time_ns, vpid) else { return };
                let address = class.address(event).unwrap_or(0);
                let name = self.functions.name(caller.pid, address);
                self.trace.begin(caller, address, name, time_ns);
            }
            Kind::Function(functions::Kind::Exit) => {
                let Some(caller) = self.caller(class, event, time_ns, vpid) else { return };
                self.trace.end(caller, class.address(event), time_ns);
            }
            Kind::Function(functions::Kind::Mapped) => {
                let Some(pid) = class.pid(event).or(vpid) else { return };
                self.functions.map(pid, event);
            }
            Kind::Other => {
                self.others[event.trace()][event.class_index()] += 1;
                self.caller_if_known(class, event, time_ns, vpid);
            }
        }
    }

    fn caller(&mut self, class: &Class, event: &Event<'_>, time_ns: u64, vpid: Option<u32>) -> Option<Caller> {
        let caller = self.caller_if_known(class, event, time_ns, vpid);
        self.without_thread += u64::from(caller.is_none());
        caller
    }

    /// The thread that made an event, by the contexts `vtid` and `vpid`; it is added if it is new.
    fn caller_if_known(&mut self, class: &Class, event: &Event<'_>, time_ns: u64, vpid: Option<u32>) -> Option<Caller> {
        let bytes = event.stream_context_bytes().filter(|_| class.names_caller);
        let last = self.callers.get(event.stream()).filter(|last| bytes == Some(&last.bytes));
        if let Some(caller) = last.and_then(|last| last.caller)
            && self.trace.saw_again(caller, time_ns)
        {
            return Some(caller);
        }
        let tid = u32::try_from(event.number(class.tid?)?).ok().filter(|&tid| tid != 0)?;
        let pid = class.pid(event).or(vpid);
        let name = match class.name.and_then(|name| event.value(name)) {
            Some(Value::Text(name)) => Some(name),
            _ => None,
        };
        let caller = Caller { pid: pid.unwrap_or(0), tid };
        self.trace.saw(caller, name, time_ns);
        if let Some(bytes) = bytes {
            if self.callers.len() <= event.stream() {
                self.callers.resize_with(event.stream() + 1, LastCaller::default);
            }
            let last = &mut self.callers[event.stream()];
            last.bytes.clear();
            last.bytes.extend_from_slice(bytes);
            last.caller = Some(caller);
        }
        Some(caller)
    }

    fn finish(mut self, reader: &Reader) -> Result<Option<Capture>, DiskError> {
        let losses = reader.losses();
        let notes = self.notes(reader, losses);
        let lost = stepscope_model::Losses {
            lost_records: losses.discarded_events,
            malformed_records: losses.damaged,
            ..stepscope_model::Losses::default()
        };
        self.trace.end_scopes();
        self.functions.rename(self.trace.nameless(), &mut self.symbolizer);
        let mut capture = self.trace.finish(lost, notes, REMEDIES, &mut self.symbolizer)?;
        if let Some(capture) = &mut capture {
            ros2::note(&self.messages, capture);
        }
        Ok(capture)
    }

    fn notes(&self, reader: &Reader, losses: &Losses) -> Vec<String> {
        let mut notes = Vec::new();
        if losses.discarded_events > 0 {
            notes.push(format!(
                "The tracer discarded {} events, because its buffers were full: waits and scopes around them are not \
                 exact. Larger buffers lose less (`lttng enable-channel --subbuf-size`).",
                grouped(losses.discarded_events.into())
            ));
        }
        if losses.lost_packets > 0 {
            notes.push(format!("{} of the trace are missing.", plural(losses.lost_packets as usize, "packet")));
        }
        if let Some(first) = &losses.first_damage {
            notes.push(trace::note_of_damage(losses.damaged, losses.skipped_bytes, first));
        }
        if self.untimed > 0 {
            notes.push(format!("{} have no time and were skipped.", plural(self.untimed as usize, "event")));
        }
        if self.without_thread > 0 {
            notes.push(format!(
                "{} name no thread, so their scopes are missing. Record with `lttng add-context --userspace --type=vpid \
                 --type=vtid`.",
                plural(self.without_thread as usize, "event")
            ));
        }
        notes.extend(self.note_of_others(reader));
        notes
    }

    /// Which events fill no table.
    fn note_of_others(&self, reader: &Reader) -> Option<String> {
        let names = reader.traces().iter().flat_map(|trace| &trace.schema.events).map(|class| class.name.as_str());
        others::note(names.zip(self.others.iter().flatten().copied()), self.events)
    }
}

fn described(reader: &Reader) -> CaptureInfo {
    let text = |name: &str| reader.traces().iter().find_map(|trace| trace.schema.environment_text(name));
    let clock = reader.traces().iter().find_map(|trace| trace.schema.clocks.first());
    CaptureInfo {
        // The caller sets the file.
        origin: Origin::Imported { format: Ctf.name().to_owned(), file: String::new() },
        clock: clock.map(|clock| match clock.name.as_str() {
            "monotonic" => "CLOCK_MONOTONIC".to_owned(),
            "" => "clock of the trace".to_owned(),
            name => format!("clock `{name}` of the trace"),
        }),
        machine: text("hostname").map(|host| Machine {
            host: host.to_owned(),
            kernel: text("kernel_release").unwrap_or_default().to_owned(),
            ..Machine::default()
        }),
        ..CaptureInfo::default()
    }
}

fn environment_pid(trace: &Trace) -> Option<u32> {
    trace.schema.environment.iter().find_map(|(name, value)| match value {
        EnvironmentValue::Number(pid) if name == "vpid" => u32::try_from(*pid).ok(),
        _ => None,
    })
}

fn number(event: &Event<'_>, field: &str) -> Option<u64> {
    event.field(field)?.as_u64()
}

fn small(event: &Event<'_>, field: &str) -> Option<u32> {
    u32::try_from(number(event, field)?).ok()
}

fn text<'a>(event: &Event<'a>, field: &str) -> Option<&'a [u8]> {
    match event.field(field)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

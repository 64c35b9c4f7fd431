//! The kernel's events, by their meaning.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::marker::Marker;
use crate::import::trace::{Caller, Forked, Named, Switch, Trace, Waking, can_run};

/// Most numbers and texts that a kind needs.
pub const NUMBERS: usize = 3;
pub const TEXTS: usize = 2;

/// Flag of `clone(2)`: the new thread belongs to its creator's process.
const CLONE_THREAD: i64 = 0x10000;

/// The key of scopes that a program marked, which have no address.
const MARKED: u64 = u64::MAX;

/// What an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Switch,
    Waking,
    Fork,
    NewTask,
    Exec,
    Exit,
    Rename,
    /// A text that a program wrote to `trace_marker`.
    Marker,
    FunctionEntry,
    FunctionExit,
    Frequency,
}

impl Kind {
    /// By the event's name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "sched_switch" => Kind::Switch,
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => Kind::Waking,
            "sched_process_fork" => Kind::Fork,
            "task_newtask" => Kind::NewTask,
            "sched_process_exec" => Kind::Exec,
            "sched_process_exit" => Kind::Exit,
            "task_rename" => Kind::Rename,
            "print" | "tracing_mark_write" => Kind::Marker,
            "funcgraph_entry" => Kind::FunctionEntry,
            "funcgraph_exit" => Kind::FunctionExit,
            "cpu_frequency" => Kind::Frequency,
            _ => return None,
        })
    }

    /// Names of the fields in [`Fields::numbers`].
    pub fn numbers(self) -> &'static [&'static str] {
        match self {
            Kind::Switch => &["prev_pid", "prev_state", "next_pid"],
            Kind::Waking | Kind::Exec | Kind::Rename => &["pid"],
            Kind::Fork => &["child_pid"],
            Kind::NewTask => &["pid", "clone_flags"],
            Kind::Exit => &["pid"],
            Kind::Marker => &[],
            Kind::FunctionEntry | Kind::FunctionExit => &["func"],
            Kind::Frequency => &["cpu_id", "state"],
        }
    }

    /// Names of the fields in [`Fields::texts`].
    pub fn texts(self) -> &'static [&'static str] {
        match self {
            Kind::Switch => &["prev_comm", "next_comm"],
            Kind::Waking | Kind::NewTask => &["comm"],
            Kind::Fork => &["child_comm"],
            Kind::Exec => &["filename"],
            Kind::Rename => &["newcomm"],
            Kind::Marker => &["buf"],
            Kind::Exit | Kind::FunctionEntry | Kind::FunctionExit | Kind::Frequency => &[],
        }
    }
}

/// Where and when an event was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub time_ns: u64,
    pub cpu: Option<u32>,
    /// The thread that made it; 0 if the CPU was idle.
    pub tid: u32,
    pub in_interrupt: bool,
}

/// The fields of an event that its kind needs. Missing ones are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    pub numbers: [Option<i64>; NUMBERS],
    pub texts: [Option<&'a [u8]>; TEXTS],
}

impl Fields<'_> {
    fn id(&self, at: usize) -> Option<u32> {
        u32::try_from(self.numbers[at]?).ok()
    }
}

/// A trace of the kernel's events.
pub struct Ftrace<'a> {
    pub trace: Trace,
    /// The file `kallsyms`, until a function needs it.
    kallsyms: &'a [u8],
    functions: Vec<(u64, &'a [u8])>,
    names: FxHashMap<u64, Arc<str>>,
    /// Threads whose creation is known with their process, and that `sched_process_fork` names once more.
    created: FxHashSet<u32>,
    /// Texts of `trace_marker` in another format.
    pub unknown_markers: u64,
}

impl<'a> Ftrace<'a> {
    /// A trace whose functions have names in this copy of `/proc/kallsyms`, which may be empty.
    pub fn new(trace: Trace, kallsyms: &'a [u8]) -> Self {
        Self {
            trace,
            kallsyms,
            functions: Vec::new(),
            names: FxHashMap::default(),
            created: FxHashSet::default(),
            unknown_markers: 0,
        }
    }

    /// Takes an event. Those without a field that they need are ignored.
    pub fn event(&mut self, kind: Kind, head: Head, fields: &Fields<'_>) {
        let Head { time_ns, cpu, tid, in_interrupt } = head;
        let trace = &mut self.trace;
        match kind {
            Kind::Switch => {
                let (Some(before), Some(next)) = (fields.id(0), fields.id(2)) else { return };
                let before = Named { tid: before, name: fields.texts[0] };
                let next = Named { tid: next, name: fields.texts[1] };
                let preempted = can_run(fields.numbers[1].unwrap_or(0));
                trace.switch(Switch { time_ns, cpu, before, preempted, next });
            }
            Kind::Waking => {
                let Some(tid) = fields.id(0) else { return };
                let woken = Named { tid, name: fields.texts[0] };
                trace.wake_up(Waking { time_ns, cpu, woken, by_interrupt: in_interrupt });
            }
            Kind::NewTask => {
                let Some(new) = fields.id(0) else { return };
                let creator = trace.pid(tid);
                let is_thread = fields.numbers[1].is_some_and(|flags| flags & CLONE_THREAD != 0);
                let pid = if is_thread { creator } else { Some(new) };
                let name = fields.texts[0].unwrap_or_default();
                trace.fork(Forked { parent_pid: creator, pid, tid: new, name }, time_ns);
                self.created.insert(new);
            }
            Kind::Fork => {
                let Some(new) = fields.id(0) else { return };
                if !self.created.remove(&new) {
                    let name = fields.texts[0].unwrap_or_default();
                    trace.fork(Forked { parent_pid: None, pid: None, tid: new, name }, time_ns);
                }
            }
            Kind::Exec => {
                // Exec leaves a process with its first thread alone.
                let Some(tid) = fields.id(0) else { return };
                trace.describe(tid, Some(tid), b"");
                trace.exec(tid, fields.texts[0].unwrap_or_default());
            }
            Kind::Exit => {
                let Some(tid) = fields.id(0) else { return };
                trace.exits(tid, time_ns);
            }
            Kind::Rename => {
                let Some(tid) = fields.id(0) else { return };
                trace.rename(Named { tid, name: fields.texts[0] }, time_ns);
            }
            Kind::Marker => self.marker(fields.texts[0].unwrap_or_default(), tid, time_ns),
            Kind::FunctionEntry => {
                let Some(function) = fields.numbers[0] else { return };
                let name = self.name(function as u64);
                self.enter(tid, function as u64, name, time_ns);
            }
            Kind::FunctionExit => self.leave(tid, fields.numbers[0].map(|function| function as u64), time_ns),
            Kind::Frequency => {
                let (Some(cpu), Some(khz)) = (fields.numbers[0], fields.numbers[1]) else { return };
                self.trace.measure(None, &format!("cpu{cpu}_frequency_khz"), time_ns, khz);
            }
        }
    }

    /// A thread enters a function. The idle threads of all CPUs share a number, so they have no scopes.
    pub fn enter(&mut self, tid: u32, key: u64, name: Arc<str>, time_ns: u64) {
        if tid != 0 {
            let caller = self.caller(tid, time_ns);
            self.trace.begin(caller, key, name, time_ns);
        }
    }

    /// A thread leaves a function; without a key, the innermost.
    pub fn leave(&mut self, tid: u32, key: Option<u64>, time_ns: u64) {
        if tid != 0 {
            let caller = self.caller(tid, time_ns);
            self.trace.end(caller, key, time_ns);
        }
    }

    /// The thread, which made an event. Its scopes go by its number alone, because its process may become known between their
    /// start and end.
    pub fn caller(&mut self, tid: u32, time_ns: u64) -> Caller {
        let pid = self.trace.pid(tid).unwrap_or(0);
        self.trace.saw(Caller { pid, tid }, None, time_ns);
        Caller { pid: 0, tid }
    }

    /// A program wrote a text to `trace_marker`.
    pub fn marker(&mut self, text: &[u8], tid: u32, time_ns: u64) {
        let Some(marker) = Marker::parse(text).filter(|_| tid != 0) else {
            self.unknown_markers += 1;
            return;
        };
        if let Some(pid) = marker.pid() {
            self.trace.describe(tid, Some(pid), b"");
        }
        let caller = self.caller(tid, time_ns);
        match marker {
            Marker::Begin { name, .. } => self.trace.begin(caller, MARKED, name.into(), time_ns),
            Marker::End { .. } => self.trace.end(caller, Some(MARKED), time_ns),
            Marker::Counter { name, value, .. } => self.trace.count(caller, name.into(), time_ns, value),
        }
    }

    /// The name of the function at this address.
    fn name(&mut self, address: u64) -> Arc<str> {
        if let Some(name) = self.names.get(&address) {
            return name.clone();
        }
        let kallsyms = std::mem::take(&mut self.kallsyms);
        if !kallsyms.is_empty() {
            self.functions = functions(kallsyms);
        }
        let at = self.functions.partition_point(|function| function.0 <= address);
        let found = at.checked_sub(1).map(|at| self.functions[at].1);
        let name: Arc<str> = match found {
            Some(name) => String::from_utf8_lossy(name).into(),
            None => format!("{address:#x}").into(),
        };
        self.names.insert(address, name.clone());
        name
    }
}

/// Functions of `/proc/kallsyms`, by address. A kernel that hides its addresses has none.
fn functions(kallsyms: &[u8]) -> Vec<(u64, &[u8])> {
    let mut functions: Vec<(u64, &[u8])> = kallsyms.split(|&byte| byte == b'\n').filter_map(function).collect();
    functions.sort_by_key(|function| function.0);
    functions
}

/// `ffffffff81000000 T _stext`
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t');
    let address =
        u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok().filter(|&address| address != 0)?;
    matches!(words.next()?, b"t" | b"T" | b"w" | b"W").then_some((address, words.next()?))
}

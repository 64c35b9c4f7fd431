//! Scheduler events, scopes and readings of a trace become a capture. All formats of traces share it: they read an event,
//! and give it here by its meaning.

mod cpus;
pub mod others;
mod scopes;
mod tasks;

use std::sync::Arc;

use stepscope_assemble::{Builder, Entry, RecordingEnd, Sink, Symbols};
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Dimension, DimensionStatus, Losses};

use cpus::Cpus;
pub use cpus::{Switch, Waking, can_run};
use scopes::Scopes;
pub use tasks::Forked;
pub use tasks::Named;
use tasks::Tasks;

/// The thread of a program that made an event.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// 0 if it is not known.
    pub pid: u32,
    pub tid: u32,
}

/// What to do about evidence that a trace lacks.
#[derive(Debug, Clone, Copy)]
pub struct Remedies {
    /// How wake-ups are recorded.
    pub wake_ups: &'static str,
    /// How the processes of threads are recorded.
    pub processes: &'static str,
    /// Why waits have no stacks.
    pub stacks: &'static str,
}

/// The capture of a trace, in progress.
pub struct Trace {
    sink: Builder,
    tasks: Tasks,
    cpus: Cpus,
    scopes: Scopes,
    start_ns: Option<u64>,
    end_ns: u64,
    events: u64,
}

impl Trace {
    pub fn new(info: CaptureInfo) -> Self {
        let mut sink = Builder::default();
        sink.take(Entry::Start(Box::new(info)));
        Self {
            sink,
            tasks: Tasks::default(),
            cpus: Cpus::default(),
            scopes: Scopes::default(),
            start_ns: None,
            end_ns: 0,
            events: 0,
        }
    }

    /// There is an event at this time. Each event needs this, before all else.
    pub fn at(&mut self, time_ns: u64) {
        self.events += 1;
        if self.start_ns.is_none() {
            self.start_ns = Some(time_ns);
            self.tasks.start_ns = time_ns;
            self.sink.take(Entry::WindowStart { time_ns });
        }
        self.end_ns = self.end_ns.max(time_ns);
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn switch(&mut self, switch: Switch<'_>) {
        self.cpus.switch(switch, &mut self.tasks, &mut self.sink);
    }

    pub fn wake_up(&mut self, waking: Waking<'_>) {
        self.cpus.wake_up(waking, &mut self.tasks, &mut self.sink);
    }

    pub fn enter_interrupt(&mut self, cpu: Option<u32>) {
        self.cpus.enter_interrupt(cpu);
    }

    pub fn leave_interrupt(&mut self, cpu: Option<u32>) {
        self.cpus.leave_interrupt(cpu);
    }

    /// Events of a CPU were lost before this time.
    pub fn lose(&mut self, cpu: u32, time_ns: u64) {
        self.cpus.lose(cpu, time_ns, &mut self.tasks);
    }

    /// A thread was created.
    pub fn fork(&mut self, forked: Forked<'_>, time_ns: u64) {
        self.tasks.fork(forked, time_ns, &mut self.sink);
    }

    /// A process runs another program.
    pub fn exec(&mut self, tid: u32, executable: &[u8]) {
        self.tasks.exec(tid, executable, &mut self.sink);
    }

    /// A thread leaves the CPU for the last time with its next switch.
    pub fn exits(&mut self, tid: u32, time_ns: u64) {
        self.tasks.exits(tid, time_ns, &mut self.sink);
    }

    /// The trace says to which process a thread belongs, and its name if it is not empty.
    pub fn describe(&mut self, tid: u32, pid: Option<u32>, name: &[u8]) {
        self.tasks.state(tid, pid, name);
    }

    /// The process of a thread, if it is known.
    pub fn pid(&self, tid: u32) -> Option<u32> {
        self.tasks.pid(tid)
    }

    /// A thread took another name.
    pub fn rename(&mut self, named: Named<'_>, time_ns: u64) {
        self.tasks.rename(named, time_ns, &mut self.sink);
    }

    /// A thread of a program made an event.
    pub fn saw(&mut self, caller: Caller, name: Option<&[u8]>, time_ns: u64) {
        let pid = Some(caller.pid).filter(|&pid| pid != 0);
        self.tasks.saw(caller.tid, pid, name, time_ns, &mut self.sink);
    }

    /// A scope starts. Its end has the same key.
    pub fn begin(&mut self, caller: Caller, key: u64, name: Arc<str>, time_ns: u64) {
        self.scopes.begin(caller, key, name, time_ns, &mut self.sink);
    }

    /// Ends the innermost scope with this key; without one, the innermost scope.
    pub fn end(&mut self, caller: Caller, key: Option<u64>, time_ns: u64) {
        self.scopes.end(caller, key, time_ns, &mut self.sink);
    }

    /// A scope of which both times are known.
    pub fn scope(&mut self, caller: Caller, name: Arc<str>, start_ns: u64, end_ns: u64) {
        self.scopes.whole(caller, name, start_ns, end_ns, &mut self.sink);
    }

    /// A thread read a quantity.
    pub fn count(&mut self, caller: Caller, name: Arc<str>, time_ns: u64, value: i64) {
        self.scopes.count(caller, name, time_ns, value, &mut self.sink);
    }

    /// A reading of a process, or of the machine.
    pub fn measure(&mut self, pid: Option<u32>, name: &str, time_ns: u64, value: i64) {
        self.tasks.measure(pid, name, time_ns, value, &mut self.sink);
    }

    /// Makes the capture. `None` if there is no event with a time.
    pub fn finish(
        mut self,
        losses: Losses,
        mut notes: Vec<String>,
        remedies: Remedies,
        symbols: &mut impl Symbols,
    ) -> Option<Capture> {
        self.start_ns?;
        self.tasks.finish(self.end_ns, &mut self.sink);
        self.sink.take(Entry::Losses(Box::new(losses)));
        notes.extend(self.scopes.note());
        let end = RecordingEnd { end_ns: Some(self.end_ns), notes, ..RecordingEnd::default() };
        self.sink.take(Entry::RecordingEnd(Box::new(end)));
        let mut capture = self.sink.build(symbols);
        self.tasks.complete(&mut capture, remedies.processes);
        if self.cpus.has_switches {
            add_dimensions(&mut capture, self.cpus.has_wake_ups, remedies);
        }
        if let Some(machine) = &mut capture.info.machine {
            machine.cores = machine.cores.max(self.cpus.count());
        }
        Some(capture)
    }
}

fn add_dimensions(capture: &mut Capture, has_wake_ups: bool, remedies: Remedies) {
    let partial = |lacks: String| DimensionStatus::Partial { lacks: vec![lacks] };
    let sched = match has_wake_ups {
        true => DimensionStatus::Recorded,
        false => partial(format!(
            "wake-ups were not recorded, so waits are not split into blocked and runnable; {}",
            remedies.wake_ups
        )),
    };
    capture.info.dimensions.insert(Dimension::Sched, sched);
    let offcpu = partial(format!("waits have no stacks; {}", remedies.stacks));
    capture.info.dimensions.insert(Dimension::Offcpu, offcpu);
}

/// Places of a trace that cannot be read, as a note.
pub fn note_of_damage(places: u64, skipped_bytes: u64, first: &str) -> String {
    format!(
        "The trace is damaged in {}; {} bytes were skipped. The first: {first}.",
        plural(places as usize, "place"),
        grouped(skipped_bytes.into())
    )
}

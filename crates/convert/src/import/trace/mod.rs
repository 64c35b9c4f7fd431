//! Scheduler events, scopes and readings of a trace become a capture. All formats of traces share it: they read an event,
//! and give it here by its meaning.

mod cpus;
mod nest;
pub mod others;
mod output;
mod scopes;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use stepscope_assemble::{Entry, RecordingEnd, Sink, Symbols};
use stepscope_model::disk::DiskError;
use stepscope_model::quantity::{grouped, plural};
use stepscope_model::{Capture, CaptureInfo, Dimension, DimensionStatus, FlowEvent, Losses, Scope, ThreadId};

use cpus::Cpus;
pub use cpus::{Switch, Waking, can_run};
use output::Output;
use scopes::Scopes;
pub use tasks::Forked;
pub use tasks::Named;
use tasks::Tasks;

/// The thread of a program that made an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    sink: Output,
    tasks: Tasks,
    cpus: Cpus,
    scopes: Scopes,
    start_ns: Option<u64>,
    end_ns: u64,
    events: u64,
}

impl Trace {
    /// Rows go to tables in `folder`; without one, they stay in memory.
    pub fn new(info: CaptureInfo, folder: Option<PathBuf>) -> Self {
        let mut sink = Output::new(folder);
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
            self.sink.start_ns = time_ns;
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

    /// A thread of a program made an event. Its scopes and readings need this, before all else.
    pub fn saw(&mut self, caller: Caller, name: Option<&[u8]>, time_ns: u64) {
        let pid = Some(caller.pid).filter(|&pid| pid != 0);
        self.tasks.saw(caller.tid, pid, name, time_ns, &mut self.sink);
    }

    /// A thread made another event, with the same name and process. False if it ended since.
    #[inline]
    pub fn saw_again(&mut self, caller: Caller, time_ns: u64) -> bool {
        self.tasks.saw_again(caller.tid, time_ns)
    }

    /// A scope starts. Its end has the same key.
    pub fn begin(&mut self, caller: Caller, key: u64, name: Arc<str>, time_ns: u64) {
        let Some(thread) = self.thread(caller) else { return };
        self.scopes.begin(caller, thread, key, name, time_ns, &mut self.sink);
    }

    /// Ends the innermost scope with this key; without one, the innermost scope.
    pub fn end(&mut self, caller: Caller, key: Option<u64>, time_ns: u64) {
        self.scopes.end(caller, key, time_ns, &mut self.sink);
    }

    /// A scope of which both times are known.
    pub fn scope(&mut self, caller: Caller, name: Arc<str>, start_ns: u64, end_ns: u64) {
        let Some(thread) = self.thread(caller) else { return };
        self.scopes.whole(thread, name, start_ns, end_ns, &mut self.sink);
    }

    /// A thread read a quantity.
    pub fn count(&mut self, caller: Caller, name: Arc<str>, time_ns: u64, value: i64) {
        let Some(thread) = self.thread(caller) else { return };
        let process = self.sink.capture().threads[thread.index()].process;
        self.sink.counter(process, Some(thread), name, time_ns, value);
    }

    /// The thread of a caller that was seen.
    #[inline]
    pub fn thread(&self, caller: Caller) -> Option<ThreadId> {
        self.tasks.id(caller.tid).map(|thread| ThreadId(thread.0))
    }

    /// A stage of a message, on a thread of this trace.
    pub fn flow(&mut self, event: FlowEvent) {
        self.sink.flow(event);
    }

    /// Scopes will get other names: they wait until [`Self::named`].
    pub fn name_later(&mut self) {
        self.sink.names_come_later = true;
    }

    /// Whether many scopes wait for their names.
    pub fn wants_names(&self) -> bool {
        self.sink.wants_names()
    }

    /// The scopes in memory, for their names.
    pub fn nameless(&mut self) -> &mut [Scope] {
        self.sink.nameless()
    }

    /// The scopes in memory have their names.
    pub fn named(&mut self) {
        self.sink.named();
    }

    /// All scopes are complete. Only [`Self::finish`] may follow, or the names of scopes.
    pub fn end_scopes(&mut self) {
        self.scopes.finish(&mut self.sink);
    }

    /// A reading of a process, or of the machine.
    pub fn measure(&mut self, pid: Option<u32>, name: &str, time_ns: u64, value: i64) {
        self.tasks.measure(pid, name, time_ns, value, &mut self.sink);
    }

    /// Makes the capture. `None` if there is no event with a time.
    ///
    /// # Errors
    /// If a table in the folder could not be written.
    pub fn finish(
        mut self,
        losses: Losses,
        mut notes: Vec<String>,
        remedies: Remedies,
        symbols: &mut impl Symbols,
    ) -> Result<Option<Capture>, DiskError> {
        if self.start_ns.is_none() {
            return Ok(None);
        }
        self.end_scopes();
        self.tasks.finish(self.end_ns, &mut self.sink);
        self.sink.take(Entry::Losses(Box::new(losses)));
        notes.extend(self.scopes.note());
        let end = RecordingEnd { end_ns: Some(self.end_ns), notes, ..RecordingEnd::default() };
        self.sink.take(Entry::RecordingEnd(Box::new(end)));
        let mut capture = self.sink.finish(symbols)?;
        self.tasks.complete(&mut capture, remedies.processes);
        if self.cpus.has_switches {
            add_dimensions(&mut capture, self.cpus.has_wake_ups, remedies);
        }
        if let Some(machine) = &mut capture.info.machine {
            machine.cores = machine.cores.max(self.cpus.count());
        }
        Ok(Some(capture))
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

//! The assembler: kernel records in the order of time become entries of a log.
//!
//! Records come from live rings or from a `perf.data` file. Everything else (unwind tables, live memory, command lines) the
//! assembler asks of a [`Target`]. Its entries go to a [`Sink`]: the raw log of a recording, or the builder of a capture.

mod blocked;
mod callchain;
mod cpus;
mod data_accesses;
mod ended;
mod interner;
mod processes;
mod samples;
mod system_calls;
mod written_switches;

use linux_perf_event_reader::RawEventRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Event, Losses};

use crate::address_space::{AddressSpace, RuleCaches};
use crate::entry::{Entry, EventRef, FrameRef, ProcessRef, Sink, ThreadRef};
use crate::event_role::{EventRole, Follow, Switches};
use crate::initial_process::InitialProcess;
use crate::kernel_record::{Body, FileIdentity, Map, Record, Switch, SwitchWay, ThreadIds};
use crate::target::{Image, Target};
use crate::thread_timeline::ThreadTimeline;
pub use blocked::BlockedThread;
use cpus::{Cpus, Exit, Leaving};
pub use ended::Code;
use ended::Ended;
use interner::Interner;
use samples::SampleRecord;
use system_calls::SystemCallSums;
use written_switches::{AddedSlice, PlaceStacks};

/// Turns records into entries.
pub struct Assembler<W> {
    target: W,
    follow: Follow,
    switches: Switches,
    events: Vec<Event>,
    interner: Interner,
    rule_caches: RuleCaches,
    processes: FxHashMap<u32, Process>,
    threads: FxHashMap<u32, Thread>,
    cpus: Cpus,
    /// Processes and threads of the present log.
    process_count: u32,
    thread_count: u32,
    /// Threads that ended. Later records about them come from the kernel's clean-up.
    ended: FxHashSet<u32>,
    awaited: Option<AwaitedExec>,
    start_ns: Option<u64>,
    now_ns: Option<u64>,
    losses: Losses,
    /// Frames of the present stack, kept for the allocation.
    scratch: Vec<FrameRef>,
    /// Kernel address of the wake-up tracepoint.
    waking_tracepoint: Option<u64>,
    step_probe: Option<StepProbe>,
    ended_code: Option<Ended>,
    system_calls: SystemCallSums,
    /// Kernel addresses of the tracepoints at which BPF programs write switches and wake-ups.
    tracepoints: Vec<u64>,
    places: PlaceStacks,
    /// By thread, the sums that were added before the kernel wrote them.
    pending: FxHashMap<u32, AddedSlice>,
    /// By thread, the start of the last slice whose sums the kernel wrote.
    written_slices: FxHashMap<u32, u64>,
    /// Whether the code at samples with all registers is decoded for the addresses of data.
    decodes_accesses: bool,
}

struct Process {
    id: ProcessRef,
    parent_pid: Option<u32>,
    space: AddressSpace,
    threads: FxHashSet<u32>,
    image: Option<Image>,
    steps_started: u64,
    last_step: Option<LastStep>,
}

/// The last start of a step of a process.
#[derive(Clone, Copy)]
struct LastStep {
    time_ns: u64,
    tid: u32,
    sim_time_ns: Option<u64>,
}

struct Thread {
    id: ThreadRef,
    pid: u32,
    name: String,
    timeline: ThreadTimeline,
    /// Where it was last seen running.
    cpu: Option<u32>,
    /// Its exit, if that was recorded before its last switch.
    exit: Option<Exit>,
}

/// A child of the recorder that is about to execute the recorded program.
#[derive(Debug, Clone, Copy)]
struct AwaitedExec {
    pid: u32,
    parent_pid: u32,
}

/// The instruction where a step starts: the path of a mapped file, and an offset in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepProbe {
    path: String,
    offset: u64,
}

impl<W: Target> Assembler<W> {
    /// An assembler that knows no process yet. `start_ns` is the start of the recording window, where it is known.
    pub fn new(target: W, follow: Follow, switches: Switches, start_ns: Option<u64>) -> Self {
        Self {
            target,
            follow,
            switches,
            events: Vec::new(),
            interner: Interner::default(),
            rule_caches: RuleCaches::new(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            cpus: Cpus::default(),
            process_count: 0,
            thread_count: 0,
            ended: FxHashSet::default(),
            awaited: None,
            start_ns,
            now_ns: start_ns,
            losses: Losses::default(),
            scratch: Vec::new(),
            waking_tracepoint: None,
            step_probe: None,
            ended_code: None,
            system_calls: SystemCallSums::default(),
            tracepoints: Vec::new(),
            places: PlaceStacks::default(),
            pending: FxHashMap::default(),
            written_slices: FxHashMap::default(),
            decodes_accesses: false,
        }
    }

    /// Declares an event that samples belong to.
    pub fn add_event(&mut self, event: Event, sink: &mut impl Sink) -> EventRef {
        sink.take(Entry::Event(event.clone()));
        self.events.push(event);
        EventRef(self.events.len() as u32 - 1)
    }

    /// Introduces a process that already runs.
    pub fn add_running(&mut self, process: &InitialProcess, sink: &mut impl Sink) {
        self.add_present(process, self.start_ns, sink);
    }

    /// The same, of a process that is recorded only from this time on.
    pub fn add_running_since(&mut self, process: &InitialProcess, time_ns: u64, sink: &mut impl Sink) {
        self.add_present(process, Some(time_ns), sink);
    }

    fn add_present(&mut self, process: &InitialProcess, start_ns: Option<u64>, sink: &mut impl Sink) {
        let pid = process.pid;
        self.start_process(pid, process.parent_pid, None, AddressSpace::new(), sink);
        for thread in &process.threads {
            let timeline = ThreadTimeline::initial(start_ns.unwrap_or(0), thread.state);
            self.start_thread(ThreadIds { pid, tid: thread.tid }, thread.name.clone(), start_ns, timeline, sink);
        }
        for mapping in &process.mappings {
            self.map(
                Map {
                    pid: pid as i32,
                    start: mapping.range.start,
                    length: mapping.range.end.saturating_sub(mapping.range.start),
                    offset: mapping.offset,
                    file: mapping.build_id.clone().map_or(FileIdentity::Unknown, FileIdentity::BuildId),
                    executable: true,
                    kernel: false,
                    path: mapping.path.clone().into_bytes(),
                },
                sink,
            );
        }
        self.read_image(pid, sink);
    }

    /// Names the instruction that the kernel probes for steps. The kernel may execute a copy of it elsewhere.
    pub fn set_step_probe(&mut self, path: String, offset: u64) {
        self.step_probe = Some(StepProbe { path, offset });
    }

    /// Names the kernel addresses of tracepoints at which BPF programs write stacks. What is called there is not part of them.
    pub fn set_tracepoints(&mut self, addresses: Vec<u64>) {
        self.tracepoints = addresses;
    }

    /// Samples addresses of data in software: decodes the code at each sample that has all registers.
    pub fn decode_accesses(&mut self) {
        self.decodes_accesses = true;
    }

    /// Announces a child that is about to execute the recorded program. Its records are ignored until then.
    pub fn expect_exec(&mut self, pid: u32, parent_pid: u32) {
        self.awaited = Some(AwaitedExec { pid, parent_pid });
    }

    /// Whether the announced child did not execute the program yet.
    pub fn expects_exec(&self) -> bool {
        self.awaited.is_some()
    }

    fn awaits(&self, pid: u32) -> bool {
        self.awaited.is_some_and(|awaited| awaited.pid == pid)
    }

    /// Whether a process belongs to the capture.
    pub fn follows(&self, pid: u32) -> bool {
        self.follow == Follow::Everything || self.awaits(pid) || self.processes.contains_key(&pid)
    }

    /// What is asked about the recorded processes.
    pub fn target_mut(&mut self) -> &mut W {
        &mut self.target
    }

    /// Ids of the followed processes that run.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// Ids of their threads.
    pub fn tids(&self) -> impl Iterator<Item = u32> + '_ {
        self.threads.keys().copied()
    }

    /// The same as [`pids`](Self::pids), and the process that is about to execute the program.
    pub fn expected_pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.pids().chain(self.awaited.map(|awaited| awaited.pid))
    }

    /// Ends a process whose end was not seen in a record.
    pub fn end_process(&mut self, pid: u32, time_ns: u64, sink: &mut impl Sink) {
        self.awaited.take_if(|awaited| awaited.pid == pid);
        let Some(process) = self.processes.get(&pid) else { return };
        let mut threads: Vec<u32> = process.threads.iter().copied().collect();
        threads.sort_unstable();
        if threads.is_empty() {
            self.keep_code(pid, Some(time_ns));
            self.processes.remove(&pid);
        }
        for tid in threads {
            self.ended.insert(tid);
            self.end_thread(tid, Some(time_ns), sink);
        }
    }

    /// The number in the log of the process that has this id now.
    pub fn process_ref(&self, pid: u32) -> Option<ProcessRef> {
        self.processes.get(&pid).map(|process| process.id)
    }

    /// The number in the log of the thread that has this id now.
    pub fn thread_ref(&self, tid: u32) -> Option<ThreadRef> {
        self.threads.get(&tid).map(|thread| thread.id)
    }

    /// Whether no followed process runs, and none is about to start.
    pub fn is_over(&self) -> bool {
        self.processes.is_empty() && self.awaited.is_none()
    }

    /// The losses so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Notes that only every n-th context switch has a stack.
    pub fn note_switch_stack_period(&mut self, period: u64) {
        let noted = self.losses.offcpu_stack_period.get_or_insert(1);
        *noted = (*noted).max(period);
    }

    /// Adds the next record. Damaged records are counted, and otherwise ignored.
    pub fn add_record(&mut self, role: EventRole, raw: &RawEventRecord<'_>, sink: &mut impl Sink) {
        let Ok(mut record) = Record::parse(raw) else {
            self.losses.malformed_records += 1;
            return;
        };
        // perf makes up records about what ran before it started; their time is zero.
        record.time = record.time.filter(|&time| time != 0);
        self.now_ns = self.now_ns.max(record.time);
        let time = record.time;
        match record.body {
            Body::Sample(ref sample) => self.add_sample(role, &SampleRecord::new(&record, sample, raw), sink),
            Body::Comm { ids, ref name, exec: true } => self.exec(ids, name, time, sink),
            Body::Comm { ids, ref name, exec: false } => self.rename(ids, name, time, sink),
            Body::Fork { child, parent } => self.fork(child, parent, time, sink),
            Body::Exit { tid } => self.exit(tid, time, record.cpu, sink),
            Body::Map(map) => self.map(map, sink),
            Body::Switch(switch) => self.add_switch(switch, &record, sink),
            Body::Lost(count) => {
                self.losses.lost_records = self.losses.lost_records.saturating_add(count);
                record.cpu.into_iter().for_each(|cpu| self.cpus.note_lost(cpu));
            }
            Body::Throttled => self.losses.throttled += 1,
            Body::Other => {}
        }
    }

    fn add_switch(&mut self, switch: Switch, record: &Record<'_>, sink: &mut impl Sink) {
        let Some(time) = record.time else { return };
        self.cpus.are_whole |= switch.cpu_wide;
        let followed = record.thread().filter(|&ids| self.thread(ids, Some(time), sink).is_some());
        match (followed, switch.way) {
            (Some(ids), SwitchWay::In) => {
                if let Some(cpu) = record.cpu {
                    self.cpus.note_last(cpu, switch.other_tid);
                }
                self.enter_cpu(ids, record.cpu, time, sink);
            }
            (Some(ids), SwitchWay::Out { preempted }) => {
                self.leave_cpu(ids, record.cpu, time, Leaving::of_flag(preempted), sink);
            }
            (None, way) => {
                if let Some(cpu) = record.cpu {
                    let left = record.tid.filter(|_| way != SwitchWay::In).map(|tid| tid as u32);
                    self.note_other_switch(cpu, time, left, sink);
                }
            }
        }
    }

    /// Ends what is open, at the end of the recording window.
    pub fn finish(&mut self, end_ns: Option<u64>, sink: &mut impl Sink) {
        self.end_unseen_exits(sink);
        self.end_threads(end_ns.or(self.now_ns), sink);
        self.threads.clear();
        self.processes.clear();
    }

    /// Ends one log and starts the next, in which the same processes live on.
    ///
    /// The next log stands alone, so its numbers start from zero. The caller writes its first entry ([`Entry::Start`]) and
    /// the last ones of the log that ends.
    pub fn split(&mut self, time_ns: u64, ending: &mut impl Sink, next: &mut impl Sink) {
        self.end_threads(Some(time_ns), ending);
        self.losses = Losses::default();
        self.start_ns = Some(time_ns);
        self.forget_ended();
        let earlier = std::mem::take(&mut self.interner);
        self.system_calls.forget_numbers();
        (self.process_count, self.thread_count) = (0, 0);
        for event in &self.events {
            next.take(Entry::Event(event.clone()));
        }
        for pid in sorted_keys(&self.processes) {
            let id = self.next_process();
            let process = self.processes.get_mut(&pid).expect("its key was just read");
            process.id = id;
            next.take(Entry::Process { pid, parent_pid: process.parent_pid, start_ns: None });
            if let Some(Image { executable, command_line }) = process.image.clone() {
                next.take(Entry::Image { process: id, executable, command_line });
            }
            process.space.renumber(|module| self.interner.module_of(&earlier, module, next));
        }
        // Not mapped as code, but code is named by them.
        for module in earlier.jit_dumps(|pid| self.processes.contains_key(&pid)) {
            self.interner.module(module.clone(), next);
        }
        for tid in sorted_keys(&self.threads) {
            let id = self.next_thread();
            let thread = self.threads.get_mut(&tid).expect("its key was just read");
            thread.id = id;
            thread.timeline = thread.timeline.continued(time_ns);
            self.system_calls.note_thread(tid, id, None);
            let process = self.processes[&thread.pid].id;
            next.take(Entry::Thread { tid, process, start_ns: Some(time_ns), name: thread.name.clone() });
        }
        let mut carry = self.interner.carry(&earlier);
        self.places.carry(|tid| self.threads.contains_key(&tid), &mut carry, next);
        for tid in sorted_keys(&self.threads) {
            let thread = self.threads.get_mut(&tid).expect("its key was just read");
            thread.timeline.carry_stack(|stack| carry.stack(stack, next));
        }
    }

    /// Writes the last start of a step of each process again, after [`split`](Self::split). The step belongs to the log in which
    /// it ends.
    pub fn continue_steps(&self, next: &mut impl Sink) {
        for pid in sorted_keys(&self.processes) {
            let process = &self.processes[&pid];
            let Some(LastStep { time_ns, tid, sim_time_ns }) = process.last_step else { continue };
            // Another thread may run the loop by now.
            let thread = self.threads.get(&tid).filter(|thread| thread.pid == pid);
            let thread = thread.or_else(|| self.threads.get(process.threads.iter().min()?));
            if let Some(thread) = thread {
                next.take(Entry::StepStart { time_ns, thread: thread.id, sim_time_ns });
            }
        }
    }

    /// Writes the end of all threads. Their timelines go on, for the next log if there is one.
    fn end_threads(&mut self, end_ns: Option<u64>, sink: &mut impl Sink) {
        for tid in sorted_keys(&self.threads) {
            let thread = self.threads.get_mut(&tid).expect("its key was just read");
            let next = end_ns.map(|end_ns| thread.timeline.continued(end_ns));
            processes::count_unknown(&mut self.losses, thread);
            processes::end_timeline(thread, end_ns, self.switches).into_iter().for_each(|entry| sink.take(entry));
            if let Some(next) = next {
                thread.timeline = next;
            }
        }
        sink.take(Entry::Losses(Box::new(self.losses.clone())));
    }
}

/// The keys of a map in ascending order, so that logs do not depend on hashing.
fn sorted_keys<V>(map: &FxHashMap<u32, V>) -> Vec<u32> {
    let mut keys: Vec<u32> = map.keys().copied().collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial_process::InitialMapping;
    use crate::target::NoTarget;

    /// Paths of the modules that a log has.
    #[derive(Default)]
    struct Modules(Vec<String>);

    impl Sink for Modules {
        fn take(&mut self, entry: Entry) {
            if let Entry::Module(module) = entry {
                self.0.push(module.path);
            }
        }
    }

    #[test]
    fn the_next_log_knows_the_jitdumps_of_running_processes() {
        let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::Recorded, Some(1));
        let (mut ending, mut next) = (Modules::default(), Modules::default());
        let mapping = |start, path: &str| InitialMapping {
            range: start..start + 4096,
            offset: 0,
            path: path.to_owned(),
            build_id: None,
        };
        let process = |pid| InitialProcess {
            pid,
            parent_pid: None,
            threads: Vec::new(),
            mappings: vec![mapping(4096, "/usr/bin/python3"), mapping(8192, &format!("/tmp/jit-{pid}.dump"))],
        };
        assembler.add_running(&process(7), &mut ending);
        assembler.add_running(&process(8), &mut ending);
        assembler.end_process(8, 2, &mut ending);
        assembler.split(3, &mut ending, &mut next);
        assert_eq!(next.0, ["/usr/bin/python3", "/tmp/jit-7.dump"]);
    }
}

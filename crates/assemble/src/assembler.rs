//! From kernel records to processes, stacks and waits: the assembler, without I/O.
//!
//! Records come in the order of time from live rings or from a `perf.data` file; what else there is to know (unwind
//! tables, live memory, command lines) is asked of a [`Target`]. What comes out is a sequence of [`Entry`] values for
//! a [`Sink`]: the raw log of a recording, or the builder of a capture in memory. One assembler, two sources, one
//! finisher.

use std::ops::Range;
use std::sync::Arc;

use linux_perf_event_reader::RawEventRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Event, Losses};

use crate::address_space::{AddressSpace, Ending, Mapping, Names, Registers, RuleCaches, UserStack};
use crate::entry::{
    Entry, EventRef, FrameRef, Module, ModuleKind, ModuleRef, ProcessRef, Sample, Sink, StackRef, ThreadRef, Wait,
};
use crate::kernel_record::{self as record, Body, FileIdentity, Map, Record};
use crate::step_time::StepTimeSource;
use crate::target::Target;
use crate::thread_timeline::{InitialState, Interval, ThreadTimeline, Wake};
use crate::unwind_tables::UnwindTables;

/// Which processes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Every process that a record names.
    Everything,
    /// Those introduced by [`Assembler::present`] or [`Assembler::expect_exec`], and what they fork.
    Tree,
}

/// What the source records besides samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switches {
    /// No context switches.
    Unrecorded,
    /// Context switches.
    Recorded,
    /// Context switches, and who woke whom.
    WithWakeUps,
}

/// What the samples of an event mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// Each is a sample of this event.
    Sampled {
        /// The event.
        event: EventRef,
        /// Weight of samples that carry no period.
        weight: u64,
    },
    /// The stack at which the thread is about to be switched out.
    SwitchStack,
    /// The current thread, or an interrupt, wakes another: the `sched:sched_waking` tracepoint. One wake-up may come
    /// twice, once with and once without the waker's stack.
    Waking {
        /// Offset of the woken thread's id in the raw data.
        pid_at: usize,
    },
    /// The stack of a waker, told right after its wake-up was without one, by a program at the same tracepoint: the
    /// stack begins with that program.
    WakerStack {
        /// Offset of the woken thread's id in the raw data.
        pid_at: usize,
    },
    /// The current thread leaves the processor to another, from here: the `sched:sched_switch` tracepoint.
    Switch {
        /// Offset of the state that the current thread is left in (64 bits), in the raw data.
        state_at: usize,
        /// Offset of the id of the thread that comes.
        next_tid_at: usize,
    },
    /// The current thread begins a step of the simulation.
    Step {
        /// How the simulated time is told.
        time: StepTimeSource,
    },
    /// None; only the event's other records count.
    SideBand,
}

/// A process that was there before the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitialProcess {
    /// Its id.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: Option<u32>,
    /// Its threads.
    pub threads: Vec<InitialThread>,
    /// What it has mapped executable.
    pub mappings: Vec<InitialMapping>,
}

/// A thread that was there before the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialThread {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// What it appeared to do.
    pub state: InitialState,
}

/// An executable mapping that was there before the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialMapping {
    /// Addresses.
    pub range: Range<u64>,
    /// Offset in the file.
    pub offset: u64,
    /// Path of the file, as the kernel shows it.
    pub path: String,
}

/// A child of the recorder that is about to execute the recorded program.
#[derive(Debug, Clone, Copy)]
struct AwaitedExec {
    pid: u32,
    parent_pid: u32,
}

struct Process {
    id: ProcessRef,
    parent_pid: Option<u32>,
    space: AddressSpace,
    threads: FxHashSet<u32>,
    image: Option<(String, Vec<String>)>,
    steps_begun: u64,
}

struct Thread {
    id: ThreadRef,
    pid: u32,
    name: String,
    life: ThreadTimeline,
}

/// Turns records into entries.
pub struct Assembler<W> {
    world: W,
    follow: Follow,
    switches: Switches,
    events: Vec<Event>,
    numbers: Numbers,
    caches: RuleCaches,
    processes: FxHashMap<u32, Process>,
    threads: FxHashMap<u32, Thread>,
    /// Threads that ended; what comes of them later is the kernel burying them.
    ended: FxHashSet<u32>,
    awaited: Option<AwaitedExec>,
    start_ns: Option<u64>,
    now_ns: Option<u64>,
    losses: Losses,
    scratch: Vec<FrameRef>,
    /// The place in the kernel that tells of wake-ups.
    tells_wakings: Option<u64>,
    step_at: Option<StepAt>,
}

/// Where a step begins: the path of a mapped file, and an offset in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepAt {
    path: String,
    offset: u64,
}

/// The numbering of what one log declares.
#[derive(Default)]
struct Numbers {
    processes: u32,
    threads: u32,
    modules: FxHashMap<Module, ModuleRef>,
    tables: Vec<(Module, Option<Option<UnwindTables>>)>,
    kernel: Option<ModuleRef>,
    frames: FxHashMap<(Option<ModuleRef>, u64), FrameRef>,
    stacks: FxHashMap<(Option<StackRef>, FrameRef), StackRef>,
    /// The nodes of the last stack, root first.
    last_stack: Vec<(FrameRef, StackRef)>,
    known_stacks: KnownStacks,
}

/// Stacks seen before, leaf first: most samples have one of a few, and one look-up is less than one for each frame.
#[derive(Default)]
struct KnownStacks {
    stacks: FxHashMap<Box<[FrameRef]>, StackRef>,
    /// In all of them.
    frames: usize,
}

impl KnownStacks {
    /// 4 MiB of frames.
    const MOST_FRAMES: usize = 1 << 20;

    fn insert(&mut self, frames: &[FrameRef], stack: StackRef) {
        if self.frames + frames.len() > Self::MOST_FRAMES {
            *self = Self::default();
        }
        self.frames += frames.len();
        self.stacks.insert(frames.into(), stack);
    }
}

/// Everything that naming a frame needs.
struct Naming<'a, W, S> {
    numbers: &'a mut Numbers,
    world: &'a mut W,
    sink: &'a mut S,
}

impl Numbers {
    fn module(&mut self, module: Module, sink: &mut impl Sink) -> ModuleRef {
        if let Some(&known) = self.modules.get(&module) {
            return known;
        }
        let id = ModuleRef(self.tables.len() as u32);
        self.tables.push((module.clone(), None));
        self.modules.insert(module.clone(), id);
        sink.take(Entry::Module(module));
        id
    }

    fn frame(&mut self, module: Option<ModuleRef>, offset: u64, sink: &mut impl Sink) -> FrameRef {
        let next = FrameRef(self.frames.len() as u32);
        *self.frames.entry((module, offset)).or_insert_with(|| {
            sink.take(Entry::Frame { module, offset });
            next
        })
    }

    fn kernel_frame(&mut self, address: u64, sink: &mut impl Sink) -> FrameRef {
        let module = match self.kernel {
            Some(known) => known,
            None => {
                let kernel = Module { kind: ModuleKind::Kernel, path: "[kernel.kallsyms]".into(), build_id: None };
                let module = self.module(kernel, sink);
                *self.kernel.insert(module)
            }
        };
        self.frame(Some(module), address, sink)
    }

    /// The stack of these frames, leaf first. Most of it is that of the stack before.
    fn stack(&mut self, frames: &[FrameRef], sink: &mut impl Sink) -> Option<StackRef> {
        if let Some(&known) = self.known_stacks.stacks.get(frames) {
            return Some(known);
        }
        let common = frames.iter().rev().zip(&self.last_stack).take_while(|(frame, (last, _))| *frame == last).count();
        self.last_stack.truncate(common);
        for &frame in frames.iter().rev().skip(common) {
            let parent = self.last_stack.last().map(|&(_, stack)| stack);
            let next = StackRef(self.stacks.len() as u32);
            let stack = *self.stacks.entry((parent, frame)).or_insert_with(|| {
                sink.take(Entry::Stack { parent, frame });
                next
            });
            self.last_stack.push((frame, stack));
        }
        let stack = self.last_stack.last().map(|&(_, stack)| stack)?;
        self.known_stacks.insert(frames, stack);
        Some(stack)
    }
}

impl<W: Target, S: Sink> Naming<'_, W, S> {
    fn tables(&mut self, mapping: &Mapping, pid: u32) -> Option<&UnwindTables> {
        let (module, tables) = &mut self.numbers.tables[mapping.module.0 as usize];
        tables.get_or_insert_with(|| self.world.unwind_tables(module, pid)).as_ref()
    }
}

impl<W: Target, S: Sink> Names for Naming<'_, W, S> {
    type Target = W;

    fn frame(&mut self, mapping: &Mapping, address: u64) -> FrameRef {
        let offset = mapping.offset + (address - mapping.range.start);
        self.numbers.frame(Some(mapping.module), offset, self.sink)
    }

    fn framehop_module(&mut self, mapping: &Mapping, pid: u32) -> Option<framehop::Module<Arc<[u8]>>> {
        self.tables(mapping, pid)?.module(mapping.range.clone(), mapping.offset)
    }

    fn function(&mut self, mapping: &Mapping, address: u64, pid: u32) -> Option<Range<u64>> {
        self.tables(mapping, pid)?.function(mapping.range.clone(), mapping.offset, address)
    }

    fn world(&mut self) -> &mut W {
        self.world
    }
}

impl<W: Target> Assembler<W> {
    /// An assembler that knows no process yet. `start_ns` is where the recording window starts, where times are known.
    pub fn new(world: W, follow: Follow, switches: Switches, start_ns: Option<u64>) -> Self {
        Self {
            world,
            follow,
            switches,
            events: Vec::new(),
            numbers: Numbers::default(),
            caches: RuleCaches::new(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            ended: FxHashSet::default(),
            awaited: None,
            start_ns,
            now_ns: start_ns,
            losses: Losses::default(),
            scratch: Vec::new(),
            tells_wakings: None,
            step_at: None,
        }
    }

    /// Declares an event that samples may be of.
    pub fn add_event(&mut self, event: Event, sink: &mut impl Sink) -> EventRef {
        sink.take(Entry::Event(event.clone()));
        self.events.push(event);
        EventRef(self.events.len() as u32 - 1)
    }

    /// Introduces a process that is there already.
    pub fn add_running(&mut self, present: &InitialProcess, sink: &mut impl Sink) {
        let start_ns = self.start_ns;
        self.start_process(present.pid, present.parent_pid, None, AddressSpace::new(), sink);
        for thread in &present.threads {
            let life = ThreadTimeline::presumed(start_ns.unwrap_or(0), thread.state);
            self.start_thread(present.pid, thread.tid, thread.name.clone(), start_ns, life, sink);
        }
        for mapping in &present.mappings {
            self.map(
                Map {
                    pid: present.pid as i32,
                    start: mapping.range.start,
                    length: mapping.range.end.saturating_sub(mapping.range.start),
                    offset: mapping.offset,
                    file: FileIdentity::Unknown,
                    executable: true,
                    kernel: false,
                    path: mapping.path.clone().into_bytes(),
                },
                sink,
            );
        }
        self.read_image(present.pid, sink);
    }

    /// Tells that the kernel interrupts the program at this instruction, and may execute it elsewhere.
    pub fn set_step_probe(&mut self, path: String, offset: u64) {
        self.step_at = Some(StepAt { path, offset });
    }

    /// Announces a child that is about to execute a program. Until it does, it does not count.
    pub fn expect_exec(&mut self, pid: u32, parent_pid: u32) {
        self.awaited = Some(AwaitedExec { pid, parent_pid });
    }

    fn awaits(&self, pid: u32) -> bool {
        self.awaited.is_some_and(|awaited| awaited.pid == pid)
    }

    /// Whether the records of this process count.
    pub fn follows(&self, pid: u32) -> bool {
        self.follow == Follow::Everything || self.awaits(pid) || self.processes.contains_key(&pid)
    }

    /// Ids of the followed processes that have not ended.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// The same, and the one that is about to execute a program.
    pub fn expected_pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.pids().chain(self.awaited.map(|awaited| awaited.pid))
    }

    /// Ends a process of which the source learned by other ways than records that it has ended.
    pub fn end_process(&mut self, pid: u32, time_ns: u64, sink: &mut impl Sink) {
        if self.awaits(pid) {
            self.awaited = None;
        }
        let Some(process) = self.processes.get(&pid) else { return };
        let mut threads: Vec<u32> = process.threads.iter().copied().collect();
        threads.sort_unstable();
        if threads.is_empty() {
            self.processes.remove(&pid);
        }
        for tid in threads {
            self.ended.insert(tid);
            self.end_thread(tid, Some(time_ns), sink);
        }
    }

    /// The process' number in the log, by its id now.
    pub fn process(&self, pid: u32) -> Option<ProcessRef> {
        self.processes.get(&pid).map(|process| process.id)
    }

    /// The thread's number in the log, by its id now.
    pub fn thread_of(&self, tid: u32) -> Option<ThreadRef> {
        self.threads.get(&tid).map(|thread| thread.id)
    }

    /// Whether no followed process is left, and none is about to start.
    pub fn is_over(&self) -> bool {
        self.processes.is_empty() && self.awaited.is_none()
    }

    /// What is lost so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Notes that off-CPU stacks are taken at every n-th switch only.
    pub fn note_switch_stack_period(&mut self, period: u64) {
        let thinned = self.losses.offcpu_stack_period.get_or_insert(1);
        *thinned = (*thinned).max(period);
    }

    /// Takes the next record. Records that are damaged are counted, and otherwise ignored.
    pub fn take(&mut self, meaning: EventRole, raw: &RawEventRecord<'_>, sink: &mut impl Sink) {
        let Ok(mut record) = Record::parse(raw) else {
            self.losses.malformed_records += 1;
            return;
        };
        // perf makes up records of what was there before it began; their time is zero.
        record.time = record.time.filter(|&time| time != 0);
        self.now_ns = self.now_ns.max(record.time);
        let time = record.time;
        match record.body {
            Body::Sample(ref sample) => self.sample(meaning, &record, sample, raw, sink),
            Body::Comm { pid, tid, ref name, exec } => self.comm(pid as u32, tid as u32, name, exec, time, sink),
            Body::Fork { pid, parent_pid, tid, parent_tid } => {
                self.fork(pid as u32, parent_pid as u32, tid as u32, parent_tid as u32, time, sink);
            }
            Body::Exit { tid, .. } => {
                self.ended.insert(tid as u32);
                self.end_thread(tid as u32, time, sink);
            }
            Body::Map(map) => self.map(map, sink),
            Body::SwitchIn => {
                self.switch(record.pid, record.tid, time, sink, |life, time| life.switch_in(time, record.cpu));
            }
            Body::SwitchOut { preempted } => {
                self.switch(record.pid, record.tid, time, sink, |life, time| life.switch_out(time, preempted));
            }
            Body::Lost(count) => self.losses.lost_records = self.losses.lost_records.saturating_add(count),
            Body::Throttled => self.losses.throttled += 1,
            Body::Other => {}
        }
    }

    /// Ends what is open, at the end of the recording window.
    pub fn finish(&mut self, end_ns: Option<u64>, sink: &mut impl Sink) {
        self.close(end_ns.or(self.now_ns), sink);
        self.threads.clear();
        self.processes.clear();
    }

    /// Ends one log and starts another in which the same processes live on. Numbers start anew: the second log stands
    /// for itself. The caller writes what comes before ([`Entry::Start`]) and after.
    pub fn cut(&mut self, time_ns: u64, old: &mut impl Sink, new: &mut impl Sink) {
        self.close(Some(time_ns), old);
        self.losses = Losses::default();
        self.start_ns = Some(time_ns);
        let before = std::mem::take(&mut self.numbers);
        for event in &self.events {
            new.take(Entry::Event(event.clone()));
        }
        let numbers = &mut self.numbers;
        for (&pid, process) in sorted(&mut self.processes) {
            process.id = ProcessRef(numbers.processes);
            numbers.processes += 1;
            new.take(Entry::Process { pid, parent_pid: process.parent_pid, start_ns: None });
            if let Some((executable, command_line)) = process.image.clone() {
                new.take(Entry::Image { process: process.id, executable, command_line });
            }
            process.space.renumber(|module| {
                let (module, tables) = &before.tables[module.0 as usize];
                let known = numbers.tables.len();
                let id = numbers.module(module.clone(), new);
                if id.0 as usize == known {
                    numbers.tables[known].1 = tables.clone();
                }
                id
            });
        }
        for (&tid, thread) in sorted(&mut self.threads) {
            thread.id = ThreadRef(numbers.threads);
            numbers.threads += 1;
            thread.life = thread.life.continued(time_ns);
            let process = self.processes[&thread.pid].id;
            new.take(Entry::Thread { tid, process, start_ns: Some(time_ns), name: thread.name.clone() });
        }
    }

    fn close(&mut self, end_ns: Option<u64>, sink: &mut impl Sink) {
        let (switches, mut ended) = (self.switches, Vec::new());
        for (_, thread) in sorted(&mut self.threads) {
            // The life goes on in the next log, if there is one; it must not be ended itself.
            let next = end_ns.map(|end_ns| thread.life.continued(end_ns));
            ended.extend(end_life(thread, end_ns, switches));
            if let Some(next) = next {
                thread.life = next;
            }
        }
        ended.into_iter().for_each(|entry| sink.take(entry));
        sink.take(Entry::Losses(Box::new(self.losses.clone())));
    }

    fn sample(
        &mut self,
        meaning: EventRole,
        record: &Record<'_>,
        sample: &record::Sample<'_>,
        raw: &RawEventRecord<'_>,
        sink: &mut impl Sink,
    ) {
        // Interrupts of the idle task have no thread; -1 is a thread that is being buried.
        let (Some(pid), Some(tid)) = (record.pid.filter(|&pid| pid > 0), record.tid.filter(|&tid| tid > 0)) else {
            match meaning {
                EventRole::Waking { pid_at } => {
                    self.tells_wakings = sample.ip;
                    self.waking(pid_at, None, None, record, sample);
                }
                EventRole::Switch { next_tid_at, .. } => self.comes(next_tid_at, record, sample, sink),
                _ => {}
            }
            return;
        };
        let (pid, tid) = (pid as u32, tid as u32);
        let thread = self.thread(pid, tid, record.time, sink);
        if let Some(time) = record.time.filter(|_| thread.is_some()) {
            let (pid, tid) = (Some(pid as i32), Some(tid as i32));
            self.switch(pid, tid, Some(time), sink, |life, time| life.on_cpu(time, record.cpu));
        }
        match (meaning, thread) {
            (EventRole::Sampled { event, weight }, Some(thread)) => {
                let stack = self.stack((pid, tid), sample, raw, sink);
                self.losses.samples += 1;
                sink.take(Entry::Sample(Sample {
                    time_ns: record.time,
                    thread,
                    cpu: record.cpu,
                    stack,
                    event,
                    weight: sample.period.unwrap_or(weight),
                }));
            }
            (EventRole::Step { time }, Some(thread)) => {
                if let (Some(time_ns), Some(process)) = (record.time, self.processes.get_mut(&pid)) {
                    let sim_time_ns = time.read(process.steps_begun, sample.raw.as_deref());
                    process.steps_begun += 1;
                    sink.take(Entry::StepStart { time_ns, thread, sim_time_ns });
                }
            }
            (EventRole::SwitchStack, Some(_)) => {
                let stack = self.stack((pid, tid), sample, raw, sink);
                self.losses.samples += 1;
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.life.will_switch_at(stack);
                }
            }
            (EventRole::Switch { state_at, next_tid_at }, Some(_)) => {
                let stack = self.stack((pid, tid), sample, raw, sink);
                self.losses.samples += 1;
                let preempted = is_runnable(state_at, sample);
                self.switch(record.pid, record.tid, record.time, sink, |life, time| {
                    life.will_switch_at(stack);
                    life.switch_out(time, preempted)
                });
                self.comes(next_tid_at, record, sample, sink);
            }
            (EventRole::Switch { next_tid_at, .. }, None) => self.comes(next_tid_at, record, sample, sink),
            (EventRole::Waking { pid_at }, thread) => {
                self.tells_wakings = sample.ip;
                if !self.is_known_sleeper(pid_at, sample) {
                    return;
                }
                let waker = thread.filter(|_| !from_interrupt(sample));
                let has_stack = sample.regs.is_some() || !sample.callchain.is_empty();
                let stack = waker.filter(|_| has_stack).and_then(|_| self.stack((pid, tid), sample, raw, sink));
                self.waking(pid_at, waker, stack, record, sample);
            }
            (EventRole::WakerStack { pid_at }, Some(waker)) => {
                // Where an interrupt woke it, the current thread has nothing to do with it, nor has its stack.
                let Some(woken) = tid_in(pid_at, sample)
                    .filter(|woken| self.threads.get(woken).is_some_and(|thread| thread.life.lacks_stack_of(waker)))
                else {
                    return;
                };
                let mut sample = sample.clone();
                self.tells_wakings.into_iter().for_each(|at| sample.begin_above(at));
                let stack = self.stack((pid, tid), &sample, raw, sink);
                if let Some(woken) = self.threads.get_mut(&woken) {
                    woken.life.woken_from(stack);
                }
            }
            _ => {}
        }
    }

    fn is_known_sleeper(&self, pid_at: usize, sample: &record::Sample<'_>) -> bool {
        tid_in(pid_at, sample).is_some_and(|tid| self.threads.contains_key(&tid))
    }

    fn waking(
        &mut self,
        pid_at: usize,
        waker: Option<ThreadRef>,
        stack: Option<StackRef>,
        record: &Record<'_>,
        sample: &record::Sample<'_>,
    ) {
        let Some(time_ns) = record.time else { return };
        if let Some(woken) = tid_in(pid_at, sample).and_then(|tid| self.threads.get_mut(&tid)) {
            woken.life.woken(Wake { time_ns, waker, stack });
        }
    }

    /// The thread that a switch brings to the processor, if it is one that was heard of.
    fn comes(&mut self, tid_at: usize, record: &Record<'_>, sample: &record::Sample<'_>, sink: &mut impl Sink) {
        let Some(tid) = tid_in(tid_at, sample) else { return };
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        let (pid, tid) = (Some(pid as i32), Some(tid as i32));
        self.switch(pid, tid, record.time, sink, |life, time| life.switch_in(time, record.cpu));
    }

    /// The stack of a sample, kernel part included.
    fn stack(
        &mut self,
        (pid, tid): (u32, u32),
        sample: &record::Sample<'_>,
        raw: &RawEventRecord<'_>,
        sink: &mut impl Sink,
    ) -> Option<StackRef> {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        let chains = Chains::split(sample);
        for (index, &address) in chains.kernel.iter().enumerate() {
            let address = if index == 0 { address } else { address.wrapping_sub(1) };
            frames.push(self.numbers.kernel_frame(address, sink));
        }
        let user = self.processes.get_mut(&pid);
        let user = user.and_then(|process| {
            let registers = registers(sample, raw.parse_info.sample_regs_user);
            let mut registers = registers.or_else(|| Registers::of_chain(&chains.user))?;
            if let Some(step_at) = self.step_at.as_ref().filter(|_| process.space.is_out_of_line(registers.ip)) {
                let is_there = |module: ModuleRef| self.numbers.tables[module.0 as usize].0.path == step_at.path;
                registers.ip = process.space.back_in_line(registers.ip, step_at.offset, is_there);
            }
            let stack = UserStack { pid, tid, registers, copied: &sample.stack, frame_pointer_chain: &chains.user };
            let mut naming = Naming { numbers: &mut self.numbers, world: &mut self.world, sink };
            Some(process.space.walk(&stack, &mut self.caches, &mut naming, &mut frames))
        });
        match user {
            Some(Ending::Truncated) => self.losses.truncated_stacks += 1,
            // Without a copy there is nothing to continue.
            Some(Ending::Continued) if sample.regs.is_some() => self.losses.continued_stacks += 1,
            Some(Ending::Root | Ending::Continued) | None => {}
        }
        let stack = self.numbers.stack(&frames, sink);
        self.scratch = frames;
        stack
    }

    /// The thread of a record, introduced if it is one that counts and was never heard of.
    fn thread(&mut self, pid: u32, tid: u32, time: Option<u64>, sink: &mut impl Sink) -> Option<ThreadRef> {
        if let Some(thread) = self.threads.get(&tid) {
            return Some(thread.id);
        }
        if self.ended.contains(&tid) || self.awaits(pid) || !self.follows(pid) {
            return None;
        }
        if !self.processes.contains_key(&pid) {
            self.start_process(pid, None, None, AddressSpace::new(), sink);
            self.read_image(pid, sink);
        }
        let name = (self.threads.get(&pid)).map_or_else(|| format!("thread {tid}"), |main| main.name.clone());
        let start_ns = self.start_ns.or(time);
        let life = ThreadTimeline::presumed(start_ns.unwrap_or(0), InitialState::Blocked);
        Some(self.start_thread(pid, tid, name, start_ns, life, sink))
    }

    fn switch(
        &mut self,
        pid: Option<i32>,
        tid: Option<i32>,
        time: Option<u64>,
        sink: &mut impl Sink,
        change: impl FnOnce(&mut ThreadTimeline, u64) -> Option<Interval>,
    ) {
        if self.switches == Switches::Unrecorded {
            return;
        }
        let (Some(pid), Some(tid), Some(time)) = (pid, tid, time) else { return };
        if pid <= 0 || tid <= 0 || self.thread(pid as u32, tid as u32, Some(time), sink).is_none() {
            return;
        }
        let Some(thread) = self.threads.get_mut(&(tid as u32)) else { return };
        if let Some(interval) = change(&mut thread.life, time) {
            sink.take(wait(thread.id, interval));
        }
    }

    fn comm(&mut self, pid: u32, tid: u32, name: &str, exec: bool, time: Option<u64>, sink: &mut impl Sink) {
        if exec {
            return self.exec(pid, tid, name, time, sink);
        }
        if self.awaits(pid) {
            return;
        }
        let known = self.threads.contains_key(&tid);
        let Some(id) = self.thread(pid, tid, time, sink) else { return };
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.name != name) else { return };
        thread.name = name.to_owned();
        // A source that starts by naming what was there before (perf does) is not telling of a change.
        let time_ns = time.filter(|_| known).unwrap_or(0);
        sink.take(Entry::ThreadName { thread: id, time_ns, name: name.to_owned() });
    }

    fn exec(&mut self, pid: u32, tid: u32, name: &str, time: Option<u64>, sink: &mut impl Sink) {
        if let Some(awaited) = self.awaited.take_if(|awaited| awaited.pid == pid) {
            self.start_ns = time;
            if let Some(time_ns) = time {
                sink.take(Entry::WindowStart { time_ns });
            }
            self.start_process(pid, Some(awaited.parent_pid), time, AddressSpace::new(), sink);
            self.start_thread(pid, tid, name.to_owned(), time, ThreadTimeline::running(time.unwrap_or(0)), sink);
        }
        if self.thread(pid, tid, time, sink).is_none() {
            return;
        }
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.space = AddressSpace::new();
        process.image = None;
        let others: Vec<u32> = process.threads.iter().copied().filter(|&other| other != tid).collect();
        for other in others {
            self.end_thread(other, time, sink);
        }
        self.comm(pid, tid, name, false, time, sink);
        self.read_image(pid, sink);
    }

    fn fork(&mut self, pid: u32, parent_pid: u32, tid: u32, parent_tid: u32, time: Option<u64>, sink: &mut impl Sink) {
        if self.awaits(parent_pid) || self.threads.contains_key(&tid) {
            return;
        }
        if self.follow == Follow::Tree && !self.processes.contains_key(&parent_pid) {
            return;
        }
        self.ended.remove(&tid);
        if !self.processes.contains_key(&pid) {
            let parent = self.processes.get(&parent_pid);
            let image = parent.and_then(|parent| parent.image.clone());
            let space = parent.map_or_else(AddressSpace::new, |parent| parent.space.forked());
            self.start_process(pid, Some(parent_pid), time, space, sink);
            self.set_image(pid, image, sink);
        }
        let maker = self.threads.get(&parent_tid).or_else(|| self.threads.get(&parent_pid));
        let name = maker.map_or_else(|| format!("thread {tid}"), |maker| maker.name.clone());
        let life = match time {
            Some(time) => ThreadTimeline::born(time),
            None => ThreadTimeline::presumed(self.start_ns.unwrap_or(0), InitialState::Blocked),
        };
        self.start_thread(pid, tid, name, time.or(self.start_ns), life, sink);
    }

    fn map(&mut self, map: Map, sink: &mut impl Sink) {
        if map.kernel || !map.executable || map.pid <= 0 || self.awaits(map.pid as u32) {
            return;
        }
        let pid = map.pid as u32;
        if map.path == b"[uprobes]" {
            let range = map.start..map.start.saturating_add(map.length);
            return self.processes.get_mut(&pid).map_or((), |process| process.space.execute_out_of_line(range));
        }
        if !self.processes.contains_key(&pid) {
            if self.follow == Follow::Tree {
                return;
            }
            self.start_process(pid, None, None, AddressSpace::new(), sink);
        }
        let Some(end) = map.start.checked_add(map.length) else { return };
        let Some(module) = module_of(&map, pid) else { return };
        let offset = match module.kind {
            ModuleKind::File => map.offset,
            ModuleKind::Vdso => 0,
            ModuleKind::Jit(_) | ModuleKind::Kernel => map.start,
        };
        let is_file = module.kind == ModuleKind::File;
        let module = self.numbers.module(module, sink);
        let process = self.processes.get_mut(&pid).expect("added above");
        process.space.map(Mapping { range: map.start..end, offset, module });
        // The kernel maps a program's own file before any other.
        if is_file && process.image.is_none() {
            let executable = String::from_utf8_lossy(&map.path).into_owned();
            self.set_image(pid, Some((executable, Vec::new())), sink);
        }
    }

    fn start_process(
        &mut self,
        pid: u32,
        parent_pid: Option<u32>,
        start_ns: Option<u64>,
        space: AddressSpace,
        sink: &mut impl Sink,
    ) {
        let id = ProcessRef(self.numbers.processes);
        self.numbers.processes += 1;
        self.processes
            .insert(pid, Process { id, parent_pid, space, threads: FxHashSet::default(), image: None, steps_begun: 0 });
        sink.take(Entry::Process { pid, parent_pid, start_ns });
    }

    fn start_thread(
        &mut self,
        pid: u32,
        tid: u32,
        name: String,
        start_ns: Option<u64>,
        life: ThreadTimeline,
        sink: &mut impl Sink,
    ) -> ThreadRef {
        let id = ThreadRef(self.numbers.threads);
        self.numbers.threads += 1;
        let process = self.processes.get_mut(&pid).expect("a thread starts in a process that is known");
        process.threads.insert(tid);
        sink.take(Entry::Thread { tid, process: process.id, start_ns, name: name.clone() });
        self.threads.insert(tid, Thread { id, pid, name, life });
        id
    }

    fn end_thread(&mut self, tid: u32, time: Option<u64>, sink: &mut impl Sink) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        end_life(&mut thread, time, self.switches).into_iter().for_each(|entry| sink.take(entry));
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        process.threads.remove(&tid);
        process.space.forget_thread(tid);
        if process.threads.is_empty() {
            if let Some(time_ns) = time {
                sink.take(Entry::ProcessEnd { process: process.id, time_ns });
            }
            self.processes.remove(&thread.pid);
        }
    }

    fn read_image(&mut self, pid: u32, sink: &mut impl Sink) {
        let image = self.world.image(pid);
        self.set_image(pid, image, sink);
    }

    fn set_image(&mut self, pid: u32, image: Option<(String, Vec<String>)>, sink: &mut impl Sink) {
        let Some((executable, command_line)) = image else { return };
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.image = Some((executable.clone(), command_line.clone()));
        sink.take(Entry::Image { process: process.id, executable, command_line });
    }
}

/// Entries of a map in the order of their keys, so that logs do not depend on hashing.
fn sorted<V>(map: &mut FxHashMap<u32, V>) -> Vec<(&u32, &mut V)> {
    let mut entries: Vec<_> = map.iter_mut().collect();
    entries.sort_by_key(|(key, _)| **key);
    entries
}

fn end_life(thread: &mut Thread, time: Option<u64>, switches: Switches) -> Vec<Entry> {
    let recorded = switches != Switches::Unrecorded;
    let last = time.filter(|_| recorded).and_then(|time| thread.life.end(time));
    let end = Entry::ThreadEnd {
        thread: thread.id,
        time_ns: time,
        cpu_ns: recorded.then_some(thread.life.running_ns),
        runnable_ns: (switches == Switches::WithWakeUps).then_some(thread.life.runnable_ns),
    };
    last.map(|interval| wait(thread.id, interval)).into_iter().chain([end]).collect()
}

fn wait(thread: ThreadRef, interval: Interval) -> Entry {
    Entry::Wait(Wait {
        start_ns: interval.start_ns,
        end_ns: interval.end_ns,
        thread,
        stack: interval.stack,
        state: interval.state,
        runnable_ns: interval.runnable_ns,
        cpu: interval.cpu,
        waker: interval.wake.and_then(|wake| wake.waker),
        waker_stack: interval.wake.and_then(|wake| wake.stack),
    })
}

/// What a mapped path means. `None` for pages that hold no code of interest.
fn module_of(map: &Map, pid: u32) -> Option<Module> {
    let path = String::from_utf8_lossy(&map.path);
    let kind = match &*path {
        "[vdso]" => ModuleKind::Vdso,
        "[vsyscall]" | "[uprobes]" => return None,
        "" | "//anon" | "[heap]" | "[stack]" | "/dev/zero" | "/dev/zero (deleted)" => ModuleKind::Jit(pid),
        path if path.starts_with("[anon") || path.starts_with("/memfd:") || path.starts_with("/anon_hugepage") => {
            ModuleKind::Jit(pid)
        }
        path if path.starts_with('/') => ModuleKind::File,
        _ => ModuleKind::Jit(pid),
    };
    let path = match kind {
        ModuleKind::Jit(_) => "[jit]".to_owned(),
        _ => path.into_owned(),
    };
    let build_id = match &map.file {
        FileIdentity::BuildId(id) if kind == ModuleKind::File => Some(id.clone()),
        _ => None,
    };
    Some(Module { kind, path, build_id })
}

/// The `common_flags` bits that say that an interrupt interrupted the current thread (`TRACE_FLAG_HARDIRQ`,
/// `TRACE_FLAG_SOFTIRQ`): the thread has nothing to do with the wake-up.
fn from_interrupt(sample: &record::Sample<'_>) -> bool {
    sample.raw.as_deref().and_then(|raw| raw.get(2)).is_none_or(|flags| flags & 0x18 != 0)
}

/// Whether a thread that is switched out could go on: its state is `TASK_RUNNING`, or `TASK_REPORT_MAX`, which stands
/// for the same of a preempted one.
fn is_runnable(state_at: usize, sample: &record::Sample<'_>) -> bool {
    const PREEMPTED: u64 = 0x100;
    let bytes = sample.raw.as_deref().and_then(|raw| raw.get(state_at..)?.first_chunk());
    bytes.is_some_and(|&bytes| matches!(u64::from_ne_bytes(bytes), 0 | PREEMPTED))
}

fn tid_in(tid_at: usize, sample: &record::Sample<'_>) -> Option<u32> {
    let bytes = sample.raw.as_deref()?.get(tid_at..tid_at.checked_add(4)?)?;
    u32::try_from(i32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}

/// A callchain's parts.
struct Chains {
    kernel: Vec<u64>,
    user: Vec<u64>,
}

impl Chains {
    /// Splits at the markers (`PERF_CONTEXT_*`, the highest 4095 numbers) that name what follows.
    fn split(sample: &record::Sample<'_>) -> Self {
        const MARKERS: u64 = -4095_i64 as u64;
        const KERNEL: u64 = -128_i64 as u64;
        const USER: u64 = -512_i64 as u64;
        let mut chains = Self { kernel: Vec::new(), user: Vec::new() };
        let mut context = if sample.in_kernel { KERNEL } else { USER };
        for &address in &sample.callchain {
            match (address >= MARKERS, context) {
                (true, _) => context = address,
                (false, KERNEL) => chains.kernel.push(address),
                (false, USER) => chains.user.push(address),
                (false, _) => {}
            }
        }
        if sample.callchain.is_empty() {
            let chain = if sample.in_kernel { &mut chains.kernel } else { &mut chains.user };
            chain.extend(sample.ip);
        }
        chains
    }
}

impl Registers {
    /// For sources that copy neither registers nor stacks: the walk ends after the first frame, and the chain goes on.
    fn of_chain(chain: &[u64]) -> Option<Self> {
        Some(Self { ip: *chain.first()?, sp: Self::NO_STACK, fp: u64::MAX, lr: 0 })
    }
}

/// The registers that unwinding needs, from those recorded in the order of their numbers.
fn registers(sample: &record::Sample<'_>, mask: u64) -> Option<Registers> {
    #[cfg(target_arch = "x86_64")]
    const NUMBERS: [u32; 4] = [8, 7, 6, 8]; // PERF_REG_X86_IP, SP, BP; there is no link register
    #[cfg(target_arch = "aarch64")]
    const NUMBERS: [u32; 4] = [32, 31, 29, 30]; // PERF_REG_ARM64_PC, SP, X29, LR
    let values = sample.regs.as_deref()?;
    let value = |number: u32| {
        let below = mask & ((1u64 << number) - 1);
        (mask >> number & 1 == 1).then(|| values.get(below.count_ones() as usize).copied())?
    };
    let [ip, sp, fp, lr] = NUMBERS.map(value);
    Some(Registers { ip: ip?, sp: sp?, fp: fp?, lr: lr? })
}

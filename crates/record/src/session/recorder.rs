//! The thread that records: rings in, log out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use linux_perf_event_reader::RawEventRecord;
use stepscope_assemble::raw_log::Writer;
use stepscope_assemble::{Assembler, Entry, EventRef, EventRole, Follow, MachineReading, RecordingEnd, Sink};
use stepscope_model::{CaptureInfo, Dimension, DimensionStatus, Losses, Machine, Origin, RecordingCost};

use super::plan::{Plan, open_side_band};
use super::running::{present, program_of};
use super::thinning::{Slice, Thinning};
use super::{Label, Options, Progress, RecordError, StepPoint};
use crate::clock;
use crate::conditions::read_machine;
use crate::finish::create_log;
use crate::live::LiveTarget;
use crate::machine;
use crate::marks::Marks;
use crate::perf::{Events, Kind, RecordTaker, Scope};
use crate::proc::{self, ProcessTree, ResourceSampler};
/// How long records wait at most, where only rings are read: they wake us when they fill.
const ROUND: Duration = Duration::from_millis(50);
/// The longest round if stacks are continued from live memory, or if programs leave marks. That memory must have changed
/// little since the copy, and a program's rings have room for marks for about this time.
const SHORT_ROUND: Duration = Duration::from_millis(20);
/// Rounds stay short for this long after the last reason.
const SHORT_FOR: Duration = Duration::from_secs(1);
/// A record appears in its ring at most this long after its timestamp. If a hypervisor took the CPU away in between, it
/// may appear later, and then slightly out of order.
const SETTLED_NS: u64 = 2_000_000;
/// Readings of processes that the rings do not know yet, at most. Those are of one round; this is for what never comes.
const MOST_WAITING_READINGS: usize = 10_000;
/// How often the log is flushed and `/proc` is read.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// What the recording thread is asked.
pub(super) enum Command {
    BeginNext { folder: PathBuf, label: Label, answer: Sender<Result<(), RecordError>> },
    Pause(Sender<()>),
    Exited { pid: u32, status: i32 },
    Stop(Sender<()>),
}

/// Where entries go.
enum Output {
    Log { writer: Writer<File>, folder: PathBuf, cpu_before_ns: u64, start: Box<MachineReading> },
    Paused,
}

/// A sink that counts what passes.
struct Counted {
    output: Output,
    /// The event of CPU samples.
    cpu_event: Option<EventRef>,
    cpu_samples: u64,
    waits: u64,
    steps: u64,
}

impl Counted {
    fn new(output: Output) -> Self {
        Self { output, cpu_event: None, cpu_samples: 0, waits: 0, steps: 0 }
    }
}

impl Sink for Counted {
    fn take(&mut self, entry: Entry) {
        let is_cpu = |event| Some(event) == self.cpu_event;
        self.cpu_samples += u64::from(matches!(&entry, Entry::Sample(sample) if is_cpu(sample.event)));
        self.waits += u64::from(matches!(entry, Entry::Wait(_)));
        self.steps += u64::from(matches!(entry, Entry::StepStart { .. } | Entry::StepMark { .. }));
        if let Output::Log { writer, .. } = &mut self.output {
            writer.take(entry);
        }
    }
}

/// Everything that a recording needs, ready to run.
pub(super) struct Recorder {
    events: Events,
    meanings: BTreeMap<Kind, EventRole>,
    assembler: Assembler<LiveTarget>,
    sink: Counted,
    marks: Marks,
    resources: Option<Resources>,
    dimensions: BTreeMap<Dimension, DimensionStatus>,
    machine: Machine,
    label: Label,
    launched: Option<u32>,
    program: (Vec<String>, Option<String>, BTreeMap<String, String>),
    thinning: Thinning,
    pace: Pace,
    window_ns: u64,
    /// Everything recorded before this time is in the rings for sure.
    looked_ns: u64,
    started: bool,
    /// Processes that were gone at the last look.
    gone: BTreeSet<u32>,
}

/// Processes' resources over time.
struct Resources {
    sampler: ResourceSampler,
    readings: Vec<proc::Reading>,
    /// The last of each, for a capture that begins later.
    last: BTreeMap<(u32, Option<u32>, &'static str), i64>,
}

/// How long rounds are.
#[derive(Default)]
struct Pace {
    /// Stacks so far for which the copy was too short.
    beyond_copy: u64,
    short_since: Option<Instant>,
}

impl Pace {
    fn next(&mut self, losses: &Losses, marked: bool) -> Duration {
        let beyond_copy = losses.continued_stacks + losses.truncated_stacks;
        if marked || beyond_copy != self.beyond_copy {
            self.beyond_copy = beyond_copy;
            self.short_since = Some(Instant::now());
        }
        let short = self.short_since.is_some_and(|since| since.elapsed() < SHORT_FOR);
        if short { SHORT_ROUND } else { ROUND }
    }
}

/// Passes records from the rings to the assembler.
struct AssemblerFeed<'a> {
    assembler: &'a mut Assembler<LiveTarget>,
    meanings: &'a BTreeMap<Kind, EventRole>,
    sink: &'a mut Counted,
}

impl RecordTaker for AssemblerFeed<'_> {
    fn wants(&self, pid: u32) -> bool {
        self.assembler.follows(pid)
    }

    fn take(&mut self, kind: Kind, record: &RawEventRecord<'_>) {
        let meaning = self.meanings.get(&kind).copied().unwrap_or(EventRole::SideBand);
        self.assembler.add_record(meaning, record, self.sink);
    }
}

impl Recorder {
    /// Prepares to record a child that waits before its exec.
    pub fn of_child(pid: u32, options: &Options, folder: &Path, marks: Marks) -> Result<Self, RecordError> {
        let mut recorder = Self::open(Scope::OnExec(pid), options, folder, ProcessTree::of(pid), marks)?;
        recorder.assembler.expect_exec(pid, std::process::id());
        recorder.events.admit(pid);
        recorder.launched = Some(pid);
        recorder.enable()?;
        Ok(recorder)
    }

    /// Prepares to record a running process and what descends from it.
    pub fn of_tree(pid: u32, options: &Options, folder: &Path, marks: Marks) -> Result<Self, RecordError> {
        let mut tree = ProcessTree::of(pid);
        tree.refresh();
        let pids = |tree: &ProcessTree| -> Vec<u32> { tree.members().map(|member| member.pid()).collect() };
        let threads: Vec<u32> =
            pids(&tree).into_iter().flat_map(|pid| proc::threads(pid).unwrap_or_default()).collect();
        if threads.is_empty() || proc::stat(pid).is_ok_and(|stat| stat.state.has_ended()) {
            return Err(RecordError::NoProcess { pid });
        }
        let mut recorder = Self::open(Scope::Threads(threads), options, folder, ProcessTree::of(pid), marks)?;
        recorder.note_program(pid);
        pids(&tree).into_iter().for_each(|pid| recorder.events.admit(pid));
        recorder.enable()?;
        // Read after enabling: whatever changes from here on is also in the rings, and knowing it twice does no harm.
        tree.refresh();
        for pid in pids(&tree) {
            recorder.events.admit(pid);
            if let Some(present) = present(pid) {
                recorder.assembler.add_running(&present, &mut recorder.sink);
            }
        }
        Ok(recorder)
    }

    fn open(
        scope: Scope,
        options: &Options,
        folder: &Path,
        tree: ProcessTree,
        marks: Marks,
    ) -> Result<Self, RecordError> {
        raise_descriptor_limit();
        let mut events = open_side_band(scope, options)?;
        events.set_stack_bytes(
            options
                .stack_bytes
                .unwrap_or(match events.ring_bytes() {
                    4_194_304.. => 32 << 10,
                    1_048_576.. => 16 << 10,
                    _ => 8 << 10,
                })
                .min(65_000),
        );
        let mut plan = Plan::new(&mut events, options);
        plan.add_cpu()?;
        plan.add_switches();
        plan.add_faults();
        plan.add_steps();
        plan.add_others();
        let Plan { dimensions, mut meanings, named, switches, .. } = plan;
        let machine = machine::describe();
        let window_ns = clock::now_ns();
        let resources = options.dimensions.contains(&Dimension::Resources).then(|| Resources {
            sampler: ResourceSampler::new(tree),
            readings: Vec::new(),
            last: BTreeMap::new(),
        });
        let mut recorder = Self {
            events,
            meanings: BTreeMap::new(),
            assembler: Assembler::new(LiveTarget::default(), Follow::Tree, switches, Some(window_ns)),
            sink: Counted::new(Output::Paused),
            marks,
            resources,
            dimensions,
            machine,
            label: options.label.clone(),
            launched: None,
            program: Default::default(),
            thinning: Thinning {
                max_hz: options.max_switch_stacks_hz.max(1),
                slices: 1,
                slice: 0,
                since: Instant::now(),
                stacks: 0,
            },
            pace: Pace::default(),
            window_ns,
            looked_ns: window_ns,
            started: false,
            gone: BTreeSet::new(),
        };
        if let Some(StepPoint { module, offset, .. }) = &options.step {
            let path = fs::canonicalize(module).unwrap_or_else(|_| module.clone());
            recorder.assembler.set_step_probe(path.to_string_lossy().into_owned(), *offset);
        }
        recorder.sink.output = recorder.new_log(folder)?;
        for (kind, event, weight) in named {
            let event = recorder.assembler.add_event(event, &mut recorder.sink);
            if kind == Kind::Cpu {
                recorder.sink.cpu_event = Some(event);
            }
            meanings.insert(kind, EventRole::Sampled { event, weight });
        }
        recorder.meanings = meanings;
        Ok(recorder)
    }

    /// A log in this folder that starts with what is known.
    fn new_log(&self, folder: &Path) -> Result<Output, RecordError> {
        fs::create_dir_all(folder).map_err(|source| RecordError::Folder { path: folder.to_owned(), source })?;
        let mut writer = create_log(folder)?;
        let (command, working_directory, environment) = self.program.clone();
        let start = Box::new(read_machine());
        writer.take(Entry::Start(Box::new(CaptureInfo {
            origin: Origin::Recorded,
            scenario: self.label.scenario.clone(),
            variant: self.label.variant.clone(),
            phase: self.label.phase,
            command,
            working_directory,
            environment,
            started_at: Some(clock::utc_now()),
            clock: Some("CLOCK_MONOTONIC".to_owned()),
            start_ns: Some(self.window_ns),
            machine: Some(self.machine.clone()),
            conditions: Some(start.conditions_until(None, None)),
            dimensions: self.dimensions.clone(),
            ..CaptureInfo::default()
        })));
        Ok(Output::Log { writer, folder: folder.to_owned(), cpu_before_ns: 0, start })
    }

    fn enable(&self) -> Result<(), RecordError> {
        let refused = |source| RecordError::Refused { what: "anything (enabling events failed)".into(), source };
        self.events.enable().map_err(refused)
    }

    /// Records until told to stop.
    pub fn run(mut self, commands: &Receiver<Command>, progress: &Mutex<Progress>) {
        raise_priority();
        let mut flushed = Instant::now() - FLUSH_EVERY;
        loop {
            self.events.wait(self.pace.next(self.assembler.losses(), self.marks.are_made()));
            self.round();
            if flushed.elapsed() >= FLUSH_EVERY {
                flushed = Instant::now();
                self.bury();
                self.assembler.expected_pids().for_each(|pid| self.events.admit(pid));
                self.read_resources();
                self.assembler.target_mut().kept.look();
                self.flush();
            }
            if self.started && self.assembler.is_over() {
                let _ = self.events.disable();
            }
            self.report(progress);
            loop {
                match commands.try_recv() {
                    Ok(Command::Stop(answer)) => {
                        self.stop();
                        self.report(progress);
                        let _ = answer.send(());
                        return;
                    }
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.stop(),
                }
            }
        }
    }

    /// Takes what the rings held when they were last looked at.
    fn round(&mut self) {
        let look_ns = clock::now_ns();
        self.drain(self.looked_ns.max(look_ns.saturating_sub(SETTLED_NS)));
        self.looked_ns = look_ns;
        self.read_marks();
        self.thin();
        self.learn_program();
    }

    fn drain(&mut self, until: u64) {
        let Self { assembler, meanings, sink, .. } = self;
        let mut feed = AssemblerFeed { assembler, meanings, sink };
        self.thinning.stacks += self.events.drain(until, &mut feed);
    }

    fn read_marks(&mut self) {
        let Self { marks, assembler, sink, .. } = self;
        marks.round(|pid| assembler.process_ref(pid).is_some(), sink);
    }

    fn thin(&mut self) {
        let changed = match self.thinning.next() {
            Slice::Same => return,
            Slice::WithStacks => self.events.resume_stacks(),
            Slice::Without => self.events.rest_stacks(),
        };
        if changed.is_ok() && self.thinning.slices > 1 {
            self.assembler.note_switch_stack_period(self.thinning.slices);
        }
    }

    /// Notes the program once it runs.
    fn learn_program(&mut self) {
        if self.started {
            return;
        }
        let Some(pid) = self.launched else {
            self.started = true;
            return;
        };
        if self.assembler.process_ref(pid).is_none() && !self.assembler.is_over() {
            return;
        }
        self.started = true;
        self.note_program(pid);
    }

    fn note_program(&mut self, pid: u32) {
        self.program = program_of(pid);
        let (command, working_directory, environment) = self.program.clone();
        self.sink.take(Entry::Program { command, working_directory, environment });
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::BeginNext { folder, label, answer } => {
                let _ = answer.send(self.begin_next(&folder, label));
            }
            Command::Pause(answer) => {
                self.cut(Output::Paused);
                let _ = answer.send(());
            }
            Command::Exited { pid, status } => self.sink.take(Entry::ExitStatus { pid, status }),
            Command::Stop(_) => unreachable!("stopping is the loop's"),
        }
    }

    fn begin_next(&mut self, folder: &Path, label: Label) -> Result<(), RecordError> {
        self.label = label;
        self.window_ns = self.looked_ns;
        let output = self.new_log(folder)?;
        self.cut(output);
        Ok(())
    }

    /// Ends the present log at the time up to which records have been taken, and goes on with another.
    fn cut(&mut self, output: Output) {
        // Everything up to the last look has arrived.
        let now_ns = self.looked_ns;
        self.drain(now_ns);
        let mut next = Counted { steps: self.sink.steps, cpu_event: self.sink.cpu_event, ..Counted::new(output) };
        let reading = read_machine();
        if let Output::Log { cpu_before_ns, start, .. } = &mut next.output {
            *cpu_before_ns = clock::thread_cpu_ns();
            **start = reading.clone();
        }
        self.assembler.split(now_ns, &mut self.sink, &mut next);
        let mut ended = std::mem::replace(&mut self.sink, next);
        self.close(&mut ended, now_ns, reading);
        self.marks.cut();
        self.window_ns = now_ns;
        if let Some(resources) = &self.resources {
            for (&(pid, tid, name), &value) in &resources.last {
                if let Some(counter) = counter(&self.assembler, now_ns, pid, tid, name, value) {
                    self.sink.take(counter);
                }
            }
        }
    }

    fn stop(&mut self) {
        self.read_resources();
        let end_ns = clock::now_ns();
        let reading = read_machine();
        let _ = self.events.disable();
        self.drain(u64::MAX);
        self.learn_program();
        let Self { marks, assembler, sink, .. } = self;
        marks.stop(|pid| assembler.process_ref(pid).is_some(), sink);
        self.assembler.finish(Some(end_ns), &mut self.sink);
        let mut sink = std::mem::replace(&mut self.sink, Counted::new(Output::Paused));
        self.close(&mut sink, end_ns, reading);
        self.sink = sink;
    }

    /// Completes a log.
    fn close(&mut self, sink: &mut Counted, end_ns: u64, end: MachineReading) {
        let Output::Log { writer, folder, cpu_before_ns, start } = &mut sink.output else { return };
        let kept = self.assembler.target_mut().kept.copy_to(folder);
        let cpu_ns = clock::thread_cpu_ns().saturating_sub(*cpu_before_ns);
        let log_bytes = writer.bytes();
        writer.take(Entry::MarksLost { count: self.marks.lost() });
        writer.take(Entry::RecordingEnd(Box::new(RecordingEnd {
            end_ns: Some(end_ns),
            cost: Some(RecordingCost { cpu_ns, finish_cpu_ns: 0, log_bytes }),
            notes: self.marks.notes().into_iter().chain(kept).collect(),
            dimensions: self.dimensions_at_end(),
            machine: Some(((**start).clone(), end)),
        })));
        writer.flush();
    }

    fn dimensions_at_end(&self) -> BTreeMap<Dimension, DimensionStatus> {
        let mut dimensions = self.dimensions.clone();
        // Where the log has marked steps, the capture says so itself; here is why it has none.
        if let (false, Some(DimensionStatus::Missing { reason, .. })) =
            (self.meanings.contains_key(&Kind::Step), dimensions.get_mut(&Dimension::Steps))
        {
            self.marks.explain_no_steps(reason);
        }
        if let (Some(resources), Some(status)) = (&self.resources, dimensions.get_mut(&Dimension::Resources)) {
            let lacks = resources.sampler.lacks();
            if !lacks.is_empty() {
                *status = DimensionStatus::Partial { lacks };
            }
        }
        dimensions
    }

    fn flush(&mut self) {
        let losses = self.assembler.losses().clone();
        self.sink.take(Entry::Losses(Box::new(losses)));
        self.sink.take(Entry::MarksLost { count: self.marks.lost() });
        if let Output::Log { writer, .. } = &mut self.sink.output {
            writer.flush();
        }
    }

    /// Ends what has ended without our seeing it: where records are lost, the end of a process can be among them, and
    /// a recording would wait for it forever.
    fn bury(&mut self) {
        let gone = |pid: u32| match proc::stat(pid) {
            Err(_) => true,
            Ok(stat) if !stat.state.has_ended() => false,
            // Its first thread has ended; others may go on.
            Ok(_) => {
                let ended = |tid: &u32| proc::thread_stat(pid, *tid).map_or(true, |stat| stat.state.has_ended());
                proc::threads(pid).map_or(true, |threads| threads.iter().all(ended))
            }
        };
        let gone: BTreeSet<u32> = self.assembler.expected_pids().filter(|&pid| gone(pid)).collect();
        // What was gone at the last look already, and had its end recorded, would be known by now.
        for pid in gone.intersection(&self.gone) {
            self.assembler.end_process(*pid, self.looked_ns, &mut self.sink);
        }
        self.gone = gone;
    }

    fn read_resources(&mut self) {
        let Some(resources) = &mut self.resources else { return };
        for pid in self.assembler.pids() {
            resources.sampler.tree_mut().add(pid);
        }
        resources.sampler.sample(&mut resources.readings);
        let now_ns = clock::now_ns();
        let (assembler, sink) = (&self.assembler, &mut self.sink);
        // A value is given once, when it changes. Where `/proc` is ahead of the rings, it waits until its process is known.
        let (sampler, last) = (&resources.sampler, &mut resources.last);
        resources.readings.retain(|reading| {
            let name = reading.quantity.name();
            let Some(counter) = counter(assembler, now_ns, reading.pid, reading.tid, name, reading.value) else {
                return sampler.tree().contains(reading.pid);
            };
            last.insert((reading.pid, reading.tid, name), reading.value);
            sink.take(counter);
            false
        });
        resources.readings.truncate(MOST_WAITING_READINGS);
        resources.last.retain(|(pid, ..), _| assembler.process_ref(*pid).is_some());
    }

    fn report(&self, progress: &Mutex<Progress>) {
        let Ok(mut progress) = progress.lock() else { return };
        let losses = self.assembler.losses();
        progress.elapsed = Duration::from_nanos(self.looked_ns.saturating_sub(self.window_ns));
        progress.cpu_samples = self.sink.cpu_samples;
        progress.lost = losses.lost_records;
        progress.waits = self.sink.waits;
        let has_steps = self.meanings.contains_key(&Kind::Step) || self.marks.has_steps();
        progress.steps = has_steps.then_some(self.sink.steps);
        progress.processes = self.assembler.pids().count();
        progress.recorder_cpu = Duration::from_nanos(clock::thread_cpu_ns());
        progress.over = self.started && self.assembler.is_over();
        if let Output::Log { writer, .. } = &self.sink.output {
            progress.bytes = writer.bytes();
            progress.failure = writer.error().map(|error| {
                format!("the recording cannot be written any more ({error}); what was written so far is kept")
            });
        }
    }
}

fn counter(
    assembler: &Assembler<LiveTarget>,
    time_ns: u64,
    pid: u32,
    tid: Option<u32>,
    name: &str,
    value: i64,
) -> Option<Entry> {
    let process = assembler.process_ref(pid)?;
    let thread = match tid {
        Some(tid) => Some(assembler.thread_ref(tid)?),
        None => None,
    };
    Some(Entry::Counter { time_ns, process, thread, name: name.to_owned(), value })
}

/// Raises the limit on open files: each event needs a descriptor per CPU and thread, and the soft limit is often 1024.
fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives both calls; raising the soft limit to the hard one needs no rights.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Gives the recorder real-time priority, so that it keeps up with programs that use every CPU.
///
/// With ordinary priority, even a raised one, it waited up to 20 ms for a CPU on a busy machine, and rings overflowed.
/// It needs little CPU time. Without the rights for it, the priority stays as it is.
fn raise_priority() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call; 0 means this thread. What it starts is ordinary again.
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &lowest) != 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, -10);
        }
    }
}

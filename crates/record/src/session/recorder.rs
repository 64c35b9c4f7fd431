//! The thread that records: rings in, log out.

mod attach;
mod blocked;
mod captures;
mod switches;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use stepscope_assemble::written_switch::Pending;
use stepscope_assemble::{Assembler, Entry, EventRole, Follow, Sink};
use stepscope_model::{Dimension, DimensionStatus, Machine};

use self::blocked::BlockedLooks;
use super::feed::{AssemblerFeed, LossFeed};
use super::log::{Counted, Output};
use super::machine_speed::MachineSpeed;
use super::pace::Pace;
use super::plan::{Plan, open_side_band};
use super::privilege::{Priority, raise_descriptor_limit, raise_priority};
use super::resources::Resources;
use super::running::program_of;
use super::thinning::{Budget, Thinning};
use super::{Label, Options, Progress, RecordError, StepPoint};
use crate::clock;
use crate::clock_exchange::ClockWatch;
use crate::conditions::read_machine;
use crate::error_logs::{ErrorLogs, Prepared};
use crate::heap::{Heap, Preload};
use crate::launch::{Exit, Usage};
use crate::live::LiveTarget;
use crate::machine;
use crate::marks::{Cut, Marks};
use crate::perf::{CounterGroups, Events, Kind, Scope, of_switches_and_wake_ups};
use crate::proc::{self, ProcessSet, ProcessTree};
use crate::python::Python;
use crate::ros2::{Libraries, Ros2};

/// A record appears in its ring at most this long after its timestamp. If a hypervisor took the CPU away in between, it
/// may appear later, and then slightly out of order.
const SETTLED_NS: u64 = 2_000_000;
/// How often the log is flushed and `/proc` is read.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Waits that are recorded one by one cost less than a fifth of a stack. Only they tell the critical path who ended each.
const WAITS_PER_STACK: u64 = 10;

/// Requests to the recording thread.
pub(super) enum Command {
    BeginNext { folder: PathBuf, label: Label, answer: Sender<Result<(), RecordError>> },
    Rotate { folder: PathBuf, answer: Sender<Result<(), RecordError>> },
    ObserveSteps { step: StepPoint, answer: Sender<Result<(), String>> },
    Pause(Sender<()>),
    StepsFound { function: String },
    Exited { pid: u32, exit: Exit },
    Stop(Sender<()>),
}

/// What runs in or around a launched program.
pub(super) struct Companions {
    pub heap: Option<Result<Preload, String>>,
    pub python: Option<Python>,
    pub ros2: Option<Libraries>,
    pub checkers: Prepared,
}

/// Everything that a recording needs, ready to run.
pub(super) struct Recorder {
    events: Events,
    meanings: BTreeMap<Kind, EventRole>,
    assembler: Assembler<LiveTarget>,
    sink: Counted,
    marks: Marks,
    resources: Option<Resources>,
    heap: Option<Heap>,
    python: Option<Python>,
    ros2: Option<Ros2>,
    /// Counters of the CPU, if they were asked for and are there.
    counters: Option<CounterGroups>,
    error_logs: Option<ErrorLogs>,
    speed: MachineSpeed,
    /// Asks another machine for its clock.
    clock_watch: Option<ClockWatch>,
    dimensions: BTreeMap<Dimension, DimensionStatus>,
    machine: Machine,
    label: Label,
    /// The launched program, with its arguments: what `/proc` has, a script's interpreter may have replaced.
    launched: Option<(u32, Vec<String>)>,
    /// Whether the present capture has all of the launched program.
    holds_launch: bool,
    /// Largest resident memory of the recorder at the launch.
    own_peak_rss_bytes: u64,
    program: (Vec<String>, Option<String>, BTreeMap<String, String>),
    thinning: Thinning,
    /// Looks at blocked threads, for waits that have no stack.
    looks: Option<BlockedLooks>,
    /// Stacks, and waits one by one, where programs of ours write them.
    stack_budget: Budget,
    wait_budget: Budget,
    /// Sums that the kernel had at a time shortly before the end of a log.
    pending_waits: Option<(Vec<Pending>, u64)>,
    /// Since when the stacks of places are known.
    known_since_ns: u64,
    pace: Pace,
    priority: Priority,
    window_ns: u64,
    /// Start of the first segment, in later ones.
    recording_start_ns: Option<u64>,
    /// All records before this time are in the rings.
    looked_ns: u64,
    /// The time up to which the log on disk is complete.
    written_ns: u64,
    /// Why the log can no longer be written.
    failure: Option<String>,
    /// The function whose calls are the steps, if nobody named it.
    found_step: Option<String>,
    started: bool,
    /// Processes that had ended at the last check.
    gone: BTreeSet<u32>,
    /// The processes that were chosen, if they run already.
    set: Option<ProcessSet>,
    /// Processes that came later and cannot be observed.
    pub(super) unobserved: u64,
    /// Threads that started while events were opened, and may not be observed.
    pub(super) unobserved_threads: u64,
}

impl Recorder {
    /// Prepares to record a child that waits before its exec.
    pub fn of_child(
        pid: u32,
        command: Vec<String>,
        options: &Options,
        folder: &Path,
        marks: Marks,
        companions: Companions,
    ) -> Result<Self, RecordError> {
        let tree = ProcessTree::of(pid);
        let mut recorder = Self::open(Scope::OnExec(pid), options, Some(folder), tree, marks)?;
        recorder.add_heap(companions.heap);
        recorder.python = companions.python;
        recorder.ros2 = companions.ros2.map(|libraries| Ros2::new(libraries, &mut recorder.events));
        recorder.dimensions.extend(companions.checkers.dimensions);
        recorder.error_logs = companions.checkers.logs;
        recorder.assembler.expect_exec(pid, std::process::id());
        recorder.events.admit(pid);
        recorder.launched = Some((pid, command));
        recorder.holds_launch = true;
        recorder.own_peak_rss_bytes =
            proc::status(std::process::id()).ok().and_then(|own| own.peak_rss_bytes).unwrap_or(u64::MAX);
        recorder.enable()?;
        Ok(recorder)
    }

    /// Opens all events, disabled. Without a folder, nothing is kept until a capture begins.
    fn open(
        scope: Scope,
        options: &Options,
        folder: Option<&Path>,
        tree: ProcessTree,
        marks: Marks,
    ) -> Result<Self, RecordError> {
        // Before all else: without a reply, nothing is recorded.
        let clock_watch = options.clock_of.as_deref().map(ClockWatch::start).transpose()?;
        let priority = raise_priority();
        raise_descriptor_limit();
        // Each thread may have a stack per second at its waits. With thousands of threads, these alone would fill the rings.
        const MANY_THREADS: usize = 1000;
        let has_many_threads = matches!(&scope, Scope::Threads(threads) if threads.len() > MANY_THREADS);
        let mut events = open_side_band(scope, options)?;
        events.set_stack_bytes(
            options
                .stack_bytes
                .unwrap_or(match events.ring_bytes() {
                    _ if has_many_threads => 8 << 10,
                    4_194_304.. => 32 << 10,
                    1_048_576.. => 16 << 10,
                    _ => 8 << 10,
                })
                .min(65_000),
        );
        let mut plan = Plan::new(&mut events, options);
        plan.add_sharing();
        plan.add_cpu()?;
        plan.add_switches();
        plan.add_faults();
        plan.add_cache();
        plan.add_system_calls();
        plan.add_steps();
        plan.add_others();
        let Plan { dimensions, mut meanings, named, switches, counters, decodes_accesses, looks, .. } = plan;
        let machine = machine::describe();
        let window_ns = clock::now_ns();
        let resources = options.dimensions.contains(&Dimension::Resources).then(|| Resources::new(tree));
        let mut recorder = Self {
            events,
            meanings: BTreeMap::new(),
            assembler: Assembler::new(LiveTarget::default(), Follow::Tree, switches, Some(window_ns)),
            sink: Counted::new(Output::Paused),
            marks,
            resources,
            heap: None,
            python: None,
            ros2: None,
            counters,
            error_logs: None,
            speed: MachineSpeed::new(options.speed_probe),
            clock_watch,
            dimensions,
            machine,
            label: options.label.clone(),
            launched: None,
            holds_launch: false,
            own_peak_rss_bytes: 0,
            program: Default::default(),
            thinning: Thinning {
                max_hz: options.max_switch_stacks_hz.max(1),
                slices: 1,
                slice: 0,
                since: Instant::now(),
                stacks: 0,
            },
            looks: looks.map(|when| BlockedLooks::new(when, options.max_switch_stacks_hz)),
            stack_budget: Budget::new(options.max_switch_stacks_hz),
            wait_budget: Budget::new(options.max_switch_stacks_hz.saturating_mul(WAITS_PER_STACK)),
            pending_waits: None,
            known_since_ns: 0,
            pace: Pace::default(),
            priority,
            window_ns,
            recording_start_ns: None,
            looked_ns: window_ns,
            written_ns: window_ns,
            failure: None,
            found_step: None,
            started: false,
            gone: BTreeSet::new(),
            set: None,
            unobserved: 0,
            unobserved_threads: 0,
        };
        if let Some(step) = &options.step {
            recorder.note_step_probe(step);
        }
        if decodes_accesses {
            recorder.assembler.decode_accesses();
        }
        if let Some(folder) = folder {
            recorder.sink.output = recorder.new_log(folder, window_ns)?;
        }
        for (kind, event, weight) in named {
            let event = recorder.assembler.add_event(event, &mut recorder.sink);
            if kind == Kind::Cpu {
                recorder.sink.cpu_event = Some(event);
            }
            meanings.insert(kind, EventRole::Sampled { event, weight });
        }
        recorder.meanings = meanings;
        recorder.set_budget();
        Ok(recorder)
    }

    /// Reads the heap tables of a program that is launched with the library.
    fn add_heap(&mut self, heap: Option<Result<Preload, String>>) {
        match heap {
            None => {}
            Some(Ok(preload)) => {
                self.assembler.keep_ended();
                self.dimensions.insert(Dimension::Heap, DimensionStatus::Recorded);
                self.heap = Some(Heap::new(preload));
            }
            Some(Err(reason)) => {
                self.dimensions.insert(Dimension::Heap, DimensionStatus::Missing { reason, remedy: None });
            }
        }
    }

    /// Writes what the last look at heap tables found, and looks again if it is time.
    fn read_heap(&mut self) {
        if let Some(heap) = self.heap.as_mut().filter(|heap| heap.is_due()) {
            heap.write(&mut self.assembler, &mut self.sink);
            heap.look();
        }
    }

    fn enable(&mut self) -> Result<(), RecordError> {
        if self.events.switch_sums().is_some() {
            // Without them, stacks have some frames of the programs.
            self.assembler.set_tracepoints(of_switches_and_wake_ups().unwrap_or_default());
        }
        let refused = |source| RecordError::Refused { what: "anything (enabling events failed)".into(), source };
        self.events.enable().map_err(refused)?;
        self.counters.iter().try_for_each(CounterGroups::enable).map_err(refused)
    }

    /// Records until a request to stop.
    pub fn run(mut self, commands: &Receiver<Command>, progress: &Mutex<Progress>) {
        let mut flushed = Instant::now() - FLUSH_EVERY;
        loop {
            self.events.wait(
                self.pace
                    .next(self.assembler.losses(), self.marks.are_made() || self.ros2.is_some())
                    .min(self.longest_round()),
            );
            self.round();
            self.read_due_resources(flushed.elapsed() >= FLUSH_EVERY);
            self.read_heap();
            if let Some(logs) = &mut self.error_logs {
                logs.look();
            }
            if flushed.elapsed() >= FLUSH_EVERY {
                flushed = Instant::now();
                self.bury();
                self.follow_new();
                if let Some(ros2) = &mut self.ros2 {
                    ros2.look(self.assembler.pids(), &mut self.events);
                }
                self.assembler.expected_pids().for_each(|pid| self.events.admit(pid));
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
                    Ok(command) => self.obey(command, progress),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.stop(),
                }
            }
        }
    }

    /// Rounds are short at first, where programs in the kernel want to know where the code of the program is.
    fn longest_round(&self) -> Duration {
        const FIRST: Duration = Duration::from_millis(100);
        let elapsed = Duration::from_nanos(self.looked_ns.saturating_sub(self.window_ns));
        let is_first = self.events.switch_sums().is_some() && elapsed < FIRST;
        if is_first { Duration::from_millis(2) } else { Duration::MAX }
    }

    /// Takes the records that were complete at the last check.
    fn round(&mut self) {
        let look_ns = clock::now_ns();
        self.drain(self.looked_ns.max(look_ns.saturating_sub(SETTLED_NS)));
        let known_ns = std::mem::replace(&mut self.looked_ns, look_ns);
        self.read_marks();
        self.tell_code();
        if let Some(heap) = &mut self.heap {
            heap.sums(&self.assembler, &mut self.sink);
        }
        match self.sink.output {
            Output::Log { .. } => self.speed.round(&mut self.sink, known_ns),
            Output::Paused => self.speed.rest(),
        }
        self.thin();
        self.look_at_blocked();
        self.learn_program();
    }

    fn drain(&mut self, until: u64) {
        let Self { assembler, meanings, sink, ros2, .. } = self;
        let mut feed = AssemblerFeed { assembler, meanings, sink, ros2: ros2.as_mut() };
        let waits_before = feed.sink.waits;
        let stacks = self.events.drain(until, &mut feed);
        self.thinning.stacks += stacks;
        let waits = self.sink.waits - waits_before;
        if let Some(ros2) = &mut self.ros2 {
            ros2.write(&mut self.marks, &mut self.sink);
        }
        if self.events.switch_sums().is_some() && (self.stack_budget.add(stacks) | self.wait_budget.add(waits)) {
            self.set_budget();
        }
    }

    /// Skips records after the end, except for their counts of records lost before it.
    fn drain_losses(&mut self) {
        let Self { assembler, meanings, sink, .. } = self;
        self.events.drain(u64::MAX, &mut LossFeed(AssemblerFeed { assembler, meanings, sink, ros2: None }));
    }

    fn read_marks(&mut self) {
        let Self { marks, assembler, sink, .. } = self;
        marks.round(|pid| assembler.process_ref(pid).is_some(), sink);
    }

    /// Notes the program as soon as it runs.
    fn learn_program(&mut self) {
        if self.started {
            return;
        }
        let Some(&(pid, _)) = self.launched.as_ref() else {
            self.started = true;
            return;
        };
        if self.assembler.process_ref(pid).is_none() && !self.assembler.is_over() {
            return;
        }
        self.started = true;
        self.note_program(pid);
        self.read_resources();
    }

    fn note_program(&mut self, pid: u32) {
        self.program = program_of(pid);
        if let Some((_, command)) = &self.launched {
            self.program.0.clone_from(command);
        }
        let (command, working_directory, environment) = self.program.clone();
        self.sink.take(Entry::Program { command, working_directory, environment });
    }

    fn obey(&mut self, command: Command, progress: &Mutex<Progress>) {
        match command {
            Command::Rotate { folder, answer } => drop(answer.send(self.rotate(&folder))),
            Command::BeginNext { folder, label, answer } => {
                let started = self.begin_next(&folder, label);
                // The caller counts steps from here.
                self.report(progress);
                let _ = answer.send(started);
            }
            Command::ObserveSteps { step, answer } => drop(answer.send(self.observe_steps(step))),
            Command::Pause(answer) => {
                self.read_before_cut();
                self.cut(Output::Paused, Cut::Phase);
                let _ = answer.send(());
            }
            Command::StepsFound { function } => self.found_step = Some(function),
            Command::Exited { pid, exit } => self.note_exit(pid, &exit),
            Command::Stop(_) => unreachable!("stopping is the loop's"),
        }
    }

    /// Observes a step function that was found after the start.
    fn observe_steps(&mut self, step: StepPoint) -> Result<(), String> {
        let options = Options { step: Some(step), ..Options::default() };
        let mut plan = Plan::new(&mut self.events, &options);
        plan.add_steps();
        let Plan { dimensions, meanings, .. } = plan;
        self.meanings.extend(meanings);
        self.dimensions.extend(dimensions);
        if let Some(DimensionStatus::Missing { reason, .. }) = self.dimensions.get(&Dimension::Steps) {
            return Err(reason.clone());
        }
        options.step.iter().for_each(|step| self.note_step_probe(step));
        self.events.enable_steps().map_err(|error| format!("The kernel refuses to report calls ({error})."))
    }

    /// Notes which instruction the probe replaces.
    fn note_step_probe(&mut self, StepPoint { module, offset, .. }: &StepPoint) {
        let path = fs::canonicalize(module).unwrap_or_else(|_| module.clone());
        self.assembler.set_step_probe(path.to_string_lossy().into_owned(), *offset);
    }

    fn note_exit(&mut self, pid: u32, exit: &Exit) {
        self.sink.take(Entry::ExitStatus { pid, status: exit.status() });
        let Usage { user_ns, system_ns, peak_rss_bytes, .. } = exit.usage;
        // The kernel's figures are since the fork. Before its exec, the program had as much memory as the recorder.
        let peak_rss_bytes = Some(peak_rss_bytes).filter(|&bytes| bytes > self.own_peak_rss_bytes);
        // Of a capture that began later, the program's CPU time is only a part.
        if self.holds_launch {
            self.sink.take(Entry::ExitUsage { pid, cpu_ns: user_ns.saturating_add(system_ns), peak_rss_bytes });
        }
    }

    fn stop(&mut self) {
        self.read_resources();
        if let Some(heap) = &mut self.heap {
            heap.snapshot();
        }
        self.read_pending_waits();
        let end_ns = clock::now_ns();
        let reading = read_machine();
        let _ = self.events.disable();
        self.drain(end_ns);
        self.drain_losses();
        if let Some(heap) = &mut self.heap {
            heap.finish(&mut self.assembler, &mut self.sink);
            heap.remove_library();
        }
        if let Some(python) = &self.python {
            python.remove_library();
        }
        self.learn_program();
        self.add_sums();
        self.add_pending_waits();
        let Self { marks, assembler, sink, .. } = self;
        marks.stop(|pid| assembler.process_ref(pid).is_some(), sink);
        self.assembler.finish(Some(end_ns), &mut self.sink);
        if let Some(watch) = &mut self.clock_watch {
            watch.finish();
        }
        let mut sink = std::mem::replace(&mut self.sink, Counted::new(Output::Paused));
        self.close(&mut sink, end_ns, reading);
        self.sink = sink;
        self.check_log();
    }

    /// Ends processes whose end was not recorded. If that record is lost, a recording would wait for it forever.
    fn bury(&mut self) {
        let gone: BTreeSet<u32> = self.assembler.expected_pids().filter(|&pid| proc::has_ended(pid)).collect();
        // The end of a process that was gone at the last look would have been recorded by now.
        for pid in gone.intersection(&self.gone) {
            self.assembler.end_process(*pid, self.looked_ns, &mut self.sink);
        }
        self.gone = gone;
    }

    /// Reads all resources now. Rings are read in between: with thousands of threads, they would be full.
    fn read_resources(&mut self) {
        self.resources.iter_mut().for_each(Resources::start_again);
        while let Some(resources) = &mut self.resources
            && !resources.read(&self.assembler, self.window_ns, &mut self.sink)
        {
            self.round();
        }
    }

    /// Reads resources, or a part of them, if it is time.
    fn read_due_resources(&mut self, is_flush: bool) {
        let Some(resources) = &mut self.resources else { return };
        if resources.is_reading() || is_flush && resources.is_due() {
            resources.read(&self.assembler, self.window_ns, &mut self.sink);
        }
    }

    /// Adds the system calls since the last record of each.
    fn add_sums(&mut self) {
        self.assembler.add_sums(self.events.system_call_sums(), &mut self.sink);
        self.assembler.add_call_times(self.events.system_call_times(), &mut self.sink);
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
            progress.failure.clone_from(&self.failure);
        }
    }
}

//! The thread that records: rings in, log out.

mod captures;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use stepscope_assemble::{Assembler, Entry, EventRole, Follow, Sink};
use stepscope_model::{Dimension, DimensionStatus, Machine};

use super::feed::{AssemblerFeed, LossFeed};
use super::log::{Counted, Output};
use super::machine_speed::MachineSpeed;
use super::pace::Pace;
use super::plan::{Plan, open_side_band};
use super::privilege::{Priority, raise_descriptor_limit, raise_priority};
use super::resources::Resources;
use super::running::{present, program_of};
use super::thinning::{Slice, Thinning};
use super::{Label, Options, Progress, RecordError, StepPoint};
use crate::clock;
use crate::conditions::read_machine;
use crate::launch::{Exit, Usage};
use crate::live::LiveTarget;
use crate::machine;
use crate::marks::{Cut, Marks};
use crate::perf::{Events, Kind, Scope};
use crate::proc::{self, ProcessTree};

/// A record appears in its ring at most this long after its timestamp. If a hypervisor took the CPU away in between, it
/// may appear later, and then slightly out of order.
const SETTLED_NS: u64 = 2_000_000;
/// How often the log is flushed and `/proc` is read.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Requests to the recording thread.
pub(super) enum Command {
    BeginNext { folder: PathBuf, label: Label, answer: Sender<Result<(), RecordError>> },
    Rotate { folder: PathBuf, answer: Sender<Result<(), RecordError>> },
    ObserveSteps { step: StepPoint, answer: Sender<Result<(), String>> },
    Pause(Sender<()>),
    Exited { pid: u32, exit: Exit },
    Stop(Sender<()>),
}

/// Everything that a recording needs, ready to run.
pub(super) struct Recorder {
    events: Events,
    meanings: BTreeMap<Kind, EventRole>,
    assembler: Assembler<LiveTarget>,
    sink: Counted,
    marks: Marks,
    resources: Option<Resources>,
    speed: MachineSpeed,
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
    started: bool,
    /// Processes that had ended at the last check.
    gone: BTreeSet<u32>,
}

impl Recorder {
    /// Prepares to record a child that waits before its exec.
    pub fn of_child(
        pid: u32,
        command: Vec<String>,
        options: &Options,
        folder: &Path,
        marks: Marks,
    ) -> Result<Self, RecordError> {
        let tree = ProcessTree::of(pid);
        let mut recorder = Self::open(Scope::OnExec(pid), options, Some(folder), tree, marks)?;
        recorder.assembler.expect_exec(pid, std::process::id());
        recorder.events.admit(pid);
        recorder.launched = Some((pid, command));
        recorder.holds_launch = true;
        recorder.own_peak_rss_bytes =
            proc::status(std::process::id()).ok().and_then(|own| own.peak_rss_bytes).unwrap_or(u64::MAX);
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
        if threads.is_empty() || proc::has_ended(pid) {
            return Err(RecordError::NoProcess { pid });
        }
        let mut recorder = Self::open(Scope::Threads(threads), options, None, ProcessTree::of(pid), marks)?;
        recorder.note_program(pid);
        pids(&tree).into_iter().for_each(|pid| recorder.events.admit(pid));
        recorder.enable()?;
        // Read after enabling: later changes are also in the rings, and it does no harm to know them twice.
        tree.refresh();
        for pid in pids(&tree) {
            recorder.events.admit(pid);
            if let Some(present) = present(pid) {
                recorder.assembler.add_running(&present, &mut recorder.sink);
            }
        }
        // The capture begins when all is enabled and known. Records that were lost until then are not of it.
        recorder.read_resources();
        recorder.round();
        recorder.begin_next(folder, options.label.clone())?;
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
        let priority = raise_priority();
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
        let resources = options.dimensions.contains(&Dimension::Resources).then(|| Resources::new(tree));
        let mut recorder = Self {
            events,
            meanings: BTreeMap::new(),
            assembler: Assembler::new(LiveTarget::default(), Follow::Tree, switches, Some(window_ns)),
            sink: Counted::new(Output::Paused),
            marks,
            resources,
            speed: MachineSpeed::new(options.speed_probe),
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
            pace: Pace::default(),
            priority,
            window_ns,
            recording_start_ns: None,
            looked_ns: window_ns,
            written_ns: window_ns,
            failure: None,
            started: false,
            gone: BTreeSet::new(),
        };
        if let Some(step) = &options.step {
            recorder.note_step_probe(step);
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
        Ok(recorder)
    }

    fn enable(&self) -> Result<(), RecordError> {
        let refused = |source| RecordError::Refused { what: "anything (enabling events failed)".into(), source };
        self.events.enable().map_err(refused)
    }

    /// Records until a request to stop.
    pub fn run(mut self, commands: &Receiver<Command>, progress: &Mutex<Progress>) {
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
                    Ok(command) => self.obey(command, progress),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.stop(),
                }
            }
        }
    }

    /// Takes the records that were complete at the last check.
    fn round(&mut self) {
        let look_ns = clock::now_ns();
        self.drain(self.looked_ns.max(look_ns.saturating_sub(SETTLED_NS)));
        let known_ns = std::mem::replace(&mut self.looked_ns, look_ns);
        self.read_marks();
        match self.sink.output {
            Output::Log { .. } => self.speed.round(&mut self.sink, known_ns),
            Output::Paused => self.speed.rest(),
        }
        self.thin();
        self.learn_program();
    }

    fn drain(&mut self, until: u64) {
        let Self { assembler, meanings, sink, .. } = self;
        let mut feed = AssemblerFeed { assembler, meanings, sink };
        self.thinning.stacks += self.events.drain(until, &mut feed);
    }

    /// Skips records after the end, except for their counts of records lost before it.
    fn drain_losses(&mut self) {
        let Self { assembler, meanings, sink, .. } = self;
        self.events.drain(u64::MAX, &mut LossFeed(AssemblerFeed { assembler, meanings, sink }));
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
                self.read_before_cut();
                let started = self.begin_next(&folder, label);
                // The caller counts steps from here.
                self.report(progress);
                let _ = answer.send(started);
            }
            Command::ObserveSteps { step, answer } => drop(answer.send(self.observe_steps(step))),
            Command::Pause(answer) => {
                self.cut(Output::Paused, Cut::Phase);
                let _ = answer.send(());
            }
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
        let end_ns = clock::now_ns();
        let reading = read_machine();
        let _ = self.events.disable();
        self.drain(end_ns);
        self.drain_losses();
        self.learn_program();
        let Self { marks, assembler, sink, .. } = self;
        marks.stop(|pid| assembler.process_ref(pid).is_some(), sink);
        self.assembler.finish(Some(end_ns), &mut self.sink);
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

    fn read_resources(&mut self) {
        if let Some(resources) = &mut self.resources {
            resources.read(&self.assembler, &mut self.sink);
        }
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

//! The thread that records: rings in, log out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use stepscope_assemble::{Assembler, Entry, EventRole, Follow, MachineReading, RecordingEnd, Sink};
use stepscope_model::{CaptureInfo, Dimension, DimensionStatus, Losses, Machine, Origin, RecordingCost};

use super::feed::{AssemblerFeed, LossFeed};
use super::log::{Counted, Output};
use super::plan::{Plan, open_side_band};
use super::privilege::{Priority, raise_descriptor_limit, raise_priority};
use super::running::{present, program_of};
use super::thinning::{Slice, Thinning};
use super::{Label, Options, Progress, RecordError, StepPoint};
use crate::clock;
use crate::conditions::read_machine;
use crate::finish::create_log;
use crate::launch::{Exit, Usage};
use crate::live::LiveTarget;
use crate::machine;
use crate::marks::Marks;
use crate::perf::{Events, Kind, Scope};
use crate::proc::{self, ProcessTree, ResourceSampler};

/// The longest round. A ring that fills ends it earlier.
const ROUND: Duration = Duration::from_millis(50);
/// The longest round if stacks are continued from live memory, or if programs leave marks. That memory must have changed
/// little since the copy, and a program's rings have room for marks for about this time.
const SHORT_ROUND: Duration = Duration::from_millis(20);
/// Rounds stay short for this long after the last such event.
const SHORT_FOR: Duration = Duration::from_secs(1);
/// A record appears in its ring at most this long after its timestamp. If a hypervisor took the CPU away in between, it
/// may appear later, and then slightly out of order.
const SETTLED_NS: u64 = 2_000_000;
/// Most readings kept for processes without a start record. They wait one round, unless that record was lost.
const MOST_WAITING_READINGS: usize = 10_000;
/// How often the log is flushed and `/proc` is read.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Requests to the recording thread.
pub(super) enum Command {
    BeginNext { folder: PathBuf, label: Label, answer: Sender<Result<(), RecordError>> },
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
            recorder.sink.output = recorder.new_log(folder)?;
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

    /// Starts a log in this folder with what is known so far.
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
        Ok(Output::Log {
            writer: Box::new(writer),
            folder: folder.to_owned(),
            cpu_before_ns: clock::thread_cpu_ns(),
            start,
        })
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
            Command::BeginNext { folder, label, answer } => {
                let started = self.begin_next(&folder, label);
                // The caller counts steps from here.
                self.report(progress);
                let _ = answer.send(started);
            }
            Command::ObserveSteps { step, answer } => drop(answer.send(self.observe_steps(step))),
            Command::Pause(answer) => {
                self.cut(Output::Paused);
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

    fn begin_next(&mut self, folder: &Path, label: Label) -> Result<(), RecordError> {
        self.label = label;
        self.window_ns = self.looked_ns;
        let output = self.new_log(folder)?;
        self.cut(output);
        Ok(())
    }

    /// Ends the present log at the time up to which records have been taken, and goes on with another.
    fn cut(&mut self, output: Output) {
        self.holds_launch = false;
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
            notes: self.notes().into_iter().chain(kept).collect(),
            dimensions: self.dimensions_at_end(),
            machine: Some(((**start).clone(), end)),
        })));
        writer.flush();
    }

    /// The notes of the capture.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.marks.notes();
        if self.priority == Priority::Ordinary && self.assembler.losses().lost_records > 0 {
            notes.push(
                "The recorder had ordinary priority and waited for a CPU while records were lost. It may raise its \
                 priority with CAP_SYS_NICE, or where `ulimit -r` or `ulimit -e` allow it."
                    .to_owned(),
            );
        }
        notes
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
            self.check_log();
        }
    }

    /// Stops recording if the log cannot be written any more. It then ends with its last whole chunk.
    fn check_log(&mut self) {
        let Output::Log { writer, .. } = &mut self.sink.output else { return };
        match writer.error() {
            None => self.written_ns = self.looked_ns,
            Some(error) if self.failure.is_none() => {
                let kept_s = self.written_ns.saturating_sub(self.window_ns) as f64 / 1e9;
                self.failure = Some(format!(
                    "the recording cannot be written any more ({error}): the first {kept_s:.1} s are kept, and the rest \
                     is missing"
                ));
                // A chunk that was written in part would count as damage.
                let _ = writer.out().set_len(writer.bytes());
                let _ = self.events.disable();
            }
            Some(_) => {}
        }
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
            progress.failure.clone_from(&self.failure);
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

//! The life of one trial: launch, loading, drivers, warm-up, steady, stop, captures.
//!
//! ```text
//! launch        ready          begin_next       stop
//!   |--- loading ---|... warm-up ...|--- steady ---|  ended, named, written
//!        recorded     drivers run      recorded
//! ```
//!
//! One recording follows the processes from the first instruction to the end. Each phase becomes a capture. Symbolization
//! reads much debug information, so it starts when the program has ended: it must not compete with it for CPUs.
//!
//! The program, its drivers and all their children are always terminated: normally by [`stop`](Execution::stop), in a panic by
//! dropping their handles, and by their keeper processes if this process is killed.

mod attached;
mod captures;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stepscope_model::Phase;
use stepscope_model::quantity::plural;
use stepscope_record::launch::{Exit, Grace, Launch, LaunchError, Launched, Output, StopReport, allowed_cpus};
use stepscope_record::proc::ProcessTree;
use stepscope_record::{Label, Progress, PythonFunctions, RecordError, StepPoint};

use crate::calm::DuringSum;
use crate::conditions::During;
use crate::driver;
use crate::event::{Event, Listener};
use crate::exit::how_it_ended;
use crate::lab_file::{StepSource, StopSettings, Trial};
use crate::outcome::{Failure, Outcome, Stage};
use crate::output::OutputFile;
use crate::own_metrics::PhaseExtents;
use crate::ready::{Observation, TreeSurroundings, Watch, check_observable_without_steps};
use crate::recorder::{Order, Recorder, Recording};
use crate::step::libraries;
use crate::step::search::StepSearch;

/// Time between two looks at a running trial.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Lines of output that a failure shows.
const LAST_LINES: usize = 20;

/// File in a trial's folder with the output of its program.
pub const OUTPUT_FILE: &str = "output.log";

/// Folder of the recording before the first requested phase. It is removed afterwards.
pub const UNWANTED_FOLDER: &str = "unwanted.part";

/// What a trial needs to run.
pub struct Context<'a> {
    /// The recorder.
    pub recorder: &'a dyn Recorder,
    /// Set to end the run early, as by Ctrl-C.
    pub interrupt: &'a AtomicBool,
    /// Receives progress.
    pub listener: &'a mut dyn Listener,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// How it ended.
    pub outcome: Outcome,
    /// Time until it was ready, and the condition that was met.
    pub ready: Option<(Duration, String)>,
    /// Phases with a capture on disk, in the order recorded.
    pub captured: Vec<Phase>,
    /// Notes for readers of the results, in sentences.
    pub notes: Vec<String>,
    /// Background load during the trial.
    pub during: During,
}

/// Runs a trial and writes its captures and output into `folder`, which must be empty or absent.
pub fn execute(trial: &Trial, folder: &Path, context: &mut Context<'_>) -> Executed {
    let during = DuringSum::default();
    let mut execution = Execution {
        trial,
        folder,
        context,
        ready: None,
        started: Vec::new(),
        extents: PhaseExtents::default(),
        notes: Vec::new(),
        during,
        step_search: None,
    };
    let outcome = execution.run();
    let (outcome, captured) = execution.finish(outcome);
    let during = execution.during.percent();
    Executed { outcome, ready: execution.ready, captured, notes: execution.notes, during }
}

struct Execution<'a, 'b> {
    trial: &'a Trial,
    folder: &'a Path,
    context: &'a mut Context<'b>,
    ready: Option<(Duration, String)>,
    /// Phases whose recording has started.
    started: Vec<Phase>,
    extents: PhaseExtents,
    notes: Vec<String>,
    during: DuringSum,
    /// The search for a step function that was not found before the launch.
    step_search: Option<StepSearch>,
}

/// A running trial. Fields are dropped in this order.
struct Live {
    /// Absent until the steady phase, where running processes are recorded.
    recording: Option<Box<dyn Recording>>,
    tree: ProcessTree,
    drivers: Vec<driver::Running>,
    /// Absent if nothing was launched.
    launched: Option<Launched>,
    output: OutputFile,
    since: Instant,
    watch: Option<Watch>,
}

impl Live {
    /// Totals of the recording so far.
    fn progress(&self) -> Progress {
        self.recording.as_ref().map(|recording| recording.progress()).unwrap_or_default()
    }
}

/// Why a trial was aborted.
enum Abort {
    Failed(Failure),
    Interrupted,
}

/// What ended a stage.
enum StageEnd<T> {
    Done(T),
    TimeUp,
    /// The program ended; see [`Execution::has_ended`].
    Ended(Exit),
}

impl Execution<'_, '_> {
    fn run(&mut self) -> Outcome {
        let mut live = match self.launch() {
            Ok(live) => live,
            Err(reason) => return self.failed(Stage::Launch, reason),
        };
        let went = self.go_through(&mut live);
        let stopped = self.stop(live);
        let outcome = match went {
            Ok(()) => stopped.unwrap_or(Outcome::Recorded),
            Err(Abort::Interrupted) => Outcome::Interrupted,
            Err(Abort::Failed(failure)) => Outcome::Failed(failure),
        };
        self.remark(&outcome);
        outcome
    }

    fn launch(&mut self) -> Result<Live, String> {
        let scenario = &self.trial.scenario;
        let watch = scenario.ready.as_ref().map(|ready| Watch::new(ready, &mut TreeSurroundings::before_launch()));
        let output = self.folder.join(OUTPUT_FILE);
        let launch = Launch::new(&scenario.command).directory(&scenario.cwd).output(Output::File(output.clone()));
        let launch = scenario.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let launch = match self.trial.point.cores {
            Some(cores) => launch.cpus(first_cpus(cores as usize)?),
            None => launch,
        };
        if let Some(attach) = &scenario.attach {
            return self.launch_beside(launch, attach.into(), watch, OutputFile::new(output));
        }
        let step = self.find_step(
            || launch.program().map_err(|error| error.to_string()),
            |program| libraries::of_program(program, &scenario.env),
        )?;
        self.trial.point.write_files()?;
        fs::create_dir_all(self.folder)
            .map_err(|error| format!("cannot create the folder {}: {error}", self.folder.display()))?;
        let first = self.first_phase();
        let order = self.order(step, first);
        let folder = first.map_or_else(|| self.folder.join(UNWANTED_FOLDER), |phase| self.folder_of(phase));
        // Before the launch, since the program may write at once.
        if let Some(phase) = first {
            self.extent_starts(phase);
        }
        let since = Instant::now();
        let launched = self.context.recorder.launch(launch, &order, &folder);
        let (launched, recording) = launched.map_err(|error| error.to_string())?;
        self.context.listener.notify(&Event::Launched { pid: launched.pid() });
        match first {
            Some(phase) => self.started.push(phase),
            None => recording.pause().map_err(|error| error.to_string())?,
        }
        let tree = launched.tree();
        let (recording, launched) = (Some(recording), Some(launched));
        Ok(Live { recording, tree, drivers: Vec::new(), launched, output: OutputFile::new(output), since, watch })
    }

    /// How the first phase is recorded.
    fn order(&self, step: Option<StepPoint>, first: Option<Phase>) -> Order {
        let scenario = &self.trial.scenario;
        Order {
            dimensions: scenario.record.dimensions.iter().copied().collect(),
            frequency_hz: scenario.record.frequency_hz,
            step,
            step_later: self.step_search.is_some(),
            step_scope: match &scenario.step {
                Some(StepSource::Scope(name)) => Some(name.clone()),
                _ => None,
            },
            speed_probe: scenario.record.speed_probe,
            python: PythonFunctions::asked(scenario.record.python),
            ros2: scenario.record.ros2,
            label: self.label(first),
        }
    }

    /// The step function, if one was requested. A function that is not found is an error if `ready` depends on steps, else a
    /// note.
    fn find_step(
        &mut self,
        program: impl FnOnce() -> Result<PathBuf, String>,
        libraries: impl Fn(&Path) -> Vec<PathBuf>,
    ) -> Result<Option<StepPoint>, String> {
        let scenario = &self.trial.scenario;
        let found = match &scenario.step {
            None => Err("the scenario has no `step`".to_owned()),
            Some(StepSource::Function(function)) => match program() {
                Err(reason) => Err(reason),
                Ok(program) => match function.find(&program, || libraries(&program)) {
                    Err(missing) if function.may_be_mapped_later(&missing) => {
                        self.step_search = Some(StepSearch::new(function.clone(), missing));
                        return Ok(None);
                    }
                    found => found.map_err(|error| error.to_string()),
                },
            },
            // Marks are known only while the program runs.
            Some(StepSource::Scope(_) | StepSource::Marks) => return Ok(None),
        };
        let reason = match found {
            Ok(step) => return Ok(Some(step)),
            Err(reason) => reason,
        };
        if let Some(ready) = &scenario.ready {
            check_observable_without_steps(ready, &reason)?;
        }
        if scenario.step.is_some() {
            self.notes.push(format!("Steps are not recorded: {reason}."));
        }
        Ok(None)
    }

    /// The phase that starts with the launch, if any.
    fn first_phase(&self) -> Option<Phase> {
        let scenario = &self.trial.scenario;
        if scenario.record.records(Phase::Loading) {
            return Some(Phase::Loading);
        }
        let at_once = scenario.ready.is_none() && scenario.record.warmup.is_zero();
        at_once.then_some(Phase::Steady)
    }

    fn phase_starts(&mut self, phase: Phase) {
        self.started.push(phase);
        self.extent_starts(phase);
    }

    fn extent_starts(&mut self, phase: Phase) {
        self.extents.start(phase, &self.trial.scenario.metrics, &self.folder.join(OUTPUT_FILE));
    }

    fn label(&self, phase: Option<Phase>) -> Label {
        let Trial { scenario, variant, .. } = self.trial;
        Label { scenario: Some(scenario.name.clone()), variant: variant.clone(), phase }
    }

    fn folder_of(&self, phase: Phase) -> PathBuf {
        self.folder.join(phase.to_string())
    }

    fn go_through(&mut self, live: &mut Live) -> Result<(), Abort> {
        let record = &self.trial.scenario.record;
        if let Some(watch) = live.watch.take() {
            self.load(live, watch)?;
            self.extents.end(Phase::Loading);
        }
        self.find_set(live)?;
        if !record.records(Phase::Steady) {
            return Ok(());
        }
        if self.started.contains(&Phase::Loading) {
            let paused = live.recording.as_ref().map_or(Ok(()), |recording| recording.pause());
            paused.map_err(|error| self.cut_by_recorder(Stage::Loading, &error))?;
        }
        self.start_drivers(live)?;
        if !self.started.contains(&Phase::Steady) {
            self.warm_up(live)?;
            let (folder, label) = (self.folder_of(Phase::Steady), self.label(Some(Phase::Steady)));
            match &live.recording {
                Some(recording) => {
                    let started = recording.begin_next(&folder, label);
                    started.map_err(|error| self.cut_by_recorder(Stage::Steady, &error))?;
                }
                None => self.attach(live, &folder)?,
            }
            self.phase_starts(Phase::Steady);
        }
        let kept = self.keep_steady(live);
        self.extents.end(Phase::Steady);
        kept
    }

    fn load(&mut self, live: &mut Live, mut watch: Watch) -> Result<(), Abort> {
        let timeout = self.trial.scenario.record.loading_timeout;
        let mut surroundings = live
            .launched
            .as_ref()
            .map_or_else(TreeSurroundings::before_launch, |launched| TreeSurroundings::of(launched.tree()));
        let turn = self.stay(live, Stage::Loading, timeout, |live| {
            let output = live.output.read_new().unwrap_or_default();
            // A step has ended when the next one starts.
            let steps = live.progress().steps.map(|started| started.saturating_sub(1));
            let seen = Observation { since_launch: live.since.elapsed(), output: &output, steps };
            watch.look(&seen, &mut surroundings)
        })?;
        match turn {
            StageEnd::Done(by) => {
                let after = live.since.elapsed();
                self.context.listener.notify(&Event::Ready { by: &by, after });
                self.ready = Some((after, by));
                Ok(())
            }
            StageEnd::TimeUp => {
                let why = watch.explain_failure(&mut surroundings);
                let timeout_s = timeout.as_secs_f64();
                let reason = format!("not ready after {timeout_s} s (`loading = {{ timeout_s = ... }}`): {why}");
                Err(self.cut(live, Stage::Loading, reason, None))
            }
            StageEnd::Ended(exit) => Err(self.cut_by_end(live, Stage::Loading, &exit, "before it was ready")),
        }
    }

    fn start_drivers(&mut self, live: &mut Live) -> Result<(), Abort> {
        let scenario = &self.trial.scenario;
        for (index, driver) in scenario.drivers.iter().enumerate() {
            let started = driver::Running::start(driver, index, scenario, self.folder);
            let running = started.map_err(|error| {
                self.cut(live, Stage::WarmUp, format!("driver {}: {error}", index + 1), None).without_lines()
            })?;
            self.context.listener.notify(&Event::DriverStarted { command: running.command() });
            live.drivers.push(running);
        }
        Ok(())
    }

    fn warm_up(&mut self, live: &mut Live) -> Result<(), Abort> {
        let warmup = self.trial.scenario.record.warmup;
        match self.stay(live, Stage::WarmUp, warmup, |_| None::<()>)? {
            StageEnd::Done(()) | StageEnd::TimeUp => Ok(()),
            StageEnd::Ended(exit) => Err(self.cut_by_end(live, Stage::WarmUp, &exit, "before its steady phase")),
        }
    }

    fn keep_steady(&mut self, live: &mut Live) -> Result<(), Abort> {
        let duration = self.trial.scenario.record.duration;
        let started = Instant::now();
        let wanted = self.trial.scenario.record.steps;
        let steps = |live: &Live| live.progress().steps.unwrap_or(0);
        let first = steps(live);
        // A step has ended when the next one starts.
        let ended = |live: &Live| steps(live).saturating_sub(first + 1);
        let attaches = self.trial.scenario.attach.is_some();
        let enough = |live: &mut Live| {
            let has_steps = wanted.is_some_and(|wanted| ended(live) >= wanted);
            // What is not our child has no exit status: nothing is left of the set.
            let is_over = attaches && live.progress().over;
            (has_steps || is_over).then_some(has_steps)
        };
        match self.stay(live, Stage::Steady, duration, enough)? {
            StageEnd::Done(true) => Ok(()),
            StageEnd::Done(false) => {
                self.notes.push(format!(
                    "No recorded process was left after {:.1} s of the {} s of the steady phase.",
                    started.elapsed().as_secs_f64(),
                    duration.as_secs_f64()
                ));
                Ok(())
            }
            StageEnd::TimeUp => {
                if let Some(wanted) = wanted {
                    self.notes.push(format!(
                        "The steady phase ended after {} s with {} of {wanted} steps; `duration_s` limits it.",
                        duration.as_secs_f64(),
                        ended(live)
                    ));
                }
                Ok(())
            }
            StageEnd::Ended(exit) if exit.status() == 0 => {
                self.notes.push(format!(
                    "The program ended by itself, with status 0, after {:.1} s of the {} s of its steady phase.",
                    started.elapsed().as_secs_f64(),
                    duration.as_secs_f64()
                ));
                Ok(())
            }
            StageEnd::Ended(exit) => Err(self.cut_by_end(live, Stage::Steady, &exit, "in its steady phase")),
        }
    }

    /// Stays in a stage until `done` returns a value, the time is up or the program ends.
    fn stay<T>(
        &mut self,
        live: &mut Live,
        stage: Stage,
        limit: Duration,
        mut done: impl FnMut(&mut Live) -> Option<T>,
    ) -> Result<StageEnd<T>, Abort> {
        let started = Instant::now();
        let mut report_at = Duration::ZERO;
        loop {
            self.search_step(live);
            // Checked before `done`, which then sees the last output of a program that has ended.
            let ended = self.has_ended(live)?;
            if let Some(found) = done(live) {
                return Ok(StageEnd::Done(found));
            }
            if let Some(exit) = ended {
                return Ok(StageEnd::Ended(exit));
            }
            let progress = live.progress();
            let elapsed = started.elapsed();
            if elapsed >= report_at {
                report_at = elapsed + REPORT_EVERY;
                self.context.listener.notify(&Event::Progress { stage, elapsed, limit, recording: &progress });
            }
            if let Some(failure) = progress.failure {
                return Err(self.cut(live, stage, format!("the recording failed: {failure}"), None).without_lines());
            }
            if self.context.interrupt.load(Ordering::Relaxed) {
                return Err(Abort::Interrupted);
            }
            self.look_at_drivers(live, stage)?;
            if elapsed >= limit {
                return Ok(StageEnd::TimeUp);
            }
            pause(live.launched.as_mut(), LOOK_EVERY.min(limit - elapsed));
        }
    }

    /// Searches the step function in the files that the program has mapped since.
    fn search_step(&mut self, live: &mut Live) {
        let Some(search) = &mut self.step_search else { return };
        let Live { recording: Some(recording), tree, .. } = live else { return };
        if let Some(step) = search.look(tree, |step| recording.observe_steps(step)) {
            self.context.listener.notify(&Event::StepsFound { step: &step });
        }
    }

    /// How the program ended, if it has: with a failure, or with status 0 when all its children have ended too. (A launcher may
    /// start other processes and exit with status 0.)
    fn has_ended(&mut self, live: &mut Live) -> Result<Option<Exit>, Abort> {
        let Some(launched) = &mut live.launched else { return Ok(None) };
        let ended = launched.exit().and_then(|exit| Ok((exit, launched.all_ended()?)));
        // A service manager or a container engine may have started what is recorded: it outlives the command.
        let outlives = self.trial.scenario.attach.is_some();
        match ended {
            Ok((Some(exit), all)) if (all && !outlives) || exit.status() != 0 => Ok(Some(exit)),
            Ok(_) => Ok(None),
            Err(error) => Err(self.cut(live, Stage::Launch, error.to_string(), None)),
        }
    }

    fn look_at_drivers(&mut self, live: &mut Live, stage: Stage) -> Result<(), Abort> {
        for driver in &mut live.drivers {
            let Some(exit) = driver.newly_ended() else { continue };
            let how = how_it_ended(&exit);
            self.context.listener.notify(&Event::DriverEnded { command: driver.command(), how: &how });
            let command = driver.command().join(" ");
            if exit.status() == 0 {
                self.notes.push(format!("The driver `{command}` ended by itself in the {stage} stage, with status 0."));
                continue;
            }
            let reason = format!("the driver `{command}` {how}: without it, the workload is another one");
            let last_lines = driver.last_lines(LAST_LINES);
            return Err(Abort::Failed(Failure { stage, reason, status: Some(exit.status()), last_lines }));
        }
        Ok(())
    }

    /// Stops the recording, the drivers, the program and all their children. Returns the outcome if that fails.
    fn stop(&mut self, live: Live) -> Option<Outcome> {
        if let Some(missing) = self.step_search.take().and_then(|search| search.failure()) {
            self.notes.push(format!("Steps are not recorded: {missing}."));
        }
        self.context.listener.notify(&Event::Stopping);
        let Live { recording, mut drivers, mut launched, .. } = live;
        if let (Some(recording), Some(launched)) = (&recording, &mut launched)
            && self.trial.scenario.attach.is_none()
            && let Ok(Some(exit)) = launched.exit()
        {
            recording.note_exit(launched.pid(), &exit);
        }
        // The recording stops first: shutting down is not part of the phase.
        let recorded = recording.map(|recording| recording.stop());
        let grace = grace(self.trial.scenario.stop);
        // Clients stop before their server, and the last one first, because it may need the others.
        let mut problems = Vec::new();
        for driver in drivers.iter_mut().rev() {
            let name = driver.command()[0].clone();
            problems.extend(self.ended(&format!("driver `{name}`"), driver.stop(&grace)));
        }
        if let Some(launched) = &mut launched {
            problems.extend(self.ended("program", launched.stop(&grace)));
        }
        problems.extend(recorded.and_then(Result::err).map(|error| error.to_string()));
        (!problems.is_empty()).then(|| self.failed(Stage::Stop, problems.join("; ")))
    }

    /// Notes which processes had to be killed. Returns an error message if some could not be.
    fn ended(&mut self, what: &str, report: Result<StopReport, LaunchError>) -> Option<String> {
        let report = match report {
            Ok(report) => report,
            Err(error) => return Some(format!("cannot end the {what}: {error}")),
        };
        if !report.killed.is_empty() {
            let names: Vec<String> =
                report.killed.iter().map(|ended| format!("{} ({})", ended.name, ended.pid)).collect();
            self.notes.push(format!(
                "The {what} did not end when asked to, and had to be killed: {}. `stop` in the lab file gives it more time.",
                names.join(", ")
            ));
        }
        (!report.survivors.is_empty()).then(|| format!("the {what} could not be ended: {report}"))
    }

    fn failed(&self, stage: Stage, reason: String) -> Outcome {
        let last_lines = OutputFile::new(self.folder.join(OUTPUT_FILE)).last_lines(LAST_LINES);
        Outcome::Failed(Failure { stage, reason, status: None, last_lines })
    }

    fn cut(&self, live: &Live, stage: Stage, reason: String, status: Option<i32>) -> Abort {
        Abort::Failed(Failure { stage, reason, status, last_lines: live.output.last_lines(LAST_LINES) })
    }

    fn cut_by_end(&self, live: &Live, stage: Stage, exit: &Exit, when: &str) -> Abort {
        let program = &self.trial.scenario.command[0];
        let seconds = live.since.elapsed().as_secs_f64();
        let reason = format!("`{program}` {} {when}, {seconds:.1} s after launch", how_it_ended(exit));
        self.cut(live, stage, reason, Some(exit.status()))
    }

    fn cut_by_recorder(&self, stage: Stage, error: &RecordError) -> Abort {
        Abort::Failed(Failure { stage, reason: error.to_string(), status: None, last_lines: Vec::new() })
    }
}

impl Abort {
    /// The same failure without the program's output, which did not cause it.
    fn without_lines(mut self) -> Self {
        if let Abort::Failed(failure) = &mut self {
            failure.last_lines.clear();
        }
        self
    }
}

/// The first CPUs that this process may use.
fn first_cpus(count: usize) -> Result<Vec<usize>, String> {
    let allowed = allowed_cpus().map_err(|error| format!("cannot read the allowed CPUs: {error}"))?;
    match allowed.get(..count) {
        Some(cpus) => Ok(cpus.to_vec()),
        None => Err(format!("`cores = {count}`: only {} are allowed here", plural(allowed.len(), "CPU"))),
    }
}

fn grace(stop: StopSettings) -> Grace {
    Grace { after_interrupt: stop.interrupt, after_terminate: stop.terminate, ..Grace::default() }
}

/// Waits this long, or until the program ends.
fn pause(launched: Option<&mut Launched>, length: Duration) {
    // After its end, waiting for it would return at once.
    let running = launched.and_then(|launched| matches!(launched.exit(), Ok(None)).then_some(launched));
    match running {
        Some(launched) => drop(launched.wait_for(length)),
        None => std::thread::sleep(length),
    }
}

//! `stepscope record`: one capture of a program that is launched or already runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use stepscope_lab::execution::UNWANTED_FOLDER;
use stepscope_lab::lab_file::Ready;
use stepscope_lab::ready::{Observation, TreeSurroundings, Watch};
use stepscope_lab::step::{StepFunction, libraries};
use stepscope_model::{Capture, Dimension, DimensionStatus, disk};
use stepscope_record::launch::{Grace, Input, Launch, Launched, Output};
use stepscope_record::session::{Options, Progress, Reason, Recording, Until};
use stepscope_record::{Label, StepTime, TimeArgument, clock, proc};

use crate::arguments::duration;
use crate::failure::Failure;
use crate::{interrupt, progress};

/// Record a program: on-CPU samples, blocked time, scheduling, page faults, resources.
#[derive(Debug, Args)]
pub struct Record {
    /// The program and its arguments, recorded from its first instruction with everything it starts. `--` before it is
    /// only needed if it begins with a dash.
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "COMMAND")]
    command: Vec<String>,
    /// Attach to this process instead: all its threads, what descends from it and what they start.
    #[arg(short, long, conflicts_with = "command")]
    pid: Option<u32>,
    /// Folder of the capture to be made [default: PROGRAM-TIME.capture here].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Stop after this long (30s, 2m) and terminate the launched program [default: stop when it ends, or on Ctrl-C].
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Samples per second and CPU.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 997, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    frequency: u64,
    /// Start recording so long after the launch.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    after: Option<Duration>,
    /// Start recording when the program is ready: `log=TEXT` in its output, `port=N` open, `file=PATH` written,
    /// `steps=N` done.
    #[arg(long, value_name = "CONDITION", value_parser = ready, conflicts_with_all = ["after", "pid"])]
    ready: Option<Ready>,
    /// Kinds of evidence: cpu, offcpu, sched, faults, resources [default: all of these].
    #[arg(long, value_delimiter = ',', value_name = "DIMENSION", value_parser = dimension)]
    dimensions: Vec<Dimension>,
    /// Bytes of user stack copied into a sample [default: 32768, or less where memory for rings is limited].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1024..=65_000))]
    stack_bytes: Option<u32>,
    /// The function that the simulation's loop calls once a step: its name, a glob or /regex/. Needs root.
    #[arg(long, value_name = "NAME")]
    step_function: Option<String>,
    /// The program or library that holds the step function [default: the program].
    #[arg(long, value_name = "FILE", requires = "step_function")]
    step_module: Option<PathBuf>,
    /// Where the step function finds the simulated time: an argument as the kernel's uprobes write it, and a unit, e.g.
    /// `%di:s64 ns`, `%si:u64 us`, `+8(%di):f64 s`.
    #[arg(long, value_name = "ARGUMENT", requires = "step_function")]
    step_time: Option<TimeArgument>,
    /// How much simulated time each step takes, where that never changes (1ms, 500us).
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "step_function", conflicts_with = "step_time")]
    step_dt: Option<Duration>,
    /// Marked scope whose start begins a new step [default: the steps that the program marks].
    #[arg(long, value_name = "NAME", conflicts_with = "step_function")]
    step_scope: Option<String>,
    /// Replace a capture that is there.
    #[arg(long)]
    force: bool,
}

fn ready(text: &str) -> Result<Ready, String> {
    match text.split_once('=') {
        Some(("log", text)) if !text.is_empty() => Ok(Ready::Log(text.to_owned())),
        Some(("port", port)) => port.parse().map(Ready::Port).map_err(|_| format!("`{port}` is not a TCP port")),
        Some(("file", path)) if !path.is_empty() => Ok(Ready::File(path.into())),
        Some(("steps", steps)) => steps.parse().map(Ready::Steps).map_err(|_| format!("`{steps}` is not a number")),
        _ => Err("write log=TEXT, port=N, file=PATH or steps=N".to_owned()),
    }
}

fn dimension(name: &str) -> Result<Dimension, String> {
    let recorded = [Dimension::Cpu, Dimension::Offcpu, Dimension::Sched, Dimension::Faults, Dimension::Resources];
    let found = recorded.into_iter().find(|dimension| dimension.name() == name);
    found.ok_or_else(|| format!("use some of {}", recorded.map(Dimension::name).join(", ")))
}

impl Record {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let folder = self.folder();
        super::refuse_to_replace(&folder, self.force)?;
        disk::remove(&folder)?;
        let interrupted = interrupt::flag();
        let (mut launched, recording) = self.begin(&folder, &interrupted)?;
        let reason = self.watch(&recording, &interrupted);
        let mut exit = None;
        if let Some(launched) = &mut launched {
            exit = launched.exit()?;
            if let Some(exit) = &exit {
                recording.note_exit(launched.pid(), exit.status());
            }
        }
        recording.stop()?;
        if let Some(launched) = &mut launched {
            let report = launched.stop(&Grace::default())?;
            if !report.survivors.is_empty() {
                eprintln!("stepscope: {report}");
            }
        }
        let capture = super::finish_recording(&folder)?;
        summarise(&capture, &folder, &reason);
        match exit.map(|exit| exit.status()) {
            Some(status) if status != 0 => eprintln!("note: the program ended with status {status}"),
            _ => {}
        }
        match reason {
            Reason::Failed(why) => Err(Failure::Failed(format!("the recording ended early: {why}"))),
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    fn folder(&self) -> PathBuf {
        if let Some(folder) = &self.output {
            return folder.clone();
        }
        let program = match (&self.pid, self.command.first()) {
            (Some(pid), _) => format!("pid{pid}"),
            (None, Some(command)) => {
                Path::new(command).file_name().map_or("program".into(), |name| name.to_string_lossy().into_owned())
            }
            (None, None) => "program".to_owned(),
        };
        // To the second, and without the colons that some file systems refuse.
        let time = clock::utc_file_name();
        PathBuf::from(format!("{program}-{time}.capture"))
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut options = Options {
            frequency_hz: self.frequency,
            stack_bytes: self.stack_bytes,
            step_scope: self.step_scope.clone(),
            ..Options::default()
        };
        if !self.dimensions.is_empty() {
            options.dimensions = self.dimensions.iter().copied().collect();
        }
        if let Some(name) = &self.step_function {
            let every = self.step_dt.map(|dt| StepTime::Every { step_ns: dt.as_nanos() as u64 });
            let time = self.step_time.clone().map(StepTime::Argument).or(every);
            let function = StepFunction { name: name.clone(), module: self.step_module.clone(), time };
            let program = self.program()?;
            let libraries = || match self.pid {
                Some(pid) => libraries::of_process(pid),
                None => libraries::of_program(&program, &BTreeMap::new()),
            };
            options.step = Some(function.find(&program, libraries)?);
        }
        Ok(options)
    }

    /// The file of the program.
    fn program(&self) -> Result<PathBuf, Failure> {
        match self.pid {
            Some(pid) => Ok(proc::executable(pid)?),
            None => Ok(Launch::new(&self.command).program()?),
        }
    }

    /// Starts the recording: at once, or when the program has come so far.
    fn begin(&self, folder: &Path, interrupted: &AtomicBool) -> Result<(Option<Launched>, Recording), Failure> {
        let options = self.options()?;
        if let Some(pid) = self.pid {
            if let Some(delay) = self.after {
                interrupt::sleep(delay, interrupted);
            }
            return Ok((None, Recording::attach(pid, &options, folder)?));
        }
        let Some(ready) = self.ready.clone().or(self.after.map(Ready::After)) else {
            let (launched, recording) = Recording::launch(self.launch(Output::Inherit), &options, folder)?;
            return Ok((Some(launched), recording));
        };
        let watch = Watch::new(&ready, &mut TreeSurroundings::before_launch());
        let (launched, recording) = match ready {
            Ready::Steps(_) => self.count_until(watch, &options, folder, interrupted)?,
            Ready::Log(_) => {
                let seen = Arc::new(Mutex::new(Vec::new()));
                let passing_on = Some(passing_on(seen.clone()));
                let output = Output::Captured { keep_lines: 10, copy_to: None, watch: passing_on };
                let output_of = || std::mem::take(&mut *seen.lock().expect("the watcher does not panic"));
                self.attach_when(watch, output, output_of, &options, folder, interrupted)?
            }
            _ => self.attach_when(watch, Output::Inherit, Vec::new, &options, folder, interrupted)?,
        };
        Ok((Some(launched), recording))
    }

    fn launch(&self, output: Output) -> Launch {
        Launch::new(&self.command).input(Input::Inherit).output(output)
    }

    /// Launches the program without recording it, and attaches when it is ready.
    fn attach_when(
        &self,
        watch: Watch,
        output: Output,
        new_output: impl Fn() -> Vec<u8>,
        options: &Options,
        folder: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(Launched, Recording), Failure> {
        let mut launched = self.launch(output).prepare()?.start()?;
        await_ready(watch, &mut launched, interrupted, || (new_output(), None))?;
        let recording = Recording::attach(launched.pid(), options, folder)?;
        Ok((launched, recording))
    }

    /// Launches the program, counts its steps from the first one on, and keeps what comes after it is ready.
    fn count_until(
        &self,
        watch: Watch,
        options: &Options,
        folder: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(Launched, Recording), Failure> {
        let unwanted = folder.join(UNWANTED_FOLDER);
        let (mut launched, recording) = Recording::launch(self.launch(Output::Inherit), options, &unwanted)?;
        recording.pause()?;
        let ended = || recording.progress().steps.map(|started| started.saturating_sub(1));
        let ready = await_ready(watch, &mut launched, interrupted, || (Vec::new(), ended()));
        fs::remove_dir_all(&unwanted).map_err(Failure::writing(&unwanted.display().to_string()))?;
        ready?;
        recording.begin_next(folder, Label::default())?;
        Ok((launched, recording))
    }

    /// Shows the live line until the recording is over.
    fn watch(&self, recording: &Recording, interrupted: &AtomicBool) -> Reason {
        let line = progress::line();
        let until = Until { duration: self.duration, flag: Some(interrupted) };
        let reason = recording.wait_watched(&until, |progress| line.set_message(live(progress, self.duration)));
        line.finish_and_clear();
        reason
    }
}

/// Waits until the program is ready; `seen` gives its new output, and how many of its steps have ended.
fn await_ready(
    mut watch: Watch,
    launched: &mut Launched,
    interrupted: &AtomicBool,
    seen: impl Fn() -> (Vec<u8>, Option<u64>),
) -> Result<(), Failure> {
    let mut surroundings = TreeSurroundings::of(launched.tree());
    let started = Instant::now();
    loop {
        let (output, steps) = seen();
        let observation = Observation { since_launch: started.elapsed(), output: &output, steps };
        if let Some(by) = watch.look(&observation, &mut surroundings) {
            eprintln!("stepscope: ready after {:.1} s ({by}); recording", started.elapsed().as_secs_f64());
            return Ok(());
        }
        if let Some(exit) = launched.exit()? {
            let why = watch.explain_failure(&mut surroundings);
            let status = exit.status();
            return Err(Failure::Failed(format!("the program ended with status {status} before it was ready: {why}")));
        }
        if interrupted.load(Ordering::Relaxed) {
            launched.stop(&Grace::default())?;
            return Err(Failure::Interrupted(
                "interrupted before the program was ready; nothing was recorded".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Passes the program's lines on to our standard output, and keeps them for the watch.
fn passing_on(seen: Arc<Mutex<Vec<u8>>>) -> Box<dyn FnMut(&str) + Send> {
    Box::new(move |text| {
        // Where the reader of our output went away, the program still has to be watched.
        let _ = writeln!(std::io::stdout(), "{text}");
        let mut seen = seen.lock().expect("nobody panics with the lock");
        seen.extend_from_slice(text.as_bytes());
        seen.push(b'\n');
    })
}

fn live(progress: &Progress, limit: Option<Duration>) -> String {
    let of = limit.map(|limit| format!(" of {:.0} s", limit.as_secs_f64())).unwrap_or_default();
    let lost = if progress.lost > 0 { format!(", {} LOST", progress.lost) } else { String::new() };
    let steps = progress.steps.map(|steps| format!(", {steps} steps")).unwrap_or_default();
    format!(
        "recording {:.1} s{of}: {} samples, {} waits{steps}{lost}, {} processes, {:.1} MB (Ctrl-C ends it and keeps the capture)",
        progress.elapsed.as_secs_f64(),
        progress.cpu_samples,
        progress.waits,
        progress.processes,
        progress.bytes as f64 / 1e6,
    )
}

/// Says on standard error what was recorded, what is missing and what to do next; on standard output where it is.
fn summarise(capture: &Capture, folder: &Path, reason: &Reason) {
    let losses = &capture.info.losses;
    if *reason == Reason::Flagged {
        eprintln!("interrupted; what was recorded is kept");
    }
    let coverage =
        losses.coverage().map(|share| format!(", {:.1} % of the CPU time", share * 100.0)).unwrap_or_default();
    let wall = capture.info.wall_ns().map(|ns| format!(" in {:.1} s", ns as f64 / 1e9)).unwrap_or_default();
    eprintln!(
        "{} samples{coverage}, {} waits, {} threads{wall}",
        stepscope_analyze::events::cpu_samples(capture),
        capture.waits.len(),
        capture.threads.len()
    );
    if losses.lost_records > 0 {
        eprintln!("lost: {} records, because they came faster than they could be read", losses.lost_records);
    }
    if losses.lost_marks > 0 {
        eprintln!("lost: {} marks, because they were made faster than they could be read", losses.lost_marks);
    }
    for (dimension, status) in &capture.info.dimensions {
        match status {
            DimensionStatus::Recorded => {}
            DimensionStatus::Partial { lacks } => eprintln!("{dimension}: {}", lacks.join("; ")),
            DimensionStatus::Missing { reason, remedy } => {
                let remedy = remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
                eprintln!("{dimension} was not recorded: {reason}{remedy}");
            }
        }
    }
    println!("{}", folder.display());
    eprintln!("next: stepscope show {} ; stepscope flamegraph {} -o flame.svg", folder.display(), folder.display());
}

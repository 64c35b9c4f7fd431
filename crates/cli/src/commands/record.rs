//! `stepscope record`: one capture of a program that is launched or already runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use stepscope_analyze::Ownership;
use stepscope_analyze::step_loop::what_steps_are;
use stepscope_lab::cache_simulation::{self, SimulatedProgram};
use stepscope_lab::lab_file::Ready;
use stepscope_lab::naming;
use stepscope_lab::program::{ProgramError, ProgramEvent, ProgramRecording, Target};
use stepscope_lab::step::{StepFunction, with_file};
use stepscope_model::quantity::{self, plural};
use stepscope_model::{Capture, ClockExchange, Dimension, DimensionStatus, disk};
use stepscope_record::proc::{ProcessSelection, ProcessSet};
use stepscope_record::session::{Options, Progress, Reason, take_half_of_a_cpu};
use stepscope_record::{PythonFunctions, StepTime, TimeArgument, clock};
use stepscope_view::Format;

use super::live::Beside;
use super::segments::Segments;
use crate::arguments::processes::ProcessArguments;
use crate::arguments::{duration, segment_length};
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::{interrupt, progress};

/// Record a program: on-CPU samples, blocked time, scheduling, page faults, resources.
#[derive(Debug, Args)]
pub struct Record {
    /// The program and its arguments. It and its children are recorded from the first instruction. Put `--` before a program
    /// that starts with a dash.
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "running",
        conflicts_with = "running",
        value_name = "COMMAND"
    )]
    command: Vec<String>,
    #[command(flatten)]
    processes: ProcessArguments,
    /// Folder of the new capture [default: PROGRAM-TIME.capture in the working directory].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Stop after this long (30s, 2m) and terminate the launched program [default: stop when it ends, or on Ctrl-C].
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Divide a long recording into segments of this length (60s, 10m). Each is a capture that can be read while the recording
    /// goes on, and the folder is read as one capture.
    #[arg(long, value_name = "TIME", value_parser = segment_length)]
    segment: Option<Duration>,
    /// Keep only this many finished segments, so that a long recording needs a bounded part of the disk.
    #[arg(long, value_name = "SEGMENTS", requires = "segment", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Samples per second and CPU.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 997, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    frequency: u64,
    /// Start recording this long after the launch.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    after: Option<Duration>,
    /// Start recording when the program is ready: `log=TEXT` in its output, `port=N` open, `file=PATH` written,
    /// `steps=N` done.
    #[arg(long, value_name = "CONDITION", value_parser = ready, conflicts_with_all = ["after", "running"])]
    ready: Option<Ready>,
    /// Kinds of evidence: cpu, offcpu, sched, faults, resources [default: all of these], heap, syscalls, cache, sharing,
    /// memcheck, asan, ubsan, tsan.
    #[arg(long, value_delimiter = ',', value_name = "DIMENSION", value_parser = dimension)]
    dimensions: Vec<Dimension>,
    /// Further kinds of evidence, which cost the program more: heap, syscalls, cache, sharing, memcheck, and asan, ubsan, tsan for
    /// programs built with these sanitizers. `python` shows Python functions in the stacks also if the command starts or embeds CPython. `ros2` follows messages and
    /// callbacks of ROS 2 by uprobes (root). After the recording, `cache-sim` runs the command
    /// again below valgrind, for as long, to simulate its caches.
    #[arg(long, value_delimiter = ',', value_name = "DIMENSION", value_parser = further)]
    with: Vec<Further>,
    /// Sample heap allocations: one per this many bytes on average (512KiB, 1MiB) [default: record each].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    heap_every: Option<u64>,
    /// Bytes of user stack copied per sample [default: 32768, or less if memory for ring buffers is limited].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1024..=65_000))]
    stack_bytes: Option<u32>,
    /// Most stacks per second at context switches and wake-ups. Beyond it, a random part stands for all.
    #[arg(long, value_name = "HZ", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    switch_stacks_hz: u64,
    /// Record each wait one by one, however often threads switch. By default, waits of threads that switch very often are added up in
    /// the kernel, by stack (root, or CAP_BPF and CAP_PERFMON).
    #[arg(long)]
    single_waits: bool,
    /// The function that the simulation's loop calls once per step: its name or a part of it, a glob, /regex/ or
    /// MODULE+0xADDRESS. Needs root.
    #[arg(long, visible_alias = "step", value_name = "NAME")]
    step_function: Option<String>,
    /// The program or library that holds the step function, by path or file name [default: the program, then its
    /// libraries, then what it maps while it runs].
    #[arg(long, value_name = "FILE", requires = "step_function")]
    step_module: Option<PathBuf>,
    /// The simulated time as an argument of the step function: in the syntax of uprobes, with a unit, e.g. `%di:s64 ns`,
    /// `%si:u64 us`, `+8(%di):f64 s`.
    #[arg(long, value_name = "ARGUMENT", requires = "step_function")]
    step_time: Option<TimeArgument>,
    /// Simulated time per step, if it is constant (1ms, 500us).
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "step_function", conflicts_with = "step_time")]
    step_dt: Option<Duration>,
    /// Marked scope whose start begins a new step [default: the steps that the program marks].
    #[arg(long, value_name = "NAME", conflicts_with = "step_function")]
    step_scope: Option<String>,
    /// Look for no step function [default: if the program marks no steps, the function that its loop calls at a steady rate is found
    /// and observed while it is recorded; this needs root].
    #[arg(long, conflicts_with_all = ["step_function", "step_scope", "suggest_steps"])]
    no_steps: bool,
    /// List functions that look like steps, instead of recording: samples stacks, then counts calls, 2 s each
    /// (`--duration`). Counting needs root.
    #[arg(long, conflicts_with_all = ["step_function", "step_scope", "output", "segment"])]
    suggest_steps: bool,
    /// With --suggest-steps: functions your team can change, suggested first: a glob over their names; repeatable.
    #[arg(long, value_name = "GLOB", requires = "suggest_steps")]
    owned: Vec<String>,
    /// With --suggest-steps: table, tsv, csv, json, json-compact or markdown.
    #[arg(long, value_name = "FORMAT", requires = "suggest_steps", default_value = "table")]
    format: Format,
    /// Measure the machine's speed beside the recording, so that comparisons can correct for it: short fixed loops on each
    /// CPU in use, with less than 0.5 % of it.
    #[arg(long)]
    speed_probe: bool,
    /// Leave Python functions out of the stacks. Otherwise they are there if the command is CPython 3.9 to 3.13 or a script of it.
    #[arg(long)]
    no_python: bool,
    /// Show the recording in the browser while it goes on: docs/app.md. It costs the program nothing: another process, with
    /// low priority, reads what is recorded.
    #[arg(long, conflicts_with_all = ["segment", "suggest_steps"])]
    live: bool,
    /// Ask this machine for its clock beside the recording, so that `merge` can align captures of both. `stepscope clock serve` must
    /// run there. A few datagrams a second.
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "suggest_steps")]
    clock_of: Option<String>,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
}

/// The folder of a recording of processes or a program, in the working directory.
pub(super) fn default_folder(selection: &ProcessSelection, command: Option<&String>) -> PathBuf {
    let program = match (&selection.pids[..], &selection.trees[..], command) {
        (&[pid], [], _) | ([], &[pid], _) => format!("pid{pid}"),
        (_, _, Some(command)) => {
            Path::new(command).file_name().map_or("program".into(), |name| name.to_string_lossy().into_owned())
        }
        _ if !selection.is_empty() => "processes".to_owned(),
        _ => "program".to_owned(),
    };
    // To the second, and without the colons that some file systems refuse.
    let time = clock::utc_file_name();
    PathBuf::from(format!("{program}-{time}.capture"))
}

/// Shows what a recording does.
fn tell(event: &ProgramEvent<'_>, line: &ProgressBar, duration: Option<Duration>) {
    match event {
        ProgramEvent::Ready { after, by } => {
            line.suspend(|| eprintln!("stepscope: ready after {:.1} s ({by}); recording", after.as_secs_f64()));
        }
        ProgramEvent::Steps(step) => {
            line.suspend(|| eprintln!("steps: {}", with_file(step)));
        }
        ProgramEvent::StepsFound(step) => line.suspend(|| {
            eprintln!(
                "steps: {}, found by their steady rate (another one: --step NAME)",
                what_steps_are(&step.function)
            );
        }),
        ProgramEvent::StepsSought(missing) => line.suspend(|| {
            eprintln!(
                "note: {missing}\nnote: The step function is searched in the files that the program maps while it runs."
            );
        }),
        ProgramEvent::StepsMissing(why) => line.suspend(|| eprintln!("warning: Steps are not recorded: {why}.")),
        ProgramEvent::Recording(progress) => line.set_message(live(progress, duration)),
        ProgramEvent::Counting(functions) => line.set_message(format!("counting calls of {functions} functions")),
        ProgramEvent::NotRotated(why) => line.suspend(|| {
            eprintln!("warning: The next segment could not be started ({why}). The present one goes on.");
        }),
        ProgramEvent::SegmentEnded(_) => {}
        // Python, for one, prints a traceback then.
        ProgramEvent::Stopping => {
            line.suspend(|| eprintln!("stepscope: recorded; stopping the program as Ctrl-C does"))
        }
        ProgramEvent::Failed(why) => line.suspend(|| eprintln!("stepscope: {why}; the program continues")),
    }
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
    // Steps are recorded by their own options.
    let recorded: Vec<Dimension> = Dimension::ALL.into_iter().filter(|one| *one != Dimension::Steps).collect();
    let names: Vec<&str> = recorded.iter().map(|dimension| dimension.name()).collect();
    let found = recorded.iter().find(|dimension| dimension.name() == name);
    found.copied().ok_or_else(|| format!("use some of {}", names.join(", ")))
}

/// Further evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Further {
    Dimension(Dimension),
    /// Caches, simulated in a run of its own.
    CacheSimulation,
    /// Python functions in stacks.
    Python,
    /// Messages and callbacks of ROS 2.
    Ros2,
}

fn further(name: &str) -> Result<Further, String> {
    match name {
        "cache-sim" => Ok(Further::CacheSimulation),
        "python" => Ok(Further::Python),
        "ros2" => Ok(Further::Ros2),
        name => dimension(name).map(Further::Dimension).map_err(|known| format!("{known}, cache-sim, python, ros2")),
    }
}

/// A size: a number with an optional unit of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let shift = match unit {
        "" | "B" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(format!("`{unit}` is no unit of bytes: use KiB, MiB or GiB")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is not a size, such as 512KiB"))?;
    match number.checked_shl(shift).filter(|bytes| bytes >> shift == number) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("`{text}` is not a size, such as 512KiB")),
    }
}

impl Record {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if self.suggest_steps {
            return self.suggest_steps();
        }
        let simulates = self.with.contains(&Further::CacheSimulation);
        if simulates && (!self.processes.selection().is_empty() || self.segment.is_some()) {
            let why = "--with cache-sim runs a command again, so it needs one, and no --segment";
            return Err(Failure::Usage(why.to_owned()));
        }
        let command = self.command.clone();
        let folder = self.folder();
        super::refuse_to_replace(&folder, self.force)?;
        // What is launched would have the priority, too.
        let attaches = command.is_empty();
        if attaches {
            self.find_processes()?;
        } else {
            Target::Command(command.clone()).program()?;
        }
        disk::remove(&folder)?;
        let _beside = match self.live {
            true => Some(Beside::start(&folder).map_err(Failure::writing("the viewer"))?),
            false => None,
        };
        if attaches {
            let _ = take_half_of_a_cpu();
        }
        let line = progress::line();
        let duration = self.duration;
        let mut segments = self.segment.map(|_| Segments::new(&folder, self.keep.map(|keep| keep as usize)));
        let recorded = self.recording().record(&folder, &interrupt::flag(), &mut |event| {
            tell(&event, &line, duration);
            match (&mut segments, event) {
                (Some(segments), ProgramEvent::SegmentEnded(segment)) => segments.add(segment),
                (Some(segments), _) => segments.look(),
                (None, _) => {}
            }
        });
        line.finish_and_clear();
        let recorded = recorded.map_err(|error| match error {
            ProgramError::Interrupted => Failure::Interrupted(error.to_string()),
            error => error.into(),
        })?;
        if let Some(report) = recorded.stopped.filter(|report| !report.survivors.is_empty()) {
            eprintln!("stepscope: {report}");
        }
        if let Some(status) = recorded.status.filter(|status| *status != 0) {
            eprintln!("note: the program ended with status {status}");
        }
        if let Some(threads) = attaches.then(take_half_of_a_cpu).flatten() {
            eprintln!(
                "note: {threads} threads want each CPU, so the capture may take minutes: as root, or with CAP_SYS_NICE, it takes seconds"
            );
        }
        match segments {
            Some(segments) => summarise_segments(super::finish_segments(segments, &folder)?, &folder, &recorded.reason),
            None => {
                let mut capture = super::finish_recording(&folder)?;
                if simulates {
                    simulate(&mut capture, &command, &folder)?;
                }
                summarise(&capture, &folder, &recorded.reason);
            }
        }
        match recorded.reason {
            Reason::Failed(why) => Err(Failure::Failed(format!("the recording ended early: {why}"))),
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    /// Fails if no process of the set runs, before a capture is replaced for nothing.
    fn find_processes(&self) -> Result<(), Failure> {
        ProcessSet::open(self.processes.selection()).map(drop).map_err(|error| Failure::Failed(error.to_string()))
    }

    fn suggest_steps(self) -> Result<ExitCode, Failure> {
        const ROWS: usize = 15;
        let owned = Ownership { namespaces: self.owned.clone(), ..Ownership::default() }.compile()?;
        let (output, duration) = (TableArguments::of(self.format), self.duration);
        let folder = tempfile::tempdir().map_err(Failure::writing("a temporary folder"))?;
        let (line, interrupted) = (progress::line(), interrupt::flag());
        let suggested = self.recording().suggest_steps(&owned, folder.path(), &interrupted, &mut |event| {
            tell(&event, &line, duration);
        });
        line.finish_and_clear();
        let suggested = suggested.map_err(|error| match error {
            ProgramError::Interrupted => Failure::Interrupted("interrupted before calls were counted".to_owned()),
            error => error.into(),
        })?;
        if let Some(report) = suggested.stopped.filter(|report| !report.survivors.is_empty()) {
            eprintln!("stepscope: {report}");
        }
        output.print_at_most(ROWS, vec![suggested.table])?;
        Ok(ExitCode::SUCCESS)
    }

    fn folder(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| default_folder(&self.processes.selection(), self.command.first()))
    }

    fn recording(self) -> ProgramRecording {
        let mut options = Options {
            frequency_hz: self.frequency,
            stack_bytes: self.stack_bytes,
            max_switch_stacks_hz: self.switch_stacks_hz,
            aggregate_waits: !self.single_waits,
            step_scope: self.step_scope,
            speed_probe: self.speed_probe,
            heap_sample_bytes: self.heap_every.unwrap_or(0),
            clock_of: self.clock_of,
            ..Options::default()
        };
        if !self.dimensions.is_empty() {
            options.dimensions = self.dimensions.into_iter().collect();
        }
        options.dimensions.extend(self.with.iter().filter_map(|further| match further {
            Further::Dimension(dimension) => Some(*dimension),
            Further::CacheSimulation | Further::Python | Further::Ros2 => None,
        }));
        let python = self.with.contains(&Further::Python).then_some(true);
        options.python = PythonFunctions::asked(if self.no_python { Some(false) } else { python });
        options.ros2 = self.with.contains(&Further::Ros2);
        options.dimensions.extend(self.heap_every.map(|_| Dimension::Heap));
        let every = self.step_dt.map(|dt| StepTime::Every { step_ns: dt.as_nanos() as u64 });
        let time = self.step_time.map(StepTime::Argument).or(every);
        ProgramRecording {
            target: match self.processes.selection() {
                selection if selection.is_empty() => Target::Command(self.command),
                selection => Target::Processes(selection),
            },
            start: self.ready.or(self.after.map(Ready::After)),
            duration: self.duration,
            segment: self.segment,
            finds_steps: !self.no_steps,
            step: self.step_function.map(|name| StepFunction { name, module: self.step_module, time }),
            options,
        }
    }
}

/// Runs the command again below valgrind, and adds what it counted to the capture. Without valgrind, the capture says so.
fn simulate(capture: &mut Capture, command: &[String], folder: &Path) -> Result<(), Failure> {
    let interrupted = interrupt::flag();
    let program = SimulatedProgram { command, directory: None, environment: &BTreeMap::new() };
    let simulate = || cache_simulation::complete(capture, &program, &interrupted);
    progress::of_step("simulating caches (valgrind)", simulate);
    capture.load()?;
    disk::write(capture, folder)?;
    Ok(())
}

fn live(progress: &Progress, limit: Option<Duration>) -> String {
    let of = limit.map(|limit| format!(" of {:.0} s", limit.as_secs_f64())).unwrap_or_default();
    let lost = if progress.lost > 0 { format!(", {} LOST", progress.lost) } else { String::new() };
    let steps = progress.steps.map(|steps| format!(", {}", plural(steps as usize, "step"))).unwrap_or_default();
    format!(
        "recording {:.1} s{of}: {}, {}{steps}{lost}, {}, {:.1} MB (Ctrl-C ends it and keeps the capture)",
        progress.elapsed.as_secs_f64(),
        plural(progress.cpu_samples as usize, "sample"),
        plural(progress.waits as usize, "wait"),
        plural(progress.processes, "process"),
        progress.bytes as f64 / 1e6,
    )
}

/// Samples and waits that are read at the end of a recording, 200 MB: `show` gives the note on unnamed code in any case.
const MOST_ROWS: usize = 4_000_000;

/// Says on standard error what the segments have together. Their tables are not read.
fn summarise_segments(segments: Vec<PathBuf>, folder: &Path, reason: &Reason) {
    if *reason == Reason::Flagged {
        eprintln!("interrupted; what was recorded is kept");
    }
    let infos: Vec<_> = segments.iter().filter_map(|segment| disk::read_info(segment).ok()).collect();
    let wall_ns: u64 = infos.iter().filter_map(|info| info.wall_ns()).sum();
    eprintln!("{}, {:.1} s", plural(infos.len(), "segment"), wall_ns as f64 / 1e9);
    let lost: u64 = infos.iter().map(|info| info.losses.lost_records + info.losses.lost_marks).sum();
    if lost > 0 {
        eprintln!("lost: {lost} records and marks, because they came faster than they could be read");
    }
    println!("{}", folder.display());
    let last = segments.last().map_or_else(|| folder.display(), |last| last.display());
    eprintln!("next: stepscope show {} ; stepscope show {last}", folder.display());
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
        "{}{coverage}, {}, {}{wall}",
        plural(stepscope_analyze::events::cpu_samples(capture) as usize, "sample"),
        plural(capture.waits.len(), "wait"),
        plural(capture.threads.len(), "thread")
    );
    if losses.lost_records > 0 {
        let records = plural(losses.lost_records as usize, "record");
        eprintln!("lost: {records}, because they came faster than they could be read");
    }
    if losses.lost_marks > 0 {
        let marks = plural(losses.lost_marks as usize, "mark");
        eprintln!("lost: {marks}, because they came faster than they could be read");
    }
    for peer in capture.info.clocks.iter().flat_map(|clocks| &clocks.peers) {
        let trip = peer.exchanges.iter().filter_map(ClockExchange::round_trip_ns).min().unwrap_or(0);
        let exchanges = plural(peer.exchanges.len(), "exchange");
        let lost = if peer.lost > 0 { format!(", {} without a reply", peer.lost) } else { String::new() };
        eprintln!("clock of {}: {exchanges}, shortest round trip {}{lost}", peer.clock.host, quantity::duration(trip));
    }
    for (dimension, status) in &capture.info.dimensions {
        match status {
            DimensionStatus::Recorded => {}
            DimensionStatus::Partial { lacks } => eprintln!("{dimension}: {}", lacks.join("; ")),
            DimensionStatus::Missing { reason, remedy } => {
                let fix = remedy.as_ref().map(|remedy| format!("; fix: {remedy}")).unwrap_or_default();
                eprintln!("`{dimension}` was not recorded: {}{fix}", reason.trim_end_matches('.'));
            }
        }
    }
    for note in &capture.info.notes {
        eprintln!("note: {note}");
    }
    let is_short = capture.samples.len() + capture.waits.len() <= MOST_ROWS;
    if let Some(note) = is_short.then(|| naming::remedy(capture)).flatten() {
        eprintln!("note: {}", note.to_string().replace("CAPTURE", &folder.display().to_string()));
    }
    println!("{}", folder.display());
    eprintln!("next: stepscope diagnose {} ; stepscope view {}", folder.display(), folder.display());
}

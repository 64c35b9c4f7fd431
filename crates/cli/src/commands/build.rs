//! `stepscope build`: what a build costs, by compiler, linker and configure step.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use stepscope_analyze::analyses::build;
use stepscope_analyze::{Functions, Owned, Selection, diagnose};
use stepscope_model::quantity::{plural, weight};
use stepscope_model::{Capture, CaptureInfo, Table, Value, disk};
use stepscope_record::launch::{Exit, Grace, Input, Launch};
use stepscope_record::process_log::{ProcessLog, Timed, Timing};
use stepscope_record::{build_times, clock};

use crate::failure::Failure;
use crate::{interrupt, progress};

/// Record a build: each compiler, linker and configure step with its time, CPU, peak memory and I/O.
///
/// Follows all processes that the command starts (make, ninja, cmake, cargo, colcon, ...), without flags for the compiler and at some 1 %
/// overhead. Needs no rights. Ends with what to change first; `show --view build` shows all jobs. The exit code is that of the command.
#[derive(Debug, Args)]
pub struct Build {
    /// Folder of the new capture [default: build-TIME.capture in the working directory].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
    /// Let compilers and configure steps time headers, templates, front end, back end and commands. Compilers get the options as they
    /// start (clang: -ftime-trace, gcc: -ftime-report), so the project and its build folder stay as they are. GCC compiles slower.
    #[arg(long)]
    with_timing: bool,
    /// Keep the files of `--with-timing` in this new folder, for other tools.
    #[arg(long, value_name = "FOLDER", requires = "with_timing")]
    keep_times: Option<PathBuf>,
    /// The build's command, e.g. `make -j8`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How often the end of the build is looked for, at most.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Build {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let default = || PathBuf::from(format!("build-{}.capture", clock::utc_file_name()));
        let folder = self.output.clone().unwrap_or_else(default);
        super::refuse_to_replace(&folder, self.force)?;
        let prepared = Launch::new(&self.command).input(Input::Inherit).prepare()?;
        disk::remove(&folder)?;
        std::fs::create_dir_all(&folder).map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
        let directory = std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned());
        let info =
            CaptureInfo { command: self.command.clone(), working_directory: directory, ..CaptureInfo::default() };
        let interrupted = interrupt::flag();
        let temporary = (self.with_timing && self.keep_times.is_none()).then(folder_of_times).transpose()?;
        let kept = self.keep_times.as_deref().map(new_folder).transpose()?;
        let times = kept.or_else(|| temporary.as_ref().map(|folder| folder.path().to_owned()));
        let timing = times.map(|folder| Timing { folder, cmake: cmake_with_profiles() });
        let log = ProcessLog::start(&folder, &prepared, info, timing)?;
        let mut program = prepared.start()?;
        let exit = loop {
            match program.wait_for(LOOK_EVERY)? {
                Some(exit) => break Some(exit),
                None if interrupted.load(Ordering::Relaxed) => break None,
                None => {}
            }
        };
        let stopped = program.stop(&Grace::default())?;
        if !stopped.survivors.is_empty() {
            eprintln!("stepscope: {stopped}");
        }
        let exit = exit.or(program.exit()?);
        let timed = log.finish()?;
        let capture = finish(&folder, &timed)?;
        if interrupted.load(Ordering::Relaxed) {
            eprintln!("interrupted; what was recorded is kept");
        }
        summarise(&capture, exit.as_ref(), &folder, self.with_timing);
        let status = exit.map_or(i32::from(interrupt::EXIT_CODE), |exit| exit.status());
        Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
    }
}

/// A folder for what compilers write, which goes with the recording.
fn folder_of_times() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|error| Failure::Failed(format!("the temporary folder: {error}")))
}

/// Makes a folder, and returns its absolute path.
fn new_folder(folder: &Path) -> Result<PathBuf, Failure> {
    let make = || std::fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    make().map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))
}

/// The `cmake` of the path, if it is 3.18 or later.
fn cmake_with_profiles() -> Option<PathBuf> {
    let found = Launch::new(["cmake"]).program().ok()?;
    let version = Command::new(&found).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut numbers = text.split_whitespace().nth(2)?.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next()?, numbers.next()?);
    if version < (3, 18) { None } else { found.canonicalize().ok() }
}

/// Makes the capture of the log, with the times of compilers.
fn finish(folder: &Path, timed: &[Timed]) -> Result<Capture, Failure> {
    super::finish_recording_with(folder, |capture| {
        let jobs = build::jobs_of_processes(capture);
        progress::of_step("adding times of compilers", || build_times::add(capture, &jobs, timed));
    })
}

/// Findings that are printed after a build.
const MOST_FINDINGS: usize = 3;

/// Says what to change first, then what the build cost.
fn summarise(capture: &Capture, exit: Option<&Exit>, folder: &Path, is_timed: bool) {
    let functions = Functions::of(capture, &Owned::default());
    let selection = Selection::all(capture, &functions);
    let findings = diagnose::table(&[selection], &diagnose::Calls::default());
    eprintln!();
    for row in 0..findings.rows.len().min(MOST_FINDINGS) {
        eprintln!("{}. {}", row + 1, finding(&findings, row));
        eprintln!("   to do: {}", findings.text(row, "advice").unwrap_or_default());
    }
    if build::jobs_of_processes(capture).iter().all(Option::is_none) {
        eprintln!("No compiler, linker or configure step ran. If all was built before, `make clean` comes first.");
    } else if findings.rows.is_empty() {
        eprintln!("No known kind of defect was found in this build.");
    }
    let seconds = |ns: u64| weight(ns, "ns");
    let cpu_ns: u64 = capture.threads.iter().filter_map(|thread| thread.cpu_ns).sum();
    let wall_ns = capture.info.wall_ns().unwrap_or(0);
    let processes = plural(capture.processes.len(), "process");
    eprintln!("{processes}, {}, {} of CPU time", seconds(wall_ns), seconds(cpu_ns));
    if let Some(exit) = exit {
        let usage_ns = exit.usage.user_ns + exit.usage.system_ns;
        eprintln!("the kernel's account of the command (wait4): {} of CPU time", seconds(usage_ns));
        if exit.status() != 0 {
            eprintln!("note: the command ended with status {}", exit.status());
        }
    }
    println!("{}", folder.display());
    let (views, folder) = (if is_timed { "headers|templates|build" } else { "build" }, folder.display());
    eprintln!("next: stepscope diagnose {folder}; stepscope show {folder} --view {views}");
    if !is_timed {
        eprintln!("      stepscope build --with-timing -- COMMAND, after a clean, also names headers and templates");
    }
}

/// What happens, and what a change gains.
fn finding(findings: &Table, row: usize) -> String {
    let number = |column| match findings.get(row, column) {
        Some(Value::Float(value)) => *value,
        Some(Value::Int(value)) => *value as f64,
        _ => 0.0,
    };
    let gain = weight(number("gain") as u64, "ns");
    format!(
        "{}. Gain: up to {gain} ({:.0} %, {}).",
        findings.text(row, "finding").unwrap_or_default(),
        number("gain_share"),
        findings.text(row, "how").unwrap_or_default()
    )
}

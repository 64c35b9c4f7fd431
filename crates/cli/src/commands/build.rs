//! `stepscope build`: what a build costs, by compiler, linker and configure step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use stepscope_model::quantity::plural;
use stepscope_model::{Capture, CaptureInfo, disk};
use stepscope_record::clock;
use stepscope_record::launch::{Exit, Grace, Input, Launch};
use stepscope_record::process_log::ProcessLog;

use crate::failure::Failure;
use crate::interrupt;

/// Record a build: each compiler, linker and configure step with its time, CPU, peak memory and I/O.
///
/// Follows all processes that the command starts (make, ninja, cmake, cargo, colcon, ...), without flags for the compiler and at some 1 %
/// overhead. Needs no rights. `show --view build` shows the result. The exit code is that of the command.
#[derive(Debug, Args)]
pub struct Build {
    /// Folder of the new capture [default: build-TIME.capture in the working directory].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
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
        let log = ProcessLog::start(&folder, &prepared, info)?;
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
        log.finish()?;
        let capture = super::finish_recording(&folder)?;
        if interrupted.load(Ordering::Relaxed) {
            eprintln!("interrupted; what was recorded is kept");
        }
        summarise(&capture, exit.as_ref(), &folder);
        let status = exit.map_or(i32::from(interrupt::EXIT_CODE), |exit| exit.status());
        Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
    }
}

fn summarise(capture: &Capture, exit: Option<&Exit>, folder: &Path) {
    let cpu_ns: u64 = capture.threads.iter().filter_map(|thread| thread.cpu_ns).sum();
    let wall_ns = capture.info.wall_ns().unwrap_or(0);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let processes = plural(capture.processes.len(), "process");
    eprintln!("{processes}, {:.1} s, {:.1} s of CPU time", seconds(wall_ns), seconds(cpu_ns));
    if let Some(exit) = exit {
        let usage_ns = exit.usage.user_ns + exit.usage.system_ns;
        eprintln!("the kernel's account of the command (wait4): {:.1} s of CPU time", seconds(usage_ns));
        if exit.status() != 0 {
            eprintln!("note: the command ended with status {}", exit.status());
        }
    }
    println!("{}", folder.display());
    eprintln!("next: stepscope show {} --view build", folder.display());
}

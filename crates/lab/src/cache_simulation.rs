//! [`simulate`]: a program's cache misses without counters of the CPU, by running it below callgrind.
//!
//! callgrind counts instructions exactly and simulates the caches. A program runs some 50 times slower below it, so the run is
//! *shortened*: it ends after a limit of wall time, and callgrind then writes what it has. The result is added to the capture of the real
//! run ([`add`]) as events of their own, on a thread of their own, without times.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stepscope_convert::{ImportError, ImportOptions, Source, import};
use stepscope_model::{Capture, Dimension, DimensionStatus, EventId, Frame, FrameId, ModuleId, Sample, StackId};
use thiserror::Error;

/// Shortest limit of wall time, without waiting for a CPU.
pub const SHORTEST: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longest wait for callgrind to write its files.
const TO_WRITE: Duration = Duration::from_secs(60);

/// A simulation failed.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// There is no valgrind.
    #[error("valgrind is missing; install it: `sudo apt-get install valgrind`")]
    NoValgrind,
    /// It could not be started, or its files not be read.
    #[error("valgrind could not run: {0}")]
    Io(#[from] io::Error),
    /// It wrote nothing that can be read.
    #[error("{0}")]
    Import(#[from] ImportError),
    /// It ended without a file.
    #[error("valgrind wrote no counts; its last words: {0}")]
    Nothing(String),
}

/// The program to run below callgrind.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedProgram<'a> {
    /// Program and arguments.
    pub command: &'a [String],
    /// Where it runs; `None` for the present folder.
    pub directory: Option<&'a Path>,
    /// Variables over those of this process.
    pub environment: &'a BTreeMap<String, String>,
}

/// Simulates the caches of a recorded program for as long as it was recorded, and adds the result to its capture. If that is not
/// possible, the capture says why.
pub fn complete(capture: &mut Capture, program: &SimulatedProgram<'_>, interrupted: &AtomicBool) {
    let limit = Duration::from_nanos(capture.info.wall_ns().unwrap_or(0));
    let (reason, remedy) = match simulate(program, limit, interrupted) {
        Ok(simulated) => return add(capture, &simulated),
        Err(SimulationError::NoValgrind) => {
            ("valgrind is missing.".to_owned(), Some("sudo apt-get install valgrind".to_owned()))
        }
        Err(error) => (format!("{error}."), None),
    };
    capture.info.dimensions.insert(Dimension::Cache, DimensionStatus::Missing { reason, remedy });
}

/// Runs a program below callgrind, for at most `limit`. What it prints is discarded.
///
/// # Errors
/// If valgrind is missing, or wrote nothing.
pub fn simulate(
    program: &SimulatedProgram<'_>,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<Vec<Capture>, SimulationError> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let output = folder.path().join("callgrind.%p");
    let mut valgrind = Command::new("valgrind");
    if let Some(directory) = program.directory {
        valgrind.current_dir(directory);
    }
    let started = valgrind
        .envs(program.environment)
        .args([
            "--tool=callgrind",
            "--cache-sim=yes",
            "--demangle=no",
            "--trace-children=yes",
            "--compress-strings=yes",
        ])
        .arg(format!("--log-file={}", log.display()))
        .arg(format!("--callgrind-out-file={}", output.display()))
        .args(program.command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut child = started.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SimulationError::NoValgrind,
        _ => error.into(),
    })?;
    end_within(&mut child, limit.max(SHORTEST), interrupted)?;
    let captures = read_all(folder.path())?;
    if captures.is_empty() {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(SimulationError::Nothing(log.lines().last().unwrap_or("none").trim().to_owned()));
    }
    Ok(captures)
}

/// Waits for the program and what it started, and asks them to end after the limit: callgrind writes its counts when a signal ends a
/// program.
fn end_within(child: &mut Child, limit: Duration, interrupted: &AtomicBool) -> io::Result<()> {
    let started = Instant::now();
    // The child leads a group of its own, which outlives it if others are left.
    let group = -(child.id() as i32);
    // SAFETY: no memory is passed.
    let signal = |signal| unsafe { libc::kill(group, signal) } == 0;
    let mut asked: Option<Instant> = None;
    let mut delayed = Duration::ZERO;
    loop {
        // A busy machine does not make a simulation shorter.
        delayed = delayed.max(waited_for_cpu(child.id()).unwrap_or_default());
        let has_ended = child.try_wait()?.is_some();
        if has_ended && !signal(0) {
            return Ok(());
        }
        let is_up = started.elapsed() >= limit + delayed || interrupted.load(Ordering::Relaxed);
        match asked {
            None if is_up => {
                asked = Some(Instant::now());
                signal(libc::SIGTERM);
            }
            Some(asked) if asked.elapsed() >= TO_WRITE => drop(signal(libc::SIGKILL)),
            _ => {}
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// How long the first thread of a process waited for a CPU so far: the second number of its `schedstat`.
fn waited_for_cpu(pid: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// The files of all processes.
fn read_all(folder: &Path) -> Result<Vec<Capture>, SimulationError> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|file| file.path()).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callgrind.")));
    files.sort();
    let options =
        ImportOptions { format: stepscope_convert::import::format_named("callgrind"), ..ImportOptions::default() };
    let mut captures = Vec::new();
    for file in files {
        match import(Source::open(&file)?, &options) {
            Ok(capture) => captures.push(capture),
            // A process that ended before it ran any code.
            Err(ImportError::Nothing { .. } | ImportError::Empty(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(captures)
}

/// Adds a simulation to a capture. Its functions are those of the capture with the same name and module.
pub fn add(capture: &mut Capture, simulated: &[Capture]) {
    let thread = capture.add_thread_named("simulation (callgrind)");
    for one in simulated {
        let events: Vec<_> = one
            .info
            .events
            .iter()
            .map(|event| match capture.info.events.iter().position(|known| known == event) {
                Some(index) => EventId::from_index(index),
                None => capture.add_event(event.clone()),
            })
            .collect();
        let modules: Vec<ModuleId> = one
            .modules
            .iter()
            .map(|module| match capture.modules.iter().position(|known| known.path == module.path) {
                Some(index) => ModuleId::from_index(index),
                None => capture.add_module(module.clone()),
            })
            .collect();
        let frames: Vec<FrameId> = one
            .frames
            .iter()
            .map(|frame| {
                let module = frame.module.map(|module| modules[module.index()]);
                capture.intern_frame(Frame { module, ..frame.clone() })
            })
            .collect();
        let mut stacks: Vec<StackId> = Vec::with_capacity(one.stacks.len());
        for node in &one.stacks {
            let parent = node.parent.map(|parent| stacks[parent.index()]);
            stacks.push(capture.intern_stack_node(parent, frames[node.frame.index()]));
        }
        for sample in one.samples.iter() {
            let stack = sample.stack.map(|stack| stacks[stack.index()]);
            capture.samples.push(Sample { thread, stack, event: events[sample.event.index()], ..*sample });
        }
        let fresh = |note: &&String| !capture.info.notes.contains(note);
        let notes: Vec<String> = one.info.notes.iter().filter(fresh).cloned().collect();
        capture.info.notes.extend(notes);
    }
    let lacks = vec![
        "Simulated by callgrind, in a shortened run of its own: counts of a model, without times and steps.".to_owned(),
    ];
    capture.info.dimensions.insert(Dimension::Cache, DimensionStatus::Partial { lacks });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_joins_the_functions_of_the_capture() {
        let command = ["true".to_owned()];
        let program = SimulatedProgram { command: &command, directory: None, environment: &BTreeMap::new() };
        // A busy machine may need long for a short program.
        let simulated = match simulate(&program, Duration::from_secs(120), &AtomicBool::new(false)) {
            Ok(simulated) => simulated,
            Err(SimulationError::NoValgrind) => {
                return println!("skipped: a_simulation_joins_the_functions_of_the_capture: there is no valgrind");
            }
            Err(error) => panic!("{error}"),
        };
        let mut capture = Capture::default();
        add(&mut capture, &simulated);
        let (functions, rows) = (capture.frames.len(), capture.samples.len());
        assert!(functions > 50 && rows > 100, "{functions}, {rows}");
        let names: Vec<&str> = capture.info.events.iter().map(|event| event.name.as_str()).collect();
        assert!(names.contains(&"Ir") && names.contains(&"DLmr"), "{names:?}");
        capture.check().unwrap();
        // Equal functions are not added twice.
        add(&mut capture, &simulated);
        assert_eq!((capture.frames.len(), capture.samples.len()), (functions, 2 * rows));
        assert_eq!(capture.info.events, simulated[0].info.events);
    }
}

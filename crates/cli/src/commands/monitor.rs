//! `stepscope monitor`: resources of processes and the machine, for hours.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use stepscope_analyze::process_label::process_labels;
use stepscope_model::disk;
use stepscope_model::quantity::plural;
use stepscope_monitor::{Csv, Log, LogError, Pace, Sampler, Screen};
use stepscope_record::clock;
use stepscope_record::proc::{ProcessSet, SelectionError};
use stepscope_record::session::raise_descriptor_limit;

use super::segments::Segments;
use crate::arguments::processes::ProcessArguments;
use crate::arguments::{duration, segment_length};
use crate::failure::Failure;
use crate::{interrupt, progress};

/// Monitor resources of processes and the machine, for hours: CPU, memory, I/O, descriptors, network, pressure.
///
/// Costs less than 0.5 % of one CPU for 100 processes at 1 s. Records no stacks: see `record`. The folder is an ordinary capture in
/// segments; `show --view monitor` shows it.
#[derive(Debug, Args)]
pub struct Monitor {
    #[command(flatten)]
    processes: ProcessArguments,
    /// Folder of the new capture [default: monitor-TIME.capture in the working directory].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Stop after this long (30s, 8h) [default: when no process is left, or on Ctrl-C].
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Time between two readings. More expensive figures are read every 10 s (descriptors, context switches, scheduling delay) or 60 s
    /// (PSS, sockets).
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    every: Duration,
    /// Length of a segment: a capture that can be read while the monitor goes on.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = segment_length)]
    segment: Duration,
    /// Keep only this many finished segments.
    #[arg(long, value_name = "SEGMENTS", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Also write the figures of processes to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Show the busiest processes in the terminal.
    #[arg(long)]
    top: bool,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    match duration(text)? {
        every if every < SHORTEST => Err("the shortest interval is 100ms".to_owned()),
        every => Ok(every),
    }
}

impl Monitor {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let set = ProcessSet::open(self.processes.selection()).map_err(|error| match error {
            SelectionError::Empty => Failure::Usage(error.to_string()),
            error => Failure::Failed(error.to_string()),
        })?;
        let folder =
            self.output.clone().unwrap_or_else(|| PathBuf::from(format!("monitor-{}.capture", clock::utc_file_name())));
        super::refuse_to_replace(&folder, self.force)?;
        let start_ns = clock::now_ns();
        // If it cannot be written, nothing else is started.
        let csv =
            self.csv.as_deref().map(|path| Csv::create(path, start_ns)).transpose().map_err(self.csv_failure())?;
        disk::remove(&folder)?;
        raise_descriptor_limit();
        let interrupted = interrupt::flag();
        let command = [vec!["stepscope".to_owned(), "monitor".to_owned()], set.selection().arguments()].concat();
        let mut outputs = Outputs {
            log: Log::start(&disk::segment(&folder, 1), &command, start_ns, None)?,
            segments: Segments::new(&folder, self.keep.map(|keep| keep as usize)),
            number: 1,
            csv,
            screen: self.top.then(Screen::default),
        };
        let mut sampler = Sampler::new(set, Pace::every(self.every));
        if outputs.csv.is_some() || self.top {
            sampler = sampler.labelled(|processes| process_labels(processes, &[]));
        }
        let ended = self.watch(&mut sampler, &mut outputs, &folder, &command, &interrupted);
        let Outputs { log, segments, .. } = outputs;
        let completed = log.end(&sampler);
        let kept = super::finish_segments(segments, &folder)?;
        ended?;
        completed?;
        if interrupted.load(Ordering::Relaxed) {
            eprintln!("interrupted; what was read is kept");
        }
        sampler.lacks().iter().for_each(|lack| eprintln!("note: {lack}"));
        let seconds = clock::now_ns().saturating_sub(start_ns) as f64 / 1e9;
        let own_s = Duration::from_nanos(clock::thread_cpu_ns()).as_secs_f64();
        eprintln!(
            "{} at the end, {}, {seconds:.1} s; the monitor took {:.2} % of one CPU",
            plural(sampler.processes().count(), "process"),
            plural(kept.len(), "segment"),
            100.0 * own_s / seconds.max(own_s)
        );
        println!("{}", folder.display());
        eprintln!("next: stepscope show {} --view monitor", folder.display());
        Ok(ExitCode::SUCCESS)
    }

    /// Reads until the end.
    fn watch(
        &self,
        sampler: &mut Sampler,
        outputs: &mut Outputs,
        folder: &Path,
        command: &[String],
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        let start_ns = clock::now_ns();
        let every_ns = self.every.as_nanos() as u64;
        let (mut segment_ns, mut due_ns) = (start_ns, start_ns);
        let line = progress::line();
        loop {
            let now_ns = clock::now_ns();
            sampler.sample(now_ns);
            outputs.write(sampler, now_ns, self.csv_failure())?;
            if outputs.screen.is_none() {
                line.set_message(format!(
                    "monitoring {} processes for {:.0} s (Ctrl-C ends it and keeps the capture)",
                    sampler.processes().count(),
                    (now_ns - start_ns) as f64 / 1e9
                ));
            }
            let is_over =
                sampler.is_over() || self.duration.is_some_and(|limit| now_ns - start_ns >= limit.as_nanos() as u64);
            if is_over || interrupted.load(Ordering::Relaxed) {
                line.finish_and_clear();
                return Ok(());
            }
            if now_ns - segment_ns >= self.segment.as_nanos() as u64 {
                outputs.rotate(sampler, folder, command, now_ns)?;
                segment_ns = now_ns;
            }
            due_ns += every_ns;
            let now_ns = clock::now_ns();
            if due_ns <= now_ns {
                // Late, as after a suspension: readings that were missed are not made up for.
                due_ns = now_ns + every_ns;
            }
            let end_ns = self.duration.map_or(u64::MAX, |limit| start_ns.saturating_add(limit.as_nanos() as u64));
            clock::sleep_until(due_ns.min(end_ns));
        }
    }

    fn csv_failure(&self) -> impl FnOnce(io::Error) -> Failure + use<> {
        let name = self.csv.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        move |error| Failure::Failed(format!("{name}: {error}"))
    }
}

/// Where readings go.
struct Outputs {
    log: Log,
    segments: Segments,
    /// Of the present segment.
    number: u32,
    csv: Option<Csv>,
    screen: Option<Screen>,
}

impl Outputs {
    fn write(
        &mut self,
        sampler: &Sampler,
        now_ns: u64,
        csv_failure: impl FnOnce(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        self.log.write(sampler, now_ns)?;
        if let Some(csv) = &mut self.csv {
            csv.write(sampler, now_ns).map_err(csv_failure)?;
        }
        if let Some(screen) = &mut self.screen {
            let (width, height) =
                terminal_size::terminal_size().map_or((80, 24), |(width, height)| (width.0, height.0));
            let lines = screen.draw(sampler, now_ns, usize::from(width), usize::from(height));
            // From the top left, and clears what was there.
            let text = format!("\x1b[H\x1b[2J{}\n", lines.join("\n"));
            let _ = io::stderr().write_all(text.as_bytes());
        }
        self.segments.look();
        Ok(())
    }

    fn rotate(&mut self, sampler: &Sampler, folder: &Path, command: &[String], now_ns: u64) -> Result<(), LogError> {
        let next =
            Log::start(&disk::segment(folder, self.number + 1), command, now_ns, Some(self.log.recording_start_ns()))?;
        self.number += 1;
        let ended = std::mem::replace(&mut self.log, next);
        let of_ended = ended.folder().to_owned();
        // The next segment begins with all values.
        self.log.write(sampler, now_ns)?;
        ended.end(sampler)?;
        self.segments.add(&of_ended);
        Ok(())
    }
}

//! `stepscope import`: a capture from what another tool wrote.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::analysis::has_checker;
use stepscope_convert::{ImportOptions, import};
use stepscope_model::{Capture, Counts, Dimension, Phase, disk};

use crate::arguments::{Choice, PHASES, ReadingArguments, SymbolArguments, choice};
use crate::failure::Failure;
use crate::{load, progress};

/// Import a recording of another tool: perf.data, `perf script` and `perf stat` text, folded stacks, callgrind, cachegrind, heaptrack,
/// massif, memray, strace.
#[derive(Debug, Args)]
pub struct Import {
    /// The file, or the folder of a CTF trace; `-` for standard input. With --scenario or --phase also a capture, of which a copy
    /// is made.
    file: PathBuf,
    /// Folder of the new capture [default: FILE with the extension `.capture`].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    symbols: SymbolArguments,
    /// Scenario that was recorded. Files of the same scenario, variant and phase are evidence of each other: CPU samples and cache
    /// misses, for instance.
    #[arg(long, value_name = "NAME", help_heading = "What was recorded")]
    scenario: Option<String>,
    /// Its variant, such as `before`.
    #[arg(long, value_name = "NAME", requires = "scenario", help_heading = "What was recorded")]
    variant: Option<String>,
    /// Its phase.
    #[arg(long, value_parser = choice(PHASES), help_heading = "What was recorded")]
    phase: Option<Phase>,
    /// What the counts are evidence of, if the file does not say: folded stacks.
    #[arg(long, value_parser = choice(DIMENSIONS), help_heading = "What was recorded")]
    dimension: Option<Dimension>,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
}

/// The dimensions of samples.
const DIMENSIONS: &[Choice<Dimension>] = &[
    ("cpu", "Time or cycles on a CPU", Dimension::Cpu),
    ("cache", "Cache misses", Dimension::Cache),
    ("faults", "Page faults", Dimension::Faults),
];

impl Import {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let is_capture = disk::is_capture(&self.file);
        if self.file.is_dir() && !is_capture && !import::is_input_folder(&self.file) {
            let name = self.file.display();
            return Err(Failure::Usage(format!(
                "{name}: a folder without a trace; name a file that another tool wrote"
            )));
        }
        if is_capture && (self.dimension.is_some() || (self.scenario.is_none() && self.phase.is_none())) {
            let name = self.file.display();
            return Err(Failure::Usage(format!(
                "{name}: a capture; name what was recorded with --scenario and --phase, or open it with `stepscope show {name}`"
            )));
        }
        let output = match self.output {
            Some(output) => output,
            None => default_output(&self.file)?,
        };
        super::refuse_to_replace(&output, self.force)?;
        // Where it cannot be made, rows are in memory.
        let part = disk::PartFolder::beside(&output).ok();
        let folder = part.as_ref().map(|part| part.path().to_owned());
        let options = ImportOptions { folder, ..self.reading.options(&self.symbols)? };
        let mut capture = match is_capture {
            true => load::capture_with(&self.file, &options)?,
            false => load::import(&self.file, &options)?,
        };
        let info = &mut capture.info;
        info.scenario = self.scenario.or(info.scenario.take());
        info.variant = self.variant.or(info.variant.take());
        info.phase = self.phase.or(info.phase);
        if let Some(dimension) = self.dimension {
            import::attach(&mut capture, dimension)
                .map_err(|why| Failure::Usage(format!("{}: {why}", self.file.display())))?;
        }
        // Another import may have made it meanwhile.
        super::refuse_to_replace(&output, self.force)?;
        progress::of_step("writing the capture", || match part {
            Some(part) => part.complete(&capture, &output),
            None => disk::remove(&output).and_then(|()| disk::write(&capture, &output)),
        })?;
        for note in &capture.info.notes {
            eprintln!("note: {note}");
        }
        println!("{}", output.display());
        let (rows, what, view) = contents(&capture);
        eprintln!("{rows} {what}; next: stepscope show {}{view}", output.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// What a capture holds above all: how many rows of what, and the view that shows them.
fn contents(capture: &Capture) -> (usize, &'static str, &'static str) {
    let is_folded = capture.info.events.iter().any(|event| event.counts != Counts::OnePerRow);
    let samples = (capture.samples.len(), if is_folded { "stacks" } else { "samples" }, "");
    let all = [
        (capture.allocations.len(), "rows of allocations", " --view heap"),
        (capture.system_calls.len(), "rows of system calls", " --view syscalls"),
        (capture.event_counts.len(), "counts", " --view cache"),
        samples,
        (capture.memory_errors.len(), "memory errors", " --view memory-errors"),
        (capture.waits.len(), "waits", " --view wall"),
        (capture.scopes.len(), "scopes", " --view scopes"),
        (capture.flows.len(), "stages of messages", " --view flows"),
        (capture.counters.len(), "readings", " --view counters"),
    ];
    let nothing = if has_checker(capture) { (0, "memory errors", " --view memory-errors") } else { samples };
    all.into_iter().find(|(rows, ..)| *rows > 0).unwrap_or(nothing)
}

fn default_output(file: &std::path::Path) -> Result<PathBuf, Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| name != "-");
    let Some(name) = name else {
        return Err(Failure::Usage("name the capture to be made of standard input: -o FOLDER".to_owned()));
    };
    let known = [".gz", ".zst", ".folded", ".txt", ".data", ".perf", ".script", ".csv", ".json", ".html", ".log"];
    let stem = known.iter().fold(name.as_str(), |stem, extension| stem.strip_suffix(extension).unwrap_or(stem));
    Ok(PathBuf::from(format!("{stem}.capture")))
}

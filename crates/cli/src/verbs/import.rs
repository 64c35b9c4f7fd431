//! `stepscope import`: a capture from what another tool wrote.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_convert::ImportOptions;
use stepscope_convert::import::folded::{FirstFrame, FoldedOptions, FoldedUnit, ThreadIds};
use stepscope_convert::import::{self, FORMATS};
use stepscope_model::{Counts, disk};

use crate::arguments::SymbolArguments;
use crate::failure::Failure;
use crate::{load, progress};

/// Make a capture of what another tool recorded: folded stacks, perf.data, `perf script` text.
#[derive(Debug, Args)]
pub struct Import {
    /// The file; `-` for standard input.
    file: PathBuf,
    /// Folder of the capture to be made [default: FILE without its extensions, with `.capture`].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    /// Replace a capture that is there.
    #[arg(long)]
    force: bool,
}

/// What a file's content does not say about itself.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadingArguments {
    /// The file's format, where its content hides it.
    #[arg(long = "from", value_name = "FORMAT")]
    format: Option<String>,
    /// What the counts of folded stacks count; with `samples`, significance can be tested.
    #[arg(long, value_enum, default_value_t)]
    unit: Unit,
    /// Folded stacks begin with a function, not with a thread's name.
    #[arg(long)]
    no_thread_names: bool,
    #[command(flatten)]
    symbols: SymbolArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Unit {
    #[default]
    Unknown,
    Samples,
    Ns,
    Cycles,
    Misses,
    Bytes,
}

impl ReadingArguments {
    /// The same for the importer.
    pub fn options(&self) -> Result<ImportOptions, Failure> {
        let format = match &self.format {
            Some(name) => Some(import::format_named(name).ok_or_else(|| {
                let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
                Failure::Usage(format!("`{name}` cannot be imported; use one of {}", known.join(", ")))
            })?),
            None => None,
        };
        let first_frame = if self.no_thread_names { FirstFrame::Function } else { FirstFrame::Thread };
        let unit = match self.unit {
            Unit::Unknown => FoldedUnit::Unknown,
            Unit::Samples => FoldedUnit::Samples,
            Unit::Ns => FoldedUnit::Nanoseconds,
            Unit::Cycles => FoldedUnit::Cycles,
            Unit::Misses => FoldedUnit::Misses,
            Unit::Bytes => FoldedUnit::Bytes,
        };
        let folded = FoldedOptions { first_frame, unit, thread_ids: ThreadIds::Detect };
        Ok(ImportOptions { format, folded, symbols: self.symbols.options()? })
    }
}

impl Import {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if self.file.is_dir() {
            let name = self.file.display();
            return Err(Failure::Usage(format!("{name}: a folder; name a file that another tool wrote")));
        }
        let output = match self.output {
            Some(output) => output,
            None => default_output(&self.file)?,
        };
        super::refuse_to_replace(&output, self.force)?;
        let capture = load::import(&self.file, &self.reading.options()?)?;
        progress::of_step("writing the capture", || disk::write(&capture, &output))?;
        for note in &capture.info.notes {
            eprintln!("note: {note}");
        }
        println!("{}", output.display());
        let rows = capture.samples.len();
        let folded = capture.info.events.iter().any(|event| event.counts != Counts::OnePerRow);
        let what = if folded { "stacks" } else { "samples" };
        eprintln!("{rows} {what}; next: stepscope show {}", output.display());
        Ok(ExitCode::SUCCESS)
    }
}

fn default_output(file: &std::path::Path) -> Result<PathBuf, Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| name != "-");
    let Some(name) = name else {
        return Err(Failure::Usage("name the capture to be made of standard input: -o FOLDER".to_owned()));
    };
    let known = [".gz", ".zst", ".folded", ".txt", ".data", ".perf", ".script"];
    let stem = known.iter().fold(name.as_str(), |stem, extension| stem.strip_suffix(extension).unwrap_or(stem));
    Ok(PathBuf::from(format!("{stem}.capture")))
}

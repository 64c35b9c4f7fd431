//! `stepscope import`: a capture from what another tool wrote.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_model::{Counts, disk};

use crate::arguments::{ReadingArguments, SymbolArguments};
use crate::failure::Failure;
use crate::{load, progress};

/// Import a recording of another tool: folded stacks, perf.data, `perf script` text.
#[derive(Debug, Args)]
pub struct Import {
    /// The file; `-` for standard input.
    file: PathBuf,
    /// Folder of the new capture [default: FILE with the extension `.capture`].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    symbols: SymbolArguments,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
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
        let capture = load::import(&self.file, &self.reading.options(&self.symbols)?)?;
        disk::remove(&output)?;
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

//! `stepscope export`: a capture for the tools people already like.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::functions::Functions;
use stepscope_analyze::process_label::process_labels;
use stepscope_analyze::select::{Filter, Selection};
use stepscope_analyze::{Naming, Owned};
use stepscope_convert::export::{self, Evidence, ExportOptions, Format, Measure, ThreadLabels};
use stepscope_model::{Capture, EventId, Sample, Waits};

use crate::arguments::{OwnedArguments, SelectArguments, SymbolArguments};
use crate::failure::Failure;
use crate::load;
use crate::output::Target;

/// Write a capture as folded stacks, pprof, Firefox Profiler, speedscope or Chrome/Perfetto trace.
#[derive(Debug, Args)]
pub struct Export {
    /// The capture, or a file that can be imported.
    capture: PathBuf,
    /// folded, pprof, firefox, speedscope or chrome [default: by the extension of --output].
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Off-CPU time instead of samples, for formats with one kind of evidence.
    #[arg(long, conflicts_with = "event")]
    off_cpu: bool,
    /// Sample counts instead of weights.
    #[arg(long)]
    counts: bool,
    #[command(flatten)]
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
    #[command(flatten)]
    symbols: SymbolArguments,
}

fn format(name: &str) -> Result<Format, String> {
    name.parse().map_err(|_| {
        let known: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
        format!("use one of {}", known.join(", "))
    })
}

impl Export {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let format = self.chosen_format()?;
        let capture = load::capture_with(&self.capture, &self.symbols.import()?)?;
        let beside = load::settings_beside(&self.capture);
        let filter = self.select.filter(&beside.naming);
        let options = ExportOptions {
            evidence: self.evidence(&capture, format)?,
            measure: if self.counts { Measure::Count } else { Measure::Weight },
            threads: ThreadLabels::Name,
            title: None,
            process_names: process_labels(&capture.processes, &filter.naming.processes),
        };
        let capture = selected(capture, &filter, &self.owned.owned(beside.ownership.as_ref())?)?;
        Target::of(self.output.as_deref()).write(|out| Ok(export::write(&capture, format, out, &options)?))?;
        Ok(ExitCode::SUCCESS)
    }

    fn chosen_format(&self) -> Result<Format, Failure> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let name = self.output.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let by_name = Format::ALL.into_iter().find(|format| name.ends_with(&format!(".{}", format.extension())));
        by_name.ok_or_else(|| {
            let extensions: Vec<String> = Format::ALL.into_iter().map(|f| format!(".{}", f.extension())).collect();
            Failure::Usage(format!(
                "the format is unknown; use --format, or an --output with one of the extensions {}",
                extensions.join(", ")
            ))
        })
    }

    /// The requested evidence. Folded stacks hold one kind: CPU time by default.
    fn evidence(&self, capture: &Capture, format: Format) -> Result<Option<Evidence>, Failure> {
        if self.off_cpu {
            return Ok(Some(Evidence::OffCpu));
        }
        let Some(name) = self.select.filter(&Naming::default()).event else {
            let primary = stepscope_analyze::events::primary(capture).filter(|_| format == Format::Folded);
            return Ok(primary.map(Evidence::Event));
        };
        let found = capture.info.events.iter().position(|event| event.name == name);
        let Some(index) = found else {
            let known: Vec<&str> = capture.info.events.iter().map(|event| event.name.as_str()).collect();
            return Err(Failure::Usage(format!("there is no event `{name}`; there are {}", known.join(", "))));
        };
        Ok(Some(Evidence::Event(EventId::from_index(index))))
    }
}

/// The capture without the samples and waits that are not selected.
pub fn selected(mut capture: Capture, filter: &Filter, owned: &Owned) -> Result<Capture, Failure> {
    let functions = Functions::of(&capture, owned);
    let selection = Selection::new(&capture, &functions, filter)?;
    let events = (0..capture.info.events.len()).map(EventId::from_index);
    let samples = events.flat_map(|event| selection.of_event(event).samples().copied().collect::<Vec<Sample>>());
    let mut samples: Vec<Sample> = samples.collect();
    samples.sort_by_key(|sample| sample.time_ns);
    let waits: Waits = selection.waits().collect();
    capture.samples = samples.into();
    capture.waits = waits;
    Ok(capture)
}

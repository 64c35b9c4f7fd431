//! Exports captures for other tools.
//!
//! Each format is a module with one function that streams its output. `docs/formats.md` lists what each format keeps
//! and loses.

mod chrome;
mod clock;
mod firefox;
mod folded;
mod json;
mod pprof;
mod protobuf;
mod selection;
mod speedscope;
mod timeline;

use std::io::{self, Write};

pub use clock::started_at_ns;
use stepscope_model::{Capture, EventId};
use strum::{Display, EnumCount, EnumString, IntoStaticStr, VariantArray};

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumCount, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// Folded stacks.
    Folded,
    /// pprof's gzipped protobuf.
    Pprof,
    /// Firefox Profiler's processed profile.
    Firefox,
    /// speedscope's JSON.
    Speedscope,
    /// Chrome's trace events, which Perfetto reads.
    Chrome,
}

impl Format {
    /// All export formats.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// A line of description: what it is and which tools read it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Folded => "Folded stacks, one line per stack: flamegraph.pl, inferno, speedscope, this program.",
            Self::Pprof => {
                "pprof protobuf, gzipped: `go tool pprof`, Pyroscope, Grafana; every event and blocked time."
            }
            Self::Firefox => {
                "Firefox Profiler JSON: profiler.firefox.com; samples, waits as markers, memory over time."
            }
            Self::Speedscope => "speedscope JSON, one profile per thread: speedscope.app.",
            Self::Chrome => "Trace event JSON: ui.perfetto.dev, chrome://tracing; threads running, runnable, blocked.",
        }
    }

    /// The file extension that its readers expect, without the first dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Pprof => "pb.gz",
            Self::Firefox => "profile.json",
            Self::Speedscope => "speedscope.json",
            Self::Chrome => "trace.json",
        }
    }
}

/// What to export. The caller has removed unwanted rows (other threads, other times).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Evidence to write; by default everything that the format can keep apart.
    pub evidence: Option<Evidence>,
    /// The numbers, in formats with one number per stack.
    pub measure: Measure,
    /// How folded stacks label their thread.
    pub threads: ThreadLabels,
    /// Title, if the format has one; by default the capture's label or command.
    pub title: Option<String>,
    /// Names of processes in timelines, in the order of the capture's processes; without any, their executables' names.
    pub process_names: Vec<String>,
}

/// One kind of evidence of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The samples of one event.
    Event(EventId),
    /// Off-CPU time by the stack that waited, from `waits`.
    OffCpu,
}

/// The number of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measure {
    /// The weight, in the event's unit.
    #[default]
    Weight,
    /// The number of samples or waits.
    Count,
}

/// How folded stacks label their thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadLabels {
    /// `name;...`: threads of the same name are added up.
    #[default]
    Name,
    /// `name-PID;...`, as `stackcollapse-perf.pl --pid`.
    NamePid,
    /// `name-PID/TID;...`, as `stackcollapse-perf.pl --tid`.
    NamePidTid,
    /// `...`: the stack begins with a function, and all threads are added up.
    Absent,
}

/// Why an export failed. Every message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing failed.
    #[error("cannot write the export: {0}; the file is incomplete, remove it")]
    Write(#[from] io::Error),
    /// The format holds one kind of evidence, and the capture has several, which must not be added up.
    #[error("{format} holds one event, and the capture has several; choose one: {}", .events.join(", "))]
    SeveralEvents {
        /// The format.
        format: Format,
        /// The events of the capture.
        events: Vec<String>,
    },
    /// There is nothing to export.
    #[error("the capture has no {wanted}; choose another event, or check the filters")]
    NothingToWrite {
        /// The missing evidence.
        wanted: String,
    },
    /// The number of samples was requested, and is unknown.
    #[error("{event}: the number of samples is unknown; export the weights")]
    CountUnknown {
        /// The event.
        event: String,
    },
    /// A timeline was requested, and nothing has a time.
    #[error("{format} is a timeline, but the capture has no times; export it as folded, pprof or speedscope")]
    NoTimes {
        /// The format.
        format: Format,
    },
}

/// Writes `capture` as `format` to `out`, which need not be buffered.
///
/// # Errors
/// See [`ExportError`]. If writing failed, `out` holds an incomplete file.
pub fn write(
    capture: &Capture,
    format: Format,
    out: &mut dyn Write,
    options: &ExportOptions,
) -> Result<(), ExportError> {
    const BUFFER: usize = 256 * 1024;
    let mut out = io::BufWriter::with_capacity(BUFFER, out);
    match format {
        Format::Folded => folded::write(capture, &mut out, options)?,
        Format::Pprof => pprof::write(capture, &mut out, options)?,
        Format::Firefox => firefox::write(capture, &mut out, options)?,
        Format::Speedscope => speedscope::write(capture, &mut out, options)?,
        Format::Chrome => chrome::write(capture, &mut out, options)?,
    }
    out.flush()?;
    Ok(())
}

/// The given title, or the best name of the capture.
fn title(capture: &Capture, options: &ExportOptions) -> String {
    let asked = options.title.clone().or_else(|| capture.info.label());
    let command = || (!capture.info.command.is_empty()).then(|| capture.info.command.join(" "));
    asked.or_else(command).unwrap_or_else(|| match &capture.info.origin {
        stepscope_model::Origin::Imported { file, .. } => file.clone(),
        _ => "Stepscope capture".to_owned(),
    })
}

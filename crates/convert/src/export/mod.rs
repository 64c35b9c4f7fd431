//! Writing captures for the tools people already like.
//!
//! A format is a module with one function that writes it as it goes: none holds the whole output in memory. What each
//! keeps and loses is in `docs/formats.md`.

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

use std::fmt;
use std::io::{self, Write};

use stepscope_model::{Capture, EventId};

/// A format that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Every format that can be written.
    pub const ALL: [Format; 5] = [Self::Folded, Self::Pprof, Self::Firefox, Self::Speedscope, Self::Chrome];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Firefox => "firefox",
            Self::Speedscope => "speedscope",
            Self::Chrome => "chrome",
        }
    }

    /// The format of this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// What it is, and what reads it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Folded => "Folded stacks, a line a stack: flamegraph.pl, inferno, speedscope, this program.",
            Self::Pprof => {
                "pprof protobuf, gzipped: `go tool pprof`, Pyroscope, Grafana; every event and blocked time."
            }
            Self::Firefox => {
                "Firefox Profiler JSON: profiler.firefox.com; samples, waits as markers, memory over time."
            }
            Self::Speedscope => "speedscope JSON, a profile a thread: speedscope.app.",
            Self::Chrome => "Trace event JSON: ui.perfetto.dev, chrome://tracing; threads running, runnable, blocked.",
        }
    }

    /// The file name extension its readers expect, without the first dot.
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

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to write of a capture. Rows that should not be written (other threads, other times) the caller has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// What to write; by default everything that the format can keep apart.
    pub evidence: Option<Evidence>,
    /// What the numbers are, in formats that hold one number a stack.
    pub measure: Measure,
    /// How folded stacks name their thread.
    pub threads: ThreadLabels,
    /// A title, where the format has one; by default the capture's label or command.
    pub title: Option<String>,
}

/// One kind of evidence of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The samples of one event.
    Event(EventId),
    /// Time off the CPU, by the stack that waited: from `waits`.
    OffCpu,
}

/// What a number stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measure {
    /// The weight, in the event's unit.
    #[default]
    Weight,
    /// The number of samples (or waits).
    Count,
}

/// How folded stacks name their thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadLabels {
    /// `name;...`: threads of one name are added up.
    #[default]
    Name,
    /// `name-PID;...`, as `stackcollapse-perf.pl --pid`.
    NamePid,
    /// `name-PID/TID;...`, as `stackcollapse-perf.pl --tid`.
    NamePidTid,
    /// `...`: the stack begins with a function, and all threads are added up.
    Absent,
}

/// Why an export failed. Every message ends in what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing failed.
    #[error("cannot write the export: {0}; what was written so far is incomplete, remove it")]
    Write(#[from] io::Error),
    /// The format holds one kind of evidence, and the capture several, which must not be added up.
    #[error("{format} holds one event, and the capture has {}: choose one of them", .events.join(", "))]
    SeveralEvents {
        /// The format.
        format: Format,
        /// The events there are.
        events: Vec<String>,
    },
    /// There is nothing to write.
    #[error("the capture holds no {wanted} to export: choose another event, or check its filters")]
    NothingToWrite {
        /// What was looked for.
        wanted: String,
    },
    /// The number of samples was asked for, and is lost.
    #[error("the number of samples behind the weights of {event} is not known: export the weights")]
    CountUnknown {
        /// The event.
        event: String,
    },
    /// A timeline was asked for, and nothing has a time.
    #[error("{format} is a timeline, and nothing in the capture has a time: export it as folded, pprof or speedscope")]
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

/// The title that was asked for, or the best name the capture has.
fn title(capture: &Capture, options: &ExportOptions) -> String {
    let asked = options.title.clone().or_else(|| capture.info.label());
    let command = || (!capture.info.command.is_empty()).then(|| capture.info.command.join(" "));
    asked.or_else(command).unwrap_or_else(|| match &capture.info.origin {
        stepscope_model::Origin::Imported { file, .. } => file.clone(),
        _ => "Stepscope capture".to_owned(),
    })
}

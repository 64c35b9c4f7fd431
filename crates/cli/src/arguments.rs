//! Flags shared by several subcommands, documented once.

pub mod analysed;
#[cfg(feature = "record")]
pub mod cluster;
pub mod comparison;
#[cfg(feature = "record")]
pub mod processes;
#[cfg(feature = "record")]
pub mod trials;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stepscope_analyze::Naming;
use stepscope_analyze::ownership::{Owned, Ownership};
use stepscope_analyze::pattern::Pattern;
use stepscope_analyze::select::{Filter, ProcessPattern, StepRange, ThreadPattern, TimeRange, Under};
use stepscope_analyze::slow_steps;
use stepscope_convert::ImportOptions;
use stepscope_convert::import::folded::{FirstFrame, FoldedOptions, FoldedUnit, ThreadIds};
use stepscope_convert::import::{self, FORMATS};
use stepscope_model::Phase;

use crate::failure::Failure;

/// Which code is owned.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Ownership")]
pub struct OwnedArguments {
    /// Functions your team can change: a glob over their qualified names, e.g. 'gz::*'; repeatable.
    #[arg(id = "owned", long, value_name = "GLOB")]
    namespaces: Vec<String>,
    /// Modules your team can change: a glob over their file names, e.g. 'libgz-*'; repeatable.
    #[arg(id = "owned-module", long, value_name = "GLOB")]
    modules: Vec<String>,
    /// Sources your team can change: a glob over their paths, e.g. '/home/me/sim/src/**'; repeatable.
    #[arg(id = "owned-source", long, value_name = "GLOB")]
    sources: Vec<String>,
    /// Exceptions from the owned functions: a glob over their qualified names, e.g. 'btVector3::*'; repeatable.
    #[arg(id = "not-owned", long, value_name = "GLOB")]
    not_owned: Vec<String>,
    /// Functions that trees show as one row: a glob over their qualified names, e.g. 'stbi_*'; repeatable.
    #[arg(id = "group", long, value_name = "GLOB")]
    groups: Vec<String>,
}

impl OwnedArguments {
    /// The patterns of the command line; without any, `otherwise`, e.g. those of a run's lab file. Exceptions and groups are
    /// added to either.
    pub fn ownership(&self, otherwise: Option<&Ownership>) -> Ownership {
        let given = Ownership {
            namespaces: self.namespaces.clone(),
            modules: self.modules.clone(),
            sources: self.sources.clone(),
            not_owned: self.not_owned.clone(),
            groups: self.groups.clone(),
        };
        let given = match std::env::current_dir() {
            Ok(folder) => given.relative_to(&folder),
            Err(_) => given,
        };
        match otherwise {
            Some(otherwise) => given.or(otherwise),
            None => given,
        }
    }

    /// The same, ready to judge.
    pub fn owned(&self, otherwise: Option<&Ownership>) -> Result<Owned, Failure> {
        Ok(self.ownership(otherwise).compile()?)
    }
}

/// Which part of a capture to use.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArguments {
    /// Only threads of this name (glob or /regex/) or tid; repeatable.
    #[arg(long = "thread", value_name = "NAME|TID")]
    threads: Vec<ThreadPattern>,
    /// Only processes of this program name or label (glob or /regex/) or pid; repeatable.
    #[arg(long = "process", value_name = "NAME|PID")]
    processes: Vec<ProcessPattern>,
    /// Only stacks through this function (name, glob or /regex/); repeatable.
    #[arg(long = "function", value_name = "NAME")]
    functions: Vec<Pattern>,
    /// Only stacks through code of this module (file name, glob or /regex/); repeatable.
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<Pattern>,
    /// Only stacks under owned code.
    #[arg(long, conflicts_with = "only_not_owned")]
    only_owned: bool,
    /// Only stacks without owned code.
    #[arg(long)]
    only_not_owned: bool,
    /// Only this part of the recording, from its start: `2s..5s`, `500ms..`, `..10s`.
    #[arg(long = "time", value_name = "FROM..TO", value_parser = time_range)]
    time: Option<TimeRange>,
    /// Only these steps of the simulation, by number: `528`, `100..200` (end excluded), `1000..`.
    #[arg(long = "steps", value_name = "N|FROM..TO", value_parser = step_range)]
    steps: Option<StepRange>,
    /// Samples of this event, if a capture has several.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

impl SelectArguments {
    /// The filter. `naming` is that of the lab file, if there is one.
    pub fn filter(&self, naming: &Naming) -> Filter {
        let ownership = match (self.only_owned, self.only_not_owned) {
            (true, _) => Some(Under::Owned),
            (_, true) => Some(Under::NotOwned),
            _ => None,
        };
        Filter {
            threads: self.threads.clone(),
            processes: self.processes.clone(),
            functions: self.functions.clone(),
            modules: self.modules.clone(),
            ownership,
            time: self.time,
            steps: self.steps,
            event: self.event.clone(),
            naming: naming.clone(),
        }
    }
}

/// Where files of the recorded machine are.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Symbols, for `symbolize` and imported files")]
pub struct SymbolArguments {
    /// Folder of debug files: with the layout of /usr/lib/debug or ~/.debug, or files with the modules' names; repeatable.
    #[arg(long = "symbols", visible_alias = "debug-dir", value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Root folder of the recorded machine: programs and libraries are searched there only; repeatable.
    #[arg(long = "sysroot", value_name = "DIR")]
    roots: Vec<PathBuf>,
}

impl SymbolArguments {
    /// The same for the importer.
    pub fn options(&self) -> Result<stepscope_symbolize::Options, Failure> {
        if let Some(missing) = self.directories.iter().chain(&self.roots).find(|folder| !folder.is_dir()) {
            return Err(Failure::Usage(format!(
                "{}: no such folder; --symbols and --sysroot take folders",
                missing.display()
            )));
        }
        let mut options = stepscope_symbolize::Options::default();
        options.debug_directories.splice(0..0, self.directories.iter().cloned());
        options.build_id_caches.splice(0..0, self.directories.iter().cloned());
        if !self.roots.is_empty() {
            options.roots = self.roots.clone();
        }
        Ok(options)
    }

    /// Import options with these symbols.
    pub fn import(&self) -> Result<ImportOptions, Failure> {
        Ok(ImportOptions { symbols: self.options()?, ..ImportOptions::default() })
    }
}

/// Selection, ownership and symbols.
#[derive(Debug, Default, Clone, Args)]
pub struct LookArguments {
    #[command(flatten)]
    pub select: SelectArguments,
    #[command(flatten)]
    pub owned: OwnedArguments,
    #[command(flatten)]
    pub symbols: SymbolArguments,
}

/// How to read an imported file.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadingArguments {
    /// The file's format, if its content does not show it.
    #[arg(id = "from", long, value_name = "FORMAT")]
    format: Option<String>,
    /// Unit of the counts in folded stacks; with `samples`, differences can be tested.
    #[arg(long, value_parser = choice(UNITS), default_value = "unknown")]
    unit: FoldedUnit,
    /// Folded stacks start with a function instead of a thread name.
    #[arg(long)]
    no_thread_names: bool,
}

const UNITS: &[Choice<FoldedUnit>] = &[
    ("unknown", "", FoldedUnit::Unknown),
    ("samples", "", FoldedUnit::Samples),
    ("ns", "", FoldedUnit::Nanoseconds),
    ("cycles", "", FoldedUnit::Cycles),
    ("misses", "", FoldedUnit::Misses),
    ("bytes", "", FoldedUnit::Bytes),
];

/// The phases of a run.
pub const PHASES: &[Choice<Phase>] = &[("loading", "", Phase::Loading), ("steady", "", Phase::Steady)];

/// The name of a value, its help (or nothing), and the value.
pub type Choice<T> = (&'static str, &'static str, T);

/// Reads one of these values by its name.
pub fn choice<T: Clone + Send + Sync + 'static>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T> {
    let shown = choices.iter().map(|(name, help, _)| match *help {
        "" => PossibleValue::new(*name),
        help => PossibleValue::new(*name).help(help),
    });
    PossibleValuesParser::new(shown).map(|name| {
        let chosen = choices.iter().find(|(known, ..)| *known == name);
        chosen.expect("the parser accepts these names only").2.clone()
    })
}

impl ReadingArguments {
    /// The same for the importer.
    pub fn options(&self, symbols: &SymbolArguments) -> Result<ImportOptions, Failure> {
        let format = match &self.format {
            Some(name) => Some(import::format_named(name).ok_or_else(|| {
                let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
                Failure::Usage(format!("`{name}` cannot be imported; use one of {}", known.join(", ")))
            })?),
            None => None,
        };
        let first_frame = if self.no_thread_names { FirstFrame::Function } else { FirstFrame::Thread };
        let folded = FoldedOptions { first_frame, unit: self.unit.clone(), thread_ids: ThreadIds::Detect };
        Ok(ImportOptions { format, folded, symbols: symbols.options()?, folder: None })
    }
}

/// A duration: `30`, `30s`, `1.5s`, `200ms`, `2m`, `1h`. A bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time; write 30s, 500ms, 2m")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a duration; write 30s, 500ms, 2m"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| format!("`{text}` is out of range"))
}

/// How long a segment of a long recording lasts. A shorter one would be finished more slowly than it is recorded.
#[cfg(feature = "record")]
pub fn segment_length(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_secs(1);
    match duration(text)? {
        length if length < SHORTEST => Err("a segment lasts at least 1s".to_owned()),
        length => Ok(length),
    }
}

fn time_range(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text.split_once("..").ok_or("write FROM..TO, e.g. 2s..5s; either end may be left out")?;
    let ns = |text: &str| duration(text).map(|duration| duration.as_nanos() as u64);
    let from_ns = if from.is_empty() { 0 } else { ns(from)? };
    let to_ns = if to.is_empty() { None } else { Some(ns(to)?) };
    match to_ns {
        Some(to_ns) if to_ns <= from_ns => Err(format!("{text} ends before it starts")),
        _ => Ok(TimeRange { from_ns, to_ns }),
    }
}

/// Which steps are slow: from this percentile on, or beyond a natural gap.
pub fn slow_options(percentile: Option<f64>) -> slow_steps::Options {
    let slow = percentile.map_or(slow_steps::Slow::Natural, slow_steps::Slow::Percentile);
    slow_steps::Options { slow, ..slow_steps::Options::default() }
}

/// The percentile from which steps are slow.
pub fn percentile(text: &str) -> Result<f64, String> {
    slow_steps::SLOW_PERCENTILE.parse(text)
}

/// A size in bytes: `500kB`, `12MB`, `1.5GB`.
pub fn size(text: &str) -> Result<u64, String> {
    const FORM: &str = "write a number and kB, MB or GB, e.g. 12MB";
    const UNITS: [(&str, f64); 3] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];
    let unit = UNITS.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, bytes) = unit.ok_or(FORM)?;
    let number: f64 = number.trim().parse().map_err(|_| FORM)?;
    (number.is_finite() && number > 0.0).then_some((number * bytes) as u64).ok_or_else(|| FORM.to_owned())
}

fn step_range(text: &str) -> Result<StepRange, String> {
    const FORM: &str = "write the number of a step, or FROM..TO, e.g. 100..200; either end may be left out";
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| FORM.to_owned());
    let Some((from, to)) = text.split_once("..") else {
        let from = number(text)?;
        return Ok(StepRange { from, to: from.checked_add(1) });
    };
    let from = if from.is_empty() { 0 } else { number(from)? };
    match if to.is_empty() { None } else { Some(number(to)?) } {
        Some(to) if to <= from => Err(format!("{text} ends before it starts")),
        to => Ok(StepRange { from, to }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!([size("500kB"), size("1.5 GB")], [Ok(500_000), Ok(1_500_000_000)]);
        assert!(size("12").is_err() && size("-1MB").is_err() && size("MB").is_err() && size("NaNMB").is_err());
    }

    #[test]
    fn steps_are_one_number_or_a_range() {
        let read = |text| step_range(text).map(|range| (range.from, range.to));
        assert_eq!(read("528"), Ok((528, Some(529))));
        assert_eq!(
            [read("100..200"), read("7.."), read("..3")],
            [Ok((100, Some(200))), Ok((7, None)), Ok((0, Some(3)))]
        );
        assert_eq!(read("5..5").unwrap_err(), "5..5 ends before it starts");
        assert!(read("first").unwrap_err().starts_with("write the number of a step"));
    }

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        let read = |text| duration(text).unwrap().as_nanos();
        assert_eq!(read("30"), 30_000_000_000);
        assert_eq!(read("1.5s"), 1_500_000_000);
        assert_eq!(read("250ms"), 250_000_000);
        assert_eq!(read("2m"), 120_000_000_000);
        assert!(duration("5 parsecs").unwrap_err().contains("not a unit of time"));
        assert!(duration("-1").is_err());
        assert!(duration("1e300h").is_err());
    }

    #[test]
    fn a_time_range_may_omit_an_end_but_not_run_backwards() {
        let range = |text| time_range(text).map(|range| (range.from_ns, range.to_ns));
        assert_eq!(range("2s..5s"), Ok((2_000_000_000, Some(5_000_000_000))));
        assert_eq!(range("..10ms"), Ok((0, Some(10_000_000))));
        assert_eq!(range("1.."), Ok((1_000_000_000, None)));
        assert!(range("5..2").unwrap_err().contains("ends before it starts"));
        assert!(range("5").is_err());
    }
}

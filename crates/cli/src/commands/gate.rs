//! `stepscope gate`: whether a change keeps the limits of the lab file, for continuous integration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use stepscope_lab::comparison::{CaptureSets, Extent};
use stepscope_lab::gate::{self, GateResult, Verdict};
use stepscope_lab::lab_file::{FILE_NAME, Inconclusive, LabFile};
use stepscope_lab::run::Run;
use stepscope_view::{Format, Style, junit, render};

use crate::arguments::comparison::CompareArguments;
use crate::arguments::{Choice, LookArguments, choice};
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::progress;

/// Exit code if the gate could not be judged.
pub const NOT_JUDGED: u8 = 3;

const EXIT_CODES: &str = "\
Exit codes: 0 every limit is kept; 1 a limit is broken; 2 inconclusive (--inconclusive changes this);
3 the gate could not be judged (wrong usage or lab file, nothing to compare, an unreadable capture).";

/// Judge a change by the limits in the lab file: pass, regression or inconclusive.
///
/// A limit such as `step.p99 = "+5%"` is kept if the whole 95 % interval of the change lies within it, and broken if the
/// whole interval lies beyond it. Otherwise it is inconclusive, with an estimate of the extra runs needed. The gate
/// compares the variants of a run of `stepscope ab`, or --baseline with --candidate.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Gate {
    /// A run of `stepscope ab`; with --baseline, the lab file [default: stepscope.toml here, else that of the candidate].
    #[arg(value_name = "RUN|LAB")]
    source: Option<PathBuf>,
    /// The side to compare with: a run, a capture, a folder of captures, or a pattern in quotes.
    #[arg(long, value_name = "RUN", requires = "candidate")]
    baseline: Option<PathBuf>,
    /// The side to judge.
    #[arg(long, value_name = "RUN", requires = "baseline")]
    candidate: Option<PathBuf>,
    /// The lab file with the limits [default: the run's own].
    #[arg(long, value_name = "FILE")]
    lab: Option<PathBuf>,
    /// What an inconclusive limit counts as [default: the lab file's `inconclusive`, else report].
    #[arg(long, alias = "cannot-tell", value_parser = choice(INCONCLUSIVE), value_name = "AS")]
    inconclusive: Option<Inconclusive>,
    /// Write a summary for a pull request; `-` replaces the table on standard output.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write JUnit XML with one test case per limit.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    compare: CompareArguments,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    output: TableArguments,
}

/// What an inconclusive limit counts as.
const INCONCLUSIVE: &[Choice<Inconclusive>] = &[
    ("pass", "A pass", Inconclusive::Pass),
    ("fail", "A regression", Inconclusive::Fail),
    ("report", "Neither: exit code 2", Inconclusive::Report),
];

/// What to judge.
struct Sources {
    sides: Vec<PathBuf>,
    lab: LabFile,
}

impl Gate {
    /// Failures have an exit code of their own, so that they look neither like a pass nor like a regression.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.judge() {
            Ok(code) => Ok(ExitCode::from(code)),
            Err(failure) => {
                failure.report();
                Ok(ExitCode::from(NOT_JUDGED))
            }
        }
    }

    fn judge(&self) -> Result<u8, Failure> {
        let Sources { sides, lab } = self.sources()?;
        let request = self.compare.request(&self.look)?;
        let sets = progress::of_step("reading captures", || CaptureSets::read(&sides, &request))?;
        let options = self.compare.options(Some(lab.compare.tolerance_percent / 100.0))?;
        let extent = Extent { tables: true, trees: None };
        let compared = progress::of_step("comparing", || sets.compare(&request, &options, extent))?;
        let verdict = gate::judge(&compared, &lab, self.inconclusive)?;
        let code = match verdict.result() {
            GateResult::Pass => 0,
            GateResult::Regression => 1,
            GateResult::Inconclusive => 2,
        };
        match self.write(&verdict).and_then(|()| self.show(verdict)) {
            // A reader that closes the pipe does not change the verdict.
            Ok(()) | Err(Failure::ReaderGone) => Ok(code),
            Err(failure) => Err(failure),
        }
    }

    fn sources(&self) -> Result<Sources, Failure> {
        if let (Some(baseline), Some(candidate)) = (&self.baseline, &self.candidate) {
            let lab = self.lab.as_deref().or(self.source.as_deref());
            let lab = lab.map_or_else(|| lab_beside(candidate), |path| Ok(lab_at(path)))?;
            return Ok(Sources { sides: vec![baseline.clone(), candidate.clone()], lab: LabFile::read(&lab)? });
        }
        let Some(source) = &self.source else {
            return Err(Failure::Usage(
                "name a run of `stepscope ab`, or both sides: --baseline RUN --candidate RUN".to_owned(),
            ));
        };
        let run = Run::open(source)?;
        let lab = self.lab.as_deref().map_or_else(|| run.folder().join(FILE_NAME), lab_at);
        check_variants(&run)?;
        Ok(Sources { sides: vec![run.folder().to_owned()], lab: LabFile::read(&lab)? })
    }

    fn write(&self, verdict: &Verdict) -> Result<(), Failure> {
        if let Some(path) = &self.markdown {
            let table = verdict.summary();
            Target::of(Some(path)).write(|out| {
                render(&table, Format::Markdown, &Style::PLAIN, out).map_err(Failure::writing("the summary"))
            })?;
        }
        if let Some(path) = &self.junit {
            let suites = verdict.suites();
            Target::of(Some(path)).write(|out| {
                junit::write("stepscope gate", &suites, out).map_err(Failure::writing("the test report"))
            })?;
        }
        Ok(())
    }

    fn show(&self, verdict: Verdict) -> Result<(), Failure> {
        let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if to_stdout(&self.markdown) || to_stdout(&self.junit) {
            return Ok(());
        }
        self.output.print(vec![verdict.table])
    }
}

/// Refuses a run without two recorded variants.
fn check_variants(run: &Run) -> Result<(), Failure> {
    let name = run.folder().display();
    let sides = run.sides();
    if sides.is_empty() {
        return Err(Failure::Usage(format!(
            "{name}: not a run of `stepscope ab`; name both sides with --baseline and --candidate"
        )));
    }
    match sides.iter().all(|one| one.baseline.is_empty()) || sides.iter().all(|one| one.candidate.is_empty()) {
        true => Err(Failure::Usage(format!("{name}: one of the variants has no complete capture"))),
        false => Ok(()),
    }
}

fn lab_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// The lab file here, else the copy in the run.
fn lab_beside(candidate: &Path) -> Result<PathBuf, Failure> {
    let here = PathBuf::from(FILE_NAME);
    let of_run = Run::open(candidate).ok().map(|run| run.folder().join(FILE_NAME));
    [Some(here), of_run]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Usage(format!("no {FILE_NAME} here or in the candidate; name the lab file with --lab")))
}

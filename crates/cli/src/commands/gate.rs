//! `stepscope gate`: whether a change keeps to the limits of the lab file, for continuous integration.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::PatternError;
use stepscope_analyze::gate::{self, Allowed, Judgement, Limit, Limited, Outcome};
use stepscope_lab::lab_file::{self, FILE_NAME, LabFile, WhenInconclusive};
use stepscope_lab::run::Run;
use stepscope_model::{Note, NoteValue, Row, Table, Value, note};
use stepscope_view::junit::{self, Case, CaseResult, Suite};
use stepscope_view::{Format, Style, render, sentence};

use crate::arguments::LookArguments;
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::sides::{CompareArguments, Compared, Sides};

/// Exit code where the gate could not be judged: neither a pass nor a regression.
pub const NOT_JUDGED: u8 = 3;

const EXIT_CODES: &str = "\
Exit codes: 0 every limit is kept; 1 a regression: a limit is broken; 2 inconclusive, unless --inconclusive says how that
counts; 3 the gate could not be judged (wrong usage or lab file, nothing to compare, an unreadable capture).";

/// Judge a change by the limits in the lab file's [gate]: pass, regression, or inconclusive.
///
/// A limit such as `step.p99 = "+5%"` is kept if the whole 95 % confidence interval of the change lies on its good side and
/// broken if the whole interval lies beyond it. Otherwise the result is inconclusive, with an estimate of the extra runs
/// needed. Judges a run of `stepscope ab`, or the captures that --baseline and --candidate name.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Gate {
    /// A run in which two variants were run in turns; or, with --baseline, the lab file [default: stepscope.toml here,
    /// else that of the candidate].
    #[arg(value_name = "RUN|LAB")]
    source: Option<PathBuf>,
    /// What is compared with: a run, a capture, a folder of captures, or a pattern in quotes.
    #[arg(long, value_name = "RUN", requires = "candidate")]
    baseline: Option<PathBuf>,
    /// What is to be judged.
    #[arg(long, value_name = "RUN", requires = "baseline")]
    candidate: Option<PathBuf>,
    /// The lab file with the limits, in place of the run's own.
    #[arg(long, value_name = "FILE")]
    lab: Option<PathBuf>,
    /// How an inconclusive result counts [default: as in the lab file, else report].
    #[arg(long, alias = "cannot-tell", value_enum, value_name = "AS")]
    inconclusive: Option<InconclusiveArgument>,
    /// Write a summary for a pull request here, `-` for standard output in place of the table.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a test case a limit here, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    compare: CompareArguments,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    output: TableArguments,
}

/// How an inconclusive result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InconclusiveArgument {
    /// As a pass.
    Pass,
    /// As a regression.
    Fail,
    /// As what it is: exit code 2.
    Report,
}

impl From<InconclusiveArgument> for WhenInconclusive {
    fn from(argument: InconclusiveArgument) -> Self {
        match argument {
            InconclusiveArgument::Pass => WhenInconclusive::Pass,
            InconclusiveArgument::Fail => WhenInconclusive::Fail,
            InconclusiveArgument::Report => WhenInconclusive::Report,
        }
    }
}

/// A scenario's limits, judged.
struct Judged {
    scenario: String,
    judgements: Vec<Judgement>,
    /// How an inconclusive result counts.
    when_inconclusive: WhenInconclusive,
}

impl Gate {
    /// Every failure has an exit code of its own: what was not judged must look like nothing else.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.judge() {
            Ok(code) => Ok(ExitCode::from(code)),
            Err(interrupted @ Failure::Interrupted(_)) => Err(interrupted),
            Err(failure) => {
                failure.report();
                Ok(ExitCode::from(NOT_JUDGED))
            }
        }
    }

    fn judge(&self) -> Result<u8, Failure> {
        let (sources, lab) = self.sources()?;
        let sides = Sides::read(&sources, &self.compare, &self.look)?;
        let options = self.compare.options(Some(lab.compare.tolerance_percent / 100.0))?;
        let compared = sides.compare(&self.compare, &self.look, &options)?;
        let judged = self.judged(&compared, &lab)?;
        let code = judged.iter().map(Judged::exit_code).max_by_key(|code| severity(*code)).unwrap_or(NOT_JUDGED);
        let table = table_of(&judged, &compared);
        match self.write(&table, &judged).and_then(|()| self.show(table)) {
            // The reader has seen enough; what was judged stays judged.
            Ok(()) | Err(Failure::ReaderGone) => Ok(code),
            Err(failure) => Err(failure),
        }
    }

    /// Both sides, and the lab file with the limits.
    fn sources(&self) -> Result<(Vec<PathBuf>, LabFile), Failure> {
        if let (Some(baseline), Some(candidate)) = (&self.baseline, &self.candidate) {
            let lab = self.lab.as_deref().or(self.source.as_deref());
            let lab = lab.map_or_else(|| lab_beside(candidate), |path| Ok(lab_at(path)))?;
            return Ok((vec![baseline.clone(), candidate.clone()], LabFile::read(&lab)?));
        }
        let Some(source) = &self.source else {
            return Err(Failure::Usage(
                "name a run of `stepscope ab`, or what to compare: --baseline RUN --candidate RUN".to_owned(),
            ));
        };
        let run = Run::open(source)?;
        let lab = self.lab.as_deref().map_or_else(|| run.folder().join(FILE_NAME), lab_at);
        check_in_turns(&run)?;
        Ok((vec![run.folder().to_owned()], LabFile::read(&lab)?))
    }

    fn judged(&self, compared: &Compared, lab: &LabFile) -> Result<Vec<Judged>, Failure> {
        let mut judged = Vec::new();
        for scenario in &compared.scenarios {
            let known = lab.scenarios.iter().find(|known| Some(&known.name) == scenario.name.as_ref());
            let of = known.map_or(&lab.gate, |known| &known.gate);
            let limits = of.limits.iter().map(limit).collect::<Result<Vec<_>, _>>()?;
            let [comparison] = scenario.to_first.as_slice() else {
                return Err(Failure::Usage("a gate judges one change: name a baseline and a candidate".to_owned()));
            };
            judged.push(Judged {
                scenario: scenario.label.clone(),
                judgements: gate::judge(comparison, &limits),
                when_inconclusive: self.inconclusive.map_or(of.when_inconclusive, Into::into),
            });
        }
        if judged.iter().all(|one| one.judgements.is_empty()) {
            let path = lab.path.display();
            return Err(Failure::Usage(format!(
                "{path}: it limits nothing of what was compared; add a [gate], e.g. step.p99 = \"+5%\""
            )));
        }
        // A side that did not get so far as to record a scenario must not pass for it.
        judged.extend(compared.notes.iter().map(|note| Judged {
            scenario: "not compared".to_owned(),
            judgements: vec![not_compared(note)],
            when_inconclusive: self.inconclusive.map_or(lab.gate.when_inconclusive, Into::into),
        }));
        Ok(judged)
    }

    fn write(&self, table: &Table, judged: &[Judged]) -> Result<(), Failure> {
        if let Some(path) = &self.markdown {
            let table = summarized(table);
            let render = |out: &mut dyn Write| render(&table, Format::Markdown, &Style::PLAIN, out);
            Target::of(Some(path)).write(|out| render(out).map_err(Failure::writing("the summary")))?;
        }
        if let Some(path) = &self.junit {
            let suites = suites(judged, &table.notes.iter().map(Note::to_string).collect::<Vec<_>>());
            Target::of(Some(path)).write(|out| {
                junit::write("stepscope gate", &suites, out).map_err(Failure::writing("the test report"))
            })?;
        }
        Ok(())
    }

    fn show(&self, table: Table) -> Result<(), Failure> {
        let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if to_stdout(&self.markdown) || to_stdout(&self.junit) {
            return Ok(());
        }
        self.output.print(vec![table])
    }
}

impl Judged {
    fn exit_code(&self) -> u8 {
        match (gate::overall(&self.judgements), self.when_inconclusive) {
            (Outcome::Pass, _) | (Outcome::Inconclusive, WhenInconclusive::Pass) => 0,
            (Outcome::Regression, _) | (Outcome::Inconclusive, WhenInconclusive::Fail) => 1,
            (Outcome::Inconclusive, WhenInconclusive::Report) => 2,
        }
    }
}

/// A regression outweighs an inconclusive result.
fn severity(code: u8) -> u8 {
    match code {
        1 => 2,
        2 => 1,
        code => code,
    }
}

/// Refuses a run without two variants that were run in turns.
fn check_in_turns(run: &Run) -> Result<(), Failure> {
    let name = run.folder().display();
    let sides = run.sides();
    if sides.is_empty() {
        return Err(Failure::Usage(format!(
            "{name}: no variants were run in turns here (`stepscope ab` does): name what to compare with --baseline and --candidate"
        )));
    }
    match sides.iter().all(|one| one.baseline.is_empty()) || sides.iter().all(|one| one.candidate.is_empty()) {
        true => Err(Failure::Usage(format!("{name}: one of the variants has no capture that counts"))),
        false => Ok(()),
    }
}

fn lab_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// The lab file here, else that of the run.
fn lab_beside(candidate: &Path) -> Result<PathBuf, Failure> {
    let here = PathBuf::from(FILE_NAME);
    let of_run = Run::open(candidate).ok().map(|run| run.folder().join(FILE_NAME));
    [Some(here), of_run].into_iter().flatten().find(|path| path.is_file()).ok_or_else(|| {
        Failure::Usage(format!("there is no {FILE_NAME} here or in the candidate: name the lab file with the limits"))
    })
}

fn limit(limit: &lab_file::Limit) -> Result<Limit, PatternError> {
    let of = match &limit.of {
        lab_file::Limited::Metric(name) => Limited::Metric((*name).to_owned()),
        lab_file::Limited::Function(pattern) => Limited::Function(pattern.parse()?),
        lab_file::Limited::Thread(pattern) => Limited::Thread(pattern.parse()?),
    };
    let allowed = match limit.allowed {
        lab_file::Allowed::Percent(percent) => Allowed::Percent(percent),
        lab_file::Allowed::Amount { value, .. } => Allowed::Amount(value),
    };
    Ok(Limit { of, allowed, text: limit.text() })
}

/// What stands for a scenario that one side lacks.
fn not_compared(note: &Note) -> Judgement {
    Judgement {
        metric: "all".to_owned(),
        unit: String::new(),
        allowed: String::new(),
        numbers: None,
        outcome: Outcome::Inconclusive,
        reason: Some(note.to_string().trim_end_matches('.').to_owned()),
        more_runs: None,
    }
}

fn table_of(judged: &[Judged], compared: &Compared) -> Table {
    let rows: Vec<(String, Vec<Judgement>)> =
        judged.iter().map(|one| (one.scenario.clone(), one.judgements.clone())).collect();
    let mut table = gate::table(&rows);
    let all: Vec<Judgement> = judged.iter().flat_map(|one| one.judgements.iter().cloned()).collect();
    table.title = format!("Gate: {}", summary(&all));
    for comparison in compared.scenarios.iter().flat_map(|scenario| scenario.to_first.first()) {
        let about = note!(
            Fact,
            "{} against {}: {} against {}.",
            &comparison.after,
            &comparison.before,
            NoteValue::plural(comparison.runs.1, "run"),
            NoteValue::plural(comparison.runs.0, "run")
        );
        for note in std::iter::once(&about).chain(&comparison.notes) {
            if !table.notes.contains(note) {
                table.note(note.clone());
            }
        }
    }
    table
}

/// `regression: 1 of 4 limits broken, 1 inconclusive`.
fn summary(all: &[Judgement]) -> String {
    let of = |outcome| all.iter().filter(|judgement| judgement.outcome == outcome).count();
    let told = match (of(Outcome::Regression), of(Outcome::Inconclusive)) {
        (1, 0) if all.len() == 1 => "the limit is broken".to_owned(),
        (0, 1) if all.len() == 1 => "the limit lies inside the interval".to_owned(),
        (0, 0) if all.len() == 1 => "the limit is kept".to_owned(),
        (0, 0) => format!("all {} limits are kept", all.len()),
        (0, unknown) => format!("{unknown} of {} limits", all.len()),
        (broken, 0) => format!("{broken} of {} limits are broken", all.len()),
        (broken, unknown) => format!("{broken} of {} limits are broken, {unknown} inconclusive", all.len()),
    };
    format!("{}: {told}", gate::overall(all).name())
}

/// Most inconclusive and passing rows in a summary: a reviewer reads what is broken.
const MOST_INCONCLUSIVE: usize = 20;
const MOST_PASSES: usize = 10;

/// The table as a summary: what a reviewer must see comes first, and what says nothing is left out.
fn summarized(table: &Table) -> Table {
    let mut table = table.clone();
    let Some(result) = table.column("result") else { return table };
    let is = |row: &&Row, outcome: Outcome| row[result] == Value::from(outcome.name());
    let parts =
        [(Outcome::Regression, usize::MAX), (Outcome::Inconclusive, MOST_INCONCLUSIVE), (Outcome::Pass, MOST_PASSES)];
    let mut rows = Vec::new();
    for (outcome, most) in parts {
        let of: Vec<&Row> = table.rows.iter().filter(|row| is(row, outcome)).collect();
        rows.extend(of.iter().take(most).map(|row| (*row).clone()));
        if of.len() > most {
            table.notes.insert(0, format!("{} more: {}.", of.len() - most, outcome.name()).into());
        }
    }
    table.rows = rows;
    let values = |name: &str| table.column(name).map(|column| table.rows.iter().map(move |row| &row[column]));
    let nothing_known = |name: &&str| values(name).is_some_and(|mut all| all.all(|value| *value == Value::Missing));
    let mut without = vec!["difference", "difference_low", "difference_high"];
    without.extend(["reason", "more_runs"].into_iter().filter(nothing_known));
    let mut scenarios: Vec<&Value> = values("scenario").into_iter().flatten().collect();
    scenarios.dedup();
    if let [Value::Text(only)] = scenarios.as_slice() {
        table.title.push_str(&format!(" ({only})"));
        without.push("scenario");
    }
    table.drop_columns(&without);
    table
}

/// A suite a scenario, a case a limit.
fn suites(judged: &[Judged], notes: &[String]) -> Vec<Suite> {
    let suite = |one: &Judged| {
        let table = gate::table(&[(one.scenario.clone(), one.judgements.clone())]);
        let cases = one.judgements.iter().enumerate().map(|(row, judgement)| case(judgement, row, &table, one));
        let name = if one.scenario.is_empty() { "gate".to_owned() } else { one.scenario.clone() };
        Suite { name, cases: cases.collect(), notes: notes.to_vec() }
    };
    judged.iter().map(suite).collect()
}

fn case(judgement: &Judgement, row: usize, table: &Table, judged: &Judged) -> Case {
    let measured = sentence::change(table, row).unwrap_or_default();
    let allowed = &judgement.allowed;
    let told = match &judgement.reason {
        Some(reason) if measured.is_empty() => format!("{}: {reason}", judgement.metric),
        Some(reason) => format!("{measured}, allowed {allowed}: {reason}{}", more_runs(judgement)),
        None => format!("{measured}, allowed {allowed}"),
    };
    let result = match (judgement.outcome, judged.when_inconclusive) {
        (Outcome::Pass, _) => CaseResult::Passed,
        (Outcome::Regression, _) => CaseResult::Failed(told),
        (Outcome::Inconclusive, WhenInconclusive::Fail) => CaseResult::Error(told),
        (Outcome::Inconclusive, WhenInconclusive::Pass | WhenInconclusive::Report) => CaseResult::Skipped(told),
    };
    Case { name: format!("{} {allowed}", judgement.metric).trim_end().to_owned(), result, output: measured }
}

fn more_runs(judgement: &Judgement) -> String {
    match judgement.more_runs {
        Some(1) => "; 1 more run per side needed".to_owned(),
        Some(more) => format!("; {more} more runs per side needed"),
        None => String::new(),
    }
}

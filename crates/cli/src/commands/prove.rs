//! `stepscope prove`: how right this program is, on a simulator whose costs are known.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use stepscope_analyze::proof;
use stepscope_lab::calm::Calm;
use stepscope_lab::conditions::{CALM_PERCENT, busy_percent};
use stepscope_lab::event::Event;
use stepscope_lab::proving::{self, BuildKind, Entry, Options, ProofRun, Scores};
use stepscope_lab::run::RUNS_FOLDER;
use stepscope_model::{Table, Value};
use stepscope_view::{Format, Style, render_all};

use crate::arguments::{Choice, choice};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{TableArguments, Target};
use crate::run_progress::RunProgress;

/// Measure the accuracy of Stepscope: record a simulator with known pathologies, and score the results.
///
/// Each switch of the proving ground runs alone and with all others, slow and fast. Runs alternate between recorded, timed by
/// the program itself, and bare. The score covers shares, the rank of the guilty function, savings of fixes, counts and
/// overhead. Exit code 1 if a requirement fails.
#[derive(Debug, Args)]
pub struct Prove {
    /// The proving ground [default: `ground`, built beside this program].
    #[arg(value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Only these switches of `ground list`; repeatable [default: all].
    #[arg(long = "switch", value_name = "NAME")]
    switches: Vec<String>,
    /// Recorded runs and timed runs of each setting. Bare runs: three to ten times as many, until the error of a fix's saving
    /// is below 1.5 points.
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Duration of each steady phase, in seconds.
    #[arg(long, default_value = "1.5", value_name = "S", value_parser = parse_seconds)]
    seconds: Duration,
    /// Builds of the program: they show how far results depend on names.
    #[arg(long = "build", value_parser = choice(BUILDS), value_name = "BUILD", default_values = ["plain"], value_delimiter = ',')]
    builds: Vec<BuildKind>,
    /// Seed of the order of runs.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Show earlier scores, and run nothing.
    #[arg(long)]
    history: bool,
    /// Score an earlier run in this folder again. Nothing is run, and the history does not change.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["program", "runs", "seconds", "builds", "seed", "history", "output"])]
    again: Option<PathBuf>,
    /// Folder that receives a new folder per run, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArguments,
}

const BUILDS: &[Choice<BuildKind>] = &[
    ("plain", "Unchanged", BuildKind::Plain),
    ("renamed", "Names replaced by hashes, no debug information", BuildKind::Renamed),
    ("stripped", "Without names", BuildKind::Stripped),
];

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if !(0.2..=600.0).contains(&seconds) {
        return Err("from 0.2 to 600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The score and its evidence, in the run's folder.
const PAGE: &str = "prove.json";

impl Prove {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let scores = Scores::of(Path::new("."));
        if self.history {
            self.table.print(vec![scores.table().map_err(Failure::writing(&scores.path().display().to_string()))?])?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(run) = &self.again {
            let kept = proving::again(run, &self.switches)?;
            let tables = proof::tables(&kept.proof);
            let held = holds(score(&tables));
            self.table.print(tables)?;
            return Ok(report(&kept, held));
        }
        let program = match &self.program {
            Some(program) => program.clone(),
            None => super::demo::simulator()?,
        };
        let conducted = self.conduct(&program)?;
        let tables = proof::tables(&conducted.proof);
        let page = conducted.run.folder().join(PAGE);
        Target::of(Some(&page)).write(|out| {
            render_all(&tables, Format::Json, &Style::PLAIN, out).map_err(Failure::writing("the tables"))
        })?;
        let score = score(&tables);
        if !conducted.interrupted {
            let entry = Entry::new(score, self.runs, conducted.proof.cases.len());
            scores.add(&entry).map_err(Failure::writing(&scores.path().display().to_string()))?;
        }
        let held = holds(score);
        self.table.print(tables)?;
        let code = report(&conducted, held);
        tell_next(&conducted, &page, &scores);
        Ok(code)
    }

    fn conduct(&self, program: &Path) -> Result<ProofRun, Failure> {
        let options = Options {
            runs: self.runs,
            duration: self.seconds,
            switches: self.switches.clone(),
            builds: self.builds.iter().copied().collect(),
            seed: self.seed,
        };
        if std::io::stderr().is_terminal() {
            let [least, most] = proving::RUNS_A_ROUND
                .map(|runs| f64::from(self.runs * runs) * (self.seconds.as_secs_f64() + 0.5) / 60.0);
            eprintln!("each switch takes {least:.1} to {most:.1} minutes a build, as steadily as this machine works");
        }
        let interrupted = interrupt::flag();
        let now = Calm::new(Duration::ZERO).before(&interrupted, &mut |_: &Event<'_>| {}).others_percent;
        if let Some(share) = now.filter(|share| *share > CALM_PERCENT) {
            eprintln!("note: other processes use {share:.0} % of the CPU now; the measurements will be less accurate");
        }
        Ok(RunProgress::new().of(&interrupted, |context| proving::prove(program, &self.output, &options, context))?)
    }
}

fn score(tables: &[Table]) -> &Table {
    tables.iter().find(|table| table.name == "prove").expect("the score is one of the tables")
}

/// Prints what the tables do not contain: missing measurements and the background load.
fn report(conducted: &ProofRun, held: bool) -> ExitCode {
    conducted.missing.iter().for_each(|missing| eprintln!("not measured: {missing}"));
    let trials = conducted.run.info().into_iter().flat_map(|info| &info.trials);
    if let Some(share) = busy_percent(trials.map(|trial| &trial.during)) {
        eprintln!("note: other processes used {share:.0} % of the CPU meanwhile; a quieter machine may score better");
    }
    match (conducted.interrupted, held && conducted.missing.is_empty()) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    }
}

/// Whether all requirements hold.
fn holds(score: &Table) -> bool {
    (0..score.rows.len()).all(|row| score.get(row, "holds") != Some(&Value::Bool(false)))
}

fn tell_next(conducted: &ProofRun, page: &Path, scores: &Scores) {
    let folder = conducted.run.folder().display();
    eprintln!("\nkept: {} with these tables, and what they were made of beside it", page.display());
    eprintln!("      {} with this score and all earlier ones: stepscope prove --history", scores.path().display());
    if let Some(case) = conducted.proof.cases.first() {
        eprintln!("next: stepscope rank {folder}/{}/alone/01/steady --owned 'ground::*'", case.known.name);
    }
}

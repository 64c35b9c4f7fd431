//! `stepscope run`: every scenario of a lab file, recorded, analysed, ranked and reported.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use stepscope_lab::event::{Event, Listener};
use stepscope_lab::execution::Bench;
use stepscope_lab::lab_file::{FILE_NAME, LabFile, Selection, Trial};
use stepscope_lab::outcome::{self, Outcome};
use stepscope_lab::recorder::PerfRecorder;
use stepscope_lab::run::{RUNS_FOLDER, Run as RunFolder};
use stepscope_model::Table;

use super::count;
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::{interrupt, load, progress};

/// Record every scenario and phase of a lab file, rank across scenarios and write a report.
#[derive(Debug, Args)]
pub struct Run {
    /// The lab file.
    #[arg(default_value = FILE_NAME, value_name = "LAB")]
    lab: PathBuf,
    /// Scenarios to run, by name or glob [default: all].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Variants to run, by name or glob; repeatable [default: all].
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<String>,
    /// Folder in which each run makes a folder of its own, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArguments,
}

impl Run {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let lab = LabFile::read(&self.lab).map_err(|error| Failure::Usage(error.to_string()))?;
        let selection = Selection { scenarios: self.scenarios, variants: self.variants };
        let trials = lab.trials(&selection).map_err(|error| Failure::Usage(error.to_string()))?;
        let conducted = conduct(&lab, &trials, &self.output)?;
        super::history::remember(lab.folder(), &conducted.run);
        self.table.print(conducted.rank().cloned().into_iter().collect())?;
        conducted.tell_next();
        Ok(conducted.exit_code())
    }
}

/// A run that is over.
pub struct Conducted {
    run: RunFolder,
    results: Option<Results>,
}

struct Results {
    rank: Table,
    report: PathBuf,
}

/// Runs trials into a new folder below `runs`, and writes the rank and the report of what was recorded.
pub fn conduct(lab: &LabFile, trials: &[Trial], runs: &Path) -> Result<Conducted, Failure> {
    let interrupted = interrupt::flag();
    let mut run = RunFolder::create(runs, lab, trials)?;
    eprintln!("{} into {}", count(trials.len(), "trial"), run.folder().display());
    let mut teller = Teller::new(progress::line());
    let recorder = PerfRecorder::default();
    let mut bench = Bench { recorder: &recorder, interrupt: &interrupted, listener: &mut teller };
    run.conduct(trials, &mut bench)?;
    teller.finish();
    let results = if run.captures().is_empty() { None } else { Some(Results::of(run.folder())?) };
    Ok(Conducted { run, results })
}

impl Results {
    /// Reads the captures of the run once, and writes its rank and its report.
    fn of(folder: &Path) -> Result<Self, Failure> {
        let loaded = progress::of_step("reading captures", || load::all(&[folder.to_owned()]))?;
        let rank = super::rank::of_run(folder, &loaded)?;
        Ok(Self { rank, report: super::report::of_run(folder, &loaded)? })
    }
}

impl Conducted {
    /// Says where the results are and how to look deeper.
    pub fn tell_next(&self) {
        let folder = self.run.folder().display();
        let Some(Results { report, .. }) = &self.results else {
            eprintln!("nothing was recorded; what happened is in {folder}/run.json");
            return;
        };
        eprintln!("\nnext: open {} in a browser", report.display());
        eprintln!("      stepscope rank {folder} --by score");
        if let Some(capture) = self.run.captures().first() {
            eprintln!("      stepscope show {} --view wall", capture.display());
        }
    }

    /// 0 if everything was recorded, 130 if interrupted, else 1.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(outcome::exit_code(self.run.outcomes()))
    }

    /// The rank over its scenarios, where anything was recorded.
    pub fn rank(&self) -> Option<&Table> {
        self.results.as_ref().map(|results| &results.rank)
    }
}

/// Tells on standard error how a run goes.
pub struct Teller {
    line: ProgressBar,
    label: String,
}

impl Teller {
    pub fn new(line: ProgressBar) -> Self {
        Self { line, label: String::new() }
    }

    /// Says something that stays.
    pub fn say(&self, text: &str) {
        self.line.suspend(|| eprintln!("{text}"));
    }

    /// Says something until the next thing is said.
    pub fn set(&self, text: &str) {
        self.line.set_message(text.to_owned());
    }

    pub fn finish(&self) {
        self.line.finish_and_clear();
    }
}

impl Listener for Teller {
    fn told(&mut self, event: &Event<'_>) {
        match event {
            Event::Building { variant, command, log } => {
                self.say(&format!("building {variant}: {} (its output: {})", command.join(" "), log.display()));
            }
            Event::Begun { trial, index, of } => {
                self.label = trial.label();
                let axis = trial.scenario.axis.as_ref().map(|axis| format!(": {axis}")).unwrap_or_default();
                self.say(&format!("[{}/{of}] {}{axis}", index + 1, self.label));
            }
            Event::Going { stage, elapsed, limit, recording } => self.line.set_message(format!(
                "{} {stage} {:.0} of at most {:.0} s, {} samples, {} lost",
                self.label,
                elapsed.as_secs_f64(),
                limit.as_secs_f64(),
                recording.samples,
                recording.lost,
            )),
            Event::Ready { by, after } => self.say(&format!("      ready after {:.1} s: {by}", after.as_secs_f64())),
            Event::DriverEnded { command, how } => self.say(&format!("      driver {} {how}", command.join(" "))),
            Event::Stopping => self.line.set_message(format!("{} stopping", self.label)),
            Event::Finishing { phase } => self.line.set_message(format!("{} naming functions of {phase}", self.label)),
            Event::Captured { phase, samples, .. } => self.say(&format!("      {phase}: {samples} samples")),
            Event::Ended { outcome, .. } => self.tell_outcome(outcome),
            _ => {}
        }
    }
}

impl Teller {
    fn tell_outcome(&self, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Failed(failure) => failure,
            Outcome::Interrupted => return self.say("      interrupted; what was recorded so far is kept"),
            Outcome::Recorded | Outcome::NotRun => return,
        };
        self.say(&format!("      {}", outcome.summary()));
        if !failure.last_lines.is_empty() {
            self.say("      its last output:");
        }
        for line in &failure.last_lines {
            self.say(&format!("        | {line}"));
        }
    }
}

//! `stepscope sweep`: scenarios at several sizes, and how their costs grow.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use stepscope_lab::lab_file::LabFile;
use stepscope_lab::outcome;
use stepscope_lab::run::{self, RUNS_FOLDER, Run, RunResults};
use stepscope_lab::sweep::{self, Options, Plan};
use stepscope_model::quantity::plural;
use stepscope_model::{Column, Kind, Table};

use crate::arguments::cluster::ClusterArguments;
use crate::arguments::trials::TrialArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::TableArguments;
use crate::run_progress::RunProgress;

/// Longest wait for a low background load before a trial.
const PATIENCE: Duration = Duration::from_secs(5);

/// Run scenarios at several sizes and on several numbers of CPUs, repeatedly.
///
/// [sweep] in the lab file names the axes, e.g. n = [500, 1000, 2000, 4000] and cores = [1, 2]. `{n}` is replaced in commands,
/// environments, drivers and files made from templates; `cores` restricts the program to that many CPUs. Scenarios without
/// a placeholder are left out. `stepscope growth`, `capacity` and `cores` analyse the run.
#[derive(Debug, Args)]
pub struct Sweep {
    #[command(flatten)]
    trials: TrialArguments,
    /// Runs of each point [default: the lab file's, else 5].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Longest time of the whole sweep, in seconds [default: the lab file's, else no limit].
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Run all rounds, even if the law is known well enough before.
    #[arg(long)]
    all_rounds: bool,
    /// Seed of the order of runs; run.json holds the seed of each sweep [default: random].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Start each run at once, even if other processes use the machine.
    #[arg(long)]
    no_wait: bool,
    /// Continue a sweep that was interrupted or whose budget was used up.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["scenarios", "variants", "seed"])]
    resume: Option<PathBuf>,
    /// Propose the most informative size for one more run of this sweep, and run nothing.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "scenarios", "variants", "seed", "runs"])]
    next: Option<PathBuf>,
    /// Folder that receives a new folder per run, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    table: TableArguments,
}

impl Sweep {
    pub fn run(self) -> Result<ExitCode, Failure> {
        if let Some(run) = &self.next {
            self.table.print(vec![proposals(&sweep::next(&open(run)?))])?;
            return Ok(ExitCode::SUCCESS);
        }
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let resumed = self.resume.as_deref().map(open).transpose()?;
        let lab = match resumed.as_ref().and_then(Run::lab) {
            Some(lab) => lab,
            None => Ok(self.trials.lab()?),
        };
        let lab = lab.map_err(|error| usage(&error))?;
        let options = self.options(&lab);
        let plan = match &resumed {
            Some(run) => Plan::of_run(run, &lab, options),
            None => Plan::new(&lab, &self.trials.filter(), options),
        };
        let plan = plan.map_err(|error| usage(&error))?;
        print_plan(&plan);
        if let Some(placement) = self.cluster.placement()? {
            let run = match resumed {
                Some(run) => run,
                None => sweep::plan(&self.output, &lab, &plan)?,
            };
            return self.finish(&super::run::record_on(run, &placement)?, false);
        }
        let interrupted = interrupt::flag();
        let results = RunProgress::new().of(&interrupted, |context| {
            let run = match resumed {
                Some(run) => sweep::resume(run, plan, context),
                None => sweep::record(&self.output, &lab, plan, context),
            }?;
            run::analyse(run, context)
        })?;
        self.finish(&results, interrupted.load(Ordering::Relaxed))
    }

    fn options(&self, lab: &LabFile) -> Options {
        Options {
            runs: self.runs.unwrap_or(lab.sweep.runs),
            seed: self.seed.unwrap_or_else(super::ab::drawn_seed),
            budget: self.budget.map(Duration::from_secs).or(lab.sweep.budget),
            precision_percent: (!self.all_rounds).then_some(lab.sweep.precision_percent),
            patience: if self.no_wait { Duration::ZERO } else { PATIENCE },
        }
    }

    fn finish(&self, results: &RunResults, interrupted: bool) -> Result<ExitCode, Failure> {
        let run = &results.run;
        let folder = run.folder().display();
        results.notes.iter().for_each(|note| eprintln!("note: {note}"));
        let info = run.info().expect("a sweep has a description");
        let ended = info.sweep.iter().flat_map(|sweep| &sweep.ended_early);
        ended.chain(&info.remarks()).for_each(|note| eprintln!("note: {note}"));
        let Some(report) = &results.report else {
            eprintln!("nothing was recorded; see {folder}/run.json");
            return Ok(ExitCode::from(outcome::exit_code(run.outcomes())));
        };
        let sources = [run.folder().to_owned()];
        super::run::print_after_findings(results, super::growth::of_runs(&sources)?, &self.table)?;
        eprintln!("\nnext: open {} in a browser", report.display());
        eprintln!("      stepscope growth {folder}; stepscope capacity {folder}; stepscope cores {folder}");
        eprintln!("      stepscope sweep --next {folder}");
        if interrupted {
            eprintln!("      stepscope sweep --resume {folder}");
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        Ok(ExitCode::from(outcome::exit_code(run.outcomes())))
    }
}

fn open(path: &std::path::Path) -> Result<Run, Failure> {
    Run::open(path).map_err(|error| Failure::Usage(error.to_string()))
}

fn print_plan(plan: &Plan) {
    for name in &plan.left_out {
        eprintln!("note: {name} has no placeholder of the sweep and is left out");
    }
    let scenarios: Vec<&str> = plan.scenarios().collect();
    let runs = plan.options().runs;
    let points = plan.trials() / runs as usize;
    let names = scenarios.join(", ");
    eprintln!(
        "sweep of {names}: {} x {}; order drawn with seed {}",
        plural(points, "point"),
        plural(runs as usize, "run"),
        plan.options().seed
    );
}

/// One row per series.
fn proposals(proposals: &[sweep::Proposal]) -> Table {
    let text = |name, doc: &str| Column::new(name, Kind::Text, "", doc);
    let number = |name, unit: &str, doc: &str| Column::new(name, Kind::Number, unit, doc);
    let columns = vec![
        text("series", "Scenario, and variant and number of CPUs where there are several."),
        text("law", "The law of the headline figure so far."),
        text("axis", "The axis of sizes."),
        number("next", "", "The most informative size for one more run, at most twice the largest."),
        number("information", "bits", "What one run there tells about the law and its parameters."),
        text("measured", "The same of one more run at each measured size."),
    ];
    let mut table = Table::new("next", "The most informative size", columns);
    for one in proposals {
        let measured = one.measured.iter().map(|(size, bits)| format!("{size}: {bits:.2}"));
        table.push(vec![
            one.series.as_str().into(),
            one.law.as_str().into(),
            one.axis.as_str().into(),
            one.size.into(),
            one.bits.into(),
            measured.collect::<Vec<_>>().join(", ").into(),
        ]);
    }
    table
}

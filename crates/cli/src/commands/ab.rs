//! `stepscope ab`: two variants of each scenario, interleaved and compared.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use stepscope_lab::ab::{self, Disturbed, Options, Plan};
use stepscope_lab::cluster;
use stepscope_lab::comparison::{self, PAGE_FILE, Request};
use stepscope_lab::history::Store;
use stepscope_lab::lab_file::{FILE_NAME, LabFile};
use stepscope_lab::outcome;
use stepscope_lab::run::{RUNS_FOLDER, Run, RunInfo};
use stepscope_model::Phase;
use stepscope_model::quantity::plural;

use crate::arguments::cluster::ClusterArguments;
use crate::arguments::{PHASES, choice};
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::run_progress::{RunProgress, rough};
use crate::{interrupt, progress};

/// Longest wait for a low background load before a trial.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fewer runs cannot be significant: an exact permutation test of 3 against 3 has a smallest p of 0.1.
const LEAST_RUNS: u32 = 4;

/// Run two variants of every scenario alternately, and compare them.
///
/// Each round runs both variants; pairs of rounds are A B B A or B A A B at random, so that drifts of the machine affect
/// both alike. [ab] in the lab file sets the variants and the number of runs, so that `stepscope ab` alone is enough.
/// With --on, rounds run on the nodes of a cluster, each round on one; there are no warm-up rounds, and disturbed rounds are kept.
#[derive(Debug, Args)]
pub struct Ab {
    /// The lab file.
    #[arg(default_value = FILE_NAME, value_name = "LAB")]
    lab: PathBuf,
    /// Scenarios to run, by name or glob [default: all].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Scenarios to run, by name or glob; repeatable.
    #[arg(long = "scenario", value_name = "SCENARIO")]
    more_scenarios: Vec<String>,
    /// The variant to compare with [default: the lab file's, else the unchanged scenarios].
    #[arg(long, value_name = "VARIANT")]
    baseline: Option<String>,
    /// The variant to judge [default: the lab file's, else the only other one].
    #[arg(long, value_name = "VARIANT")]
    candidate: Option<String>,
    /// Runs of each variant of each scenario [default: the lab file's, else 8].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Warm-up rounds, which are not kept [default: the lab file's, else 0].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=1000))]
    warm: Option<u32>,
    /// Seed of the order of runs; run.json holds the seed of each run [default: random].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Record and compare only this phase [default: record the lab file's phases; compare steady if there is any].
    #[arg(long, value_parser = choice(PHASES))]
    phase: Option<Phase>,
    /// Start each run at once, without waiting for a low background load.
    #[arg(long)]
    no_wait: bool,
    /// Keep rounds with a high background load instead of repeating some of them.
    #[arg(long)]
    keep_disturbed: bool,
    /// Do not measure the machine's speed beside the recording. Comparisons correct for it otherwise.
    #[arg(long)]
    no_speed_probe: bool,
    /// Folder that receives a new folder per run, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    table: TableArguments,
}

impl Ab {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let lab = LabFile::read(&self.lab).map_err(|error| Failure::Usage(error.to_string()))?;
        let lab = if self.no_speed_probe { lab.without_speed_probe() } else { lab };
        let placement = self.cluster.placement()?;
        let plan = self.plan(&lab, placement.is_some())?;
        print_plan(&plan);
        let interrupted = interrupt::flag();
        let run = match &placement {
            Some(placement) => {
                let mut run = ab::create(&self.output, &lab, &plan)?;
                RunProgress::new().of(&interrupted, |context| cluster::record(&mut run, placement, context))?;
                run
            }
            None => RunProgress::with_estimate(plan.trials())
                .of(&interrupted, |context| ab::record(&self.output, &lab, plan, context))?,
        };
        super::run::print_added(Store::beside(lab.folder()).add_run(&run));
        let folder = run.folder().display();
        if run.sides().iter().all(|sides| sides.baseline.is_empty() || sides.candidate.is_empty()) {
            eprintln!("no round was completed, so there is nothing to compare; see {folder}/run.json");
            return Ok(exit_code(&run, interrupted.load(Ordering::Relaxed)));
        }
        let notes = run.info().map(RunInfo::remarks).unwrap_or_default();
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        let request = Request { phase: self.phase, ..Request::default() };
        let tables = progress::of_step("comparing", || comparison::compare_run(run.folder(), &request))?;
        self.table.print_at_most(super::compare::ROWS_FOR_PEOPLE, tables)?;
        eprintln!("\nnext: open {folder}/{PAGE_FILE} in a browser");
        eprintln!("      stepscope flamegraph --diff {folder} -o difference.svg");
        eprintln!("      stepscope gate {folder}");
        Ok(exit_code(&run, interrupted.load(Ordering::Relaxed)))
    }

    fn plan(&self, lab: &LabFile, is_elsewhere: bool) -> Result<Plan, Failure> {
        let scenarios = [self.scenarios.as_slice(), &self.more_scenarios].concat();
        let pairs = lab.pairs(self.baseline.as_deref(), self.candidate.as_deref(), &scenarios);
        let pairs = pairs.map_err(|error| Failure::Usage(error.to_string()))?;
        let options = Options {
            runs: self.runs.unwrap_or(lab.ab.runs),
            warm: if is_elsewhere { 0 } else { self.warm.unwrap_or(lab.ab.warm) },
            seed: self.seed.unwrap_or_else(drawn_seed),
            patience: if self.no_wait { Duration::ZERO } else { PATIENCE },
            disturbed: if self.keep_disturbed { Disturbed::Kept } else { Disturbed::Again },
        };
        let plan = Plan::new(pairs, options);
        Ok(match self.phase {
            Some(phase) => plan.only(phase),
            None => plan,
        })
    }
}

/// 0 if every planned trial was recorded, 130 if interrupted, else 1.
fn exit_code(run: &Run, interrupted: bool) -> ExitCode {
    if interrupted {
        return ExitCode::from(interrupt::EXIT_CODE);
    }
    ExitCode::from(outcome::exit_code(run.outcomes()))
}

/// A random seed, short enough to be typed.
pub fn drawn_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn print_plan(plan: &Plan) {
    let (pairs, options) = (plan.pairs(), plan.options());
    for name in &pairs.left_out {
        eprintln!("note: {name} does not have both variants and is left out");
    }
    let warm = match options.warm {
        0 => String::new(),
        warm => format!(" after {}", plural(warm as usize, "warm-up round")),
    };
    // The loading time is not known yet.
    let least = Some(plan.least()).filter(|least| !least.is_zero());
    let least = least.map(|least| format!(", at least {}", rough(least))).unwrap_or_default();
    eprintln!(
        "{} against {}: {} x 2 variants x {}{warm}{least}; order drawn with seed {}",
        pairs.candidate,
        pairs.baseline,
        plural(pairs.pairs.len(), "scenario"),
        plural(options.runs as usize, "run"),
        options.seed,
    );
    if options.runs < LEAST_RUNS {
        eprintln!(
            "note: {} per variant cannot show a significant difference; use {LEAST_RUNS} or more, and 8 for small changes",
            plural(options.runs as usize, "run")
        );
    }
}

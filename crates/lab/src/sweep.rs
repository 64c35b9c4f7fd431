//! Scenarios at several sizes, or on several numbers of CPUs, repeatedly: what laws of growth are fitted to.
//!
//! # Order
//! A *round* runs each point of a scenario in each variant once, in an order drawn for the round. So a drift of the machine
//! affects all sizes alike. Scenarios follow each other, so that an interrupt leaves complete ones.
//!
//! # Resuming
//! The order follows from the seed in `run.json`. A sweep that was interrupted, or whose budget was used up, continues with the
//! trials that were not recorded.
//!
//! # Ending early
//! After each round from the third on, the law of the scenario's headline figure (time of a step, else CPU time, else length
//! of the recording) is fitted for each variant and number of CPUs. If each law is named, and its prediction at twice the
//! largest size is within [`precision_percent`](crate::lab_file::SweepSettings::precision_percent), further rounds would
//! say little more. The scenario ends.

mod headline;

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stepscope_model::quantity::plural;
use stepscope_stats::SplitMix64;

pub use headline::{Proposal, next};

use crate::calm::Calm;
use crate::checkout::Checkouts;
use crate::execution::Context;
use crate::lab_file::{LabFile, Trial, TrialFilter, TrialFilterError};
use crate::outcome::Outcome;
use crate::run::{Run, RunError, SweepInfo, TrialInfo};
use headline::Headlines;

/// Rounds before a scenario may end early.
const LEAST_ROUNDS: u32 = 3;

/// How to sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Runs of each point.
    pub runs: u32,
    /// Seed of the order within rounds.
    pub seed: u64,
    /// Longest time of this sweep.
    pub budget: Option<Duration>,
    /// A scenario ends early if its prediction is within this many percent. `None`: it never does.
    pub precision_percent: Option<f64>,
    /// How long each trial waits for a low background load.
    pub patience: Duration,
}

/// A sweep could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The lab file has no axis.
    #[error(
        "the lab file has no [sweep]; add one, e.g. n = [500, 1000, 2000, 4000], and `{{n}}` in a scenario's command"
    )]
    NoAxis,
    /// No selected scenario has a placeholder.
    #[error("none of the scenarios has `{{{axis}}}` in its command, environment or drivers")]
    NoPlaceholder {
        /// The axis.
        axis: String,
    },
    /// The selection names something that the lab file does not have.
    #[error(transparent)]
    Filter(#[from] TrialFilterError),
    /// The run was not made by a sweep.
    #[error("{}: not a sweep", path.display())]
    NotASweep {
        /// Its folder.
        path: std::path::PathBuf,
    },
}

/// The trials of a sweep.
#[derive(Debug, Clone)]
pub struct Plan {
    scenarios: Vec<Swept>,
    options: Options,
    info: SweepInfo,
    /// Scenarios without a placeholder, which are not swept.
    pub left_out: Vec<String>,
}

/// Every point of a scenario in every variant.
#[derive(Debug, Clone)]
struct Swept {
    name: String,
    points: Vec<Trial>,
}

impl Plan {
    /// All points of the selected scenarios.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn new(lab: &LabFile, filter: &TrialFilter, options: Options) -> Result<Self, PlanError> {
        let sweep = &lab.sweep;
        if sweep.is_empty() {
            return Err(PlanError::NoAxis);
        }
        let (points, mut left_out) = (sweep.points(), Vec::new());
        let mut scenarios: Vec<Swept> = Vec::new();
        for trial in lab.trials_as_written(filter)? {
            let name = trial.scenario.name.clone();
            if !sweep.applies_to(&trial.scenario) {
                left_out.push(trial.label());
                continue;
            }
            if scenarios.last().is_none_or(|last| last.name != name) {
                scenarios.push(Swept { name, points: Vec::new() });
            }
            let swept = scenarios.last_mut().expect("one was just added");
            swept.points.extend(points.iter().map(|point| trial.at(point)));
        }
        if scenarios.is_empty() {
            let axis = sweep.size.as_ref().map_or_else(String::new, |axis| axis.name.clone());
            return Err(PlanError::NoPlaceholder { axis });
        }
        let mut axes = std::collections::BTreeMap::new();
        if let Some(axis) = &sweep.size {
            axes.insert(axis.name.clone(), axis.values.clone());
        }
        if !sweep.cores.is_empty() {
            let cores = sweep.cores.iter().map(|cores| f64::from(*cores)).collect();
            axes.insert(crate::lab_file::CORES.to_owned(), cores);
        }
        let info = SweepInfo {
            axes,
            runs: options.runs,
            seed: options.seed,
            scenarios: scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
            ended_early: Vec::new(),
        };
        Ok(Self { scenarios, options, info, left_out })
    }

    /// What is left of a sweep: its lab file's points, in its order.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn of_run(run: &Run, lab: &LabFile, options: Options) -> Result<Self, PlanError> {
        let info = run.info().and_then(|info| info.sweep.clone());
        let info = info.ok_or_else(|| PlanError::NotASweep { path: run.folder().to_owned() })?;
        let filter = TrialFilter { scenarios: info.scenarios.clone(), variants: Vec::new() };
        Self::new(lab, &filter, Options { runs: info.runs.max(options.runs), seed: info.seed, ..options })
    }

    /// All points of a sweep's scenarios, without repetitions.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn points_of(run: &Run, lab: &LabFile) -> Result<Vec<Trial>, PlanError> {
        let info = run.info().and_then(|info| info.sweep.clone());
        let info = info.ok_or_else(|| PlanError::NotASweep { path: run.folder().to_owned() })?;
        let options = Options {
            runs: info.runs,
            seed: info.seed,
            budget: None,
            precision_percent: None,
            patience: Duration::ZERO,
        };
        let plan = Self::of_run(run, lab, options)?;
        Ok(plan.scenarios.into_iter().flat_map(|scenario| scenario.points).collect())
    }

    /// Number of trials.
    pub fn trials(&self) -> usize {
        self.scenarios.iter().map(|scenario| scenario.points.len()).sum::<usize>() * self.options.runs as usize
    }

    /// Names of the swept scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|scenario| scenario.name.as_str())
    }

    /// How.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The trials of a round, in its order.
    fn round(&self, scenario: usize, round: u32) -> Vec<Trial> {
        let mut random = SplitMix64::new(self.options.seed ^ (((scenario as u64) << 32) | u64::from(round)));
        let mut trials = self.scenarios[scenario].points.clone();
        trials.iter_mut().for_each(|trial| trial.repetition = Some(round));
        random.shuffle(&mut trials);
        trials
    }

    fn in_order(&self) -> Vec<Trial> {
        let scenarios = 0..self.scenarios.len();
        scenarios
            .flat_map(|scenario| (1..=self.options.runs).flat_map(move |round| self.round(scenario, round)))
            .collect()
    }
}

/// Sweeps into a new folder below `runs`. The run's outcomes hold failures and interrupts.
///
/// # Errors
/// If the folder or `run.json` cannot be written.
pub fn record(runs: &Path, lab: &LabFile, plan: Plan, context: &mut Context<'_>) -> Result<Run, RunError> {
    let run = Run::create(runs, lab, &plan.in_order())?;
    Sweep::new(run, plan).conduct(context)
}

/// Plans a sweep in a new folder below `runs`, for [nodes of a cluster](crate::cluster) to record.
///
/// # Errors
/// If the folder or `run.json` cannot be written.
pub fn plan(runs: &Path, lab: &LabFile, plan: &Plan) -> Result<Run, RunError> {
    let mut run = Run::create(runs, lab, &plan.in_order())?;
    run.sweeps(plan.info.clone())?;
    Ok(run)
}

/// Continues a sweep in its folder.
///
/// # Errors
/// If the folder or `run.json` cannot be written.
pub fn resume(mut run: Run, plan: Plan, context: &mut Context<'_>) -> Result<Run, RunError> {
    for trial in plan.in_order() {
        if find(&run, &trial).is_none() {
            run.plan(&trial);
        }
    }
    Sweep::new(run, plan).conduct(context)
}

fn find(run: &Run, trial: &Trial) -> Option<usize> {
    let is = |info: &TrialInfo| {
        info.scenario == trial.scenario.name && info.variant == trial.variant && info.repetition == trial.repetition
    };
    run.trials().iter().position(is)
}

/// A sweep while it runs.
struct Sweep {
    run: Run,
    plan: Plan,
    calm: Calm,
    since: Instant,
    /// The longest trial so far.
    longest: Duration,
}

impl Sweep {
    fn new(run: Run, plan: Plan) -> Self {
        let calm = Calm::new(plan.options.patience);
        Self { run, plan, calm, since: Instant::now(), longest: Duration::ZERO }
    }

    fn conduct(mut self, context: &mut Context<'_>) -> Result<Run, RunError> {
        self.run.sweeps(self.plan.info.clone())?;
        self.prepare(context);
        for scenario in 0..self.plan.scenarios.len() {
            self.scenario(scenario, context)?;
        }
        self.run.end()?;
        Ok(self.run)
    }

    /// Builds the variants. Trials of those that cannot be built fail.
    fn prepare(&mut self, context: &mut Context<'_>) {
        let mut checkouts = Checkouts::default();
        let logs = self.run.folder().to_owned();
        for trial in self.plan.scenarios.iter_mut().flat_map(|scenario| &mut scenario.points) {
            if let Err(error) = checkouts.prepare(trial, &logs, context) {
                self.run.cannot_run(trial, &error.outcome());
            }
        }
    }

    fn scenario(&mut self, scenario: usize, context: &mut Context<'_>) -> Result<(), RunError> {
        let mut headlines = Headlines::default();
        for round in 1..=self.plan.options.runs {
            for trial in self.plan.round(scenario, round) {
                let index = find(&self.run, &trial).expect("every trial is planned");
                let result = &self.run.trials()[index].result;
                if matches!(result, Outcome::NotRun | Outcome::Interrupted) {
                    if context.interrupt.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    if self.is_over_budget() {
                        return self.end_early(scenario, "the budget is used up; `--resume` continues".to_owned());
                    }
                    self.trial(index, &trial, context)?;
                }
                headlines.add(&self.run, index);
            }
            if round >= LEAST_ROUNDS
                && round < self.plan.options.runs
                && let Some(precision) = self.plan.options.precision_percent
                && headlines.known_within(precision)
            {
                let why = format!("the law is known well enough after {}", plural(round as usize, "round"));
                return self.end_early(scenario, why);
            }
        }
        Ok(())
    }

    fn trial(&mut self, index: usize, trial: &Trial, context: &mut Context<'_>) -> Result<(), RunError> {
        let began = Instant::now();
        let before = self.calm.before(context.interrupt, context.listener);
        // What an interrupted trial left.
        let _ = fs::remove_dir_all(self.run.folder().join(trial.folder()));
        self.run.record_trial(index, trial, Some(before), context)?;
        self.longest = self.longest.max(began.elapsed());
        Ok(())
    }

    /// Whether another trial might not fit.
    fn is_over_budget(&self) -> bool {
        self.plan.options.budget.is_some_and(|budget| self.since.elapsed() + self.longest > budget)
    }

    fn end_early(&mut self, scenario: usize, why: String) -> Result<(), RunError> {
        let name = self.plan.scenarios[scenario].name.clone();
        self.run.forget_unrun(|trial| trial.scenario == name)?;
        self.plan.info.ended_early.push(format!("{name} ended early: {why}."));
        self.run.sweeps(self.plan.info.clone())
    }
}

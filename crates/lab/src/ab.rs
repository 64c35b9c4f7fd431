//! Two variants of the same scenarios in alternation, so that changes of the machine affect both.
//!
//! # Order
//!
//! All rounds of a scenario are run before the next scenario starts. A round is one run of each variant. Their order is
//! random for the first round of each *pair* of rounds, and reversed for the second: A B B A or B A A B. Both orders occur
//! equally often, so a linear drift (a room that warms up, a disk that fills) has the same mean for both variants and
//! cancels in their difference. The random choice prevents synchronisation with periodic disturbances. An odd last round
//! has a random order of its own. `run.json` keeps the seed, which gives the same order again.
//!
//! Only runs of the same scenario are compared, so they should be close in time, and an interrupt should leave complete
//! scenarios. Therefore scenarios are not interleaved.
//!
//! # Excluded rounds
//!
//! A round is set aside as a whole if it is interrupted or a trial fails, so that both variants keep the same number of
//! runs. A round with a [disturbed](crate::conditions) trial is set aside when another round has replaced it. At most a
//! quarter of the requested rounds, but at least one, are repeated. Disturbed rounds without a replacement are compared,
//! with a note. Measurements of the program never decide which rounds count.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stepscope_model::Phase;
use stepscope_stats::SplitMix64;

use crate::calm::Calm;
use crate::checkout::Checkouts;
use crate::conditions::disturbed;
use crate::event::Event;
use crate::execution::{Context, execute};
use crate::lab_file::{LabFile, Pair, Pairs, Trial};
use crate::outcome::Outcome;
use crate::run::{AbInfo, Run, RunError};

/// Failed rounds after which a scenario is abandoned.
const MOST_FAILED: usize = 2;

/// Folder of warm-up rounds, removed afterwards.
const WARM_FOLDER: &str = ".warm-up";

/// Number of runs, and how to run them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Runs of each variant of each scenario, at least 1.
    pub runs: u32,
    /// Warm-up rounds before these, which are not kept.
    pub warm: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// How long each trial waits for a low background load.
    pub patience: Duration,
    /// What happens to disturbed rounds.
    pub disturbed: Disturbed,
}

/// What happens to rounds with a high background load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Disturbed {
    /// Some are repeated.
    #[default]
    Again,
    /// They are kept.
    Kept,
}

/// The role of a variant in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The baseline.
    Baseline,
    /// The candidate.
    Candidate,
}

impl Role {
    const BOTH: [Role; 2] = [Role::Baseline, Role::Candidate];

    fn other(self) -> Self {
        match self {
            Role::Baseline => Role::Candidate,
            Role::Candidate => Role::Baseline,
        }
    }

    fn letter(self) -> char {
        match self {
            Role::Baseline => 'A',
            Role::Candidate => 'B',
        }
    }

    fn of(self, pair: &Pair) -> &Trial {
        match self {
            Role::Baseline => &pair.baseline,
            Role::Candidate => &pair.candidate,
        }
    }
}

/// The random order of the rounds.
#[derive(Debug)]
struct Order {
    random: SplitMix64,
}

impl Order {
    fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed) }
    }

    fn first(&mut self) -> Role {
        Role::BOTH[self.random.below(2)]
    }

    /// Which variant comes first in each round.
    fn rounds(&mut self, count: u32) -> Vec<Role> {
        let mut firsts = Vec::new();
        while firsts.len() < count as usize {
            let first = self.first();
            firsts.extend([first, first.other()]);
        }
        firsts.truncate(count as usize);
        firsts
    }
}

/// The runs, in order.
#[derive(Debug)]
pub struct Plan {
    pairs: Pairs,
    options: Options,
    /// For each pair, the first variant of each round.
    rounds: Vec<Vec<Role>>,
    order: Order,
}

impl Plan {
    /// Plans the runs in random order.
    pub fn new(pairs: Pairs, options: Options) -> Self {
        let mut order = Order::new(options.seed);
        let rounds = pairs.pairs.iter().map(|_| order.rounds(options.runs)).collect();
        Self { pairs, options, rounds, order }
    }

    /// Records only this phase. Scenarios without it do not change.
    pub fn only(mut self, phase: Phase) -> Self {
        for pair in &mut self.pairs.pairs {
            for trial in [&mut pair.baseline, &mut pair.candidate] {
                let record = &mut trial.scenario.record;
                if record.records(phase) {
                    record.phases = vec![phase];
                }
            }
        }
        self
    }

    /// The compared variants.
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// How.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Shortest total time: warm-ups and recordings, without loading, stopping and symbolization.
    pub fn least(&self) -> Duration {
        let rounds = self.options.runs + self.options.warm;
        let of = |trial: &Trial| {
            let record = &trial.scenario.record;
            if record.records(Phase::Steady) { record.warmup + record.duration } else { Duration::ZERO }
        };
        let once = self.pairs.pairs.iter().map(|pair| of(&pair.baseline) + of(&pair.candidate));
        once.sum::<Duration>() * rounds
    }

    /// Number of trials, without warm-up rounds.
    pub fn trials(&self) -> usize {
        2 * self.options.runs as usize * self.pairs.pairs.len()
    }

    /// Every trial, in order.
    fn in_order(&self) -> Vec<Trial> {
        let rounds = self.pairs.pairs.iter().zip(&self.rounds);
        let trials = rounds.flat_map(|(pair, firsts)| {
            firsts.iter().enumerate().flat_map(|(round, &first)| {
                [first, first.other()].map(|role| numbered(role.of(pair), round as u32 + 1))
            })
        });
        trials.collect()
    }

    fn info(&self) -> AbInfo {
        let letters = |firsts: &Vec<Role>| {
            firsts.iter().flat_map(|&first| [first.letter(), first.other().letter()]).collect::<String>()
        };
        let scenarios = self.pairs.pairs.iter().map(|pair| pair.baseline.scenario.name.clone());
        AbInfo {
            baseline: self.pairs.baseline.clone(),
            candidate: self.pairs.candidate.clone(),
            runs: self.options.runs,
            warm: self.options.warm,
            seed: self.options.seed,
            order: scenarios.zip(self.rounds.iter().map(letters)).collect(),
        }
    }
}

fn numbered(trial: &Trial, repetition: u32) -> Trial {
    Trial { repetition: Some(repetition), ..trial.clone() }
}

/// Creates the run with all of its trials planned, in a new folder below `runs`. A [cluster](crate::cluster::record) records it
/// without warm-up rounds, and repeats no disturbed ones.
///
/// # Errors
/// If the folder or `run.json` cannot be written.
pub fn create(runs: &Path, lab: &LabFile, plan: &Plan) -> Result<Run, RunError> {
    let mut run = Run::create(runs, lab, &plan.in_order())?;
    run.compares(plan.info())?;
    Ok(run)
}

/// Runs everything on this machine, into a new folder below `runs`. The run's outcomes hold failures and interrupts.
///
/// # Errors
/// If the folder or `run.json` cannot be written.
pub fn record(runs: &Path, lab: &LabFile, mut plan: Plan, context: &mut Context<'_>) -> Result<Run, RunError> {
    let mut run = create(runs, lab, &plan)?;
    let mut checkouts = Checkouts::default();
    if prepare(&mut run, &mut plan, &mut checkouts, context)? {
        let mut calm = Calm::new(plan.options.patience);
        let mut index = 0;
        let rounds = std::mem::take(&mut plan.rounds);
        for (pair, firsts) in plan.pairs.pairs.iter().zip(rounds) {
            let planned = index;
            index += 2 * firsts.len();
            let (options, order) = (&plan.options, &mut plan.order);
            Turns { run: &mut run, pair, options, order, calm: &mut calm, rounds: Vec::new() }
                .conduct(planned, &firsts, context)?;
        }
    }
    run.end()?;
    Ok(run)
}

/// Builds the variants. If that fails, nothing is run, because nothing could be compared.
fn prepare(
    run: &mut Run,
    plan: &mut Plan,
    checkouts: &mut Checkouts,
    context: &mut Context<'_>,
) -> Result<bool, RunError> {
    let logs = run.folder().to_owned();
    let mut ready = true;
    for pair in &mut plan.pairs.pairs {
        for trial in [&mut pair.baseline, &mut pair.candidate] {
            let Err(error) = checkouts.prepare(trial, &logs, context) else { continue };
            ready = false;
            run.cannot_run(trial, &error.outcome());
            context.listener.notify(&Event::TrialEnded { trial, outcome: &error.outcome(), notes: &[] });
        }
    }
    Ok(ready)
}

/// The rounds of a scenario while they run.
struct Turns<'a> {
    run: &'a mut Run,
    pair: &'a Pair,
    options: &'a Options,
    order: &'a mut Order,
    calm: &'a mut Calm,
    /// The valid rounds so far.
    rounds: Vec<Round>,
}

/// Indices of a round's trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Round {
    baseline: usize,
    candidate: usize,
}

impl Turns<'_> {
    /// Runs the planned rounds, whose first trial has the index `planned`, and then repeats disturbed ones.
    fn conduct(mut self, planned: usize, firsts: &[Role], context: &mut Context<'_>) -> Result<(), RunError> {
        if !self.warm_up(context) {
            return Ok(());
        }
        let mut failed = 0;
        for (number, &first) in firsts.iter().enumerate() {
            let (earlier, later) = (planned + 2 * number, planned + 2 * number + 1);
            if self.is_interrupted(context) || failed >= MOST_FAILED {
                return self.mark();
            }
            if !self.round(number as u32 + 1, first, [earlier, later], context)? {
                failed += 1;
            }
        }
        if self.options.disturbed == Disturbed::Again {
            self.replace_disturbed(firsts.len() as u32, context)?;
        }
        self.mark()
    }

    fn is_interrupted(&self, context: &Context<'_>) -> bool {
        context.interrupt.load(Ordering::Relaxed)
    }

    /// Runs the warm-up rounds. Returns whether to continue with the scenario.
    fn warm_up(&mut self, context: &mut Context<'_>) -> bool {
        let folder = self.run.folder().join(WARM_FOLDER);
        for _ in 0..self.options.warm {
            for role in Role::BOTH {
                if self.is_interrupted(context) {
                    return false;
                }
                execute(role.of(self.pair), &folder, context);
                let _ = fs::remove_dir_all(&folder);
            }
        }
        true
    }

    /// Runs both variants. Returns whether both were recorded; otherwise the round is set aside.
    fn round(
        &mut self,
        number: u32,
        first: Role,
        indices: [usize; 2],
        context: &mut Context<'_>,
    ) -> Result<bool, RunError> {
        let sides = [first, first.other()];
        for (role, index) in sides.into_iter().zip(indices) {
            if self.is_interrupted(context) {
                break;
            }
            let trial = numbered(role.of(self.pair), number);
            let before = self.calm.before(context.interrupt, context.listener);
            if self.is_interrupted(context) {
                break;
            }
            self.run.record_trial(index, &trial, Some(before), context)?;
        }
        let [earlier, later] = indices;
        let round = match first {
            Role::Baseline => Round { baseline: earlier, candidate: later },
            Role::Candidate => Round { baseline: later, candidate: earlier },
        };
        if indices.iter().all(|&index| self.run.trials()[index].result.is_recorded()) {
            self.rounds.push(round);
            return Ok(true);
        }
        for index in indices {
            if self.run.trials()[index].result != Outcome::NotRun {
                self.run.set_aside(index, "the round was not completed".to_owned())?;
            }
        }
        // An interrupt is not a failure of the program.
        let interrupted = indices.iter().any(|&index| self.run.trials()[index].result == Outcome::Interrupted);
        Ok(interrupted || self.is_interrupted(context))
    }

    /// Why each of the rounds that count is disturbed, if it is.
    fn judged(&self) -> Vec<[Option<String>; 2]> {
        let shares = |index: fn(&Round) -> usize| -> Vec<Option<f64>> {
            let of = |round: &Round| self.run.trials()[index(round)].during.others_percent;
            self.rounds.iter().map(of).collect()
        };
        let baseline = disturbed(&shares(|round| round.baseline));
        let candidate = disturbed(&shares(|round| round.candidate));
        baseline.into_iter().zip(candidate).map(|(baseline, candidate)| [baseline, candidate]).collect()
    }

    /// Background load of the worse trial of a round.
    fn worst(&self, round: Round) -> f64 {
        let share = |index: usize| self.run.trials()[index].during.others_percent.unwrap_or(0.0);
        share(round.baseline).max(share(round.candidate))
    }

    /// Repeats disturbed rounds, the worst first.
    fn replace_disturbed(&mut self, mut number: u32, context: &mut Context<'_>) -> Result<(), RunError> {
        for _ in 0..(self.options.runs / 4).max(1) {
            let is_disturbed = |why: &[Option<String>; 2]| why.iter().any(Option::is_some);
            if self.is_interrupted(context) || !self.judged().iter().any(is_disturbed) {
                return Ok(());
            }
            number += 1;
            let first = self.order.first();
            let indices = [first, first.other()].map(|role| self.run.plan(&numbered(role.of(self.pair), number)));
            let before = self.rounds.len();
            self.round(number, first, indices, context)?;
            if self.rounds.len() == before {
                continue;
            }
            // The new round is judged like the others: it may be disturbed even more.
            let judged = self.judged();
            let marked = (0..self.rounds.len()).filter(|&index| is_disturbed(&judged[index]));
            let worst = marked.max_by(|&a, &b| self.worst(self.rounds[a]).total_cmp(&self.worst(self.rounds[b])));
            let Some(worst) = worst else { continue };
            let round = self.rounds.remove(worst);
            for (index, why) in [round.baseline, round.candidate].into_iter().zip(&judged[worst]) {
                let trial = self.run.trial_mut(index);
                trial.disturbed.clone_from(why);
                let why = why.as_deref().unwrap_or("the other trial of its round is");
                self.run.set_aside(index, format!("disturbed: {why}; the round was repeated"))?;
            }
        }
        Ok(())
    }

    /// Marks the disturbed trials that are compared.
    fn mark(&mut self) -> Result<(), RunError> {
        for (round, why) in self.rounds.clone().into_iter().zip(self.judged()) {
            let [baseline, candidate] = why;
            self.run.trial_mut(round.baseline).disturbed = baseline;
            self.run.trial_mut(round.candidate).disturbed = candidate;
        }
        self.run.write_info()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(firsts: &[Role]) -> String {
        firsts.iter().flat_map(|&first| [first.letter(), first.other().letter()]).collect()
    }

    #[test]
    fn each_pair_of_rounds_has_both_orders_so_that_a_linear_drift_cancels() {
        for seed in 0..50 {
            let order = letters(&Order::new(seed).rounds(8));
            let at = |wanted: char| {
                let places = order.chars().enumerate().filter(move |&(_, letter)| letter == wanted);
                places.map(|(place, _)| place).sum::<usize>()
            };
            assert_eq!((order.len(), at('A')), (16, at('B')), "{order}");
            for pair in order.as_bytes().chunks(4) {
                assert!(pair == b"ABBA" || pair == b"BAAB", "{order}");
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_order_and_others_draw_others() {
        let draw = |seed| letters(&Order::new(seed).rounds(9));
        assert_eq!(draw(7), draw(7));
        assert_eq!(draw(7).len(), 18);
        let different: std::collections::BTreeSet<String> = (0..40).map(draw).collect();
        assert!(different.len() > 10, "{different:?}");
        let starts_with_a = (0..400).filter(|&seed| draw(seed).starts_with('A')).count();
        assert!((150..250).contains(&starts_with_a), "{starts_with_a} of 400");
    }
}

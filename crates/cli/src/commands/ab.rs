//! `stepscope ab`: two variants of the scenarios of a lab file, run in turns and compared.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use stepscope_lab::ab::{self, Disturbed, Options, Plan};
use stepscope_lab::conditions::busy_percent;
use stepscope_lab::event::{Event, Listener};
use stepscope_lab::execution::Bench;
use stepscope_lab::lab_file::{FILE_NAME, LabFile};
use stepscope_lab::outcome;
use stepscope_lab::recorder::PerfRecorder;
use stepscope_lab::run::{RUNS_FOLDER, Run, RunInfo};
use stepscope_model::Phase;

use super::count;
use super::rank::PhaseArgument;
use super::run::Teller;
use crate::failure::Failure;
use crate::output::TableArguments;
use crate::sides::CompareArguments;
use crate::{interrupt, progress};

/// How long a trial waits for others to leave the machine alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fewer runs than these cannot show a change, however large: an exact permutation test of 3 against 3 has a smallest
/// p of 0.1.
const LEAST_RUNS: u32 = 4;

/// Run two variants of every scenario in turns, and compare them.
///
/// Rounds of both variants, A B B A or B A A B by lot, so that what else changes meanwhile changes both. The lab file's
/// [ab] may say which variants and how many runs, so that `stepscope ab` alone is enough.
#[derive(Debug, Args)]
pub struct Ab {
    /// The lab file.
    #[arg(default_value = FILE_NAME, value_name = "LAB")]
    lab: PathBuf,
    /// Scenarios to run, by name or glob [default: all].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Scenarios to run, likewise; repeatable.
    #[arg(long = "scenario", value_name = "SCENARIO")]
    more_scenarios: Vec<String>,
    /// The variant to compare with [default: what [ab] says, else the scenarios as they are written].
    #[arg(long, value_name = "VARIANT")]
    baseline: Option<String>,
    /// The variant to judge [default: what [ab] says, else the only other one].
    #[arg(long, value_name = "VARIANT")]
    candidate: Option<String>,
    /// Runs of each variant of each scenario [default: what [ab] says, else 8].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Rounds that are run before these and not kept [default: what [ab] says, else 0].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=1000))]
    warm: Option<u32>,
    /// Draw the order with this seed, as it was drawn in a run whose run.json names it [default: another each time].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Record and compare only this phase [default: record what the lab file says; compare steady if there is any].
    #[arg(long, value_enum)]
    phase: Option<PhaseArgument>,
    /// Begin each run at once, even while others use much of the machine.
    #[arg(long)]
    no_wait: bool,
    /// Keep rounds during which others used much more of the machine than usual, instead of running a few again.
    #[arg(long)]
    keep_disturbed: bool,
    /// Folder in which each run makes a folder of its own, named by the time.
    #[arg(short, long, default_value = RUNS_FOLDER, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArguments,
}

impl Ab {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let lab = LabFile::read(&self.lab).map_err(|error| Failure::Usage(error.to_string()))?;
        let plan = self.plan(&lab)?;
        tell_plan(&plan);
        let interrupted = interrupt::flag();
        let mut teller = AbTeller::new(plan.trials());
        let recorder = PerfRecorder::default();
        let mut bench = Bench { recorder: &recorder, interrupt: &interrupted, listener: &mut teller };
        let run = ab::conduct(&self.output, &lab, plan, &mut bench)?;
        teller.finish();
        super::history::remember(lab.folder(), &run);
        let folder = run.folder().display();
        if run.sides().iter().all(|sides| sides.baseline.is_empty() || sides.candidate.is_empty()) {
            eprintln!("no round was completed, so there is nothing to compare; what happened is in {folder}/run.json");
            return Ok(exit_code(&run, interrupted.load(Ordering::Relaxed)));
        }
        run.info().iter().for_each(|info| tell_conditions(info));
        let compare = CompareArguments::of_phase(self.phase);
        super::compare::of_run(run.folder(), &compare, &self.table)?;
        eprintln!("\nnext: open {folder}/{} in a browser", super::compare::PAGE_FILE);
        eprintln!("      stepscope flamegraph --diff {folder} -o difference.svg");
        eprintln!("      stepscope gate {folder}");
        Ok(exit_code(&run, interrupted.load(Ordering::Relaxed)))
    }

    fn plan(&self, lab: &LabFile) -> Result<Plan, Failure> {
        let scenarios = [self.scenarios.as_slice(), &self.more_scenarios].concat();
        let pairs = lab.pairs(self.baseline.as_deref(), self.candidate.as_deref(), &scenarios);
        let pairs = pairs.map_err(|error| Failure::Usage(error.to_string()))?;
        let options = Options {
            runs: self.runs.unwrap_or(lab.ab.runs),
            warm: self.warm.unwrap_or(lab.ab.warm),
            seed: self.seed.unwrap_or_else(drawn_seed),
            patience: if self.no_wait { Duration::ZERO } else { PATIENCE },
            disturbed: if self.keep_disturbed { Disturbed::Kept } else { Disturbed::Again },
        };
        let plan = Plan::new(pairs, options);
        Ok(match self.phase {
            Some(phase) => plan.only(Phase::from(phase)),
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

/// A seed that nobody chose. Short, to be typed again.
fn drawn_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn tell_plan(plan: &Plan) {
    let (pairs, options) = (plan.pairs(), plan.options());
    for name in &pairs.left_out {
        eprintln!("note: {name} has not both variants and is left out");
    }
    let warm = match options.warm {
        0 => String::new(),
        warm => format!(" after {} to warm up", count(warm as usize, "round")),
    };
    // How long loading takes shows when it is done.
    let least = Some(plan.least()).filter(|least| !least.is_zero());
    let least = least.map(|least| format!(", at least {}", rough(least))).unwrap_or_default();
    eprintln!(
        "{} against {}: {} x 2 variants x {}{warm}{least}; order drawn with seed {}",
        pairs.candidate,
        pairs.baseline,
        count(pairs.pairs.len(), "scenario"),
        count(options.runs as usize, "run"),
        options.seed,
    );
    if options.runs < LEAST_RUNS {
        eprintln!(
            "note: {} of each cannot show a change, however large it is: take {LEAST_RUNS} or more, and 8 for small ones",
            count(options.runs as usize, "run")
        );
    }
}

/// What the machine did meanwhile that may have changed the results.
fn tell_conditions(info: &RunInfo) {
    let compared = || info.trials.iter().filter(|trial| trial.set_aside.is_none());
    if let Some(share) = busy_percent(compared().map(|trial| &trial.during)) {
        eprintln!(
            "note: others had {share:.0} % of the processors in the median of the runs (drivers are among the others): \
             a calmer machine would tell smaller changes"
        );
    }
    let replaced = info.trials.iter().filter(|trial| trial.set_aside.is_some() && trial.disturbed.is_some()).count();
    if replaced > 0 {
        eprintln!("note: {} disturbed by others, and another round was run in place of each", count(replaced, "run"));
    }
    for trial in compared() {
        if let Some(why) = &trial.disturbed {
            eprintln!("note: {} is compared, but disturbed: {why}", trial.label());
        }
        for note in trial.notes.iter().filter(|note| note.contains("governor")) {
            eprintln!("note: {}: {note}", trial.label());
        }
    }
    if let Some(tree) = info.working_tree.as_ref().filter(|tree| tree.changed_files > 0)
        && info.trials.iter().any(|trial| trial.revision.is_some())
    {
        eprintln!(
            "note: the working tree differs from its commit {} in {}: the variant without a revision was run as it is",
            tree.revision.get(..10).unwrap_or(&tree.revision),
            count(tree.changed_files, "file")
        );
    }
}

/// `45 s`, `12 min`, `1 h 20 min`.
fn rough(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Tells how it goes, and how long it will still take by what the trials so far took.
struct AbTeller {
    teller: Teller,
    begun: Instant,
    done: usize,
    of: usize,
    waiting: bool,
}

impl AbTeller {
    fn new(of: usize) -> Self {
        Self { teller: Teller::new(progress::line()), begun: Instant::now(), done: 0, of, waiting: false }
    }

    fn finish(&self) {
        self.teller.finish();
    }

    fn left(&self) -> Option<Duration> {
        let left = self.of.checked_sub(self.done)?;
        (self.done > 0).then(|| self.begun.elapsed() / self.done as u32 * left as u32)
    }
}

impl Listener for AbTeller {
    fn told(&mut self, event: &Event<'_>) {
        self.teller.told(event);
        match event {
            // Building is no measure for how long trials take.
            Event::Begun { index: 0, .. } => self.begun = Instant::now(),
            Event::Waiting { others_percent, waited } => {
                if !std::mem::replace(&mut self.waiting, true) {
                    self.teller.say(&format!(
                        "      waits up to {} s: others use {others_percent:.0} % of the processors (--no-wait begins at once)",
                        PATIENCE.as_secs()
                    ));
                }
                self.teller.set(&format!(
                    "others use {others_percent:.0} % of the processors, waited {:.0} s",
                    waited.as_secs_f64()
                ));
            }
            Event::Ended { .. } => {
                self.done += 1;
                self.waiting = false;
                if let Some(left) = self.left().filter(|left| !left.is_zero())
                    && (self.done == 2 || std::io::stderr().is_terminal())
                {
                    self.teller.say(&format!("      about {} left", rough(left)));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_told_roughly_and_never_too_short() {
        let told = |seconds: f64| rough(Duration::from_secs_f64(seconds));
        assert_eq!([told(0.2), told(90.0), told(91.0), told(5400.0)], ["1 s", "90 s", "2 min", "90 min"]);
        assert_eq!(told(7_260.0), "2 h 1 min");
    }
}

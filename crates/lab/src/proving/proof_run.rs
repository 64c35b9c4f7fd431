//! Runs all cases in all settings and ways.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use stepscope_analyze::proof::{Build, Case, ControlCase, Counted, Proof, gains};
use stepscope_analyze::{Owned, Ownership};
use stepscope_model::{Capture, Dimension, Phase, disk};
use stepscope_stats::SplitMix64;

use super::account::Account;
use super::evidence::{
    ACCOUNTS, CATALOGUE_FILE, CONTROL, Evidence, Setting, Way, counted, counts_of, differs, profile,
};
use super::{BuildKind, Catalogue, Control, ProvingError, Switch, builds, owned_code};
use crate::execution::Context;
use crate::lab_file::{FILE_NAME, LabFile, Point, Ready, Trial};
use crate::outcome::Outcome;
use crate::run::Run;

/// Fewest and most runs of a switch per round: four settings; recorded, timed and several times bare.
pub const RUNS_A_ROUND: [u32; 2] = [4 * (2 + BARE_EACH_ROUND), 4 * (2 + MOST_BARE_A_ROUND)];

/// What to run, and how many times.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Rounds: recorded runs and timed runs per setting. Bare runs are three times as many.
    pub runs: u32,
    /// Target duration of the steady phase.
    pub duration: Duration,
    /// Names of switches; all if empty.
    pub switches: Vec<String>,
    /// Builds to run.
    pub builds: BTreeSet<BuildKind>,
    /// Seed of the random orders.
    pub seed: u64,
}

/// The results.
pub struct ProofRun {
    /// The measurements.
    pub proof: Proof,
    /// The recordings.
    pub run: Run,
    /// Missing measurements, with reasons.
    pub missing: Vec<String>,
    /// Whether it was interrupted; earlier measurements are complete.
    pub interrupted: bool,
}

/// Bare runs per setting and round. They are short, and the difference of two settings varies most from run to run.
const BARE_EACH_ROUND: u32 = 3;

/// Bare runs continue until the standard error of each saving is at most this many percentage points, ...
const SETTLED_POINTS: f64 = 1.5;

/// ... or a setting has had this many per round on average.
const MOST_BARE_A_ROUND: u32 = 10;

/// Wall time of a run that only measures the step rate.
const PILOT: Duration = Duration::from_millis(400);

/// Duration of the warm-up in seconds, and its fewest and most steps.
const WARM_S: f64 = 0.3;
const WARM_STEPS: (f64, f64) = (5.0, 200.0);

/// Fewest steps of a run, and its longest duration as a multiple of the requested one.
const LEAST_STEPS: f64 = 20.0;
const MOST_TIMES: f64 = 2.0;

/// Duration in seconds of a run in which everything is counted, and its fewest and most steps.
const COUNTED_S: f64 = 1.5;
const COUNTED_STEPS: (f64, f64) = (20.0, 500.0);

/// Pause of the program before its steady phase, so that recording can start.
const PAUSE: Duration = Duration::from_millis(400);

/// Time limit for a scenario to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all cases into a new run below `runs`.
///
/// # Errors
/// If the program has no catalogue, or nothing can be written. Later failures are listed as missing.
pub fn prove(
    program: &Path,
    runs: &Path,
    options: &Options,
    context: &mut Context<'_>,
) -> Result<ProofRun, ProvingError> {
    let program =
        program.canonicalize().map_err(|source| ProvingError::Program { program: program.to_owned(), source })?;
    let catalogue = Catalogue::of(&program)?;
    let switches = catalogue.select(&options.switches)?;
    let lab = lab_file(&catalogue, &program, runs)?;
    let mut run = Run::create(runs, &lab, &[])?;
    let accounts = run.folder().join(ACCOUNTS);
    let made = fs::create_dir_all(&accounts).and_then(|()| accounts.canonicalize());
    // The program runs in another directory, so its paths must be absolute.
    let accounts = made.map_err(|source| ProvingError::File { path: accounts, source })?;
    catalogue.write(&accounts.join(CATALOGUE_FILE))?;
    let mut missing = Vec::new();
    let mut subjects = Vec::new();
    for &kind in &options.builds {
        match Subject::new(kind, &catalogue, &program, &accounts) {
            Ok(subject) => subjects.push(subject),
            Err(error) => missing.push(error.to_string()),
        }
    }
    let plan = Plan::of(&subjects, &switches, &catalogue, options, &lab, &mut run);
    let mut proving = Proving {
        options,
        accounts: &accounts,
        random: SplitMix64::new(options.seed),
        run: &mut run,
        context,
        plan,
        proof: Proof::default(),
        missing,
    };
    let interrupted = matches!(proving.everything(&subjects, &switches, &catalogue), Err(ProvingError::Interrupted));
    let (proof, missing) = (proving.proof, proving.missing);
    run.end()?;
    Ok(ProofRun { proof, run, missing, interrupted })
}

/// The lab file of the run, for later readers.
fn lab_file(catalogue: &Catalogue, program: &Path, runs: &Path) -> Result<LabFile, ProvingError> {
    // Strings and arrays of strings look the same in TOML and JSON.
    let (owned, command) = (serde_json::json!(catalogue.owned), serde_json::json!([program.display().to_string()]));
    let text = format!(
        "[project]\nname = \"proving ground\"\nowned = {{ namespaces = {owned} }}\n\n[scenario.proving]\n\
         command = {command}\n"
    );
    LabFile::parse(&runs.join(FILE_NAME), &text)
        .map_err(|error| ProvingError::Damaged { path: program.to_owned(), reason: error.to_string() })
}

/// A build and the ownership of its code.
struct Subject {
    program: PathBuf,
    build: Build,
    owned: Owned,
}

impl Subject {
    fn new(kind: BuildKind, catalogue: &Catalogue, program: &Path, folder: &Path) -> Result<Self, ProvingError> {
        let (program, build) = builds::make(kind, program, folder)?;
        // Without names, all code in the program's file counts as owned.
        let file = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let ownership = match kind {
            BuildKind::Plain => catalogue.ownership(),
            _ => Ownership { modules: vec![file], ..Ownership::default() },
        };
        let owned = owned_code(&ownership, &program)?;
        Ok(Self { program, build, owned })
    }

    /// A unique scenario name; for the plain build, the name of the switch.
    fn scenario(&self, name: &str) -> String {
        match self.build.shown {
            None => name.to_owned(),
            Some(_) => format!("{name}-{}", self.build.name),
        }
    }
}

/// The trials to record, in order.
struct Plan(VecDeque<(usize, Trial)>);

impl Plan {
    fn of(
        subjects: &[Subject],
        switches: &[&Switch],
        catalogue: &Catalogue,
        options: &Options,
        lab: &LabFile,
        run: &mut Run,
    ) -> Self {
        let template = &lab.scenarios[0];
        let mut planned = VecDeque::new();
        let mut add = |scenario: String, variant: &str, repetition: u32, with: &[Dimension]| {
            let mut scenario = crate::lab_file::Scenario { name: scenario, ..template.clone() };
            scenario.record.warmup = Duration::ZERO;
            scenario.record.loading_timeout = PATIENCE;
            scenario.record.dimensions.extend(with);
            let trial = Trial {
                scenario,
                variant: Some(variant.to_owned()),
                repetition: Some(repetition),
                point: Point::default(),
                source: None,
                checkout: None,
            };
            planned.push_back((run.plan(&trial), trial));
        };
        for subject in subjects {
            for switch in switches {
                for round in 1..=options.runs {
                    for setting in Setting::EACH {
                        add(subject.scenario(&switch.name), setting.name(), round, &[]);
                    }
                }
            }
            if subject.build.shown.is_some() {
                continue;
            }
            for control in catalogue.controls_for(switches) {
                (1..=options.runs).for_each(|round| add(control.name.clone(), CONTROL, round, &[]));
            }
            for switch in worlds(switches, catalogue) {
                add(counts_of(&switch.world), Setting::All.name(), 1, &[Dimension::Heap, Dimension::Syscalls]);
            }
        }
        Self(planned)
    }

    /// The next trial with this name. Others may precede it, because the order of settings is random.
    fn take(&mut self, scenario: &str, variant: &str) -> Option<(usize, Trial)> {
        let is_it =
            |(_, trial): &(usize, Trial)| trial.scenario.name == scenario && trial.variant.as_deref() == Some(variant);
        let place = self.0.iter().position(is_it)?;
        self.0.remove(place)
    }
}

/// The first switch in the catalogue of each world of these switches, so that a world's counts do not depend on the
/// chosen switches.
fn worlds<'c>(switches: &[&Switch], catalogue: &'c Catalogue) -> Vec<&'c Switch> {
    let mut wanted: BTreeSet<&str> = switches.iter().map(|switch| switch.world.as_str()).collect();
    catalogue.switches.iter().filter(|switch| wanted.remove(switch.world.as_str())).collect()
}

/// Numbers of steps of the runs of a case.
#[derive(Debug, Clone, Copy)]
struct Steps {
    warm: u64,
    alone: Pace,
    /// As for one switch alone, or more if those would end too early to be measured.
    fast: Pace,
    /// With all switches, and with all but one.
    all: Pace,
}

impl Steps {
    fn of(&self, setting: Setting) -> Pace {
        match setting {
            Setting::Alone => self.alone,
            Setting::Fast => self.fast,
            Setting::All | Setting::AllBut => self.all,
        }
    }
}

/// Number of measured steps of a setting, and its step rate.
#[derive(Debug, Clone, Copy)]
struct Pace {
    count: u64,
    per_second: f64,
}

impl Pace {
    /// Length of a recording that contains all steps even if the machine becomes slower.
    fn duration(&self) -> Duration {
        PAUSE + Duration::from_secs_f64(1.3 * self.count as f64 / self.per_second + 0.2)
    }
}

struct Proving<'a, 'b> {
    options: &'a Options,
    accounts: &'a Path,
    random: SplitMix64,
    run: &'a mut Run,
    context: &'a mut Context<'b>,
    plan: Plan,
    proof: Proof,
    missing: Vec<String>,
}

impl Proving<'_, '_> {
    fn everything(
        &mut self,
        subjects: &[Subject],
        switches: &[&Switch],
        catalogue: &Catalogue,
    ) -> Result<(), ProvingError> {
        for subject in subjects {
            for switch in switches {
                let case = self.case(subject, switch);
                if let Some(case) = self.kept(&switch.name, case)? {
                    self.proof.cases.push(case);
                }
            }
            if subject.build.shown.is_some() {
                continue;
            }
            for control in catalogue.controls_for(switches) {
                let case = self.control(subject, control);
                if let Some(case) = self.kept(&control.name, case)? {
                    self.proof.controls.push(case);
                }
            }
            for switch in worlds(switches, catalogue) {
                let counts = self.counts(subject, switch, catalogue);
                let counts = self.kept(&format!("counts of {}", switch.world), counts)?;
                self.proof.counts.extend(counts.into_iter().flatten());
            }
        }
        Ok(())
    }

    /// The measurements; missing ones are listed at the end.
    fn kept<T>(&mut self, name: &str, measured: Result<T, ProvingError>) -> Result<Option<T>, ProvingError> {
        match measured {
            Ok(measured) => Ok(Some(measured)),
            Err(ProvingError::Interrupted) => Err(ProvingError::Interrupted),
            Err(error) => {
                self.missing.push(format!("{name}: {error}"));
                Ok(None)
            }
        }
    }

    fn case(&mut self, subject: &Subject, switch: &Switch) -> Result<Case, ProvingError> {
        let steps = self.steps(subject, switch)?;
        let mut evidence = Evidence::new(switch, subject.build.clone());
        for round in 1..=self.options.runs {
            for (setting, way) in self.round() {
                self.one((subject, switch), (setting, way), round, steps, &mut evidence)?;
            }
        }
        // Builds without names have no requirements.
        if subject.build.shown.is_none() {
            self.settle((subject, switch), steps, &mut evidence)?;
        }
        self.missing.extend(evidence.differs().then(|| differs(switch)));
        Ok(evidence.case)
    }

    /// Every setting in every way, in random order.
    fn round(&mut self) -> Vec<(Setting, Way)> {
        let bare = (1..=BARE_EACH_ROUND).map(Way::Bare);
        let ways: Vec<Way> = [Way::Recorded, Way::Timed].into_iter().chain(bare).collect();
        let mut round: Vec<_> =
            Setting::EACH.iter().flat_map(|&setting| ways.iter().map(move |&way| (setting, way))).collect();
        self.random.shuffle(&mut round);
        round
    }

    /// Bare runs with and without each fix, until the saving is precise enough.
    fn settle(&mut self, of: (&Subject, &Switch), steps: Steps, evidence: &mut Evidence) -> Result<(), ProvingError> {
        let most = MOST_BARE_A_ROUND * self.options.runs;
        for sides in [[Setting::Alone, Setting::Fast], [Setting::All, Setting::AllBut]] {
            let is_open = |case: &Case| {
                gains(case).iter().any(|gain| gain.setting == sides[0].name() && gain.ablation_se > SETTLED_POINTS)
            };
            let mut index = BARE_EACH_ROUND * self.options.runs;
            while index < most && is_open(&evidence.case) {
                index += 1;
                let mut sides = sides;
                self.random.shuffle(&mut sides);
                for setting in sides {
                    self.one(of, (setting, Way::Bare(index)), self.options.runs, steps, evidence)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a case once and adds the result to the evidence.
    fn one(
        &mut self,
        (subject, switch): (&Subject, &Switch),
        (setting, way): (Setting, Way),
        round: u32,
        steps: Steps,
        evidence: &mut Evidence,
    ) -> Result<(), ProvingError> {
        let phase = evidence.case.known.phase;
        let pace = steps.of(setting);
        let scenario = subject.scenario(&switch.name);
        let mut arguments = switch.arguments.clone();
        arguments.extend(["--slow".to_owned(), setting.slow(&switch.name)]);
        for (option, steps) in [("--warm-steps", steps.warm), ("--steps", steps.warm + pace.count)] {
            // Loading ends with the first step, which is the last.
            let steps = if phase == Phase::Loading { 1 } else { steps };
            arguments.extend([option.to_owned(), steps.to_string()]);
        }
        let file = self.accounts.join(way.file(&scenario, setting, round));
        let mut profiled = None;
        let account = match way {
            Way::Bare(_) => self.account(&subject.program, arguments, &file)?,
            Way::Timed => {
                arguments.push("--scopes".to_owned());
                self.account(&subject.program, arguments, &file)?
            }
            Way::Recorded => {
                arguments.extend(["--linger".to_owned(), "--pause".to_owned(), PAUSE.as_secs_f64().to_string()]);
                let name = [scenario.as_str(), setting.name()];
                let (capture, account) = self.record(subject, name, (phase, pace.duration()), arguments, &file)?;
                profiled = Some(profile(&capture, &subject.owned));
                account
            }
        };
        evidence.add(setting, way, &account, profiled);
        Ok(())
    }

    /// Determines the number of measured steps from the step rate.
    fn steps(&mut self, subject: &Subject, switch: &Switch) -> Result<Steps, ProvingError> {
        if switch.known().phase == Phase::Loading {
            let once = Pace { count: 1, per_second: 1.0 };
            return Ok(Steps { warm: 1, alone: once, fast: once, all: once });
        }
        let mut rate = |setting: Setting| self.rate(subject, switch, setting);
        let (alone, fast, all) = (rate(Setting::Alone)?, rate(Setting::Fast)?, rate(Setting::All)?);
        let seconds = self.options.duration.as_secs_f64();
        // Enough for the fast way to be measurable, within the time limit of the slow way.
        let both = (seconds * alone).max(0.4 * seconds * fast).min(MOST_TIMES * seconds * alone).max(LEAST_STEPS);
        let pace = |count: f64, per_second| Pace { count: count as u64, per_second };
        Ok(Steps {
            warm: (WARM_S * all).clamp(WARM_STEPS.0, WARM_STEPS.1) as u64,
            alone: pace(both, alone),
            fast: pace(both.max(0.4 * seconds * fast), fast),
            all: pace(both.min(MOST_TIMES * seconds * all).max(LEAST_STEPS), all),
        })
    }

    /// Steps per second.
    fn rate(&mut self, subject: &Subject, switch: &Switch, setting: Setting) -> Result<f64, ProvingError> {
        let mut arguments = switch.arguments.clone();
        arguments.extend(["--slow".to_owned(), setting.slow(&switch.name)]);
        arguments.extend(["--seconds".to_owned(), PILOT.as_secs_f64().to_string()]);
        let truth = self.account(&subject.program, arguments, &self.accounts.join("pilot.json"))?.truth(Phase::Steady);
        Ok(1e9 * truth.steps.max(1.0) / truth.wall_ns)
    }

    /// Runs the program without recording.
    fn account(&mut self, program: &Path, arguments: Vec<String>, file: &Path) -> Result<Account, ProvingError> {
        if self.context.interrupt.load(Ordering::Relaxed) {
            return Err(ProvingError::Interrupted);
        }
        let mut command = Command::new(program);
        command.args(&arguments).arg("--account").arg(file).stdin(Stdio::null());
        let output =
            command.output().map_err(|source| ProvingError::Program { program: program.to_owned(), source })?;
        // Ctrl-C reaches the program, too.
        if self.context.interrupt.load(Ordering::Relaxed) {
            return Err(ProvingError::Interrupted);
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(ProvingError::Failed {
                program: program.to_owned(),
                arguments: arguments.join(" "),
                status: output.status,
                said: said.trim().lines().last().unwrap_or_default().to_owned(),
            });
        }
        Account::read(file)
    }

    /// Records the program's steady phase.
    fn record(
        &mut self,
        subject: &Subject,
        [scenario, variant]: [&str; 2],
        (phase, duration): (Phase, Duration),
        arguments: Vec<String>,
        file: &Path,
    ) -> Result<(Capture, Account), ProvingError> {
        let (index, mut trial) = self.plan.take(scenario, variant).expect("everything that is recorded was planned");
        let ready = file.with_extension("ready");
        let account = ["--account", "--ready-file"].into_iter().zip([file, &ready]);
        let account = account.flat_map(|(option, path)| [option.to_owned(), path.display().to_string()]);
        let program = [subject.program.display().to_string()];
        trial.scenario.command = program.into_iter().chain(arguments).chain(account).collect();
        trial.scenario.record.phases = vec![phase];
        trial.scenario.record.duration = duration;
        trial.scenario.ready = Some(Ready::File(ready.clone()));
        self.run.record_trial(index, &trial, None, self.context)?;
        let _ = fs::remove_file(&ready);
        match &self.run.trials()[index].result {
            Outcome::Recorded => {}
            Outcome::Interrupted => return Err(ProvingError::Interrupted),
            Outcome::Failed(failure) => {
                let (trial, outcome) = (trial.label(), failure.reason.clone());
                return Err(ProvingError::NotRecorded { trial, outcome });
            }
            Outcome::NotRun => {
                return Err(ProvingError::NotRecorded { trial: trial.label(), outcome: "it was not run".to_owned() });
            }
        }
        let capture = disk::read(&self.run.folder().join(trial.folder()).join(phase.to_string()))?;
        Ok((capture, Account::read(file)?))
    }

    fn control(&mut self, subject: &Subject, control: &Control) -> Result<ControlCase, ProvingError> {
        let mut profiles = Vec::new();
        for round in 1..=self.options.runs {
            let file = self.accounts.join(format!("{}-{round}.json", control.name));
            let mut arguments = control.arguments.clone();
            arguments.extend(["--warm-steps".to_owned(), WARM_STEPS.0.to_string()]);
            let (name, what) = ([control.name.as_str(), CONTROL], (Phase::Steady, self.options.duration));
            let (capture, _) = self.record(subject, name, what, arguments, &file)?;
            profiles.push(profile(&capture, &subject.owned));
        }
        let (name, why, silent) = (control.name.clone(), control.why.clone(), control.silent.clone());
        Ok(ControlCase { name, why, silent, profiles })
    }

    /// Records a run from its first instruction to its last step.
    fn counts(
        &mut self,
        subject: &Subject,
        switch: &Switch,
        catalogue: &Catalogue,
    ) -> Result<Vec<Counted>, ProvingError> {
        let rate = self.rate(subject, switch, Setting::All)?;
        let steps = (COUNTED_S * rate).clamp(COUNTED_STEPS.0, COUNTED_STEPS.1) as u64;
        let name = counts_of(&switch.world);
        let mut arguments = switch.arguments.clone();
        arguments.extend(["--slow", "all", "--linger", "--allocations"].map(str::to_owned));
        for option in ["--steps", "--warm-steps"] {
            arguments.extend([option.to_owned(), steps.to_string()]);
        }
        let file = self.accounts.join(format!("{name}.json"));
        let what = (Phase::Loading, self.options.duration);
        let (capture, account) = self.record(subject, [&name, Setting::All.name()], what, arguments, &file)?;
        Ok(counted(&switch.world, &capture, &account, catalogue))
    }
}

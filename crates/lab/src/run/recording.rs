//! Creating a run: its folder, its trials in order, and `run.json`, which is kept up to date.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use stepscope_model::output_file::write_durably;
use stepscope_record::proc::ProcessSelection;
use stepscope_record::{clock, machine};

use super::folder::{LATEST, RUN_FILE, Run, RunError, io_error};
use super::info::{AbInfo, RunInfo, SCHEMA, SET_ASIDE, SweepInfo, TrialInfo};
use crate::checkout::Checkouts;
use crate::conditions::{Before, During};
use crate::event::Event;
use crate::execution::{Context, execute};
use crate::lab_file::{FILE_NAME, LabFile, Trial};
use crate::outcome::Outcome;
use crate::revision::WorkingTree;

impl TrialInfo {
    fn planned(trial: &Trial) -> Self {
        let scenario = &trial.scenario;
        Self {
            scenario: scenario.name.clone(),
            variant: trial.variant.clone(),
            repetition: trial.repetition,
            sweep: trial.point.axes(),
            revision: trial.checkout.as_ref().map(|checkout| checkout.commit.clone()),
            node: None,
            axis: scenario.axis.clone(),
            command: scenario.command.clone(),
            attached: scenario
                .attach
                .as_ref()
                .map(|attach| ProcessSelection::from(attach).arguments())
                .unwrap_or_default(),
            cwd: scenario.cwd.display().to_string(),
            env: scenario.env.clone(),
            drivers: scenario.drivers.iter().map(|driver| driver.command.clone()).collect(),
            result: Outcome::NotRun,
            ready_after_ns: None,
            ready_by: None,
            captured: Vec::new(),
            before: None,
            during: During::default(),
            disturbed: None,
            set_aside: None,
            notes: Vec::new(),
        }
    }
}

impl Run {
    /// Creates the folder of a new run below `runs`, named by the time, and links `latest` to it.
    ///
    /// # Errors
    /// [`RunError::Io`]
    pub fn create(runs: &Path, lab: &LabFile, trials: &[Trial]) -> Result<Self, RunError> {
        fs::create_dir_all(runs).map_err(io_error(runs))?;
        let started_at = clock::utc_now();
        let folder = create_unused(runs, &clock::utc_file_name())?;
        let copy = folder.join(FILE_NAME);
        write_durably(&copy, lab.text.as_bytes()).map_err(io_error(&copy))?;
        let info = RunInfo {
            schema: SCHEMA,
            tool: concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: lab.name.clone(),
            // TOML cannot hold a path that is not UTF-8. Then the copy's own folder is its base.
            lab: lab.path.to_str().is_some().then(|| lab.path.clone()),
            ab: None,
            sweep: None,
            working_tree: WorkingTree::of(lab.folder()),
            started_at,
            ended_at: None,
            machine: Some(machine::describe()),
            trials: trials.iter().map(TrialInfo::planned).collect(),
        };
        let run = Self { folder, info: Some(info) };
        run.write_info()?;
        link_latest(runs, &run.folder);
        Ok(run)
    }

    pub(crate) fn write_info(&self) -> Result<(), RunError> {
        let path = self.folder.join(RUN_FILE);
        let text = serde_json::to_string_pretty(&self.info)
            .map_err(|error| RunError::Damaged { path: path.clone(), reason: error.to_string() })?;
        write_durably(&path, format!("{text}\n").as_bytes()).map_err(io_error(&path))
    }

    /// Runs the trials in order, each recorded into its folder. The others run even if one fails, but not after an interrupt.
    /// Revisions are built first. `run.json` is updated after each trial.
    ///
    /// # Errors
    /// If `run.json` cannot be written.
    pub fn record(&mut self, trials: &[Trial], context: &mut Context<'_>) -> Result<(), RunError> {
        let mut checkouts = Checkouts::default();
        let mut prepared = trials.to_vec();
        for (index, trial) in prepared.iter_mut().enumerate() {
            if let Err(error) = checkouts.prepare(trial, &self.folder, context) {
                self.trial_mut(index).result = error.outcome();
            }
        }
        for (index, trial) in prepared.iter().enumerate() {
            if context.interrupt.load(Ordering::Relaxed) {
                break;
            }
            if self.trials().get(index).is_some_and(|info| info.result == Outcome::NotRun) {
                self.record_trial(index, trial, None, context)?;
            } else {
                context.listener.notify(&Event::TrialStarted { trial, index, of: trials.len() });
                let outcome = &self.trials()[index].result;
                context.listener.notify(&Event::TrialEnded { trial, outcome, notes: &[] });
            }
        }
        self.end()
    }

    /// Runs the planned trial `index`.
    pub(crate) fn record_trial(
        &mut self,
        index: usize,
        trial: &Trial,
        before: Option<Before>,
        context: &mut Context<'_>,
    ) -> Result<(), RunError> {
        *self.trial_mut(index) = self.executed(index, trial, before, context);
        self.write_info()
    }

    /// Runs the planned trial `index`, and gives what became of it. The run is as it was.
    pub(crate) fn executed(
        &self,
        index: usize,
        trial: &Trial,
        before: Option<Before>,
        context: &mut Context<'_>,
    ) -> TrialInfo {
        context.listener.notify(&Event::TrialStarted { trial, index, of: self.trials().len() });
        let executed = execute(trial, &self.folder.join(trial.folder()), context);
        let ended = Event::TrialEnded { trial, outcome: &executed.outcome, notes: &executed.notes };
        context.listener.notify(&ended);
        let governor = self.info.as_ref().and_then(|info| info.machine.as_ref()?.governor.clone());
        // The executed command, with the paths of a checkout.
        let mut info = TrialInfo::planned(trial);
        info.result = executed.outcome;
        if let Some((after, by)) = executed.ready {
            info.ready_after_ns = u64::try_from(after.as_nanos()).ok();
            info.ready_by = Some(by);
        }
        info.captured = executed.captured;
        info.notes = executed.notes;
        info.during = executed.during;
        info.before = before;
        if let (Some(first), Some(now)) = (governor, info.before.as_ref().and_then(|before| before.governor.clone()))
            && first != now
        {
            info.notes.push(format!("The frequency governor was {now}, where it was {first} when the run began."));
        }
        info
    }

    /// Notes the end of the run in `run.json`.
    pub(crate) fn end(&mut self) -> Result<(), RunError> {
        if let Some(info) = &mut self.info {
            info.ended_at = Some(clock::utc_now());
        }
        self.write_info()
    }

    pub(crate) fn trial_mut(&mut self, index: usize) -> &mut TrialInfo {
        &mut self.info.as_mut().expect("a run that is made has a description").trials[index]
    }

    /// Notes why no run of a scenario's variant can start.
    pub(crate) fn cannot_run(&mut self, trial: &Trial, outcome: &Outcome) {
        let planned = self.info.iter_mut().flat_map(|info| &mut info.trials);
        let of_it = planned.filter(|info| info.scenario == trial.scenario.name && info.variant == trial.variant);
        of_it.for_each(|info| info.result = outcome.clone());
    }

    /// Plans another trial and returns its index.
    pub(crate) fn plan(&mut self, trial: &Trial) -> usize {
        let trials = &mut self.info.as_mut().expect("a run that is made has a description").trials;
        trials.push(TrialInfo::planned(trial));
        trials.len() - 1
    }

    /// Notes the comparison in `run.json`.
    pub(crate) fn compares(&mut self, ab: AbInfo) -> Result<(), RunError> {
        if let Some(info) = &mut self.info {
            info.ab = Some(ab);
        }
        self.write_info()
    }

    /// Says what is swept.
    pub(crate) fn sweeps(&mut self, sweep: SweepInfo) -> Result<(), RunError> {
        if let Some(info) = &mut self.info {
            info.sweep = Some(sweep);
        }
        self.write_info()
    }

    /// Forgets planned trials that were not run.
    pub(crate) fn forget_unrun(&mut self, forget: impl Fn(&TrialInfo) -> bool) -> Result<(), RunError> {
        if let Some(info) = &mut self.info {
            info.trials.retain(|trial| trial.result != Outcome::NotRun || !forget(trial));
        }
        self.write_info()
    }

    /// Excludes a trial from the comparison, with a reason.
    pub(crate) fn set_aside(&mut self, index: usize, why: String) -> Result<(), RunError> {
        let trial = &self.trials()[index];
        let from = self.folder.join(trial.first_folder());
        let to = self.folder.join(SET_ASIDE).join(trial.first_folder());
        if from.exists() {
            let parent = to.parent().unwrap_or(&self.folder);
            fs::create_dir_all(parent).map_err(io_error(parent))?;
            fs::rename(&from, &to).map_err(io_error(&to))?;
        }
        self.trial_mut(index).set_aside = Some(why);
        self.write_info()
    }
}

/// Creates `runs/name`, or the first of `runs/name-2`, `runs/name-3`, ... that does not exist. Runs never share a folder.
fn create_unused(runs: &Path, name: &str) -> Result<PathBuf, RunError> {
    let mut folder = runs.join(name);
    for number in 2.. {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder = runs.join(format!("{name}-{number}"))
            }
            Err(error) => return Err(io_error(&folder)(error)),
            Ok(()) => break,
        }
    }
    Ok(folder)
}

/// Links `latest` to a run, if possible: some file systems have no links, and a file of that name may exist.
fn link_latest(runs: &Path, folder: &Path) {
    let latest = runs.join(LATEST);
    if fs::symlink_metadata(&latest).is_ok_and(|metadata| !metadata.is_symlink()) {
        return;
    }
    let Some(name) = folder.file_name() else { return };
    let new = runs.join(format!(".{LATEST}-{}", std::process::id()));
    if symlink(name, &new).and_then(|()| fs::rename(&new, &latest)).is_err() {
        let _ = fs::remove_file(&new);
    }
}

//! Scores the files of an earlier run again, without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_analyze::Owned;
use stepscope_analyze::proof::{Case, ControlCase, Counted, Proof, Runs};
use stepscope_model::{Capture, Phase, disk};

use super::account::Account;
use super::evidence::{
    ACCOUNTS, CATALOGUE_FILE, CONTROL, Evidence, Setting, Way, counted, counts_of, differs, profile,
};
use super::{BuildKind, Catalogue, Control, ProofRun, ProvingError, Switch, builds, owned_code};
use crate::outcome::Outcome;
use crate::run::{Run, TrialInfo};

/// The measurements of an earlier run for these switches, or for all if none is named. Builds without names
/// are excluded, with a note.
///
/// # Errors
/// If the folder is not a run of `prove`, or lacks a requested switch. Unreadable files are listed as
/// missing.
pub fn again(folder: &Path, switches: &[String]) -> Result<ProofRun, ProvingError> {
    let run = Run::open(folder)?;
    let accounts = run.folder().join(ACCOUNTS);
    let not_proved = |source| ProvingError::NotProved { run: folder.to_owned(), source: Box::new(source) };
    let catalogue = Catalogue::read(&accounts.join(CATALOGUE_FILE)).map_err(not_proved)?;
    let owned = owned_code(&catalogue.ownership(), &accounts)?;
    let files = fs::read_dir(&accounts).map_err(|source| ProvingError::File { path: accounts.clone(), source })?;
    let files = files.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let (proof, missing) = {
        let mut kept = Kept { run: &run, accounts, files, owned, proof: Proof::default(), missing: Vec::new() };
        kept.everything(&catalogue, switches)?;
        (kept.proof, kept.missing)
    };
    Ok(ProofRun { proof, run, missing, interrupted: false })
}

/// The files of a run.
struct Kept<'a> {
    run: &'a Run,
    accounts: PathBuf,
    /// File names.
    files: BTreeSet<String>,
    owned: Owned,
    proof: Proof,
    missing: Vec<String>,
}

impl Kept<'_> {
    fn everything(&mut self, catalogue: &Catalogue, switches: &[String]) -> Result<(), ProvingError> {
        let asked = catalogue.select(switches)?;
        let recorded: BTreeSet<String> = self.trials().map(|trial| trial.scenario.clone()).collect();
        if let Some(asked) = switches.iter().find(|name| !recorded.contains(*name)) {
            let known = catalogue.switches.iter().map(|switch| switch.name.as_str());
            let known: Vec<&str> = known.filter(|name| recorded.contains(*name)).collect();
            return Err(ProvingError::Unknown { asked: asked.clone(), known: known.join(", ") });
        }
        for switch in asked.iter().filter(|switch| recorded.contains(&switch.name)) {
            let case = self.case(switch);
            let is_whole = |runs: &Runs| ![runs.recorded.len(), runs.timed.len(), runs.bare.len()].contains(&0);
            if [&case.alone, &case.fast, &case.all, &case.all_but].into_iter().all(is_whole) {
                self.proof.cases.push(case);
            } else {
                self.missing.push(format!("{}: not all of its settings were run in all ways", switch.name));
            }
        }
        for control in catalogue.controls_for(&asked).into_iter().filter(|one| recorded.contains(&one.name)) {
            let case = self.control(control);
            self.proof.controls.extend(case);
        }
        let worlds: BTreeSet<&str> = asked.iter().map(|switch| switch.world.as_str()).collect();
        for world in worlds.into_iter().filter(|world| recorded.contains(&counts_of(world))) {
            let counts = self.counts(world, catalogue);
            self.proof.counts.extend(counts);
        }
        for kind in [BuildKind::Renamed, BuildKind::Stripped] {
            let is_build = |name: &String| name.strip_suffix(kind.name()).is_some_and(|rest| rest.ends_with('-'));
            if recorded.iter().any(is_build) {
                self.missing.push(format!("the {} build: it is only scored when it is run", kind.name()));
            }
        }
        Ok(())
    }

    fn trials(&self) -> impl Iterator<Item = &TrialInfo> {
        let trials = self.run.info().into_iter().flat_map(|info| &info.trials);
        trials.filter(|trial| trial.result == Outcome::Recorded)
    }

    fn case(&mut self, switch: &Switch) -> Case {
        let mut evidence = Evidence::new(switch, builds::plain());
        let phase = evidence.case.known.phase;
        for setting in Setting::EACH {
            let captures = self.captures(&switch.name, setting.name(), phase);
            let runs: Vec<_> = self.files.iter().filter_map(|file| Way::of_file(file, &switch.name, setting)).collect();
            for (way, round) in runs {
                let file = self.accounts.join(way.file(&switch.name, setting, round));
                let Some(account) = self.readable(Account::read(&file)) else { continue };
                let profile = match way {
                    Way::Recorded => {
                        // The recording of an account without a capture failed.
                        let Some(capture) = captures.get(&round).and_then(|folder| self.capture(folder)) else {
                            continue;
                        };
                        Some(profile(&capture, &self.owned))
                    }
                    Way::Timed | Way::Bare(_) => None,
                };
                evidence.add(setting, way, &account, profile);
            }
        }
        self.missing.extend(evidence.differs().then(|| differs(switch)));
        evidence.case
    }

    /// `None` if no recording can be read; the reason is printed.
    fn control(&mut self, control: &Control) -> Option<ControlCase> {
        let mut profiles = Vec::new();
        for folder in self.captures(&control.name, CONTROL, Phase::Steady).values() {
            profiles.extend(self.capture(folder).map(|capture| profile(&capture, &self.owned)));
        }
        let (name, why, silent) = (control.name.clone(), control.why.clone(), control.silent.clone());
        (!profiles.is_empty()).then_some(ControlCase { name, why, silent, profiles })
    }

    fn counts(&mut self, world: &str, catalogue: &Catalogue) -> Vec<Counted> {
        let name = counts_of(world);
        let captures = self.captures(&name, Setting::All.name(), Phase::Loading);
        let Some(capture) = captures.values().next().and_then(|folder| self.capture(folder)) else { return Vec::new() };
        let account = self.readable(Account::read(&self.accounts.join(format!("{name}.json"))));
        account.map(|account| counted(world, &capture, &account, catalogue)).unwrap_or_default()
    }

    /// Folders of recordings by round.
    fn captures(&self, scenario: &str, variant: &str, phase: Phase) -> BTreeMap<u32, PathBuf> {
        let is_it = |trial: &&TrialInfo| trial.scenario == scenario && trial.variant.as_deref() == Some(variant);
        let folder = |trial: &TrialInfo| self.run.folder().join(trial.folder()).join(phase.to_string());
        self.trials().filter(is_it).filter_map(|trial| Some((trial.repetition?, folder(trial)))).collect()
    }

    fn capture(&mut self, folder: &Path) -> Option<Capture> {
        self.readable(disk::read(folder).map_err(ProvingError::from))
    }

    /// The readable measurements; the others are listed at the end.
    fn readable<T>(&mut self, read: Result<T, ProvingError>) -> Option<T> {
        read.map_err(|error| self.missing.push(error.to_string())).ok()
    }
}

//! [`Trial`]: one scenario in one variant, ready to be run.

use std::path::PathBuf;

use globset::{Glob, GlobMatcher};

use super::problem::did_you_mean;
use super::{BASE, LabFile, Scenario, Variant};

/// A scenario in a variant: what is launched, once, to record its phases.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The scenario, with the variant's command, directory and environment in place of its own.
    pub scenario: Scenario,
    /// The variant's name; absent where the lab file has no variants.
    pub variant: Option<String>,
}

impl Trial {
    /// `scenario`, or `scenario/variant`.
    pub fn label(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}/{variant}", self.scenario.name),
            None => self.scenario.name.clone(),
        }
    }

    /// Folder of its recordings inside a run: `scenario/variant`, where the only variant is called `base`.
    pub fn folder(&self) -> PathBuf {
        [self.scenario.name.as_str(), self.variant.as_deref().unwrap_or(BASE)].iter().collect()
    }
}

/// Which trials of a lab file to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of scenarios, or glob patterns over them. Empty: all.
    pub scenarios: Vec<String>,
    /// Names of variants, or glob patterns over them. Empty: all.
    pub variants: Vec<String>,
}

/// A selection that names what the lab file has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No name matches.
    #[error("the lab file has no {kind} `{asked}`{hint}")]
    Unknown {
        /// `scenario` or `variant`.
        kind: &'static str,
        /// What was asked for.
        asked: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// It is no pattern.
    #[error("`{asked}` is not a pattern: {reason}")]
    Pattern {
        /// What was asked for.
        asked: String,
        /// Why.
        reason: String,
    },
    /// Names match, but no scenario has a variant asked for.
    #[error("none of the scenarios asked for has a variant asked for: see `scenarios` in [variant.{variant}]")]
    Nothing {
        /// The first variant asked for.
        variant: String,
    },
}

impl LabFile {
    /// Every selected scenario in every selected variant, in the order of the file: for each scenario first as it is
    /// written (variant `base`, or the name of the variant that changes nothing), then in each variant.
    ///
    /// # Errors
    /// If the selection names a scenario or variant that does not exist, or leaves nothing to run.
    pub fn trials(&self, selection: &Selection) -> Result<Vec<Trial>, SelectionError> {
        let scenarios = self.scenarios.iter().map(|scenario| scenario.name.as_str());
        let scenarios = Patterns::of("scenario", &selection.scenarios, scenarios.collect())?;
        let unchanged = self.variants.iter().find(|variant| variant.changes_nothing());
        let base = unchanged.map_or(BASE, |variant| &variant.name);
        let variants = self.variants.iter().map(|variant| variant.name.as_str()).filter(|&name| name != base);
        let variants = Patterns::of("variant", &selection.variants, std::iter::once(base).chain(variants).collect())?;

        let mut trials = Vec::new();
        for scenario in self.scenarios.iter().filter(|scenario| scenarios.select(&scenario.name)) {
            if variants.select(base) {
                let variant = (!self.variants.is_empty()).then(|| base.to_owned());
                trials.push(Trial { scenario: scenario.clone(), variant });
            }
            let changed = self.variants.iter().filter(|variant| !variant.changes_nothing());
            let selected = changed.filter(|variant| variants.select(&variant.name) && variant.applies_to(scenario));
            trials.extend(selected.map(|variant| variant.of(scenario)));
        }
        match selection.variants.first() {
            Some(variant) if trials.is_empty() => Err(SelectionError::Nothing { variant: variant.clone() }),
            _ => Ok(trials),
        }
    }
}

impl Variant {
    fn applies_to(&self, scenario: &Scenario) -> bool {
        self.scenarios.as_ref().is_none_or(|names| names.contains(&scenario.name))
    }

    fn of(&self, scenario: &Scenario) -> Trial {
        let mut scenario = scenario.clone();
        scenario.env.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(command) = &self.command {
            scenario.command.clone_from(command);
        }
        if let Some(cwd) = &self.cwd {
            scenario.cwd.clone_from(cwd);
        }
        Trial { scenario, variant: Some(self.name.clone()) }
    }
}

/// Names asked for, each known to match something. None at all selects everything.
struct Patterns(Vec<GlobMatcher>);

impl Patterns {
    fn of(kind: &'static str, asked: &[String], known: Vec<&str>) -> Result<Self, SelectionError> {
        let mut patterns = Vec::new();
        for asked in asked {
            let pattern = |error: globset::Error| SelectionError::Pattern {
                asked: asked.clone(),
                reason: error.kind().to_string(),
            };
            let glob = Glob::new(asked).map_err(pattern)?.compile_matcher();
            if !known.iter().any(|name| glob.is_match(name)) {
                let nearest = did_you_mean(asked, known.iter().copied());
                let hint = if nearest.is_empty() { format!("; it has `{}`", known.join("`, `")) } else { nearest };
                return Err(SelectionError::Unknown { kind, asked: asked.clone(), hint });
            }
            patterns.push(glob);
        }
        Ok(Self(patterns))
    }

    fn select(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

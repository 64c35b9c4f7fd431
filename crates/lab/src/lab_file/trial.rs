//! [`Trial`]: a scenario in a variant. [`Pairs`]: scenarios in two variants, for a comparison.

use std::path::PathBuf;

use globset::{Glob, GlobMatcher};
use stepscope_model::{Dimension, Phase};

use super::problem::did_you_mean;
use super::settings::{BASE, LabFile, Scenario, Source, Variant};
use super::sweep::Point;
use crate::revision::Checkout;

/// A scenario in a variant, launched once to record its phases.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The scenario, with the variant's command, directory and environment in place of its own.
    pub scenario: Scenario,
    /// The variant's name; absent without variants in the lab file.
    pub variant: Option<String>,
    /// Number of the repetition, from 1; absent without repetitions.
    pub repetition: Option<u32>,
    /// Where it lies on the axes of a sweep.
    pub point: Point,
    /// The revision of its files. It must be [built](crate::checkout) before the trial runs.
    pub source: Option<Source>,
    /// Place of these files, once they are built.
    pub checkout: Option<Checkout>,
}

impl Trial {
    fn of(scenario: Scenario, variant: Option<String>) -> Self {
        Self { scenario, variant, repetition: None, point: Point::default(), source: None, checkout: None }
    }

    /// The trial at a point of a sweep, which becomes a part of its variant.
    pub fn at(&self, point: &Point) -> Self {
        let mut trial = self.clone();
        trial.scenario.fill_in(point);
        let name = point.name();
        trial.variant = Some(match trial.variant {
            Some(variant) => format!("{variant}+{name}"),
            None => name,
        });
        trial.point = point.clone();
        trial
    }

    /// `scenario`, or `scenario/variant`, and with repetitions `scenario/variant #3`.
    pub fn label(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!("/{variant}")).unwrap_or_default();
        let repetition = self.repetition.map(|number| format!(" #{number}")).unwrap_or_default();
        format!("{}{variant}{repetition}", self.scenario.name)
    }

    /// The variant's name; `base` without variants in the lab file.
    pub fn variant_name(&self) -> &str {
        self.variant.as_deref().unwrap_or(BASE)
    }

    /// Folder of its recordings inside a run: `scenario/variant`, and with repetitions `scenario/variant/03`.
    pub fn folder(&self) -> PathBuf {
        let folder: PathBuf = [self.scenario.name.as_str(), self.variant_name()].iter().collect();
        match self.repetition {
            Some(number) => folder.join(format!("{number:02}")),
            None => folder,
        }
    }
}

/// Scenarios, each in the two variants that are compared.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// The baseline.
    pub baseline: String,
    /// The variant under test.
    pub candidate: String,
    /// The scenarios that have both, in the order of the file. Never empty.
    pub pairs: Vec<Pair>,
    /// Names of selected scenarios that lack a variant.
    pub left_out: Vec<String>,
}

/// A scenario in both variants.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The baseline.
    pub baseline: Trial,
    /// The trial under test.
    pub candidate: Trial,
}

/// Which trials of a lab file to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialFilter {
    /// Names of scenarios, or glob patterns over them. Empty: all.
    pub scenarios: Vec<String>,
    /// Names of variants, or glob patterns over them. Empty: all.
    pub variants: Vec<String>,
}

/// The selected trials do not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialFilterError {
    /// No name matches.
    #[error("the lab file has no {kind} `{asked}`{hint}")]
    Unknown {
        /// `scenario` or `variant`.
        kind: &'static str,
        /// The request.
        asked: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The pattern is invalid.
    #[error("`{asked}` is not a pattern: {reason}")]
    Pattern {
        /// The request.
        asked: String,
        /// Why.
        reason: String,
    },
    /// The variants to compare are not named.
    #[error(
        "which variant is the {side}? Use --{side} NAME, or `{side} = \"NAME\"` in [ab]; the lab file has `{known}`"
    )]
    Unsaid {
        /// `baseline` or `candidate`.
        side: &'static str,
        /// The existing variants.
        known: String,
    },
    /// A variant cannot be compared with itself.
    #[error("`{variant}` is both baseline and candidate: compare it with another variant{hint}")]
    Itself {
        /// The variant.
        variant: String,
        /// The others.
        hint: String,
    },
    /// The lab file has one variant only.
    #[error(
        "the lab file has no variants to compare: add one, e.g. [variant.after] with env, program, folders or revision"
    )]
    NoVariants,
    /// No scenario has both variants.
    #[error(
        "no selected scenario has both variants, `{baseline}` and `{candidate}`: see `scenarios` in [variant.NAME]"
    )]
    NoPair {
        /// The baseline.
        baseline: String,
        /// The variant under test.
        candidate: String,
    },
    /// No selected scenario has a selected variant.
    #[error("no selected scenario has a selected variant: see `scenarios` in [variant.{variant}]")]
    Nothing {
        /// The first selected variant.
        variant: String,
    },
}

impl LabFile {
    /// Every selected scenario in every selected variant, at the smallest size of `[sweep]`, in
    /// the order of the file. Each scenario is first unchanged (variant
    /// `base`, or the variant that changes nothing), then in each variant.
    ///
    /// # Errors
    /// If the selection names a scenario or variant that does not exist, or leaves nothing to run.
    pub fn trials(&self, selection: &TrialFilter) -> Result<Vec<Trial>, TrialFilterError> {
        let mut trials = self.trials_as_written(selection)?;
        if let Some(first) = self.sweep.first() {
            for trial in &mut trials {
                trial.scenario.fill_in(&first);
                trial.point = first.clone();
            }
        }
        Ok(trials)
    }

    /// The same with the placeholders of `[sweep]`.
    pub(crate) fn trials_as_written(&self, selection: &TrialFilter) -> Result<Vec<Trial>, TrialFilterError> {
        let scenarios = self.scenarios.iter().map(|scenario| scenario.name.as_str());
        let scenarios = Patterns::of("scenario", &selection.scenarios, scenarios.collect())?;
        let base = self.unchanged();
        let variants = self.variants.iter().map(|variant| variant.name.as_str()).filter(|&name| name != base);
        let variants = Patterns::of("variant", &selection.variants, std::iter::once(base).chain(variants).collect())?;

        let mut trials = Vec::new();
        for scenario in self.scenarios.iter().filter(|scenario| scenarios.select(&scenario.name)) {
            if variants.select(base) {
                let variant = (!self.variants.is_empty()).then(|| base.to_owned());
                trials.push(Trial::of(scenario.clone(), variant));
            }
            let changed = self.variants.iter().filter(|variant| !variant.changes_nothing());
            let selected = changed.filter(|variant| variants.select(&variant.name) && variant.applies_to(scenario));
            trials.extend(selected.map(|variant| variant.of(scenario)));
        }
        match selection.variants.first() {
            Some(variant) if trials.is_empty() => Err(TrialFilterError::Nothing { variant: variant.clone() }),
            _ => Ok(trials),
        }
    }

    /// Every selected scenario that has both variants, in the order of the file. Variants that are not given are those of
    /// `[ab]`; by default, the baseline is the unchanged scenario and the candidate the only other variant.
    ///
    /// # Errors
    /// If the variants to compare are not named, do not exist, or no scenario has both.
    pub fn pairs(
        &self,
        baseline: Option<&str>,
        candidate: Option<&str>,
        scenarios: &[String],
    ) -> Result<Pairs, TrialFilterError> {
        let unchanged = self.unchanged();
        let changed = self.variants.iter().filter(|variant| !variant.changes_nothing());
        let changed: Vec<&str> = changed.map(|variant| variant.name.as_str()).collect();
        if changed.is_empty() {
            return Err(TrialFilterError::NoVariants);
        }
        let known: Vec<&str> = std::iter::once(unchanged).chain(changed.iter().copied()).collect();
        let named = |asked: Option<&str>| match asked {
            Some(name) if !known.contains(&name) => Err(unknown("variant", name, &known)),
            asked => Ok(asked.map(str::to_owned)),
        };
        let baseline = named(baseline.or(self.ab.baseline.as_deref()))?;
        let candidate = named(candidate.or(self.ab.candidate.as_deref()))?;
        let baseline = baseline.unwrap_or_else(|| unchanged.to_owned());
        let other = || match changed.iter().filter(|name| **name != baseline).collect::<Vec<_>>()[..] {
            [only] => Ok((*only).to_owned()),
            _ => Err(TrialFilterError::Unsaid { side: "candidate", known: known.join("`, `") }),
        };
        let candidate = candidate.map_or_else(other, Ok)?;
        if baseline == candidate {
            let others: Vec<&str> = known.into_iter().filter(|name| *name != baseline).collect();
            let hint = format!(", `{}`", others.join("` or `"));
            return Err(TrialFilterError::Itself { variant: baseline, hint });
        }

        let scenarios = TrialFilter { scenarios: scenarios.to_owned(), ..TrialFilter::default() };
        let mut pairs = Vec::new();
        let mut left_out = Vec::new();
        let mut trials = self.trials(&scenarios)?;
        for scenario in &self.scenarios {
            let mut take = |variant: &str| {
                let wanted = |trial: &Trial| trial.scenario.name == scenario.name && trial.variant_name() == variant;
                trials.iter().position(wanted).map(|index| trials.swap_remove(index))
            };
            match (take(&baseline), take(&candidate)) {
                (Some(baseline), Some(candidate)) => pairs.push(Pair { baseline, candidate }),
                (None, None) => {}
                _ => left_out.push(scenario.name.clone()),
            }
        }
        if pairs.is_empty() {
            return Err(TrialFilterError::NoPair { baseline, candidate });
        }
        Ok(Pairs { baseline, candidate, pairs, left_out })
    }

    /// Name of the variant that changes nothing.
    fn unchanged(&self) -> &str {
        let unchanged = self.variants.iter().find(|variant| variant.changes_nothing());
        unchanged.map_or(BASE, |variant| &variant.name)
    }
}

fn unknown(kind: &'static str, asked: &str, known: &[&str]) -> TrialFilterError {
    let nearest = did_you_mean(asked, known.iter().copied());
    let hint = if nearest.is_empty() { format!("; it has `{}`", known.join("`, `")) } else { nearest };
    TrialFilterError::Unknown { kind, asked: asked.to_owned(), hint }
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
        if let Some(attach) = &self.attach {
            scenario.attach = Some(attach.clone());
            // What already runs has no loading phase.
            scenario.record.phases = vec![Phase::Steady];
        }
        if let (Some(program), Some(first)) = (&self.program, scenario.command.first_mut()) {
            first.clone_from(program);
        }
        if let Some(cwd) = &self.cwd {
            scenario.cwd.clone_from(cwd);
        }
        if let Some(step) = &self.step {
            scenario.step = Some(step.clone());
            if !scenario.record.dimensions.contains(&Dimension::Steps) {
                scenario.record.dimensions.push(Dimension::Steps);
            }
        }
        scenario.relocate(&self.folders);
        Trial { source: self.source.clone(), ..Trial::of(scenario, Some(self.name.clone())) }
    }
}

/// Selected names, each of which matches something. None selects everything.
struct Patterns(Vec<GlobMatcher>);

impl Patterns {
    fn of(kind: &'static str, asked: &[String], known: Vec<&str>) -> Result<Self, TrialFilterError> {
        let mut patterns = Vec::new();
        for asked in asked {
            let pattern = |error: globset::Error| TrialFilterError::Pattern {
                asked: asked.clone(),
                reason: error.kind().to_string(),
            };
            let glob = Glob::new(asked).map_err(pattern)?.compile_matcher();
            if !known.iter().any(|name| glob.is_match(name)) {
                return Err(unknown(kind, asked, &known));
            }
            patterns.push(glob);
        }
        Ok(Self(patterns))
    }

    fn select(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

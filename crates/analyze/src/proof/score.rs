//! What is recorded, less what is true.

use std::collections::BTreeSet;

use super::{
    COARSE_NS, Case, Known, LEAST_SHARE_PERCENT, Profile, Proof, Runs, SHARE_TOLERANCE, SILENT_PERCENT, Saves, Truth,
};

/// A function's share, recorded and true.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// `alone`, `fast` or `all`.
    pub setting: &'static str,
    /// The function, as the sources name it.
    pub function: String,
    /// By the program's own clock, percent of CPU time.
    pub truth: f64,
    /// As recorded, likewise.
    pub recorded: f64,
    /// How far off it may be, points.
    pub tolerance: f64,
    /// Mean CPU time of a call, ns.
    pub call_ns: f64,
}

impl Share {
    /// Points that it is off by.
    pub fn error(&self) -> f64 {
        self.recorded - self.truth
    }

    /// Whether it is right.
    pub fn holds(&self) -> bool {
        self.error().abs() <= self.tolerance
    }
}

/// The shares of a case that are scored.
pub fn shares(case: &Case) -> Vec<Share> {
    let settings = [("alone", &case.alone), ("fast", &case.fast), ("all", &case.all)];
    settings.into_iter().flat_map(|(setting, runs)| shares_of(case, setting, runs)).collect()
}

fn shares_of(case: &Case, setting: &'static str, runs: &Runs) -> Vec<Share> {
    if runs.profiles.is_empty() {
        return Vec::new();
    }
    let functions: BTreeSet<&String> = runs.timed.iter().flat_map(|truth| truth.functions.keys()).collect();
    let share = |function: &&String| {
        let (mut truths, mut calls, mut ns) = (Vec::new(), 0, 0.0);
        for truth in &runs.timed {
            let timed = truth.functions.get(*function).copied().unwrap_or_default();
            truths.push(100.0 * timed.cpu_ns / truth.cpu_ns);
            calls += timed.calls;
            ns += timed.cpu_ns;
        }
        let names = case.build.names(function);
        let recorded: Vec<f64> = runs.profiles.iter().map(|profile| profile.share_percent(&names)).collect();
        let samples: u64 = runs.profiles.iter().map(|profile| profile.samples).sum();
        let part = mean(&recorded) / 100.0;
        let drawn = 1e4 * part * (1.0 - part) / samples.max(1) as f64;
        let scatter = variance_of_mean(&recorded).max(drawn) + variance_of_mean(&truths);
        Share {
            setting,
            function: (*function).clone(),
            truth: mean(&truths),
            recorded: mean(&recorded),
            tolerance: (3.0 * scatter.sqrt()).max(SHARE_TOLERANCE),
            call_ns: ns / calls.max(1) as f64,
        }
    };
    let scored = |share: &Share| share.call_ns >= COARSE_NS && share.truth >= LEAST_SHARE_PERCENT;
    functions.iter().map(share).filter(scored).collect()
}

/// What a fix saves, in percent of what it is saved from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// `alone` or `all`: what else is slow.
    pub setting: &'static str,
    /// What the profile says.
    pub predicted: f64,
    /// What leaving it out saves, of bare runs.
    pub ablation: f64,
    /// Standard error of that.
    pub ablation_se: f64,
}

impl Gain {
    /// Points that the profile is off by.
    pub fn error(&self) -> f64 {
        self.predicted - self.ablation
    }
}

/// The gains of a case. Empty where it has no bare runs.
pub fn gains(case: &Case) -> Vec<Gain> {
    let alone = gain(case, "alone", &case.alone, &case.fast.bare);
    alone.into_iter().chain(gain(case, "all", &case.all, &case.all_but)).collect()
}

fn gain(case: &Case, setting: &'static str, slow: &Runs, without: &[Truth]) -> Option<Gain> {
    let recorded = [&slow.profiles, &case.fast.profiles];
    if slow.bare.is_empty() || without.is_empty() || recorded.iter().any(|profiles| profiles.is_empty()) {
        return None;
    }
    let cost = match case.known.saves {
        Saves::Cpu => Truth::cpu_per_step,
        Saves::Wall => Truth::wall_per_step,
    };
    let costs = |runs: &[Truth]| runs.iter().map(cost).collect::<Vec<f64>>();
    let (with, without) = (costs(&slow.bare), costs(without));
    let ratio = mean(&without) / mean(&with);
    let relative = variance_of_mean(&with) / mean(&with).powi(2) + variance_of_mean(&without) / mean(&without).powi(2);
    Some(Gain {
        setting,
        predicted: predicted(case, &slow.profiles),
        ablation: 100.0 * (1.0 - ratio),
        ablation_se: 100.0 * ratio * relative.sqrt(),
    })
}

/// What the seam costs more than in the fast setting, of all that a step costs. Without a seam, the slow way itself.
fn predicted(case: &Case, slow: &[Profile]) -> f64 {
    let names = case.build.names(case.known.seam.as_ref().unwrap_or(&case.known.function));
    let of =
        |profiles: &[Profile], cost: &dyn Fn(&Profile) -> f64| mean(&profiles.iter().map(cost).collect::<Vec<_>>());
    let (part, whole): (&dyn Fn(&Profile) -> f64, &dyn Fn(&Profile) -> f64) = match case.known.saves {
        Saves::Cpu => (&|profile| profile.inclusive_per_step(&names), &|profile| profile.total_per_step()),
        Saves::Wall => (&|profile| profile.on_path(&names), &|profile| profile.step_ns),
    };
    100.0 * (of(slow, part) - of(&case.fast.profiles, part)) / of(slow, whole)
}

/// The worst place of the case's guilty functions over its recordings; `None` if one of these does not rank them.
pub(super) fn place(case: &Case) -> Option<usize> {
    let names: Vec<&str> = case.known.guilty.iter().flat_map(|function| case.build.names(function)).collect();
    case.alone.profiles.iter().map(|profile| profile.place(&names)).try_fold(0, |worst, place| Some(worst.max(place?)))
}

/// The recorded share of the slow way with this switch alone, percent of CPU time.
pub(super) fn slow_share(case: &Case) -> f64 {
    share_in(&case.alone.profiles, &case.build.names(&case.known.function))
}

/// A slow way's share where it should have none.
#[derive(Debug, Clone, PartialEq)]
pub struct Silence {
    /// The setting or control.
    pub of: String,
    /// The function.
    pub function: String,
    /// Percent of CPU time, or of the critical path if that is more.
    pub share: f64,
}

impl Silence {
    /// Whether it is silent.
    pub fn holds(&self) -> bool {
        self.share < SILENT_PERCENT
    }
}

/// Everything that must be silent.
pub fn silences(proof: &Proof) -> Vec<Silence> {
    let mut found: Vec<Silence> = Vec::new();
    for case in &proof.cases {
        let slow_ways =
            proof.cases.iter().filter(|other| other.build == case.build && other.known.phase == case.known.phase);
        for other in slow_ways.filter(|other| has_own_slow_way(&other.known)) {
            let share = share_in(&case.fast.profiles, &case.build.names(&other.known.function));
            found.push(Silence {
                of: format!("{} fast", case.known.name),
                function: other.known.function.clone(),
                share,
            });
        }
    }
    for control in &proof.controls {
        let slow_ways = proof.cases.iter().filter(|case| has_own_slow_way(&case.known));
        for case in slow_ways.filter(|case| case.build.shown.is_none()) {
            let share = share_in(&control.profiles, &[&case.known.function]);
            found.push(Silence { of: control.name.clone(), function: case.known.function.clone(), share });
        }
        for function in &control.silent {
            let on_path = mean(
                &control.profiles.iter().map(|one| 100.0 * one.on_path(&[function]) / one.step_ns).collect::<Vec<_>>(),
            );
            let share = share_in(&control.profiles, &[function]).max(on_path);
            found.push(Silence { of: control.name.clone(), function: function.clone(), share });
        }
    }
    found
}

/// Whether the slow way is a function that the fast way does not pass through.
fn has_own_slow_way(known: &Known) -> bool {
    known.saves == Saves::Cpu && known.seam.as_ref() != Some(&known.function)
}

fn share_in(profiles: &[Profile], names: &[&str]) -> f64 {
    mean(&profiles.iter().map(|profile| profile.share_percent(names)).collect::<Vec<_>>())
}

pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The variance of the mean of these values; 0 of a single one, of which nothing is known.
fn variance_of_mean(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let (count, mean) = (values.len() as f64, mean(values));
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count
}

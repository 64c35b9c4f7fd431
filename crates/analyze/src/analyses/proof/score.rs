//! What is recorded, less what is true.

use std::collections::BTreeSet;

use stepscope_stats::{median, standard_error_of_median};

use super::{
    COARSE_NS, Case, GAIN_TOLERANCE, Known, LEAST_SHARE_PERCENT, Profile, Proof, Runs, SHARE_TOLERANCE, SILENT_PERCENT,
    Saves, Truth,
};

/// A function's share, recorded and true.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// `alone`, `fast`, `all` or `all-but`.
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
    case.settings().into_iter().flat_map(|(setting, runs)| shares_of(case, setting, runs)).collect()
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
        // Variance expected from the true share and the number of samples: a function without samples is uncertain too.
        let part = (mean(&truths) / 100.0).clamp(0.0, 1.0);
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
    /// What the profile says that the seam saves.
    pub predicted: f64,
    /// What the program's own clocks say that it saves, where they time all of it.
    pub timed: Option<f64>,
    /// What the profiles with and without say that a whole step saves.
    pub compared: Compared,
    /// What leaving it out saves, of bare runs.
    pub ablation: f64,
    /// Standard error of that.
    pub ablation_se: f64,
}

/// What two recordings say that a fix saves of a whole step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// Percent.
    pub saved: f64,
    /// How far off it may be, points: both sides of what it is compared with scatter.
    pub tolerance: f64,
}

impl Gain {
    /// Points that the seam's gain is off by.
    pub fn error(&self) -> f64 {
        self.predicted - self.ablation
    }

    /// Points that the whole step's gain is off by.
    pub fn compared_error(&self) -> f64 {
        self.compared.saved - self.ablation
    }

    /// Points that the seam's gain is off by from what the program's clocks say of it.
    pub fn timed_error(&self) -> Option<f64> {
        Some(self.predicted - self.timed?)
    }

    /// Points that the profiles say are saved outside of the seam: what a fix does downstream.
    pub fn outside(&self) -> f64 {
        self.compared.saved - self.predicted
    }
}

/// The gains of a case. Empty where it has no bare runs.
pub fn gains(case: &Case) -> Vec<Gain> {
    let alone = gain(case, "alone", &case.alone, &case.fast);
    alone.into_iter().chain(gain(case, "all", &case.all, &case.all_but)).collect()
}

/// What the case's fix saves of `slow`, where `fixed` is the same with the fix.
fn gain(case: &Case, setting: &'static str, slow: &Runs, fixed: &Runs) -> Option<Gain> {
    if [slow, fixed].iter().any(|runs| runs.bare.is_empty() || runs.profiles.is_empty()) {
        return None;
    }
    let cost = match case.known.saves {
        Saves::Cpu => Truth::cpu_per_step,
        Saves::Wall => Truth::wall_per_step,
    };
    let costs = |runs: &Runs| runs.bare.iter().map(cost).collect::<Vec<f64>>();
    let (ablation, ablation_se) = saved(&costs(slow), &costs(fixed));
    let (compared, compared_se) = saved(&wholes(case, slow), &wholes(case, fixed));
    let tolerance = GAIN_TOLERANCE.max(3.0 * compared_se.hypot(ablation_se));
    Some(Gain {
        setting,
        predicted: predicted(case, slow, fixed),
        timed: timed(case, slow, fixed),
        compared: Compared { saved: compared, tolerance },
        ablation,
        ablation_se,
    })
}

/// What runs without cost less than runs with, in percent of these, and its standard error.
fn saved(with: &[f64], without: &[f64]) -> (f64, f64) {
    let typical = |costs: &[f64]| typical(costs.iter().copied());
    let ratio = typical(without) / typical(with);
    let relative = |costs: &[f64]| standard_error_of_median(costs).unwrap_or(0.0) / typical(costs);
    (100.0 * (1.0 - ratio), 100.0 * ratio * relative(with).hypot(relative(without)))
}

/// What the seam costs more than with the fix, of all that a step costs. Without a seam, the slow way itself.
fn predicted(case: &Case, slow: &Runs, fixed: &Runs) -> f64 {
    let shown: Vec<&str> = seam(&case.known).into_iter().flat_map(|function| case.build.names(function)).collect();
    // Where nothing has the seam's name (inlined, and no debug information says so), there is only the slow way.
    let names = if shown.is_empty() { case.build.names(&case.known.function) } else { shown };
    let part = |profile: &Profile| match case.known.saves {
        Saves::Cpu => profile.inclusive_per_step(&names),
        Saves::Wall => profile.on_path(&names),
    };
    let parts = |runs: &Runs| runs.profiles.iter().map(part).collect::<Vec<f64>>();
    100.0 * part_saved((&parts(slow), &wholes(case, slow)), &parts(fixed))
}

/// What a part costs more than with the fix, of the whole. `slow` has the part and the whole of each run: a machine that is
/// slower for a run is so for both, so that shares scatter less than costs.
fn part_saved((parts, wholes): (&[f64], &[f64]), fixed: &[f64]) -> f64 {
    let share = typical(parts.iter().zip(wholes).map(|(part, whole)| part / whole));
    share - typical(fixed.iter().copied()) / typical(wholes.iter().copied())
}

/// The functions whose cost is what the fix saves.
fn seam(known: &Known) -> Vec<&str> {
    match known.seam.as_slice() {
        [] => vec![&known.function],
        seam => seam.iter().map(String::as_str).collect(),
    }
}

/// The same by the program's clocks, in its timed runs; `None` if they do not time all of the seam.
fn timed(case: &Case, slow: &Runs, fixed: &Runs) -> Option<f64> {
    let seam = seam(&case.known);
    let is_timed = |function: &&str| slow.timed.iter().all(|truth| truth.functions.contains_key(*function));
    if case.known.saves == Saves::Wall || fixed.timed.is_empty() || !seam.iter().all(is_timed) {
        return None;
    }
    let of_seam = |truth: &Truth| {
        let calls = seam.iter().filter_map(|function| truth.functions.get(*function));
        calls.map(|calls| calls.cpu_ns).sum::<f64>() / truth.steps
    };
    let parts = |runs: &Runs| runs.timed.iter().map(of_seam).collect::<Vec<f64>>();
    let wholes: Vec<f64> = slow.timed.iter().map(Truth::cpu_per_step).collect();
    Some(100.0 * part_saved((&parts(slow), &wholes), &parts(fixed)))
}

/// All that a step costs, by each of the profiles.
fn wholes(case: &Case, runs: &Runs) -> Vec<f64> {
    let cost = |profile: &Profile| match case.known.saves {
        Saves::Cpu => profile.total_per_step(),
        Saves::Wall => profile.step_ns,
    };
    runs.profiles.iter().map(cost).collect()
}

/// The place of the first of the case's guilty functions in the ranking by the medians of shares in all recordings;
/// `None` if most of these do not rank them.
pub(super) fn place(case: &Case) -> Option<usize> {
    place_in(case, &case.alone.profiles)
}

/// The worst place that one recording alone gives them.
pub(super) fn worst_place(case: &Case) -> Option<usize> {
    let mut places = case.alone.profiles.iter().map(|profile| place_in(case, std::slice::from_ref(profile)));
    places.try_fold(0, |worst, place| Some(worst.max(place?))).filter(|worst| *worst > 0)
}

fn place_in(case: &Case, profiles: &[Profile]) -> Option<usize> {
    let share = |name: &str| typical(profiles.iter().map(|profile| profile.ranked.get(name).copied().unwrap_or(0.0)));
    let guilty = case.known.guilty.iter().flat_map(|function| case.build.names(function)).map(share);
    let guilty = guilty.fold(0.0, f64::max);
    let ranked: BTreeSet<&str> =
        profiles.iter().flat_map(|profile| profile.ranked.keys().map(String::as_str)).collect();
    (guilty > 0.0).then(|| 1 + ranked.into_iter().filter(|name| share(name) > guilty).count())
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
    known.saves == Saves::Cpu && !known.seam.contains(&known.function)
}

fn share_in(profiles: &[Profile], names: &[&str]) -> f64 {
    mean(&profiles.iter().map(|profile| profile.share_percent(names)).collect::<Vec<_>>())
}

/// The median: a run that something else disturbed only ever costs more.
pub(super) fn typical(values: impl IntoIterator<Item = f64>) -> f64 {
    median(&values.into_iter().collect::<Vec<_>>()).unwrap_or(0.0)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stepscope_model::Phase;

    use super::super::{Build, Calls, ControlCase};
    use super::*;

    /// Of 1 ms in all, over 10 steps of 200 us wall time each.
    fn profile(inclusive: &[(&str, f64)], ranked: &[&str]) -> Profile {
        let by_name = |rows: &[(&str, f64)]| rows.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect();
        Profile {
            samples: 1_000,
            total_ns: 1e6,
            steps: 10.0,
            step_ns: 200_000.0,
            inclusive_ns: by_name(inclusive),
            ranked: (0..).zip(ranked).map(|(place, name)| ((*name).to_owned(), 50.0 - f64::from(place))).collect(),
            ..Profile::default()
        }
    }

    fn truth(cpu_ns: f64, steps: f64, functions: &[(&str, u64, f64)]) -> Truth {
        let calls =
            |(name, calls, cpu_ns): &(&str, u64, f64)| ((*name).to_owned(), Calls { calls: *calls, cpu_ns: *cpu_ns });
        Truth { cpu_ns, wall_ns: 2.0 * cpu_ns, steps, functions: functions.iter().map(calls).collect() }
    }

    fn known(name: &str, function: &str, seam: Option<&str>) -> Known {
        Known {
            name: name.to_owned(),
            phase: Phase::Steady,
            function: function.to_owned(),
            guilty: vec![function.to_owned()],
            kinds: Vec::new(),
            seam: seam.map(str::to_owned).into_iter().collect(),
            saves: Saves::Cpu,
            downstream: None,
        }
    }

    fn case(known: Known) -> Case {
        Case {
            known,
            build: Build::default(),
            alone: Runs::default(),
            fast: Runs::default(),
            all: Runs::default(),
            all_but: Runs::default(),
        }
    }

    #[test]
    fn a_share_may_be_off_by_a_point_and_a_half_or_by_three_standard_errors() {
        let mut case = case(known("full-scan", "scan", None));
        case.alone.timed =
            vec![truth(1e6, 10.0, &[("scan", 10, 700_000.0), ("fine", 1_000, 100_000.0), ("rare", 1, 5_000.0)])];
        case.alone.profiles = vec![profile(&[("scan", 680_000.0)], &[])];
        let shares = shares(&case);
        assert_eq!(shares.len(), 1, "calls of 100 ns are not scored, and neither is half a percent: {shares:?}");
        let share = &shares[0];
        assert_eq!((share.truth, share.recorded, share.call_ns), (70.0, 68.0, 70_000.0));
        // 1,000 samples of 70 %: sqrt(0.7 * 0.3 / 1000) = 1.449 points.
        assert!((share.tolerance - 3.0 * 1.449).abs() < 0.001, "{share:?}");
        assert!(share.holds());
        case.alone.profiles[0].samples = 1_000_000;
        let strict = super::shares(&case);
        assert_eq!((strict[0].tolerance, strict[0].holds()), (1.5, false));
    }

    #[test]
    fn runs_that_scatter_widen_what_a_share_may_be_off_by() {
        let mut case = case(known("full-scan", "scan", None));
        let of = |part: f64| truth(1e6, 10.0, &[("scan", 10, part * 1e6)]);
        case.alone.timed = vec![of(0.6), of(0.7), of(0.8)];
        case.alone.profiles = vec![profile(&[("scan", 700_000.0)], &[])];
        case.alone.profiles[0].samples = u64::MAX;
        // Standard deviation 10 points, of a mean of three 10 / sqrt(3).
        assert!((shares(&case)[0].tolerance - 30.0 / 3.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_gain_is_what_the_seam_costs_more_of_all_that_a_step_costs() {
        let mut case = case(known("pose-map", "rebuild", Some("write")));
        case.alone.profiles = vec![profile(&[("rebuild", 500_000.0), ("write", 600_000.0)], &[])];
        case.fast.profiles = vec![profile(&[("write", 100_000.0)], &[])];
        case.alone.bare = vec![truth(1e6, 10.0, &[]), truth(1e6, 10.0, &[])];
        case.fast.bare = vec![truth(0.45e6, 10.0, &[])];
        let gains = gains(&case);
        assert_eq!(gains.len(), 1, "nothing was run with all slow");
        assert!((gains[0].predicted - 50.0).abs() < 1e-9 && (gains[0].ablation - 55.0).abs() < 1e-9, "{gains:?}");
        assert!((gains[0].error() + 5.0).abs() < 1e-9);
        assert_eq!((gains[0].compared.saved, gains[0].outside()), (0.0, -50.0), "both profiles have 1 ms in all");
        assert_eq!(gains[0].timed, None, "nothing was timed");
    }

    #[test]
    fn a_gain_among_others_compares_all_slow_with_all_but_one_slow() {
        let mut case = case(known("string-temp", "count", None));
        let runs = |count: f64, bare: f64| Runs {
            profiles: vec![profile(&[("count", count)], &[])],
            bare: vec![truth(bare, 10.0, &[])],
            ..Runs::default()
        };
        // Other slow code makes the fast way more expensive.
        (case.alone, case.fast) = (runs(500_000.0, 1e6), runs(100_000.0, 0.6e6));
        (case.all, case.all_but) = (runs(600_000.0, 1e6), runs(300_000.0, 0.7e6));
        let gains: Vec<_> =
            gains(&case).iter().map(|gain| (gain.setting, gain.predicted.round(), gain.ablation.round())).collect();
        assert_eq!(gains, [("alone", 40.0, 40.0), ("all", 30.0, 30.0)]);
    }

    #[test]
    fn the_saving_by_the_clock_is_that_of_all_parts_of_the_seam() {
        let mut case =
            case(Known { seam: vec!["parse".to_owned(), "clear".to_owned()], ..known("parse-twice", "parse", None) });
        case.alone.profiles = vec![profile(&[("parse", 300_000.0), ("clear", 200_000.0)], &[])];
        case.fast.profiles = vec![profile(&[], &[])];
        case.alone.bare = vec![truth(1e6, 10.0, &[])];
        case.fast.bare = vec![truth(0.4e6, 10.0, &[])];
        let timed = |functions: &[(&str, u64, f64)]| vec![truth(1e6, 10.0, functions)];
        case.alone.timed = timed(&[("parse", 10, 320_000.0), ("clear", 10, 220_000.0)]);
        case.fast.timed = timed(&[("parse", 1, 20_000.0)]);
        let gain = gains(&case)[0];
        assert!((gain.predicted - 50.0).abs() < 1e-9 && (gain.timed.unwrap() - 52.0).abs() < 1e-9, "{gain:?}");
        case.alone.timed = timed(&[("parse", 10, 320_000.0)]);
        assert_eq!(gains(&case)[0].timed, None, "a part of the seam has no clock");
    }

    #[test]
    fn one_disturbed_run_of_several_does_not_change_a_gain() {
        let mut case = case(known("full-scan", "scan", None));
        case.alone.profiles = vec![profile(&[("scan", 700_000.0)], &[])];
        case.fast.profiles = vec![profile(&[], &[])];
        case.alone.bare = vec![truth(1e6, 10.0, &[]), truth(9e6, 10.0, &[]), truth(1e6, 10.0, &[])];
        case.fast.bare = vec![truth(0.25e6, 10.0, &[])];
        assert_eq!(gains(&case)[0].ablation, 75.0);
    }

    #[test]
    fn a_machine_that_is_slower_for_a_run_is_so_for_all_parts_of_it() {
        // The part is half of each run. Typical costs of it and of the whole are of different runs.
        let (parts, wholes) = ([100.0, 260.0, 150.0], [200.0, 520.0, 300.0]);
        assert!((part_saved((&parts, &wholes), &[0.0]) - 0.5).abs() < 1e-9);
        assert!((part_saved((&parts, &[200.0, 400.0, 300.0]), &[30.0, 30.0, 900.0]) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn switches_that_cost_only_wall_time_are_scored_on_the_critical_path() {
        let mut case = case(Known { saves: Saves::Wall, ..known("imbalance", "scan", None) });
        let on_path = |ns: f64, step_ns: f64| Profile {
            gain_bound_ns: BTreeMap::from([("scan".to_owned(), ns)]),
            step_ns,
            ..profile(&[("scan", 900_000.0)], &[])
        };
        case.alone.profiles = vec![on_path(150_000.0, 200_000.0)];
        case.fast.profiles = vec![on_path(50_000.0, 100_000.0)];
        case.alone.bare = vec![Truth { wall_ns: 2e6, ..truth(1e6, 10.0, &[]) }];
        case.fast.bare = vec![Truth { wall_ns: 1e6, ..truth(1e6, 10.0, &[]) }];
        assert_eq!((gains(&case)[0].predicted, gains(&case)[0].ablation), (50.0, 50.0));
    }

    #[test]
    fn the_place_is_the_median_of_recordings_and_the_worst_place_is_shown() {
        let mut case = case(known("full-scan", "scan", None));
        let first = || profile(&[], &["scan", "step"]);
        case.alone.profiles = vec![first(), first(), profile(&[], &["step", "draw", "scan"])];
        assert_eq!((place(&case), worst_place(&case)), (Some(1), Some(3)));
        case.alone.profiles = vec![first(), profile(&[], &["step"]), profile(&[], &["step"])];
        assert_eq!((place(&case), worst_place(&case)), (None, None));
    }

    #[test]
    fn a_build_shows_functions_by_the_names_that_it_has() {
        let mut case = case(known("full-scan", "scan", None));
        let shown = BTreeMap::from([("scan".to_owned(), vec!["h1".to_owned(), "h2".to_owned()])]);
        case.build = Build { name: "renamed".to_owned(), shown: Some(shown) };
        case.alone.profiles = vec![profile(&[("h1", 300_000.0), ("h2", 100_000.0)], &["h2", "h1"])];
        assert_eq!((slow_share(&case), place(&case)), (40.0, Some(1)));
        assert_eq!(case.build.names("nobody"), Vec::<&str>::new());
    }

    #[test]
    fn a_slow_function_with_a_cost_when_all_is_fast_is_not_silent_unless_fast_code_calls_it() {
        let mut scan = case(known("full-scan", "scan", Some("recreate")));
        let write = case(known("pose-map", "write", Some("write")));
        scan.fast.profiles = vec![profile(&[("scan", 60_000.0), ("write", 700_000.0)], &[])];
        let control = ControlCase {
            name: "idle".to_owned(),
            why: String::new(),
            silent: vec!["poll".to_owned()],
            profiles: vec![profile(&[("scan", 10_000.0), ("poll", 51_000.0)], &[])],
        };
        let proof = Proof { cases: vec![scan, write], controls: vec![control], counts: Vec::new() };
        let found = silences(&proof);
        let loud: Vec<_> = found.iter().filter(|one| !one.holds()).map(|one| (&*one.of, &*one.function)).collect();
        assert_eq!(loud, [("full-scan fast", "scan"), ("idle", "poll")]);
        assert_eq!(found.len(), 4, "scan in two fast settings, and two in the control: {found:?}");
    }
}

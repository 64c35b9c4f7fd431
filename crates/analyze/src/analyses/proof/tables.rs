//! The scores as tables.

use stepscope_model::{Column, Kind, Table, Value};

use super::score::{Gain, Share, gains, place, shares, silences, slow_share, typical, worst_place};
use super::{Build, Case, FIRST_PERCENT, GAIN_TOLERANCE, Proof, SILENT_PERCENT, Truth};
use crate::columns::{self, count, duration, flag, percentage, text};

/// The tables `prove_switches`, `prove_gains`, `prove_shares`, `prove_silence`, `prove_counts`, `prove_overhead` and, last, `prove`, the
/// score.
pub fn tables(proof: &Proof) -> Vec<Table> {
    vec![
        switches(proof),
        gains_table(proof),
        shares_table(proof),
        silence_table(proof),
        counts_table(proof),
        overhead_table(proof),
        score_table(proof),
    ]
}

fn points(name: &str, doc: &str) -> Column {
    percentage(name, doc)
}

fn build_column() -> Column {
    text("build", "The program's build: as built, renamed (functions have hashed names) or stripped.")
}

fn switch_column() -> Column {
    text("switch", "The switch that makes the pathology.").essential()
}

fn predicted_column() -> Column {
    points("predicted", "What the profiles credit to the seam: the functions that both ways pass through.").essential()
}

fn switches(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove_switches",
        "Every switch alone: what was found, and what the fix saves",
        vec![
            switch_column(),
            build_column(),
            text("phase", "Where it is seen."),
            percentage("share", "Recorded share of CPU time under the slow way.").essential(),
            Column::new("place", Kind::Count, "", "Place of the first guilty function in the ranking by cost, by the medians of shares in all recordings. Missing where it is not ranked.").essential(),
            Column::new("worst_place", Kind::Count, "", "The worst place that one recording alone gives it. Missing where one does not rank it."),
            points("gain", "What the fix saves of bare runs, in percent: of CPU time, or of wall time where it saves only that.").essential(),
            predicted_column(),
            points("error", "Predicted less true, points.").essential(),
            points("gain_all", "What the fix saves where all else is slow.").essential(),
            points("predicted_all", "What the profiles credit to the seam there."),
            points("error_all", "Predicted less true, points.").essential(),
            text("downstream", "Why the fix saves something else than what the seam costs, where that is known.").detail(),
        ],
    );
    for case in &proof.cases {
        let gains = gains(case);
        let of = |setting: &str| gains.iter().find(|gain| gain.setting == setting);
        let cell = |setting: &str, value: fn(&Gain) -> f64| Value::from(of(setting).map(value));
        table.push(vec![
            case.known.name.as_str().into(),
            case.build.name.as_str().into(),
            case.known.phase.to_string().into(),
            slow_share(case).into(),
            place(case).map(|place| place as u64).into(),
            worst_place(case).map(|place| place as u64).into(),
            cell("alone", |gain| gain.ablation),
            cell("alone", |gain| gain.predicted),
            cell("alone", Gain::error),
            cell("all", |gain| gain.ablation),
            cell("all", |gain| gain.predicted),
            cell("all", Gain::error),
            case.known.downstream.as_deref().into(),
        ]);
    }
    table
}

fn gains_table(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove_gains",
        "What fixes save: by the profiles, by the program's own clocks, and in truth",
        vec![
            switch_column(),
            build_column(),
            text("setting", "What was slow before: this switch alone, or all.").essential(),
            points("gain", "What the fix saves of bare runs (ablation), in percent: of CPU time, or of wall time where it saves only that.").essential(),
            points("gain_se", "Its standard error."),
            predicted_column(),
            points("error", "Predicted less true, points.").essential(),
            points("timed", "What the program's own clocks say of the seam, in timed runs; missing where they do not time all of it."),
            points("timed_error", "Predicted less that, points."),
            points("compared", "What the profiles with and without the fix say of a whole step.").essential(),
            points("compared_error", "Compared less true, points."),
            points("compared_tolerance", "The larger of 5 points and three standard errors of both.").detail(),
            points("outside", "Compared less predicted: what the fix changes outside of the seam, downstream."),
        ],
    );
    for case in &proof.cases {
        for gain in gains(case) {
            table.push(vec![
                case.known.name.as_str().into(),
                case.build.name.as_str().into(),
                gain.setting.into(),
                gain.ablation.into(),
                gain.ablation_se.into(),
                gain.predicted.into(),
                gain.error().into(),
                gain.timed.into(),
                gain.timed_error().into(),
                gain.compared.saved.into(),
                gain.compared_error().into(),
                gain.compared.tolerance.into(),
                gain.outside().into(),
            ]);
        }
    }
    table
}

fn shares_table(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove_shares",
        "Inclusive shares of CPU time, recorded against timed by the program",
        vec![
            text("case", "The switch whose size and options these runs had.").essential(),
            build_column(),
            text("setting", "Which switches were slow: that one alone, none, all, or all but that one.").essential(),
            text("function", "The function.").essential(),
            points("truth", "By the threads' own CPU clocks, in runs apart.").essential(),
            points("recorded", "As recorded.").essential(),
            points("error", "Recorded less true, points.").essential(),
            points("tolerance", "The larger of 1.5 points and three standard errors."),
            flag("holds", "Whether the error is within."),
            duration("call", "Mean CPU time of a call.").detail(),
        ],
    );
    for case in &proof.cases {
        for share in shares(case) {
            table.push(vec![
                case.known.name.as_str().into(),
                case.build.name.as_str().into(),
                share.setting.into(),
                share.function.as_str().into(),
                share.truth.into(),
                share.recorded.into(),
                share.error().into(),
                share.tolerance.into(),
                share.holds().into(),
                share.call_ns.into(),
            ]);
        }
    }
    table
}

fn silence_table(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove_silence",
        "Slow ways where all is fast",
        vec![
            text("of", "What was recorded: a case with all fast, or a control.").essential(),
            text("function", "A slow way, or what the control names.").essential(),
            percentage("share", "Of CPU time, or of the critical path if that is more.").essential(),
            flag("holds", "Whether it is silent."),
        ],
    );
    let silences = silences(proof);
    let looked_at = silences.len();
    for silence in silences.into_iter().filter(|silence| silence.share > 0.0) {
        let holds = silence.holds();
        table.push(vec![silence.of.into(), silence.function.into(), silence.share.into(), holds.into()]);
    }
    table.note(format!("{} of {looked_at} pairs looked at have any cost and are listed.", table.rows.len()));
    table
}

fn counts_table(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove_counts",
        "What was counted",
        vec![
            text("of", "The run.").essential(),
            text("what", "What was counted.").essential(),
            count("program", "", "By the program or the kernel.").essential(),
            count("recorded", "", "As recorded; missing where that is not recorded.").essential(),
            count("may_differ", "", "How far apart they may be.").detail(),
            flag("holds", "Whether they are that close."),
            text("remark", "Why they may differ, or why there is no count."),
        ],
    );
    for counted in &proof.counts {
        let holds = counted.recorded.map(|recorded| recorded.abs_diff(counted.program) <= counted.may_differ);
        table.push(vec![
            counted.of.as_str().into(),
            counted.what.as_str().into(),
            counted.program.into(),
            counted.recorded.into(),
            counted.may_differ.into(),
            holds.into(),
            counted.remark.as_str().into(),
        ]);
    }
    table
}

/// What a setting cost recorded, over what it cost bare.
#[derive(Debug, Clone, Copy)]
struct Overhead {
    cpu: f64,
    wall: f64,
}

fn overhead(runs: &super::Runs) -> Option<Overhead> {
    if runs.recorded.is_empty() || runs.bare.is_empty() {
        return None;
    }
    let of = |runs: &[Truth], cost: fn(&Truth) -> f64| typical(runs.iter().map(cost));
    let ratio = |cost: fn(&Truth) -> f64| of(&runs.recorded, cost) / of(&runs.bare, cost);
    Some(Overhead { cpu: ratio(Truth::cpu_per_step), wall: ratio(Truth::wall_per_step) })
}

fn overhead_table(proof: &Proof) -> Table {
    let number = |name: &str, doc: &str| columns::number(name, "", doc).essential();
    let mut table = Table::new(
        "prove_overhead",
        "What being recorded costs the program",
        vec![
            text("case", "The switch.").essential(),
            build_column(),
            text("setting", "Which switches were slow.").essential(),
            number(
                "cpu",
                "CPU time a step, or of loading, recorded over bare. The recorder's own thread is not in it.",
            ),
            number("wall", "Wall time, likewise."),
        ],
    );
    for case in &proof.cases {
        for (setting, runs) in case.settings() {
            let Some(Overhead { cpu, wall }) = overhead(runs) else { continue };
            let names = [case.known.name.as_str(), case.build.name.as_str(), setting];
            table.push(names.into_iter().map(Value::from).chain([cpu.into(), wall.into()]).collect());
        }
    }
    table
}

/// Something that must hold: of how many, in how many, and of how many it has to.
struct Requirement {
    what: String,
    held: usize,
    of: usize,
    needed_percent: f64,
    worst: Option<f64>,
    remark: String,
}

fn score_table(proof: &Proof) -> Table {
    let mut table = Table::new(
        "prove",
        "How right the tool is",
        vec![
            text("what", "What must hold.").essential(),
            build_column().essential(),
            count("held", "", "In how many cases it held.").essential(),
            count("of", "", "Of how many.").essential(),
            percentage("percent", "The same in percent.").essential(),
            percentage("needed", "In how many it has to hold.").essential(),
            flag("holds", "Whether it does. Builds without names are shown for comparison; nothing is asked of them."),
            columns::number("worst", "", "The largest error in points, the worst place, or the largest share.")
                .essential(),
            text("remark", "What did not hold."),
        ],
    );
    for build in builds(proof) {
        for requirement in requirements(proof, build) {
            let percent = 100.0 * requirement.held as f64 / requirement.of.max(1) as f64;
            let judged = requirement.of > 0 && build.shown.is_none();
            table.push(vec![
                requirement.what.into(),
                build.name.as_str().into(),
                (requirement.held as u64).into(),
                (requirement.of as u64).into(),
                (requirement.of > 0).then_some(percent).into(),
                requirement.needed_percent.into(),
                judged.then_some(percent >= requirement.needed_percent).into(),
                requirement.worst.into(),
                requirement.remark.into(),
            ]);
        }
    }
    table
}

fn builds(proof: &Proof) -> Vec<&Build> {
    let mut builds: Vec<&Build> = Vec::new();
    for case in &proof.cases {
        if !builds.contains(&&case.build) {
            builds.push(&case.build);
        }
    }
    builds
}

fn requirements(proof: &Proof, build: &Build) -> Vec<Requirement> {
    let cases: Vec<&Case> = proof.cases.iter().filter(|case| case.build == *build).collect();
    let mut all = vec![share_requirement(&cases), place_requirement(&cases)];
    all.push(compared_requirement(&cases));
    all.extend(["alone", "all"].map(|setting| gain_requirement(&cases, setting)));
    all.push(timed_requirement(&cases));
    if build.shown.is_none() {
        all.extend([silence_requirement(proof), count_requirement(proof)]);
    }
    all
}

/// The largest by size, with its sign.
fn worst(errors: impl Iterator<Item = f64>) -> Option<f64> {
    errors.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

fn share_requirement(cases: &[&Case]) -> Requirement {
    let all: Vec<(&str, Share)> =
        cases.iter().flat_map(|case| shares(case).into_iter().map(|share| (case.known.name.as_str(), share))).collect();
    let missed = all.iter().filter(|(_, share)| !share.holds());
    let missed =
        missed.map(|(case, share)| format!("{case} {}: {} by {:+.1}", share.setting, share.function, share.error()));
    let missed: Vec<String> = missed.collect();
    Requirement {
        what: "shares within max(1.5 points, 3 standard errors)".to_owned(),
        held: all.len() - missed.len(),
        of: all.len(),
        needed_percent: 95.0,
        worst: worst(all.iter().map(|(_, share)| share.error())),
        remark: missed.join("; "),
    }
}

fn place_requirement(cases: &[&Case]) -> Requirement {
    let asked: Vec<_> = cases.iter().filter(|case| slow_share(case) >= FIRST_PERCENT).collect();
    let told = |case: &Case, place: Option<usize>| {
        format!("{}: {}", case.known.name, place.map_or("not ranked".to_owned(), |place| place.to_string()))
    };
    let missed: Vec<String> =
        asked.iter().filter(|case| place(case) != Some(1)).map(|case| told(case, place(case))).collect();
    let of_one = asked.iter().filter(|case| place(case) == Some(1) && worst_place(case) != Some(1));
    let of_one = of_one.map(|case| format!("{} in one recording", told(case, worst_place(case))));
    Requirement {
        what: "the guilty function first, where its share is 20 % or more".to_owned(),
        held: asked.len() - missed.len(),
        of: asked.len(),
        needed_percent: 100.0,
        worst: asked.iter().filter_map(|case| place(case)).max().map(|place| place as f64),
        remark: missed.iter().cloned().chain(of_one).collect::<Vec<_>>().join("; "),
    }
}

/// All gains, with whose they are.
fn all_gains<'c>(cases: &'c [&Case]) -> Vec<(&'c Case, Gain)> {
    cases.iter().flat_map(|case| gains(case).into_iter().map(move |gain| (*case, gain))).collect()
}

/// A gain's name in remarks.
fn named(case: &Case, gain: &Gain) -> String {
    if gain.setting == "alone" { case.known.name.clone() } else { format!("{} among all", case.known.name) }
}

fn gain_requirement(cases: &[&Case], setting: &'static str) -> Requirement {
    let mut all = all_gains(cases);
    all.retain(|(_, gain)| gain.setting == setting);
    let missed: Vec<String> = all
        .iter()
        .filter(|(_, gain)| gain.error().abs() > GAIN_TOLERANCE)
        .map(|(case, gain)| format!("{} by {:+.1} ({})", case.known.name, gain.error(), explanation(case, gain)))
        .collect();
    let which = if setting == "alone" { "with all else fast" } else { "with all else slow" };
    Requirement {
        what: format!("gains attributed to the seam within 5 points of ablation, {which}"),
        held: all.len() - missed.len(),
        of: all.len(),
        needed_percent: 80.0,
        worst: worst(all.iter().map(|(_, gain)| gain.error())),
        remark: missed.join("; "),
    }
}

fn timed_requirement(cases: &[&Case]) -> Requirement {
    let error = |(case, gain): (&Case, Gain)| Some((named(case, &gain), gain.timed_error()?));
    let all: Vec<(String, f64)> = all_gains(cases).into_iter().filter_map(error).collect();
    let missed = all.iter().filter(|(_, error)| error.abs() > GAIN_TOLERANCE);
    let missed: Vec<String> = missed.map(|(name, error)| format!("{name} by {error:+.1}")).collect();
    Requirement {
        what: "gains attributed to the seam within 5 points of the program's own clocks".to_owned(),
        held: all.len() - missed.len(),
        of: all.len(),
        needed_percent: 80.0,
        worst: worst(all.iter().map(|(_, error)| *error)),
        remark: missed.join("; "),
    }
}

/// Why the seam's gain is not the whole: the switch's ground truth, the program's clocks and the profiles.
fn explanation(case: &Case, gain: &Gain) -> String {
    let right = gain.timed.filter(|timed| (gain.predicted - timed).abs() <= GAIN_TOLERANCE);
    let right = right.map(|timed| format!("{timed:.1} of {:.1} are the seam's by the program's clocks", gain.ablation));
    let measured = (gain.compared_error().abs() <= GAIN_TOLERANCE)
        .then(|| format!("{:+.1} outside of the seam by the profiles", gain.outside()));
    let parts: Vec<String> = right.into_iter().chain(measured).chain(case.known.downstream.clone()).collect();
    if parts.is_empty() { "not explained".to_owned() } else { parts.join(": ") }
}

fn compared_requirement(cases: &[&Case]) -> Requirement {
    let all = all_gains(cases);
    let missed = all.iter().filter(|(_, gain)| gain.compared_error().abs() > gain.compared.tolerance);
    let missed: Vec<String> =
        missed.map(|(case, gain)| format!("{} by {:+.1}", named(case, gain), gain.compared_error())).collect();
    Requirement {
        what: "gains as compared within max(5 points, 3 standard errors) of ablation".to_owned(),
        held: all.len() - missed.len(),
        of: all.len(),
        needed_percent: 80.0,
        worst: worst(all.iter().map(|(_, gain)| gain.compared_error())),
        remark: missed.join("; "),
    }
}

fn silence_requirement(proof: &Proof) -> Requirement {
    let all = silences(proof);
    let loud: Vec<_> = all.iter().filter(|silence| !silence.holds()).collect();
    Requirement {
        what: format!("nothing above {SILENT_PERCENT:.0} % where all is fast, and in controls"),
        held: all.len() - loud.len(),
        of: all.len(),
        needed_percent: 100.0,
        worst: all.iter().map(|silence| silence.share).max_by(f64::total_cmp),
        remark: loud
            .iter()
            .map(|one| format!("{}: {} {:.1} %", one.of, one.function, one.share))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

fn count_requirement(proof: &Proof) -> Requirement {
    let known: Vec<_> = proof.counts.iter().filter_map(|counted| Some((counted, counted.recorded?))).collect();
    let off: Vec<_> =
        known.iter().filter(|(counted, recorded)| recorded.abs_diff(counted.program) > counted.may_differ).collect();
    let worst = known.iter().map(|(counted, recorded)| recorded.abs_diff(counted.program)).max();
    Requirement {
        what: "counts exact".to_owned(),
        held: known.len() - off.len(),
        of: known.len(),
        needed_percent: 100.0,
        worst: worst.map(|difference| difference as f64),
        remark: off
            .iter()
            .map(|(counted, recorded)| {
                format!("{} of {}: {recorded} for {}", counted.what, counted.of, counted.program)
            })
            .collect::<Vec<_>>()
            .join("; "),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stepscope_model::Phase;

    use super::super::{Calls, Counted, Known, Profile, Runs, Saves};
    use super::*;
    use crate::columns::read::cells;

    fn scan_case() -> Case {
        let calls = BTreeMap::from([("scan".to_owned(), Calls { calls: 10, cpu_ns: 700_000.0 })]);
        let alone = Truth { cpu_ns: 1e6, wall_ns: 1e6, steps: 10.0, functions: calls };
        let fast = Truth { cpu_ns: 0.3e6, functions: BTreeMap::new(), ..alone.clone() };
        let profile = |scan: f64, total: f64| Profile {
            samples: 1_000_000,
            total_ns: total,
            steps: 10.0,
            step_ns: total / 10.0,
            inclusive_ns: BTreeMap::from([("scan".to_owned(), scan)]),
            ranked: BTreeMap::from([("scan".to_owned(), 70.0)]),
            gain_bound_ns: BTreeMap::new(),
        };
        let recorded = Truth { cpu_ns: 1.1e6, ..alone.clone() };
        Case {
            known: Known {
                name: "full-scan".to_owned(),
                phase: Phase::Steady,
                function: "scan".to_owned(),
                guilty: vec!["scan".to_owned()],
                seam: Vec::new(),
                saves: Saves::Cpu,
                downstream: None,
            },
            build: Build { name: "plain".to_owned(), shown: None },
            alone: Runs {
                profiles: vec![profile(710_000.0, 1e6)],
                recorded: vec![recorded],
                timed: vec![alone.clone()],
                bare: vec![alone],
            },
            fast: Runs { profiles: vec![profile(0.0, 0.3e6)], bare: vec![fast], ..Runs::default() },
            all: Runs::default(),
            all_but: Runs::default(),
        }
    }

    fn counted(program: u64, recorded: Option<u64>) -> Counted {
        let (of, what, remark) = ("shapes".to_owned(), "steps".to_owned(), String::new());
        Counted { of, what, program, recorded, may_differ: 0, remark }
    }

    #[test]
    fn the_score_says_what_held_and_what_did_not() {
        let proof = Proof {
            cases: vec![scan_case()],
            controls: Vec::new(),
            counts: vec![counted(600, Some(600)), counted(600, Some(599)), counted(9, None)],
        };
        let tables = tables(&proof);
        let score = tables.last().unwrap();
        assert_eq!(
            cells(score, &["what", "held", "of", "holds", "worst", "remark"]),
            [
                "shares within max(1.5 points, 3 standard errors) | 1 | 1 | true | 1 | ",
                "the guilty function first, where its share is 20 % or more | 1 | 1 | true | 1 | ",
                "gains as compared within max(5 points, 3 standard errors) of ablation | 1 | 1 | true | 0 | ",
                "gains attributed to the seam within 5 points of ablation, with all else fast | 1 | 1 | true | 1 | ",
                "gains attributed to the seam within 5 points of ablation, with all else slow | 0 | 0 | - | - | ",
                "gains attributed to the seam within 5 points of the program's own clocks | 0 | 0 | - | - | ",
                "nothing above 5 % where all is fast, and in controls | 1 | 1 | true | 0 | ",
                "counts exact | 1 | 2 | false | 1 | steps of shapes: 599 for 600",
            ]
        );
        let overhead = tables.iter().find(|table| table.name == "prove_overhead").unwrap();
        assert_eq!(cells(overhead, &["case", "setting", "cpu"]), ["full-scan | alone | 1.1"]);
    }

    #[test]
    fn what_is_far_off_is_named_with_how_far() {
        let mut case = scan_case();
        case.alone.profiles[0].inclusive_ns.insert("scan".to_owned(), 500_000.0);
        case.alone.profiles[0].ranked.insert("step".to_owned(), 80.0);
        let score = score_table(&Proof { cases: vec![case], ..Proof::default() });
        let remarks = cells(&score, &["held", "remark"]);
        assert_eq!(remarks[0], "0 | full-scan alone: scan by -20.0");
        assert_eq!(remarks[1], "0 | full-scan: 2");
        assert_eq!(remarks[3], "0 | full-scan by -20.0 (+20.0 outside of the seam by the profiles)");
    }
}

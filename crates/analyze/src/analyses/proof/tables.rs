//! The scores as tables.

use stepscope_model::{Column, Columns, NoteValue, Table, Value, note};

use super::diagnosis::{Answer, Diagnosed, FalseFinding, diagnosed, false_findings, quiet};
use super::profile::Claim;
use super::score::{Gain, Share, Silence, gains, place, shares, silences, slow_share, typical, worst_place};
use super::{Build, CLAIM_PERCENT, Case, Counted, FIRST_PERCENT, GAIN_TOLERANCE, Proof, SILENT_PERCENT, Truth};

/// The tables `prove_switches`, `prove_gains`, `prove_shares`, `prove_silence`, `prove_diagnosis`, `prove_findings`, `prove_counts`, `prove_overhead` and, last, `prove`, the
/// score.
pub fn tables(proof: &Proof) -> Vec<Table> {
    vec![
        switches(proof),
        gains_table(proof),
        shares_table(proof),
        silence_table(proof),
        diagnosis_table(proof),
        findings_table(proof),
        counts_table(proof),
        overhead_table(proof),
        score_table(proof),
    ]
}

fn build_column() -> Column {
    Column::text("build", "The program's build: as built, renamed (functions have hashed names) or stripped.")
}

/// The columns that name a case: its switch, under this name, and its build.
fn of_case<'a>(name: &str) -> Columns<'a, &'a Case> {
    Columns::<&Case>::new()
        .with(Column::text(name, "The switch of the pathology.").essential(), |case| case.known.name.as_str().into())
        .with(build_column(), |case| case.build.name.as_str().into())
}

fn predicted_column() -> Column {
    Column::percentage("predicted", "Cost that profiles attribute to the seam: the functions of both ways.").essential()
}

fn switches(proof: &Proof) -> Table {
    let gain = |setting: &'static str, value: fn(&Gain) -> f64| {
        move |case: &&Case| Value::from(gains(case).iter().find(|gain| gain.setting == setting).map(value))
    };
    of_case("switch")
        .text("phase", "Phase with the cost.", |case| case.known.phase.to_string().into())
        .percentage("share", "Recorded share of CPU time under the slow way.", |case| slow_share(case))
        .count(
            "place",
            "",
            "Rank of the first guilty function by cost, by the median share of all recordings. \
                Missing if not ranked.",
            |case| place(case).map(|place| place as u64),
        )
        .count(
            "worst_place",
            "",
            "Its worst rank in a single recording. Missing if one recording does not rank it.",
            |case| worst_place(case).map(|place| place as u64),
        )
        .with(
            Column::percentage(
                "gain",
                "Saving of the fix in bare runs, in percent of CPU time; of wall time if it saves only that.",
            )
            .essential(),
            gain("alone", |gain| gain.ablation),
        )
        .with(predicted_column(), gain("alone", |gain| gain.predicted))
        .with(
            Column::percentage("error", "Predicted minus true saving, in points.").essential(),
            gain("alone", Gain::error),
        )
        .with(
            Column::percentage("gain_all", "Saving of the fix with all else slow.").essential(),
            gain("all", |gain| gain.ablation),
        )
        .with(
            Column::percentage("predicted_all", "Cost that profiles attribute to the seam with all else slow."),
            gain("all", |gain| gain.predicted),
        )
        .with(
            Column::percentage("error_all", "Predicted minus true saving, in points.").essential(),
            gain("all", Gain::error),
        )
        .text("downstream", "Known reason why the saving differs from the cost of the seam.", |case| {
            case.known.downstream.as_deref().into()
        })
        .essential("share place")
        .detail("downstream")
        .table("prove_switches", "Each switch alone: what was found, and what the fix saves", proof.cases.iter())
}

fn gains_table(proof: &Proof) -> Table {
    let rows = proof.cases.iter().flat_map(|case| gains(case).into_iter().map(move |gain| (case, gain)));
    of_case("switch")
        .on(|(case, _): &(&Case, Gain)| case)
        .text("setting", "Switches that were slow before: this one alone, or all.", |(_, gain)| gain.setting.into())
        .percentage(
            "gain",
            "Saving of the fix in bare runs (ablation), in percent of CPU time; of wall time if it saves only that.",
            |(_, gain)| gain.ablation,
        )
        .percentage("gain_se", "Its standard error.", |(_, gain)| gain.ablation_se)
        .with(predicted_column(), |(_, gain)| gain.predicted.into())
        .percentage("error", "Predicted minus true saving, in points.", |(_, gain)| gain.error())
        .percentage(
            "timed",
            "Cost of the seam by the program's clocks, in timed runs. Missing if they do not time all of it.",
            |(_, gain)| gain.timed,
        )
        .percentage("timed_error", "Predicted minus timed, in points.", |(_, gain)| gain.timed_error())
        .percentage("compared", "Saving of a whole step by the profiles with and without the fix.", |(_, gain)| {
            gain.compared.saved
        })
        .percentage("compared_error", "Compared minus true saving, in points.", |(_, gain)| gain.compared_error())
        .percentage("compared_tolerance", "The larger of 5 points and three standard errors of both.", |(_, gain)| {
            gain.compared.tolerance
        })
        .percentage("outside", "Compared minus predicted: the effect of the fix outside of the seam.", |(_, gain)| {
            gain.outside()
        })
        .essential("setting gain error compared")
        .detail("compared_tolerance")
        .table("prove_gains", "Savings of fixes: by profiles, by the program's clocks, and in truth", rows)
}

fn shares_table(proof: &Proof) -> Table {
    let rows = proof.cases.iter().flat_map(|case| shares(case).into_iter().map(move |share| (case, share)));
    of_case("case")
        .on(|(case, _): &(&Case, Share)| case)
        .text("setting", "Switches that were slow: that one alone, none, all, or all but that one.", |(_, share)| {
            share.setting.into()
        })
        .text("function", "The function.", |(_, share)| share.function.as_str().into())
        .percentage("truth", "By the threads' CPU clocks, in timed runs.", |(_, share)| share.truth)
        .percentage("recorded", "As recorded.", |(_, share)| share.recorded)
        .percentage("error", "Recorded minus true share, in points.", |(_, share)| share.error())
        .percentage("tolerance", "The larger of 1.5 points and three standard errors.", |(_, share)| share.tolerance)
        .flag("holds", "Whether the error is within the tolerance.", |(_, share)| share.holds())
        .duration("call", "Mean CPU time of a call.", |(_, share)| share.call_ns)
        .essential("setting function truth recorded error")
        .detail("call")
        .table("prove_shares", "Inclusive shares of CPU time: recorded, and timed by the program", rows)
}

fn silence_table(proof: &Proof) -> Table {
    let silences = silences(proof);
    let checked = silences.len();
    let costly = silences.into_iter().filter(|silence| silence.share > 0.0);
    let mut table = Columns::<Silence>::new()
        .text("of", "The recording: a case with all switches fast, or a control.", |one| one.of.as_str().into())
        .text("function", "A slow way, or a function that the control names.", |one| one.function.as_str().into())
        .percentage("share", "Of CPU time, or of the critical path if that is more.", |one| one.share)
        .flag("holds", "Whether it is silent.", |one| one.holds())
        .essential("of function share")
        .table("prove_silence", "Slow ways while all switches are fast", costly);
    let listed = NoteValue::plural(table.rows.len(), "pair");
    table.note(note!(Fact, "Listed: {} with any cost, of {} checked.", listed, NoteValue::of(checked as u64, "")));
    table
}

fn diagnosis_table(proof: &Proof) -> Table {
    let of_first = |one: &Diagnosed, of: fn(&Claim) -> Value| Value::from(one.first.as_ref().map(of));
    Columns::<Diagnosed>::new()
        .text("switch", "The switch, slow alone.", |one| one.switch.as_str().into())
        .with(build_column(), |one| one.build.as_str().into())
        .text("answer", "Whether the first finding has a right kind and names a guilty function; the median.", |one| {
            one.answer.name().into()
        })
        .text("kind", "Kind of the first finding in the first recording.", move |one| {
            of_first(one, |claim| claim.kind.as_str().into())
        })
        .text("function", "The function that it names.", move |one| {
            of_first(one, |claim| claim.function.as_str().into())
        })
        .percentage("gain_share", "Its gain.", move |one| of_first(one, |claim| claim.gain_share.into()))
        .essential("switch build answer kind function")
        .table("prove_diagnosis", "Diagnosis of each switch alone", diagnosed(proof))
}

fn findings_table(proof: &Proof) -> Table {
    Columns::<FalseFinding>::new()
        .text("of", "The recording: a case with all switches fast, or a control.", |one| one.of.as_str().into())
        .with(build_column(), |one| one.build.as_str().into())
        .text("kind", "Kind of the finding.", |one| one.claim.kind.as_str().into())
        .text("function", "The function that it names.", |one| one.claim.function.as_str().into())
        .percentage("gain_share", "Its gain.", |one| one.claim.gain_share)
        .essential("of kind function gain_share")
        .table("prove_findings", "Findings while all switches are fast", false_findings(proof))
}

fn counts_table(proof: &Proof) -> Table {
    Columns::<Counted>::new()
        .text("of", "The run.", |one| one.of.as_str().into())
        .text("what", "The counted thing.", |one| one.what.as_str().into())
        .count("program", "", "By the program or the kernel.", |one| one.program)
        .count("recorded", "", "As recorded; missing if not recorded.", |one| one.recorded)
        .count("may_differ", "", "Largest allowed difference.", |one| one.may_differ)
        .flag("holds", "Whether the difference is within that.", |one| {
            one.recorded.map(|recorded| recorded.abs_diff(one.program) <= one.may_differ)
        })
        .text("remark", "Why they may differ, or why there is no count.", |one| one.remark.as_str().into())
        .essential("of what program recorded")
        .detail("may_differ")
        .table("prove_counts", "Counts", proof.counts.iter())
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
    let settings = proof.cases.iter().flat_map(|case| case.settings().into_iter().map(move |setting| (case, setting)));
    let rows = settings.filter_map(|(case, (setting, runs))| Some((case, (setting, overhead(runs)?))));
    let ratio = |name: &str, doc: &str| Column::number(name, "", doc).essential();
    of_case("case")
        .on(|(case, _): &(&Case, (&str, Overhead))| case)
        .text("setting", "Switches that were slow.", |(_, (setting, _))| (*setting).into())
        .with(
            ratio("cpu", "CPU time per step, or of loading: recorded over bare. Without the recorder's own thread."),
            |(_, (_, overhead))| overhead.cpu.into(),
        )
        .with(ratio("wall", "Wall time, likewise."), |(_, (_, overhead))| overhead.wall.into())
        .essential("setting")
        .table("prove_overhead", "Overhead of recording for the program", rows)
}

/// Something that must hold in a share of the cases.
struct Requirement {
    what: String,
    held: usize,
    of: usize,
    needed_percent: f64,
    /// Fewest cases that are judged.
    fewest: usize,
    worst: Option<f64>,
    remark: String,
}

impl Requirement {
    /// That `missed` are few of a number of cases.
    fn of(what: impl Into<String>, of: usize, missed: &[String], needed_percent: f64, worst: Option<f64>) -> Self {
        Self {
            what: what.into(),
            held: of - missed.len(),
            of,
            needed_percent,
            fewest: 1,
            worst,
            remark: missed.join("; "),
        }
    }

    fn percent(&self) -> Option<f64> {
        (self.of > 0).then(|| 100.0 * self.held as f64 / self.of as f64)
    }
}

fn score_table(proof: &Proof) -> Table {
    let rows = builds(proof)
        .into_iter()
        .flat_map(|build| requirements(proof, build).into_iter().map(move |requirement| (build, requirement)));
    Columns::<(&Build, Requirement)>::new()
        .text("what", "What must hold.", |(_, one)| one.what.as_str().into())
        .with(build_column().essential(), |(build, _)| build.name.as_str().into())
        .count("held", "", "Cases in which it held.", |(_, one)| one.held as u64)
        .count("of", "", "All cases.", |(_, one)| one.of as u64)
        .percentage("percent", "Share of cases in which it held.", |(_, one)| one.percent())
        .percentage("needed", "Required share.", |(_, one)| one.needed_percent)
        .flag(
            "holds",
            "Whether the requirement holds. Builds without names are for comparison and have none.",
            |(build, one)| {
                let judged = one.percent().filter(|_| build.shown.is_none() && one.of >= one.fewest);
                judged.map(|percent| percent >= one.needed_percent)
            },
        )
        .number("worst", "", "The largest error in points, the worst rank, or the largest share.", |(_, one)| one.worst)
        .text("remark", "Cases in which it did not hold.", |(_, one)| one.remark.as_str().into())
        .essential("what held of percent needed worst")
        .table("prove", "Accuracy of Stepscope", rows)
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
    all.extend([recall_requirement(proof, build), precision_requirement(proof, build)]);
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
    let worst = worst(all.iter().map(|(_, share)| share.error()));
    Requirement::of("shares within max(1.5 points, 3 standard errors)", all.len(), &missed, 95.0, worst)
}

fn place_requirement(cases: &[&Case]) -> Requirement {
    let asked: Vec<_> = cases.iter().filter(|case| slow_share(case) >= FIRST_PERCENT).collect();
    let text_of = |case: &Case, place: Option<usize>| {
        format!("{}: {}", case.known.name, place.map_or("not ranked".to_owned(), |place| place.to_string()))
    };
    let missed: Vec<String> =
        asked.iter().filter(|case| place(case) != Some(1)).map(|case| text_of(case, place(case))).collect();
    let of_one = asked.iter().filter(|case| place(case) == Some(1) && worst_place(case) != Some(1));
    let of_one = of_one.map(|case| format!("{} in one recording", text_of(case, worst_place(case))));
    Requirement {
        what: "the guilty function first, where its share is 20 % or more".to_owned(),
        held: asked.len() - missed.len(),
        of: asked.len(),
        needed_percent: 100.0,
        fewest: 1,
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
    let worst = worst(all.iter().map(|(_, gain)| gain.error()));
    Requirement::of(
        format!("gains attributed to the seam within 5 points of ablation, {which}"),
        all.len(),
        &missed,
        80.0,
        worst,
    )
}

fn timed_requirement(cases: &[&Case]) -> Requirement {
    let error = |(case, gain): (&Case, Gain)| Some((named(case, &gain), gain.timed_error()?));
    let all: Vec<(String, f64)> = all_gains(cases).into_iter().filter_map(error).collect();
    let missed = all.iter().filter(|(_, error)| error.abs() > GAIN_TOLERANCE);
    let missed: Vec<String> = missed.map(|(name, error)| format!("{name} by {error:+.1}")).collect();
    let worst = worst(all.iter().map(|(_, error)| *error));
    Requirement::of(
        "gains attributed to the seam within 5 points of the program's own clocks",
        all.len(),
        &missed,
        80.0,
        worst,
    )
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
    let worst = worst(all.iter().map(|(_, gain)| gain.compared_error()));
    Requirement::of(
        "gains as compared within max(5 points, 3 standard errors) of ablation",
        all.len(),
        &missed,
        80.0,
        worst,
    )
}

fn silence_requirement(proof: &Proof) -> Requirement {
    let all = silences(proof);
    let loud: Vec<_> = all.iter().filter(|silence| !silence.holds()).collect();
    Requirement {
        what: format!("nothing above {SILENT_PERCENT:.0} % where all is fast, and in controls"),
        held: all.len() - loud.len(),
        of: all.len(),
        needed_percent: 100.0,
        fewest: 1,
        worst: all.iter().map(|silence| silence.share).max_by(f64::total_cmp),
        remark: loud
            .iter()
            .map(|one| format!("{}: {} {:.1} %", one.of, one.function, one.share))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// Fewest cases of which 90 % can be judged.
const FEWEST_TO_JUDGE: usize = 10;

fn recall_requirement(proof: &Proof, build: &Build) -> Requirement {
    let all: Vec<Diagnosed> = diagnosed(proof).into_iter().filter(|one| one.build == build.name).collect();
    let missed = all.iter().filter(|one| one.answer != Answer::RightFirst);
    let missed: Vec<String> = missed.map(|one| format!("{}: {}", one.switch, one.answer.name())).collect();
    let what = "diagnosis: the first finding has a right kind and names a guilty function";
    Requirement { fewest: FEWEST_TO_JUDGE, ..Requirement::of(what, all.len(), &missed, 90.0, None) }
}

fn precision_requirement(proof: &Proof, build: &Build) -> Requirement {
    let of_build = quiet(proof).into_iter().filter(|(of, _)| *of == build.name);
    let quiet: Vec<bool> = of_build.map(|(_, quiet)| quiet).collect();
    let false_ones: Vec<FalseFinding> =
        false_findings(proof).into_iter().filter(|one| one.build == build.name).collect();
    let text_of = |one: &FalseFinding| format!("{}: {} {:.1} %", one.of, one.claim.kind, one.claim.gain_share);
    Requirement {
        what: format!("diagnosis: no finding above {CLAIM_PERCENT:.0} % where all is fast, and in controls"),
        held: quiet.iter().filter(|quiet| **quiet).count(),
        of: quiet.len(),
        needed_percent: 90.0,
        fewest: FEWEST_TO_JUDGE,
        worst: false_ones.iter().map(|one| one.claim.gain_share).max_by(f64::total_cmp),
        remark: false_ones.iter().map(text_of).collect::<Vec<_>>().join("; "),
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
        fewest: 1,
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
            claims: vec![Claim {
                kind: "list-search".to_owned(),
                function: "scan".to_owned(),
                // The fix takes it away.
                gain_share: if scan > 0.0 { 70.0 } else { 0.0 },
            }],
            ..Profile::default()
        };
        let recorded = Truth { cpu_ns: 1.1e6, ..alone.clone() };
        Case {
            known: Known {
                name: "full-scan".to_owned(),
                phase: Phase::Steady,
                function: "scan".to_owned(),
                guilty: vec!["scan".to_owned()],
                kinds: vec!["list-search".to_owned()],
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
                "diagnosis: the first finding has a right kind and names a guilty function | 1 | 1 | - | - | ",
                "diagnosis: no finding above 3 % where all is fast, and in controls | 1 | 1 | - | - | ",
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
    fn large_deviations_are_named_with_their_size() {
        let mut case = scan_case();
        case.alone.profiles[0].inclusive_ns.insert("scan".to_owned(), 500_000.0);
        case.alone.profiles[0].ranked.insert("step".to_owned(), 80.0);
        let score = score_table(&Proof { cases: vec![case], ..Proof::default() });
        let remarks = cells(&score, &["held", "remark"]);
        assert_eq!(remarks[0], "0 | full-scan alone: scan by -20.0");
        assert_eq!(remarks[1], "0 | full-scan: 2");
        assert_eq!(remarks[5], "0 | full-scan by -20.0 (+20.0 outside of the seam by the profiles)");
    }
}

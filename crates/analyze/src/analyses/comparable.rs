//! Whether recordings can be compared: unintended differences between them.
//!
//! A comparison answers "did the change of the code change the cost?" only if nothing else differs. There are two degrees:
//!
//! - *refused* unless the user allows it, and then noted in every output: another machine (host, CPU model, number of
//!   CPUs, memory, hypervisor) that has no recordings of one side, another kind of build (debug against release), another scenario or phase (erratum 4 of
//!   the Gazebo study paired loading with runtime and one world with another);
//! - *noted*: program, kernel, governor, version of the recorder, background load, CPU time taken by the hypervisor, heat.
//!
//! A property that a recording lacks is no difference.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::command_line::program_name;
use stepscope_model::{CaptureInfo, Machine, Note, NoteValue, note, quantity};

/// Background load, in percent of the machine's CPU time, above which a recording was disturbed.
const DISTURBED_PERCENT: f64 = 5.0;

/// A difference that a comparison is refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// Recorded on different machines.
    Machine,
    /// Built in different ways.
    Build,
    /// Different scenarios or phases.
    Scenario,
}

/// Why recordings are not compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {}", remedy(*.kind))]
pub struct Refusal {
    /// What differs.
    pub kind: Difference,
    /// The difference, in words.
    pub what: String,
}

fn remedy(kind: Difference) -> &'static str {
    match kind {
        Difference::Machine => {
            "times of different machines say nothing about the code. Record both on one machine, or allow it with `--across-machines`"
        }
        Difference::Build => {
            "the compiler's changes would look like changes of the code. Build both alike, or allow it with `--across-builds`"
        }
        Difference::Scenario => {
            "they did different work. Name captures of the same scenario and phase, or allow it with `--across-scenarios`"
        }
    }
}

/// What differs between sets of recordings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    /// What a comparison is refused for.
    pub refused: Vec<Refusal>,
    /// Differences that a reader should know.
    pub remarks: Vec<Note>,
}

/// Reads a property that should be equal.
type Property<'a> = &'a dyn Fn(&CaptureInfo) -> Option<String>;

/// Looks at all recordings of all sides, each with its side's name.
pub fn differences(recordings: &[(&str, &CaptureInfo)]) -> Differences {
    let mut found = Differences::default();
    let refused: [(Difference, &str, Property<'_>); 4] = [
        (Difference::Machine, "were recorded on different machines", &|info| Some(machine(info.machine.as_ref()?))),
        (Difference::Build, "were built in different ways", &|info| info.build.as_ref()?.kind.clone()),
        (Difference::Scenario, "are of different scenarios", &|info| info.scenario.clone()),
        (Difference::Scenario, "are of different phases", &|info| Some(info.phase?.to_string())),
    ];
    for (kind, what, of) in refused {
        if kind == Difference::Machine && each_has_every_side(recordings, of) {
            continue;
        }
        if let Some(values) = differing(recordings, of) {
            found.refused.push(Refusal { kind, what: format!("the captures {what}: {values}") });
        }
    }
    let remarked: [(&str, Property<'_>); 5] = [
        ("Programs differ", &|info| program_name(&info.command).map(str::to_owned)),
        ("Kernels differ", &|info| Some(info.machine.as_ref()?.kernel.clone())),
        ("Frequency governors differ", &|info| info.machine.as_ref()?.governor.clone()),
        ("Governors at the end differ", &|info| info.conditions.as_ref()?.end_governor.clone()),
        ("Versions of the recorder differ", &|info| Some(info.tool.clone())),
    ];
    for (what, of) in remarked {
        if let Some(values) = differing(recordings, of) {
            found.remarks.push(note!(Limit, "{}: {}.", what, values));
        }
    }
    found.remarks.extend(disturbed(recordings, "Background load", |info| info.conditions.as_ref()?.others_cpu_ns));
    found
        .remarks
        .extend(disturbed(recordings, "CPU time taken by the hypervisor", |info| info.conditions.as_ref()?.stolen_ns));
    found.remarks.extend(heated(recordings));
    found
}

/// What makes a machine the same, in words.
pub fn machine(machine: &Machine) -> String {
    let memory = (machine.memory_bytes as f64 / f64::from(1 << 30)).round();
    let virtualization = machine.virtualization.as_ref().map_or(String::new(), |name| format!(", {name}"));
    let cores = quantity::plural(machine.cores as usize, "CPU");
    format!("{} ({}, {cores}, {memory} GiB{virtualization})", machine.host, machine.cpu)
}

/// Whether each value has recordings of every side: then it is no reason for a difference between the sides.
fn each_has_every_side(recordings: &[(&str, &CaptureInfo)], of: Property<'_>) -> bool {
    let mut values: BTreeMap<Option<String>, BTreeSet<&str>> = BTreeMap::new();
    for (side, info) in recordings {
        values.entry(of(info)).or_default().insert(side);
    }
    let sides: BTreeSet<&str> = recordings.iter().map(|(side, _)| *side).collect();
    values.values().all(|own| *own == sides)
}

/// The values of the sides where there is more than one: `a (before), b (after)`.
fn differing(recordings: &[(&str, &CaptureInfo)], of: impl Fn(&CaptureInfo) -> Option<String>) -> Option<String> {
    let mut values: Vec<(String, BTreeSet<&str>)> = Vec::new();
    for (side, info) in recordings {
        let Some(value) = of(info) else { continue };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, sides)) => {
                sides.insert(side);
            }
            None => values.push((value, BTreeSet::from([*side]))),
        }
    }
    let named = |(value, sides): &(String, BTreeSet<&str>)| {
        let sides: Vec<&str> = sides.iter().copied().collect();
        format!("{value} ({})", sides.join(", "))
    };
    (values.len() > 1).then(|| values.iter().map(named).collect::<Vec<_>>().join(", "))
}

/// Recordings whose CPUs others used.
fn disturbed(
    recordings: &[(&str, &CaptureInfo)],
    load: &str,
    of: impl Fn(&CaptureInfo) -> Option<u64>,
) -> Option<Note> {
    let percent = |info: &CaptureInfo| {
        let capacity = info.wall_ns()? as f64 * f64::from(info.machine.as_ref()?.cores);
        (capacity > 0.0).then_some(of(info)? as f64 * 100.0 / capacity)
    };
    let all: Vec<f64> = recordings.iter().filter_map(|(_, info)| percent(info)).collect();
    let worst = all.iter().copied().filter(|percent| *percent > DISTURBED_PERCENT).max_by(f64::total_cmp)?;
    let many = all.iter().filter(|percent| **percent > DISTURBED_PERCENT).count();
    Some(note!(
        Limit,
        "{} was above {} in {} of {} (up to {}), so intervals are wide. A quieter machine would resolve smaller changes.",
        load,
        NoteValue::percent(DISTURBED_PERCENT),
        NoteValue::number(many),
        NoteValue::plural(all.len(), "recording"),
        NoteValue::percent(worst)
    ))
}

/// Whether one side was much hotter than another.
fn heated(recordings: &[(&str, &CaptureInfo)]) -> Option<Note> {
    const MUCH_MC: f64 = 5_000.0;
    let mut sides: Vec<(&str, Vec<f64>)> = Vec::new();
    for (side, info) in recordings {
        let Some(heat) = info.conditions.as_ref().and_then(|conditions| conditions.end_temperature_mc) else {
            continue;
        };
        match sides.iter_mut().find(|(known, _)| known == side) {
            Some((_, heats)) => heats.push(heat as f64),
            None => sides.push((side, vec![heat as f64])),
        }
    }
    let means: Vec<(&str, f64)> =
        sides.iter().map(|(side, heats)| (*side, heats.iter().sum::<f64>() / heats.len() as f64)).collect();
    let hottest = means.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let coldest = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (hottest.1 - coldest.1 > MUCH_MC).then(|| {
        let celsius = |millidegrees: f64| format!("{:.0} °C", millidegrees / 1e3);
        note!(
            Limit,
            "The CPU had {} in {} and {} in {}. A hot CPU may run slower.",
            celsius(hottest.1),
            hottest.0,
            celsius(coldest.1),
            coldest.0
        )
    })
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Build, Conditions, Phase};

    use super::*;

    fn recorded(host: &str, build: &str) -> CaptureInfo {
        CaptureInfo {
            scenario: Some("shapes".into()),
            phase: Some(Phase::Steady),
            machine: Some(Machine { host: host.into(), cpu: "EPYC".into(), cores: 2, ..Machine::default() }),
            build: Some(Build { kind: Some(build.into()), told_by: None, revision: None }),
            start_ns: Some(0),
            end_ns: Some(1_000),
            ..CaptureInfo::default()
        }
    }

    #[test]
    fn equal_and_unknown_properties_are_no_differences() {
        let (one, silent) = (recorded("a", "release"), CaptureInfo::default());
        assert_eq!(differences(&[("before", &one), ("after", &one), ("after", &silent)]), Differences::default());
    }

    #[test]
    fn machines_builds_scenarios_and_phases_are_refused_with_a_remedy() {
        let before = recorded("a", "release");
        let other =
            CaptureInfo { scenario: Some("marina".into()), phase: Some(Phase::Loading), ..recorded("b", "debug") };
        let found = differences(&[("before", &before), ("after", &other)]);
        let kinds: Vec<Difference> = found.refused.iter().map(|refusal| refusal.kind).collect();
        assert_eq!(kinds, [Difference::Machine, Difference::Build, Difference::Scenario, Difference::Scenario]);
        assert_eq!(
            found.refused[1].to_string(),
            "the captures were built in different ways: release (before), debug (after); the compiler's changes would look like changes of the code. Build both alike, or allow it with `--across-builds`"
        );
        assert!(found.refused[3].what.starts_with("the captures are of different phases: steady (before)"));
    }

    #[test]
    fn machines_with_every_side_are_no_difference() {
        let (one, two) = (recorded("a", "release"), recorded("b", "release"));
        let all = [("before", &one), ("after", &one), ("before", &two), ("after", &two)];
        assert_eq!(differences(&all), Differences::default());
        assert_eq!(differences(&all[..3]).refused[0].kind, Difference::Machine);
    }

    #[test]
    fn other_programs_are_noted() {
        let of = |program: &str| CaptureInfo { command: vec![program.into(), "-n".into()], ..recorded("a", "release") };
        let (before, moved, other) = (of("/old/sim"), of("/new/sim"), of("/old/sumo"));
        assert_eq!(differences(&[("before", &before), ("after", &moved)]), Differences::default());
        let found = differences(&[("before", &before), ("after", &other)]);
        assert_eq!(found.remarks[0].to_string(), "Programs differ: sim (before), sumo (after).");
    }

    #[test]
    fn background_load_is_noted() {
        let calm = recorded("a", "release");
        let conditions = Some(Conditions { others_cpu_ns: Some(500), ..Conditions::default() });
        let disturbed = CaptureInfo { conditions, ..recorded("a", "release") };
        let found = differences(&[("before", &calm), ("after", &disturbed)]);
        assert_eq!(found.refused, []);
        assert!(
            found.remarks[0].starts_with("Background load was above 5.00 % in 1 of 1 recording (up to 25.00 %)"),
            "{:?}",
            found.remarks
        );
    }
}

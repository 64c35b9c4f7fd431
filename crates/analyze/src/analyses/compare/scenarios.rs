//! The captures of several sets that are compared: those of one scenario and phase.

use std::collections::BTreeSet;

use stepscope_model::{Capture, Note, Phase, note};

/// The captures of one scenario and phase, by side.
#[derive(Debug, Clone)]
pub struct Scenario<'a> {
    /// Its name; `None` if the captures have none.
    pub name: Option<String>,
    /// The phase; `None` if the captures have none.
    pub phase: Option<Phase>,
    /// The captures of each side.
    pub sides: Vec<Vec<&'a Capture>>,
}

impl Scenario<'_> {
    /// `shapes/steady`, as far as known.
    pub fn label(&self) -> String {
        let phase = self.phase.map(|phase| phase.to_string());
        [self.name.clone(), phase].into_iter().flatten().collect::<Vec<_>>().join("/")
    }
}

/// How captures are paired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pairing {
    /// The phase to compare; if `None`, `steady` if any capture has it.
    pub phase: Option<Phase>,
    /// Whether scenarios and phases may differ.
    pub across: bool,
}

/// The scenarios that all sides have, in the order of the first side, and notes about those left out.
///
/// If each side has only one scenario and phase, the sides are paired even if these differ: it is for
/// [`comparable`](crate::analyses::comparable) to refuse them.
pub fn pair<'a>(sides: &[&'a [Capture]], names: &[String], pairing: Pairing) -> (Vec<Scenario<'a>>, Vec<Note>) {
    let phase =
        pairing.phase.or_else(|| sides.iter().flat_map(|side| side.iter()).filter_map(|one| one.info.phase).max());
    // Captures without a phase, such as imported profiles, fit any.
    let wanted = |capture: &&'a Capture| capture.info.phase.is_none() || capture.info.phase == phase;
    let of_phase: Vec<Vec<&Capture>> = sides.iter().map(|side| side.iter().filter(wanted).collect()).collect();
    let mut notes = Vec::new();
    // A side without the phase is kept whole, and refused later.
    let chosen: Vec<Vec<&Capture>> = of_phase
        .into_iter()
        .zip(sides)
        .map(|(chosen, side)| if chosen.is_empty() { side.iter().collect() } else { chosen })
        .collect();
    let scenarios_of = |side: &[&Capture]| side.iter().map(|one| one.info.scenario.clone()).collect::<BTreeSet<_>>();
    let one_each = chosen.iter().all(|side| scenarios_of(side).len() == 1);
    if one_each || pairing.across {
        let first = chosen.first().and_then(|side| side.first());
        let name = first.and_then(|one| one.info.scenario.clone());
        let phase = first.and_then(|one| one.info.phase);
        return (vec![Scenario { name, phase, sides: chosen }], notes);
    }
    let mut order: Vec<Option<String>> = Vec::new();
    for capture in chosen.iter().flatten() {
        if !order.contains(&capture.info.scenario) {
            order.push(capture.info.scenario.clone());
        }
    }
    let mut found = Vec::new();
    for name in order {
        let of =
            |side: &Vec<&'a Capture>| side.iter().copied().filter(|one| one.info.scenario == name).collect::<Vec<_>>();
        let sides: Vec<Vec<&Capture>> = chosen.iter().map(of).collect();
        let lacking: Vec<&str> =
            sides.iter().zip(names).filter(|(side, _)| side.is_empty()).map(|(_, name)| name.as_str()).collect();
        if lacking.is_empty() {
            found.push(Scenario { name, phase, sides });
        } else {
            let name = name.unwrap_or_else(|| "Captures without a scenario".to_owned());
            notes.push(note!(Loss, "Not compared: {}. Sides without it: {}.", name, lacking.join(", ")));
        }
    }
    (found, notes)
}

#[cfg(test)]
mod tests {
    use stepscope_model::CaptureInfo;

    use super::*;

    fn capture(scenario: Option<&str>, phase: Option<Phase>) -> Capture {
        Capture::of(CaptureInfo { scenario: scenario.map(str::to_owned), phase, ..CaptureInfo::default() })
    }

    fn labels(sides: &[&[Capture]], pairing: Pairing) -> (Vec<(String, Vec<usize>)>, Vec<Note>) {
        let names: Vec<String> = (0..sides.len()).map(|side| format!("side {side}")).collect();
        let (found, notes) = pair(sides, &names, pairing);
        (found.iter().map(|one| (one.label(), one.sides.iter().map(Vec::len).collect())).collect(), notes)
    }

    #[test]
    fn captures_of_one_scenario_and_phase_belong_together() {
        let steady = |name| capture(Some(name), Some(Phase::Steady));
        let before =
            [steady("shapes"), capture(Some("shapes"), Some(Phase::Loading)), steady("marina"), steady("shapes")];
        let after = [steady("shapes"), steady("sensors")];
        let (found, notes) = labels(&[&before, &after], Pairing::default());
        assert_eq!(found, [("shapes/steady".to_owned(), vec![2, 1])]);
        assert_eq!(
            notes,
            ["Not compared: marina. Sides without it: side 1.", "Not compared: sensors. Sides without it: side 0."]
        );
        let loading = Pairing { phase: Some(Phase::Loading), across: false };
        assert_eq!(labels(&[&before[..2], &before[1..2]], loading).0, [("shapes/loading".to_owned(), vec![1, 1])]);
    }

    #[test]
    fn sides_of_different_scenarios_are_refused_unless_allowed() {
        let (a, b) = ([capture(Some("a"), Some(Phase::Steady))], [capture(Some("b"), Some(Phase::Loading))]);
        assert_eq!(labels(&[&a, &b], Pairing::default()).0, [("a/steady".to_owned(), vec![1, 1])]);
        let folded = [capture(None, None)];
        assert_eq!(labels(&[&folded, &folded, &folded], Pairing::default()).0, [(String::new(), vec![1, 1, 1])]);
    }
}

//! The captures that belong to one scenario.
//!
//! Two captures belong together if they have the same scenario, variant, phase and command, and no module of the same path
//! has another build-id. A capture without a scenario belongs to no other: guessing from file names once paired one
//! world's profile with another's cache misses (erratum 4 of the Gazebo study).

use stepscope_model::{Capture, Note, NoteValue, Phase, Table, note};

use crate::query::events::{self, Role};
use crate::query::select::Selection;

/// Captures that are evidence of one scenario.
#[derive(Debug)]
pub struct Scenario<'s, 'a> {
    /// Scenario and variant; the file or command of a capture that names no scenario.
    pub label: String,
    /// The captures.
    pub captures: Vec<&'s Selection<'a>>,
}

impl<'s, 'a> Scenario<'s, 'a> {
    /// The captures with samples of CPU cost.
    ///
    /// Time or cycles come before instructions, which a simulation counts, and before counts of unknown kind. Only captures that
    /// count the same are added up.
    pub fn cpu(&self) -> impl Iterator<Item = &'s Selection<'a>> + '_ {
        let counted = |selection: &Selection<'_>| {
            let event = selection.event().filter(|_| selection.samples().next().is_some())?;
            let order = [Role::Cpu, Role::Other, Role::Instructions]
                .into_iter()
                .position(|role| events::role(event) == role)?;
            Some((order, event.unit.clone()))
        };
        let best = self.captures.iter().filter_map(|one| counted(one)).reduce(|a, b| if b.0 < a.0 { b } else { a });
        self.captures.iter().filter(move |one| best.is_some() && counted(one) == best).copied()
    }

    /// The captures whose samples count something else than [`cpu`](Self::cpu), and no cache misses or faults.
    fn unlike(&self) -> impl Iterator<Item = &'s Selection<'a>> + '_ {
        let is_used = |one: &Selection<'a>| self.cpu().any(|cpu| std::ptr::eq(cpu, one));
        let could_be_cpu = |one: &Selection<'a>| {
            one.event().is_some_and(|event| matches!(events::role(event), Role::Cpu | Role::Other))
                && one.samples().next().is_some()
        };
        self.captures.iter().copied().filter(move |one| could_be_cpu(one) && !is_used(one))
    }

    /// Says which captures' samples are not added to the others.
    pub fn apart(&self) -> impl Iterator<Item = Note> + '_ {
        self.unlike().map(|one| {
            let counted = one.event().map_or("", |event| event.name.as_str()).to_owned();
            note!(Limit, "Left out: samples of `{}`, which do not add up with the others.", counted)
                .about(one.capture().info.name())
        })
    }
}

/// The phase to rank: the wanted one, else `steady` if any capture is of it, else the one there is.
pub fn phase(selections: &[Selection<'_>], wanted: Option<Phase>) -> Option<Phase> {
    let phases = || selections.iter().filter_map(|selection| selection.capture().info.phase);
    wanted.or_else(|| phases().max())
}

/// Groups the captures of a phase by scenario; without a phase, those of unknown phase.
///
/// Captures that are left out, or ranked apart from others of their scenario, go to `notes`.
pub fn pair<'s, 'a>(
    selections: &'s [Selection<'a>],
    phase: Option<Phase>,
    notes: &mut Vec<Note>,
) -> Vec<Scenario<'s, 'a>> {
    let mut scenarios: Vec<Scenario<'s, 'a>> = Vec::new();
    let mut other_phase: Option<(Phase, usize)> = None;
    let mut unknown_phase = 0;
    for selection in selections {
        let info = &selection.capture().info;
        if info.phase != phase {
            match info.phase {
                Some(phase) => other_phase = Some((phase, other_phase.map_or(0, |(_, count)| count) + 1)),
                None => unknown_phase += 1,
            }
            continue;
        }
        add(&mut scenarios, selection, notes);
    }
    if let Some((phase, count)) = other_phase {
        let captures = NoteValue::plural(count, "capture");
        notes.push(note!(
            Hint,
            "Not ranked here: {} of the {} phase; see `--phase {}`.",
            captures,
            phase.to_string(),
            phase.to_string()
        ));
    }
    if unknown_phase > 0 {
        let captures = NoteValue::plural(unknown_phase, "capture");
        notes.push(note!(Limit, "Not ranked here: {} of unknown phase. Rank them by themselves.", captures));
    }
    scenarios
}

/// All scenarios, of every phase. Captures that are kept apart from others of their scenario go to `notes`.
pub(crate) fn of_each_phase<'s, 'a>(selections: &[&'s Selection<'a>], notes: &mut Vec<Note>) -> Vec<Scenario<'s, 'a>> {
    let mut phases: Vec<(Option<Phase>, Vec<Scenario<'s, 'a>>)> = Vec::new();
    for selection in selections {
        let phase = selection.capture().info.phase;
        let place = phases.iter().position(|(known, _)| *known == phase).unwrap_or_else(|| {
            phases.push((phase, Vec::new()));
            phases.len() - 1
        });
        add(&mut phases[place].1, selection, notes);
    }
    phases.into_iter().flat_map(|(_, scenarios)| scenarios).collect()
}

/// Adds a capture to the scenario that it is evidence of, or as a new one.
fn add<'s, 'a>(scenarios: &mut Vec<Scenario<'s, 'a>>, selection: &'s Selection<'a>, notes: &mut Vec<Note>) {
    match place(scenarios, selection.capture(), notes) {
        Some(index) => scenarios[index].captures.push(selection),
        None => {
            let label = free_label(scenarios, selection.capture());
            scenarios.push(Scenario { label, captures: vec![selection] });
        }
    }
}

/// Groups of captures that are known to count the same: time or cycles on a CPU with the other events of their scenarios,
/// or an event with the same name and unit. A file that does not say what it counts is alone.
///
/// The mean of CPU time and cache misses means nothing, and no content or file name shows which one a file has.
pub fn alike<'a>(selections: &[Selection<'a>]) -> Vec<Vec<Selection<'a>>> {
    references_alike(selections).into_iter().map(|group| group.into_iter().cloned().collect()).collect()
}

/// The same, without copies.
pub(crate) fn references_alike<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<Vec<&'s Selection<'a>>> {
    let mut groups: Vec<(Counted, Vec<&Selection<'a>>)> = Vec::new();
    for selection in selections {
        let counted = Counted::of(selection);
        match groups.iter_mut().find(|(known, _)| *known == counted && counted != Counted::Unknown) {
            Some((_, group)) => group.push(selection),
            None => groups.push((counted, vec![selection])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The table of each group of [`alike`] captures. If there are several groups, titles name them and a note says why.
pub fn each_alike<'a>(selections: &[Selection<'a>], table: impl Fn(&[Selection<'a>]) -> Table) -> Vec<Table> {
    let groups = alike(selections);
    if groups.len() < 2 {
        return vec![table(selections)];
    }
    let of_group = |group: &Vec<Selection<'a>>| {
        let mut table = table(group);
        table.title = format!("{}: {}", table.title, group_label(group));
        table.note(apart_note());
        table
    };
    groups.iter().map(of_group).collect()
}

/// Name of a group of [`alike`] captures.
pub fn group_label(group: &[Selection<'_>]) -> String {
    let mut labels: Vec<String> = group.iter().map(|selection| selection.capture().info.name()).collect();
    labels.dedup();
    labels.join(", ")
}

/// Why groups are ranked apart.
pub fn apart_note() -> Note {
    note!(
        Limit,
        "Ranked apart: it is unknown whether these files count the same. If they do, say what they count: `--unit samples`."
    )
}

/// Name and unit of an event of a file that says neither.
const UNKNOWN: &str = "weight";

/// What the samples of a capture count.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Counted {
    /// Time or cycles on a CPU, or evidence that belongs to a scenario with it.
    Cpu,
    /// Another event, by name and unit.
    Event(String, String),
    Unknown,
}

impl Counted {
    fn of(selection: &Selection<'_>) -> Self {
        let Some(event) = selection.event() else { return Self::Cpu };
        match events::role(event) {
            Role::Cpu => Self::Cpu,
            _ if selection.capture().info.scenario.is_some() => Self::Cpu,
            Role::Other if event.name == UNKNOWN && event.unit == UNKNOWN => Self::Unknown,
            _ => Self::Event(event.name.clone(), event.unit.clone()),
        }
    }
}

/// The scenario that a capture is evidence of, if it is there already.
fn place(scenarios: &[Scenario<'_, '_>], capture: &Capture, notes: &mut Vec<Note>) -> Option<usize> {
    capture.info.scenario.as_ref()?;
    let mut mismatch = None;
    for (index, scenario) in scenarios.iter().enumerate() {
        let other = scenario.captures[0].capture();
        if !same_name(capture, other) {
            continue;
        }
        match difference(capture, other) {
            None => return Some(index),
            Some(difference) => mismatch = Some((scenario.label.clone(), difference)),
        }
    }
    let (label, difference) = mismatch?;
    notes.push(note!(Limit, "A capture is ranked apart from the others of its scenario: {}.", difference).about(label));
    None
}

fn same_name(a: &Capture, b: &Capture) -> bool {
    (&a.info.scenario, &a.info.variant, a.info.phase) == (&b.info.scenario, &b.info.variant, b.info.phase)
}

/// Why two captures of one scenario cannot be joined. Missing information is no difference.
fn difference(a: &Capture, b: &Capture) -> Option<String> {
    let commands = (&a.info.command, &b.info.command);
    if !commands.0.is_empty() && !commands.1.is_empty() && commands.0 != commands.1 {
        return Some(format!("their commands differ (`{}`, `{}`)", commands.1.join(" "), commands.0.join(" ")));
    }
    let builds = b.modules.iter().filter_map(|module| Some((&module.path, module.build_id.as_ref()?)));
    let builds: rustc_hash::FxHashMap<_, _> = builds.collect();
    let rebuilt = a.modules.iter().find(|module| {
        module.build_id.as_ref().is_some_and(|id| builds.get(&module.path).is_some_and(|other| *other != id))
    })?;
    Some(format!("their builds of {} differ", rebuilt.name()))
}

/// Scenario and variant, with a number where the name is taken.
fn free_label(scenarios: &[Scenario<'_, '_>], capture: &Capture) -> String {
    let info = &capture.info;
    let name = match (&info.scenario, &info.variant) {
        (Some(scenario), Some(variant)) => format!("{scenario}/{variant}"),
        (Some(scenario), None) => scenario.clone(),
        (None, _) => capture.info.name(),
    };
    let taken = |label: &str| scenarios.iter().any(|scenario| scenario.label == label);
    if !taken(&name) {
        return name;
    }
    let mut numbered = (2_u32..).map(|number| format!("{name} ({number})"));
    numbered.find(|label| !taken(label)).expect("there are more numbers than scenarios")
}

//! The measurements of a case, and their files.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_analyze::diagnose::Calls;
use stepscope_analyze::proof::{Build, Case, Counted, Profile, Runs};
use stepscope_analyze::{Functions, Owned, Selection};
use stepscope_model::{Capture, Dimension, DimensionStatus, ThreadId};

use super::account::Account;
use super::catalogue::{CountedAllocations, CountedCalls};
use super::{Catalogue, Switch};
use crate::findings::findings;

/// Folder of accounts in a run's folder.
pub(super) const ACCOUNTS: &str = "accounts";

/// The catalogue, in that folder.
pub(super) const CATALOGUE_FILE: &str = "catalogue.json";

/// Variant name of recordings of controls.
pub(super) const CONTROL: &str = "control";

/// Scenario of a world in which everything is counted.
pub(super) fn counts_of(world: &str) -> String {
    format!("counts-{world}")
}

/// Which switches are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Alone,
    Fast,
    All,
    AllBut,
}

impl Setting {
    pub const EACH: [Setting; 4] = [Setting::Alone, Setting::Fast, Setting::All, Setting::AllBut];

    pub fn name(self) -> &'static str {
        match self {
            Setting::Alone => "alone",
            Setting::Fast => "fast",
            Setting::All => "all",
            Setting::AllBut => "all-but",
        }
    }

    pub fn slow(self, switch: &str) -> String {
        match self {
            Setting::Alone => switch.to_owned(),
            Setting::Fast => String::new(),
            Setting::All => "all".to_owned(),
            Setting::AllBut => format!("all,-{switch}"),
        }
    }
}

/// How a run is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Recorded,
    Timed,
    /// Number within its round.
    Bare(u32),
}

impl Way {
    /// File name of such a run's account.
    pub fn file(self, scenario: &str, setting: Setting, round: u32) -> String {
        let way = match self {
            Way::Recorded => "recorded".to_owned(),
            Way::Timed => "timed".to_owned(),
            Way::Bare(index) => format!("bare-{index}"),
        };
        format!("{scenario}-{}-{way}-{round}.json", setting.name())
    }

    /// Way and round from the file name of an account of this scenario and setting.
    pub fn of_file(file: &str, scenario: &str, setting: Setting) -> Option<(Self, u32)> {
        let rest = file.strip_prefix(scenario)?.strip_prefix('-')?.strip_prefix(setting.name())?.strip_prefix('-')?;
        let mut parts = rest.strip_suffix(".json")?.split('-');
        let way = match parts.next()? {
            "recorded" => Way::Recorded,
            "timed" => Way::Timed,
            "bare" => Way::Bare(parts.next()?.parse().ok()?),
            _ => return None,
        };
        let round = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some((way, round))
    }
}

/// A case and the state hashes of its runs, by number of steps. More than one hash means that a switch changes the simulation.
pub(super) struct Evidence {
    pub case: Case,
    states: BTreeMap<u64, BTreeSet<String>>,
}

impl Evidence {
    pub fn new(switch: &Switch, build: Build) -> Self {
        let case = Case {
            known: switch.known(),
            build,
            alone: Runs::default(),
            fast: Runs::default(),
            all: Runs::default(),
            all_but: Runs::default(),
        };
        Self { case, states: BTreeMap::new() }
    }

    /// Adds a run; recorded runs have a profile.
    pub fn add(&mut self, setting: Setting, way: Way, account: &Account, profile: Option<Profile>) {
        self.states.entry(account.steps).or_default().insert(account.state.clone());
        let truth = account.truth(self.case.known.phase);
        let runs = match setting {
            Setting::Alone => &mut self.case.alone,
            Setting::Fast => &mut self.case.fast,
            Setting::All => &mut self.case.all,
            Setting::AllBut => &mut self.case.all_but,
        };
        match way {
            Way::Bare(_) => runs.bare.push(truth),
            Way::Timed => runs.timed.push(truth),
            Way::Recorded => runs.recorded.push(truth),
        }
        runs.profiles.extend(profile);
    }

    /// Whether runs with the same number of steps ended in different states.
    pub fn differs(&self) -> bool {
        self.states.values().any(|states| states.len() > 1)
    }
}

/// The note about that.
pub(super) fn differs(switch: &Switch) -> String {
    format!("{}: what is simulated is not the same in all settings", switch.name)
}

/// Counts of a recording and those of the program.
pub(super) fn counted(world: &str, capture: &Capture, account: &Account, catalogue: &Catalogue) -> Vec<Counted> {
    let whole = &account.whole;
    let row = |what: &str, program: u64, recorded: Option<u64>, may_differ: u64, remark: &str| Counted {
        of: world.to_owned(),
        what: what.to_owned(),
        program,
        recorded,
        may_differ,
        remark: remark.to_owned(),
    };
    let steps = whole.steps().saturating_sub(1);
    let mut rows = vec![row(
        "steps",
        steps,
        Some(capture.steps.len() as u64),
        0,
        "a step is from one mark to the next, so that there is one less than marks",
    )];
    for counted in catalogue.counted_scopes.iter().filter(|counted| counted.world == world) {
        let Some(program) = whole.counts.get(&counted.counter) else { continue };
        let recorded = capture.scopes.iter().filter(|scope| *scope.name == *counted.scope).count() as u64;
        rows.push(row(&format!("scope {}", counted.scope), *program, Some(recorded), 0, ""));
    }
    let switches = whole.voluntary_switches + whole.involuntary_switches;
    // Only the program's, because its children have context switches of their own.
    let process = |thread: ThreadId| capture.threads[thread.index()].process;
    let own = capture.steps.first().and_then(|step| process(step.thread));
    let waits = capture.waits.iter().filter(|wait| process(wait.thread) == own).map(|wait| u64::from(wait.count)).sum();
    rows.push(row(
        "context switches",
        switches,
        Some(waits),
        10 + switches / 100,
        "the program's account ends some milliseconds before the recording, and begins after it",
    ));
    let count = |name: &str| whole.counts.get(name).copied().unwrap_or(0);
    let heap = why_missing(capture, Dimension::Heap);
    for counted in catalogue.counted_allocations.iter().filter(|counted| counted.world == world) {
        let program = counted.less.iter().fold(count(&counted.counter), |all, less| all.saturating_sub(count(less)));
        let kind = if counted.temporary { "temporary allocations" } else { "allocations" };
        let recorded = heap.is_empty().then(|| allocations(capture, counted));
        rows.push(row(&format!("{kind} under {}", counted.function), program, recorded, 0, &heap));
    }
    let calls = why_missing(capture, Dimension::Syscalls);
    for counted in catalogue.counted_calls.iter().filter(|counted| counted.world == world) {
        let recorded = calls.is_empty().then(|| system_calls(capture, counted));
        let what = format!("system calls {} for {}", counted.call, counted.counter);
        rows.push(row(&what, count(&counted.counter), recorded, 0, &calls));
    }
    rows
}

/// Why a dimension is not whole; empty if it is.
fn why_missing(capture: &Capture, dimension: Dimension) -> String {
    match capture.info.dimensions.get(&dimension) {
        Some(DimensionStatus::Recorded) => String::new(),
        Some(DimensionStatus::Missing { reason, .. }) => reason.clone(),
        Some(DimensionStatus::Partial { lacks }) => lacks.join(" "),
        None => format!("`{dimension}` was not recorded"),
    }
}

/// Recorded allocations of a function with all it calls.
fn allocations(capture: &Capture, counted: &CountedAllocations) -> u64 {
    let is_under = under(capture, |function| function == counted.function);
    let rows = capture.allocations.iter().filter(|row| row.stack.is_some_and(|stack| is_under[stack.index()]));
    rows.map(|row| if counted.temporary { row.temporary } else { row.calls }).sum()
}

/// Recorded system calls at stacks with any of the functions.
fn system_calls(capture: &Capture, counted: &CountedCalls) -> u64 {
    let is_under = under(capture, |function| counted.functions.iter().any(|part| function.contains(part.as_str())));
    let of_call = capture.system_calls.iter().filter(|row| *row.call == *counted.call);
    of_call.filter(|row| row.stack.is_some_and(|stack| is_under[stack.index()])).map(|row| row.count).sum()
}

/// One flag per stack: whether it has a function.
fn under(capture: &Capture, is_it: impl Fn(&str) -> bool) -> Vec<bool> {
    let of_frame: Vec<bool> = capture.frames.iter().map(|frame| is_it(&frame.function)).collect();
    let mut under: Vec<bool> = Vec::with_capacity(capture.stacks.len());
    for node in &capture.stacks {
        let above = node.parent.is_some_and(|parent| under[parent.index()]);
        under.push(above || of_frame[node.frame.index()]);
    }
    under
}

/// The profile of a recording.
pub(super) fn profile(capture: &Capture, owned: &Owned) -> Profile {
    let functions = Functions::of(capture, owned);
    let selection = Selection::all(capture, &functions);
    let findings = findings(std::slice::from_ref(&selection), &Calls::default());
    Profile::of(&selection, &findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_of_accounts_name_scenario_setting_way_and_round() {
        for setting in Setting::EACH {
            for way in [Way::Recorded, Way::Timed, Way::Bare(3), Way::Bare(12)] {
                let file = way.file("full-scan", setting, 7);
                let read = Setting::EACH.map(|of| (of, Way::of_file(&file, "full-scan", of)));
                assert_eq!(read, Setting::EACH.map(|of| (of, (of == setting).then_some((way, 7)))), "{file}");
            }
        }
        for other in
            ["full-scan-renamed-all-timed-1.json", "pilot.json", "full-scan-all-timed-1.ready", "full-scan-all"]
        {
            assert_eq!(Way::of_file(other, "full-scan", Setting::All), None, "{other}");
        }
    }
}

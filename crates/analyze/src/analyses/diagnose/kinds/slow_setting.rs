//! A library runs with a setting that is slow for a world of this size, and has a better one.
//!
//! Evidence: much of the CPU time, all the time, is below a function that a well-known library runs with that setting alone. A name alone shows
//! nothing: in a small world the simple way is the fastest, and costs little. Look-alikes: worlds in which nearly all pairs
//! of bodies touch, so that each way has to visit them.

use stepscope_model::StackId;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};
use crate::query::qualified_name::own_name;

/// What a library does with a setting.
struct Setting {
    /// Beginnings of the names of the functions that run with this setting alone.
    functions: &'static [&'static str],
    /// Least share of the CPU time.
    least: f64,
    confidence: Confidence,
    /// What they do, after the function's name.
    does: &'static str,
    /// What to set instead.
    instead: &'static str,
}

/// Least share of a way that is simple, for a library that has better ones.
const SIMPLE: f64 = 20.0;

static SETTINGS: &[Setting] = &[
    Setting {
        functions: &["dxSimpleSpace::collide"],
        least: SIMPLE,
        confidence: Confidence::Fair,
        does: "tests every pair of geometries in a simple space of ODE",
        instead: "Create the space with `dHashSpaceCreate` or `dSweepAndPruneSpaceCreate`: they test neighbours.",
    },
    Setting {
        functions: &["btSimpleBroadphase::calculateOverlappingPairs"],
        least: SIMPLE,
        confidence: Confidence::Fair,
        does: "tests every pair of objects in the simple broad phase of Bullet",
        instead: "Give the world a `btDbvtBroadphase`, which keeps a tree of the objects.",
    },
    Setting {
        functions: &["fcl::NaiveCollisionManager::collide", "fcl::NaiveCollisionManager::distance"],
        least: SIMPLE,
        confidence: Confidence::Fair,
        does: "tests every pair of objects in the naive manager of FCL",
        instead: "Use `fcl::DynamicAABBTreeCollisionManager`, which keeps a tree of the objects.",
    },
    Setting {
        functions: &["ns3::ListScheduler::Insert"],
        least: SIMPLE,
        confidence: Confidence::Fair,
        does: "looks for the place of each event from the front of the list of ns-3's `ListScheduler`",
        instead: "Leave the scheduler at its default (`ns3::MapScheduler`), or set `ns3::HeapScheduler` or `ns3::CalendarScheduler`.",
    },
    Setting {
        functions: &["LAMMPS_NS::Neighbor::build"],
        least: 50.0,
        confidence: Confidence::Weak,
        does: "builds the lists of neighbours of LAMMPS so often that they cost more than the forces",
        instead: "Let LAMMPS look whether atoms have moved (`neigh_modify delay 5 check yes`), or widen the skin (`neighbor`).",
    },
];

pub(super) struct SlowSetting;

impl Kind for SlowSetting {
    fn name(&self) -> &'static str {
        "slow-setting"
    }

    fn advice(&self) -> &'static str {
        "Change the setting where the program sets the library up, as the reason below says."
    }

    fn confirm(&self) -> &'static str {
        "Change the setting alone and compare: `stepscope ab`."
    }

    /// The same, seen in machine code.
    fn effects(&self) -> &'static [&'static str] {
        &["list-search", "full-scan-each-step", "called-very-often"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        SETTINGS.iter().filter_map(|setting| setting.found(seen)).collect()
    }
}

impl Setting {
    fn found(&self, seen: &Seen<'_, '_>) -> Option<Found> {
        let functions = seen.functions();
        let inside = seen.paths_through(|function| is_one_of(function, self.functions));
        let at = |stack: StackId| inside[stack.index()];
        let share = seen.share(seen.sum(at));
        if share < self.least || !seen.recurs(at) {
            return None;
        }
        let (function, named) = functions.all().find(|(_, one)| is_one_of(one, self.functions))?;
        let caller = || seen.common_owner(at);
        let about = if functions.is_owner(function) { function } else { caller()? };
        let name = own_name(&named.name);
        let text = format!("It takes {} of the CPU time{}. {}", percent(share), seen.of_steps(), self.instead);
        let found = Found::of(seen, about, format!("`{name}` {}", self.does), parts(inside.iter().copied()));
        Some(found.sure(self.confidence).because(text, explain(seen, about)))
    }
}

#[cfg(test)]
mod tests {
    use crate::analyses::diagnose::tests::{found, looping, work};

    #[test]
    fn a_simple_space_that_takes_much_is_a_slow_setting_and_one_that_takes_little_is_none() {
        let space = "sim::Run;dSpaceCollide;dxSimpleSpace::collide";
        let of = |tenths: u64| found(&looping(|_, tenth| work(tenth, &[(tenths, space)], "sim::Move")));
        assert_eq!(of(4), ["slow-setting | sim::Run | 40"]);
        assert!(of(1).is_empty(), "a small world: {:?}", of(1));
    }

    #[test]
    fn lists_of_neighbours_are_built_too_often_if_they_cost_more_than_the_forces() {
        let build = "sim::Run;LAMMPS_NS::Neighbor::build";
        let of = |tenths: u64| found(&looping(|_, tenth| work(tenth, &[(tenths, build)], "sim::Move")));
        assert_eq!(of(6), ["slow-setting | sim::Run | 60"]);
        assert!(of(4).is_empty(), "{:?}", of(4));
    }
}

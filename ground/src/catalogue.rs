//! What is known of every pathology: where it comes from, where a profile shows it, how much it should be.
//!
//! Each world lists its own; [`all`] is every one of them. Figures are where to look, not promises: they were measured on
//! two cores of a virtual machine, and `stepscope prove` measures them on yours.

mod list;

pub use list::{print_json, print_text};

use clap::ValueEnum;
use serde::Serialize;

use crate::switches::Switch;
use crate::{entities, monitor, region, stats, topology};

/// A world that can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Boxes, cylinders, spheres and capsules standing in a field, around a place where robots patrol.
    Shapes,
    /// The same, and every robot has a lidar; with `--cameras`, depth cameras look at the shapes.
    Sensors,
    /// Textured buoys on a circle, and a camera in the middle that turns so fast that every 50th step a further buoy
    /// comes into view.
    Marina,
    /// A virtual world's region: prims in groups, scripts with timers, avatars over UDP, an SQLite store.
    Region,
    /// Writers of records and the attributes they are made of.
    Stats,
    /// A monitor of processes and their connections.
    Monitor,
    /// Nodes that publish and subscribe, served by an executor.
    Topology,
}

impl World {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Where in a run a pathology is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// From the start until the first step is done.
    Loading,
    /// All steps after that.
    Steady,
}

impl Phase {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Loading => "loading",
            Phase::Steady => "steady",
        }
    }
}

/// What grows in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The option that sets it, as `--n`.
    pub option: &'static str,
    /// What it counts, as `shapes`.
    pub counts: &'static str,
    /// A size at which the slow way dominates its phase, or the steps that it makes slow; what is measured.
    pub size: u32,
    /// Smaller sizes, from which growth is measured, ascending.
    pub smaller: &'static [u32],
}

/// What the fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Saves {
    /// CPU time of the phase.
    Cpu,
    /// Wall time of the phase, and no CPU time.
    Wall,
}

/// What to expect of a switch at its [size](Axis::size), as measured on two cores of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Expected {
    /// Share of the phase's CPU time under [`Pathology::function`], with this switch alone, in percent.
    pub share_percent: f64,
    /// What the fix saves of the phase, in percent.
    pub gain_percent: f64,
    /// Slope of the cost per step, or of the phase's cost, over the size on logarithmic axes: slow.
    pub growth_slow: f64,
    /// The same when it is fast.
    pub growth_fast: f64,
}

/// What is known of a switch.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pathology {
    /// The switch.
    #[serde(skip)]
    pub switch: Switch,
    /// Its name on the command line.
    pub name: &'static str,
    /// The study that found it.
    pub study: &'static str,
    /// The phase it is seen in.
    pub phase: Phase,
    /// The world it matters in.
    pub world: World,
    /// Options of the scenario besides the axis.
    pub options: &'static [&'static str],
    /// What grows.
    pub axis: Axis,
    /// The function that a profile shows: with everything it calls it is the cost of the slow way.
    pub function: &'static str,
    /// Functions that a ranking of the user's own code may put first for it: `function` and its parts, and the nearest
    /// owned caller where the slow way is in others' code.
    pub guilty: &'static [&'static str],
    /// The functions that hold both ways, slow and fast: what they cost less is what the fix of this code saves. None of them
    /// calls another. None at all where nothing holds both; the slow way itself is then all there is.
    pub seam: &'static [&'static str],
    /// What the slow way does.
    pub slow: &'static str,
    /// What the fast way does.
    pub fast: &'static str,
    /// What the fix saves.
    pub saves: Saves,
    /// Why what the fix saves is not what `seam` costs less, where that is so: effects downstream. Empty otherwise.
    pub downstream: &'static str,
    /// What to expect.
    pub expected: Expected,
}

impl Pathology {
    /// The arguments of `ground` that run it at a size, without `--slow`.
    pub fn arguments(&self, size: u32) -> Vec<String> {
        let fixed = ["run", "--world"].map(str::to_owned).into_iter().chain([self.world.name()]);
        let options = self.options.iter().map(|option| (*option).to_owned());
        fixed.chain(options).chain([self.axis.option.to_owned(), size.to_string()]).collect()
    }
}

/// A run with every switch fast in which nothing of what is named must be found dear.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Control {
    /// What it is called.
    pub name: &'static str,
    /// The world.
    pub world: World,
    /// Options of the scenario.
    pub options: &'static [&'static str],
    /// What must stay silent, and why one might think otherwise.
    pub why: &'static str,
    /// Functions that must have less than 5 % of the CPU time and of the steps' critical path, whole names as profiles
    /// show them. The slow ways of all switches are checked anyway.
    pub silent: &'static [&'static str],
}

impl Control {
    /// The arguments of `ground` that run it.
    pub fn arguments(&self) -> Vec<String> {
        let fixed = ["run", "--world"].map(str::to_owned).into_iter().chain([self.world.name()]);
        fixed.chain(self.options.iter().map(|option| (*option).to_owned())).collect()
    }
}

/// All pathologies, in the order they are listed.
pub fn all() -> impl Iterator<Item = &'static Pathology> {
    let worlds = [entities::PATHOLOGIES, region::PATHOLOGIES, stats::PATHOLOGIES, monitor::PATHOLOGIES];
    worlds.into_iter().flatten().chain(topology::PATHOLOGIES)
}

/// All controls, in the order they are listed.
pub fn controls() -> impl Iterator<Item = &'static Control> {
    let worlds = [entities::CONTROLS, region::CONTROLS, stats::CONTROLS, monitor::CONTROLS, topology::CONTROLS];
    worlds.into_iter().flatten()
}

impl Switch {
    /// What is known of it.
    pub fn pathology(self) -> &'static Pathology {
        all().find(|pathology| pathology.switch == self).expect("a switch can only be set by its entry")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_and_every_name_has_one_entry() {
        let mut switches: Vec<_> = all().map(|pathology| pathology.switch).collect();
        let mut names: Vec<_> = all().map(|pathology| pathology.name).collect();
        let count = names.len();
        switches.sort_unstable();
        switches.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!((switches.len(), names.len()), (count, count));
    }

    #[test]
    fn every_entry_says_where_it_grows_from_and_what_is_to_blame() {
        for pathology in all() {
            let sizes = [pathology.axis.smaller, &[pathology.axis.size]].concat();
            assert!(sizes.is_sorted() && sizes.len() > 1, "{}: {sizes:?}", pathology.name);
            assert!(!pathology.guilty.is_empty(), "{}", pathology.name);
        }
    }

    #[test]
    fn arguments_are_those_of_the_program() {
        let full_scan = Switch::FullScan.pathology();
        assert_eq!(full_scan.arguments(1000), ["run", "--world", "shapes", "--n", "1000"]);
    }
}

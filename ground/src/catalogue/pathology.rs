//! The entries of the catalogue.

use clap::ValueEnum;
use serde::Serialize;

use crate::switches::{Switch, name_of};

/// A world that can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Boxes, cylinders, spheres and capsules in a field around patrolling robots.
    Shapes,
    /// The same with a lidar on every robot; `--cameras` adds depth cameras that look at the shapes.
    Sensors,
    /// Textured buoys on a circle around a turning camera; every 50th step another buoy comes into view.
    Marina,
    /// A virtual world's region: prims in groups, scripts with timers, avatars over UDP, an SQLite store.
    Region,
    /// Network devices with attributes that write records.
    Stats,
    /// A monitor of processes and their connections.
    Monitor,
    /// Nodes that publish and subscribe, served by an executor.
    Topology,
}

/// The part of a run in which a pathology costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// From the start to the end of the first step.
    Loading,
    /// All later steps.
    Steady,
}

/// The size that a scenario varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The option that sets it, as `--n`.
    pub option: &'static str,
    /// The unit, as `shapes`.
    pub counts: &'static str,
    /// The size to measure at: the slow code dominates its phase, or the steps that it makes slow.
    pub size: u32,
    /// Smaller sizes for measuring growth, ascending.
    pub smaller: &'static [u32],
}

/// The kind of time that the fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Saves {
    /// CPU time of the phase.
    Cpu,
    /// Wall time of the phase, and no CPU time.
    Wall,
}

/// Measurements of a switch at its [size](Axis::size), on a virtual machine with two cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Expected {
    /// Share of the phase's CPU time under [`Pathology::function`] with only this switch slow, in percent.
    pub share_percent: f64,
    /// Share of the phase that the fix saves, in percent.
    pub gain_percent: f64,
    /// Slope of cost over size on logarithmic axes, with the switch slow. Cost is per step, or of loading.
    pub growth_slow: f64,
    /// The same with the switch fast.
    pub growth_fast: f64,
}

/// A performance defect that a switch turns on.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pathology {
    /// The switch.
    #[serde(rename = "name")]
    pub switch: Switch,
    /// The study that found it.
    pub study: &'static str,
    /// The phase in which it costs time.
    pub phase: Phase,
    /// The world that has it.
    pub world: World,
    /// Options of the scenario besides the axis.
    pub options: &'static [&'static str],
    /// The size that grows.
    pub axis: Axis,
    /// The function whose inclusive cost is the cost of the slow code.
    pub function: &'static str,
    /// Functions that a ranking of owned code may put first: `function`, its parts, and the nearest owned caller of slow
    /// third-party code.
    pub guilty: &'static [&'static str],
    /// Kinds of findings that say what is wrong: see `docs/analyses/diagnose.md`.
    pub kinds: &'static [&'static str],
    /// Functions that contain both the slow and the fast code, so that the drop in their cost is the gain. None of them
    /// calls another. Empty if no function contains both.
    pub seam: &'static [&'static str],
    /// What the slow code does.
    pub slow: &'static str,
    /// What the fast code does.
    pub fast: &'static str,
    /// What the fix saves.
    pub saves: Saves,
    /// Why the fix saves another amount than the drop in the cost of `seam`. Empty if it does not.
    pub downstream: &'static str,
    /// Measurements to expect.
    pub expected: Expected,
}

impl Pathology {
    /// The name of its switch.
    pub fn name(&self) -> String {
        self.switch.name()
    }

    /// The arguments of `ground` that run it at a size, without `--slow`.
    pub fn arguments(&self, size: u32) -> Vec<String> {
        let mut arguments = run(self.world, self.options);
        arguments.extend([self.axis.option.to_owned(), size.to_string()]);
        arguments
    }
}

/// A run with every switch fast, in which a profiler must find nothing expensive.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Control {
    /// Its name.
    pub name: &'static str,
    /// The world.
    pub world: World,
    /// Options of the scenario.
    pub options: &'static [&'static str],
    /// What happens in it that could be mistaken for a defect.
    pub why: &'static str,
    /// Full names of functions that must have less than 5 % of the CPU time and of the critical path. The slow code of
    /// all switches is always checked.
    pub silent: &'static [&'static str],
}

impl Control {
    /// The arguments of `ground` that run it.
    pub fn arguments(&self) -> Vec<String> {
        run(self.world, self.options)
    }
}

fn run(world: World, options: &[&str]) -> Vec<String> {
    let fixed = ["run", "--world"].map(str::to_owned).into_iter().chain([name_of(&world)]);
    fixed.chain(options.iter().map(|option| (*option).to_owned())).collect()
}

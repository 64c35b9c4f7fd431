//! The pathologies that can be switched on: what each does when it is slow, and the fix.

use std::fmt;
use std::str::FromStr;

use crate::worlds::WorldKind;

/// A known pathology. The simulator is fast in all respects unless a switch is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Switch {
    /// Every step walks all entities for a component that none has.
    FullScan,
    /// Every step makes a fresh map of all poses.
    PoseMap,
    /// The world is parsed, its models thrown away, and parsed again.
    ParseTwice,
    /// The first step writes every model's description as text.
    SerializeFirst,
    /// The engine is told that bodies which never move might.
    StaticBroadphase,
    /// One of three workers has all lidars.
    Imbalance,
    /// Textures are decoded when a camera first sees them, again each time.
    LazyTexture,
}

/// What is known of a switch.
#[derive(Debug, Clone, Copy)]
pub struct Pathology {
    /// The switch.
    pub switch: Switch,
    /// Its name on the command line.
    pub name: &'static str,
    /// The study that found it.
    pub study: &'static str,
    /// The phase it is seen in.
    pub phase: &'static str,
    /// The function that a profile shows, as named there.
    pub function: &'static str,
    /// What the slow way does.
    pub slow: &'static str,
    /// What the fast way does.
    pub fast: &'static str,
    /// The world it matters in.
    pub world: WorldKind,
    /// Number of shapes at which the slow way dominates its phase, or the steps that it makes slow.
    pub shapes: u32,
    /// Share of the phase's CPU time under `function` at that size, in percent, as measured on two cores of a virtual
    /// machine. Where to look, not a promise.
    pub share_percent: u32,
}

/// All switches, in the order they are listed.
pub const PATHOLOGIES: [Pathology; 7] = [
    Pathology {
        switch: Switch::FullScan,
        name: "full-scan",
        study: "Gazebo, 8.1",
        phase: "steady",
        function: "ground::ecs::EntityComponentManager::each_no_cache",
        slow: "looks at every vertex of the entity graph for models to recreate",
        fast: "asks the component index, which holds none",
        world: WorldKind::Shapes,
        shapes: 4_000,
        share_percent: 72,
    },
    Pathology {
        switch: Switch::PoseMap,
        name: "pose-map",
        study: "Gazebo, 8.2",
        phase: "steady",
        function: "ground::physics::Physics::write_changed_world_poses",
        slow: "inserts every link's pose into a fresh hash map and drops the last one",
        fast: "updates the poses of links that moved, in place",
        world: WorldKind::Shapes,
        shapes: 8_000,
        share_percent: 64,
    },
    Pathology {
        switch: Switch::ParseTwice,
        name: "parse-twice",
        study: "Gazebo, 3.2 and 8.6",
        phase: "loading",
        function: "ground::server::download_assets",
        slow: "parses the world for its shell, then again for its models",
        fast: "keeps the models of the first parse",
        world: WorldKind::Shapes,
        shapes: 20_000,
        share_percent: 45,
    },
    Pathology {
        switch: Switch::SerializeFirst,
        name: "serialize-first",
        study: "Gazebo, 3.2 and 8.6",
        phase: "loading",
        function: "ground::systems::scene_broadcaster::sdf_model_serializer",
        slow: "writes every model's element tree as text on the first step",
        fast: "writes a model's text when somebody asks for it",
        world: WorldKind::Shapes,
        shapes: 20_000,
        share_percent: 20,
    },
    Pathology {
        switch: Switch::StaticBroadphase,
        name: "static-broadphase",
        study: "Gazebo, 8.4",
        phase: "steady",
        function: "rapier3d::pipeline::physics_pipeline::PhysicsPipeline::step",
        slow: "gives static models kinematic bodies, which the engine visits each step as if they moved",
        fast: "gives them fixed bodies, which it leaves alone",
        world: WorldKind::Shapes,
        shapes: 8_000,
        share_percent: 59,
    },
    Pathology {
        switch: Switch::Imbalance,
        name: "imbalance",
        study: "sensor rendering",
        phase: "steady",
        function: "ground::systems::lidar::Lidars::scan",
        slow: "gives all lidars to the first of three workers, for which the step then waits",
        fast: "deals them out in turn",
        world: WorldKind::Sensors,
        shapes: 1_000,
        share_percent: 86,
    },
    Pathology {
        switch: Switch::LazyTexture,
        name: "lazy-texture",
        study: "marina",
        phase: "steady",
        function: "ground::textures::decode_texture",
        slow: "decodes a texture when a camera first sees what it is on: every 50th step",
        fast: "decodes each texture file once, when the world is loaded",
        world: WorldKind::Marina,
        shapes: 128,
        share_percent: 14,
    },
];

impl Switch {
    /// What is known of it.
    pub fn pathology(self) -> &'static Pathology {
        PATHOLOGIES
            .iter()
            .find(|pathology| pathology.switch == self)
            .expect("a test proves that every switch is listed")
    }
}

/// The switches that are set to slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    slow: Vec<Switch>,
}

impl Switches {
    /// Every switch set to slow.
    pub fn all() -> Self {
        Self { slow: PATHOLOGIES.iter().map(|pathology| pathology.switch).collect() }
    }

    /// One switch set to slow.
    pub fn only(switch: Switch) -> Self {
        Self { slow: vec![switch] }
    }

    /// Whether this one is slow.
    pub fn is_slow(&self, switch: Switch) -> bool {
        self.slow.contains(&switch)
    }
}

/// A list of switches that names something else.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no switch `{name}`; there are {}, and `all`", names())]
pub struct UnknownSwitch {
    name: String,
}

fn names() -> String {
    PATHOLOGIES.map(|pathology| pathology.name).join(", ")
}

impl FromStr for Switches {
    type Err = UnknownSwitch;

    /// Reads names separated by commas, or `all`.
    fn from_str(list: &str) -> Result<Self, UnknownSwitch> {
        let mut slow = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name == "all" {
                return Ok(Self::all());
            }
            let known = PATHOLOGIES.iter().find(|pathology| pathology.name == name);
            let pathology = known.ok_or_else(|| UnknownSwitch { name: name.to_owned() })?;
            slow.push(pathology.switch);
        }
        slow.sort_unstable();
        slow.dedup();
        Ok(Self { slow })
    }
}

impl fmt::Display for Switches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.slow.is_empty() {
            return out.write_str("none");
        }
        let names: Vec<_> = self.slow.iter().map(|switch| switch.pathology().name).collect();
        out.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_an_entry_of_its_own() {
        let switches = [
            Switch::FullScan,
            Switch::PoseMap,
            Switch::ParseTwice,
            Switch::SerializeFirst,
            Switch::StaticBroadphase,
            Switch::Imbalance,
            Switch::LazyTexture,
        ];
        assert_eq!(PATHOLOGIES.map(|pathology| pathology.switch), switches);
    }

    #[test]
    fn a_list_of_names_sets_those_and_no_others() {
        let switches: Switches = "pose-map, full-scan,pose-map".parse().unwrap();
        assert_eq!(switches.to_string(), "full-scan,pose-map");
        assert!(switches.is_slow(Switch::PoseMap));
        assert!(!switches.is_slow(Switch::ParseTwice));
        assert_eq!("".parse(), Ok(Switches::default()));
        assert_eq!("full-scan,all".parse(), Ok(Switches::all()));
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_those_there_are() {
        let error = "fullscan".parse::<Switches>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no switch `fullscan`; there are full-scan, pose-map, parse-twice, serialize-first, \
             static-broadphase, imbalance, lazy-texture, and `all`"
        );
    }
}

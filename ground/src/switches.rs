//! The switches. Each makes one known pathology slow; the [catalogue](crate::catalogue) describes them.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;

/// A known pathology. The simulator is fast in all respects unless a switch is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Every step walks all entities for a component that none has.
    FullScan,
    /// Every step builds a new map of all poses.
    PoseMap,
    /// Every step hands every pose to the engine, changed or not.
    DirtyFlag,
    /// Static bodies are kinematic ones to the engine, which may move.
    StaticKinematic,
    /// The world is parsed, its models are dropped, and it is parsed again.
    ParseTwice,
    /// The first step writes every model's description as text.
    SerializeFirst,
    /// A Python interpreter starts with the program, whether or not a world needs it.
    InterpInit,
    /// Every camera climbs the chain of parents of every visual.
    Derived,
    /// Depth cameras allocate new images for every step.
    AllocChurn,
    /// One of three workers has all lidars.
    Imbalance,
    /// Textures are decoded whenever they come into view.
    LazyTexture,
    /// A prim's group is found by asking every group.
    LinearLookup,
    /// The timers of scripts are in a list that is searched.
    TimerList,
    /// Changed actors of the physics scene are in a list that is searched.
    TaintList,
    /// Vertices of meshes are searched one after the other.
    IndexOf,
    /// The items of each prim are one query to the store.
    SqlPerPrim,
    /// Scripts are compiled again although their text is known.
    Recompile,
    /// The script engine opens all files of its directory to find a few.
    DirScan,
    /// Every step updates every part of the scene, although few changed.
    UpdateAll,
    /// Each client has a thread that polls.
    ThreadPerClient,
    /// Each update is a datagram.
    PerUpdatePacket,
    /// The file of records is opened, sought and closed for each record.
    Reopen,
    /// Each look-up builds a string.
    StringTemp,
    /// Attributes are found by name each time.
    AttrLookup,
    /// The tables of connections are read for each process.
    ProcPerPid,
    /// The wait set is rebuilt before each wait.
    WaitSet,
    /// One callback runs per wait, however many are ready.
    OnePerWait,
}

impl Switch {
    /// All switches, in order.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        name_of(&self)
    }
}

/// The name of a choice on the command line.
pub fn name_of(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The switches that are set to slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    slow: Vec<Switch>,
}

impl Switches {
    /// Every switch set to slow.
    pub fn all() -> Self {
        Switch::all().iter().copied().collect()
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

impl FromIterator<Switch> for Switches {
    fn from_iter<T: IntoIterator<Item = Switch>>(switches: T) -> Self {
        let mut slow: Vec<_> = switches.into_iter().collect();
        slow.sort_unstable();
        slow.dedup();
        Self { slow }
    }
}

/// A list of switches with an unknown name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no switch `{name}`; there are {}, and `all`", names())]
pub struct UnknownSwitch {
    name: String,
}

fn names() -> String {
    Switch::all().iter().map(|switch| switch.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Switches {
    type Err = UnknownSwitch;

    /// Reads names separated by commas, or `all`; `-name` takes one out again, as in `all,-full-scan`.
    fn from_str(list: &str) -> Result<Self, UnknownSwitch> {
        let mut slow = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name == "all" {
                slow.extend(Switch::all());
                continue;
            }
            let (wanted, is_out) = name.strip_prefix('-').map_or((name, false), |rest| (rest, true));
            let known = Switch::all().iter().find(|switch| switch.name() == wanted);
            let switch = *known.ok_or_else(|| UnknownSwitch { name: wanted.to_owned() })?;
            match is_out {
                true => slow.retain(|slow| *slow != switch),
                false => slow.push(switch),
            }
        }
        Ok(slow.into_iter().collect())
    }
}

impl fmt::Display for Switches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.slow.is_empty() {
            return out.write_str("none");
        }
        let names: Vec<_> = self.slow.iter().map(|switch| switch.name()).collect();
        out.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn all_but_one_is_all_without_it() {
        let switches: Switches = "all,-full-scan".parse().unwrap();
        assert!(!switches.is_slow(Switch::FullScan));
        assert!(Switch::all().iter().all(|one| (*one == Switch::FullScan) != switches.is_slow(*one)));
        assert_eq!("full-scan,-full-scan".parse(), Ok(Switches::default()));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "-fullscan".parse::<Switches>().unwrap_err().to_string();
        assert!(error.starts_with("there is no switch `fullscan`; there are full-scan, pose-map, "), "{error}");
        assert!(error.ends_with(", and `all`"), "{error}");
    }
}

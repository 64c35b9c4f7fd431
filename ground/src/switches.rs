//! The switches: which of the known pathologies are slow in a run. What each is, the [catalogue](crate::catalogue) says.

use std::fmt;
use std::str::FromStr;

use crate::catalogue;

/// A known pathology. The simulator is fast in all respects unless a switch is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Switch {
    /// Every step walks all entities for a component that none has.
    FullScan,
    /// Every step makes a fresh map of all poses.
    PoseMap,
    /// Every step hands every pose to the engine, changed or not.
    DirtyFlag,
    /// The engine is told that bodies which never move might.
    StaticKinematic,
    /// The world is parsed, its models thrown away, and parsed again.
    ParseTwice,
    /// The first step writes every model's description as text.
    SerializeFirst,
    /// A Python interpreter is made ready at start, whether or not anything asks for it.
    InterpInit,
    /// Every camera climbs the chain of its parents for its pose.
    Derived,
    /// One of three workers has all lidars.
    Imbalance,
    /// Sensors allocate fresh buffers for every scan.
    AllocChurn,
    /// Textures are decoded when a camera first sees them, again each time.
    LazyTexture,
    /// A prim's group is found by asking every group for it.
    LinearLookup,
    /// Timers of scripts are kept in a list that is searched.
    TimerList,
    /// What physics must take note of is kept in a list that is searched.
    TaintList,
    /// Vertices of meshes are looked for one after the other.
    IndexOf,
    /// The store is asked for the items of each prim by itself.
    SqlPerPrim,
    /// Scripts are compiled again although their text is known.
    Recompile,
    /// All files of the script engine are looked at to find a few.
    DirScan,
    /// Every part of the scene is updated each step, although few have anything to do.
    UpdateAll,
    /// Each client has a thread that polls.
    ThreadPerClient,
    /// Each update is a datagram of its own.
    PerUpdatePacket,
    /// The file of records is opened, sought and closed for each of them.
    Reopen,
    /// A fresh string is made for each look-up.
    StringTemp,
    /// Attributes are found by name each time.
    AttrLookup,
    /// The table of connections is read for each process.
    ProcPerPid,
    /// The wait set is rebuilt for each spin.
    WaitSet,
    /// One callback is served for each wait, however many are ready.
    OnePerWait,
}

/// The switches that are set to slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    slow: Vec<Switch>,
}

impl Switches {
    /// Every switch set to slow.
    pub fn all() -> Self {
        catalogue::all().map(|pathology| pathology.switch).collect()
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

/// A list of switches that names something else.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no switch `{name}`; there are {}, and `all`", names())]
pub struct UnknownSwitch {
    name: String,
}

fn names() -> String {
    catalogue::all().map(|pathology| pathology.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Switches {
    type Err = UnknownSwitch;

    /// Reads names separated by commas, or `all`; `-name` takes one out again, as in `all,-full-scan`.
    fn from_str(list: &str) -> Result<Self, UnknownSwitch> {
        let mut slow = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name == "all" {
                slow.extend(catalogue::all().map(|pathology| pathology.switch));
                continue;
            }
            let (wanted, is_out) = name.strip_prefix('-').map_or((name, false), |rest| (rest, true));
            let known = catalogue::all().find(|pathology| pathology.name == wanted);
            let switch = known.ok_or_else(|| UnknownSwitch { name: wanted.to_owned() })?.switch;
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
        let names: Vec<_> = self.slow.iter().map(|switch| switch.pathology().name).collect();
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
        assert!(catalogue::all().filter(|one| one.name != "full-scan").all(|one| switches.is_slow(one.switch)));
        assert_eq!("full-scan,-full-scan".parse(), Ok(Switches::default()));
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_those_there_are() {
        let error = "-fullscan".parse::<Switches>().unwrap_err().to_string();
        assert!(error.starts_with("there is no switch `fullscan`; there are full-scan, pose-map, "), "{error}");
        assert!(error.ends_with(", and `all`"), "{error}");
    }
}

//! [`CoreUnit`]: the performance monitoring units of the CPU's cores, as sysfs describes them.
//!
//! `/sys/bus/event_source/devices/` has a folder for each unit. Units of cores are `cpu`, or on CPUs with several kinds of cores those
//! with a list of their CPUs in `cpus`: `cpu_core` and `cpu_atom`, `armv8_cortex_a53`. Others (memory controllers, graphics) count what
//! belongs to no thread, and are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the kernel describes its units.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// A unit that counts events of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoreUnit {
    /// Its name, such as `cpu_core`.
    pub name: String,
    /// The kernel's number of it, for `perf_event_attr::type`.
    pub kind: u32,
    /// The configurations of the events that the kernel names, such as `slots`.
    events: BTreeMap<String, EventWords>,
}

/// The configuration of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventWords {
    /// `perf_event_attr::config`
    pub config: u64,
    /// `perf_event_attr::config1`
    pub config1: u64,
}

impl CoreUnit {
    /// The units of this machine. None in most virtual machines.
    pub fn all() -> Vec<Self> {
        Self::within(Path::new(DEVICES))
    }

    fn within(devices: &Path) -> Vec<Self> {
        let folders = fs::read_dir(devices).into_iter().flatten().flatten();
        let mut units: Vec<Self> = folders.filter_map(|folder| Self::of(&folder.path())).collect();
        units.sort_by(|a, b| a.name.cmp(&b.name));
        units
    }

    fn of(folder: &Path) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.to_owned();
        if name != "cpu" && !folder.join("cpus").exists() {
            return None;
        }
        Self::described(folder)
    }

    fn described(folder: &Path) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.to_owned();
        let kind = fs::read_to_string(folder.join("type")).ok()?.trim().parse().ok()?;
        let format = texts(&folder.join("format"));
        let events = texts(&folder.join("events"));
        let events = events.into_iter().filter_map(|(name, event)| Some((name, config(&event, &format)?))).collect();
        Some(Self { name, kind, events })
    }

    /// The unit that samples instructions of AMD's CPUs, if there is one.
    pub fn instruction_sampling() -> Option<Self> {
        Self::described(&Path::new(DEVICES).join("ibs_op"))
    }

    /// The configuration of an event that the kernel names, if it takes one word.
    pub fn event(&self, name: &str) -> Option<u64> {
        self.event_words(name).filter(|words| words.config1 == 0).map(|words| words.config)
    }

    /// The configuration of an event that the kernel names.
    pub fn event_words(&self, name: &str) -> Option<EventWords> {
        self.events.get(name).copied()
    }
}

/// The small files of a folder, by name.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |file: fs::DirEntry| Some((file.file_name().into_string().ok()?, fs::read_to_string(file.path()).ok()?));
    files.filter_map(text).collect()
}

/// The configuration of an event such as `event=0x00,umask=0x80`, whose fields `format` places: `event` is `config:0-7`. `None` if it
/// needs more than two configuration words.
fn config(event: &str, format: &BTreeMap<String, String>) -> Option<EventWords> {
    event.trim().split(',').try_fold(EventWords::default(), |mut words, term| {
        let (field, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        let (word, bits) = format.get(field)?.trim().split_once(':')?;
        let config = match word {
            "config" => &mut words.config,
            "config1" => &mut words.config1,
            _ => return None,
        };
        let mut rest = value;
        for range in bits.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let width = last.checked_sub(first)?.checked_add(1).filter(|_| last < 64)?;
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            *config |= (rest & mask) << first;
            rest = rest.checked_shr(width).unwrap_or(0);
        }
        (rest == 0).then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by hand after the kernel's `Documentation/ABI/testing/sysfs-bus-event_source-devices-*`: a hybrid CPU.
    #[test]
    fn units_of_a_hybrid_cpu_are_found_with_their_events() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cpu_core/type", "4\n");
        write("cpu_core/cpus", "0-15\n");
        write("cpu_core/format/event", "config:0-7\n");
        write("cpu_core/format/umask", "config:8-15,40-47\n");
        write("cpu_core/format/inv", "config:23\n");
        write("cpu_core/format/ldlat", "config1:0-15\n");
        write("cpu_core/events/slots", "event=0x00,umask=0x4\n");
        write("cpu_core/events/topdown-be-bound", "event=0x00,umask=0x83\n");
        write("cpu_core/events/wide", "event=0x1,umask=0x1ff,inv\n");
        write("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
        write("cpu_atom/type", "10\n");
        write("cpu_atom/cpus", "16-23\n");
        write("uncore_imc_0/type", "20\n");
        write("uncore_imc_0/cpumask", "0\n");
        let units = CoreUnit::within(folder.path());
        let names: Vec<_> = units.iter().map(|unit| (unit.name.as_str(), unit.kind)).collect();
        assert_eq!(names, [("cpu_atom", 10), ("cpu_core", 4)]);
        let core = &units[1];
        assert_eq!(core.event("slots"), Some(0x400));
        assert_eq!(core.event("topdown-be-bound"), Some(0x8300));
        assert_eq!(core.event("wide"), Some(0x100_0080_ff01));
        assert_eq!(core.event("mem-loads"), None, "it takes two words");
        assert_eq!(core.event_words("mem-loads"), Some(EventWords { config: 0x1cd, config1: 3 }));
        assert!(CoreUnit::within(Path::new("/nowhere")).is_empty());
    }
}

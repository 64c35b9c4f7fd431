//! Samples of loads and stores with their addresses: Intel's PEBS (`mem-loads`, `mem-stores`) and AMD's IBS (`ibs_op`).
//!
//! Arm's SPE writes packets of its own, which only perf reads (`perf inject --itrace`).

use std::io;

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;

use super::attributes::MOST_PRECISE;
use super::core_units::{CoreUnit, EventWords};
use super::{Events, Kernel, Kind};

/// Loads that take fewer cycles are not sampled: hits of the first cache (as `perf c2c` does).
const LEAST_LATENCY_CYCLES: u64 = 30;

/// The CPU's units that sample accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemorySampling {
    /// Units of cores with the events `mem-loads` and `mem-stores`.
    LoadsAndStores(Vec<CoreUnit>),
    /// A unit that samples instructions of all kinds.
    Instructions(CoreUnit),
}

impl MemorySampling {
    /// What this machine has, by sysfs.
    pub fn find() -> Option<Self> {
        let mut units = CoreUnit::all();
        units.retain(|unit| unit.event_words("mem-loads").is_some());
        match units.is_empty() {
            false => Some(Self::LoadsAndStores(units)),
            true => CoreUnit::instruction_sampling().map(Self::Instructions),
        }
    }
}

impl Events {
    /// Opens the samples of loads and stores that this machine has. Returns their kinds with names of events.
    pub fn add_memory_samples(&mut self) -> io::Result<Vec<(Kind, String)>> {
        match MemorySampling::find() {
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "no PEBS and no IBS")),
            Some(MemorySampling::Instructions(unit)) => {
                if self.sampling.kernel == Kernel::Excluded {
                    let reason = "IBS samples the kernel, too, which this user may not record";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
                }
                let mut attr = self.access(Kind::Loads, &unit, EventWords::default());
                // The unit takes no exclusions.
                attr.set_exclude_hv(0);
                attr.set_exclude_idle(0);
                attr.set_exclude_kernel(0);
                self.add(Kind::Loads, attr)?;
                Ok(vec![(Kind::Loads, "ibs_op".to_owned())])
            }
            Some(MemorySampling::LoadsAndStores(units)) => {
                let loads = units.iter().map(|unit| self.add_loads(unit)).collect::<Vec<_>>();
                let stores = units.iter().map(|unit| self.add_stores(unit)).collect::<Vec<_>>();
                let mut kinds = Vec::new();
                if loads.iter().any(Result::is_ok) {
                    kinds.push((Kind::Loads, "mem-loads".to_owned()));
                }
                if stores.iter().any(Result::is_ok) {
                    kinds.push((Kind::Stores, "mem-stores".to_owned()));
                }
                match loads.into_iter().find_map(Result::err) {
                    // Without loads there is no cost.
                    Some(error) if !kinds.iter().any(|(kind, _)| *kind == Kind::Loads) => Err(error),
                    _ => Ok(kinds),
                }
            }
        }
    }

    fn add_loads(&mut self, unit: &CoreUnit) -> io::Result<()> {
        let words = unit.event_words("mem-loads").ok_or(io::ErrorKind::NotFound)?;
        let attr = self.access(Kind::Loads, unit, EventWords { config1: LEAST_LATENCY_CYCLES, ..words });
        match unit.event_words("mem-loads-aux") {
            None => self.add_precise(Kind::Loads, attr),
            // Some CPUs give the source of data only while this event is counted.
            Some(aux) => {
                let mut leader = self.attr(Kind::Loads, unit.kind, aux.config);
                leader.sample_type = 0;
                leader.set_sample_id_all(0);
                self.add_led(Kind::Loads, leader, attr)
            }
        }
    }

    fn add_stores(&mut self, unit: &CoreUnit) -> io::Result<()> {
        let words = unit.event_words("mem-stores").ok_or(io::ErrorKind::NotFound)?;
        let attr = self.access(Kind::Stores, unit, words);
        self.add_precise(Kind::Stores, attr)
    }

    /// An event with the address, the weight and the source of each sampled access.
    fn access(&self, kind: Kind, unit: &CoreUnit, words: EventWords) -> perf_event_attr {
        let mut attr = self.sampled(kind, unit.kind, words.config);
        attr.__bindgen_anon_3.config1 = words.config1;
        attr.sample_type |= u64::from(sys::PERF_SAMPLE_ADDR | sys::PERF_SAMPLE_WEIGHT | sys::PERF_SAMPLE_DATA_SRC);
        attr.set_precise_ip(MOST_PRECISE);
        attr
    }
}

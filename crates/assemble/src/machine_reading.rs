//! What the whole machine did between two readings of its counters.

use serde::{Deserialize, Serialize};
use stepscope_model::Conditions;

/// Counters and state of the whole machine at one moment. A recorder takes one at each end of a capture's window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineReading {
    /// Busy time of all CPUs since boot.
    pub busy_ns: Option<u64>,
    /// Time since boot in which the hypervisor ran other guests while a CPU of this machine wanted to run.
    pub stolen_ns: Option<u64>,
    /// CPU time of the recorder's process since it started.
    pub own_cpu_ns: u64,
    /// The hottest CPU sensor, in thousandths of a degree Celsius.
    pub temperature_mc: Option<i64>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
}

impl MachineReading {
    /// CPU time from `earlier` to this reading of all processes except the recorder's.
    pub fn busy_of_others_since(&self, earlier: &Self) -> Option<u64> {
        let busy = self.busy_ns?.saturating_sub(earlier.busy_ns?);
        Some(busy.saturating_sub(self.own_cpu_ns.saturating_sub(earlier.own_cpu_ns)))
    }

    /// The conditions from this reading to `end`, while the recorded threads ran for `recorded_ns`.
    ///
    /// The background load is unknown where `recorded_ns` is. A recorder that was killed took no reading at the end.
    pub fn conditions_until(&self, end: Option<&Self>, recorded_ns: Option<u64>) -> Conditions {
        let busy = end.and_then(|end| end.busy_of_others_since(self));
        Conditions {
            others_cpu_ns: busy.zip(recorded_ns).map(|(busy, recorded)| busy.saturating_sub(recorded)),
            stolen_ns: end.and_then(|end| Some(end.stolen_ns?.saturating_sub(self.stolen_ns?))),
            start_temperature_mc: self.temperature_mc,
            end_temperature_mc: end.and_then(|end| end.temperature_mc),
            end_governor: end.and_then(|end| end.governor.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_load_is_the_busy_time_without_the_program_and_the_recorder() {
        let start =
            MachineReading { busy_ns: Some(1_000), stolen_ns: Some(10), own_cpu_ns: 5, ..MachineReading::default() };
        let end =
            MachineReading { busy_ns: Some(9_000), stolen_ns: Some(30), own_cpu_ns: 105, ..MachineReading::default() };
        let conditions = start.conditions_until(Some(&end), Some(6_000));
        assert_eq!((conditions.others_cpu_ns, conditions.stolen_ns), (Some(1_900), Some(20)));
        // `/proc/stat` counts in coarse ticks: the exact time of the program may exceed their sum.
        assert_eq!(start.conditions_until(Some(&end), Some(8_000)).others_cpu_ns, Some(0));
        assert_eq!(start.conditions_until(Some(&end), None).others_cpu_ns, None);
        let killed = start.conditions_until(None, Some(6_000));
        assert_eq!((killed.others_cpu_ns, killed.stolen_ns), (None, None));
    }
}

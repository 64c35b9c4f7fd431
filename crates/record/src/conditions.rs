//! What else goes on on the machine: readings of the whole of it, and what changed between two.
//!
//! Other work slows a program without being in it: it takes processors, caches and memory, and lowers clock rates. So a
//! capture tells how much processor time others had in its window. That is the busy time of all processors
//! (`/proc/stat`, the line `cpu`: user, nice, system, irq and softirq; time of guests is in user and nice already, see
//! `proc(5)`) less what the recorded threads had, which context switches tell exactly, and less the recorder's own.
//! `/proc/stat` counts in ticks of 10 ms, so an error of some ticks a processor is in it.
//!
//! Reading needs no rights. What a machine does not tell (temperatures in most virtual ones) is absent.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stepscope_model::Conditions;

use crate::{clock, proc};

/// The machine at an instant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Busy time of all processors since boot.
    pub busy_ns: Option<u64>,
    /// Time that the hypervisor gave to other guests since boot, while a processor of ours wanted to run.
    pub stolen_ns: Option<u64>,
    /// CPU time of this process since it began.
    pub own_cpu_ns: u64,
    /// The hottest processor sensor, in thousandths of a degree Celsius.
    pub temperature_mc: Option<i64>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
}

impl Reading {
    /// Reads the machine now.
    pub fn now() -> Self {
        let stat = fs::read("/proc/stat").ok();
        let times = stat.as_deref().and_then(CpuTimes::parse);
        Self {
            busy_ns: times.map(|times| times.busy_ns),
            stolen_ns: times.map(|times| times.stolen_ns),
            own_cpu_ns: clock::process_cpu_ns(),
            temperature_mc: hottest(Path::new("/sys/class")),
            governor: governor(),
        }
    }

    /// Busy time of all processors from `earlier` to here, less that of this process.
    pub fn busy_of_others_since(&self, earlier: &Reading) -> Option<u64> {
        let busy = self.busy_ns?.saturating_sub(earlier.busy_ns?);
        Some(busy.saturating_sub(self.own_cpu_ns.saturating_sub(earlier.own_cpu_ns)))
    }
}

/// The conditions between two readings, in a window in which the recorded threads ran for `recorded_ns`. Where that is
/// not known, nor is what others had. Of a recorder that was killed there is no second reading.
pub fn between(start: &Reading, end: Option<&Reading>, recorded_ns: Option<u64>) -> Conditions {
    let busy = end.and_then(|end| end.busy_of_others_since(start));
    Conditions {
        others_cpu_ns: busy.zip(recorded_ns).map(|(busy, recorded)| busy.saturating_sub(recorded)),
        stolen_ns: end.and_then(|end| Some(end.stolen_ns?.saturating_sub(start.stolen_ns?))),
        start_temperature_mc: start.temperature_mc,
        end_temperature_mc: end.and_then(|end| end.temperature_mc),
        end_governor: end.and_then(|end| end.governor.clone()),
    }
}

/// The frequency governor of the first processor, where it has one.
pub(crate) fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned())
}

/// What the processors did since boot, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuTimes {
    busy_ns: u64,
    stolen_ns: u64,
}

impl CpuTimes {
    /// Parses `/proc/stat`. `None` if it is not of this form.
    fn parse(stat: &[u8]) -> Option<Self> {
        let line = stat.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"cpu "))?;
        let line = std::str::from_utf8(line).ok()?;
        let ticks: Vec<u64> = line.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        let &[user, nice, system, _idle, _iowait, irq, softirq, ref rest @ ..] = ticks.as_slice() else {
            return None;
        };
        let ns = |ticks: u64| u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(proc::ticks_per_second()));
        let busy = [user, nice, system, irq, softirq].into_iter().try_fold(0_u64, u64::checked_add)?;
        Some(Self { busy_ns: ns(busy).ok()?, stolen_ns: ns(rest.first().copied().unwrap_or(0)).ok()? })
    }
}

/// The hottest sensor of a processor below `class` (`/sys/class`): those of the drivers that read processors, else the
/// thermal zones that are called after one.
fn hottest(class: &Path) -> Option<i64> {
    let entries = |folder: &str| fs::read_dir(class.join(folder)).into_iter().flatten().flatten().map(|e| e.path());
    let named = |path: &Path, file: &str| {
        fs::read_to_string(path.join(file)).map(|name| name.trim().to_lowercase()).unwrap_or_default()
    };
    let of_processor = |path: &Path| {
        let name = named(path, "name");
        ["coretemp", "k10temp", "zenpower"].contains(&name.as_str()) || name.starts_with("cpu")
    };
    let inputs = entries("hwmon").filter(|path| of_processor(path)).flat_map(|sensor| {
        let files = fs::read_dir(sensor).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("temp") && name.ends_with("_input")
        })
    });
    let zones = entries("thermal").filter(|zone| {
        let kind = named(zone, "type");
        kind.contains("pkg_temp") || kind.contains("cpu") || kind.contains("soc")
    });
    let read = |path: &Path| fs::read_to_string(path).ok()?.trim().parse().ok();
    let in_range = |temperature: &i64| (-50_000..200_000).contains(temperature);
    let hottest = inputs.filter_map(|path| read(&path)).filter(in_range).max();
    hottest.or_else(|| zones.filter_map(|zone| read(&zone.join("temp"))).filter(in_range).max())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_that_of_programs_kernel_and_interrupts_without_counting_guests_twice() {
        //               user nice system idle iowait irq softirq steal guest guest_nice
        let stat = b"cpu  100 20 30 5000 40 5 6 7 80 9\ncpu0 1 2 3 4\nintr 1\n";
        let tick = 1_000_000_000 / proc::ticks_per_second();
        assert_eq!(CpuTimes::parse(stat), Some(CpuTimes { busy_ns: 161 * tick, stolen_ns: 7 * tick }));
        let old = CpuTimes::parse(b"cpu  1 1 1 1 1 1 1\n");
        assert_eq!(old, Some(CpuTimes { busy_ns: 5 * tick, stolen_ns: 0 }));
        for damaged in [&b""[..], b"cpu  1 2 3\n", b"cpu0 1 2 3 4 5 6 7\n", b"cpu  1 1 1 x 1 1 1\n", b"\xff"] {
            assert_eq!(CpuTimes::parse(damaged), None);
        }
        assert_eq!(CpuTimes::parse(b"cpu  18446744073709551615 1 1 1 1 1 1\n"), None);
    }

    #[test]
    fn what_others_had_is_the_busy_time_without_the_program_and_the_recorder() {
        let start = Reading { busy_ns: Some(1_000), stolen_ns: Some(10), own_cpu_ns: 5, ..Reading::default() };
        let end = Reading { busy_ns: Some(9_000), stolen_ns: Some(30), own_cpu_ns: 105, ..Reading::default() };
        let conditions = between(&start, Some(&end), Some(6_000));
        assert_eq!((conditions.others_cpu_ns, conditions.stolen_ns), (Some(1_900), Some(20)));
        // Ticks are coarse: the exact time may be more than what they add up to.
        assert_eq!(between(&start, Some(&end), Some(8_000)).others_cpu_ns, Some(0));
        assert_eq!(between(&start, Some(&end), None).others_cpu_ns, None);
        let killed = between(&start, None, Some(6_000));
        assert_eq!((killed.others_cpu_ns, killed.stolen_ns), (None, None));
    }

    #[test]
    fn the_hottest_sensor_of_a_processor_counts_and_no_other() {
        let class = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = class.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(hottest(class.path()), None);
        put("thermal/thermal_zone0/type", "acpitz\n");
        put("thermal/thermal_zone0/temp", "99000\n");
        put("thermal/thermal_zone1/type", "x86_pkg_temp\n");
        put("thermal/thermal_zone1/temp", "48000\n");
        assert_eq!(hottest(class.path()), Some(48_000));
        put("hwmon/hwmon0/name", "nvme\n");
        put("hwmon/hwmon0/temp1_input", "70000\n");
        put("hwmon/hwmon1/name", "coretemp\n");
        put("hwmon/hwmon1/temp1_input", "45000\n");
        put("hwmon/hwmon1/temp2_input", "52000\n");
        put("hwmon/hwmon1/temp2_crit", "100000\n");
        put("hwmon/hwmon1/temp3_input", "-99999999\n");
        assert_eq!(hottest(class.path()), Some(52_000));
    }
}

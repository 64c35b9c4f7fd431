//! Background load and other conditions of the machine during a recording.
//!
//! Other work slows a program down: it takes CPUs, caches and memory, and lowers clock rates. So a capture has the CPU time
//! that other processes used in its window: the busy time of all CPUs
//! (`/proc/stat`, the line `cpu`: user, nice, system, irq and softirq; time of guests is in user and nice already, see
//! `proc(5)`) less that of the recorded threads (exact, from context switches) and that of the recorder.
//! `/proc/stat` counts in ticks of 10 ms, so the error is a few ticks per CPU.
//!
//! Reading needs no rights. Values that a machine does not have (temperatures in most virtual ones) are absent.

use std::fs;
use std::path::Path;

use stepscope_assemble::MachineReading;

use crate::{clock, proc};

/// Reads the machine now.
pub fn read_machine() -> MachineReading {
    let stat = fs::read("/proc/stat").ok();
    let times = stat.as_deref().and_then(CpuTimes::parse);
    MachineReading {
        busy_ns: times.map(|times| times.busy_ns),
        stolen_ns: times.map(|times| times.stolen_ns),
        own_cpu_ns: clock::process_cpu_ns(),
        temperature_mc: hottest(Path::new("/sys/class")),
        governor: governor(),
    }
}

/// The frequency governor of the first CPU, if it has one.
pub(crate) fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned())
}

/// Time of all CPUs together since boot.
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

/// The temperature of the hottest CPU sensor below `class` (`/sys/class`): from the drivers of CPU sensors, else from
/// the thermal zones named after a CPU.
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
    fn only_the_hottest_sensor_of_a_cpu_counts() {
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

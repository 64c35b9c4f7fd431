//! A description of this machine.

use std::fs;

use stepscope_model::Machine;

use crate::conditions;

/// Describes this machine. Unknown properties are empty.
pub fn describe() -> Machine {
    let text = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    Machine {
        host: text("/proc/sys/kernel/hostname").unwrap_or_default(),
        cpu: cpu_model(&cpuinfo).unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u32),
        memory_bytes: text("/proc/meminfo").as_deref().and_then(memory_bytes).unwrap_or(0),
        kernel: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        governor: conditions::governor(),
        virtualization: virtualization(&cpuinfo, text("/sys/class/dmi/id/sys_vendor").as_deref()),
        pmu: has_pmu(),
        load_milli: text("/proc/loadavg").as_deref().and_then(load_milli).unwrap_or(0),
    }
}

fn has_pmu() -> bool {
    // On hybrid CPUs, each core type has its own PMU.
    ["cpu", "cpu_core", "armv8_pmuv3", "armv8_pmuv3_0"]
        .iter()
        .any(|name| fs::exists(format!("/sys/bus/event_source/devices/{name}")).unwrap_or(false))
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    Some(line.split_once(':')?.1.trim())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    if let Some(model) = field(cpuinfo, "model name") {
        return Some(model.to_owned());
    }
    // aarch64 has numbers only.
    let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
    Some(format!("implementer {implementer} part {part}"))
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kilobytes: u64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn load_milli(loadavg: &str) -> Option<u64> {
    let load: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    Some((load * 1000.0).round() as u64)
}

fn virtualization(cpuinfo: &str, vendor: Option<&str>) -> Option<String> {
    let flagged = field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let known = ["QEMU", "VMware", "innotek", "Xen", "Microsoft", "Amazon EC2", "Google", "Parallels"];
    let named = vendor.filter(|vendor| known.iter().any(|name| vendor.contains(name)));
    named.map(str::to_owned).or_else(|| flagged.then(|| "hypervisor".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_named_by_its_model_or_its_numbers() {
        let x86 = "processor\t: 0\nmodel name\t: Fast: 9000\n"; // phrase kept: a field of /proc/cpuinfo
        assert_eq!(cpu_model(x86).as_deref(), Some("Fast: 9000"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"; // phrase kept: the same field
        assert_eq!(cpu_model(arm).as_deref(), Some("implementer 0x41 part 0xd0c"));
    }

    #[test]
    fn memory_and_load_are_read_in_their_units() {
        assert_eq!(memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(load_milli("1.25 0.5 0.1 1/200 4242\n"), Some(1250));
    }

    #[test]
    fn a_hypervisor_shows_by_its_vendor_or_the_cpu_flag() {
        assert_eq!(virtualization("flags : fpu hypervisor sse", None).as_deref(), Some("hypervisor"));
        assert_eq!(virtualization("flags : fpu", Some("QEMU")).as_deref(), Some("QEMU"));
        assert_eq!(virtualization("flags : fpu", Some("Dell Inc.")), None);
    }
}

//! The machine: CPUs, memory, pressure, disks, temperatures, clock frequencies.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_record::proc;

use crate::readings::Readings;
use crate::text::{HeldFile, fields, kibibytes_of, lines, number, read_whole};

/// Bytes of a sector in `/proc/diskstats`, whatever the disk's own are.
const SECTOR_BYTES: i64 = 512;

/// What `/proc/pressure` has: file, line and the name of the reading.
const PRESSURE: [(&str, &[u8], &str); 5] = [
    ("cpu", b"some", "pressure_cpu_some_ns"),
    ("memory", b"some", "pressure_memory_some_ns"),
    ("memory", b"full", "pressure_memory_full_ns"),
    ("io", b"some", "pressure_io_some_ns"),
    ("io", b"full", "pressure_io_full_ns"),
];

/// The files of the machine, open.
#[derive(Debug)]
pub struct Machine {
    tick_ns: i64,
    stat: Option<HeldFile>,
    memory: Option<HeldFile>,
    disks: Option<HeldFile>,
    /// By the files in [`PRESSURE`].
    pressure: Vec<(&'static str, HeldFile)>,
    /// Names of whole disks.
    whole_disks: Vec<String>,
    /// Names of readings and their files.
    sensors: Vec<(String, PathBuf)>,
}

impl Machine {
    /// Opens them. What a machine does not have is left out.
    pub fn open() -> Self {
        let mut files: Vec<&'static str> = PRESSURE.iter().map(|(file, ..)| *file).collect();
        files.dedup();
        let pressure =
            files.into_iter().filter_map(|file| Some((file, HeldFile::open(format!("/proc/pressure/{file}")).ok()?)));
        Self {
            tick_ns: (1_000_000_000 / proc::ticks_per_second()) as i64,
            stat: HeldFile::open("/proc/stat").ok(),
            memory: HeldFile::open("/proc/meminfo").ok(),
            disks: HeldFile::open("/proc/diskstats").ok(),
            pressure: pressure.collect(),
            whole_disks: names_in("/sys/block").into_iter().filter(|name| !is_memory_disk(name)).collect(),
            sensors: sensors(Path::new("/sys")),
        }
    }

    /// Reads what is read each time.
    pub fn read(&self, readings: &mut Readings, buffer: &mut Vec<u8>) {
        if let Some(text) = self.stat.as_ref().and_then(|file| file.read_all(buffer).ok()) {
            parse_stat(text, self.tick_ns, readings);
        }
        if let Some(text) = self.memory.as_ref().and_then(|file| file.read(buffer).ok()) {
            parse_memory(text, readings);
        }
        for (file, held) in &self.pressure {
            let Ok(text) = held.read(buffer) else { continue };
            for (_, line, name) in PRESSURE.iter().filter(|(of, ..)| of == file) {
                readings.add_some(name, "", total_of_pressure(text, line));
            }
        }
        if let Some(text) = self.disks.as_ref().and_then(|file| file.read_all(buffer).ok()) {
            parse_disks(text, &self.whole_disks, readings);
        }
    }

    /// Reads sensors. Some ask the firmware, which takes milliseconds.
    pub fn read_sensors(&self, readings: &mut Readings, buffer: &mut Vec<u8>) {
        for (name, path) in &self.sensors {
            let value = read_whole(path, buffer).ok().and_then(|text| number(text.trim_ascii()));
            let (kind, instance) = name.split_once(':').unwrap_or((name, ""));
            readings.add_some(kind, instance, value);
        }
    }
}

/// Temperatures of thermal zones, and clock frequencies of CPUs.
fn sensors(sys: &Path) -> Vec<(String, PathBuf)> {
    let zones = sys.join("class/thermal");
    let temperatures = names_in(&zones).into_iter().filter(|name| name.starts_with("thermal_zone")).map(|zone| {
        let kind = fs::read_to_string(zones.join(&zone).join("type")).unwrap_or_default();
        (format!("temperature_mc:{}-{}", kind.trim(), &zone["thermal_zone".len()..]), zones.join(zone).join("temp"))
    });
    let cpus = sys.join("devices/system/cpu");
    let frequencies = names_in(&cpus).into_iter().filter_map(|name| {
        let file = cpus.join(&name).join("cpufreq/scaling_cur_freq");
        let number: u32 = name.strip_prefix("cpu")?.parse().ok()?;
        file.exists().then(|| (format!("core_frequency_khz:{number}"), file))
    });
    temperatures.chain(frequencies).collect()
}

fn names_in(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn is_memory_disk(name: &str) -> bool {
    ["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind))
}

fn parse_stat(text: &[u8], tick_ns: i64, readings: &mut Readings) {
    for line in lines(text).take_while(|line| line.starts_with(b"cpu")) {
        let mut columns = fields(line);
        let Some(name) = columns.next() else { continue };
        let mut times = [0_i64; 8];
        for (time, field) in times.iter_mut().zip(columns) {
            *time = number(field).unwrap_or(0).saturating_mul(tick_ns);
        }
        let [user, nice, system, _idle, io_wait, irq, soft_irq, stolen] = times;
        let (user, system) = (user.saturating_add(nice), system.saturating_add(irq).saturating_add(soft_irq));
        match std::str::from_utf8(&name[3..]) {
            Ok("") => {
                readings.add("system_cpu_user_ns", "", user);
                readings.add("system_cpu_system_ns", "", system);
                readings.add("system_cpu_iowait_ns", "", io_wait);
                readings.add("system_cpu_stolen_ns", "", stolen);
            }
            Ok(cpu) => readings.add("core_busy_ns", cpu, user.saturating_add(system)),
            Err(_) => {}
        }
    }
}

fn parse_memory(text: &[u8], readings: &mut Readings) {
    readings.add_some("memory_available_bytes", "", kibibytes_of(text, b"MemAvailable:"));
    readings.add_some("memory_cached_bytes", "", kibibytes_of(text, b"Cached:"));
    let swap = kibibytes_of(text, b"SwapTotal:").zip(kibibytes_of(text, b"SwapFree:"));
    readings.add_some("swap_used_bytes", "", swap.map(|(all, free)| all.saturating_sub(free)));
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn total_of_pressure(text: &[u8], line: &[u8]) -> Option<i64> {
    let line = lines(text).find(|one| one.starts_with(line))?;
    let total = fields(line).find_map(|field| field.strip_prefix(b"total="))?;
    number(total)?.checked_mul(1000)
}

fn parse_disks(text: &[u8], whole_disks: &[String], readings: &mut Readings) {
    for line in lines(text) {
        let mut columns = fields(line).skip(2);
        let Some(name) = columns.next().and_then(|name| std::str::from_utf8(name).ok()) else { continue };
        if !whole_disks.iter().any(|disk| disk == name) {
            continue;
        }
        let mut counts = [0_i64; 10];
        for (count, field) in counts.iter_mut().zip(columns) {
            *count = number(field).unwrap_or(0);
        }
        readings.add("disk_read_bytes", name, counts[2].saturating_mul(SECTOR_BYTES));
        readings.add("disk_write_bytes", name, counts[6].saturating_mul(SECTOR_BYTES));
        readings.add("disk_busy_ns", name, counts[9].saturating_mul(1_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parse: impl Fn(&mut Readings)) -> Vec<(String, i64)> {
        let mut readings = Readings::default();
        parse(&mut readings);
        readings.iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn named(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn interrupts_count_as_kernel_and_guests_are_in_user_time_already() {
        let text = b"cpu  10 1 20 400 5 2 3 4 9 9\ncpu0 6 0 10 200 0 0 0 0 0 0\nintr 5 cpu9\n";
        let expected = [
            ("system_cpu_user_ns", 11),
            ("system_cpu_system_ns", 25),
            ("system_cpu_iowait_ns", 5),
            ("system_cpu_stolen_ns", 4),
            ("core_busy_ns:0", 16),
        ];
        assert_eq!(read(|readings| parse_stat(text, 1, readings)), named(&expected));
    }

    #[test]
    fn partitions_and_memory_disks_are_left_out() {
        let text =
            b" 254 0 vda 100 0 2000 7 50 0 600 8 0 33 15 0\n 254 1 vda1 1 1 1 1 1 1 1 1 1 1 1\n 7 0 loop0 1 2 3 4\n";
        let expected =
            [("disk_read_bytes:vda", 1_024_000), ("disk_write_bytes:vda", 307_200), ("disk_busy_ns:vda", 33_000_000)];
        assert_eq!(read(|readings| parse_disks(text, &["vda".to_owned()], readings)), named(&expected));
        assert!(is_memory_disk("loop0") && !is_memory_disk("nvme0n1"));
    }

    #[test]
    fn pressure_is_the_total_of_its_line() {
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0 avg60=0 avg300=0 total=45\n";
        assert_eq!((total_of_pressure(text, b"some"), total_of_pressure(text, b"full")), (Some(123_000), Some(45_000)));
        assert_eq!(total_of_pressure(b"", b"some"), None);
    }

    #[test]
    fn thermal_zones_and_frequencies_are_found() {
        let sys = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
        write("class/thermal/thermal_zone0/temp", "45000\n");
        write("devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2400000\n");
        write("devices/system/cpu/cpuidle/x", "");
        let names: Vec<String> = sensors(sys.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["temperature_mc:x86_pkg_temp-0", "core_frequency_khz:3"]);
    }
}

//! Control groups of the processes: CPU time, limits, throttling, memory. Versions 1 and 2.

use std::path::{Path, PathBuf};

use crate::readings::Readings;
use crate::text::{fields, number, number_in, read_whole};

/// Where control groups are mounted, by convention of all distributions.
const ROOT: &str = "/sys/fs/cgroup";

/// A control group, with the folders of its controllers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cgroup {
    path: String,
    version: Version,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Version {
    /// CPU, CPU accounting and memory have a folder each.
    One {
        cpu: Option<PathBuf>,
        account: Option<PathBuf>,
        memory: Option<PathBuf>,
    },
    Two {
        folder: PathBuf,
    },
}

impl Cgroup {
    /// The control group of a process, from the text of `/proc/PID/cgroup`. `None` for the root group, which is the machine.
    pub fn of(text: &str) -> Option<Self> {
        Self::below(Path::new(ROOT), text)
    }

    fn below(root: &Path, text: &str) -> Option<Self> {
        let lines = || {
            text.lines().filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                Some((parts.next()?, parts.next()?))
            })
        };
        let folder = |top: &str, path: &str| {
            Some(root.join(top).join(path.trim_start_matches('/'))).filter(|folder| folder.is_dir())
        };
        let of_controller = |controller: &str| {
            let (names, path) = lines().find(|(names, _)| names.split(',').any(|name| name == controller))?;
            let top = [names, controller].into_iter().find(|top| root.join(top).is_dir())?;
            (path != "/").then(|| folder(top, path)).flatten().map(|folder| (path, folder))
        };
        let unified = lines().find(|(names, path)| names.is_empty() && *path != "/");
        if let Some((_, path)) = unified
            && let Some(folder) = folder("", path).filter(|folder| folder.join("cgroup.controllers").exists())
        {
            return Some(Self { path: path.to_owned(), version: Version::Two { folder } });
        }
        let [cpu, account, memory] = ["cpu", "cpuacct", "memory"].map(of_controller);
        let path = [&memory, &cpu, &account].into_iter().flatten().next()?.0.to_owned();
        let [cpu, account, memory] = [cpu, account, memory].map(|found| found.map(|(_, folder)| folder));
        Some(Self { path, version: Version::One { cpu, account, memory } })
    }

    /// Reads it.
    pub fn read(&self, readings: &mut Readings, buffer: &mut Vec<u8>) {
        let path = &*self.path;
        let mut add = |name: &str, value: Option<i64>| readings.add_some(name, path, value);
        match &self.version {
            Version::Two { folder } => {
                let stat = folder.join("cpu.stat");
                let microseconds = |value: i64| value.saturating_mul(1000);
                add("cgroup_cpu_ns", number_in(&stat, b"usage_usec", buffer).map(microseconds));
                add("cgroup_throttled_ns", number_in(&stat, b"throttled_usec", buffer).map(microseconds));
                add("cgroup_throttled_periods", number_in(&stat, b"nr_throttled", buffer));
                add("cgroup_cpu_limit_millicores", two_numbers(&folder.join("cpu.max"), buffer).and_then(millicores));
                add("cgroup_memory_bytes", number_in(&folder.join("memory.current"), b"", buffer));
                add("cgroup_memory_limit_bytes", number_in(&folder.join("memory.max"), b"", buffer));
                add("cgroup_oom_kills", number_in(&folder.join("memory.events"), b"oom_kill ", buffer));
            }
            Version::One { cpu, account, memory } => {
                if let Some(account) = account {
                    add("cgroup_cpu_ns", number_in(&account.join("cpuacct.usage"), b"", buffer));
                }
                if let Some(cpu) = cpu {
                    let stat = cpu.join("cpu.stat");
                    add("cgroup_throttled_ns", number_in(&stat, b"throttled_time", buffer));
                    add("cgroup_throttled_periods", number_in(&stat, b"nr_throttled", buffer));
                    let quota = number_in(&cpu.join("cpu.cfs_quota_us"), b"", buffer).filter(|&quota| quota > 0);
                    let period = number_in(&cpu.join("cpu.cfs_period_us"), b"", buffer);
                    add("cgroup_cpu_limit_millicores", quota.zip(period).and_then(millicores));
                }
                if let Some(memory) = memory {
                    add("cgroup_memory_bytes", number_in(&memory.join("memory.usage_in_bytes"), b"", buffer));
                    // Without a limit, it is the largest number of whole pages.
                    let limit = number_in(&memory.join("memory.limit_in_bytes"), b"", buffer);
                    add("cgroup_memory_limit_bytes", limit.filter(|&limit| limit < i64::MAX - (1 << 20)));
                    add("cgroup_oom_kills", number_in(&memory.join("memory.oom_control"), b"oom_kill ", buffer));
                }
            }
        }
    }
}

/// `QUOTA PERIOD`; `None` for `max PERIOD`.
fn two_numbers(path: &Path, buffer: &mut Vec<u8>) -> Option<(i64, i64)> {
    let mut numbers = fields(read_whole(path, buffer).ok()?).map(number);
    Some((numbers.next()??, numbers.next()??))
}

fn millicores((quota, period): (i64, i64)) -> Option<i64> {
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn read(root: &Path, text: &str) -> Vec<(String, i64)> {
        let mut readings = Readings::default();
        Cgroup::below(root, text).unwrap().read(&mut readings, &mut Vec::new());
        readings.iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    #[test]
    fn version_2_has_throttling_and_limits() {
        let root = root(&[
            ("a.slice/cgroup.controllers", "cpu memory\n"),
            ("a.slice/cpu.stat", "usage_usec 5\nuser_usec 3\nnr_periods 9\nnr_throttled 2\nthrottled_usec 40\n"),
            ("a.slice/cpu.max", "150000 100000\n"),
            ("a.slice/memory.current", "4096\n"),
            ("a.slice/memory.max", "max\n"),
            ("a.slice/memory.events", "oom 3\noom_kill 1\noom_group_kill 0\n"),
        ]);
        let expected = [
            ("cgroup_cpu_ns:/a.slice", 5_000),
            ("cgroup_throttled_ns:/a.slice", 40_000),
            ("cgroup_throttled_periods:/a.slice", 2),
            ("cgroup_cpu_limit_millicores:/a.slice", 1_500),
            ("cgroup_memory_bytes:/a.slice", 4_096),
            ("cgroup_oom_kills:/a.slice", 1),
        ];
        assert_eq!(read(root.path(), "0::/a.slice\n"), expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(Cgroup::below(root.path(), "0::/\n"), None);
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let root = root(&[
            ("cpu,cpuacct/docker/x/cpuacct.usage", "77\n"),
            ("cpu,cpuacct/docker/x/cpu.stat", "nr_periods 1\nnr_throttled 4\nthrottled_time 900\n"),
            ("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n"),
            ("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n"),
            ("memory/docker/x/memory.usage_in_bytes", "8192\n"),
            ("memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let text = "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n";
        let expected = [
            ("cgroup_cpu_ns:/docker/x", 77),
            ("cgroup_throttled_ns:/docker/x", 900),
            ("cgroup_throttled_periods:/docker/x", 4),
            ("cgroup_memory_bytes:/docker/x", 8_192),
        ];
        assert_eq!(read(root.path(), text), expected.map(|(name, value)| (name.to_owned(), value)));
    }
}

//! What this machine and user allow, found by trying.

use std::ffi::CString;
use std::io::{self, BufRead, BufReader, Read};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::{fmt, fs};

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};
use perf_event_open_sys::ioctls;
use stepscope_model::Machine;

use crate::launch::{Launch, Output, Prepared};
use crate::perf::{Events, Kernel, Kind, MemorySampling, Sampling, Scope, Tracepoint, UserRegisters, open_event};
use crate::proc::{self, Backing, Mapping};

/// The result of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It works.
    Works,
    /// The kernel refused with this error number.
    Refused(i32),
    /// It was not tried, because a prerequisite does not work.
    #[default]
    Untried,
}

impl Outcome {
    /// Whether it works.
    pub fn works(self) -> bool {
        self == Outcome::Works
    }

    fn of(result: io::Result<()>) -> Self {
        result.map_or_else(|error| Self::of_error(&error), |()| Outcome::Works)
    }

    fn of_error(error: &io::Error) -> Self {
        Outcome::Refused(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Works => f.write_str("yes"),
            Outcome::Refused(errno) => write!(f, "no: {}", io::Error::from_raw_os_error(*errno)),
            Outcome::Untried => f.write_str("no"),
        }
    }
}

/// Hardware counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pmu {
    /// Cycles are counted.
    Counts,
    /// The event opens but does not count: a virtual machine passes the counters through only partly.
    Stuck,
    /// There are none (`ENOENT`); rights do not matter.
    #[default]
    Absent,
    /// This user may not use them.
    Refused(i32),
}

/// Whether tracepoints can be looked up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tracefs {
    /// They can.
    Readable,
    /// It is mounted, but this user may not read it.
    Unreadable,
    /// It is not mounted.
    #[default]
    NotMounted,
}

/// Whether kernel addresses can be named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KernelNames {
    /// `/proc/kallsyms` has addresses.
    Readable,
    /// Its addresses are all zero for this user.
    Hidden,
    /// There is none.
    #[default]
    Absent,
}

/// Effective capabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Those relevant for recording, with their numbers (`linux/capability.h`).
    const NAMES: [(&'static str, u32); 7] = [
        ("cap_perfmon", 38),
        ("cap_sys_admin", 21),
        ("cap_ipc_lock", 14),
        ("cap_dac_read_search", 2),
        ("cap_syslog", 34),
        ("cap_sys_ptrace", 19),
        ("cap_bpf", 39),
    ];

    /// Whether a capability is effective, by its lower-case name.
    pub fn has(self, name: &str) -> bool {
        Self::NAMES.iter().any(|&(known, number)| known == name && self.0 >> number & 1 == 1)
    }
}

impl fmt::Display for Capabilities {
    /// Those relevant for recording.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Self::NAMES.iter().map(|&(name, _)| name).filter(|name| self.has(name)).collect();
        f.write_str(if names.is_empty() { "none relevant" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

/// The results of all trials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Path of the running executable, for `setcap`.
    pub executable: String,
    /// Effective user id.
    pub uid: u32,
    /// Effective capabilities.
    pub capabilities: Capabilities,
    /// `kernel.perf_event_paranoid`; absent where the kernel has no perf events.
    pub paranoid: Option<i32>,
    /// Whether a seccomp filter is in force, as in most containers.
    pub seccomp_filter: bool,
    /// Name of the container runtime, if there is one.
    pub container: Option<String>,
    /// `RLIMIT_MEMLOCK`; `None` if unlimited.
    pub memlock_bytes: Option<u64>,
    /// `kernel.perf_event_mlock_kb`: additional locked memory for rings, per user and CPU.
    pub perf_mlock_kib: Option<u64>,
    /// Size of the ring buffer that each CPU got; a recording asks for 8 MiB.
    pub ring_bytes: usize,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<i32>,
    /// Names of kernel functions.
    pub kernel_names: KernelNames,
    /// `kernel.yama.ptrace_scope`; `None` without that module.
    pub ptrace_scope: Option<i32>,
    /// Reading the memory of a launched process.
    pub read_memory: Outcome,
    /// Attaching to a launched process (`ptrace`).
    pub ptrace: Outcome,
    /// tracefs.
    pub tracefs: Tracefs,
    /// Hardware counters.
    pub pmu: Pmu,
    /// Samples of loads and stores by the CPU (PEBS, IBS).
    pub memory_sampling: bool,
    /// Following a program in user space: mappings, forks, context switches.
    pub follow: Outcome,
    /// Samples of CPU time in user space.
    pub cpu_clock: Outcome,
    /// Samples of CPU time in the kernel.
    pub kernel: Outcome,
    /// Stacks at context switches.
    pub switch_stacks: Outcome,
    /// Page faults.
    pub faults: Outcome,
    /// Recording the whole machine.
    pub machine_wide: Outcome,
    /// Wake-ups.
    pub waking: Outcome,
    /// BPF programs at system calls.
    pub system_calls: Outcome,
    /// Calls of a program's functions (uprobes).
    pub uprobes: Outcome,
}

/// A finding for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// A property of the machine or the user.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// Size of the ring buffer that a recording asks for.
const RING_BYTES: usize = 8 << 20;

impl Findings {
    /// Reads settings and tries events. Whatever cannot be read keeps its default.
    pub fn gather() -> Self {
        let pid = std::process::id();
        let status = proc::status(pid).unwrap_or_default();
        let mut findings = Self {
            executable: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
            uid: status.uids[1],
            capabilities: Capabilities(status.effective_capabilities),
            paranoid: sysctl("kernel/perf_event_paranoid"),
            seccomp_filter: status.seccomp_filter,
            container: container(),
            memlock_bytes: memlock_bytes(),
            perf_mlock_kib: sysctl("kernel/perf_event_mlock_kb"),
            kptr_restrict: sysctl("kernel/kptr_restrict"),
            kernel_names: kernel_names(),
            ptrace_scope: sysctl("kernel/yama/ptrace_scope"),
            pmu: pmu(),
            memory_sampling: MemorySampling::find().is_some(),
            ..Self::default()
        };
        findings.try_a_child();
        findings.try_events();
        findings
    }

    /// Tries the events of a recording on this process.
    fn try_events(&mut self) {
        // SAFETY: gettid only returns a number. `libc::gettid` is no function in older versions of musl, and std links it weakly.
        let this_thread = || Scope::Threads(vec![unsafe { libc::syscall(libc::SYS_gettid) } as u32]);
        match open(this_thread(), Kernel::Excluded) {
            Ok(mut events) => {
                self.follow = Outcome::Works;
                self.ring_bytes = events.ring_bytes();
                self.cpu_clock = add(&mut events, Kind::Cpu, Events::cpu_clock);
                self.faults = add(&mut events, Kind::MinorFaults, Events::minor_faults);
            }
            Err(error) => self.follow = Outcome::of_error(&error),
        }
        match open(this_thread(), Kernel::Included) {
            Ok(mut events) => {
                self.kernel = add(&mut events, Kind::Cpu, Events::cpu_clock);
                self.switch_stacks = add(&mut events, Kind::SwitchStack, Events::switch_stacks);
            }
            Err(error) => self.kernel = Outcome::of_error(&error),
        }
        let tracepoint = Tracepoint::find("sched", "sched_waking");
        self.tracefs = tracefs(tracepoint.as_ref().err());
        match open(Scope::Machine, Kernel::Included) {
            Ok(mut events) => {
                self.machine_wide = Outcome::Works;
                self.system_calls = Outcome::of(events.add_system_calls());
                self.uprobes = try_uprobe(&mut events, &self.executable);
                let Ok(tracepoint) = &tracepoint else { return };
                self.waking = add(&mut events, Kind::Waking, |events| events.waking(tracepoint));
            }
            Err(error) => self.machine_wide = Outcome::of_error(&error),
        }
    }

    /// Tries what a recorder does to a launched program.
    fn try_a_child(&mut self) {
        let sleep = Launch::new(["sleep", "60"]).output(Output::Null).prepare().and_then(Prepared::start);
        let Ok(child) = sleep else { return };
        self.read_memory = Outcome::of(read_stack_of(child.pid()));
        self.ptrace = Outcome::of(trace(child.pid()));
    }

    /// The findings as names and values.
    pub fn facts(&self, machine: &Machine) -> Vec<Fact> {
        let number = |value: Option<i32>| value.map_or("none".to_owned(), |value| value.to_string());
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        let virtualization = machine.virtualization.clone().unwrap_or_else(|| "none found".to_owned());
        let facts = [
            ("CPU", format!("{}, {} online ({})", machine.cpu, machine.cores, machine.architecture)),
            ("frequency governor", machine.governor.clone().unwrap_or_else(|| "none".to_owned())),
            ("virtual machine", virtualization),
            ("container", self.container.clone().unwrap_or_else(|| "none found".to_owned())),
            ("kernel", machine.kernel.clone()),
            ("load", format!("{:.2}", machine.load_milli as f64 / 1000.0)),
            ("user", format!("{} (uid {})", if self.uid == 0 { "root" } else { "not root" }, self.uid)),
            ("capabilities", self.capabilities.to_string()),
            ("kernel.perf_event_paranoid", number(self.paranoid)),
            ("seccomp filter", if self.seccomp_filter { "active" } else { "none" }.to_owned()),
            ("hardware counters (PMU)", self.pmu.to_string()),
            ("samples of memory accesses (PEBS, IBS)", if self.memory_sampling { "yes" } else { "none" }.to_owned()),
            ("locked memory (RLIMIT_MEMLOCK)", self.memlock_bytes.map_or("unlimited".to_owned(), kib)),
            (
                "kernel.perf_event_mlock_kb",
                self.perf_mlock_kib.map_or("none".to_owned(), |value| format!("{value} KiB")),
            ),
            ("ring buffer per CPU", format!("{} of {}", kib(self.ring_bytes as u64), kib(RING_BYTES as u64))),
            ("kernel.kptr_restrict", number(self.kptr_restrict)),
            ("kernel names (/proc/kallsyms)", self.kernel_names.to_string()),
            ("kernel.yama.ptrace_scope", number(self.ptrace_scope)),
            ("tracefs", self.tracefs.to_string()),
            ("follow a program", self.follow.to_string()),
            ("sample CPU time in user space", self.cpu_clock.to_string()),
            ("sample CPU time in the kernel", self.kernel.to_string()),
            ("stacks at context switches", self.switch_stacks.to_string()),
            ("page faults", self.faults.to_string()),
            ("record the whole machine", self.machine_wide.to_string()),
            ("wake-ups", self.waking.to_string()),
            ("BPF programs at system calls", self.system_calls.to_string()),
            ("calls of a program's functions (uprobes)", self.uprobes.to_string()),
            ("read the memory of a launched program", self.read_memory.to_string()),
            ("ptrace a launched program", self.ptrace.to_string()),
        ];
        facts.into_iter().map(|(name, value)| Fact { name, value }).collect()
    }
}

impl fmt::Display for Pmu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pmu::Counts => f.write_str("yes"),
            Pmu::Stuck => f.write_str("present, but not counting"),
            Pmu::Absent => f.write_str("none"),
            Pmu::Refused(errno) => write!(f, "refused: {}", io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl fmt::Display for Tracefs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tracefs::Readable => "readable",
            Tracefs::Unreadable => "not readable for this user",
            Tracefs::NotMounted => "not mounted",
        })
    }
}

impl fmt::Display for KernelNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelNames::Readable => "readable",
            KernelNames::Hidden => "addresses hidden from this user",
            KernelNames::Absent => "none",
        })
    }
}

fn open(scope: Scope, kernel: Kernel) -> io::Result<Events> {
    let sampling = Sampling {
        frequency_hz: 997,
        stack_bytes: 8 << 10,
        kernel,
        switches: true,
        registers: UserRegisters::ForStacks,
    };
    Events::open(scope.clone(), scope, sampling, RING_BYTES)
}

fn add(events: &mut Events, kind: Kind, attr: impl Fn(&Events) -> perf_event_attr) -> Outcome {
    let attr = attr(events);
    Outcome::of(events.add(kind, attr))
}

/// Opens a step's event at an instruction of this program. It is never enabled, so the instruction stays as it is.
fn try_uprobe(events: &mut Events, executable: &str) -> Outcome {
    let Ok(path) = CString::new(executable) else { return Outcome::default() };
    let attr = events.entry_of(&path, 0);
    Outcome::of(attr.and_then(|attr| events.add(Kind::Step, attr)))
}

fn sysctl<T: std::str::FromStr>(name: &str) -> Option<T> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok()
}

/// The state of tracefs, by the error of a tracepoint's lookup.
fn tracefs(error: Option<&io::Error>) -> Tracefs {
    match error {
        None => Tracefs::Readable,
        // The mount point always exists, so an empty directory means that nothing is mounted.
        Some(_) if fs::read_dir("/sys/kernel/tracing").is_ok_and(|mut entries| entries.next().is_none()) => {
            Tracefs::NotMounted
        }
        Some(error) if error.kind() == io::ErrorKind::PermissionDenied => Tracefs::Unreadable,
        Some(_) => Tracefs::NotMounted,
    }
}

fn memlock_bytes() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Whether the first names have nonzero addresses: either all names have, or none.
fn kernel_names() -> KernelNames {
    let Ok(file) = fs::File::open("/proc/kallsyms") else { return KernelNames::Absent };
    let mut lines = BufReader::new(file.take(64 << 10)).lines().map_while(Result::ok);
    // On some architectures the first symbols (per-CPU ones) really are at 0.
    let is_named = |line: String| line.split(' ').next().is_some_and(|address| address.bytes().any(|b| b != b'0'));
    if lines.any(is_named) { KernelNames::Readable } else { KernelNames::Hidden }
}

/// The container runtime that this process runs in, by the files that each creates.
fn container() -> Option<String> {
    let exists = |path: &str| Path::new(path).exists();
    if let Ok(name) = fs::read_to_string("/run/systemd/container") {
        return Some(name.trim().to_owned());
    }
    if exists("/run/.containerenv") {
        return Some("podman".to_owned());
    }
    if exists("/.dockerenv") {
        return Some("docker".to_owned());
    }
    let groups = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    ["kubepods", "docker", "containerd", "lxc"].iter().find(|name| groups.contains(*name)).map(|&name| name.to_owned())
}

/// Counts the cycles of this process for a moment.
fn pmu() -> Pmu {
    let mut attr = perf_event_attr {
        type_: sys::PERF_TYPE_HARDWARE,
        config: sys::PERF_COUNT_HW_CPU_CYCLES as u64,
        size: size_of::<perf_event_attr>() as u32,
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let mut event = match open_event(&mut attr, 0, -1) {
        Ok(event) => event,
        Err(error) => {
            return match error.raw_os_error() {
                Some(errno @ (libc::EACCES | libc::EPERM)) => Pmu::Refused(errno),
                // ENOENT, and EOPNOTSUPP or ENODEV on some architectures: the kernel has no such counter.
                _ => Pmu::Absent,
            };
        }
    };
    // SAFETY: the event is open.
    unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) };
    std::hint::black_box((0..1_000_000_u64).fold(1, |x: u64, i| std::hint::black_box(x.wrapping_mul(i | 1))));
    let mut count = [0; 8];
    match event.read_exact(&mut count) {
        Ok(()) if u64::from_ne_bytes(count) > 0 => Pmu::Counts,
        _ => Pmu::Stuck,
    }
}

/// Reads a byte of a process's stack.
fn read_stack_of(pid: u32) -> io::Result<()> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let maps = Mapping::parse_all(&maps).ok_or(io::ErrorKind::InvalidData)?;
    let stack = maps.iter().find(|mapping| mapping.backing == Backing::Special("[stack]".into()));
    let end = stack.ok_or(io::ErrorKind::NotFound)?.end;
    match proc::read_memory(pid, end - 1, &mut [0])? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Attaches to a process and detaches.
fn trace(pid: u32) -> io::Result<()> {
    let pid = pid as i32;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: no memory is passed; the process is a grandchild of this one, and nothing else waits for it here.
    unsafe {
        if libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::ptrace(libc::PTRACE_INTERRUPT, pid, none, none);
        libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
        libc::ptrace(libc::PTRACE_DETACH, pid, none, none);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_names() {
        let capabilities = Capabilities(1 << 38 | 1 << 2 | 1 << 12);
        assert!(capabilities.has("cap_perfmon") && !capabilities.has("cap_sys_admin") && !capabilities.has("nonsense"));
        assert_eq!(capabilities.to_string(), "cap_perfmon, cap_dac_read_search");
        assert_eq!(Capabilities(0).to_string(), "none relevant");
    }

    #[test]
    fn a_launched_process_can_be_read_while_it_lives() {
        let child = Launch::new(["sleep", "60"]).output(Output::Null).prepare().unwrap().start().unwrap();
        let pid = child.pid();
        assert_eq!(Outcome::of(read_stack_of(pid)), Outcome::Works);
        drop(child);
        assert_eq!(Outcome::of(read_stack_of(pid)), Outcome::Refused(libc::ENOENT));
    }

    #[test]
    fn a_traced_process_ends_normally() {
        let child = Launch::new(["true"]).prepare().unwrap();
        let pid = child.pid();
        trace(pid).unwrap();
        drop(child);
        assert!(!proc::exists(pid));
    }
}

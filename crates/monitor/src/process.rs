//! One process: its open files, and the last value of each figure.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use stepscope_record::proc::{self, Io, SchedStat, Stat, Status};

use crate::gpu::{Clients, GpuUse};
use crate::pace::{Pace, ReadTimer};
use crate::text::{HeldFile, kibibytes_of, read_whole};

macro_rules! figures {
    ($($variant:ident $name:literal)*) => {
        /// A figure of a process, by its place in [`FIGURES`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Figure { $(#[doc = $name] $variant),* }

        /// Names of the figures of a process, as in [`stepscope_model::READINGS`].
        pub const FIGURES: &[&str] = &[$($name),*];
    };
}

figures! {
    CpuUser "cpu_user_ns"
    CpuSystem "cpu_system_ns"
    State "state"
    Threads "threads"
    Rss "rss_bytes"
    Pss "pss_bytes"
    Swap "swap_bytes"
    MinorFaults "minor_faults"
    MajorFaults "major_faults"
    IoRead "io_read_bytes"
    IoWrite "io_write_bytes"
    IoReadCalls "io_read_call_bytes"
    IoWriteCalls "io_write_call_bytes"
    Fds "fds"
    Sockets "sockets"
    VoluntarySwitches "context_switches_voluntary"
    InvoluntarySwitches "context_switches_involuntary"
    RunQueueDelay "run_queue_delay_ns"
    Gpu "gpu_ns"
    GpuMemory "gpu_memory_bytes"
}

/// The last value of each figure.
pub type Values = [Option<i64>; FIGURES.len()];

/// A process that is monitored.
#[derive(Debug)]
pub struct WatchedProcess {
    pid: u32,
    start_ticks: u64,
    pub(crate) parent: Option<u32>,
    pub(crate) name: String,
    pub(crate) command_line: Vec<String>,
    pub(crate) executable: String,
    /// How many programs and names it had so far.
    pub(crate) images: u32,
    stat: HeldFile,
    /// Absent where it may not be read.
    io: Option<HeldFile>,
    pub(crate) values: Values,
    pub(crate) slow: ReadTimer,
    pub(crate) rare: ReadTimer,
    threads: HashMap<u32, ThreadTotals>,
    /// Of threads that ended, as far as they were read.
    ended: ThreadTotals,
    gpu_fds: Vec<u32>,
    /// The network namespace, by inode. `None` where it may not be read.
    pub(crate) network: Option<u64>,
    pub(crate) cgroups: String,
}

/// Totals of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadTotals {
    timeslices: u64,
    delay_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

/// What reading takes from the sampler.
#[derive(Debug)]
pub struct Units {
    /// Nanoseconds of a clock tick.
    pub tick_ns: i64,
    /// Bytes of a page.
    pub page_bytes: i64,
}

impl WatchedProcess {
    /// Opens the files of a process. `None` if it is gone.
    pub(crate) fn open(pid: u32, start_ticks: u64, pace: &Pace) -> Option<Self> {
        let stat = HeldFile::open(format!("/proc/{pid}/stat")).ok()?;
        let first = proc::stat(pid).ok().filter(|stat| stat.start_ticks == start_ticks)?;
        let mut process = Self {
            pid,
            start_ticks,
            parent: Some(first.parent),
            executable: String::new(),
            name: first.name,
            command_line: Vec::new(),
            images: 0,
            stat,
            io: readable(HeldFile::open(format!("/proc/{pid}/io"))),
            values: [None; FIGURES.len()],
            slow: ReadTimer::new(pace.slow),
            rare: ReadTimer::new(pace.rare),
            threads: HashMap::new(),
            ended: ThreadTotals::default(),
            gpu_fds: Vec::new(),
            network: fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|namespace| namespace.ino()),
            cgroups: fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default(),
        };
        process.read_image();
        Some(process)
    }

    /// Reads which program it runs.
    fn read_image(&mut self) {
        let lossy = |path: PathBuf| path.to_string_lossy().into_owned();
        self.executable = proc::executable(self.pid).map_or_else(|_| self.name.clone(), lossy);
        self.command_line = proc::command_line(self.pid).unwrap_or_default();
        self.images += 1;
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its start, in ticks since boot.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// The kernel's name of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last value of a figure.
    pub fn value(&self, figure: &str) -> Option<i64> {
        self.values[FIGURES.iter().position(|name| *name == figure)?]
    }

    pub(crate) fn get(&self, figure: Figure) -> Option<i64> {
        self.values[figure as usize]
    }

    /// Whether some of its files may not be read by this user.
    pub fn is_denied(&self) -> bool {
        self.io.is_none()
    }

    fn set(&mut self, figure: Figure, value: u64) {
        self.values[figure as usize] = i64::try_from(value).ok();
    }

    /// Reads what is read each time. `false` if the process has ended.
    pub(crate) fn read_usual(&mut self, units: &Units, buffer: &mut Vec<u8>) -> bool {
        let Ok(text) = self.stat.read(buffer) else { return false };
        let Some(stat) = Stat::parse_numbers(text).filter(|stat| !stat.process_has_ended()) else { return false };
        // A process that runs another program takes another name.
        if let Some(name) = name_in(text).filter(|name| *name != self.name.as_bytes()) {
            let name = String::from_utf8_lossy(name).into_owned();
            if name != self.name {
                self.name = name;
                self.read_image();
            }
        }
        let scaled = |count: u64, unit: i64| count.saturating_mul(unit as u64);
        self.set(Figure::CpuUser, scaled(stat.user_ticks, units.tick_ns));
        self.set(Figure::CpuSystem, scaled(stat.system_ticks, units.tick_ns));
        self.set(Figure::State, u64::from(stat.state.letter()));
        self.set(Figure::Threads, stat.threads);
        self.set(Figure::Rss, scaled(stat.rss_pages, units.page_bytes));
        self.set(Figure::MinorFaults, stat.minor_faults);
        self.set(Figure::MajorFaults, stat.major_faults);
        if let Some(io) = self.io.as_ref().and_then(|io| Io::parse(io.read(buffer).ok()?)) {
            self.set(Figure::IoRead, io.read_bytes);
            self.set(Figure::IoWrite, io.write_bytes);
            self.set(Figure::IoReadCalls, io.read_call_bytes);
            self.set(Figure::IoWriteCalls, io.write_call_bytes);
        }
        true
    }

    /// Reads descriptors, swap, and what the kernel counts per thread.
    pub(crate) fn read_slow(&mut self, buffer: &mut Vec<u8>) {
        let pid = self.pid;
        if let Ok(fds) = proc::fd_count(pid) {
            self.set(Figure::Fds, fds);
        }
        if let Some(swap) =
            read_whole(format!("/proc/{pid}/status"), buffer).ok().and_then(|text| kibibytes_of(text, b"VmSwap:"))
        {
            self.values[Figure::Swap as usize] = Some(swap);
        }
        self.read_threads(buffer);
        self.read_gpu(buffer);
    }

    fn read_threads(&mut self, buffer: &mut Vec<u8>) {
        let pid = self.pid;
        let Ok(present) = proc::threads(pid) else { return };
        let mut totals = HashMap::with_capacity(present.len());
        let mut sum = ThreadTotals::default();
        for tid in present {
            let Some(sched) = schedstat(pid, tid, buffer) else { continue };
            let before = self.threads.remove(&tid).unwrap_or_default();
            let after = read_thread(pid, tid, before, sched, buffer);
            sum.add(&after);
            totals.insert(tid, after);
        }
        for (_, gone) in self.threads.drain() {
            self.ended.add(&gone);
        }
        self.threads = totals;
        sum.add(&self.ended);
        self.set(Figure::VoluntarySwitches, sum.voluntary);
        self.set(Figure::InvoluntarySwitches, sum.involuntary);
        self.set(Figure::RunQueueDelay, sum.delay_ns);
    }

    fn read_gpu(&mut self, buffer: &mut Vec<u8>) {
        let mut clients = Clients::default();
        for fd in &self.gpu_fds {
            if let Ok(text) = read_whole(format!("/proc/{}/fdinfo/{fd}", self.pid), buffer) {
                clients.add(text);
            }
        }
        if let Some(sum) = clients.sum() {
            self.set_gpu(sum);
        }
    }

    /// What a GPU whose driver does not tell it in `fdinfo` did for the process.
    pub(crate) fn set_gpu(&mut self, gpu: GpuUse) {
        self.values[Figure::Gpu as usize] = Some(gpu.ns);
        self.values[Figure::GpuMemory as usize] = Some(gpu.memory_bytes);
    }

    /// Reads proportional memory, and what each descriptor is.
    pub(crate) fn read_rare(&mut self, buffer: &mut Vec<u8>) {
        let pid = self.pid;
        if let Some(pss) =
            read_whole(format!("/proc/{pid}/smaps_rollup"), buffer).ok().and_then(|text| kibibytes_of(text, b"Pss:"))
        {
            self.values[Figure::Pss as usize] = Some(pss);
        }
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return };
        let mut sockets = 0;
        self.gpu_fds.clear();
        for entry in entries.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.as_os_str().as_encoded_bytes();
            sockets += u64::from(target.starts_with(b"socket:"));
            if target.starts_with(b"/dev/dri/") {
                self.gpu_fds.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
            }
        }
        self.set(Figure::Sockets, sockets);
    }
}

/// The name in the text of `stat`: up to the last parenthesis, because it may hold some.
fn name_in(text: &[u8]) -> Option<&[u8]> {
    let (open, close) = (text.iter().position(|&byte| byte == b'(')?, text.iter().rposition(|&byte| byte == b')')?);
    text.get(open + 1..close)
}

impl ThreadTotals {
    fn add(&mut self, more: &Self) {
        self.delay_ns = self.delay_ns.saturating_add(more.delay_ns);
        self.voluntary = self.voluntary.saturating_add(more.voluntary);
        self.involuntary = self.involuntary.saturating_add(more.involuntary);
    }
}

/// A thread that has not run since has not switched either. Kernels without these statistics report 0 for all.
fn read_thread(pid: u32, tid: u32, before: ThreadTotals, sched: SchedStat, buffer: &mut Vec<u8>) -> ThreadTotals {
    let mut after = ThreadTotals { timeslices: sched.timeslices, delay_ns: sched.run_queue_delay_ns, ..before };
    if sched.timeslices == 0 || sched.timeslices != before.timeslices {
        let status = read_whole(format!("/proc/{pid}/task/{tid}/status"), buffer).ok().and_then(Status::parse);
        if let Some(status) = status {
            (after.voluntary, after.involuntary) = (status.voluntary_switches, status.involuntary_switches);
        }
    }
    after
}

fn schedstat(pid: u32, tid: u32, buffer: &mut Vec<u8>) -> Option<SchedStat> {
    SchedStat::parse(read_whole(format!("/proc/{pid}/task/{tid}/schedstat"), buffer).ok()?)
}

/// The kernel checks the right to read some files only when they are read.
fn readable(file: io::Result<HeldFile>) -> Option<HeldFile> {
    let file = file.ok()?;
    file.read(&mut Vec::new()).is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_known_reading() {
        for name in FIGURES {
            assert!(stepscope_model::reading_kind(name).is_some(), "{name}");
        }
        assert_eq!(FIGURES[Figure::GpuMemory as usize], "gpu_memory_bytes");
    }
}

//! Reads the processes of a set and the machine, each figure at its pace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use stepscope_model::Process;
use stepscope_model::command_line::quoted;
use stepscope_record::clock;
use stepscope_record::proc::{self, ProcessSet};

use crate::cgroup::Cgroup;
use crate::machine::Machine;
use crate::network;
use crate::nvml::Nvml;
use crate::pace::{Pace, ReadTimer};
use crate::process::{Units, WatchedProcess};
use crate::readings::Readings;

/// The share of an interval that expensive figures may take within it, so that a first round does not come at once.
const BURST: f64 = 0.005;

/// Reads the processes of a set and the machine.
#[derive(Debug)]
pub struct Sampler {
    set: ProcessSet,
    pace: Pace,
    processes: BTreeMap<u32, WatchedProcess>,
    ended: Vec<(u32, u64)>,
    machine: Machine,
    /// NVIDIA GPUs.
    nvml: Option<Nvml>,
    readings: Readings,
    units: Units,
    finding: ReadTimer,
    sensors: ReadTimer,
    gpus: ReadTimer,
    networks: ReadTimer,
    cgroups: ReadTimer,
    own_network: Option<u64>,
    longest_slow: Duration,
    longest_rare: Duration,
    most_denied: usize,
    buffer: Vec<u8>,
    labelling: Option<Labelling>,
    /// The labels of the processes, and what they were made for: pid, start and number of programs.
    labels: HashMap<u32, String>,
    labelled: Vec<(u32, u64, u32)>,
}

/// What tells processes apart, from their programs and command lines.
type Labelling = fn(&[Process]) -> Vec<String>;

impl Sampler {
    /// A sampler of this set.
    pub fn new(set: ProcessSet, pace: Pace) -> Self {
        Self {
            set,
            pace,
            processes: BTreeMap::new(),
            ended: Vec::new(),
            machine: Machine::open(),
            nvml: Nvml::open(),
            readings: Readings::default(),
            units: Units {
                tick_ns: (1_000_000_000 / proc::ticks_per_second()) as i64,
                page_bytes: proc::page_bytes() as i64,
            },
            finding: ReadTimer::new(pace.usual),
            sensors: ReadTimer::new(pace.slow),
            gpus: ReadTimer::new(pace.slow),
            networks: ReadTimer::new(pace.usual),
            cgroups: ReadTimer::new(pace.usual),
            own_network: network::own_namespace(),
            longest_slow: pace.slow,
            longest_rare: pace.rare,
            most_denied: 0,
            buffer: Vec::new(),
            labelling: None,
            labels: HashMap::new(),
            labelled: Vec::new(),
        }
    }

    /// The same, with labels of processes in place of their kernel's names.
    #[must_use]
    pub fn labelled(self, labelling: fn(&[Process]) -> Vec<String>) -> Self {
        Self { labelling: Some(labelling), ..self }
    }

    /// What tells a process from the others; without a labelling, the kernel's name of it.
    pub fn label<'a>(&'a self, process: &'a WatchedProcess) -> &'a str {
        self.labels.get(&process.pid()).map_or(process.name(), String::as_str)
    }

    /// Makes labels again if processes came or went, or run another program.
    fn update_labels(&mut self) {
        let Some(labelling) = self.labelling else { return };
        let present: Vec<(u32, u64, u32)> =
            self.processes.values().map(|one| (one.pid(), one.start_ticks(), one.images)).collect();
        if present == self.labelled {
            return;
        }
        let described = |one: &WatchedProcess| Process {
            pid: one.pid(),
            executable: one.executable.clone(),
            command_line: quoted(&one.command_line),
            ..Process::default()
        };
        let processes: Vec<Process> = self.processes.values().map(described).collect();
        self.labels = self.processes.keys().copied().zip(labelling(&processes)).collect();
        self.labelled = present;
    }

    /// Reads what is due at this time.
    pub fn sample(&mut self, now_ns: u64) {
        self.ended.clear();
        self.find(now_ns);
        self.read_processes();
        self.update_labels();
        self.read_due(now_ns);
        self.read_machine(now_ns);
    }

    /// The processes that are there, by pid.
    pub fn processes(&self) -> impl Iterator<Item = &WatchedProcess> {
        self.processes.values()
    }

    /// Pid and start of the processes that ended since the sample before.
    pub fn ended(&self) -> &[(u32, u64)] {
        &self.ended
    }

    /// What was read of the machine in the last sample.
    pub fn machine(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.readings.iter()
    }

    /// Whether no process is left, and none can come.
    pub fn is_over(&self) -> bool {
        let selection = self.set.selection();
        self.processes.is_empty()
            && selection.names.is_empty()
            && selection.cgroups.is_empty()
            && selection.containers.is_empty()
    }

    /// What could not be read, and how often expensive figures were.
    pub fn notes(&self) -> Vec<String> {
        let seconds = |duration: Duration| duration.as_secs_f64().round();
        let mut notes = vec![format!(
            "Descriptors, context switches, scheduling delay, swap and GPU use were read every {} s; proportional memory (PSS) and \
             sockets every {} s. Between readings they keep their value.",
            seconds(self.longest_slow),
            seconds(self.longest_rare)
        )];
        notes.extend(self.lacks());
        notes
    }

    /// What could not be read.
    pub fn lacks(&self) -> Option<String> {
        (self.most_denied > 0).then(|| {
            format!(
                "I/O, descriptors, sockets and proportional memory of {} processes could not be read: run as the user who owns them, \
                 or with CAP_SYS_PTRACE.",
                self.most_denied
            )
        })
    }

    /// Finds new processes, if any process was started on the machine.
    fn find(&mut self, now_ns: u64) {
        if !self.finding.is_due(now_ns) {
            return;
        }
        let cpu_before_ns = clock::thread_cpu_ns();
        self.set.refresh();
        for (pid, membership) in self.set.members() {
            if !self.processes.contains_key(&pid)
                && let Some(process) = WatchedProcess::open(pid, membership.start_ticks, &self.pace)
            {
                self.processes.insert(pid, process);
            }
        }
        self.finding.was_read(now_ns, clock::thread_cpu_ns().saturating_sub(cpu_before_ns), 1);
    }

    fn read_processes(&mut self) {
        let Self { processes, set, ended, units, buffer, .. } = self;
        processes.retain(|&pid, process| {
            let lives = process.read_usual(units, buffer);
            if !lives {
                set.remove(pid);
                ended.push((pid, process.start_ticks()));
            }
            lives
        });
        self.most_denied = self.most_denied.max(self.processes.values().filter(|process| process.is_denied()).count());
    }

    /// Reads the expensive figures that are due, as far as the interval allows. Those that have been due for longest come first.
    fn read_due(&mut self, now_ns: u64) {
        let budget_ns = (self.pace.usual.as_nanos() as f64 * BURST) as u64;
        let begin_ns = clock::thread_cpu_ns();
        let among = self.processes.len();
        let timers =
            |process: &WatchedProcess| [(false, process.slow, process.pid()), (true, process.rare, process.pid())];
        let due = self.processes.values().flat_map(timers).filter(|(_, timer, _)| timer.is_due(now_ns));
        let mut due: Vec<(bool, u64, u32)> = due.map(|(rarely, timer, pid)| (rarely, timer.due_ns(), pid)).collect();
        due.sort_unstable();
        for (rarely, _, pid) in due {
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            let cpu_before_ns = clock::thread_cpu_ns();
            let (timer, longest) = match rarely {
                true => {
                    process.read_rare(&mut self.buffer);
                    (&mut process.rare, &mut self.longest_rare)
                }
                false => {
                    process.read_slow(&mut self.buffer);
                    (&mut process.slow, &mut self.longest_slow)
                }
            };
            let now_cpu_ns = clock::thread_cpu_ns();
            timer.was_read(now_ns, now_cpu_ns.saturating_sub(cpu_before_ns), among);
            *longest = timer.longest().max(*longest);
            if now_cpu_ns.saturating_sub(begin_ns) > budget_ns {
                return;
            }
        }
    }

    fn read_machine(&mut self, now_ns: u64) {
        self.readings.clear();
        let Self { readings, buffer, machine, nvml, processes, .. } = self;
        machine.read(readings, buffer);
        if let Some(nvml) = nvml {
            timed(&mut self.gpus, now_ns, || {
                for (pid, gpu) in nvml.read(now_ns, readings) {
                    processes.get_mut(&pid).into_iter().for_each(|process| process.set_gpu(gpu));
                }
            });
        }
        timed(&mut self.sensors, now_ns, || machine.read_sensors(readings, buffer));
        let namespaces: BTreeMap<u64, u32> = match self.networks.is_due(now_ns) {
            true => self.processes.values().filter_map(|process| Some((process.network?, process.pid()))).collect(),
            false => BTreeMap::new(),
        };
        let own = self.own_network;
        timed(&mut self.networks, now_ns, || {
            // Our own also where no process of the set is in it: it has the interfaces of the machine.
            network::read(std::process::id(), "", readings, buffer);
            for (namespace, pid) in namespaces.into_iter().filter(|(namespace, _)| Some(*namespace) != own) {
                network::read(pid, &format!("@{namespace}"), readings, buffer);
            }
        });
        if self.cgroups.is_due(now_ns) {
            let mut texts: Vec<&str> = self.processes.values().map(|process| &*process.cgroups).collect();
            texts.sort_unstable();
            texts.dedup();
            timed(&mut self.cgroups, now_ns, || {
                texts.into_iter().filter_map(Cgroup::of).for_each(|cgroup| cgroup.read(readings, buffer));
            });
        }
    }
}

/// Reads if it is time, and notes the cost.
fn timed(timer: &mut ReadTimer, now_ns: u64, read: impl FnOnce()) {
    if timer.is_due(now_ns) {
        let cpu_before_ns = clock::thread_cpu_ns();
        read();
        timer.was_read(now_ns, clock::thread_cpu_ns().saturating_sub(cpu_before_ns), 1);
    }
}

#[cfg(test)]
mod tests;

//! Which events a recording opens, and what each dimension then lacks.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use stepscope_assemble::{EventRole, StepTimeSource, Switches};
use stepscope_model::{Dimension, DimensionStatus, Event};

use super::{Options, RecordError, StepPoint, StepTime, TimeArgument};
use crate::perf::{
    CounterGroups, Events, FunctionProbe, Kernel, Kind, Sampling, Scope, Tracepoint, UserRegisters, WOKEN_AT,
    WakerStacks,
};
use crate::proc;

/// When blocked threads are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// While not all context switches have a stack.
    WhileThinned,
    /// All the time: no context switch has a stack.
    Always,
}

/// The events of a recording, opened one after the other. An event that fails is noted as missing.
pub(super) struct Plan<'a> {
    pub events: &'a mut Events,
    pub options: &'a Options,
    pub dimensions: BTreeMap<Dimension, DimensionStatus>,
    pub meanings: BTreeMap<Kind, EventRole>,
    /// The sampled events, and the weight of samples without a period.
    pub named: Vec<(Kind, Event, u64)>,
    pub switches: Switches,
    /// Open counters of the CPU.
    pub counters: Option<CounterGroups>,
    /// Whether addresses of data come from the code at CPU samples.
    pub decodes_accesses: bool,
    /// When stacks of waits come from looks at blocked threads.
    pub looks: Option<Looks>,
}

/// What to do on a machine without counters.
pub const WITHOUT_COUNTERS: &str = "simulate caches: `stepscope record --with cache-sim` (needs valgrind)";

/// Whether addresses of data can be sampled in software.
pub const SAMPLES_ADDRESSES: bool = cfg!(target_arch = "x86_64");

/// What sampling of addresses in software shows.
pub const ADDRESSES_OF_CODE: &str = "Addresses come from the code at CPU samples: they show which lines several threads write, not \
                                     what that costs.";

impl<'a> Plan<'a> {
    pub fn new(events: &'a mut Events, options: &'a Options) -> Self {
        Self {
            events,
            options,
            dimensions: BTreeMap::new(),
            meanings: BTreeMap::new(),
            named: Vec::new(),
            switches: Switches::Unrecorded,
            counters: None,
            decodes_accesses: false,
            looks: None,
        }
    }

    fn wants(&self, dimension: Dimension) -> bool {
        self.options.dimensions.contains(&dimension)
    }

    fn note(&mut self, dimension: Dimension, lacks: Vec<String>) {
        if self.wants(dimension) {
            let status = match lacks.is_empty() {
                true => DimensionStatus::Recorded,
                false => DimensionStatus::Partial { lacks },
            };
            self.dimensions.insert(dimension, status);
        }
    }

    fn kernel_lacks(&self) -> Vec<String> {
        match (self.events.kernel(), self.options.kernel) {
            (Kernel::Excluded, Kernel::Included) => vec![
                "The kernel's part of stacks and of CPU time is missing: this user may record user space only \
                 (kernel.perf_event_paranoid)."
                    .to_owned(),
            ],
            _ => Vec::new(),
        }
    }

    pub fn add_cpu(&mut self) -> Result<(), RecordError> {
        if !self.wants(Dimension::Cpu) {
            return Ok(());
        }
        let cycles = self.events.cycles();
        let (event, weight) = match self.events.add(Kind::Cpu, cycles) {
            Ok(()) => (Event::sampled("cycles", "cycles"), 1),
            // Without a PMU there is no such event; in some virtual machines it can be opened and never counts.
            Err(_) => {
                let refused = |source| RecordError::Refused { what: "CPU time".into(), source };
                self.events.cpu_clocks().try_for_each(|clock| self.events.add(Kind::Cpu, clock)).map_err(refused)?;
                let per_thread = *self.events.scope() != Scope::Machine;
                let event = Event { per_thread, ..Event::sampled("cpu-clock", "ns") };
                (event, self.events.clock_sample_ns())
            }
        };
        self.named.push((Kind::Cpu, event, weight));
        let lacks = self.kernel_lacks();
        self.note(Dimension::Cpu, lacks);
        Ok(())
    }

    pub fn add_switches(&mut self) {
        if !wants_switches(self.options) {
            return;
        }
        self.switches = Switches::Recorded;
        let mut lacks = Vec::new();
        if is_aggregated(self.options, self.events.scope()) {
            if self.events.add_written().is_ok() {
                self.meanings.insert(Kind::Written, EventRole::Written);
                self.switches = Switches::WithWakeUps;
                self.note(Dimension::Offcpu, Vec::new());
                return self.note(Dimension::Sched, Vec::new());
            }
            if let Err(error) = self.events.add_machine_switches() {
                lacks.push(format!("Context switches of the whole machine are refused ({error})."));
            }
        }
        if self.wants(Dimension::Offcpu) {
            match self.events.add_switch_stacks() {
                Ok(()) => {
                    self.looks = Some(Looks::WhileThinned);
                    self.meanings.insert(Kind::SwitchStack, EventRole::SwitchStack);
                }
                Err(error) => {
                    self.looks = Some(Looks::Always);
                    lacks.push(format!(
                        "Where threads block is sampled, by looks at blocked threads: the stacks at context switches need \
                         kernel events ({error}; kernel.perf_event_paranoid at 1 or lower, or CAP_PERFMON)."
                    ));
                }
            }
        }
        self.note(Dimension::Offcpu, lacks);
        let lacks = self.add_waking().err().into_iter().collect();
        self.note(Dimension::Sched, lacks);
    }

    fn add_waking(&mut self) -> Result<(), String> {
        let lack = |why: String| {
            format!("Wakers, and the time from a wake-up until the thread runs, are not recorded: {why}.")
        };
        if *self.events.scope() != Scope::Machine {
            return Err(lack("wake-ups can be seen for the whole machine only, which needs CAP_PERFMON".into()));
        }
        let tracepoint = Tracepoint::find("sched", "sched_waking")
            .map_err(|error| lack(format!("the tracepoint sched:sched_waking cannot be found in tracefs ({error})")))?;
        let pid_at = tracepoint.offset_of("pid").unwrap_or(24);
        let attr = self.events.waking(&tracepoint);
        self.events
            .add(Kind::Waking, attr)
            .map_err(|error| lack(format!("the tracepoint sched:sched_waking is refused ({error})")))?;
        self.meanings.insert(Kind::Waking, EventRole::Waking { pid_at });
        self.switches = Switches::WithWakeUps;
        let waker_stacks = self.events.add_waker_stacks(&tracepoint).map_err(|error| {
            format!("Stacks of wakers are not recorded: the tracepoint is refused for threads ({error}).")
        })?;
        let meaning = match waker_stacks {
            WakerStacks::Written => EventRole::WakerStack { pid_at: WOKEN_AT },
            WakerStacks::OfThreads => EventRole::Waking { pid_at },
        };
        self.meanings.insert(Kind::WakerStack, meaning);
        Ok(())
    }

    pub fn add_faults(&mut self) {
        if !self.wants(Dimension::Faults) {
            return;
        }
        let mut lacks = self.kernel_lacks();
        let kinds = [
            (Kind::MinorFaults, self.events.minor_faults(), "minor-faults"),
            (Kind::MajorFaults, self.events.major_faults(), "major-faults"),
        ];
        for (kind, attr, name) in kinds {
            match self.events.add(kind, attr) {
                Ok(()) => self.named.push((kind, Event::sampled(name, "faults"), 1)),
                Err(error) => lacks.push(format!("The event {name} is refused ({error}).")),
            }
        }
        self.note(Dimension::Faults, lacks);
    }

    /// Samples of cache misses and instructions, and counters of the whole recording.
    pub fn add_cache(&mut self) {
        if !self.wants(Dimension::Cache) {
            return;
        }
        let mut lacks = self.kernel_lacks();
        let kinds = [
            (Kind::CacheMisses, self.events.cache_misses(), Event::sampled("cache-misses", "misses")),
            (Kind::Instructions, self.events.instructions(), Event::sampled("instructions", "instructions")),
        ];
        let mut refusal = None;
        for (kind, attrs, event) in kinds {
            let opened: Vec<_> = attrs.into_iter().map(|attr| self.events.add_precise(kind, attr)).collect();
            if opened.iter().any(Result::is_ok) {
                self.named.push((kind, event, 1));
            } else if let Some(Err(error)) = opened.into_iter().next() {
                lacks.push(format!("Samples of {} are refused ({error}).", event.name));
                refusal = Some(error);
            }
        }
        match CounterGroups::open(self.events.tree(), self.events.kernel()) {
            Ok(groups) => self.counters = Some(groups),
            Err(error) => lacks.push(format!("Counters are refused ({error}).")),
        }
        let none = self.counters.is_none() && !self.named.iter().any(|(kind, ..)| *kind == Kind::CacheMisses);
        match refusal.filter(|_| none) {
            Some(error) => {
                let status = DimensionStatus::Missing {
                    reason: match error.raw_os_error() {
                        Some(libc::EACCES | libc::EPERM) => "This user may not use hardware counters.".to_owned(),
                        _ => format!("This machine has no hardware counters ({error})."),
                    },
                    remedy: Some(WITHOUT_COUNTERS.to_owned()),
                };
                self.dimensions.insert(Dimension::Cache, status);
            }
            None => self.note(Dimension::Cache, lacks),
        }
    }

    /// Samples of loads and stores, or else the addresses that the code at CPU samples uses. Comes before the CPU samples.
    pub fn add_sharing(&mut self) {
        if !self.wants(Dimension::Sharing) {
            // Registers in the samples of code are nearly free, and show false sharing to users who did not think of it.
            if SAMPLES_ADDRESSES && self.wants(Dimension::Cpu) {
                self.decode_accesses();
            }
            return;
        }
        let refusal = match self.events.add_memory_samples() {
            Ok(kinds) => {
                let named = kinds.into_iter().map(|(kind, name)| (kind, Event::sampled(name, "accesses"), 1));
                self.named.extend(named);
                let lacks = self.kernel_lacks();
                return self.note(Dimension::Sharing, lacks);
            }
            Err(error) => error,
        };
        let status = match (SAMPLES_ADDRESSES, self.wants(Dimension::Cpu)) {
            (true, true) => {
                self.decode_accesses();
                DimensionStatus::Partial {
                    lacks: vec![format!("The CPU samples no memory accesses here ({refusal}). {ADDRESSES_OF_CODE}")],
                }
            }
            (true, false) => DimensionStatus::Missing {
                reason: format!(
                    "The CPU samples no memory accesses here ({refusal}), and CPU samples are not recorded."
                ),
                remedy: Some("add the dimension cpu".to_owned()),
            },
            (false, _) => DimensionStatus::Missing {
                reason: format!(
                    "The CPU's samples of memory accesses cannot be read here ({refusal}), and code is decoded on x86-64 only."
                ),
                remedy: Some("import a recording of `perf c2c record`".to_owned()),
            },
        };
        self.dimensions.insert(Dimension::Sharing, status);
    }

    fn decode_accesses(&mut self) {
        self.events.record_general_registers();
        self.decodes_accesses = true;
    }

    pub fn add_system_calls(&mut self) {
        if !self.wants(Dimension::Syscalls) {
            return;
        }
        let status = match self.events.add_system_calls() {
            Ok(()) => {
                self.meanings.insert(Kind::SystemCall, EventRole::SystemCall);
                DimensionStatus::Recorded
            }
            Err(error) => DimensionStatus::Missing {
                reason: format!(
                    "System calls are added up by BPF programs, which the kernel refuses ({error}): they need root, or \
                     CAP_BPF and CAP_PERFMON, in the first pid namespace."
                ),
                remedy: None,
            },
        };
        self.dimensions.insert(Dimension::Syscalls, status);
    }

    pub fn add_steps(&mut self) {
        let Some(step) = &self.options.step else {
            return if self.options.step_later { self.expect_step_function() } else { self.expect_step_marks() };
        };
        let status = match self.add_step(step) {
            Ok(()) => DimensionStatus::Recorded,
            Err(reason) => DimensionStatus::Missing { reason, remedy: None },
        };
        self.dimensions.insert(Dimension::Steps, status);
    }

    /// Expects a step function that is found while the program runs.
    fn expect_step_function(&mut self) {
        let reason = "No file that the program mapped holds the step function.".to_owned();
        let remedy = Some("name its file with --step-module, or `module` in a lab file".to_owned());
        self.dimensions.insert(Dimension::Steps, DimensionStatus::Missing { reason, remedy });
    }

    /// Expects step marks. Only the run shows whether the program has any.
    fn expect_step_marks(&mut self) {
        if self.wants(Dimension::Steps) || self.options.step_scope.is_some() {
            let reason = "The program marked no steps.".to_owned();
            let remedy = "include marks/ in it, or name the function of a step with --step-function".to_owned();
            self.dimensions.insert(Dimension::Steps, DimensionStatus::Missing { reason, remedy: Some(remedy) });
        }
    }

    fn add_step(&mut self, step: &StepPoint) -> Result<(), String> {
        let function = &step.function;
        if *self.events.scope() != Scope::Machine {
            return Err(format!(
                "Calls of {function} can be seen for the whole machine only, which needs root, or CAP_SYS_ADMIN. Steps and \
                 scopes that the program marks itself need no rights (docs/marks.md)."
            ));
        }
        let refused = |error: io::Error| {
            format!(
                "The kernel refuses to report calls of {function} ({error}): it must have uprobes, which need root, \
                 or CAP_SYS_ADMIN."
            )
        };
        // The path outlives the opening of the event, which is when the kernel reads it.
        let path = CString::new(step.module.as_os_str().as_bytes()).map_err(|error| refused(error.into()))?;
        let time = match &step.time {
            Some(StepTime::Argument(argument)) => return self.add_step_with_time(step, argument),
            Some(StepTime::Every { step_ns }) => StepTimeSource::Every { step_ns: *step_ns },
            None => StepTimeSource::Unknown,
        };
        let attr = self.events.entry_of(&path, step.offset).map_err(refused)?;
        self.events.add_apart(Kind::Step, attr).map_err(refused)?;
        self.meanings.insert(Kind::Step, EventRole::Step { time });
        Ok(())
    }

    /// Observes a step function that has the simulated time as an argument.
    fn add_step_with_time(&mut self, step: &StepPoint, argument: &TimeArgument) -> Result<(), String> {
        let (function, fetched) = (&step.function, argument.kernel_argument());
        let refused = |error: io::Error| {
            format!(
                "The kernel refuses to report calls of {function} with {fetched} ({error}): it must have uprobes and \
                 know the argument, and tracefs must be writable, which needs root."
            )
        };
        let probe = FunctionProbe::new(&step.module, step.offset, &[("time", &fetched)]).map_err(refused)?;
        let attr = self.events.calls_at(Kind::Step, &probe);
        let time = StepTimeSource::Value(argument.value_at(probe.offset_of("time").map_err(refused)?));
        self.events.keep(probe);
        self.events.add_apart(Kind::Step, attr).map_err(refused)?;
        self.meanings.insert(Kind::Step, EventRole::Step { time });
        Ok(())
    }

    pub fn add_others(&mut self) {
        for &dimension in &self.options.dimensions {
            let status = match dimension {
                Dimension::Resources => DimensionStatus::Recorded,
                Dimension::Heap => DimensionStatus::Missing {
                    reason:
                        "The heap is recorded from a program's start, by a library that it loads: a running process \
                             cannot be attached to."
                            .to_owned(),
                    remedy: Some("record the program by its command".to_owned()),
                },
                Dimension::Memcheck | Dimension::Asan | Dimension::Ubsan | Dimension::Tsan => {
                    DimensionStatus::Missing {
                        reason: "Checkers of memory errors run from a program's start.".to_owned(),
                        remedy: Some("record the program by its command".to_owned()),
                    }
                }
                _ => DimensionStatus::Missing {
                    reason: format!("The dimension `{dimension}` cannot be recorded by this version."),
                    remedy: None,
                },
            };
            self.dimensions.entry(dimension).or_insert(status);
        }
    }
}

fn wants_switches(options: &Options) -> bool {
    [Dimension::Offcpu, Dimension::Sched].iter().any(|dimension| options.dimensions.contains(dimension))
}

/// Whether programs of ours are to record switches, so that the kernel's own records of them are not needed.
fn is_aggregated(options: &Options, scope: &Scope) -> bool {
    options.aggregate_waits && *scope == Scope::Machine
}

/// Opens the side band of the widest scope that is allowed: the whole machine, else the threads; with the kernel, else
/// without. Observing the whole machine samples short threads fairly and sees every wake-up.
pub(super) fn open_side_band(threads: Scope, options: &Options) -> Result<Events, RecordError> {
    let sampling = |scope: &Scope, kernel| Sampling {
        frequency_hz: options.frequency_hz.max(1),
        stack_bytes: 0,
        kernel,
        switches: wants_switches(options) && !is_aggregated(options, scope),
        registers: UserRegisters::ForStacks,
    };
    let attempts =
        [(Scope::Machine, options.kernel), (threads.clone(), options.kernel), (threads.clone(), Kernel::Excluded)];
    let mut refusal = None;
    for (scope, kernel) in attempts {
        let sampling = sampling(&scope, kernel);
        match Events::open(scope, threads.clone(), sampling, options.ring_bytes) {
            Ok(events) => return Ok(events),
            Err(error) => refusal = Some(error),
        }
    }
    let source = refusal.unwrap_or_else(|| io::Error::from(io::ErrorKind::PermissionDenied));
    Err(RecordError::Refused { what: refused(&threads), source })
}

/// What is refused: a process of another user, if there is one.
fn refused(threads: &Scope) -> String {
    // SAFETY: geteuid only returns a number.
    let own = unsafe { libc::geteuid() };
    let of_other = |&thread: &u32| proc::status(thread).ok().filter(|status| own != 0 && status.uids[1] != own);
    let Scope::Threads(threads) = threads else { return "this program".into() };
    let Some(status) = threads.iter().find_map(of_other) else { return "this program".into() };
    let name = proc::stat(status.process).map(|stat| format!(" ({})", stat.name)).unwrap_or_default();
    let user = if status.uids[1] == 0 { "root".to_owned() } else { format!("user {}", status.uids[1]) };
    format!("process {}{name}, which belongs to {user}", status.process)
}

//! The kernel's perf events: opening them, reading their rings in the order of time.

mod bpf;
mod btf;
mod ring;
mod step_probe;
mod tracepoint;
mod tree_filter;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::Duration;

use linux_perf_event_reader::{Endianness, PerfEventAttr, RawData, RawEventRecord, RecordParseInfo, RecordType};
use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::{ioctls, perf_event_open};
use rustc_hash::FxHashMap;

use ring::Ring;
pub(crate) use step_probe::StepProbe;
pub(crate) use tracepoint::Tracepoint;
use tree_filter::TreeFilter;
pub(crate) use tree_filter::WOKEN_AT;

/// The fields that every event here records, in this order, so that all records of a ring can be ordered and filtered
/// without knowing whose they are: a sample begins with id, ip, pid and tid, time, cpu; any other record ends with pid
/// and tid, time, cpu, id.
const COMMON: u64 = (sys::PERF_SAMPLE_IDENTIFIER
    | sys::PERF_SAMPLE_IP
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_CPU
    | sys::PERF_SAMPLE_PERIOD) as u64;
const SAMPLE_PID_AT: usize = 16;
const SAMPLE_TIME_AT: usize = 24;
const TIME_FROM_END: usize = 24;
const PID_FROM_END: usize = 32;

/// What [`Events`] can record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// No samples; carries mappings, names, forks, exits and context switches.
    Side,
    /// Time or cycles on a CPU.
    Cpu,
    /// The stack at every n-th context switch.
    SwitchStack,
    /// Wake-ups, of the whole machine.
    Waking,
    /// Wake-ups by what is recorded, with the waker's stack.
    WakerStack,
    /// Page faults served from memory.
    MinorFaults,
    /// Page faults that waited for a device.
    MajorFaults,
    /// A step of the simulation begins.
    Step,
}

impl Kind {
    /// Whether the event observes only the recorded processes, even if other events observe the whole machine.
    fn is_of_the_tree(self) -> bool {
        matches!(self, Kind::SwitchStack | Kind::WakerStack)
    }
}

/// The processes and threads that events observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every process of the machine; others are dropped when records are read. Needs rights.
    Machine,
    /// These threads and what they start.
    Threads(Vec<u32>),
    /// This child, once it executes a program, and what it starts.
    OnExec(u32),
}

impl Scope {
    fn targets(&self) -> Vec<i32> {
        match self {
            Scope::Machine => vec![-1],
            Scope::Threads(threads) => threads.iter().map(|&thread| thread as i32).collect(),
            Scope::OnExec(pid) => vec![*pid as i32],
        }
    }
}

/// How events sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub frequency_hz: u64,
    /// Bytes of user stack in every sample, a multiple of 8.
    pub stack_bytes: u32,
    pub kernel: Kernel,
    pub switches: bool,
}

/// Whether the kernel's share is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kernel {
    /// Samples and stacks of the kernel, too.
    Included,
    /// User space only.
    Excluded,
}

/// Who tells the stacks of wakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakerStacks {
    /// A program of ours at the tracepoint; the raw data have the woken thread's id at [`WOKEN_AT`].
    Written,
    /// The tracepoint's event of each thread.
    OfThreads,
}

/// An open event of one CPU and optionally of one thread.
struct Open {
    kind: Kind,
    fd: File,
}

/// Open events and the rings that they write to, one ring per CPU.
pub(crate) struct Events {
    scope: Scope,
    /// The recorded processes; the same as `scope` without the rights to observe the whole machine.
    tree: Scope,
    sampling: Sampling,
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    open: Vec<Open>,
    /// Replaces events of single threads where the whole machine is observed and the kernel allows it.
    filter: Option<TreeFilter>,
    /// The kinds that the filter applies to.
    filtered: Vec<Kind>,
    /// Dropped after what is open.
    probe: Option<StepProbe>,
    /// By event id.
    kinds: FxHashMap<u64, (Kind, RecordParseInfo)>,
    scratch: Vec<u8>,
    /// Leaders that still report readiness, as opposed to the end of their thread.
    waitable: Vec<RawFd>,
}

#[cfg(target_arch = "x86_64")]
const USER_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8; // BP, SP, IP
#[cfg(target_arch = "aarch64")]
const USER_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32; // FP, LR, SP, PC

impl Events {
    /// Opens the side-band event on every CPU and maps the rings. They are as large as asked for, or as the limits on
    /// locked memory allow.
    pub fn open(scope: Scope, tree: Scope, sampling: Sampling, ring_bytes: usize) -> io::Result<Self> {
        let page = crate::proc::page_bytes() as usize;
        let mut events = Self {
            scope,
            tree,
            sampling,
            cpus: online_cpus()?,
            rings: Vec::new(),
            open: Vec::new(),
            filter: None,
            filtered: Vec::new(),
            probe: None,
            kinds: FxHashMap::default(),
            scratch: Vec::new(),
            waitable: Vec::new(),
        };
        let mut attr = events.attr(Kind::Side, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_DUMMY as u64);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_build_id(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        attr.set_context_switch(u64::from(sampling.switches));
        let mut pages = (ring_bytes / page).max(MIN_PAGES).next_power_of_two();
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = (pages * page / 4) as u32;
        let targets = events.scope.targets();
        let Some((&first, rest)) = targets.split_first() else {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        };
        for cpu in events.cpus.clone() {
            let leader = match open_event(&mut attr, first, cpu as i32) {
                // Before 5.12 there are no build-ids in records.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && attr.build_id() == 1 => {
                    attr.set_build_id(0);
                    open_event(&mut attr, first, cpu as i32)?
                }
                other => other?,
            };
            let ring = loop {
                match NonZeroUsize::new(pages).map(|pages| Ring::map(&leader, pages)) {
                    Some(Ok(ring)) => break ring,
                    Some(Err(error))
                        if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) && pages > MIN_PAGES =>
                    {
                        // All rings count against one limit: begin again, smaller.
                        pages /= 2;
                        events.rings.clear();
                    }
                    Some(Err(error)) => return Err(error),
                    None => unreachable!("pages are at least MIN_PAGES"),
                }
            };
            events.waitable.push(ring.leader());
            events.rings.push(ring);
            events.register(Kind::Side, leader, &attr)?;
        }
        if events.rings.len() < events.cpus.len() || events.rings.iter().any(|ring| ring.length() != pages * page) {
            let Self { scope, tree, sampling, .. } = events;
            return Self::open(scope, tree, sampling, pages * page);
        }
        for &target in rest {
            events.open_for(Kind::Side, &mut attr, target)?;
        }
        Ok(events)
    }

    /// Opens one more kind of event for everything observed. Leaves nothing behind if that fails.
    pub fn add(&mut self, kind: Kind, mut attr: perf_event_attr) -> io::Result<()> {
        let before = self.open.len();
        for target in self.scope_of(kind).targets() {
            if let Err(error) = self.open_for(kind, &mut attr, target) {
                self.open.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds an event with rings of its own. Rare records that must be counted exactly are then not lost when the other
    /// rings are full.
    pub fn add_apart(&mut self, kind: Kind, mut attr: perf_event_attr) -> io::Result<()> {
        for cpu in self.cpus.clone() {
            for target in self.scope_of(kind).targets() {
                let event = open_event(&mut attr, target, cpu as i32)?;
                self.rings.push(Ring::map(&event, PAGES_APART)?);
                self.register(kind, event, &attr)?;
            }
        }
        Ok(())
    }

    /// Opens the event for stacks at context switches.
    pub fn add_switch_stacks(&mut self) -> io::Result<()> {
        if self.add_filtered(Kind::SwitchStack, Self::add_filtered_switches).is_ok() {
            return Ok(());
        }
        self.add(Kind::SwitchStack, self.switch_stacks())
    }

    /// Opens the event for stacks of wakers. The one for wake-ups must be open.
    pub fn add_waker_stacks(&mut self, tracepoint: &Tracepoint) -> io::Result<WakerStacks> {
        if self.add_filtered(Kind::WakerStack, Self::add_written_wakers).is_ok() {
            return Ok(WakerStacks::Written);
        }
        self.add(Kind::WakerStack, self.waker_stacks(tracepoint))?;
        Ok(WakerStacks::OfThreads)
    }

    /// Lets a process of the tree pass where other processes are kept out.
    pub fn admit(&self, pid: u32) {
        if let Some(filter) = &self.filter {
            // If this should fail, the stacks of this process are missing until the next time.
            let _ = filter.admit(pid);
        }
    }

    /// Opens a kind for the whole machine, filtered. Changes nothing if that fails.
    fn add_filtered(
        &mut self,
        kind: Kind,
        add: impl FnOnce(&mut Self, &mut TreeFilter, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.scope != Scope::Machine {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let mut filter = self.filter.take().map_or_else(TreeFilter::open, Ok)?;
        let before = self.open.len();
        self.filtered.push(kind);
        let added = add(self, &mut filter, before);
        self.filter = Some(filter);
        if added.is_err() {
            self.filtered.pop();
            self.open.truncate(before);
        }
        added
    }

    fn add_filtered_switches(&mut self, filter: &mut TreeFilter, before: usize) -> io::Result<()> {
        self.add(Kind::SwitchStack, self.switch_stacks())?;
        self.open[before..].iter().try_for_each(|event| filter.guard(event.fd.as_raw_fd()))
    }

    fn add_written_wakers(&mut self, filter: &mut TreeFilter, before: usize) -> io::Result<()> {
        let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_BPF_OUTPUT as u64);
        self.add(Kind::WakerStack, self.stacks_of_wakers(kind, config))?;
        let events = self.open[before..].iter().map(|event| event.fd.as_raw_fd());
        filter.write_wakers(&self.cpus.iter().copied().zip(events).collect::<Vec<_>>())
    }

    fn open_for(&mut self, kind: Kind, attr: &mut perf_event_attr, target: i32) -> io::Result<()> {
        for index in 0..self.cpus.len() {
            let event = open_event(attr, target, self.cpus[index] as i32)?;
            set_output(&event, self.rings[index].leader())?;
            self.register(kind, event, attr)?;
        }
        Ok(())
    }

    fn register(&mut self, kind: Kind, fd: File, attr: &perf_event_attr) -> io::Result<()> {
        let mut id = 0;
        // SAFETY: the event is open, and `id` outlives the call.
        if unsafe { ioctls::ID(fd.as_raw_fd(), &mut id) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.kinds.insert(id, (kind, layout(attr)?));
        self.open.push(Open { kind, fd });
        Ok(())
    }

    /// Bytes of each ring.
    pub fn ring_bytes(&self) -> usize {
        self.rings.first().map_or(0, Ring::length)
    }

    /// Whether the kernel's share is recorded.
    pub fn kernel(&self) -> Kernel {
        self.sampling.kernel
    }

    fn scope_of(&self, kind: Kind) -> &Scope {
        if kind.is_of_the_tree() && !self.filtered.contains(&kind) { &self.tree } else { &self.scope }
    }

    /// The processes and threads that the events observe.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sets how much stack the events to come copy.
    pub fn set_stack_bytes(&mut self, bytes: u32) {
        self.sampling.stack_bytes = bytes & !7;
    }

    /// An event of this type that records what all do.
    fn attr(&self, of: Kind, kind: u32, config: u64) -> perf_event_attr {
        let mut attr = perf_event_attr { type_: kind, config, sample_type: COMMON, ..Default::default() };
        attr.size = size_of::<perf_event_attr>() as u32;
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        attr.set_disabled(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_kernel(u64::from(self.sampling.kernel == Kernel::Excluded));
        match self.scope_of(of) {
            Scope::Machine => {}
            Scope::Threads(_) => attr.set_inherit(1),
            Scope::OnExec(_) => {
                attr.set_inherit(1);
                attr.set_enable_on_exec(1);
            }
        }
        attr
    }

    /// The same with stacks: the kernel's callchain (which also has the user's frame pointers), and registers and
    /// memory of the user's stack.
    fn attr_with_stacks(&self, of: Kind, kind: u32, config: u64, stack_bytes: u32) -> perf_event_attr {
        let mut attr = self.attr(of, kind, config);
        attr.sample_type |=
            (sys::PERF_SAMPLE_CALLCHAIN | sys::PERF_SAMPLE_REGS_USER | sys::PERF_SAMPLE_STACK_USER) as u64;
        attr.sample_regs_user = USER_REGISTERS;
        attr.sample_stack_user = stack_bytes;
        attr
    }

    /// Samples of CPU use by the hardware's cycle counter.
    pub fn cycles(&self) -> perf_event_attr {
        self.sampled(Kind::Cpu, sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_CPU_CYCLES as u64)
    }

    /// Samples of CPU use by a timer.
    pub fn cpu_clock(&self) -> perf_event_attr {
        self.sampled(Kind::Cpu, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK as u64)
    }

    /// The same by several timers at once: one event each, all to be opened. Their samples tell no period, since each one stands for
    /// the same time, whichever timer took it.
    pub fn cpu_clocks(&self) -> impl Iterator<Item = perf_event_attr> + use<> {
        let clock = self.cpu_clock();
        timer_rates(self.sampling.frequency_hz).into_iter().filter(|rate| *rate > 0).map(move |rate| {
            let mut attr = clock;
            attr.sample_type &= !(sys::PERF_SAMPLE_PERIOD as u64);
            attr.__bindgen_anon_1.sample_freq = rate;
            attr
        })
    }

    /// What each of their samples stands for.
    pub fn clock_sample_ns(&self) -> u64 {
        1_000_000_000 / self.sampling.frequency_hz
    }

    /// For events that only the kernel causes: without it there are none, so only its part of the stack is left out.
    fn happens_in_kernel(&self, attr: &mut perf_event_attr) {
        attr.set_exclude_kernel(0);
        attr.set_exclude_callchain_kernel(u64::from(self.sampling.kernel == Kernel::Excluded));
    }

    fn sampled(&self, of: Kind, kind: u32, config: u64) -> perf_event_attr {
        let mut attr = self.attr_with_stacks(of, kind, config, self.sampling.stack_bytes);
        attr.set_freq(1);
        attr.set_exclude_idle(1);
        attr.__bindgen_anon_1.sample_freq = self.sampling.frequency_hz;
        attr
    }

    /// The stack at every context switch.
    pub fn switch_stacks(&self) -> perf_event_attr {
        let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CONTEXT_SWITCHES as u64);
        let mut attr = self.attr_with_stacks(Kind::SwitchStack, kind, config, self.sampling.stack_bytes);
        self.happens_in_kernel(&mut attr);
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Wake-ups of and by anyone, without stacks.
    pub fn waking(&self, tracepoint: &Tracepoint) -> perf_event_attr {
        let mut attr = self.attr(Kind::Waking, sys::PERF_TYPE_TRACEPOINT, tracepoint.id);
        attr.set_exclude_kernel(0);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Wake-ups by what is recorded, with the waker's stack.
    fn waker_stacks(&self, tracepoint: &Tracepoint) -> perf_event_attr {
        self.stacks_of_wakers(sys::PERF_TYPE_TRACEPOINT, tracepoint.id)
    }

    fn stacks_of_wakers(&self, kind: u32, config: u64) -> perf_event_attr {
        let stack_bytes = self.sampling.stack_bytes.min(WAKER_STACK_BYTES);
        let mut attr = self.attr_with_stacks(Kind::WakerStack, kind, config, stack_bytes);
        self.happens_in_kernel(&mut attr);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Page faults that found their page in memory: many, so they are sampled.
    pub fn minor_faults(&self) -> perf_event_attr {
        let config = sys::PERF_COUNT_SW_PAGE_FAULTS_MIN as u64;
        let mut attr = self.sampled(Kind::MinorFaults, sys::PERF_TYPE_SOFTWARE, config);
        attr.set_exclude_idle(0);
        attr
    }

    /// Page faults that waited for a device: all of them.
    pub fn major_faults(&self) -> perf_event_attr {
        let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ as u64);
        let mut attr = self.attr_with_stacks(Kind::MajorFaults, kind, config, self.sampling.stack_bytes);
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Every time that any process begins to execute the instruction at `offset` in the file `path`, which must live
    /// until the event is open: the kernel reads it then. To be used for the whole machine only. Inherited, the event
    /// would break its target: the kernel reads the path again when a thread is started, in the memory of the target.
    ///
    /// # Errors
    /// If the kernel has no uprobes.
    pub fn entry_of(&self, path: &CStr, offset: u64) -> io::Result<perf_event_attr> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
        let kind = kind.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let mut attr = self.attr(Kind::Step, kind, 0);
        attr.set_exclude_kernel(0);
        attr.__bindgen_anon_3.config1 = path.as_ptr() as u64;
        attr.__bindgen_anon_4.config2 = offset;
        attr.__bindgen_anon_1.sample_period = 1;
        Ok(attr)
    }

    /// The same, told by a tracepoint of our own.
    pub fn told_by(&self, probe: &StepProbe) -> perf_event_attr {
        let mut attr = self.attr(Kind::Step, sys::PERF_TYPE_TRACEPOINT, probe.tracepoint.id);
        attr.set_exclude_kernel(0);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Keeps a tracepoint of our own until its events are closed.
    pub fn keep(&mut self, probe: StepProbe) {
        self.probe = Some(probe);
    }

    /// Starts recording. Events that wait for an exec start by themselves.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(|kind| !matches!(self.scope_of(kind), Scope::OnExec(_)), |fd| unsafe { ioctls::ENABLE(fd, 0) })
    }

    /// Stops recording; what was recorded stays in the rings.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(|_| true, |fd| unsafe { ioctls::DISABLE(fd, 0) })
    }

    /// Lets the stacks at switches and wake-ups rest, in all threads.
    pub fn rest_stacks(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(Kind::is_of_the_tree, |fd| unsafe { ioctls::DISABLE(fd, 0) })
    }

    /// Takes them up again.
    pub fn resume_stacks(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(Kind::is_of_the_tree, |fd| unsafe { ioctls::ENABLE(fd, 0) })
    }

    fn control(&self, which: impl Fn(Kind) -> bool, act: impl Fn(RawFd) -> i32) -> io::Result<()> {
        let events = self.open.iter().filter(|event| which(event.kind));
        match events.map(|event| act(event.fd.as_raw_fd())).find(|&result| result < 0) {
            Some(_) => Err(io::Error::last_os_error()),
            None => Ok(()),
        }
    }

    /// Waits until a ring is filled to its watermark, at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        let fd = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<libc::pollfd> = self.waitable.iter().map(fd).collect();
        let timeout_ms = timeout.as_millis().min(i32::MAX as u128) as i32;
        // SAFETY: `polled` holds as many entries as are announced. Interruption by a signal is as good as a timeout.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout_ms) };
        // A leader whose thread ended reports that at once and forever: waiting on it would spin.
        let ended = |entry: &&libc::pollfd| entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
        for entry in polled.iter().filter(ended) {
            self.waitable.retain(|&fd| fd != entry.fd);
        }
    }

    /// Takes the records up to `until` in the order of their times. Samples and switches of processes that `wanted`
    /// refuses are passed over unread; wake-ups are always given, as the sleeper is not in their common fields.
    ///
    /// Gives the number of stacks there were at switches and wake-ups.
    pub fn drain(&mut self, until: u64, state: &mut impl RecordTaker) -> u64 {
        let kinds = &self.kinds;
        let mut switch_stacks = 0;
        ring::drain(&mut self.rings, until, &mut self.scratch, |record| {
            let body = record.body;
            let sample = record.kind == sys::PERF_RECORD_SAMPLE;
            let switch = matches!(record.kind, sys::PERF_RECORD_SWITCH | sys::PERF_RECORD_SWITCH_CPU_WIDE);
            let id = if sample { word(body, 0) } else { body.len().checked_sub(8).and_then(|at| word(body, at)) };
            let Some((kind, layout)) = id.and_then(|id| kinds.get(&id)) else { return };
            switch_stacks += u64::from(sample && kind.is_of_the_tree());
            let pid_at = if sample { Some(SAMPLE_PID_AT) } else { body.len().checked_sub(PID_FROM_END) };
            let pid = pid_at.and_then(|at| word(body, at)).map(|word| word as u32);
            if (sample && *kind != Kind::Waking || switch) && !pid.is_some_and(|pid| state.wants(pid)) {
                return;
            }
            let raw = RawEventRecord::new(RecordType(record.kind), record.misc, RawData::Single(body), *layout);
            state.take(*kind, &raw);
        });
        switch_stacks
    }
}

/// The rates of two timers that look as often as is asked for together, and whose ratio is the golden one.
///
/// A timer looks again and again at the same place of a program that repeats itself in step with it: a simulation of 1 kHz that
/// a single timer at 997 Hz looks at goes by in 334 steps, and a profile of some seconds is several points off. Two timers
/// can be in step with the same program only if their ratio is one of small numbers, which no ratio is further from than the
/// golden one.
fn timer_rates(frequency_hz: u64) -> [u64; 2] {
    const GOLDEN: f64 = 1.618_033_988_749_895;
    let faster = (frequency_hz as f64 / GOLDEN).round() as u64;
    [faster, frequency_hz - faster]
}

/// Who gets the records of [`Events::drain`].
pub(crate) trait RecordTaker {
    /// Whether records of this process are wanted.
    fn wants(&self, pid: u32) -> bool;
    /// Takes the next record.
    fn take(&mut self, kind: Kind, record: &RawEventRecord<'_>);
}

/// Who wakes others stands in a few library calls: a smaller copy reaches the caller of interest.
const WAKER_STACK_BYTES: u32 = 16 << 10;
const MIN_PAGES: usize = 8;
/// 64 KiB: a thousand records without a stack.
const PAGES_APART: NonZeroUsize = NonZeroUsize::new(16).expect("not zero");

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn open_event(attr: &mut perf_event_attr, target: i32, cpu: i32) -> io::Result<File> {
    // SAFETY: `attr` is initialised, its size set; the kernel reads no further.
    let fd = unsafe { perf_event_open(attr, target, cpu, -1, sys::PERF_FLAG_FD_CLOEXEC as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn set_output(event: &File, leader: RawFd) -> io::Result<()> {
    // SAFETY: both are open events of one CPU.
    if unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), leader) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// How the reader has to read the records of an event.
fn layout(attr: &perf_event_attr) -> io::Result<RecordParseInfo> {
    // SAFETY: a plain C struct without padding that matters, viewed as bytes while it is borrowed.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const *attr).cast::<u8>(), size_of::<perf_event_attr>()) };
    let (attr, _) = PerfEventAttr::parse::<_, byteorder::NativeEndian>(bytes)?;
    Ok(RecordParseInfo::new(&attr, Endianness::NATIVE))
}

/// The CPUs that are online.
fn online_cpus() -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_cpus(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// `0-3,8` and the like.
fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let ranges: Option<Vec<_>> = (text.trim().split(','))
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_look_as_often_as_asked_for_together() {
        for (frequency, rates) in [(997, [616, 381]), (1, [1, 0]), (2, [1, 1]), (100_000, [61_803, 38_197])] {
            assert_eq!(timer_rates(frequency), rates);
        }
    }

    #[test]
    fn online_processors_are_listed_as_ranges() {
        assert_eq!(parse_cpus("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cpus("none"), None);
    }
}

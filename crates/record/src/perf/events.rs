//! Open events, and the rings that they write to.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use linux_perf_event_reader::{RawData, RawEventRecord, RecordType};
use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::ioctls;
use rustc_hash::FxHashSet;

use stepscope_assemble::system_call::{Sum, TimeCount};

use super::inheritance::Inheritance;
use super::ring::{self, Bounds, Ring};
use super::sample_layout::{Common, Layouts, Tail};
use super::switch_sums::SwitchSums;
use super::system::{id_of, online_cpus, open_event, open_member, set_output};
use super::tree_filter::TreeFilter;
use super::{FunctionProbe, Kernel, Kind, Sampling, Scope, Tracepoint, UserRegisters, WakerStacks};
use crate::clock;

const MIN_PAGES: usize = 8;
/// 64 KiB: a thousand records without a stack.
const PAGES_APART: NonZeroUsize = NonZeroUsize::new(16).expect("not zero");

/// An open event of one CPU and optionally of one thread.
struct Open {
    kind: Kind,
    fd: File,
}

/// Open events and the rings that they write to, one ring per CPU.
pub(crate) struct Events {
    scope: Scope,
    /// The recorded processes. Without rights for the whole machine, the same as `scope`.
    tree: Scope,
    pub(super) sampling: Sampling,
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    open: Vec<Open>,
    /// Replaces events of single threads where the whole machine is observed and the kernel allows it.
    filter: Option<TreeFilter>,
    /// The kinds that the filter applies to.
    filtered: Vec<Kind>,
    /// Dropped after the open events.
    probes: Vec<FunctionProbe>,
    /// What was opened, for threads that are observed later.
    opened: Vec<(Kind, perf_event_attr)>,
    /// Which threads have these events from the thread that started them; while events of a running program are opened.
    inheritance: Option<Inheritance>,
    layouts: Layouts,
    scratch: Vec<u8>,
    /// The present record, where its time had to be corrected.
    retimed: Vec<u8>,
    /// Leaders whose thread has not ended: they can be waited for.
    waitable: Vec<RawFd>,
}

impl Events {
    /// Opens the side-band event on every CPU and maps the rings. They are as large as asked for, or as the limits on
    /// locked memory allow.
    pub fn open(scope: Scope, tree: Scope, sampling: Sampling, ring_bytes: usize) -> io::Result<Self> {
        let page = crate::proc::page_bytes() as usize;
        let inheritance = matches!(tree, Scope::Threads(_)).then(Inheritance::default);
        let mut events = Self {
            scope,
            tree,
            sampling,
            cpus: online_cpus()?,
            rings: Vec::new(),
            open: Vec::new(),
            filter: None,
            filtered: Vec::new(),
            probes: Vec::new(),
            opened: Vec::new(),
            inheritance,
            layouts: Layouts::default(),
            scratch: Vec::new(),
            retimed: Vec::new(),
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
                // The first thread has ended, and the process goes on without it.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && !rest.is_empty() => {
                    let living = Scope::Threads(rest.iter().map(|&thread| thread as u32).collect());
                    return Self::open(living.clone(), living, sampling, ring_bytes);
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
            let Self { scope, tree, sampling, rings, open, .. } = events;
            // While they are there, they count against the limit, too.
            drop((rings, open));
            return Self::open(scope, tree, sampling, pages * page);
        }
        for &target in rest {
            events.open_for_living(Kind::Side, &mut attr, target)?;
        }
        events.note_ids(0, 0)?;
        events.opened.push((Kind::Side, attr));
        Ok(events)
    }

    /// Opens an event as precise as the CPU allows.
    pub fn add_precise(&mut self, kind: Kind, mut attr: perf_event_attr) -> io::Result<()> {
        loop {
            match self.add(kind, attr) {
                Err(_) if attr.precise_ip() > 0 => attr.set_precise_ip(attr.precise_ip() - 1),
                other => return other,
            }
        }
    }

    /// The processes and threads that are recorded.
    pub fn tree(&self) -> &Scope {
        &self.tree
    }

    /// Opens one more kind of event for everything observed. Leaves no event open if that fails.
    pub fn add(&mut self, kind: Kind, mut attr: perf_event_attr) -> io::Result<()> {
        let before = self.open.len();
        for target in self.scope_of(kind).targets() {
            if let Err(error) = self.open_for_living(kind, &mut attr, target) {
                self.open.truncate(before);
                return Err(error);
            }
            self.take_forks();
        }
        self.note_ids(self.opened.len(), before)?;
        self.opened.push((kind, attr));
        Ok(())
    }

    /// Observes the threads of one more process, and what they start. The events of the whole machine observe it already.
    pub fn observe(&mut self, threads: &[u32]) -> io::Result<()> {
        for (kind, mut attr) in self.opened.clone() {
            if *self.scope_of(kind) == Scope::Machine {
                continue;
            }
            let before = self.open.len();
            for &thread in threads {
                self.open_for_living(kind, &mut attr, thread as i32)?;
            }
            // SAFETY: the events are open.
            let enabled = |event: &Open| unsafe { ioctls::ENABLE(event.fd.as_raw_fd(), 0) } >= 0;
            if !self.open[before..].iter().all(enabled) {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Opens the events that these threads lack, which were started while the events were opened. The records until now must be
    /// taken. Returns how many threads lacked some.
    pub fn observe_started(&mut self, threads: &[u32]) -> io::Result<u64> {
        let mut lacking = FxHashSet::default();
        for (index, (kind, mut attr)) in self.opened.clone().into_iter().enumerate() {
            if *self.scope_of(kind) == Scope::Machine {
                continue;
            }
            for &thread in threads {
                if !self.inheritance.as_ref().is_some_and(|known| known.has(thread, index)) {
                    self.open_as(index, kind, &mut attr, thread)?;
                    lacking.insert(thread);
                }
            }
        }
        Ok(lacking.len() as u64)
    }

    /// Whether a thread that starts while events are opened may have none.
    pub fn may_miss_threads(&self) -> bool {
        self.opened.iter().any(|(kind, _)| matches!(self.scope_of(*kind), Scope::Threads(_)))
    }

    /// From now on, all threads are observed.
    pub fn all_are_observed(&mut self) {
        self.inheritance = None;
    }

    /// Opens an event that was opened before for one more thread, unless the thread has ended.
    fn open_as(&mut self, index: usize, kind: Kind, attr: &mut perf_event_attr, thread: u32) -> io::Result<()> {
        let before = self.open.len();
        self.open_for_living(kind, attr, thread as i32)?;
        self.note_ids(index, before)
    }

    /// Takes the records of forks so far. Nothing else in the rings is of use before all events are open, and a full ring would lose
    /// these.
    fn take_forks(&mut self) {
        if self.inheritance.is_some() {
            self.drain(clock::now_ns(), &mut Nothing);
        }
    }

    /// Notes which events this is, by what the kernel calls those opened since there were this many.
    fn note_ids(&mut self, index: usize, before: usize) -> io::Result<()> {
        let Some(inheritance) = &mut self.inheritance else { return Ok(()) };
        self.open[before..].iter().try_for_each(|event| {
            inheritance.add(id_of(&event.fd)?, index);
            Ok(())
        })
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

    /// Adds events of the whole machine with one ring for each CPU, apart from the others. They are enabled at once.
    pub fn add_together(&mut self, kind: Kind, attrs: &[perf_event_attr], pages: NonZeroUsize) -> io::Result<()> {
        let before = self.open.len();
        for cpu in self.cpus.clone() {
            let mut leader = None;
            for mut attr in attrs.iter().copied() {
                let event = open_event(&mut attr, -1, cpu as i32)?;
                match leader {
                    Some(leader) => set_output(&event, leader)?,
                    None => {
                        let ring = Ring::map(&event, pages)?;
                        leader = Some(ring.leader());
                        self.rings.push(ring);
                    }
                }
                self.register(kind, event, &attr)?;
            }
        }
        // SAFETY: the events are open.
        let enabled = |event: &Open| unsafe { ioctls::ENABLE(event.fd.as_raw_fd(), 0) } >= 0;
        if self.open[before..].iter().all(enabled) { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Records the switches and wake-ups of the tree by programs of ours.
    pub fn add_written(&mut self) -> io::Result<()> {
        self.add_filtered(Kind::Written, |events, filter, before| {
            events.add(Kind::Written, events.written())?;
            events.add(Kind::Written, events.written_with_stack())?;
            // The events without a stack of all CPUs, then those with one.
            let fds: Vec<RawFd> = events.open[before..].iter().map(|event| event.fd.as_raw_fd()).collect();
            let (without, with) = fds.split_at(events.cpus.len());
            let pairs = without.iter().zip(with).map(|(&without, &with)| [without, with]);
            filter.write_switches(&events.cpus.iter().copied().zip(pairs).collect::<Vec<_>>())
        })
    }

    /// Records the switches of the whole machine.
    pub fn add_machine_switches(&mut self) -> io::Result<()> {
        let mut attr = self.attr(Kind::Side, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_DUMMY as u64);
        attr.set_context_switch(1);
        self.add(Kind::Side, attr)
    }

    /// What writes switches and sums, if programs of ours do.
    pub fn switch_sums(&self) -> Option<&SwitchSums> {
        self.filter.as_ref().and_then(TreeFilter::switch_sums)
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

    /// Opens the event for system calls, and adds them up.
    pub fn add_system_calls(&mut self) -> io::Result<()> {
        self.add_filtered(Kind::SystemCall, |events, filter, before| {
            let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_BPF_OUTPUT as u64);
            events.add(Kind::SystemCall, events.system_calls(kind, config))?;
            events.add(Kind::SystemCall, events.system_calls_without_stack())?;
            // The events with a stack of all CPUs, then those without.
            filter.add_up_calls(&events.outputs(before), &events.outputs(before + events.cpus.len()))
        })
    }

    /// The sums of system calls so far.
    pub fn system_call_sums(&self) -> Vec<Sum> {
        self.filter.as_ref().map_or_else(Vec::new, TreeFilter::system_call_sums)
    }

    /// The times of system calls so far.
    pub fn system_call_times(&self) -> Vec<TimeCount> {
        self.filter.as_ref().map_or_else(Vec::new, TreeFilter::system_call_times)
    }

    /// The events opened since there were this many, by CPU.
    fn outputs(&self, before: usize) -> Vec<(u32, RawFd)> {
        let events = self.open[before..].iter().map(|event| event.fd.as_raw_fd());
        self.cpus.iter().copied().zip(events).collect()
    }

    /// Lets a process of the tree pass the filter, if there is one.
    pub fn admit(&self, pid: u32) {
        if let Some(filter) = &self.filter {
            // If this fails, the stacks of this process are missing until the next call.
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
        let opened_before = self.opened.len();
        self.filtered.push(kind);
        let added = add(self, &mut filter, before);
        self.filter = Some(filter);
        if added.is_err() {
            self.filtered.pop();
            self.open.truncate(before);
            self.opened.truncate(opened_before);
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
        filter.write_wakers(&self.outputs(before))
    }

    /// The same, unless this thread has ended since it was listed.
    fn open_for_living(&mut self, kind: Kind, attr: &mut perf_event_attr, target: i32) -> io::Result<()> {
        match self.open_for(kind, attr, target) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            opened => opened,
        }
    }

    /// Opens an event whose group is led by another one, which is only counted. Leaves none open if that fails.
    pub(super) fn add_led(
        &mut self,
        kind: Kind,
        mut leader: perf_event_attr,
        mut attr: perf_event_attr,
    ) -> io::Result<()> {
        let before = self.open.len();
        for target in self.scope_of(kind).targets() {
            for index in 0..self.cpus.len() {
                let cpu = self.cpus[index] as i32;
                let opened = open_event(&mut leader, target, cpu).and_then(|leader| {
                    let event = open_member(&mut attr, target, cpu, &leader)?;
                    set_output(&event, self.rings[index].leader())?;
                    self.open.push(Open { kind, fd: leader });
                    self.register(kind, event, &attr)
                });
                if let Err(error) = opened {
                    self.open.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
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
        self.layouts.add(id_of(&fd)?, kind, attr)?;
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

    pub(super) fn scope_of(&self, kind: Kind) -> &Scope {
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

    /// Lets the CPU samples to come have all general registers of user space.
    pub fn record_general_registers(&mut self) {
        self.sampling.registers = UserRegisters::General;
    }

    /// Keeps a tracepoint of our own until its events are closed.
    pub fn keep(&mut self, probe: FunctionProbe) {
        self.probes.push(probe);
    }

    /// Starts recording. Events of a launched program start at its exec.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(|kind| !matches!(self.scope_of(kind), Scope::OnExec(_)), |fd| unsafe { ioctls::ENABLE(fd, 0) })
    }

    /// Starts recording steps, whose event was added later than the others.
    pub fn enable_steps(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(|kind| kind == Kind::Step, |fd| unsafe { ioctls::ENABLE(fd, 0) })
    }

    /// Stops recording. Records stay in the rings.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(|_| true, |fd| unsafe { ioctls::DISABLE(fd, 0) })
    }

    /// Pauses the stacks at switches and wake-ups, in all threads.
    pub fn rest_stacks(&self) -> io::Result<()> {
        // SAFETY: the events are open.
        self.control(Kind::is_of_the_tree, |fd| unsafe { ioctls::DISABLE(fd, 0) })
    }

    /// Continues the stacks at switches and wake-ups.
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

    /// Takes the records up to `until` in the order of their times. Samples and switches of processes that `state` does
    /// not want are passed over unread. Wake-ups are always given: their common fields do not name the sleeper.
    ///
    /// Returns the number of stacks at switches and wake-ups.
    pub fn drain(&mut self, until: u64, state: &mut impl RecordTaker) -> u64 {
        let Self { layouts, rings, scratch, retimed, inheritance, .. } = self;
        let mut switch_stacks = 0;
        let bounds = Bounds { until, now: clock::now_ns(), layouts };
        ring::drain(rings, &bounds, scratch, |record| {
            let sample = record.kind == sys::PERF_RECORD_SAMPLE;
            let switch = matches!(record.kind, sys::PERF_RECORD_SWITCH | sys::PERF_RECORD_SWITCH_CPU_WIDE);
            let found = if sample { layouts.of_sample(record.body) } else { layouts.of_other(record.body) };
            let Some(Common { kind, layout, pid }) = found else { return };
            if matches!(record.kind, sys::PERF_RECORD_FORK | sys::PERF_RECORD_EXIT) {
                if let Some(inheritance) = inheritance.as_mut().filter(|_| record.kind == sys::PERF_RECORD_FORK) {
                    inheritance.note_fork(record.body);
                }
                // Each event of a thread reports what it starts.
                if kind != Kind::Side {
                    return;
                }
            }
            let has_stack = kind.is_of_the_tree() || kind == Kind::Written && record.body.len() > LONGEST_WITHOUT_STACK;
            switch_stacks += u64::from(sample && has_stack);
            let names_others = matches!(kind, Kind::Waking | Kind::Written);
            if (sample && !names_others || switch) && !pid.is_some_and(|pid| state.wants(pid)) {
                if let Some(Tail { tid, time, cpu }) = Tail::of(record.body).filter(|_| switch) {
                    let out = u32::from(record.misc) & sys::PERF_RECORD_MISC_SWITCH_OUT != 0;
                    state.note_other_switch(cpu, time, out.then_some(tid));
                }
                return;
            }
            let body = if sample { record.body_at_its_time(retimed) } else { record.body };
            let raw = RawEventRecord::new(RecordType(record.kind), record.misc, RawData::Single(body), layout);
            state.take(kind, &raw);
        });
        switch_stacks
    }
}

/// A record of sums has some 400 bytes, and any stack more.
const LONGEST_WITHOUT_STACK: usize = 512;

/// Wants no record.
struct Nothing;

impl RecordTaker for Nothing {
    fn wants(&self, _pid: u32) -> bool {
        false
    }

    fn note_other_switch(&mut self, _cpu: u32, _time_ns: u64, _left: Option<u32>) {}

    fn take(&mut self, _kind: Kind, _record: &RawEventRecord<'_>) {}
}

/// Receives the records of [`Events::drain`].
pub(crate) trait RecordTaker {
    /// Whether records of this process are wanted.
    fn wants(&self, pid: u32) -> bool;
    /// A thread that is not wanted left this CPU (`left` is its id), or came to it.
    fn note_other_switch(&mut self, cpu: u32, time_ns: u64, left: Option<u32>);
    /// Takes the next record.
    fn take(&mut self, kind: Kind, record: &RawEventRecord<'_>);
}

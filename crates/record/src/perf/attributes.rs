//! What each kind of event asks of the kernel.

use std::ffi::CStr;
use std::io;

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use stepscope_assemble::{GENERAL_REGISTERS, STACK_REGISTERS};

use super::core_units::CoreUnit;
use super::counter_groups::generic;
use super::sample_layout::{COMMON, mark_of};
use super::{Events, FunctionProbe, Kernel, Kind, Scope, Tracepoint, UserRegisters};

/// A waker is only a few library calls deep, so a smaller copy reaches the caller of interest.
const WAKER_STACK_BYTES: u32 = 16 << 10;

impl Events {
    /// An event of this type with the fields that all events record.
    pub(super) fn attr(&self, of: Kind, kind: u32, config: u64) -> perf_event_attr {
        let mut attr = disabled_event(kind, config);
        attr.sample_type |= mark_of(of);
        attr.set_exclude_kernel(u64::from(self.sampling.kernel == Kernel::Excluded));
        match self.scope_of(of) {
            Scope::Machine => {}
            // The event counts, and says which threads inherit it, as soon as it is open.
            Scope::Threads(_) => {
                attr.set_inherit(1);
                attr.set_task(1);
                attr.set_disabled(0);
            }
            Scope::OnExec(_) => {
                attr.set_inherit(1);
                attr.set_enable_on_exec(1);
            }
        }
        attr
    }

    /// An event with stacks: the kernel's callchain (with the user's frame pointers), the user's registers and a copy of its
    /// stack.
    fn attr_with_stacks(&self, of: Kind, kind: u32, config: u64, stack_bytes: u32) -> perf_event_attr {
        let mut attr = self.attr(of, kind, config);
        attr.sample_type |=
            (sys::PERF_SAMPLE_CALLCHAIN | sys::PERF_SAMPLE_REGS_USER | sys::PERF_SAMPLE_STACK_USER) as u64;
        attr.sample_regs_user = match (of, self.sampling.registers) {
            (Kind::Cpu, UserRegisters::General) => STACK_REGISTERS | GENERAL_REGISTERS,
            _ => STACK_REGISTERS,
        };
        attr.sample_stack_user = stack_bytes;
        attr
    }

    /// Samples of CPU use by the hardware's cycle counter.
    pub fn cycles(&self) -> perf_event_attr {
        self.sampled(Kind::Cpu, sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_CPU_CYCLES as u64)
    }

    /// Samples of last-level cache misses, by each kind of core. Their place is as precise as the CPU allows.
    pub fn cache_misses(&self) -> Vec<perf_event_attr> {
        let config = u64::from(sys::PERF_COUNT_HW_CACHE_MISSES);
        let of_unit = |(kind, config)| {
            let mut attr = self.sampled(Kind::CacheMisses, kind, config);
            attr.set_precise_ip(MOST_PRECISE);
            attr
        };
        of_each_unit(sys::PERF_TYPE_HARDWARE, config).map(of_unit).collect()
    }

    /// Samples of instructions, by each kind of core. Their stacks are those of the CPU samples, so they have none.
    pub fn instructions(&self) -> Vec<perf_event_attr> {
        let config = u64::from(sys::PERF_COUNT_HW_INSTRUCTIONS);
        let of_unit = |(kind, config)| {
            let mut attr = self.attr(Kind::Instructions, kind, config);
            attr.set_freq(1);
            attr.set_exclude_idle(1);
            attr.__bindgen_anon_1.sample_freq = self.sampling.frequency_hz;
            attr
        };
        of_each_unit(sys::PERF_TYPE_HARDWARE, config).map(of_unit).collect()
    }

    /// Samples of CPU use by one timer.
    pub fn cpu_clock(&self) -> perf_event_attr {
        self.sampled(Kind::Cpu, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK as u64)
    }

    /// Samples of CPU use by several timers: one event each, all to be opened. Samples have no period, since each stands for the
    /// same time, whichever timer took it.
    pub fn cpu_clocks(&self) -> impl Iterator<Item = perf_event_attr> + use<> {
        let clock = self.cpu_clock();
        timer_rates(self.sampling.frequency_hz).into_iter().filter(|rate| *rate > 0).map(move |rate| {
            let mut attr = clock;
            attr.sample_type &= !(sys::PERF_SAMPLE_PERIOD as u64);
            attr.__bindgen_anon_1.sample_freq = rate;
            attr
        })
    }

    /// The time that each sample of a timer stands for.
    pub fn clock_sample_ns(&self) -> u64 {
        1_000_000_000 / self.sampling.frequency_hz
    }

    /// Keeps an event that only the kernel causes, and leaves out the kernel's part of its stack if that is not recorded.
    fn happens_in_kernel(&self, attr: &mut perf_event_attr) {
        attr.set_exclude_kernel(0);
        attr.set_exclude_callchain_kernel(u64::from(self.sampling.kernel == Kernel::Excluded));
    }

    pub(super) fn sampled(&self, of: Kind, kind: u32, config: u64) -> perf_event_attr {
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

    /// What programs write of switches and wake-ups without a stack.
    pub(super) fn written(&self) -> perf_event_attr {
        self.without_stack(Kind::Written)
    }

    /// What a program of ours writes without a stack.
    fn without_stack(&self, of: Kind) -> perf_event_attr {
        let mut attr = self.attr(of, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_BPF_OUTPUT as u64);
        attr.set_exclude_kernel(0);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// The same with a stack.
    pub(super) fn written_with_stack(&self) -> perf_event_attr {
        let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_BPF_OUTPUT as u64);
        let mut attr = self.attr_with_stacks(Kind::Written, kind, config, self.sampling.stack_bytes);
        self.happens_in_kernel(&mut attr);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Wake-ups of the whole machine, without stacks.
    pub fn waking(&self, tracepoint: &Tracepoint) -> perf_event_attr {
        let mut attr = self.attr(Kind::Waking, sys::PERF_TYPE_TRACEPOINT, tracepoint.id);
        attr.set_exclude_kernel(0);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Wake-ups by recorded threads, with the waker's stack.
    pub(super) fn waker_stacks(&self, tracepoint: &Tracepoint) -> perf_event_attr {
        self.stacks_of_wakers(sys::PERF_TYPE_TRACEPOINT, tracepoint.id)
    }

    pub(super) fn stacks_of_wakers(&self, kind: u32, config: u64) -> perf_event_attr {
        self.stacks_at(Kind::WakerStack, kind, config)
    }

    /// What the program at the end of system calls writes. The kernel's part of the stack is that of the program.
    pub(super) fn system_calls(&self, kind: u32, config: u64) -> perf_event_attr {
        let mut attr = self.stacks_at(Kind::SystemCall, kind, config);
        attr.set_exclude_callchain_kernel(1);
        attr
    }

    /// The same for a place whose stack is known.
    pub(super) fn system_calls_without_stack(&self) -> perf_event_attr {
        self.without_stack(Kind::SystemCall)
    }

    fn stacks_at(&self, of: Kind, kind: u32, config: u64) -> perf_event_attr {
        let stack_bytes = self.sampling.stack_bytes.min(WAKER_STACK_BYTES);
        let mut attr = self.attr_with_stacks(of, kind, config, stack_bytes);
        self.happens_in_kernel(&mut attr);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Minor page faults. There are many, so they are sampled.
    pub fn minor_faults(&self) -> perf_event_attr {
        let config = sys::PERF_COUNT_SW_PAGE_FAULTS_MIN as u64;
        let mut attr = self.sampled(Kind::MinorFaults, sys::PERF_TYPE_SOFTWARE, config);
        attr.set_exclude_idle(0);
        attr
    }

    /// Major page faults: all of them.
    pub fn major_faults(&self) -> perf_event_attr {
        let (kind, config) = (sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ as u64);
        let mut attr = self.attr_with_stacks(Kind::MajorFaults, kind, config, self.sampling.stack_bytes);
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }

    /// Each execution of the instruction at `offset` in the file `path`, by any process.
    ///
    /// The kernel reads the path when the event is opened, so it must live until then. For the whole machine only: an
    /// inherited event breaks its target, because the kernel reads the path again, in the target's memory, when a thread
    /// starts.
    ///
    /// # Errors
    /// If the kernel has no uprobes.
    pub fn entry_of(&self, path: &CStr, offset: u64) -> io::Result<perf_event_attr> {
        let mut attr = self.attr(Kind::Step, sys::PERF_TYPE_SOFTWARE, 0);
        at_entry(&mut attr, path, offset)?;
        Ok(attr)
    }

    /// Each call of a function, by our own tracepoint there.
    pub fn calls_at(&self, of: Kind, probe: &FunctionProbe) -> perf_event_attr {
        let mut attr = self.attr(of, sys::PERF_TYPE_TRACEPOINT, probe.tracepoint.id);
        attr.set_exclude_kernel(0);
        attr.sample_type |= sys::PERF_SAMPLE_RAW as u64;
        attr.__bindgen_anon_1.sample_period = 1;
        attr
    }
}

/// Samples as close to the event as the hardware can (`PEBS`, `IBS`).
pub(super) const MOST_PRECISE: u64 = 2;

/// A generic event for each kind of core.
fn of_each_unit(kind: u32, config: u64) -> impl Iterator<Item = (u32, u64)> {
    let units = CoreUnit::all();
    let single = units.len() < 2;
    let attrs: Vec<_> = match single {
        true => vec![generic(kind, config, None)],
        false => units.iter().map(|unit| generic(kind, config, Some(unit))).collect(),
    };
    attrs.into_iter()
}

/// A disabled event of this type with the common fields, on our clock.
pub(super) fn disabled_event(kind: u32, config: u64) -> perf_event_attr {
    let mut attr = perf_event_attr { type_: kind, config, sample_type: COMMON, ..Default::default() };
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    attr
}

/// Makes of `attr` an event of each execution of the instruction at `offset` in the file `path`.
///
/// The path must live until the event is open: the kernel reads it then.
///
/// # Errors
/// If the kernel has no uprobes.
pub(super) fn at_entry(attr: &mut perf_event_attr, path: &CStr, offset: u64) -> io::Result<()> {
    let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
    attr.type_ = kind.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    attr.set_exclude_kernel(0);
    attr.__bindgen_anon_3.config1 = path.as_ptr() as u64;
    attr.__bindgen_anon_4.config2 = offset;
    attr.__bindgen_anon_1.sample_period = 1;
    Ok(())
}

/// The rates of two timers in the golden ratio, which together sample as often as asked for.
///
/// One timer can be in step with a loop, and then samples the same place of every step. A timer of 997 Hz takes 334 steps to
/// pass through a loop of 1 kHz, and a profile of some seconds is several points off. Two timers can be in step with one
/// loop only if their ratio is close to one of small numbers. No ratio is further from these than the golden one.
fn timer_rates(frequency_hz: u64) -> [u64; 2] {
    const GOLDEN: f64 = 1.618_033_988_749_895;
    let faster = (frequency_hz as f64 / GOLDEN).round() as u64;
    [faster, frequency_hz - faster]
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
}

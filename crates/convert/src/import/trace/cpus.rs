//! What runs on each CPU, by the scheduler's events.

use stepscope_assemble::WakeUp;

use super::output::Output;
use super::tasks::{Named, Tasks};

/// Most CPUs. Higher numbers are damage.
const MOST_CPUS: u32 = 1 << 16;

/// Bits of a state that mean that a thread blocks. A preempted one has none of them, but perhaps a higher bit that says so
/// (`TASK_REPORT_MAX` in the kernel's `include/trace/events/sched.h`).
const BLOCKING: i64 = 0xff;

/// Whether a thread in this state, as `sched_switch` writes it, can go on.
pub fn can_run(state: i64) -> bool {
    state & BLOCKING == 0
}

/// A CPU goes from one thread to another.
#[derive(Debug, Clone, Copy)]
pub struct Switch<'a> {
    pub time_ns: u64,
    pub cpu: Option<u32>,
    pub before: Named<'a>,
    /// Whether the thread before could go on.
    pub preempted: bool,
    pub next: Named<'a>,
}

/// A thread is woken.
#[derive(Debug, Clone, Copy)]
pub struct Waking<'a> {
    pub time_ns: u64,
    /// The CPU of the waker.
    pub cpu: Option<u32>,
    pub woken: Named<'a>,
    /// Whether an interrupt woke it, as far as the event itself says.
    pub by_interrupt: bool,
}

#[derive(Default)]
pub struct Cpus {
    cpus: Vec<Cpu>,
    pub has_switches: bool,
    pub has_wake_ups: bool,
}

#[derive(Default, Clone, Copy)]
struct Cpu {
    /// The thread, once a switch named it; 0 if idle.
    tid: u32,
    /// Interrupts within each other.
    interrupts: u32,
}

impl Cpus {
    pub fn count(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// The state of a CPU; `None` if its number is damage.
    fn cpu(&mut self, cpu: Option<u32>) -> Option<&mut Cpu> {
        let cpu = cpu.filter(|&cpu| cpu < MOST_CPUS)? as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        self.cpus.get_mut(cpu)
    }

    pub fn switch(&mut self, switch: Switch<'_>, tasks: &mut Tasks, sink: &mut Output) {
        let Switch { time_ns, cpu, before, preempted, next } = switch;
        let cpu = cpu.filter(|&cpu| cpu < MOST_CPUS);
        self.has_switches = true;
        self.note_leaving(cpu, before.tid, time_ns, tasks);
        if before.tid != 0 {
            tasks.switch_out(before, time_ns, preempted, sink);
        }
        if next.tid != 0 {
            tasks.switch(next, time_ns, sink, |timeline| timeline.switch_in(time_ns, cpu));
        }
        if let Some(cpu) = self.cpu(cpu) {
            *cpu = Cpu { tid: next.tid, interrupts: 0 };
        }
    }

    /// If another thread leaves the CPU than the one that came last, the switch of that one is missing, though no tracer says so.
    fn note_leaving(&mut self, cpu: Option<u32>, leaving: u32, time_ns: u64, tasks: &mut Tasks) {
        let Some(came) = self.cpu(cpu).map(|cpu| std::mem::take(&mut cpu.tid)) else { return };
        let runs_elsewhere = || self.cpus.iter().any(|other| other.tid == came);
        if came != 0 && came != leaving && !runs_elsewhere() {
            tasks.lose_switch_out(came, time_ns);
        }
    }

    pub fn wake_up(&mut self, waking: Waking<'_>, tasks: &mut Tasks, sink: &mut Output) {
        if waking.woken.tid == 0 {
            return;
        }
        self.has_wake_ups = true;
        let time_ns = waking.time_ns;
        let now = self.cpu(waking.cpu).filter(|cpu| cpu.tid != 0 && cpu.interrupts == 0).map(|cpu| cpu.tid);
        let waker = now.filter(|_| !waking.by_interrupt).and_then(|tid| tasks.id(tid));
        let wake_up = WakeUp { time_ns, waker, stack: None };
        tasks.switch(waking.woken, time_ns, sink, |timeline| {
            timeline.wake_up(wake_up);
            None
        });
    }

    /// An interrupt starts on a CPU.
    pub fn enter_interrupt(&mut self, cpu: Option<u32>) {
        if let Some(cpu) = self.cpu(cpu) {
            cpu.interrupts = cpu.interrupts.saturating_add(1);
        }
    }

    /// An interrupt ends on a CPU.
    pub fn leave_interrupt(&mut self, cpu: Option<u32>) {
        if let Some(cpu) = self.cpu(cpu) {
            cpu.interrupts = cpu.interrupts.saturating_sub(1);
        }
    }

    /// Events of a CPU were lost before this time: its thread may have left it.
    pub fn lose(&mut self, cpu: u32, time_ns: u64, tasks: &mut Tasks) {
        let Some(cpu) = self.cpu(Some(cpu)) else { return };
        tasks.lose_switch_out(cpu.tid, time_ns);
        *cpu = Cpu::default();
    }
}

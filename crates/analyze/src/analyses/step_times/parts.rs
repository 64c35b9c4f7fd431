//! The parts of a loop's steps: pacing, the states of the loop's thread, and CPU time.

use std::ops::Range;

use stepscope_model::{StackId, Step, ThreadId, Wait, WaitState};

use crate::query::off_cpu::{OffCpu, Spent};
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::{blocked_ns, cut, no_thread_ended};

/// Classifies the waits of a loop's thread: [pacing](super#pacing) or not.
#[derive(Debug, Clone)]
pub struct Pacing<'a> {
    classes: Classes<'a>,
    without_stack: bool,
}

impl<'a> Pacing<'a> {
    /// Derives from the waits with a stack whether those without one are pacing.
    pub fn of(selection: &Selection<'a>, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        const FEWEST: u32 = 10;
        let classes = Classes::new(selection.capture(), selection.functions());
        let mut pacing = Self { classes, without_stack: false };
        let (mut waits, mut ended_ns, mut pacing_ns) = (0_u32, 0_u128, 0_u128);
        each_wait(steps, off_cpu, |_, wait| {
            if wait.stack.is_some() && no_thread_ended(wait) {
                let ns = u128::from(blocked_ns(wait));
                waits = waits.saturating_add(1);
                ended_ns += ns;
                pacing_ns += if pacing.is_pacing(wait) { ns } else { 0 };
            }
        });
        pacing.without_stack = waits >= FEWEST && pacing_ns * 10 >= ended_ns * 9;
        pacing
    }

    /// Whether a wait is pacing.
    pub fn is_pacing(&mut self, wait: &Wait) -> bool {
        if wait.state != WaitState::Blocked {
            return false;
        }
        match wait.stack.map(|stack| self.classes.of(stack)) {
            Some(WaitClass::Sleep) => true,
            Some(WaitClass::Condition) => no_thread_ended(wait),
            Some(_) => false,
            None => self.without_stack && no_thread_ended(wait),
        }
    }

    /// The class of a wait at this stack.
    pub fn class(&mut self, stack: StackId) -> WaitClass {
        self.classes.of(stack)
    }
}

/// A part of every step.
pub(crate) struct StepPart {
    /// Its name in tables.
    pub name: &'static str,
    /// One value per step.
    pub ns: Vec<u64>,
}

/// The parts of one loop's steps: one value per step, in ns.
#[derive(Debug, Clone, Default)]
pub struct StepParts {
    /// Duration of each step.
    pub durations: Vec<u64>,
    /// Pacing of the loop's thread. All zero if context switches were not recorded.
    pub pacing: Vec<u64>,
    /// States of the loop's thread; `blocked` includes pacing. Absent if context switches were not recorded.
    pub spent: Option<Vec<Spent>>,
    /// CPU time of all selected threads of the loop: exact with context switches, else sampled; absent if neither is known.
    pub cpu: Option<Vec<u64>>,
    /// Whether `cpu` is exact.
    pub cpu_is_exact: bool,
    /// Blocked time of the loop's thread without a stack, over all steps. It may be pacing.
    pub unknown_ns: u64,
}

impl StepParts {
    /// The parts of the steps of a loop, which must be one of `loops`.
    pub fn of(selection: &Selection<'_>, loops: &Loops, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        let rows = steps.rows();
        let mut parts = Self {
            durations: rows.iter().map(|step| step.end_ns - step.start_ns).collect(),
            pacing: vec![0; rows.len()],
            ..Self::default()
        };
        if selection.has_switches() {
            parts.split_loop_thread(steps, off_cpu, &mut Pacing::of(selection, steps, off_cpu));
            parts.cpu = exact_cpu(selection, loops, steps, off_cpu);
            parts.cpu_is_exact = parts.cpu.is_some();
        }
        parts.cpu = parts.cpu.or_else(|| sampled_cpu(selection, loops, steps));
        parts
    }

    fn split_loop_thread(&mut self, steps: &Steps, off_cpu: &OffCpu<'_>, pacing: &mut Pacing<'_>) {
        let alive = |step: &Step| off_cpu.alive(step.thread, step.start_ns..step.end_ns);
        let mut spent: Option<Vec<Spent>> =
            steps.rows().iter().map(|step| Some(Spent { running: alive(step)?, ..Spent::default() })).collect();
        each_wait(steps, off_cpu, |position, wait| {
            if let Some(spent) = &mut spent {
                spent[position].add(wait);
            }
            if pacing.is_pacing(wait) {
                self.pacing[position] = self.pacing[position].saturating_add(blocked_ns(wait));
            } else if wait.stack.is_none() {
                self.unknown_ns = self.unknown_ns.saturating_add(blocked_ns(wait));
            }
        });
        self.spent = spent;
    }

    /// Pacing of the loop's thread.
    pub(crate) fn pacing(&self) -> StepPart {
        StepPart { name: "pacing", ns: self.pacing.clone() }
    }

    /// The states of the loop's thread, without pacing. Empty if context switches were not recorded.
    pub(crate) fn of_loop_thread(&self) -> Vec<StepPart> {
        let Some(spent) = &self.spent else { return Vec::new() };
        let blocked = spent.iter().zip(&self.pacing).map(|(spent, pacing)| spent.blocked.saturating_sub(*pacing));
        vec![
            StepPart { name: "loop thread running", ns: spent.iter().map(|spent| spent.running).collect() },
            StepPart { name: "loop thread runnable", ns: spent.iter().map(|spent| spent.runnable).collect() },
            StepPart { name: "loop thread blocked, not pacing", ns: blocked.collect() },
        ]
    }

    /// CPU time of all threads, if known.
    pub(crate) fn cpu_of_all_threads(&self) -> Option<StepPart> {
        let name = if self.cpu_is_exact { "CPU of all threads" } else { "CPU of all threads, sampled" };
        self.cpu.as_ref().map(|cpu| StepPart { name, ns: cpu.clone() })
    }

    /// Duration of each step without pacing.
    pub fn unpaced(&self) -> Vec<u64> {
        self.durations.iter().zip(&self.pacing).map(|(duration, pacing)| duration.saturating_sub(*pacing)).collect()
    }

    /// Whether there is any pacing.
    pub fn is_paced(&self) -> bool {
        self.pacing.iter().any(|ns| *ns > 0)
    }
}

/// Visits the waits of each step's thread, cut to the step. It looks for the steps of each wait: steps may be a microsecond
/// long, and most of them have no wait.
fn each_wait(steps: &Steps, off_cpu: &OffCpu<'_>, mut visit: impl FnMut(usize, &Wait)) {
    let rows = steps.rows();
    let mut threads: Vec<ThreadId> =
        rows.chunk_by(|a, b| a.thread == b.thread).map(|of_one| of_one[0].thread).collect();
    threads.sort_unstable();
    threads.dedup();
    for thread in threads {
        for wait in off_cpu.waits(thread) {
            let own = steps.pieces(wait.start_ns..wait.end_ns).filter(|(position, _)| rows[*position].thread == thread);
            for (position, range) in own {
                cut(&wait, &range).iter().for_each(|part| visit(position, part));
            }
        }
    }
}

/// CPU time of the loop's threads in each step: their lifetimes minus their time off the CPU.
fn exact_cpu(selection: &Selection<'_>, loops: &Loops, steps: &Steps, off_cpu: &OffCpu<'_>) -> Option<Vec<u64>> {
    let of_loop = |thread: ThreadId| std::ptr::eq(loops.of_thread(thread), steps) && selection.has_thread(thread);
    let threads: Vec<ThreadId> = selection.threads().map(|(id, _)| id).filter(|id| of_loop(*id)).collect();
    let lives: Option<Vec<Range<u64>>> = threads.iter().map(|id| selection.lifetime(*id)).collect();
    let alive = steps.time_in_each(lives?);
    let waits = threads.iter().flat_map(|id| off_cpu.waits(*id)).map(|wait| wait.start_ns..wait.end_ns);
    let off = steps.time_in_each(waits);
    Some(alive.into_iter().zip(off).map(|(alive, off)| alive.saturating_sub(off)).collect())
}

fn sampled_cpu(selection: &Selection<'_>, loops: &Loops, steps: &Steps) -> Option<Vec<u64>> {
    selection.event().filter(|event| event.unit == "ns")?;
    let mut cpu = vec![0_u64; steps.count()];
    for sample in selection.samples() {
        let Some((of, position)) = loops.step_of(sample) else { continue };
        if std::ptr::eq(of, steps) {
            cpu[position] = cpu[position].saturating_add(sample.weight);
        }
    }
    Some(cpu)
}

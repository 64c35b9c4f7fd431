//! What slow and typical steps cost: the samples and waits in them, and their sums by function.

use std::sync::Arc;

use stepscope_model::{Note, StackId, Wait};
use stepscope_stats::Estimate;
use stepscope_stats::bootstrap::BlockBootstrap;

use super::sets::{FEWEST_SLOW, Sets, StepKind};
use super::{CONFIDENCE, Options};
use crate::analyses::step_times::{Pacing, StepParts, no_steps};
use crate::query::functions::FunctionId;
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::step_paths::Paths;
use crate::query::steps::Loops;
use crate::query::wait_class::WaitClass;
use crate::query::waits::blocked_ns;
use crate::query::weights::{Amount, StackWeights};

/// How long each step waits for a CPU.
pub(super) struct Delays {
    pub ns: Vec<u64>,
    /// Whether these are the CPU waits on the critical path, or those of the loop's thread alone.
    pub on_path: bool,
}

impl Delays {
    /// `None` if it was not recorded.
    fn of(selection: &Selection<'_>, loops: &Loops, parts: &StepParts) -> Option<Self> {
        let spent = parts.spent.as_ref()?;
        let Some(paths) = Paths::of(selection) else {
            return Some(Self { ns: spent.iter().map(|spent| spent.runnable).collect(), on_path: false });
        };
        Some(Self { ns: (0..loops.main().count()).map(|position| paths.delay(position)).collect(), on_path: true })
    }

    fn taken_from(&self, times: &[u64]) -> Vec<u64> {
        times.iter().zip(&self.ns).map(|(time, delay)| time.saturating_sub(*delay)).collect()
    }
}

/// A sample in a slow or typical step.
pub(super) struct StepSample {
    pub step: usize,
    pub stack: Option<StackId>,
    pub amount: Amount,
}

/// The part of a wait of the loop's thread in a slow or typical step.
pub(super) struct StepWait {
    pub step: usize,
    pub wait: Wait,
    /// Whether it waited for another thread.
    pub for_thread: bool,
}

/// A quantity per slow step and per typical step.
#[derive(Clone, Copy, Default)]
pub(super) struct Means {
    pub slow: f64,
    pub typical: f64,
    /// Of the difference.
    pub interval: Option<Estimate>,
}

impl Means {
    pub fn difference(&self) -> f64 {
        self.slow - self.typical
    }
}

/// The inputs of all tables.
pub(super) struct Comparison<'a> {
    pub selection: &'a Selection<'a>,
    pub loops: Arc<Loops>,
    pub parts: StepParts,
    pub delays: Option<Delays>,
    pub sets: Sets,
    off_cpu: OffCpu<'a>,
}

impl<'a> Comparison<'a> {
    pub fn of(selection: &'a Selection<'a>, options: &Options) -> Result<Self, Note> {
        let loops = Loops::of(selection).ok_or_else(|| no_steps(selection))?;
        let off_cpu = selection.off_cpu();
        let parts = StepParts::of(selection, &loops, loops.main(), &off_cpu);
        let clock = parts.unpaced();
        let delays = Delays::of(selection, &loops, &parts);
        let work = delays.as_ref().map(|delays| delays.taken_from(&clock));
        let sets = Sets::of(loops.main().after_first(), &clock, work.as_deref(), options.slow)?;
        Ok(Self { selection, loops, parts, delays, sets, off_cpu })
    }

    /// The samples in slow and typical steps.
    pub fn samples(&self) -> impl Iterator<Item = StepSample> + '_ {
        let event = self.selection.event();
        self.selection.samples().filter_map(move |sample| {
            let step = self.loops.main_step_of(sample)?;
            self.sets.of_position(step)?;
            let count = event.and_then(|event| event.count_of(sample.weight)).unwrap_or(0);
            Some(StepSample { step, stack: sample.stack, amount: Amount { weight: sample.weight.into(), count } })
        })
    }

    /// The waits of the loop's thread in slow and typical steps, without pacing. There may be millions, so they are found again each
    /// time.
    pub fn waits(&self) -> impl Iterator<Item = StepWait> + '_ {
        let mut pacing = Pacing::of(self.selection, self.loops.main(), &self.off_cpu);
        let compared = self.loops.main().rows().iter().enumerate().filter(|(position, step)| {
            self.sets.of_position(*position).is_some() && self.selection.has_thread(step.thread)
        });
        let waits = compared.flat_map(|(position, step)| {
            let within = self.off_cpu.within(step.thread, step.start_ns..step.end_ns);
            within.map(move |wait| (position, wait))
        });
        waits.filter_map(move |(step, wait)| {
            if blocked_ns(&wait) == 0 || !self.selection.has_stack(wait.stack) || pacing.is_pacing(&wait) {
                return None;
            }
            let class = wait.stack.map(|stack| pacing.class(stack));
            let for_thread = wait.waker.is_some() || matches!(class, Some(WaitClass::Lock | WaitClass::Condition));
            Some(StepWait { step, wait, for_thread })
        })
    }

    pub fn count(&self, kind: StepKind) -> usize {
        self.positions(kind).len()
    }

    pub fn positions(&self, kind: StepKind) -> &[usize] {
        match kind {
            StepKind::Slow => &self.sets.slow,
            StepKind::Typical => &self.sets.typical,
        }
    }

    /// The interval of the difference of means, given the values by step; `None` with too few slow steps.
    pub fn interval(&self, bootstrap: &BlockBootstrap, by_step: &[(u32, f64)]) -> Option<Estimate> {
        let enough = self.sets.slow.len() >= FEWEST_SLOW;
        enough.then(|| bootstrap.difference_of_means(by_step, CONFIDENCE)).flatten()
    }
}

/// Sums over slow and over typical steps, by function; the last one is for samples without a stack.
pub(super) struct Sums([Vec<Amount>; 2]);

impl Sums {
    fn of(weights: &[StackWeights; 2], by_function: impl Fn(&StackWeights) -> Vec<Amount>) -> Self {
        Self(weights.each_ref().map(|one| {
            let mut sums = by_function(one);
            sums.push(one.no_stack);
            sums
        }))
    }

    pub fn means(&self, comparison: &Comparison<'_>, row: usize) -> Means {
        let mean = |kind: StepKind| self.0[kind as usize][row].weight as f64 / comparison.count(kind) as f64;
        Means { slow: mean(StepKind::Slow), typical: mean(StepKind::Typical), interval: None }
    }

    fn is_zero(&self, row: usize) -> bool {
        self.0.iter().all(|sums| sums[row].is_zero())
    }
}

/// The costs of each function in slow and typical steps.
pub(super) struct Costs {
    pub own: Sums,
    pub inclusive: Sums,
    pub attributed: Sums,
    pub blocked: Sums,
    /// The part of `blocked` that was not for another thread.
    pub blocked_alone: Sums,
}

impl Costs {
    pub fn of(comparison: &Comparison<'_>) -> Self {
        let (capture, functions) = (comparison.selection.capture(), comparison.selection.functions());
        let none = || [StackWeights::none(capture), StackWeights::none(capture)];
        let (mut cpu, mut blocked, mut alone) = (none(), none(), none());
        let kind = |position: usize| comparison.sets.of_position(position).expect("a step of one of the sets") as usize;
        for StepSample { step, stack, amount } in comparison.samples() {
            *cpu[kind(step)].at(stack) += amount;
        }
        for StepWait { step, wait, for_thread } in comparison.waits() {
            let amount = Amount { weight: blocked_ns(&wait).into(), count: 1 };
            *blocked[kind(step)].at(wait.stack) += amount;
            if !for_thread {
                *alone[kind(step)].at(wait.stack) += amount;
            }
        }
        let attributed = |weights: &StackWeights| weights.attributed_by_function(functions);
        Self {
            own: Sums::of(&cpu, |weights| weights.self_by_function(capture, functions)),
            inclusive: Sums::of(&cpu, |weights| weights.inclusive_by_function(capture, functions)),
            attributed: Sums::of(&cpu, attributed),
            blocked: Sums::of(&blocked, attributed),
            blocked_alone: Sums::of(&alone, attributed),
        }
    }

    /// Rows with any cost.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.own.0[0].len()).filter(|row| !self.inclusive.is_zero(*row) || !self.blocked.is_zero(*row))
    }
}

/// The values of one function by step, for the bootstrap.
#[derive(Debug, Clone, Default)]
pub(super) struct ByStep {
    pub own: Vec<(u32, f64)>,
    pub inclusive: Vec<(u32, f64)>,
    pub attributed: Vec<(u32, f64)>,
    pub blocked: Vec<(u32, f64)>,
}

impl ByStep {
    /// The values of the chosen rows.
    pub fn of(comparison: &Comparison<'_>, chosen: &[bool]) -> Vec<Option<Self>> {
        let (capture, functions) = (comparison.selection.capture(), comparison.selection.functions());
        let no_stack = functions.len();
        let mut values: Vec<Option<Self>> = chosen.iter().map(|chosen| chosen.then(Self::default)).collect();
        let mut add = |row: usize, of: fn(&mut Self) -> &mut Vec<(u32, f64)>, step: usize, weight: f64| {
            let Some(values) = &mut values[row] else { return };
            let step = step as u32;
            match of(values).last_mut() {
                Some((last, sum)) if *last == step => *sum += weight,
                _ => of(values).push((step, weight)),
            }
        };
        for StepSample { step, stack, amount } in comparison.samples() {
            let weight = amount.weight as f64;
            let Some(stack) = stack else {
                add(no_stack, |values| &mut values.own, step, weight);
                add(no_stack, |values| &mut values.inclusive, step, weight);
                add(no_stack, |values| &mut values.attributed, step, weight);
                continue;
            };
            add(functions.of_node(capture, stack).index(), |values| &mut values.own, step, weight);
            if let Some(function) = functions.attributed(stack) {
                add(function.index(), |values| &mut values.attributed, step, weight);
            }
            for node in capture.nodes_of(Some(stack)).filter(|node| functions.is_outermost(*node)) {
                add(functions.of_node(capture, node).index(), |values| &mut values.inclusive, step, weight);
            }
        }
        for StepWait { step, wait, .. } in comparison.waits() {
            let row = wait.stack.map_or(Some(no_stack), |stack| functions.attributed(stack).map(FunctionId::index));
            if let Some(row) = row {
                add(row, |values| &mut values.blocked, step, blocked_ns(&wait) as f64);
            }
        }
        values
    }
}

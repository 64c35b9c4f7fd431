//! What each CPU sample stands for, by exact running time.
//!
//! Context switches say exactly how long a thread ran, and samples say where. The samples of a thread share its exact time. It
//! is divided into blocks of at least 16 periods that end at switches, and the samples in a block have equal weight.
//!
//! Why blocks: timers of the whole machine run on while a thread waits, so the number of samples in each of its runs is random.
//! Smaller parts than blocks are worse. With the time since the previous sample as weight, code after a wake-up lacks a part of its
//! share, and a loop of the timer's period gets errors of 10 points: the weight depends on where the sample is. With
//! blocks, functions that follow each other are right to 0.1 points, and loops are as good as with equal weights.
//!
//! Why also for **timers of threads**, which stop while the thread waits: they take the first sample after a full period, and
//! each CPU has its own, so short threads lack samples. Long threads lack some, too: where two threads of a program follow each
//! other on a CPU, the kernel exchanges their timers, and what a timer has counted ends with a short thread. The main thread of
//! a program that starts threads of 1 ms had 54 % of its samples. Such timers may not sample the kernel either, so kernel time
//! counts where the thread was sampled.
//!
//! Threads that are **shorter than a block** share their time and samples with threads like them. Timers of the machine hit
//! them by chance, so those of the same name are alike, and else all. Timers of threads miss the shortest, so those of the
//! same name that ran about as long are alike. Time for which there is no sample has the frame [`NOT_SAMPLED`].

use std::collections::BTreeMap;

use stepscope_model::{Capture, EventId, Origin, Sample, StackId, ThreadId};

use crate::running_time::{BLOCK_PERIODS, Block, FEW_SAMPLES, RunningTimes, ThreadRun};

/// The frame of CPU time that has no samples.
pub(crate) const NOT_SAMPLED: &str = "[not sampled]";
/// A sample in a block does not stand for more than this many periods: the record of a switch was lost, timers were stopped,
/// or most of the time is the kernel's.
const MOST_PERIODS: u64 = 4;
/// A thread without samples is like another one that ran up to 2^3 times as long, or as short.
const ALIKE_ORDERS: u32 = 3;

/// The weights of all CPU samples.
#[derive(Debug, Default)]
pub(crate) struct SampleWeights {
    event: Option<EventId>,
    /// By thread. Samples of a thread without weights keep what they have.
    threads: Vec<Vec<Weight>>,
    /// Time without samples, latest first.
    not_sampled: Vec<NotSampled>,
    /// Whether each thread has timers of its own, so that samples are missing.
    pub per_thread: bool,
}

/// The weight of the samples of a thread up to a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weight {
    end_ns: u64,
    weight_ns: u64,
}

/// A thread without samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NotSampled {
    thread: ThreadId,
    time_ns: u64,
    weight_ns: u64,
}

/// Threads that do the same, as far as their names tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Family<'a> {
    executable: &'a str,
    name: &'a str,
    is_main: bool,
    /// Binary logarithm of their running time, where it decides about their samples.
    binary_order: u32,
}

/// Threads that share their time and samples.
#[derive(Debug, Default)]
struct Pool {
    ran_ns: u64,
    samples: u64,
    members: Vec<usize>,
}

impl Pool {
    fn add(&mut self, other: Self) {
        self.ran_ns = self.ran_ns.saturating_add(other.ran_ns);
        self.samples += other.samples;
        self.members.extend(other.members);
    }

    fn weigh(&self, threads: &mut [Vec<Weight>], weight_ns: u64) {
        self.members.iter().for_each(|&member| threads[member] = even(weight_ns));
    }
}

/// One weight for all samples of a thread.
fn even(weight_ns: u64) -> Vec<Weight> {
    vec![Weight { end_ns: u64::MAX, weight_ns }]
}

impl SampleWeights {
    /// `capture` has all tables but samples and waits.
    pub fn of(capture: &Capture, mut running: RunningTimes, switch_cost_ns: u64) -> Self {
        let is_recorded = matches!(capture.info.origin, Origin::Recorded | Origin::Recovered);
        let Some(event) = running.event.map(|event| EventId(event.0)).filter(|_| is_recorded) else {
            return Self::default();
        };
        let per_thread = capture.event(event).per_thread;
        let mut weights = Self { event: Some(event), per_thread, ..Self::default() };
        weights.threads.resize(capture.threads.len(), Vec::new());
        let period_ns = running.period_ns;
        let mut pools: BTreeMap<Family<'_>, Pool> = BTreeMap::new();
        for (index, run) in std::mem::take(&mut running.threads).into_iter().enumerate().take(capture.threads.len()) {
            let Some(cpu_ns) = capture.threads[index].cpu_ns.filter(|&ns| ns > 0 && run.ran_ns > 0) else { continue };
            let exact_ns = cpu_ns.saturating_add(run.switch_cost_ns(switch_cost_ns));
            if exact_ns < period_ns.saturating_mul(BLOCK_PERIODS) {
                let binary_order = if per_thread { exact_ns.ilog2() } else { 0 };
                let pool = Pool { ran_ns: exact_ns, samples: run.samples, members: vec![index] };
                pools.entry(family(capture, index, binary_order)).or_default().add(pool);
            } else {
                weights.weigh_blocks(capture, index, run, exact_ns, period_ns);
            }
        }
        match per_thread {
            true => weights.weigh_alike(capture, pools),
            false => weights.weigh_hit_by_chance(pools, period_ns.saturating_mul(MOST_PERIODS)),
        }
        weights.not_sampled.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        weights
    }

    /// A thread with blocks. Their times add up to the thread's.
    fn weigh_blocks(&mut self, capture: &Capture, index: usize, run: ThreadRun, exact_ns: u64, period_ns: u64) {
        let scale = exact_ns as f64 / run.ran_ns as f64;
        let mut rest_ns = 0;
        let weight = |Block { end_ns, ran_ns, samples }: Block| {
            let ran_ns = (ran_ns as f64 * scale) as u64;
            let weight_ns = ran_ns / samples.max(1);
            let is_likely = samples > 0 && weight_ns <= period_ns.saturating_mul(MOST_PERIODS);
            let weight_ns = if is_likely { weight_ns } else { period_ns };
            rest_ns += ran_ns.saturating_sub(weight_ns.saturating_mul(samples));
            Weight { end_ns, weight_ns }
        };
        self.threads[index] = run.into_blocks().into_iter().map(weight).collect();
        if self.per_thread && rest_ns > period_ns {
            self.not_sampled.extend(not_sampled(capture, index, rest_ns));
        }
    }

    /// Short threads, under timers of the whole machine.
    fn weigh_hit_by_chance(&mut self, pools: BTreeMap<Family<'_>, Pool>, most_ns: u64) {
        let (many, few): (Vec<Pool>, Vec<Pool>) = pools.into_values().partition(|pool| pool.samples >= FEW_SAMPLES);
        let mut rest = Pool::default();
        few.into_iter().for_each(|pool| rest.add(pool));
        for pool in many.into_iter().chain([rest]).filter(|pool| pool.samples > 0) {
            let weight_ns = pool.ran_ns / pool.samples;
            if weight_ns <= most_ns {
                pool.weigh(&mut self.threads, weight_ns);
            }
        }
    }

    /// Short threads, under timers of threads.
    fn weigh_alike(&mut self, capture: &Capture, pools: BTreeMap<Family<'_>, Pool>) {
        let has_samples = |(_, pool): &(Family<'_>, Pool)| pool.samples > 0;
        let (sampled, empty): (Vec<_>, Vec<_>) = pools.into_iter().partition(has_samples);
        let mut sampled: BTreeMap<_, _> = sampled.into_iter().collect();
        for (family, pool) in empty {
            let of_order = |binary_order| Family { binary_order, ..family };
            let orders = [family.binary_order.saturating_sub(ALIKE_ORDERS), family.binary_order + ALIKE_ORDERS];
            let alike = sampled.range_mut(of_order(orders[0])..=of_order(orders[1]));
            if let Some((_, like)) = alike.min_by_key(|(like, _)| like.binary_order.abs_diff(family.binary_order)) {
                like.add(pool);
                continue;
            }
            let rows =
                pool.members.iter().filter_map(|&index| not_sampled(capture, index, capture.threads[index].cpu_ns?));
            self.not_sampled.extend(rows);
        }
        sampled.values().for_each(|pool| pool.weigh(&mut self.threads, pool.ran_ns / pool.samples));
    }

    /// What a sample stands for.
    pub fn weight(&self, sample: &Sample) -> u64 {
        let weights = self.threads.get(sample.thread.index()).filter(|_| self.event == Some(sample.event));
        let (Some(weights), Some(time_ns)) = (weights, sample.time_ns) else { return sample.weight };
        let block = weights.partition_point(|block| block.end_ns < time_ns).min(weights.len().saturating_sub(1));
        weights.get(block).map_or(sample.weight, |block| block.weight_ns)
    }

    /// Whether some time has no samples.
    pub fn has_not_sampled(&self) -> bool {
        !self.not_sampled.is_empty()
    }

    /// The next row of time without samples, if it is not after `time_ns`.
    pub fn next_not_sampled(&mut self, time_ns: u64, stack: Option<StackId>) -> Option<Sample> {
        self.not_sampled.last().filter(|row| row.time_ns <= time_ns)?;
        let NotSampled { thread, time_ns, weight_ns } = self.not_sampled.pop()?;
        Some(Sample { time_ns: Some(time_ns), thread, cpu: None, stack, event: self.event?, weight: weight_ns })
    }
}

fn family(capture: &Capture, index: usize, binary_order: u32) -> Family<'_> {
    let thread = &capture.threads[index];
    let process = thread.process.map(|process| &capture.processes[process.index()]);
    Family {
        executable: process.map_or("", |process| process.executable.as_str()),
        name: &thread.name,
        is_main: process.is_some_and(|process| process.pid == thread.tid),
        binary_order,
    }
}

fn not_sampled(capture: &Capture, index: usize, weight_ns: u64) -> Option<NotSampled> {
    let time_ns = capture.threads[index].end_ns?.saturating_sub(1);
    Some(NotSampled { thread: ThreadId::from_index(index), time_ns, weight_ns })
}

#[cfg(test)]
mod tests;

//! Exact running time of each thread, beside the samples that timers took of it.
//!
//! Both are summed while the log is read for the first time. Per thread, that takes some hundred bytes, and 24 bytes for each
//! of at most [`MOST_BLOCKS`] blocks.

use crate::entry::{EventRef, Sample, ThreadRef, Wait};
use crate::switch_cost::Waited;

/// A block lasts for this many periods of sampling.
pub(crate) const BLOCK_PERIODS: u64 = 16;
/// Fewer samples say little about a block.
pub(crate) const FEW_SAMPLES: u64 = 8;
/// If a thread has more blocks, each two become one, and later ones last twice as long.
const MOST_BLOCKS: usize = 512;

/// Running time of all threads of a log.
#[derive(Debug, Default)]
pub(crate) struct RunningTimes {
    /// The event of which timers take samples.
    pub event: Option<EventRef>,
    /// What a sample stands for by its timer.
    pub period_ns: u64,
    pub threads: Vec<ThreadRun>,
}

impl RunningTimes {
    pub fn add_thread(&mut self, start_ns: Option<u64>) {
        self.threads.push(ThreadRun { since_ns: start_ns, ..ThreadRun::default() });
    }

    pub fn add_sample(&mut self, sample: &Sample) {
        if self.event != Some(sample.event) {
            return;
        }
        self.period_ns = sample.weight;
        if let Some(thread) = self.threads.get_mut(sample.thread.0 as usize) {
            thread.samples += 1;
            thread.open.samples += 1;
        }
    }

    pub fn add_wait(&mut self, wait: &Wait) {
        let Some(thread) = self.threads.get_mut(wait.thread.0 as usize) else { return };
        thread.run_until(wait.start_ns);
        thread.close_block(self.period_ns);
        thread.since_ns = Some(wait.end_ns);
        let waits = Waited::new(wait.start_ns..wait.end_ns, wait.runnable_ns, wait.count);
        thread.runs += waits.count;
        thread.room_ns = thread.room_ns.saturating_add(waits.room_ns().saturating_mul(waits.count));
    }

    pub fn end_thread(&mut self, thread: ThreadRef, time_ns: Option<u64>) {
        let Some(thread) = self.threads.get_mut(thread.0 as usize) else { return };
        time_ns.into_iter().for_each(|time_ns| thread.run_until(time_ns));
        thread.since_ns = None;
    }
}

/// A part of a thread's running time that ends when it leaves the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub end_ns: u64,
    pub ran_ns: u64,
    pub samples: u64,
}

impl Block {
    fn merge(&mut self, later: Self) {
        self.end_ns = later.end_ns;
        self.ran_ns = self.ran_ns.saturating_add(later.ran_ns);
        self.samples += later.samples;
    }
}

/// Running time of one thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadRun {
    /// Since when it runs.
    since_ns: Option<u64>,
    pub ran_ns: u64,
    pub samples: u64,
    blocks: Vec<Block>,
    open: Block,
    doublings: u32,
    runs: u64,
    room_ns: u64,
}

impl ThreadRun {
    fn run_until(&mut self, time_ns: u64) {
        let Some(since_ns) = self.since_ns else { return };
        let ran_ns = time_ns.saturating_sub(since_ns);
        self.since_ns = Some(since_ns.max(time_ns));
        self.ran_ns = self.ran_ns.saturating_add(ran_ns);
        self.open.merge(Block { end_ns: time_ns, ran_ns, samples: 0 });
    }

    fn close_block(&mut self, period_ns: u64) {
        let least_ns = period_ns.saturating_mul(BLOCK_PERIODS << self.doublings.min(32));
        if self.open.samples < FEW_SAMPLES || self.open.ran_ns < least_ns {
            return;
        }
        self.blocks.push(std::mem::take(&mut self.open));
        if self.blocks.len() == MOST_BLOCKS {
            self.doublings += 1;
            self.blocks = self.blocks.chunks(2).map(merged).collect();
        }
    }

    /// How long it ran until a time at which it still runs; `None` if it has ended.
    pub fn ran_until(&self, time_ns: u64) -> Option<u64> {
        Some(self.ran_ns.saturating_add(time_ns.saturating_sub(self.since_ns?)))
    }

    /// By how much all runs together started earlier than their records, at this cost of a switch.
    pub fn switch_cost_ns(&self, cost_ns: u64) -> u64 {
        cost_ns.saturating_mul(self.runs).min(self.room_ns)
    }

    /// All blocks. The last one has the rest.
    pub fn into_blocks(mut self) -> Vec<Block> {
        match self.blocks.last_mut() {
            Some(last) if self.open.samples < FEW_SAMPLES => last.merge(self.open),
            _ => self.blocks.push(self.open),
        }
        self.blocks
    }
}

fn merged(blocks: &[Block]) -> Block {
    let mut all = blocks[0];
    blocks[1..].iter().for_each(|block| all.merge(*block));
    all
}

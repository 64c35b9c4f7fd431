//! [`Evidence`]: one recording, reduced to the numbers that are compared.
//!
//! A recording is split into *blocks* of equally many consecutive steps, or without steps, of equal time. Every row (a
//! function, a thread, ...) has its weight in each block. The bootstrap resamples blocks: their spread is the noise within the
//! recording. There are at most [`MOST_BLOCKS`], because blocks must be longer than the correlation of steps (a slow step
//! often follows a slow one).

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
pub use stepscope_model::OwnMetric;
use stepscope_model::{CaptureInfo, Counts, FrameKind, ThreadId, WaitState};

use super::slowness::{self, Slowness};
use crate::analyses::metrics::{self, Metric};
use crate::query::basis::Basis;
use crate::query::functions::{Caller, FunctionId, Identity, NO_STACK};
use crate::query::heap::HeapSums;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};
use crate::query::system_calls::{SelectedCalls, is_wait};
use crate::query::waits::blocked_ns;
use crate::query::weights::{Amount, StackWeights};

/// Largest number of blocks that a recording is cut into.
pub const MOST_BLOCKS: usize = 32;

/// Smallest number of steps in a block.
const LEAST_STEPS: usize = 4;

/// A block of time is at least so long.
const LEAST_BLOCK_NS: u64 = 250_000_000;

/// What the rows of a comparison are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Functions, by attributed cost: the cost whose nearest owned function they are.
    Attributed,
    /// Functions, by self weight.
    Own,
    /// Functions, by inclusive weight.
    Inclusive,
    /// Threads by name.
    Threads,
    /// [Categories](crate::query::categories).
    Categories,
    /// Functions, by the blocked time attributed to them.
    Waits,
    /// Functions, by the number of allocations attributed to them.
    Allocations,
    /// The same of temporary allocations.
    TemporaryAllocations,
    /// The same of allocated bytes.
    AllocatedBytes,
    /// Functions, by the number of system calls attributed to them.
    SystemCalls,
    /// The same of the time within system calls that do not wait for others.
    SystemCallTime,
}

impl Family {
    /// Every family, in the order of tables.
    pub const ALL: [Family; 11] = [
        Family::Attributed,
        Family::Own,
        Family::Inclusive,
        Family::Threads,
        Family::Categories,
        Family::Waits,
        Family::Allocations,
        Family::TemporaryAllocations,
        Family::AllocatedBytes,
        Family::SystemCalls,
        Family::SystemCallTime,
    ];

    /// What its counts are of.
    pub fn counted(self) -> &'static str {
        match self {
            Family::Waits => "waits",
            Family::Allocations | Family::TemporaryAllocations | Family::AllocatedBytes => "allocations",
            Family::SystemCalls | Family::SystemCallTime => "system calls",
            _ => "samples",
        }
    }

    /// The unit of its numbers; `None` if it is that of the samples.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Family::Waits | Family::SystemCallTime => Some("ns"),
            Family::Allocations | Family::TemporaryAllocations => Some("allocations"),
            Family::AllocatedBytes => Some("bytes"),
            Family::SystemCalls => Some("calls"),
            _ => None,
        }
    }

    /// Whether its numbers are exact, so that only the spread between runs is noise.
    pub fn is_exact(self) -> bool {
        self.counted() != "samples"
    }
}

/// What one row weighs in a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Its weight in each block.
    pub blocks: Vec<f64>,
    /// How many samples (or waits) that are; 0 where that is not known.
    pub count: u64,
}

/// Rows by identity. Threads and categories have no module.
pub type Rows = FxHashMap<Identity, Course>;

/// What a table says about a function besides its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// Whether it is owned; `None` if ownership is not configured.
    pub owned: Option<bool>,
    /// What kind of code it is.
    pub kind: FrameKind,
}

/// What one recording says.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Where it comes from.
    pub info: CaptureInfo,
    /// What its costs are divided by.
    pub basis: Basis,
    /// Unit of the samples' weights.
    pub unit: String,
    /// Whether the numbers of samples are known.
    pub counts_known: bool,
    /// Steps, or seconds, in each block; 1 for a build; for shares, hundredths of the whole weight.
    pub exposure: Vec<f64>,
    /// The figures of the whole recording.
    pub metrics: Vec<Metric>,
    /// The machine's speed beside it.
    pub slowness: Slowness,
    /// What each function is.
    pub natures: FxHashMap<Identity, Nature>,
    rows: [Rows; Family::ALL.len()],
}

impl Evidence {
    /// Reduces a recording. `basis` must be one that it allows.
    pub fn of(selection: &Selection<'_>, basis: Basis) -> Self {
        let blocks = Blocks::of(selection, basis);
        let event = selection.event();
        let mut evidence = Self {
            info: selection.capture().info.clone(),
            basis,
            unit: event.map_or(String::new(), |event| event.unit.clone()),
            counts_known: event.is_some_and(|event| event.counts != Counts::Unknown),
            exposure: blocks.exposure.clone(),
            metrics: metrics::of(selection, basis),
            slowness: slowness::of(selection, blocks.count(), |thread, time_ns| blocks.at(thread, Some(time_ns))),
            natures: natures(selection),
            rows: std::array::from_fn(|_| Rows::default()),
        };
        let mut gathered = Gathered::new(selection, blocks.count());
        gathered.samples(selection, &blocks);
        if basis == Basis::Share {
            evidence.exposure = vec![gathered.total / 100.0];
        } else {
            if selection.has_switches() {
                gathered.waits(selection, &blocks);
            }
            gathered.allocations(selection, basis, &evidence.exposure);
            gathered.system_calls(selection, &blocks);
        }
        evidence.rows = gathered.into_rows(selection);
        evidence
    }

    /// The rows of a family.
    pub fn rows(&self, family: Family) -> &Rows {
        &self.rows[family as usize]
    }

    /// Steps or seconds of the whole recording; 1 for a build.
    pub fn whole_exposure(&self) -> f64 {
        self.exposure.iter().sum()
    }
}

fn natures(selection: &Selection<'_>) -> FxHashMap<Identity, Nature> {
    let functions = selection.functions();
    let known = functions.ownership_known();
    functions
        .all()
        .map(|(_, one)| (one.identity(), Nature { owned: known.then_some(one.owned), kind: one.kind }))
        .collect()
}

/// How a recording is cut.
struct Blocks {
    loops: Option<Arc<Loops>>,
    /// Of each loop the blocks that hold steps, with their first step's begin.
    begins: Vec<Vec<(usize, u64)>>,
    window: Range<u64>,
    exposure: Vec<f64>,
}

impl Blocks {
    fn of(selection: &Selection<'_>, basis: Basis) -> Self {
        match (basis, Loops::of(selection), selection.window()) {
            (Basis::PerStep, Some(loops), _) => {
                let steps = loops.main().count();
                let blocks = (steps / LEAST_STEPS).clamp(1, MOST_BLOCKS);
                let in_block = |block: usize| steps_of(block, blocks, steps).len() as f64;
                let begins = loops.each().iter().map(|steps| begins(steps, blocks)).collect();
                Self { exposure: (0..blocks).map(in_block).collect(), begins, loops: Some(loops), window: 0..0 }
            }
            // Parts of a build are different work, so they say nothing about how builds vary.
            (Basis::PerBuild, _, window) => {
                Self { loops: None, begins: Vec::new(), window: window.unwrap_or(0..u64::MAX), exposure: vec![1.0] }
            }
            (Basis::PerStep | Basis::PerSecond, _, Some(window)) => {
                let length = window.end - window.start;
                // Samples without times cannot be assigned to blocks.
                let timed = selection.samples().all(|sample| sample.time_ns.is_some());
                let blocks = if timed { (length / LEAST_BLOCK_NS).clamp(1, MOST_BLOCKS as u64) } else { 1 };
                let exposure = vec![length as f64 / 1e9 / blocks as f64; blocks as usize];
                Self { loops: None, begins: Vec::new(), window, exposure }
            }
            _ => Self { loops: None, begins: Vec::new(), window: 0..0, exposure: vec![0.0] },
        }
    }

    fn count(&self) -> usize {
        self.exposure.len()
    }

    /// The block that holds a moment of a thread; `None` outside of the loop's steps.
    fn at(&self, thread: ThreadId, time_ns: Option<u64>) -> Option<usize> {
        if let Some(loops) = &self.loops {
            let steps = loops.of_thread(thread);
            return Some(steps.at(time_ns?)? * self.count() / steps.count());
        }
        let Some(time_ns) = time_ns.filter(|_| self.count() > 1) else { return Some(0) };
        let length = u128::from(self.window.end - self.window.start);
        let at = u128::from(time_ns.saturating_sub(self.window.start)) * self.count() as u128 / length.max(1);
        Some((at as usize).min(self.count() - 1))
    }

    /// A weight of a thread, for blocks of the main loop.
    fn scaled(&self, thread: ThreadId, weight: u128) -> u128 {
        self.loops.as_ref().map_or(weight, |loops| loops.as_in_main(thread, weight))
    }

    /// The part of a range of time in each block.
    fn parts(&self, thread: ThreadId, range: &Range<u64>, mut add: impl FnMut(usize, u64)) {
        let Some(loops) = &self.loops else { return self.parts_of_window(range, add) };
        let steps = loops.of_thread(thread);
        let begins = &self.begins[loops.number_of(thread)];
        let first = begins.partition_point(|(_, begin)| *begin <= range.start).saturating_sub(1);
        for (place, &(block, begin)) in begins.iter().enumerate().skip(first) {
            let start = begin.max(range.start);
            if start >= range.end {
                return;
            }
            let end = begins.get(place + 1).map_or(u64::MAX, |(_, next)| *next).min(range.end);
            add(block, steps.time_within(&(start..end)));
        }
    }

    fn parts_of_window(&self, range: &Range<u64>, mut add: impl FnMut(usize, u64)) {
        let length = self.window.end - self.window.start;
        let count = self.count() as u64;
        let begin =
            |block: u64| self.window.start + (u128::from(length) * u128::from(block) / u128::from(count)) as u64;
        let first = range.start.saturating_sub(self.window.start) * count / length.max(1);
        for block in first.saturating_sub(1)..count {
            let (start, end) = (begin(block).max(range.start), begin(block + 1).min(range.end));
            if start < end {
                add(block as usize, end - start);
            }
        }
    }
}

/// The positions of a block's steps: the inverse of `position * blocks / steps`.
fn steps_of(block: usize, blocks: usize, steps: usize) -> Range<usize> {
    (block * steps).div_ceil(blocks)..((block + 1) * steps).div_ceil(blocks)
}

/// The blocks of a loop that hold steps, with the first one's begin: of a loop with fewer steps than there are blocks,
/// some hold none.
fn begins(steps: &Steps, blocks: usize) -> Vec<(usize, u64)> {
    let filled = (0..blocks).map(|block| (block, steps_of(block, blocks, steps.count())));
    let filled = filled.filter(|(_, range)| !range.is_empty());
    filled.map(|(block, range)| (block, steps.range(range.start).start)).collect()
}

/// Sums by block, while a recording is read.
struct Gathered {
    blocks: usize,
    total: f64,
    /// By function: attributed, own, inclusive.
    functions: [Vec<Course>; 3],
    no_stack: Course,
    threads: FxHashMap<String, Course>,
    /// By row of the selection's categories.
    categories: Vec<Course>,
    /// By function, of families whose numbers are exact.
    exact: FxHashMap<(Family, Caller), Course>,
}

impl Gathered {
    fn new(selection: &Selection<'_>, blocks: usize) -> Self {
        let functions = selection.functions().len();
        Self {
            blocks,
            total: 0.0,
            functions: std::array::from_fn(|_| vec![Course::default(); functions]),
            no_stack: Course::default(),
            threads: FxHashMap::default(),
            categories: vec![Course::default(); selection.categories().len()],
            exact: FxHashMap::default(),
        }
    }

    fn samples(&mut self, selection: &Selection<'_>, blocks: &Blocks) {
        let (capture, categories) = (selection.capture(), selection.categories());
        let Some(event) = selection.event() else { return };
        let mut in_blocks = vec![Vec::new(); self.blocks];
        for sample in selection.samples() {
            let Some(block) = blocks.at(sample.thread, sample.time_ns) else { continue };
            let amount = Amount {
                weight: blocks.scaled(sample.thread, u128::from(sample.weight)),
                count: event.count_of(sample.weight).unwrap_or(0),
            };
            in_blocks[block].push((sample.stack, amount));
            let name = &capture.threads[sample.thread.index()].name;
            let course = match self.threads.get_mut(name) {
                Some(course) => course,
                None => self.threads.entry(name.clone()).or_default(),
            };
            course.add(block, self.blocks, amount);
            let category = categories.at(sample.thread, sample.stack);
            self.categories[category.index()].add(block, self.blocks, amount);
        }
        for (block, samples) in in_blocks.into_iter().enumerate() {
            let mut weights = StackWeights::none(capture);
            samples.iter().for_each(|(stack, amount)| *weights.at(*stack) += *amount);
            self.block(selection, block, &weights);
        }
    }

    /// Adds the samples of one block.
    fn block(&mut self, selection: &Selection<'_>, block: usize, weights: &StackWeights) {
        let (capture, functions) = (selection.capture(), selection.functions());
        let own = weights.self_by_function(capture, functions);
        let sums = [weights.attributed_by_function(functions), own, weights.inclusive_by_function(capture, functions)];
        for (courses, amounts) in self.functions.iter_mut().zip(sums) {
            for (course, amount) in courses.iter_mut().zip(amounts).filter(|(_, amount)| !amount.is_zero()) {
                course.add(block, self.blocks, amount);
            }
        }
        if !weights.no_stack.is_zero() {
            self.no_stack.add(block, self.blocks, weights.no_stack);
        }
        self.total += weights.total().weight as f64;
    }

    fn waits(&mut self, selection: &Selection<'_>, blocks: &Blocks) {
        let functions = selection.functions();
        for wait in selection.waits().filter(|wait| wait.state == WaitState::Blocked) {
            let caller = functions.caller(wait.stack);
            let course = self.exact.entry((Family::Waits, caller)).or_default();
            let mut count = u64::from(wait.count);
            blocks.parts(wait.thread, &(wait.start_ns..wait.start_ns + blocked_ns(&wait)), |block, ns| {
                let weight = blocks.scaled(wait.thread, ns.into());
                course.add(block, self.blocks, Amount { weight, count: std::mem::take(&mut count) });
            });
        }
    }

    /// Allocations are exact, but not known by block: they are spread over the blocks evenly.
    fn allocations(&mut self, selection: &Selection<'_>, basis: Basis, exposure: &[f64]) {
        if selection.capture().allocations.is_empty() {
            return;
        }
        let heap = HeapSums::of(selection);
        let per_step = basis == Basis::PerStep;
        if per_step && !heap.has_steps {
            return;
        }
        let whole: f64 = exposure.iter().sum();
        for (caller, sums) in heap.by_caller(selection.functions()) {
            let step = sums.step;
            let amounts = [
                (Family::Allocations, step.calls, sums.calls, sums.calls),
                (Family::TemporaryAllocations, step.temporary, sums.temporary, sums.temporary),
                (Family::AllocatedBytes, step.bytes, sums.bytes, sums.calls),
            ];
            for (family, in_step, all, count) in amounts {
                let rate = if per_step { in_step } else { all as f64 / whole };
                if rate > 0.0 {
                    let blocks = exposure.iter().map(|exposure| rate * exposure).collect();
                    self.exact.insert((family, caller), Course { blocks, count });
                }
            }
        }
    }

    /// Each row belongs to the block in which its last call ended.
    fn system_calls(&mut self, selection: &Selection<'_>, blocks: &Blocks) {
        let functions = selection.functions();
        for (row, _) in &SelectedCalls::of(selection).rows {
            let Some(block) = blocks.at(row.thread, Some(row.end_ns)) else { continue };
            let caller = functions.caller(row.stack);
            let busy_ns = if is_wait(row) { 0 } else { row.total_ns };
            for (family, weight) in [(Family::SystemCalls, row.count), (Family::SystemCallTime, busy_ns)] {
                if weight > 0 {
                    let weight = blocks.scaled(row.thread, weight.into());
                    let course = self.exact.entry((family, caller)).or_default();
                    course.add(block, self.blocks, Amount { weight, count: row.count });
                }
            }
        }
    }

    fn into_rows(self, selection: &Selection<'_>) -> [Rows; Family::ALL.len()] {
        let functions = selection.functions();
        let identity = |id: FunctionId| functions.get(id).identity();
        let named = |name: &str| Identity { name: name.into(), module: "".into() };
        let [attributed, mut own, inclusive] = self.functions.map(|courses| -> Rows {
            let met = functions.all().zip(courses).filter(|(_, course)| !course.blocks.is_empty());
            met.map(|((id, _), course)| (identity(id), course)).collect()
        });
        if !self.no_stack.blocks.is_empty() {
            own.insert(named(NO_STACK), self.no_stack);
        }
        let names = selection.categories().names();
        let of_caller = |caller: Caller| match caller {
            Caller::Function(id) => identity(id),
            Caller::NotOwned => named(functions.no_owner()),
            Caller::NoStack => named(NO_STACK),
        };
        let mut rows: [Rows; Family::ALL.len()] = Default::default();
        rows[Family::Attributed as usize] = attributed;
        rows[Family::Own as usize] = own;
        rows[Family::Inclusive as usize] = inclusive;
        rows[Family::Threads as usize] =
            self.threads.into_iter().map(|(name, course)| (named(&name), course)).collect();
        rows[Family::Categories as usize] = names
            .zip(self.categories)
            .filter(|(_, course)| !course.blocks.is_empty())
            .map(|(name, course)| (named(name), course))
            .collect();
        for ((family, caller), course) in self.exact.into_iter().filter(|(_, course)| !course.blocks.is_empty()) {
            rows[family as usize].insert(of_caller(caller), course);
        }
        rows
    }
}

impl Course {
    fn add(&mut self, block: usize, of: usize, amount: Amount) {
        if self.blocks.is_empty() {
            self.blocks = vec![0.0; of];
        }
        self.blocks[block] += amount.weight as f64;
        self.count = self.count.saturating_add(amount.count);
    }

    /// Its weight in the whole recording.
    pub fn total(&self) -> f64 {
        self.blocks.iter().sum()
    }
}

//! [`Seen`]: what the detectors look at, gathered once from a capture.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use stepscope_model::{Capture, FrameKind, NoteValue, Phase, Sample, StackId, ThreadId, Wait};
use stepscope_stats::Estimate;

use super::calls::{Calls, FunctionRepeats, Rate};
use super::code::{Costs, HotLoop, ReadCode, hot_loops, looped_calls, no_waits, questions, raises, straight_calls};
use super::gain::{Gain, GainBasis, sampled};
use super::laws::Laws;
use super::pieces::Pieces;
use super::recorded::Recorded;
pub(super) use super::tenths::Tenths;
use crate::Function;
use crate::analyses::critical_path::PathWeights;
use crate::query::events::{self, Role};
use crate::query::frame_kind::kernel_name;
use crate::query::functions::{FunctionId, Functions};
use crate::query::off_cpu::OffCpu;
use crate::query::qualified_name::{enclosing, enclosing_python, own_name, python_function, without_version};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{Amount, StackWeights, percent};
use crate::query::work::Work;

/// Parts that the program's work is divided into.
const PARTS: usize = 20;

/// How many of the parts that are expected to be met must be.
const STEADY: f64 = 0.85;

/// Least part of a cost below the function that decides it.
const NEARLY_ALL: f64 = 0.9;

/// Least percent of CPU time of a closure that counts as the function that it is written in.
const LEAST_OF_CLOSURE: f64 = 1.0;

/// Fewest samples of a cost that recurs.
const FEWEST_SAMPLES: usize = 8;

/// Fewest samples that recur.
const FEWEST_RECURRING: usize = 20;

/// Beginnings of the names of functions by which a thread gives up its CPU, and asks again later.
pub(super) const YIELDING_FUNCTIONS: &[&str] = &[
    "sched_yield",
    "__sched_yield",
    "__x64_sys_sched_yield",
    "__arm64_sys_sched_yield",
    "do_sched_yield",
    "os_sched_yield",
    "std::this_thread::yield",
    "std::thread::functions::yield_now",
    "std::thread::yield_now",
];

/// The sleeps that keep a loop's pace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pacing {
    /// The owned function that sleeps.
    pub function: Option<FunctionId>,
    /// How long, per step, or in all where there are no steps.
    pub ns: f64,
}

/// The evidence of one capture.
pub(super) struct Seen<'s, 'a> {
    pub selection: &'s Selection<'a>,
    /// The steps that costs are divided by; none in loading.
    pub loops: Option<Arc<Loops>>,
    /// CPU time, in steps where there are some.
    pub cpu: StackWeights,
    /// When the program was sampled, in order.
    sampled: Vec<u64>,
    /// All of it.
    pub total: u128,
    /// What the recorder's probes cost, which is not part of it.
    of_probes: Amount,
    /// What each stack does for its nearest owned function.
    pub work: Vec<Work>,
    /// Closures, each with the function that it is written in and that alone leads to it.
    closures: Vec<(FunctionId, FunctionId)>,
    pub off_cpu: OffCpu<'a>,
    /// The critical path of steps.
    pub path: Option<PathWeights>,
    /// The sleeps that keep the loop's pace.
    pub pacing: Pacing,
    /// The laws of the sweep that this is the largest size of.
    pub laws: Option<Arc<Laws>>,
    /// Functions whose calls were counted.
    pub calls: Vec<Rate>,
    /// Functions whose calls were replayed, with the CPU time of all they do.
    pub repeats: Vec<(FunctionId, Amount, FunctionRepeats)>,
    /// Loops of machine code with a known shape, the most expensive first.
    pub hot_loops: Vec<HotLoop>,
    /// One flag per frame: whether it is a call that is no wait. Empty without machine code.
    pub no_waits: Vec<bool>,
    /// One flag per frame: whether it is a call of a function without loops. Empty without code.
    pub straight_calls: Vec<bool>,
    /// One flag per frame: whether it is a call in a loop. Empty without machine code.
    pub looped_calls: Vec<bool>,
    /// One flag per stack: whether it ends in an owned function that only loads and compares. Empty without machine code.
    pub questions: Vec<bool>,
    /// One flag per stack: whether a line of Python code that raises or catches an exception is on it. Empty without code.
    pub raises: Vec<bool>,
    /// Allocations and system calls.
    pub recorded: Recorded<'a>,
    /// The samples of a program without steps, not of loading.
    pub pieces: Option<Pieces>,
}

impl<'s, 'a> Seen<'s, 'a> {
    /// `None` without samples of CPU cost.
    pub fn of(selection: &'s Selection<'a>) -> Option<Self> {
        selection.event().filter(|event| matches!(events::role(event), Role::Cpu | Role::Other))?;
        let loops = Loops::of_costs(selection).filter(|_| selection.samples().all(|sample| sample.time_ns.is_some()));
        let mut cpu = match &loops {
            Some(loops) => loops.sample_weights(selection),
            None => StackWeights::of_samples(selection),
        };
        let of_probes = take_probes(&mut cpu, selection);
        let total = cpu.total().weight;
        let mut sampled: Vec<u64> = selection.samples().filter_map(|sample| sample.time_ns).collect();
        sampled.sort_unstable();
        let path = loops.as_ref().and_then(|_| PathWeights::of(selection));
        let (work, off_cpu) = (Work::of_stacks(selection), selection.off_cpu());
        let recorded = Recorded::of(selection, loops.as_deref());
        let is_loading = selection.capture().info.phase == Some(Phase::Loading);
        let pieces = (loops.is_none() && !is_loading).then(|| Pieces::of(selection));
        let mut seen = (total > 0).then_some(Self {
            selection,
            loops,
            cpu,
            sampled,
            total,
            of_probes,
            work,
            closures: Vec::new(),
            off_cpu,
            path,
            pacing: Pacing::default(),
            laws: None,
            calls: Vec::new(),
            repeats: Vec::new(),
            hot_loops: Vec::new(),
            no_waits: Vec::new(),
            straight_calls: Vec::new(),
            looped_calls: Vec::new(),
            questions: Vec::new(),
            raises: Vec::new(),
            recorded,
            pieces,
        })?;
        seen.closures = seen.closures();
        Some(seen)
    }

    /// Closures that cost something, each with the function that it is written in and that alone leads to it.
    fn closures(&self) -> Vec<(FunctionId, FunctionId)> {
        let costly = self.inclusive().into_iter().filter(|(_, amount)| self.share(*amount) >= LEAST_OF_CLOSURE);
        let written_in = costly.filter_map(|(closure, _)| {
            let own = own_name(self.name(closure));
            let outer = enclosing_python(self.name(closure)).or_else(|| enclosing(&own))?;
            let caller = self.common_owner_above(closure, &self.under(closure))?;
            let name = self.name(caller);
            (name == outer || own_name(name) == outer).then_some((closure, caller))
        });
        written_in.collect()
    }

    /// The function that a closure is written in; any other function itself.
    pub fn enclosing(&self, function: FunctionId) -> FunctionId {
        let written_in = self.closures.iter().find(|(closure, _)| *closure == function);
        written_in.map_or(function, |(_, outer)| self.enclosing(*outer))
    }

    /// The nearest owned function of a stack. A closure is part of the function that it is written in.
    pub fn owner(&self, stack: StackId) -> Option<FunctionId> {
        self.functions().attributed(stack).map(|function| self.enclosing(function))
    }

    pub fn capture(&self) -> &'a Capture {
        self.selection.capture()
    }

    pub fn functions(&self) -> &'a Functions {
        self.selection.functions()
    }

    pub fn is_loading(&self) -> bool {
        self.capture().info.phase == Some(Phase::Loading)
    }

    /// When work is done that is done all the time, for titles.
    pub fn repeatedly(&self) -> &'static str {
        if self.loops.is_some() { "in every step" } else { "all the time" }
    }

    /// After "all the work".
    pub fn of_each_step(&self) -> &'static str {
        if self.loops.is_some() { " of each step" } else { "" }
    }

    /// What a share of CPU time is a share of, after "of the CPU time".
    pub fn of_steps(&self) -> &'static str {
        if self.loops.is_some() { " of steps" } else { "" }
    }

    /// Whether costs are times, not cycles or numbers of samples.
    pub fn is_timed(&self) -> bool {
        self.selection.event().is_some_and(|event| event.unit == "ns")
    }

    /// A cost as text, in its unit.
    pub fn cost(&self, weight: u64) -> String {
        NoteValue::of(weight, self.selection.event().map_or("", |event| &event.unit)).to_string()
    }

    /// The name of a function; of a Python function without its file.
    pub fn name(&self, function: FunctionId) -> &'a str {
        let name = &*self.functions().get(function).name;
        python_function(name).map_or(name, |(name, _)| name)
    }

    /// In percent of all CPU time.
    pub fn share(&self, amount: Amount) -> f64 {
        percent(amount.weight, self.total).unwrap_or(0.0)
    }

    /// CPU time at the stacks that are flagged.
    pub fn sum(&self, at: impl Fn(StackId) -> bool) -> Amount {
        self.cpu.occupied().filter(|(stack, _)| at(*stack)).map(|(_, amount)| amount).sum()
    }

    /// CPU time attributed to each owned function, of the work that counts; the largest first.
    pub fn by_owner(&self, counts: impl Fn(Work) -> bool) -> Vec<(FunctionId, Amount)> {
        self.by_function(|stack| self.owner(stack).filter(|_| counts(self.work[stack.index()])))
    }

    /// CPU time of each function, with the function that each stack counts for; the largest first.
    pub fn by_function(&self, of: impl Fn(StackId) -> Option<FunctionId>) -> Vec<(FunctionId, Amount)> {
        let mut sums = vec![Amount::default(); self.functions().len()];
        for (stack, amount) in self.cpu.occupied() {
            if let Some(function) = of(stack) {
                sums[function.index()] += amount;
            }
        }
        self.largest_first(&sums, |_| true)
    }

    /// Whether a stack's nearest owned function is `owner`, and its work counts.
    pub fn is_at(&self, owner: FunctionId, counts: impl Fn(Work) -> bool) -> impl Fn(StackId) -> bool {
        move |stack| self.owner(stack) == Some(owner) && counts(self.work[stack.index()])
    }

    /// CPU time attributed to a function, of the work that counts.
    pub fn at_owner(&self, owner: FunctionId, counts: impl Fn(Work) -> bool) -> Amount {
        self.sum(self.is_at(owner, counts))
    }

    /// The part of each stack that a change takes away: 1 where the nearest owned function is `owner` and the work counts.
    pub fn without(&self, owner: FunctionId, counts: impl Fn(Work) -> bool) -> Vec<f32> {
        let goes = self.is_at(owner, counts);
        parts((0..self.capture().stacks.len()).map(|index| goes(StackId::from_index(index))))
    }

    /// One flag per stack: whether the function is on it.
    pub fn under(&self, function: FunctionId) -> Vec<bool> {
        let capture = self.capture();
        let mut under: Vec<bool> = Vec::with_capacity(capture.stacks.len());
        for (index, node) in capture.stacks.iter().enumerate() {
            let above = node.parent.is_some_and(|parent| under[parent.index()]);
            under.push(above || self.functions().of_node(capture, StackId::from_index(index)) == function);
        }
        under
    }

    /// One flag per stack: whether one of these functions is on it.
    pub fn paths_through(&self, is_one: impl Fn(&Function) -> bool) -> Vec<bool> {
        let flags: Vec<bool> = self.functions().all().map(|(_, function)| is_one(function)).collect();
        self.functions().paths_through(self.capture(), &flags)
    }

    /// One flag per stack: whether the thread gives up its CPU there.
    pub fn yields(&self) -> Vec<bool> {
        self.paths_through(|function| is_one_of(function, YIELDING_FUNCTIONS))
    }

    /// The deepest owned function that nearly all of the cost at these stacks is below.
    pub fn common_owner(&self, at: impl Fn(StackId) -> bool) -> Option<FunctionId> {
        let all = self.sum(&at);
        let mut callers_first = self.inclusive();
        callers_first.retain(|(_, amount)| amount.weight as f64 >= NEARLY_ALL * all.weight as f64);
        callers_first.into_iter().rev().map(|(function, _)| function).find(|one| self.has_most(*one, all, &at))
    }

    /// The deepest owned function that nearly all of another function's cost is below.
    pub fn common_caller(&self, function: FunctionId, under: &[bool]) -> Option<FunctionId> {
        let at = |stack: StackId| under[stack.index()];
        let all = self.sum(at);
        let callers_first = self.inclusive().into_iter().map(|(one, _)| one);
        let callers: Vec<FunctionId> = callers_first.take_while(|one| *one != function).collect();
        callers.into_iter().rev().find(|caller| self.has_most(*caller, all, at))
    }

    /// Whether nearly all of the cost at these stacks, which is `all`, is below a function.
    fn has_most(&self, function: FunctionId, all: Amount, at: impl Fn(StackId) -> bool) -> bool {
        let under = self.under(function);
        let inside = self.sum(|stack| under[stack.index()] && at(stack));
        inside.weight as f64 >= NEARLY_ALL * all.weight as f64
    }

    /// The nearest owned function above nearly all of a function's outermost calls; `None` at the top.
    pub fn common_owner_above(&self, function: FunctionId, under: &[bool]) -> Option<FunctionId> {
        let capture = self.capture();
        let mut callers = vec![Amount::default(); self.functions().len()];
        let mut all = Amount::default();
        let subtrees = self.cpu.subtrees(capture);
        for (index, node) in capture.stacks.iter().enumerate() {
            let is_outermost = self.functions().of_node(capture, StackId::from_index(index)) == function
                && !node.parent.is_some_and(|parent| under[parent.index()]);
            if !is_outermost {
                continue;
            }
            all += subtrees[index];
            let owner = node.parent.and_then(|parent| self.functions().attributed(parent));
            if let Some(owner) = owner {
                callers[owner.index()] += subtrees[index];
            }
        }
        let (caller, amount) = callers.iter().enumerate().max_by_key(|(_, amount)| amount.weight)?;
        let has_most = !all.is_zero() && amount.weight as f64 >= NEARLY_ALL * all.weight as f64;
        self.functions().all().map(|(id, _)| id).find(|id| has_most && id.index() == caller)
    }

    /// Owned functions by the CPU time of themselves and all they call, the largest first; of equal ones, callers first.
    pub fn inclusive(&self) -> Vec<(FunctionId, Amount)> {
        let sums = self.cpu.inclusive_by_function(self.capture(), self.functions());
        let mut found = self.largest_first(&sums, |function| self.functions().is_owner(function));
        let mut depths: Vec<usize> = Vec::with_capacity(self.capture().stacks.len());
        let mut least = vec![usize::MAX; self.functions().len()];
        for (index, node) in self.capture().stacks.iter().enumerate() {
            depths.push(node.parent.map_or(0, |parent| depths[parent.index()] + 1));
            let function = self.functions().of_node(self.capture(), StackId::from_index(index));
            least[function.index()] = least[function.index()].min(depths[index]);
        }
        found.sort_by_key(|(function, amount)| (Reverse(amount.weight), least[function.index()]));
        found
    }

    /// The functions with an amount, the largest first, then by name.
    fn largest_first(&self, sums: &[Amount], is_listed: impl Fn(FunctionId) -> bool) -> Vec<(FunctionId, Amount)> {
        let listed = self.functions().all().filter(|(id, _)| is_listed(*id)).map(|(id, _)| (id, sums[id.index()]));
        let mut found: Vec<_> = listed.filter(|(_, amount)| !amount.is_zero()).collect();
        found.sort_by(|a, b| b.1.weight.cmp(&a.1.weight).then_with(|| self.name(a.0).cmp(self.name(b.0))));
        found
    }

    /// Whether these stacks were sampled all the time: in nearly all the parts of the program's work that as many samples would
    /// be in if they came at random. A part is a twentieth of the samples, not of the time: on a busy machine the program works
    /// in bursts. Few samples show nothing. What is done within half of the time is no more than a piece
    /// of work. Without steps a program may load first, so that its work counts from the first of the samples on; it has to be in the
    /// first half of the recording.
    pub fn is_steady(&self, at: impl Fn(StackId) -> bool) -> bool {
        let span = self.span();
        let flagged = self.selection.samples().filter(|sample| sample.stack.is_some_and(&at));
        let mut times: Vec<u64> =
            flagged.filter_map(|sample| sample.time_ns).filter(|time| span.contains(time)).collect();
        times.sort_unstable();
        let Some(first) = times.first().copied().filter(|_| times.len() >= FEWEST_SAMPLES) else { return false };
        let start = if self.loops.is_some() { span.start } else { first };
        let (half, last) = ((span.end - span.start) / 2, times[times.len() - 1]);
        if start - span.start > half || last - first < half {
            return false;
        }
        let rank = |time: u64| self.sampled.partition_point(|one| *one < time);
        let (from, until) = (rank(start), rank(span.end));
        let mut met = [false; PARTS];
        for time in &times {
            met[((rank(*time) - from) * PARTS / (until - from).max(1)).min(PARTS - 1)] = true;
        }
        let met = met.iter().filter(|met| **met).count() as f64;
        let expected = PARTS as f64 * (1.0 - (1.0 - 1.0 / PARTS as f64).powi(times.len() as i32));
        met >= STEADY * expected
    }

    /// Whether these stacks were sampled in most parts of the recorded time. It is enough for what cannot be loading, where a busy
    /// machine leaves gaps.
    pub fn recurs(&self, at: impl Fn(StackId) -> bool + Copy) -> bool {
        let (span, mut tenths, mut count) = (self.span(), Tenths::default(), 0);
        for sample in self.selection.samples().filter(|sample| sample.stack.is_some_and(at)) {
            if let Some(time) = sample.time_ns.filter(|time| span.contains(time)) {
                tenths.meet(time, &span);
                count += 1;
            }
        }
        self.is_steady(at) || (count >= FEWEST_RECURRING && tenths.are_most())
    }

    /// Owned functions with at least `least` percent of work that counts, all the time; in loading at any time.
    pub fn lasting(
        &self,
        least: f64,
        counts: impl Fn(Work) -> bool + Copy,
    ) -> impl Iterator<Item = (FunctionId, Amount)> {
        let large = self.by_owner(counts).into_iter().filter(move |(_, amount)| self.share(*amount) >= least);
        large.filter(move |(owner, _)| self.is_loading() || self.is_steady(self.is_at(*owner, counts)))
    }

    /// The same by the function that each stack counts for. What comes back in a part of a run lasts, too.
    pub fn lasting_by(
        &self,
        least: f64,
        of: impl Fn(StackId) -> Option<FunctionId> + Copy,
    ) -> impl Iterator<Item = (FunctionId, Amount)> {
        let large = self.by_function(of).into_iter().filter(move |(_, amount)| self.share(*amount) >= least);
        large.filter(move |(one, _)| self.is_loading() || self.is_repeated(|stack| of(stack) == Some(*one)))
    }

    /// The time of the steps, or the recorded time without steps.
    pub fn span(&self) -> Range<u64> {
        match &self.loops {
            Some(loops) => loops.main().span.clone(),
            None => self.selection.window().unwrap_or(0..0),
        }
    }

    /// Takes what was found out about calls of this capture's functions; counts only if it has steps and CPU time.
    pub fn take_calls(&mut self, calls: &Calls) {
        if calls.is_empty() {
            return;
        }
        let inclusive = self.inclusive();
        // Python functions of several files may have one name: theirs is the whole one, with the file.
        let is_called = |function: FunctionId, name: &str| {
            self.name(function) == name || &*self.functions().get(function).name == name
        };
        let repeats = calls.repeats_of(self.capture()).filter_map(|one| {
            let &(function, amount) = inclusive.iter().find(|(function, _)| is_called(*function, &one.function))?;
            Some((function, amount, one.clone()))
        });
        self.repeats = repeats.collect();
        let Some((steps, _)) = self.steps().filter(|_| self.is_timed()) else { return };
        let rates = calls.of(self.capture()).filter_map(|one| {
            let &(function, amount) = inclusive.iter().find(|(function, _)| self.name(*function) == one.function)?;
            let call_ns = amount.weight as f64 / steps as f64 / one.per_step;
            (one.per_step > 0.0 && call_ns.is_finite()).then(|| Rate::of(function, one, call_ns))
        });
        self.calls = rates.collect();
    }

    /// Takes the loops of this capture's code.
    pub fn take_code(&mut self, code: &ReadCode) {
        let (capture, functions) = (self.capture(), self.functions());
        let costs = Costs { capture, functions, cpu: &self.cpu, work: &self.work };
        let (no_waits, straight_calls) = (no_waits(capture, &code.modules), straight_calls(capture, code));
        let looped_calls = looped_calls(capture, &code.modules);
        let questions = questions(&costs, &code.modules);
        let hot_loops = hot_loops(&costs, code, &questions);
        let raises = raises(capture, code);
        self.hot_loops = hot_loops;
        self.no_waits = no_waits;
        self.straight_calls = straight_calls;
        self.looped_calls = looped_calls;
        self.questions = questions;
        self.raises = raises;
    }

    /// Number of steps that costs are divided by, and their mean length in ns.
    pub fn steps(&self) -> Option<(usize, f64)> {
        let steps = self.loops.as_ref()?.main();
        Some((steps.count(), steps.times.mean()?))
    }

    /// What gains are a share of, in ns: the mean step, or the phase where there are no steps: its length, or the CPU time of all
    /// threads if that is longer. Waits for CPUs that other
    /// programs have do not count: who needs less CPU time waits less, too. Nor do sleeps that keep the pace, which get longer.
    pub fn whole_ns(&self) -> f64 {
        let whole = match (&self.path, self.steps()) {
            (Some(path), Some((_, mean))) => mean - path.background_ns as f64 / path.steps as f64 - self.pacing.ns,
            (None, Some((_, mean))) => mean - self.pacing.ns,
            // Threads that run at the same time have more CPU time than that.
            (_, None) => match self.selection.wall_ns().map(|wall| wall.saturating_sub(self.not_its_own_ns()) as f64) {
                Some(wall) if self.is_timed() => (wall - self.pacing.ns).max(self.total as f64),
                wall => wall.unwrap_or(self.total as f64),
            },
        };
        whole.max(1.0)
    }

    /// How long the busiest thread waited for a CPU, and the time of the recorder's probes.
    fn not_its_own_ns(&self) -> u64 {
        let of_probes = if self.is_timed() { u64::try_from(self.of_probes.weight).unwrap_or(u64::MAX) } else { 0 };
        self.delay_ns().saturating_add(of_probes)
    }

    fn delay_ns(&self) -> u64 {
        let cpu = self.selection.cpu_times();
        let busiest = (0..cpu.len()).filter(|&index| cpu[index].is_some()).max_by_key(|&index| cpu[index]);
        let window = self.selection.window().unwrap_or(0..0);
        busiest
            .and_then(|index| self.off_cpu.spent(ThreadId::from_index(index), window))
            .map_or(0, |spent| spent.runnable)
    }

    /// The waits of a thread, by start. Those whose stack was left out have that of a
    /// [similar wait](crate::query::thinned_stacks).
    pub fn waits(&self, thread: ThreadId) -> impl Iterator<Item = Wait> + '_ {
        self.off_cpu.rows_of(thread).map(|row| self.selection.completed_wait(row))
    }

    /// A gain of the CPU time of these samples, as a share of that of all threads.
    pub fn gain_of_samples<'r>(&self, samples: impl Iterator<Item = &'r Sample>) -> Gain {
        self.gain_of_parts(samples.map(|sample| (sample, 1.0)))
    }

    /// A gain of a part of the CPU time of each of these samples, as a share of that of all threads.
    pub fn gain_of_parts<'r>(&self, samples: impl Iterator<Item = (&'r Sample, f64)>) -> Gain {
        let all: u128 = self.selection.samples().map(|sample| u128::from(sample.weight)).sum();
        let add =
            |(sum, count): (f64, u64), (sample, part): (&Sample, f64)| (sum + part * sample.weight as f64, count + 1);
        let (sum, count) = samples.fold((0.0, 0), add);
        Gain { time: sampled(sum, count), whole_ns: (all as f64).max(1.0), basis: GainBasis::PhaseCpu }
    }

    /// The threads that run the main loop.
    pub fn loop_threads(&self) -> Vec<ThreadId> {
        let rows = self.loops.iter().flat_map(|loops| loops.main().rows());
        let mut threads: Vec<ThreadId> = rows.map(|step| step.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// What the step, or loading, gains without these parts of the stacks.
    pub fn gain(&self, without: &[f32]) -> Gain {
        let removed = |weights: &StackWeights| -> (f64, u64) {
            let parts = weights.occupied().map(|(stack, amount)| (without[stack.index()], amount));
            parts.filter(|(part, _)| *part > 0.0).fold((0.0, 0), |(sum, count), (part, amount)| {
                (sum + f64::from(part) * amount.weight as f64, count + amount.count)
            })
        };
        let (ns, samples, whole_ns, basis) = match (&self.path, self.steps()) {
            _ if !self.is_timed() => {
                let (weight, samples) = removed(&self.cpu);
                (weight, samples, self.total as f64, GainBasis::Share)
            }
            (Some(path), Some(_)) => {
                let parts = path.gain_bounds().map(removed);
                let ns: f64 = parts.iter().map(|(ns, _)| ns).sum();
                let samples = parts.iter().map(|(_, samples)| samples).sum();
                (ns / path.steps as f64, samples, self.whole_ns(), GainBasis::CriticalPath)
            }
            (None, Some((steps, _))) => {
                let (ns, samples) = removed(&self.cpu);
                (ns / steps as f64, samples, self.whole_ns(), GainBasis::StepCpu)
            }
            (_, None) => {
                let (ns, samples) = removed(&self.cpu);
                (ns, samples, self.whole_ns(), GainBasis::PhaseCpu)
            }
        };
        let time = sampled(ns.min(whole_ns), samples);
        let time = Estimate { high: time.high.min(whole_ns), ..time };
        Gain { time, whole_ns, basis }
    }

    /// The file and line of a function's heaviest place.
    pub fn place(&self, function: FunctionId) -> Option<(String, u32)> {
        let capture = self.capture();
        let mut of_frame = vec![0_u128; capture.frames.len()];
        for (index, amount) in self.cpu.subtrees(capture).iter().enumerate() {
            of_frame[capture.stacks[index].frame.index()] += amount.weight;
        }
        let frames = capture.frames.iter().zip(&of_frame).enumerate();
        let places = frames
            .filter(|(index, _)| self.functions().of_frame(stepscope_model::FrameId::from_index(*index)) == function);
        let (_, (frame, _)) =
            places.filter(|(_, (frame, _))| frame.line.is_some()).max_by_key(|(_, (_, weight))| **weight)?;
        // A path within the program's folder, as its repository has it.
        let file = frame.file.as_ref()?;
        let folder = capture.info.working_directory.as_deref().unwrap_or("/");
        let inside = file.strip_prefix(folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
        Some((inside.filter(|_| folder != "/").unwrap_or(file).to_owned(), frame.line?))
    }
}

/// Takes out what the recorder's probes cost: the traps of its breakpoints, where it counts steps or looks for them.
fn take_probes(cpu: &mut StackWeights, selection: &Selection<'_>) -> Amount {
    const TRAPS: [&str; 3] = ["asm_exc_int3", "asm_exc_debug", "uprobe_notify_resume"];
    let (capture, functions) = (selection.capture(), selection.functions());
    let traps: Vec<bool> = functions.all().map(|(_, function)| is_of_kernel(function, &TRAPS)).collect();
    let within = functions.paths_through(capture, &traps);
    let probed: Vec<StackId> = cpu.occupied().map(|(stack, _)| stack).filter(|stack| within[stack.index()]).collect();
    probed.into_iter().map(|stack| std::mem::take(&mut cpu.own[stack.index()])).sum()
}

/// Whether it is no owned function, and its name begins like this.
pub(super) fn is_one_of(function: &Function, starts: &[&str]) -> bool {
    let own = own_name(&function.name);
    let own = without_version(&own);
    !function.owned && starts.iter().any(|start| own.starts_with(start))
}

/// Whether it is one of these functions of the kernel.
pub(super) fn is_of_kernel(function: &Function, names: &[&str]) -> bool {
    function.kind == FrameKind::Kernel && names.contains(&kernel_name(&function.name))
}

/// All of the flagged stacks, nothing of the others.
pub(super) fn parts(flags: impl Iterator<Item = bool>) -> Vec<f32> {
    flags.map(|flag| if flag { 1.0 } else { 0.0 }).collect()
}

//! Simulation steps: which there are, and what belongs to which.
//!
//! The one place that knows how samples, waits and running time are given to steps. Everything per step elsewhere (RTF,
//! cost per step, slow steps, critical path) asks here.
//!
//! # Loops
//! A capture may hold several simulation loops: those of several processes, or of several threads of one. Steps of one
//! process that do not overlap are one loop, whichever of its threads ran them; if they overlap, each thread has its own.
//! Steps of one loop never overlap: where a source says otherwise, a step ends where the next one begins.
//!
//! The *main* loop is that with most steps (of equal ones that with most time in them, then the first) among those that
//! the selected threads belong to. Tables about steps are about it.
//!
//! # What belongs to a step
//! A thread belongs to exactly one loop: to its own if it runs one, else to its process' (the main one of those), else to the
//! main loop of the capture. What a thread does at a moment belongs to the step of its loop that holds the moment.
//! A step holds its begin and not its end, so a sample at a boundary belongs to the step that begins there, and none is
//! counted twice. Waits, lifetimes and with them running time are cut at the boundaries, to the nanosecond.
//! Before the first step, after the last one and in gaps between steps nothing belongs to any.
//!
//! So a worker's sample belongs to the step during which it was taken, even if the worker computes for a later one: steps
//! are intervals of time, and nothing recorded says for which of them a worker works.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Counts, ProcessId, Sample, Step, ThreadId};
use stepscope_stats::Distribution;

use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The steps of one loop that lie within the selected time, in order, none overlapping another.
#[derive(Debug, Clone)]
pub struct Steps {
    rows: Vec<Step>,
    /// Time in the steps before each one.
    before: Vec<u64>,
    /// How long each took, in ns.
    pub times: Distribution,
    /// From the start of the first one to the end of the last one.
    pub span: Range<u64>,
    /// Simulated time over wall time, from the end of the first step with a simulated time to that of the last one.
    pub real_time_factor: Option<f64>,
    first: Option<Step>,
}

impl Steps {
    /// The steps of the selection's main loop that lie whole within the selected time; `None` if there are none.
    ///
    /// Steps are of the simulation, not of a thread: filters on threads choose the loop, and leave its steps alone.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        Some(Loops::of(selection)?.into_main())
    }

    fn within(all: Vec<Step>, window: Option<&Range<u64>>) -> Self {
        let first = all.first().copied();
        let inside =
            |step: &Step| window.is_none_or(|window| step.start_ns >= window.start && step.end_ns <= window.end);
        let rows: Vec<Step> = all.into_iter().filter(inside).collect();
        let before = rows.iter().scan(0, |sum, step| {
            let before = *sum;
            *sum += step.end_ns - step.start_ns;
            Some(before)
        });
        Self {
            before: before.collect(),
            times: rows.iter().map(|step| step.end_ns - step.start_ns).collect(),
            span: rows.first().map_or(0, |step| step.start_ns)..rows.last().map_or(0, |step| step.end_ns),
            real_time_factor: real_time_factor(&rows),
            rows,
            first,
        }
    }

    /// The steps, in order.
    pub fn rows(&self) -> &[Step] {
        &self.rows
    }

    /// Number of steps.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The loop's first step, if it is among these: it loads what later ones use, and is told apart.
    pub fn first(&self) -> Option<&Step> {
        self.rows.first().filter(|row| Some(**row) == self.first)
    }

    /// Positions of all steps but the loop's first one.
    pub fn after_first(&self) -> Range<usize> {
        usize::from(self.first().is_some())..self.count()
    }

    /// When a step began and ended.
    pub fn range(&self, position: usize) -> Range<u64> {
        self.rows[position].start_ns..self.rows[position].end_ns
    }

    /// How long a step took, in ns.
    pub fn duration(&self, position: usize) -> u64 {
        self.rows[position].end_ns - self.rows[position].start_ns
    }

    /// Position of the step that holds a moment.
    pub fn at(&self, time_ns: u64) -> Option<usize> {
        let position = self.rows.partition_point(|step| step.start_ns <= time_ns).checked_sub(1)?;
        (time_ns < self.rows[position].end_ns).then_some(position)
    }

    /// The parts of a range of time that lie in steps, with the steps' positions.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> + '_ {
        let met = self.met_by(&range);
        let first = met.start;
        self.rows[met].iter().enumerate().filter_map(move |(index, step)| {
            let (start, end) = (range.start.max(step.start_ns), range.end.min(step.end_ns));
            (start < end).then_some((first + index, start..end))
        })
    }

    fn met_by(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.rows.partition_point(|step| step.end_ns <= range.start);
        let end = first + self.rows[first..].partition_point(|step| step.start_ns < range.end);
        first..end
    }

    /// The same, sooner if it begins soon after the position `near`: waits come in order.
    fn met_near(&self, near: usize, range: &Range<u64>) -> Range<usize> {
        const SOON: usize = 8;
        let is_past = |position: usize| position == 0 || self.rows[position - 1].end_ns <= range.start;
        let until = (near + SOON).min(self.count());
        let first = (near..until).find(|position| self.rows[*position].end_ns > range.start);
        let Some(first) = first.filter(|_| is_past(near)) else { return self.met_by(range) };
        let until = (first + SOON).min(self.count());
        match (first..until).find(|position| self.rows[*position].start_ns >= range.end) {
            Some(end) => first..end,
            None => first..first + self.rows[first..].partition_point(|step| step.start_ns < range.end),
        }
    }

    /// How much of a range of time lies in steps.
    pub fn time_within(&self, range: &Range<u64>) -> u64 {
        self.time_before(range.end).saturating_sub(self.time_before(range.start))
    }

    /// How much time before a moment lies in steps.
    fn time_before(&self, time_ns: u64) -> u64 {
        let begun = self.rows.partition_point(|step| step.start_ns < time_ns);
        let Some(last) = begun.checked_sub(1) else { return 0 };
        self.before[last] + time_ns.min(self.rows[last].end_ns) - self.rows[last].start_ns
    }

    /// How much of the given ranges of time, added up, lies in each step.
    pub fn time_in_each(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<u64> {
        let mut parts = vec![0_u64; self.count()];
        // How many ranges more cover a whole step than its predecessor: a thread that sleeps through all steps costs two
        // additions, and not one a step.
        let mut covering = vec![0_i64; self.count() + 1];
        let mut near = 0;
        for range in ranges {
            let met = self.met_near(near, &range);
            near = met.start;
            for position in [met.start, met.end.wrapping_sub(1)].into_iter().take(met.len()) {
                let step = &self.rows[position];
                let part = range.end.min(step.end_ns).saturating_sub(range.start.max(step.start_ns));
                parts[position] = parts[position].saturating_add(part);
            }
            if met.len() > 2 {
                covering[met.start + 1] += 1;
                covering[met.end - 1] -= 1;
            }
        }
        let mut covers = 0_i64;
        for (position, part) in parts.iter_mut().enumerate() {
            covers += covering[position];
            *part = part.saturating_add(self.duration(position).saturating_mul(covers.unsigned_abs()));
        }
        parts
    }
}

fn real_time_factor(steps: &[Step]) -> Option<f64> {
    let (wall, simulated) = simulated(steps)?;
    (wall > 0).then(|| simulated as f64 / wall as f64)
}

/// Wall time and simulated time from the end of the first step with a simulated time to that of the last one.
pub(crate) fn simulated(steps: &[Step]) -> Option<(u64, u64)> {
    let known = || steps.iter().filter_map(|step| Some((step.end_ns, step.sim_time_ns?)));
    let (first, last) = (known().min()?, known().max()?);
    Some((last.0 - first.0, last.1.checked_sub(first.1)?))
}

/// All loops of a capture, and which of them each thread belongs to.
#[derive(Debug, Clone)]
pub struct Loops {
    loops: Vec<Steps>,
    of_thread: Vec<usize>,
    main: usize,
}

impl Loops {
    /// The loops of a capture, with their steps within the selected time; `None` if the main loop has none.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        let capture = selection.capture();
        let window = selection.window();
        let loops: Vec<Steps> =
            told_apart(capture).into_iter().map(|steps| Steps::within(steps, window.as_ref())).collect();
        let main = main(loops.iter().enumerate())?;
        let mut found = Self { of_thread: vec![main; capture.threads.len()], loops, main };
        found.assign(capture);
        if selection.filters_threads() {
            let mut chosen: Vec<usize> = selection.threads().map(|(id, _)| found.of_thread[id.index()]).collect();
            chosen.sort_unstable();
            chosen.dedup();
            found.main = main_of(&found.loops, &chosen)?;
        }
        (found.main().count() > 0).then_some(found)
    }

    fn assign(&mut self, capture: &Capture) {
        let mut by_process: FxHashMap<ProcessId, Vec<usize>> = FxHashMap::default();
        let mut own: FxHashMap<ThreadId, Vec<usize>> = FxHashMap::default();
        for (index, steps) in self.loops.iter().enumerate() {
            let Some(first) = steps.first else { continue };
            if let Some(process) = capture.threads[first.thread.index()].process {
                by_process.entry(process).or_default().push(index);
            }
            let mut last = None;
            for step in steps.rows.iter().chain([&first]).filter(|step| last.replace(step.thread) != Some(step.thread))
            {
                own.entry(step.thread).or_default().push(index);
            }
        }
        for (index, thread) in capture.threads.iter().enumerate() {
            let of_process = || by_process.get(&thread.process?);
            if let Some(loops) = own.get(&ThreadId::from_index(index)).or_else(of_process) {
                self.of_thread[index] = main_of(&self.loops, loops).unwrap_or(self.main);
            }
        }
    }

    /// The loop that tables about steps are about.
    pub fn main(&self) -> &Steps {
        &self.loops[self.main]
    }

    /// The same, without the others.
    pub fn into_main(mut self) -> Steps {
        self.loops.swap_remove(self.main)
    }

    /// All loops with steps, the main one first, then in order of their first steps.
    pub fn all(&self) -> impl Iterator<Item = &Steps> {
        let others = self.loops.iter().enumerate().filter(|(index, _)| *index != self.main).map(|(_, steps)| steps);
        [self.main()].into_iter().chain(others).filter(|steps| steps.count() > 0)
    }

    /// Number of loops with steps.
    pub fn count(&self) -> usize {
        self.all().count()
    }

    /// The loop that a thread belongs to.
    pub fn of_thread(&self, thread: ThreadId) -> &Steps {
        &self.loops[self.of_thread[thread.index()]]
    }

    /// Every loop of the capture, with steps or without.
    pub(crate) fn each(&self) -> &[Steps] {
        &self.loops
    }

    /// The place in [`each`](Self::each) of the loop that a thread belongs to.
    pub(crate) fn number_of(&self, thread: ThreadId) -> usize {
        self.of_thread[thread.index()]
    }

    /// Whether a thread belongs to the main loop.
    pub fn in_main(&self, thread: ThreadId) -> bool {
        self.of_thread[thread.index()] == self.main
    }

    /// The loop and the position of the step in it that a sample belongs to.
    pub fn step_of(&self, sample: &Sample) -> Option<(&Steps, usize)> {
        let steps = self.of_thread(sample.thread);
        Some((steps, steps.at(sample.time_ns?)?))
    }

    /// Position of the step of the main loop that a sample belongs to.
    pub fn main_step_of(&self, sample: &Sample) -> Option<usize> {
        if self.in_main(sample.thread) { self.main().at(sample.time_ns?) } else { None }
    }

    /// The selected samples that belong to a step, as they would weigh if every loop had had as many steps as the main one:
    /// divided by the number of those this is what one step costs, also where loops differ. With one loop it is their
    /// weight.
    pub fn sample_weights(&self, selection: &Selection<'_>) -> StackWeights {
        let mut weights = StackWeights::none(selection.capture());
        let Some(event) = selection.event() else { return weights };
        weights.counts_known = event.counts != Counts::Unknown;
        let factors = self.factors();
        for sample in selection.samples() {
            let Some(time) = sample.time_ns else { continue };
            let steps = self.of_thread[sample.thread.index()];
            if self.loops[steps].at(time).is_none() {
                continue;
            }
            let weight = factors[steps].apply(u128::from(sample.weight));
            *weights.at(sample.stack) += Amount { weight, count: event.count_of(sample.weight).unwrap_or(0) };
        }
        weights
    }

    /// The same of the selected waits' blocked time in ns.
    pub fn blocked_weights(&self, selection: &Selection<'_>) -> StackWeights {
        let mut weights = StackWeights::none(selection.capture());
        weights.counts_known = true;
        let factors = self.factors();
        for wait in selection.waits() {
            let blocked = wait.start_ns..wait.start_ns + crate::query::weights::blocked_ns(&wait);
            if blocked.is_empty() {
                continue;
            }
            let steps = self.of_thread[wait.thread.index()];
            let inside = self.loops[steps].time_within(&blocked);
            if inside > 0 {
                *weights.at(wait.stack) += Amount { weight: factors[steps].apply(inside.into()), count: 1 };
            }
        }
        weights
    }

    /// A weight of this thread as it would be if every loop had had as many steps as the main one: see
    /// [`sample_weights`](Self::sample_weights).
    pub(crate) fn as_in_main(&self, thread: ThreadId, weight: u128) -> u128 {
        let times = self.main().count() as u64;
        Factor { times, over: (self.of_thread(thread).count() as u64).max(1) }.apply(weight)
    }

    fn factors(&self) -> Vec<Factor> {
        let times = self.main().count() as u64;
        // Nothing belongs to a loop without steps, so that its factor is of no account.
        let factor = |steps: &Steps| Factor { times, over: (steps.count() as u64).max(1) };
        self.loops.iter().map(factor).collect()
    }
}

/// A ratio to multiply weights by.
#[derive(Debug, Clone, Copy)]
struct Factor {
    times: u64,
    over: u64,
}

impl Factor {
    fn apply(self, weight: u128) -> u128 {
        if self.times == self.over {
            return weight;
        }
        weight.saturating_mul(self.times.into()) / u128::from(self.over)
    }
}

/// The loops of a capture: steps in order, none overlapping another of its loop.
fn told_apart(capture: &Capture) -> Vec<Vec<Step>> {
    let mut steps = capture.steps.clone();
    steps.sort_unstable_by_key(|step| (step.start_ns, step.end_ns, step.index, step.thread));
    let mut order: Vec<Option<ProcessId>> = Vec::new();
    let mut by_process: FxHashMap<Option<ProcessId>, Vec<Step>> = FxHashMap::default();
    for step in steps {
        let process = capture.threads[step.thread.index()].process;
        let of_process = by_process.entry(process).or_insert_with(|| {
            order.push(process);
            Vec::new()
        });
        of_process.push(step);
    }
    let mut loops = Vec::new();
    for process in order {
        let steps = by_process.remove(&process).expect("every process in the order has steps");
        let threads_overlap = |pair: &[Step]| pair[0].end_ns > pair[1].start_ns && pair[0].thread != pair[1].thread;
        if steps.windows(2).any(threads_overlap) { loops.extend(by_thread(steps)) } else { loops.push(steps) }
    }
    loops.iter_mut().for_each(|steps| end_where_the_next_begins(steps));
    loops
}

fn by_thread(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut places: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let mut loops: Vec<Vec<Step>> = Vec::new();
    for step in steps {
        let place = *places.entry(step.thread).or_insert_with(|| {
            loops.push(Vec::new());
            loops.len() - 1
        });
        loops[place].push(step);
    }
    loops
}

fn end_where_the_next_begins(steps: &mut [Step]) {
    for index in 1..steps.len() {
        let next = steps[index].start_ns;
        steps[index - 1].end_ns = steps[index - 1].end_ns.min(next);
    }
}

fn main_of(loops: &[Steps], among: &[usize]) -> Option<usize> {
    main(among.iter().map(|&index| (index, &loops[index])))
}

/// Most steps, then most time in them; of equal ones the first.
fn main<'a>(loops: impl Iterator<Item = (usize, &'a Steps)>) -> Option<usize> {
    let rank = |steps: &Steps| (steps.count(), steps.times.sum());
    let best = loops.reduce(|best, one| if rank(one.1) > rank(best.1) { one } else { best });
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};
    use crate::query::select::{Filter, TimeRange};

    #[test]
    fn the_real_time_factor_is_simulated_over_wall_time() {
        let capture = Drawing::new().window(0..100_000).steps("main", 1_000, 2_000, 10, 1_000).capture;
        let steps = drawn::selected(&capture, &[], Steps::of).unwrap();
        assert_eq!((steps.count(), steps.span, steps.real_time_factor), (10, 1_000..21_000, Some(0.5)));
        assert_eq!(steps.times.median(), Some(2_000));
    }

    #[test]
    fn one_step_has_no_real_time_factor() {
        let capture = Drawing::new().window(0..100).steps("main", 10, 20, 1, 1).capture;
        assert_eq!(drawn::selected(&capture, &[], Steps::of).unwrap().real_time_factor, None);
    }

    #[test]
    fn only_steps_that_lie_whole_within_a_range_count() {
        let capture = Drawing::new().window(0..100).steps("main", 0, 10, 10, 5).capture;
        let filter = Filter { time: Some(TimeRange { from_ns: 15, to_ns: Some(55) }), ..Filter::default() };
        let steps = drawn::filtered(&capture, &[], &filter, Steps::of).unwrap();
        assert_eq!((steps.count(), steps.span.clone()), (3, 20..50));
        assert_eq!((steps.first(), steps.after_first()), (None, 0..3));
    }

    #[test]
    fn no_steps_are_none() {
        assert!(drawn::selected(&drawn::folded("main;a 1"), &[], Steps::of).is_none());
    }

    #[test]
    fn a_moment_at_a_boundary_belongs_to_the_step_that_begins_there() {
        let capture = Drawing::new().window(0..100).steps("main", 10, 10, 3, 5).capture;
        let steps = drawn::selected(&capture, &[], Steps::of).unwrap();
        assert_eq!(
            [9, 10, 19, 20, 39, 40].map(|time| steps.at(time)),
            [None, Some(0), Some(0), Some(1), Some(2), None]
        );
        assert_eq!(steps.first().map(|step| step.start_ns), Some(10));
        assert_eq!(steps.pieces(5..25).collect::<Vec<_>>(), [(0, 10..20), (1, 20..25)]);
        assert_eq!(steps.time_in_each([5..25, 0..100, 12..13]), [10 + 10 + 1, 5 + 10, 10]);
        assert_eq!([5..25, 0..100, 12..13, 50..60].map(|range| steps.time_within(&range)), [15, 30, 1, 0]);
    }

    #[test]
    fn steps_of_two_threads_that_overlap_are_two_loops_and_workers_are_of_the_main_one() {
        let capture = Drawing::new()
            .window(0..1_000)
            .process(1, "sim")
            .steps("physics", 0, 10, 50, 1)
            .steps("render", 5, 100, 5, 1)
            .lived("worker", 0..1_000, None)
            .process(2, "gui")
            .lived("gui", 0..1_000, None)
            .capture;
        let loops = drawn::selected(&capture, &[], Loops::of).unwrap();
        let counts: Vec<usize> = (0..4).map(|thread| loops.of_thread(ThreadId(thread)).count()).collect();
        assert_eq!((counts, loops.count()), (vec![50, 5, 50, 50], 2));
        let filter = Filter { threads: vec!["render".parse().unwrap()], ..Filter::default() };
        let steps = drawn::filtered(&capture, &[], &filter, Steps::of).unwrap();
        assert_eq!(steps.count(), 5);
    }

    #[test]
    fn steps_that_one_process_runs_on_changing_threads_are_one_loop() {
        let capture =
            Drawing::new().window(0..100).process(1, "sim").steps("a", 0, 10, 2, 1).steps("b", 20, 10, 2, 1).capture;
        let loops = drawn::selected(&capture, &[], Loops::of).unwrap();
        assert_eq!((loops.count(), loops.main().count()), (1, 4));
    }

    #[test]
    fn a_process_with_a_loop_of_its_own_pays_for_its_own_steps() {
        let capture = Drawing::new()
            .window(0..100)
            .process(1, "sim")
            .steps("sim", 0, 10, 10, 1)
            .process(2, "gui")
            .steps("gui", 0, 50, 2, 1)
            .folded(stepscope_model::Event::sampled("cpu-clock", "ns"), "@5 sim;a 10\n@60 gui;b 10\n@100 gui;b 10")
            .capture;
        drawn::selected(&capture, &[], |selection| {
            let loops = Loops::of(selection).unwrap();
            // 10 in each of 10 steps is 1 a step; 10 in 2 steps is 5 a step, as 50 would be in 10.
            assert_eq!(loops.sample_weights(selection).total(), Amount { weight: 10 + 50, count: 2 });
        });
    }

    #[test]
    fn a_step_that_outlasts_the_next_begin_ends_there() {
        let mut drawing = Drawing::new().window(0..100).steps("main", 0, 10, 3, 1);
        drawing.capture.steps[0].end_ns = 15;
        let steps = drawn::selected(&drawing.capture, &[], Steps::of).unwrap();
        assert_eq!((steps.range(0), steps.range(1)), (0..10, 10..20));
    }
}

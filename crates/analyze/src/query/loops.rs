//! [`Loops`]: the simulation loops of a capture, and their [`Steps`].
//!
//! A capture may hold several loops: those of several processes, or of several threads of one process. Steps of one
//! process that do not overlap are one loop, whichever of its threads ran them. If they overlap, each thread has its own
//! loop. Steps of one loop never overlap: where a source says otherwise, a step ends where the next one starts.
//!
//! The *main* loop is the one with most steps among those of the selected threads (then with most time in steps, then
//! the first). Tables about steps are about it.
//!
//! Each thread belongs to exactly one loop: to its own if it runs one, else to the main loop of its process, else to the
//! main loop of the capture.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, ProcessId, Sample, Step, ThreadId};
use stepscope_stats::Distribution;

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
    fn within(all: Vec<Step>, window: Option<&Range<u64>>) -> Self {
        let first = all.first().copied();
        let inside =
            |step: &Step| window.is_none_or(|window| step.start_ns >= window.start && step.end_ns <= window.end);
        let mut rows = all;
        if window.is_some() {
            rows.retain(inside);
        }
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

    /// The loop's first step, if it is among these. It loads what later steps use, so analyses treat it separately.
    pub fn first(&self) -> Option<&Step> {
        self.rows.first().filter(|row| Some(**row) == self.first)
    }

    /// Positions of all steps but the loop's first one.
    pub fn after_first(&self) -> Range<usize> {
        usize::from(self.first().is_some())..self.count()
    }

    /// How long each took but the loop's first one, in ns: what figures of step times are of.
    pub fn times_after_first(&self) -> Distribution {
        self.after_first().map(|position| self.duration(position)).collect()
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
        let started = self.rows.partition_point(|step| step.start_ns < time_ns);
        let Some(last) = started.checked_sub(1) else { return 0 };
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
    /// The loops of a capture, with their steps within a range of time, and the main one among those of the `chosen`
    /// threads. `None` if the main loop has no steps.
    pub(crate) fn find(capture: &Capture, window: Option<&Range<u64>>, chosen: Option<&[bool]>) -> Option<Self> {
        let loops: Vec<Steps> = separate(capture).into_iter().map(|steps| Steps::within(steps, window)).collect();
        let main = main(loops.iter().enumerate())?;
        let mut found = Self { of_thread: vec![main; capture.threads.len()], loops, main };
        found.assign(capture);
        if let Some(chosen) = chosen {
            let of_chosen = found.of_thread.iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen);
            let mut loops: Vec<usize> = of_chosen.map(|(of_thread, _)| *of_thread).collect();
            loops.sort_unstable();
            loops.dedup();
            found.main = main_of(&found.loops, &loops)?;
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

    /// A weight of this thread as it would be if every loop had had as many steps as the main one: see
    /// [`sample_weights`](Self::sample_weights).
    pub(crate) fn as_in_main(&self, thread: ThreadId, weight: u128) -> u128 {
        let times = self.main().count() as u64;
        Factor { times, over: (self.of_thread(thread).count() as u64).max(1) }.apply(weight)
    }

    pub(crate) fn factors(&self) -> Vec<Factor> {
        let times = self.main().count() as u64;
        // Nothing belongs to a loop without steps, so that its factor is of no account.
        let factor = |steps: &Steps| Factor { times, over: (steps.count() as u64).max(1) };
        self.loops.iter().map(factor).collect()
    }
}

/// A ratio to multiply weights by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor {
    times: u64,
    over: u64,
}

impl Factor {
    pub(crate) fn apply(self, weight: u128) -> u128 {
        if self.times == self.over {
            return weight;
        }
        weight.saturating_mul(self.times.into()) / u128::from(self.over)
    }
}

/// The loops of a capture: steps in order, none overlapping another of its loop.
fn separate(capture: &Capture) -> Vec<Vec<Step>> {
    let mut steps = capture.steps.to_vec();
    // They mostly are in order, and there may be millions.
    if !steps.windows(2).all(|pair| pair[0].start_ns < pair[1].start_ns) {
        steps.sort_unstable_by_key(|step| (step.start_ns, step.end_ns, step.index, step.thread));
    }
    let mut order: Vec<Option<ProcessId>> = Vec::new();
    let mut by_process: FxHashMap<Option<ProcessId>, Vec<Step>> = FxHashMap::default();
    for of_thread in steps.chunk_by(|a, b| a.thread == b.thread) {
        let process = capture.threads[of_thread[0].thread.index()].process;
        let of_process = by_process.entry(process).or_insert_with(|| {
            order.push(process);
            Vec::new()
        });
        of_process.extend_from_slice(of_thread);
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

//! A capture that grows while its log is written: for who looks at a program while it runs.

use std::collections::HashMap;
use std::mem;

use stepscope_model::{Capture, Counter, Sample, Scope, Step, ThreadId, Wait};

use super::Builder;
use crate::code_names::{Asked, NamedCode, Unnamed};
use crate::entry::{self, Entry, MarkThreadRef, Sink};
use crate::marks::{self, Intervals};
use crate::nesting::{Interval, Nesting};
use crate::rows::{Reading, sample_row, wait_row};
use crate::steps::{StepMaker, StepStart};
use crate::symbols::Symbols;

/// Starts of steps are in order up to this long before the latest entry.
const ORDERED_AFTER_NS: u64 = 100_000_000;
/// A mark of a thread that is not known yet waits for as many calls of [`Growing::grow`]: the record of the thread's start may
/// come a little later.
const MOST_ROUNDS: u32 = 4;

/// Collects entries, and gives the rows that they make as soon as these are complete.
///
/// Unlike [`Builder::build`], it does not wait for the end. So it differs from the finished capture in this:
///
/// - A sample weighs what its timer says. The finished capture shares the exact CPU time of a thread among its samples.
/// - A wait ends with its record, without the kernel's cost of the switch.
/// - The depth of a scope counts the scopes of the same call of [`grow`](Self::grow): who encloses them is known when it ends.
///
/// Handles are those of [`capture`](Self::capture), whose tables without times only grow. Its threads that still run have the
/// CPU time until their last wait, and end at their last known time.
#[derive(Default)]
pub struct Growing {
    builder: Builder,
    mark_threads: Vec<Option<ThreadId>>,
    intervals: Intervals,
    steps: StepMaker,
    /// Marks of threads that are not known yet, and for how many rounds they have waited.
    waiting: Vec<(Entry, u32)>,
    marks_without_thread: u64,
    /// The last known time of each thread.
    lives: Vec<u64>,
    /// Whether code is out for its names.
    is_naming: bool,
}

/// Rows that became complete.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    /// By time.
    pub samples: Vec<Sample>,
    /// By start.
    pub waits: Vec<Wait>,
    /// By start.
    pub steps: Vec<Step>,
    /// By thread and start.
    pub scopes: Vec<Scope>,
    /// In the order of the log.
    pub counters: Vec<Counter>,
}

impl Sink for Growing {
    fn take(&mut self, entry: Entry) {
        self.builder.take(entry);
    }
}

impl Growing {
    /// Processes, threads, modules, frames and stacks so far. It has no rows.
    pub fn capture(&self) -> &Capture {
        &self.builder.capture
    }

    /// The same, to put rows into it for a while.
    pub fn capture_mut(&mut self) -> &mut Capture {
        &mut self.builder.capture
    }

    /// The latest time in the log.
    pub fn last_ns(&self) -> Option<u64> {
        self.builder.last_ns
    }

    /// Whether the log has its end.
    pub fn has_ended(&self) -> bool {
        self.builder.ended
    }

    /// Marks that were lost, because they were made faster than they could be read.
    pub fn lost_marks(&self) -> u64 {
        self.builder.marks.lost()
    }

    /// Marks that are left out, because no record of their thread was found.
    pub fn marks_without_thread(&self) -> u64 {
        self.marks_without_thread
    }

    /// Names the code of new entries, and gives the new rows.
    pub fn grow(&mut self, symbols: &mut impl Symbols) -> Rows {
        if let Some(unnamed) = self.unnamed() {
            self.add_names(unnamed.name(symbols));
        }
        self.rows()
    }

    /// Code of new entries that has no names; `None` if there is none, or other code waits for its names. Naming takes long,
    /// and needs nothing of this.
    pub fn unnamed(&mut self) -> Option<Unnamed> {
        if self.is_naming {
            return None;
        }
        let unnamed = Some(self.builder.code.unnamed(Asked::WithFrames)).filter(|unnamed| !unnamed.is_empty());
        self.is_naming = unnamed.is_some();
        unnamed
    }

    /// Adds the names of [`unnamed`](Self::unnamed) code.
    pub fn add_names(&mut self, named: NamedCode) {
        self.is_naming = false;
        self.builder.code.add_names(named, &mut self.builder.capture);
    }

    /// The time from which samples and waits wait for the names of their stacks; `None` if none waits.
    pub fn nameless_since(&self) -> Option<u64> {
        let Builder { samples, waits, .. } = &self.builder;
        let sample_ns = samples.first().map(|sample| sample.time_ns.unwrap_or(0));
        sample_ns.into_iter().chain(waits.first().map(|wait| wait.end_ns)).min()
    }

    /// Whether all code has names, and all rows were given.
    pub fn is_named(&self) -> bool {
        !self.is_naming && self.nameless_since().is_none()
    }

    /// The last known time of a thread some of whose rows may wait for names; `None` if all rows are known.
    pub fn known_until(&self, thread: ThreadId) -> Option<u64> {
        self.nameless_since().map(|_| self.lives.get(thread.index()).copied().unwrap_or(0))
    }

    /// The new rows. Samples and waits come in the order of the log, up to the first one whose stack has no names.
    pub fn rows(&mut self) -> Rows {
        let builder = &mut self.builder;
        builder.code.add_nodes(&mut builder.capture);
        let code = &builder.code;
        let named = builder.samples.iter().take_while(|sample| code.is_named(sample.stack)).count();
        let samples: Vec<_> = builder.samples.drain(..named).collect();
        let is_named = |wait: &&entry::Wait| code.is_named(wait.stack) && code.is_named(wait.waker_stack);
        let named = builder.waits.iter().take_while(is_named).count();
        let waits: Vec<_> = builder.waits.drain(..named).collect();
        let node = |stack| builder.code.node(stack);
        let mut rows = Rows {
            samples: samples.iter().map(|sample| sample_row(sample, node(sample.stack))).collect(),
            waits: waits.iter().map(|wait| wait_row(wait, node(wait.stack), node(wait.waker_stack))).collect(),
            ..Rows::default()
        };
        self.note_times(&rows);
        rows.samples.sort_by_key(|sample| sample.time_ns);
        rows.waits.sort_by_key(|wait| wait.start_ns);
        self.find_mark_threads();
        let mut scopes: HashMap<u32, Vec<Interval<ThreadId>>> = HashMap::new();
        let waiting = mem::take(&mut self.waiting).into_iter();
        let new = mem::take(&mut self.builder.others).into_iter().map(|entry| (entry, 0));
        for (entry, rounds) in waiting.chain(new).collect::<Vec<_>>() {
            self.add_other(entry, rounds, &mut rows, &mut scopes);
        }
        let until_ns = match self.builder.ended {
            true => u64::MAX,
            false => self.builder.last_ns.unwrap_or(0).saturating_sub(ORDERED_AFTER_NS),
        };
        self.steps.release(until_ns, |step| rows.steps.push(step));
        let (_, names) = self.builder.marks.known();
        for scopes in scopes.into_values() {
            let add = |interval, depth| rows.scopes.push(marks::scope(names, &interval, depth));
            Nesting::at_once(scopes).finish(add);
        }
        rows.scopes.sort_by_key(|scope| (scope.thread, scope.start_ns));
        rows
    }

    /// Notes the known times of the threads that still run.
    fn note_times(&mut self, rows: &Rows) {
        let Builder { capture, running, last_ns, ended, .. } = &mut self.builder;
        if !*ended {
            capture.info.end_ns = capture.info.end_ns.max(*last_ns);
        }
        self.lives.resize(capture.threads.len(), 0);
        let samples = rows.samples.iter().filter_map(|sample| Some((sample.thread, sample.time_ns?)));
        for (thread, time_ns) in rows.waits.iter().map(|wait| (wait.thread, wait.end_ns)).chain(samples) {
            let last_ns = &mut self.lives[thread.index()];
            *last_ns = time_ns.max(*last_ns);
        }
        for ((thread, run), last_ns) in capture.threads.iter_mut().zip(&running.threads).zip(&self.lives) {
            if let Some(ran_ns) = run.ran_until(*last_ns) {
                thread.end_ns = thread.start_ns.max(Some(*last_ns));
                // Of what waits for names, only the time is known.
                let life_ns = thread.end_ns.zip(thread.start_ns).map(|(end_ns, start_ns)| end_ns - start_ns);
                thread.cpu_ns = life_ns.map_or(Some(ran_ns), |life_ns| Some(ran_ns.min(life_ns)));
            }
        }
    }

    /// Looks for the threads of marks among those that are known by now.
    fn find_mark_threads(&mut self) {
        let (marked, _) = self.builder.marks.known();
        self.mark_threads.resize(marked.len(), None);
        if self.mark_threads.iter().all(Option::is_some) {
            return;
        }
        let threads = &self.builder.capture.threads;
        let mut by_tid: HashMap<u32, Vec<ThreadId>> = HashMap::new();
        for (index, thread) in threads.iter().enumerate() {
            by_tid.entry(thread.tid).or_default().push(ThreadId::from_index(index));
        }
        let without = self.mark_threads.iter_mut().zip(marked).filter(|(found, _)| found.is_none());
        for (found, marked) in without {
            *found = by_tid.get(&marked.tid).and_then(|with_its_id| marked.among(threads, with_its_id));
        }
    }

    fn add_other(
        &mut self,
        entry: Entry,
        rounds: u32,
        rows: &mut Rows,
        scopes: &mut HashMap<u32, Vec<Interval<ThreadId>>>,
    ) {
        let thread = match entry {
            Entry::StepMark { thread, .. }
            | Entry::Scope { thread, .. }
            | Entry::FrameMark { thread, .. }
            | Entry::MarkedCounter { thread, .. }
            | Entry::FlowMark { thread, .. } => Some(thread),
            _ => None,
        };
        let known = thread.map(|thread: MarkThreadRef| self.mark_threads.get(thread.0 as usize).copied().flatten());
        let capture = &mut self.builder.capture;
        match (known, entry) {
            (Some(None), _) if rounds == MOST_ROUNDS => self.marks_without_thread += 1,
            (Some(None), entry) => self.waiting.push((entry, rounds + 1)),
            (None, Entry::StepStart { time_ns, thread, sim_time_ns }) => {
                let start = StepStart::called(capture, ThreadId(thread.0), time_ns, sim_time_ns);
                start.into_iter().for_each(|start| self.steps.add(start, |step| rows.steps.push(step)));
            }
            (None, Entry::Counter { time_ns, process, thread, name, value }) => {
                let reading = Reading { time_ns, process, thread, value };
                rows.counters.extend(reading.row(capture, &name));
            }
            (Some(Some(thread)), Entry::StepMark { time_ns, sim_time_ns, .. }) => {
                let start = StepStart::marked(capture, thread, time_ns, sim_time_ns);
                start.into_iter().for_each(|start| self.steps.add(start, |step| rows.steps.push(step)));
            }
            (Some(Some(on)), entry @ (Entry::Scope { .. } | Entry::FrameMark { .. })) => {
                let window_ns = capture.info.first_interval_ns();
                let (marked, _) = self.builder.marks.known();
                if let Some(interval) = self.intervals.ended_by(&entry).filter(|it| it.start_ns >= window_ns) {
                    let tid = marked[interval.thread.0 as usize].tid;
                    scopes.entry(tid).or_default().push(interval.on(on));
                }
            }
            (Some(Some(thread)), Entry::MarkedCounter { name, time_ns, value, .. }) => {
                let (_, names) = self.builder.marks.known();
                let process = capture.threads[thread.index()].process;
                let name = names[name.0 as usize].clone();
                rows.counters.push(Counter { time_ns, process, thread: Some(thread), name, value });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! [`Paths`]: the critical path of each step. The view `critical-path` defines it.

use std::ops::Range;

use rustc_hash::FxHashSet;
use stepscope_model::{Capture, StackId, ThreadId, Wait, WaitState};

use crate::query::cpu_holders::CpuHolders;
use crate::query::loops::Steps;
use crate::query::off_cpu::OffCpu;
use crate::query::waits::woken_at;

/// Wake-ups at one moment that are followed. Real chains have a few; damaged evidence may have circles.
const MOST_JUMPS: u32 = 64;

/// One part of a step's critical path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The thread that the path is on.
    pub thread: ThreadId,
    /// When.
    pub range: Range<u64>,
    /// What the thread did meanwhile.
    pub state: State,
}

/// What a thread does while the path is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It waits for a CPU.
    Runnable,
    /// It is blocked at this stack, and no thread ends the wait.
    Blocked(Option<StackId>),
}

/// The critical paths of a loop's steps.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// All parts, by step; those of one step from its end to its start.
    parts: Vec<Part>,
    /// Where the parts of each step start in `parts`, and the end of the last.
    first: Vec<usize>,
    /// Wake-ups on the paths: waker and time.
    pub(crate) wake_ups: FxHashSet<(ThreadId, u64)>,
    /// The threads that held the CPUs that the paths waited for, without the first step; by thread and time.
    pub(crate) holdings: Vec<Interval>,
}

impl Paths {
    /// Walks back from the end of every step.
    pub fn walk(capture: &Capture, steps: &Steps, off_cpu: &OffCpu<'_>) -> Self {
        let mut paths = Self { first: vec![0], ..Self::default() };
        let rows = steps.rows();
        for (position, step) in rows.iter().enumerate() {
            let next = rows.get(position + 1).filter(|next| next.start_ns == step.end_ns);
            let walk = Walk {
                capture,
                off_cpu,
                start: step.start_ns,
                own: step.thread,
                thread: next.map_or(step.thread, |next| next.thread),
                time: step.end_ns,
                jumps: 0,
            };
            walk.back_to_the_start(&mut paths);
            paths.first.push(paths.parts.len());
        }
        paths.holdings = holdings(capture, steps, &paths, off_cpu);
        paths
    }

    /// The parts of a step's path, from its end to its start.
    pub fn of_step(&self, position: usize) -> &[Part] {
        &self.parts[self.first[position]..self.first[position + 1]]
    }

    /// How long a step's path waited for a CPU.
    pub fn delay(&self, position: usize) -> u64 {
        let delays = self.of_step(position).iter().filter(|part| part.state == State::Runnable);
        delays.map(|part| part.range.end - part.range.start).sum()
    }
}

/// An interval in the life of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) thread: ThreadId,
    pub(crate) range: Range<u64>,
}

fn holdings(capture: &Capture, steps: &Steps, paths: &Paths, off_cpu: &OffCpu<'_>) -> Vec<Interval> {
    let holders = CpuHolders::of(capture, off_cpu);
    let parts = steps.after_first().flat_map(|position| paths.of_step(position));
    let delays = parts.filter(|part| part.state == State::Runnable);
    let cpu_of = |part: &Part| off_cpu.last_before(part.thread, part.range.end)?.cpu;
    let mut found: Vec<Interval> = delays
        .filter_map(|part| Some((cpu_of(part)?, &part.range)))
        .flat_map(|(cpu, range)| holders.within(cpu, range))
        .map(|(thread, range)| Interval { thread, range })
        .collect();
    found.sort_unstable_by_key(|holding| (holding.thread, holding.range.start));
    found
}

/// Walks one step's path back from its end.
struct Walk<'a> {
    capture: &'a Capture,
    off_cpu: &'a OffCpu<'a>,
    start: u64,
    own: ThreadId,
    thread: ThreadId,
    time: u64,
    jumps: u32,
}

impl Walk<'_> {
    fn back_to_the_start(mut self, paths: &mut Paths) {
        while self.time > self.start {
            let wait = self.off_cpu.last_before(self.thread, self.time);
            let created = self.capture.threads[self.thread.index()].start_ns.unwrap_or(0);
            match wait {
                Some(wait) if wait.end_ns >= self.time => self.back_through(&wait, paths),
                _ if created >= self.time => self.before_creation(paths),
                _ => {
                    let ran_from = wait.map_or(created, |wait| wait.end_ns.max(created));
                    self.back_to(ran_from, State::Running, paths);
                }
            }
        }
    }

    /// Adds the part from `from`, or the step's start, to where the walk is.
    fn back_to(&mut self, from: u64, state: State, paths: &mut Paths) {
        let from = from.max(self.start);
        if from < self.time {
            paths.parts.push(Part { thread: self.thread, range: from..self.time, state });
            self.time = from;
            self.jumps = 0;
        }
    }

    /// Goes back through a wait.
    fn back_through(&mut self, wait: &Wait, paths: &mut Paths) {
        let woken = woken_at(wait);
        self.back_to(woken, State::Runnable, paths);
        if self.time <= self.start || wait.state == WaitState::Preempted {
            return;
        }
        match wait.waker.filter(|waker| *waker != self.thread && self.time == woken && self.jumps < MOST_JUMPS) {
            Some(waker) => {
                paths.wake_ups.insert((waker, woken));
                self.thread = waker;
                self.jumps += 1;
            }
            None => self.back_to(wait.start_ns, State::Blocked(wait.stack), paths),
        }
    }

    fn before_creation(&mut self, paths: &mut Paths) {
        if self.thread == self.own || self.jumps >= MOST_JUMPS {
            // Nothing else is known about it.
            return self.back_to(self.start, State::Blocked(None), paths);
        }
        self.thread = self.own;
        self.jumps += 1;
    }
}

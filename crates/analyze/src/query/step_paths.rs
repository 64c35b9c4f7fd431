//! [`Paths`]: the critical path of each step. The view `critical-path` defines it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stepscope_model::{Capture, StackId, ThreadId, Wait, WaitState};

use crate::query::cpu_holders::{ByCpu, CpuHolders};
use crate::query::loops::{Loops, Steps};
use crate::query::off_cpu::{OffCpu, Order};
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
    /// The place of its wait in [`OffCpu`]; `None` if it runs, or nothing is known.
    pub(crate) place: Option<usize>,
}

impl Part {
    /// Its length.
    pub fn ns(&self) -> u64 {
        self.range.end - self.range.start
    }
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

/// The critical paths of the steps of a main loop.
///
/// A path has as many parts as there are waits on it, so its parts are found again each time. What takes time is to find where it
/// enters another thread, and this is kept.
#[derive(Debug, Clone)]
pub struct Paths<'a> {
    capture: &'a Capture,
    loops: Arc<Loops>,
    off_cpu: OffCpu<'a>,
    known: Arc<KnownPaths>,
}

/// What is kept of critical paths: some 5 bytes for each wait on them, and 4 more for the holders of CPUs.
#[derive(Debug)]
pub(crate) struct KnownPaths {
    order: Arc<Order>,
    /// Places of the last waits before paths enter a thread, or [`NO_WAIT`].
    entries: Vec<u32>,
    /// Where the entries of each step start, and the end of the last.
    first: Vec<usize>,
    /// One bit for each wait, by place: whether a path follows its wake-up.
    followed: Vec<u64>,
    holders: OnceLock<Arc<ByCpu>>,
}

/// A thread without a wait before the path enters it.
const NO_WAIT: u32 = u32::MAX;

impl KnownPaths {
    /// Walks back from the end of every step.
    pub fn of(capture: &Capture, off_cpu: &OffCpu<'_>, steps: &Steps) -> Self {
        let (mut entries, mut first) = (Vec::new(), vec![0]);
        let mut followed = vec![0_u64; capture.waits.len().div_ceil(64)];
        for position in 0..steps.count() {
            let enter = |Entry { thread, time, wake_up }: Entry| {
                if let Some(place) = wake_up {
                    followed[place / 64] |= 1 << (place % 64);
                }
                let place = off_cpu.place_before(thread, time);
                entries.push(place.map_or(NO_WAIT, |place| place as u32));
                place
            };
            Walk::of(capture, off_cpu, steps, position, enter).for_each(drop);
            first.push(entries.len());
        }
        entries.shrink_to_fit();
        Self { order: off_cpu.order(), entries, first, followed, holders: OnceLock::new() }
    }
}

impl<'a> Paths<'a> {
    /// Walks back from the end of every step of the main loop.
    pub fn walk(capture: &'a Capture, loops: Arc<Loops>) -> Self {
        let known = KnownPaths::of(capture, &OffCpu::of(capture), loops.main());
        Self::known(capture, loops, Arc::new(known))
    }

    /// Of a capture whose paths were walked.
    pub(crate) fn known(capture: &'a Capture, loops: Arc<Loops>, known: Arc<KnownPaths>) -> Self {
        Self { capture, loops, off_cpu: OffCpu::in_order(capture, known.order.clone()), known }
    }

    /// The parts of a step's path, from its end to its start. Each begins where the next one ends.
    pub fn of_step(&self, position: usize) -> impl Iterator<Item = Part> + '_ {
        let KnownPaths { entries, first, .. } = &*self.known;
        let mut entries = entries[first[position]..first[position + 1]].iter();
        let enter = move |_| entries.next().filter(|place| **place != NO_WAIT).map(|place| *place as usize);
        Walk::of(self.capture, &self.off_cpu, self.loops.main(), position, enter)
    }

    /// How long a step's path waited for a CPU.
    pub fn delay(&self, position: usize) -> u64 {
        self.of_step(position).filter(|part| part.state == State::Runnable).map(|part| part.ns()).sum()
    }

    /// All waits in order.
    pub(crate) fn off_cpu(&self) -> &OffCpu<'a> {
        &self.off_cpu
    }

    /// Whether a path follows the wake-up of the wait at this place.
    pub(crate) fn follows(&self, place: usize) -> bool {
        self.known.followed[place / 64] & 1 << (place % 64) != 0
    }

    /// The threads that held CPUs.
    pub(crate) fn holders(&self) -> CpuHolders<'a> {
        let find = || CpuHolders::of(self.capture, &self.off_cpu).by_cpu();
        CpuHolders::known(&self.off_cpu, self.known.holders.get_or_init(find).clone())
    }

    /// The threads that held the CPU that a path waits for in this part, and when, from the last to the first.
    pub(crate) fn held_during(&self, part: &Part, holders: &CpuHolders<'_>) -> Vec<(ThreadId, Range<u64>)> {
        let waits = part.place.filter(|_| part.state == State::Runnable);
        let cpu = waits.and_then(|place| self.off_cpu.at(place).cpu);
        cpu.map_or_else(Vec::new, |cpu| holders.within(cpu, &part.range).collect())
    }

    /// How long each thread held CPUs that the paths of these steps waited for.
    pub(crate) fn held_by_thread(&self, positions: Range<usize>) -> Vec<u64> {
        let mut held = vec![0; self.capture.threads.len()];
        let holders = self.holders();
        let parts = positions.flat_map(|position| self.of_step(position));
        for (thread, range) in parts.flat_map(|part| self.held_during(&part, &holders)) {
            held[thread.index()] += range.end - range.start;
        }
        held
    }
}

/// Where a path enters a thread.
struct Entry {
    thread: ThreadId,
    time: u64,
    /// The place of the wait that the thread ended.
    wake_up: Option<usize>,
}

/// Walks one step's path back from its end. `enter` gives the place of the last wait of a thread before a path enters it.
struct Walk<'a, E> {
    capture: &'a Capture,
    off_cpu: &'a OffCpu<'a>,
    enter: E,
    start: u64,
    own: ThreadId,
    thread: ThreadId,
    time: u64,
    jumps: u32,
    /// The place of the thread's last wait that may have started before now.
    place: Option<usize>,
    /// The wait in which the walk is, and its place, as soon as it has left the runnable part of it.
    blocked: Option<(usize, Wait)>,
}

impl<'a, E: FnMut(Entry) -> Option<usize>> Walk<'a, E> {
    fn of(capture: &'a Capture, off_cpu: &'a OffCpu<'a>, steps: &Steps, position: usize, mut enter: E) -> Self {
        let rows = steps.rows();
        let step = &rows[position];
        let next = rows.get(position + 1).filter(|next| next.start_ns == step.end_ns);
        let (thread, time) = (next.map_or(step.thread, |next| next.thread), step.end_ns);
        let place = enter(Entry { thread, time, wake_up: None });
        let (start, own) = (step.start_ns, step.thread);
        Self { capture, off_cpu, enter, start, own, thread, time, jumps: 0, place, blocked: None }
    }

    /// The last wait of the thread that began before now, and its place.
    fn wait(&mut self) -> Option<(usize, Wait)> {
        loop {
            let place = self.place?;
            let wait = self.off_cpu.at(place);
            if wait.start_ns < self.time {
                return Some((place, wait));
            }
            let first = self.off_cpu.places(self.thread).start;
            self.place = place.checked_sub(1).filter(|before| *before >= first);
        }
    }

    /// Goes on in another thread, which ended the wait at the place `wake_up`.
    fn go_to(&mut self, thread: ThreadId, wake_up: Option<usize>) {
        self.jumps += 1;
        self.thread = thread;
        self.place = (self.enter)(Entry { thread, time: self.time, wake_up });
    }

    /// The part from `from`, or the step's start, to where the walk is; `None` if it is empty.
    fn part(&mut self, from: u64, state: State, place: Option<usize>) -> Option<Part> {
        let from = from.max(self.start);
        if from >= self.time {
            return None;
        }
        self.jumps = 0;
        let range = from..std::mem::replace(&mut self.time, from);
        Some(Part { thread: self.thread, range, state, place })
    }

    /// Goes back from where a wait ended or the walk came into it: to the thread that ended it, or to its start.
    fn back_through(&mut self, place: usize, wait: &Wait) -> Option<Part> {
        let is_end = self.time == woken_at(wait) && self.jumps < MOST_JUMPS;
        match wait.waker.filter(|waker| *waker != self.thread && is_end) {
            Some(waker) => {
                self.go_to(waker, Some(place));
                None
            }
            None => self.part(wait.start_ns, State::Blocked(wait.stack), Some(place)),
        }
    }

    /// One move back; `None` if it takes no time.
    fn back(&mut self) -> Option<Part> {
        if let Some((place, wait)) = self.blocked.take() {
            return self.back_through(place, &wait);
        }
        let created = self.capture.threads[self.thread.index()].start_ns.unwrap_or(0);
        match self.wait() {
            Some((place, wait)) if wait.end_ns >= self.time => {
                self.blocked = Some((place, wait)).filter(|_| wait.state == WaitState::Blocked);
                self.part(woken_at(&wait), State::Runnable, Some(place))
            }
            _ if created >= self.time => self.before_creation(),
            wait => {
                let ran_from = wait.map_or(created, |(_, wait)| wait.end_ns.max(created));
                self.part(ran_from, State::Running, None)
            }
        }
    }

    fn before_creation(&mut self) -> Option<Part> {
        if self.thread == self.own || self.jumps >= MOST_JUMPS {
            // Nothing else is known about it.
            return self.part(self.start, State::Blocked(None), None);
        }
        self.go_to(self.own, None);
        None
    }
}

impl<E: FnMut(Entry) -> Option<usize>> Iterator for Walk<'_, E> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        while self.time > self.start {
            if let Some(part) = self.back() {
                return Some(part);
            }
        }
        None
    }
}

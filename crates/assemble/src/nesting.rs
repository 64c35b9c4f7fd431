//! How deep each scope of a thread is nested, without all scopes in memory.
//!
//! A scope is known when it ends, so it comes after the scopes that it encloses. Most enclose few others: these wait until no
//! scope can come that encloses them. A scope that comes later than that is *early*: it began before many others of its thread.
//! There are few of these. So the log is read twice: first for the early scopes ([`EarlyScopes`]), then for all ([`Nesting`]).

use std::cmp::Reverse;

use stepscope_model::ThreadId;

use crate::entry::MarkNameRef;

/// A scope is early if it began before at least this many others of its thread ended. At most twice as many wait.
const WAITING: usize = 4_096;
/// The largest depth that is counted. Only scopes that never nest have more open at a time.
const MAX_DEPTH: usize = 256;

/// A named interval of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval<T> {
    pub thread: T,
    pub name: MarkNameRef,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl<T> Interval<T> {
    /// The same interval of a thread of the capture.
    pub fn on(&self, thread: ThreadId) -> Interval<ThreadId> {
        let &Self { name, start_ns, end_ns, .. } = self;
        Interval { thread, name, start_ns, end_ns }
    }
}

/// A time from which on scopes wait. It is the same each time the same scopes are read.
#[derive(Debug, Default)]
struct Horizon {
    count: usize,
    last_end_ns: u64,
    next_ns: u64,
    horizon_ns: u64,
}

impl Horizon {
    /// Adds a scope, and says whether it is early.
    fn passes<T>(&mut self, scope: &Interval<T>) -> bool {
        let is_early = scope.start_ns < self.horizon_ns;
        self.last_end_ns = self.last_end_ns.max(scope.end_ns);
        self.count += 1;
        if self.count.is_multiple_of(WAITING) {
            self.horizon_ns = std::mem::replace(&mut self.next_ns, self.last_end_ns);
        }
        is_early
    }

    /// Whether the horizon has moved with the last scope.
    fn has_moved(&self) -> bool {
        self.count.is_multiple_of(WAITING)
    }
}

/// Finds the early scopes of a thread.
pub(crate) struct EarlyScopes<T> {
    horizon: Horizon,
    scopes: Vec<Interval<T>>,
}

impl<T> Default for EarlyScopes<T> {
    fn default() -> Self {
        Self { horizon: Horizon::default(), scopes: Vec::new() }
    }
}

impl<T> EarlyScopes<T> {
    /// Adds a scope. Scopes come in the order of the log.
    pub fn add(&mut self, scope: Interval<T>) {
        if self.horizon.passes(&scope) {
            self.scopes.push(scope);
        }
    }

    /// The early scopes, in the order of the log.
    pub fn into_intervals(self) -> Vec<Interval<T>> {
        self.scopes
    }
}

/// Counts for each scope of a thread how many enclose it.
///
/// Of two scopes with the same interval, the one written later encloses the other.
#[derive(Debug)]
pub(crate) struct Nesting {
    horizon: Horizon,
    window_ns: u64,
    /// The next one is the last.
    early: Vec<Interval<ThreadId>>,
    waiting: Vec<Interval<ThreadId>>,
    thread: Option<ThreadId>,
    /// Ends of scopes that may enclose the next one.
    open: Vec<u64>,
}

impl Nesting {
    /// Scopes that start before `window_ns` count for nothing.
    pub fn new(early: impl Iterator<Item = Interval<ThreadId>>, window_ns: u64) -> Self {
        let mut early: Vec<_> = early.filter(|scope| scope.start_ns >= window_ns).collect();
        early.sort_by_key(order);
        early.reverse();
        Self { horizon: Horizon::default(), window_ns, early, waiting: Vec::new(), thread: None, open: Vec::new() }
    }

    /// Of scopes that are all known, in the order in which they ended.
    pub fn at_once(scopes: Vec<Interval<ThreadId>>) -> Self {
        Self { waiting: scopes, ..Self::new(std::iter::empty(), 0) }
    }

    /// Adds a scope, and gives those whose depth is known now, by start. The scopes are the same as in the first reading.
    pub fn add(&mut self, scope: Interval<ThreadId>, take: impl FnMut(Interval<ThreadId>, u32)) {
        let is_early = self.horizon.passes(&scope);
        if !is_early && scope.start_ns >= self.window_ns {
            self.waiting.push(scope);
        }
        if self.horizon.has_moved() {
            self.release(self.horizon.horizon_ns, take);
        }
    }

    /// Gives the other scopes.
    pub fn finish(mut self, take: impl FnMut(Interval<ThreadId>, u32)) {
        self.release(u64::MAX, take);
    }

    /// Gives the scopes that start before `until_ns`.
    fn release(&mut self, until_ns: u64, mut take: impl FnMut(Interval<ThreadId>, u32)) {
        let is_ready = |scope: &Interval<ThreadId>| scope.start_ns < until_ns || until_ns == u64::MAX;
        let (mut ready, waiting) = std::mem::take(&mut self.waiting).into_iter().partition::<Vec<_>, _>(is_ready);
        self.waiting = waiting;
        // Early ones were written later.
        while self.early.last().is_some_and(is_ready) {
            ready.extend(self.early.pop());
        }
        ready.reverse();
        ready.sort_by_key(order);
        for scope in ready {
            let depth = self.depth_of(&scope);
            take(scope, depth);
        }
    }

    fn depth_of(&mut self, scope: &Interval<ThreadId>) -> u32 {
        if self.thread.replace(scope.thread) != Some(scope.thread) {
            self.open.clear();
        }
        // A scope that ended when this one starts does not enclose it, unless both are a single moment.
        self.open.retain(|&end_ns| end_ns > scope.start_ns || end_ns == scope.end_ns);
        let depth = self.open.iter().filter(|&&end_ns| end_ns >= scope.end_ns).count() as u32;
        if self.open.len() < MAX_DEPTH {
            self.open.push(scope.end_ns);
        }
        depth
    }
}

/// An enclosing scope comes first.
fn order(scope: &Interval<ThreadId>) -> (ThreadId, u64, Reverse<u64>) {
    (scope.thread, scope.start_ns, Reverse(scope.end_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Depths as counted with all scopes in memory.
    fn at_once(scopes: &[Interval<ThreadId>]) -> Vec<(Interval<ThreadId>, u32)> {
        let mut all = Vec::new();
        Nesting::at_once(scopes.to_vec()).finish(|scope, depth| all.push((scope, depth)));
        all
    }

    fn scope(name: u32, start_ns: u64, end_ns: u64) -> Interval<ThreadId> {
        Interval { thread: ThreadId(0), name: MarkNameRef(name), start_ns, end_ns }
    }

    #[test]
    fn scopes_are_given_as_they_are_written_and_their_depths_are_exact() {
        let mut scopes = Vec::new();
        for step in 0..5_u64 {
            for call in 0..WAITING as u64 {
                let start_ns = 1_000_000 * step + 10 * call;
                scopes.push(scope(3, start_ns + 2, start_ns + 5));
                scopes.push(scope(2, start_ns, start_ns + 5));
            }
            scopes.push(scope(1, 1_000_000 * step, 1_000_000 * step + 500_000));
        }
        // A library whose marks are read late.
        scopes.push(scope(4, 1, 3));
        scopes.push(scope(0, 0, 10_000_000));
        let mut early = EarlyScopes::default();
        scopes.iter().for_each(|scope| early.add(*scope));
        let early = early.into_intervals();
        assert!(early.len() < 10, "{early:?}");
        let (mut nesting, mut streamed) = (Nesting::new(early.into_iter(), 0), Vec::new());
        for scope in &scopes {
            nesting.add(*scope, |scope, depth| streamed.push((scope, depth)));
            assert!(nesting.waiting.len() <= 2 * WAITING, "{} wait", nesting.waiting.len());
        }
        nesting.finish(|scope, depth| streamed.push((scope, depth)));
        assert_eq!(streamed.len(), scopes.len());
        assert!(streamed == at_once(&scopes));
        assert!(streamed.iter().any(|(_, depth)| *depth == 3));
    }

    #[test]
    fn scopes_before_the_window_count_for_nothing() {
        let mut nesting = Nesting::new([scope(0, 5, 100)].into_iter(), 10);
        let mut depths = Vec::new();
        for scope in [scope(1, 9, 40), scope(2, 10, 30)] {
            nesting.add(scope, |_, _| unreachable!());
        }
        nesting.finish(|scope, depth| depths.push((scope.name.0, depth)));
        assert_eq!(depths, [(2, 0)]);
    }
}

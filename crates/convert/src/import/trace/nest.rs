//! How deep each scope of a thread is nested, without all its scopes in memory.
//!
//! Scopes are given in the order of their starts, when all scopes around them have ended, too. A scope that stays open for very
//! long, such as a `main` in the trace, would keep all others waiting. So after [`MOST_WAITING`] the oldest are given: those
//! that are open count as around the others, and are given when they end.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use stepscope_model::{Scope, ThreadId};

/// Scopes of a thread that wait.
const MOST_WAITING: usize = 1_024;
/// The largest depth that is counted. Only scopes that never nest have more open at a time.
const MAX_DEPTH: usize = 256;

/// The number of a scope of a thread, in the order of their starts.
pub type Number = u64;

/// The scopes of a thread.
#[derive(Default)]
pub struct Nest {
    waiting: VecDeque<Waiting>,
    next: Number,
    /// How many of those that wait are open.
    open: usize,
    long: Vec<Long>,
    /// Ends of scopes that may enclose the next one.
    around: Vec<Around>,
}

struct Waiting {
    number: Number,
    name: Arc<str>,
    start_ns: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    Ended(u64),
    /// Its end was known from the start.
    Whole(u64),
    /// Its end is lost.
    Lost,
}

/// An open scope that waits no more.
struct Long {
    number: Number,
    name: Arc<str>,
    start_ns: u64,
    depth: u32,
}

struct Around {
    number: Number,
    /// [`OPEN`] if it is not known.
    end_ns: u64,
}

const OPEN: u64 = u64::MAX;

impl Waiting {
    /// The end, or [`OPEN`].
    fn end_ns(&self) -> u64 {
        match self.state {
            State::Ended(end_ns) | State::Whole(end_ns) => end_ns,
            State::Open | State::Lost => OPEN,
        }
    }

    /// An enclosing scope comes first. Of two whole ones with the same interval, that is the later one.
    fn order(&self) -> (u64, Reverse<u64>, i64) {
        let number = self.number as i64;
        let place = if matches!(self.state, State::Whole(_)) { -number } else { number };
        (self.start_ns, Reverse(self.end_ns()), place)
    }
}

impl Nest {
    /// A scope starts.
    pub fn begin(&mut self, name: Arc<str>, start_ns: u64, thread: ThreadId, take: impl FnMut(Scope)) -> Number {
        self.open += 1;
        self.add(name, start_ns, State::Open, thread, take)
    }

    /// A scope of which both times are known. They come in the order of their starts.
    pub fn whole(&mut self, name: Arc<str>, start_ns: u64, end_ns: u64, thread: ThreadId, take: impl FnMut(Scope)) {
        self.add(name, start_ns, State::Whole(end_ns), thread, take);
    }

    fn add(
        &mut self,
        name: Arc<str>,
        start_ns: u64,
        state: State,
        thread: ThreadId,
        mut take: impl FnMut(Scope),
    ) -> Number {
        let is_only_open = self.open == usize::from(state == State::Open);
        if is_only_open && self.waiting.back().is_some_and(|last| last.start_ns < start_ns) {
            self.give(self.waiting.len(), thread, &mut take);
        }
        if self.waiting.len() >= MOST_WAITING {
            self.give(MOST_WAITING / 2, thread, &mut take);
        }
        let number = self.next;
        self.next += 1;
        self.waiting.push_back(Waiting { number, name, start_ns, state });
        number
    }

    /// A scope ends.
    pub fn end(&mut self, number: Number, end_ns: u64, thread: ThreadId, mut take: impl FnMut(Scope)) {
        if let Some(waiting) = self.waiting(number) {
            waiting.state = State::Ended(end_ns.max(waiting.start_ns));
            self.open -= 1;
            if self.open == 0 {
                self.give(self.waiting.len(), thread, &mut take);
            }
            return;
        }
        let Some(at) = self.long.iter().rposition(|long| long.number == number) else { return };
        let Long { name, start_ns, depth, .. } = self.long.remove(at);
        let end_ns = end_ns.max(start_ns);
        self.around.iter_mut().filter(|around| around.number == number).for_each(|around| around.end_ns = end_ns);
        take(Scope { thread, name, start_ns, end_ns, depth });
    }

    /// The end of a scope is lost: it is left out.
    pub fn lose(&mut self, number: Number) {
        if let Some(waiting) = self.waiting(number) {
            waiting.state = State::Lost;
            self.open -= 1;
        } else if let Some(at) = self.long.iter().rposition(|long| long.number == number) {
            self.long.remove(at);
            self.around.retain(|around| around.number != number);
        }
    }

    /// Gives the other scopes. Those without an end are left out.
    pub fn finish(mut self, thread: ThreadId, mut take: impl FnMut(Scope)) {
        for long in std::mem::take(&mut self.long) {
            self.around.retain(|around| around.number != long.number);
        }
        self.waiting.retain(|waiting| waiting.state != State::Open);
        self.give(self.waiting.len(), thread, &mut take);
    }

    fn waiting(&mut self, number: Number) -> Option<&mut Waiting> {
        let first = self.waiting.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        self.waiting.get_mut(at)
    }

    /// Gives the first of those that wait.
    fn give(&mut self, count: usize, thread: ThreadId, take: &mut impl FnMut(Scope)) {
        // Mostly it is a single one.
        if count > 1 && !self.waiting.iter().take(count).is_sorted_by_key(Waiting::order) {
            let waiting = self.waiting.make_contiguous();
            waiting[..count].sort_by_key(Waiting::order);
        }
        for _ in 0..count {
            let Some(waiting) = self.waiting.pop_front() else { break };
            let (number, start_ns, end_ns) = (waiting.number, waiting.start_ns, waiting.end_ns());
            if waiting.state == State::Lost {
                continue;
            }
            // A scope that ended when this one starts does not enclose it, unless both are a single moment.
            self.around.retain(|around| around.end_ns > start_ns || around.end_ns == end_ns);
            let depth = self.around.iter().filter(|around| around.end_ns >= end_ns).count() as u32;
            if self.around.len() < MAX_DEPTH {
                self.around.push(Around { number, end_ns });
            }
            if waiting.state == State::Open {
                self.open -= 1;
                self.long.push(Long { number, name: waiting.name, start_ns, depth });
            } else {
                take(Scope { thread, name: waiting.name, start_ns, end_ns, depth });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId(0);

    fn shown(scope: Scope) -> String {
        format!("{} {}-{} {}", scope.name, scope.start_ns, scope.end_ns, scope.depth)
    }

    #[test]
    fn scopes_are_given_in_the_order_of_their_starts_with_their_depth() {
        let (mut nest, mut given) = (Nest::default(), Vec::new());
        let outer = nest.begin("outer".into(), 10, THREAD, |scope| given.push(shown(scope)));
        let lost = nest.begin("lost".into(), 11, THREAD, |scope| given.push(shown(scope)));
        let inner = nest.begin("inner".into(), 12, THREAD, |scope| given.push(shown(scope)));
        nest.end(inner, 15, THREAD, |scope| given.push(shown(scope)));
        assert!(given.is_empty());
        nest.lose(lost);
        nest.end(outer, 20, THREAD, |scope| given.push(shown(scope)));
        assert_eq!(given, ["outer 10-20 0", "inner 12-15 1"]);
        nest.whole("first".into(), 30, 35, THREAD, |scope| given.push(shown(scope)));
        nest.whole("around".into(), 30, 40, THREAD, |scope| given.push(shown(scope)));
        nest.begin("open".into(), 41, THREAD, |scope| given.push(shown(scope)));
        assert_eq!(given[2..], ["around 30-40 0", "first 30-35 1"]);
        nest.finish(THREAD, |_| panic!("it has no end"));
    }

    #[test]
    fn scopes_in_one_that_stays_open_do_not_wait_for_it() {
        let (mut nest, mut given) = (Nest::default(), Vec::new());
        let main = nest.begin("main".into(), 0, THREAD, |_| panic!("it is open"));
        for call in 1..=10_000_u64 {
            let number = nest.begin("call".into(), call * 10, THREAD, |scope| given.push(shown(scope)));
            nest.end(number, call * 10 + 5, THREAD, |scope| given.push(shown(scope)));
            assert!(nest.waiting.len() <= MOST_WAITING && nest.around.len() < 3);
        }
        nest.end(main, 200_000, THREAD, |scope| given.push(shown(scope)));
        let last = nest.begin("call".into(), 200_000, THREAD, |scope| given.push(shown(scope)));
        nest.end(last, 200_001, THREAD, |scope| given.push(shown(scope)));
        nest.finish(THREAD, |scope| given.push(shown(scope)));
        assert_eq!(given.len(), 10_002);
        assert_eq!(given.iter().filter(|scope| scope.starts_with("call") && scope.ends_with(" 1")).count(), 10_000);
        assert!(given.contains(&"main 0-200000 0".to_owned()) && given.contains(&"call 200000-200001 0".to_owned()));
    }
}

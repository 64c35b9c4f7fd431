//! [`LaneState`]: what a thread does at a moment, and [`Shares`]: for how long in a range of time.

use stepscope_analyze::wait_class::WaitClass;

/// What a thread does. The first states are not of a wait's class; see [`LaneState::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneState(u8);

/// Number of states.
pub const STATES: usize = 5 + WaitClass::ALL.len();

impl LaneState {
    /// On a CPU.
    pub const RUNNING: Self = Self(0);
    /// Runnable, but the scheduler chose another thread.
    pub const PREEMPTED: Self = Self(1);
    /// Woken, and waiting for a CPU.
    pub const WOKEN: Self = Self(2);
    /// Blocked without a recorded stack.
    pub const NO_STACK: Self = Self(3 + WaitClass::ALL.len() as u8);
    /// Between samples, where context switches were not recorded.
    pub const UNKNOWN: Self = Self(4 + WaitClass::ALL.len() as u8);

    /// Blocked by a class.
    pub fn blocked(class: WaitClass) -> Self {
        Self(3 + class.index() as u8)
    }

    /// The names of all states, by their number in tiles.
    pub fn names() -> Vec<&'static str> {
        let classes = WaitClass::ALL.iter().map(|class| class.name());
        ["running", "preempted", "woken"].into_iter().chain(classes).chain(["no_stack", "unknown"]).collect()
    }

    /// Its number in tiles.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Time in each state, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares(pub [u64; STATES]);

impl Shares {
    /// Time on a CPU.
    pub fn running(&self) -> u64 {
        self.0[LaneState::RUNNING.index()]
    }

    /// Time waiting for a CPU.
    pub fn runnable(&self) -> u64 {
        self.0[LaneState::PREEMPTED.index()].saturating_add(self.0[LaneState::WOKEN.index()])
    }

    /// Time waiting for something else.
    pub fn blocked(&self) -> u64 {
        self.blocked_states().iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// Time of which nothing is known.
    pub fn unknown(&self) -> u64 {
        self.0[LaneState::UNKNOWN.index()]
    }

    /// Time in all states: the part of the range in which the thread lived.
    pub fn life(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The blocked state with the most time; `None` if there is none.
    pub fn most_blocked(&self) -> Option<usize> {
        let first = LaneState::WOKEN.index() + 1;
        let states = self.blocked_states().iter().enumerate().filter(|(_, ns)| **ns > 0);
        states.rev().max_by_key(|(_, ns)| **ns).map(|(index, _)| first + index)
    }

    fn blocked_states(&self) -> &[u64] {
        &self.0[LaneState::WOKEN.index() + 1..=LaneState::NO_STACK.index()]
    }

    pub(super) fn add(&mut self, state: LaneState, ns: u64) {
        let sum = &mut self.0[state.index()];
        *sum = sum.saturating_add(ns);
    }

    /// The sum of both.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|state| self.0[state].saturating_add(other.0[state])))
    }

    /// The difference of two running sums.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|state| self.0[state].saturating_sub(earlier.0[state])))
    }
}

//! Nodes and their callback groups of timers, subscriptions, services and clients.
//!
//! As in rclcpp, a node owns its groups, and the creator of an entity owns the entity. Groups and executors hold weak
//! pointers, because either may be gone when a callback is due.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::clock::Clock;
use super::message::Message;
use super::reader::{GuardCondition, Reader};
use crate::account::{Counter, count};

/// A timer with a callback.
pub struct Timer {
    clock: Arc<Clock>,
    period_ns: u64,
    next_ns: AtomicU64,
    callback: Mutex<Box<dyn FnMut() + Send>>,
}

impl Timer {
    /// A timer that is due after its first period. The shortest period is a nanosecond.
    pub fn new(clock: &Arc<Clock>, period_ns: u64, callback: impl FnMut() + Send + 'static) -> Arc<Self> {
        let period_ns = period_ns.max(1);
        let next_ns = AtomicU64::new(clock.now_ns() + period_ns);
        Arc::new(Self { clock: clock.clone(), period_ns, next_ns, callback: Mutex::new(Box::new(callback)) })
    }

    /// The next due time, ns on its clock.
    pub fn next_ns(&self) -> u64 {
        self.next_ns.load(Ordering::Acquire)
    }

    /// Whether it is due.
    pub fn is_ready(&self) -> bool {
        self.next_ns() <= self.clock.now_ns()
    }

    /// Time until it is due, ns. `None` if its clock does not pass by itself.
    pub fn time_until_trigger_ns(&self) -> Option<u64> {
        let until = self.next_ns().saturating_sub(self.clock.now_ns());
        (until == 0 || self.clock.passes_by_itself()).then_some(until)
    }

    /// Moves the due time to the next one in the future. Skips missed ones, like `rcl_timer_call`.
    pub fn call(&self) {
        let (now, next) = (self.clock.now_ns(), self.next_ns() + self.period_ns);
        let missed = now.saturating_sub(next).div_ceil(self.period_ns);
        self.next_ns.store(next + missed * self.period_ns, Ordering::Release);
    }

    /// Runs its callback.
    pub fn execute_callback(&self) {
        (lock!(self.callback))();
    }
}

/// The kind of an endpoint, in the order in which rclcpp walks its wait set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Takes messages of a topic.
    Subscription,
    /// Takes requests.
    Service,
    /// Takes responses.
    Client,
}

impl Kind {
    /// All, in order.
    pub const ALL: [Kind; 3] = [Kind::Subscription, Kind::Service, Kind::Client];
}

/// Called with each message.
pub type Callback = Box<dyn FnMut(Arc<Message>) + Send>;

/// A subscription, service or client: a reader and a callback for its messages.
pub struct Endpoint {
    /// The kind.
    pub kind: Kind,
    /// The reader of its messages.
    pub reader: Arc<Reader>,
    callback: Mutex<Callback>,
}

impl Endpoint {
    /// Creates an endpoint.
    pub fn new(kind: Kind, reader: Arc<Reader>, callback: Callback) -> Arc<Self> {
        Arc::new(Self { kind, reader, callback: Mutex::new(callback) })
    }

    /// Takes a message and runs the callback. There may be none, because the history drops messages.
    pub fn execute(&self) {
        if let Some(message) = self.reader.take() {
            count(Counter::MessagesTaken);
            (lock!(self.callback))(message);
        }
    }
}

/// Callbacks that must not run at the same time.
pub struct CallbackGroup {
    can_be_taken_from: AtomicBool,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    timers: Vec<Weak<Timer>>,
    endpoints: [Vec<Weak<Endpoint>>; Kind::ALL.len()],
}

impl CallbackGroup {
    fn new() -> Arc<Self> {
        Arc::new(Self { can_be_taken_from: AtomicBool::new(true), members: Mutex::default() })
    }

    /// Whether no callback runs.
    pub fn can_be_taken_from(&self) -> bool {
        self.can_be_taken_from.load(Ordering::Acquire)
    }

    /// Marks that a callback runs.
    pub fn take(&self) {
        self.can_be_taken_from.store(false, Ordering::Release);
    }

    /// Marks that no callback runs.
    pub fn give_back(&self) {
        self.can_be_taken_from.store(true, Ordering::Release);
    }

    /// The first live timer that `is_it` accepts.
    pub fn find_timer(&self, mut is_it: impl FnMut(&Arc<Timer>) -> bool) -> Option<Arc<Timer>> {
        lock!(self.members).timers.iter().filter_map(Weak::upgrade).find(|timer| is_it(timer))
    }

    /// The first live endpoint of a kind that `is_it` accepts.
    pub fn find_endpoint(&self, kind: Kind, mut is_it: impl FnMut(&Arc<Endpoint>) -> bool) -> Option<Arc<Endpoint>> {
        lock!(self.members).endpoints[kind as usize].iter().filter_map(Weak::upgrade).find(|endpoint| is_it(endpoint))
    }
}

/// A node with one callback group.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its groups.
    pub groups: Vec<Arc<CallbackGroup>>,
    /// Triggered when the node changes; executors wait for it, too.
    pub notify: Arc<GuardCondition>,
    timers: Mutex<Vec<Arc<Timer>>>,
    endpoints: Mutex<Vec<Arc<Endpoint>>>,
}

impl Node {
    /// A node without entities.
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            groups: vec![CallbackGroup::new()],
            notify: Arc::default(),
            timers: Mutex::default(),
            endpoints: Mutex::default(),
        })
    }

    /// Adds a timer to its group.
    pub fn add_timer(&self, timer: Arc<Timer>) {
        lock!(self.groups[0].members).timers.push(Arc::downgrade(&timer));
        lock!(self.timers).push(timer);
    }

    /// Adds an endpoint to its group.
    pub fn add_endpoint(&self, endpoint: Arc<Endpoint>) {
        lock!(self.groups[0].members).endpoints[endpoint.kind as usize].push(Arc::downgrade(&endpoint));
        lock!(self.endpoints).push(endpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_timers_are_skipped() {
        let clock = Arc::new(Clock::Simulated(AtomicU64::new(1_000)));
        let timer = Timer::new(&clock, 10, || {});
        assert!(!timer.is_ready());
        assert_eq!((timer.next_ns(), timer.time_until_trigger_ns()), (1_010, None));
        for (advanced, now, next) in [(10, 1_010, 1_020), (15, 1_025, 1_030), (25, 1_050, 1_050), (1, 1_051, 1_060)] {
            clock.advance(advanced);
            assert_eq!((clock.now_ns(), timer.is_ready(), timer.time_until_trigger_ns()), (now, true, Some(0)));
            timer.call();
            assert_eq!(timer.next_ns(), next, "at {now}");
        }
    }
}

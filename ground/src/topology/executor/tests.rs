//! What the executors have in common, and where they differ.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use super::events::EventsExecutor;
use super::kind::ExecutorKind;
use super::*;
use crate::topology::clock::Clock;
use crate::topology::message::{Header, Message, Payload};
use crate::topology::node::{Endpoint, Kind, Timer};
use crate::topology::qos::{History, PassBy};
use crate::topology::reader::Reader;
use crate::topology::wait_set::WaitSet;

/// What was served, and how many waits there were before it.
type Served = Arc<Mutex<Vec<&'static str>>>;

struct Fixture {
    clock: Arc<Clock>,
    node: Arc<Node>,
    served: Served,
}

impl Fixture {
    fn new() -> Self {
        let clock = Arc::new(Clock::Simulated(AtomicU64::new(0)));
        Self { clock, node: Node::new("node"), served: Served::default() }
    }

    fn endpoint(&self, kind: Kind, name: &'static str) -> Arc<Reader> {
        let (reader, served) = (Reader::new(History::KeepLast(10), PassBy::SharedPtr), self.served.clone());
        let callback = Box::new(move |_: Arc<Message>| lock!(served).push(name));
        self.node.add_endpoint(Endpoint::new(kind, reader.clone(), callback));
        reader
    }

    fn timer(&self, period_ns: u64, name: &'static str) {
        let served = self.served.clone();
        self.node.add_timer(Timer::new(&self.clock, period_ns, move || lock!(served).push(name)));
    }

    fn served(&self) -> Vec<&'static str> {
        std::mem::take(&mut lock!(self.served))
    }
}

fn message() -> Arc<Message> {
    let header = Header { writer: 0, number: 0, stamp_ns: 0, period_ns: 1 };
    Arc::new(Message { header, payload: Payload::Int64(0) })
}

/// A node with a timer that is due, two messages for a subscription, one for another, a request and a response; they came in
/// this order: response, other, request, messages.
fn busy() -> Fixture {
    let fixture = Fixture::new();
    let readers = [(Kind::Subscription, "messages"), (Kind::Subscription, "other"), (Kind::Service, "request")]
        .map(|(kind, name)| fixture.endpoint(kind, name));
    let response = fixture.endpoint(Kind::Client, "response");
    fixture.timer(5, "timer");
    fixture.clock.advance(5);
    response.deliver(message());
    for at in [1, 2, 0, 0] {
        readers[at].deliver(message());
    }
    fixture
}

fn served_by(executor: ExecutorKind, per_wait: PerWait) -> Vec<&'static str> {
    let fixture = busy();
    let mut executor = executor.make(per_wait, WaitSet::default());
    executor.add_node(&fixture.node);
    executor.spin_all();
    fixture.served()
}

#[test]
fn the_wait_set_executor_serves_timers_first_and_each_that_was_ready_once_before_it_waits_again() {
    assert_eq!(
        served_by(ExecutorKind::Waitset, PerWait::All),
        ["timer", "messages", "other", "request", "response", "messages"]
    );
}

#[test]
fn the_static_executor_serves_subscriptions_first() {
    assert_eq!(
        served_by(ExecutorKind::Static, PerWait::All),
        ["messages", "other", "timer", "request", "response", "messages"]
    );
}

#[test]
fn with_one_a_wait_who_is_first_is_served_again_before_others_that_were_ready() {
    let starved = ["messages", "messages", "other", "timer", "request", "response"];
    assert_eq!(served_by(ExecutorKind::Static, PerWait::One), starved);
}

#[test]
fn events_are_served_in_the_order_they_came() {
    let fixture = Fixture::new();
    let [one, other] = ["one", "other"].map(|name| fixture.endpoint(Kind::Subscription, name));
    fixture.timer(5, "timer");
    let mut executor = EventsExecutor::new();
    executor.add_node(&fixture.node);
    for reader in [&other, &one, &one, &other] {
        reader.deliver(message());
    }
    fixture.clock.advance(5);
    executor.spin_all();
    assert_eq!(fixture.served(), ["other", "one", "one", "other", "timer"]);
}

#[test]
fn events_of_messages_that_did_not_fit_into_the_history_serve_nothing() {
    let fixture = Fixture::new();
    let reader = fixture.endpoint(Kind::Subscription, "message");
    let mut executor = EventsExecutor::new();
    executor.add_node(&fixture.node);
    (0..25).for_each(|_| reader.deliver(message()));
    executor.spin_all();
    assert_eq!(fixture.served().len(), 10);
}

#[test]
fn a_node_that_is_gone_is_no_longer_served() {
    for kind in [ExecutorKind::Waitset, ExecutorKind::Events] {
        let (fixture, gone) = (busy(), busy());
        let mut executor = kind.make(PerWait::All, WaitSet::default());
        executor.add_node(&gone.node);
        executor.add_node(&fixture.node);
        let served = gone.served.clone();
        drop(gone);
        executor.spin_all();
        assert_eq!((fixture.served().len(), lock!(served).len()), (6, 0), "{kind:?}");
    }
}

/// In real time, on a thread: a timer, a message from another thread, and the end.
#[test]
fn every_executor_waits_for_timers_and_for_messages_and_ends_when_it_is_woken() {
    for kind in [ExecutorKind::Waitset, ExecutorKind::Static, ExecutorKind::Events] {
        let (served, serving) = mpsc::channel();
        let node = Node::new("node");
        let clock = Arc::new(Clock::Steady);
        let ticks = served.clone();
        node.add_timer(Timer::new(&clock, 1_000_000, move || {
            let _ = ticks.send("timer");
        }));
        let reader = Reader::new(History::KeepAll, PassBy::SharedPtr);
        let callback = Box::new(move |_: Arc<Message>| {
            let _ = served.send("message");
        });
        node.add_endpoint(Endpoint::new(Kind::Subscription, reader.clone(), callback));
        let mut executor = kind.make(PerWait::All, WaitSet::default());
        executor.add_node(&node);
        let (running, wake) = (AtomicBool::new(true), executor.waker());
        std::thread::scope(|threads| {
            threads.spawn(|| executor.spin(&running));
            let next = || serving.recv_timeout(Duration::from_secs(20)).expect("it is served");
            assert_eq!(next(), "timer", "{kind:?}");
            reader.deliver(message());
            while next() != "message" {}
            running.store(false, std::sync::atomic::Ordering::Release);
            wake();
        });
    }
}

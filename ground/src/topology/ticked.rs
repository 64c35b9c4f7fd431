//! [`Ticked`]: a topology in simulated time. In a step all timers fire, and callbacks run until all messages are taken.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::clock::Clock;
use super::executor::kind::ExecutorKind;
use super::executor::{Executor, PerWait};
use super::loopback::IdleThreads;
use super::message::{Header, Message, Payload};
use super::node::{Endpoint, Kind, Node, Timer};
use super::qos::{History, PassBy};
use super::reader::{Reader, Readers};
use super::wait_set::WaitSet;
use super::writer::Writer;
use crate::account;
use crate::random::mixed;
use crate::simulation::Simulation;

/// Duration of a step, and period of all publishers.
const STEP_NS: u64 = 10_000_000;
/// A node subscribes to the topics of the nodes this far before it.
const SUBSCRIBES_TO: [usize; 2] = [1, 7];
/// Bytes of a message, like the study's smallest.
const PAYLOAD_BYTES: usize = 10;

/// N nodes in a ring: each publishes on a topic of its own, and subscribes to those of two others.
pub struct Ticked {
    clock: Arc<Clock>,
    executor: Box<dyn Executor>,
    /// Nodes own all entities; the executor holds weak pointers.
    nodes: Vec<Arc<Node>>,
    /// A hash of the messages of each subscription, in order.
    taken: Vec<Arc<Mutex<Fold>>>,
    _idle: IdleThreads,
}

/// A hash of the messages of a subscription.
#[derive(Debug, Clone, Copy, Default)]
struct Fold {
    messages: u64,
    hash: u64,
}

impl Fold {
    fn add(&mut self, message: &Message) {
        self.messages += 1;
        self.hash = mixed(self.hash ^ u64::from(message.header.writer) << 32 ^ message.header.number);
        if let Payload::Bytes(bytes) = &message.payload {
            for byte in bytes {
                self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
}

impl Ticked {
    /// Creates the nodes and their executor.
    pub fn new(size: u32, executor: ExecutorKind, per_wait: PerWait, idle: IdleThreads) -> Self {
        let clock = Arc::new(Clock::Simulated(AtomicU64::new(0)));
        let nodes: Vec<_> = (0..size).map(|index| Node::new(format!("node_{index}"))).collect();
        let (mut topics, mut taken) = (vec![Readers::new(); nodes.len()], Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            for before in SUBSCRIBES_TO {
                let topic = (index + nodes.len() * before - before) % nodes.len();
                let (subscription, fold) = subscription();
                topics[topic].push(subscription.reader.clone());
                node.add_endpoint(subscription);
                taken.push(fold);
            }
        }
        for ((index, node), readers) in nodes.iter().enumerate().zip(topics) {
            node.add_timer(publisher(&clock, index as u32, readers));
        }
        let mut executor = executor.make(per_wait, WaitSet::default());
        nodes.iter().for_each(|node| executor.add_node(node));
        Self { clock, executor, nodes, taken, _idle: idle }
    }

    /// Runs callbacks until all messages are taken.
    #[inline(never)]
    fn serve(&mut self) {
        let _timed = account::scope("ground::topology::ticked::Ticked::serve");
        self.executor.spin_all();
    }
}

fn subscription() -> (Arc<Endpoint>, Arc<Mutex<Fold>>) {
    let fold = Arc::new(Mutex::new(Fold::default()));
    let folds = fold.clone();
    let reader = Reader::new(History::KeepLast(10), PassBy::SharedPtr);
    let callback = Box::new(move |message: Arc<Message>| lock!(folds).add(&message));
    (Endpoint::new(Kind::Subscription, reader, callback), fold)
}

/// A timer that publishes.
fn publisher(clock: &Arc<Clock>, index: u32, readers: Readers) -> Arc<Timer> {
    let writer = Writer::IntraProcess(readers);
    let (mut number, published_at) = (0, clock.clone());
    Timer::new(clock, STEP_NS, move || {
        let header = Header { writer: index, number, stamp_ns: published_at.now_ns(), period_ns: STEP_NS };
        let content = mixed(u64::from(index) << 32 ^ number).to_le_bytes();
        let payload = Payload::Bytes(content.into_iter().cycle().take(PAYLOAD_BYTES).collect());
        writer.publish(Message { header, payload }, PassBy::UniquePtr);
        number += 1;
    })
}

impl Simulation for Ticked {
    fn name(&self) -> String {
        format!("topology_{}", self.nodes.len())
    }

    fn step(&mut self, _step: u64) {
        self.clock.advance(STEP_NS);
        self.serve();
    }

    fn step_s(&self) -> f64 {
        STEP_NS as f64 * 1e-9
    }

    fn state_hash(&self) -> u64 {
        let folds = self.taken.iter().map(|fold| *lock!(fold));
        folds.fold(self.clock.now_ns(), |hash, fold| mixed(hash ^ fold.hash.wrapping_add(fold.messages)))
    }

    fn final_fields(&self) -> String {
        let taken: u64 = self.taken.iter().map(|fold| lock!(fold).messages).sum();
        format!(" taken={taken}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: u64, size: u32, executor: ExecutorKind, per_wait: PerWait) -> Ticked {
        let mut ticked = Ticked::new(size, executor, per_wait, IdleThreads::start(0).unwrap());
        (0..steps).for_each(|step| ticked.step(step));
        ticked
    }

    #[test]
    fn every_executor_gives_the_same_state_at_all_sizes() {
        use ExecutorKind::{Events, Static, Waitset};
        for size in [0, 1, 7, 30] {
            let fast = after(20, size, Events, PerWait::All).state_hash();
            for (executor, per_wait) in
                [(Static, PerWait::All), (Static, PerWait::One), (Waitset, PerWait::All), (Waitset, PerWait::One)]
            {
                let state = after(20, size, executor, per_wait).state_hash();
                assert_eq!(state, fast, "{size} nodes, {executor:?}, {per_wait:?}");
            }
            assert_ne!(after(21, size, Events, PerWait::All).state_hash(), fast, "{size} nodes");
        }
    }

    #[test]
    fn each_message_is_taken_by_both_its_subscribers_in_the_step_that_published_it() {
        for executor in [ExecutorKind::Waitset, ExecutorKind::Static, ExecutorKind::Events] {
            let ticked = after(5, 12, executor, PerWait::All);
            assert!(ticked.taken.iter().all(|fold| lock!(fold).messages == 5), "{executor:?}");
            assert_eq!(ticked.taken.len(), 24);
        }
    }
}

//! [`System`]: runs a topology in real time, with a thread per executor and trackers in all callbacks.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use super::clock::{Clock, now_ns};
use super::executor::kind::ExecutorKind;
use super::executor::{Executor, PerWait, Waker};
use super::latency::Latencies;
use super::loopback::Loopback;
use super::message::{Header, Message, PassBy};
use super::node::{Callback, Endpoint, Kind, Node, Timer};
use super::reader::{HISTORY, Reader, Readers};
use super::resources::{Resources, Start};
use super::schema::{ClientSpec, NodeSpec, PublisherSpec, Topology};
use super::tracker::{Total, Tracker};
use super::writer::Writer;

/// How messages are passed between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ipc {
    /// By pointer
    On,
    /// As bytes through the loopback interface
    Off,
}

/// How a topology is run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The executor.
    pub executor: ExecutorKind,
    /// How messages are passed.
    pub ipc: Ipc,
    /// How many callbacks run per wait.
    pub per_wait: PerWait,
}

/// Longest delay between a signal and the end of a run.
const SIGNAL_PERIOD: Duration = Duration::from_millis(100);

/// The messages of a publisher.
#[derive(Debug, Clone)]
pub struct Published {
    /// The node.
    pub node: String,
    /// The topic.
    pub topic: String,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// Its period.
    pub period: Duration,
    /// Durations of its calls of publish.
    pub durations: Latencies,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Messages received by subscriptions.
    pub subscriptions: Vec<Tracker>,
    /// Responses received by clients. Latency is from the request to the callback of the response.
    pub clients: Vec<Tracker>,
    /// Messages of publishers.
    pub publishers: Vec<Published>,
    /// Resources that the run used.
    pub resources: Resources,
}

impl Outcome {
    /// The sum of all subscriptions and clients.
    pub fn total(&self) -> Total {
        Total::of(self.subscriptions.iter().chain(&self.clients))
    }
}

type Tracked = Arc<Mutex<Tracker>>;

/// A topology that is ready to run.
pub struct System {
    /// Nodes own all entities.
    nodes: Vec<Arc<Node>>,
    executors: BTreeMap<i64, NamedExecutor>,
    subscriptions: Vec<Tracked>,
    clients: Vec<Tracked>,
    publishers: Vec<Arc<Mutex<Published>>>,
    loopback: Option<Arc<Loopback>>,
}

/// An executor, and the name of its thread.
struct NamedExecutor {
    name: String,
    executor: Box<dyn Executor>,
}

/// A channel of messages: a topic, the requests of a service, or the responses to a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Topic(String),
    Requests(String),
    Responses { client: u32 },
}

/// Readers by channel, and the channel's number on the loopback interface. Writers are created after all readers.
#[derive(Default)]
struct Domain {
    channels: BTreeMap<Channel, (u32, Readers)>,
    loopback: Option<Arc<Loopback>>,
}

impl Domain {
    fn reader(&mut self, channel: Channel, pass_by: PassBy) -> Arc<Reader> {
        let number = self.channels.len() as u32;
        let reader = Reader::new(HISTORY, pass_by);
        self.channels.entry(channel).or_insert_with(|| (number, Vec::new())).1.push(reader.clone());
        reader
    }

    /// Opens the loopback transport, which needs all readers.
    fn open_loopback(&mut self) -> io::Result<()> {
        let mut topics = vec![Vec::new(); self.channels.len()];
        for (number, readers) in self.channels.values() {
            topics[*number as usize].clone_from(readers);
        }
        self.loopback = Some(Loopback::open(topics)?);
        Ok(())
    }

    /// Creates a writer, also for a channel without readers.
    fn writer(&self, channel: &Channel) -> Writer {
        let found = self.channels.get(channel);
        match &self.loopback {
            Some(loopback) => Writer::Loopback(loopback.clone(), found.map_or(u32::MAX, |(number, _)| *number)),
            None => Writer::IntraProcess(found.map_or_else(Vec::new, |(_, readers)| readers.clone())),
        }
    }
}

/// The readers of a node, in the order of its specification.
struct NodeReaders {
    subscriptions: Vec<Arc<Reader>>,
    servers: Vec<Arc<Reader>>,
    /// With the client's number.
    clients: Vec<(u32, Arc<Reader>)>,
}

impl System {
    /// Creates the nodes.
    ///
    /// # Errors
    /// If the transport cannot be created.
    pub fn new(topology: &Topology, run: &Run) -> io::Result<Self> {
        let mut domain = Domain::default();
        let mut clients = 0;
        let readers: Vec<_> = topology.nodes.iter().map(|node| node_readers(&mut domain, node, &mut clients)).collect();
        if run.ipc == Ipc::Off {
            domain.open_loopback()?;
        }
        let mut building = Building {
            responses: response_writers(topology, &domain),
            system: Self {
                nodes: Vec::new(),
                executors: BTreeMap::new(),
                subscriptions: Vec::new(),
                clients: Vec::new(),
                publishers: Vec::new(),
                loopback: domain.loopback.clone(),
            },
            domain,
            clock: Arc::new(Clock::Steady),
            // Numbers of clients precede those of publishers.
            writers: clients,
        };
        for (spec, readers) in topology.nodes.iter().zip(readers) {
            building.node(spec, readers);
        }
        let Building { mut system, .. } = building;
        for (spec, node) in topology.nodes.iter().zip(&system.nodes) {
            let executor = system.executors.entry(spec.executor_id).or_insert_with(|| NamedExecutor {
                // The kernel keeps 15 bytes of a thread's name.
                name: spec.name.chars().take(15).collect(),
                executor: run.executor.make(run.per_wait),
            });
            executor.executor.add_node(node);
        }
        Ok(system)
    }

    /// Number of executors; each has a thread.
    pub fn executors(&self) -> usize {
        self.executors.len()
    }

    /// Runs it for a duration, or until `interrupted` is set.
    ///
    /// # Errors
    /// If a thread cannot be created.
    pub fn spin(mut self, duration: Duration, interrupted: &AtomicBool) -> io::Result<Outcome> {
        let (start, running) = (Start::now(), AtomicBool::new(true));
        let executors = std::mem::take(&mut self.executors);
        let wakers: Vec<Waker> = executors.values().map(|named| named.executor.waker()).collect();
        let resources = std::thread::scope(|threads| {
            let mut started = Ok(());
            for NamedExecutor { name, mut executor } in executors.into_values() {
                let running = &running;
                let thread = std::thread::Builder::new().name(name);
                let spawned = thread.spawn_scoped(threads, move || executor.spin(running));
                started = started.and(spawned.map(drop));
            }
            if started.is_ok() {
                wait(duration, interrupted);
            }
            let resources = start.until_now();
            running.store(false, Ordering::Release);
            wakers.iter().for_each(|wake| wake());
            started.map(|()| resources)
        })?;
        if let Some(loopback) = &self.loopback {
            loopback.close();
        }
        let of = |tracked: Vec<Tracked>| tracked.iter().map(|tracker| lock!(tracker).clone()).collect();
        Ok(Outcome {
            subscriptions: of(self.subscriptions),
            clients: of(self.clients),
            publishers: self.publishers.iter().map(|published| lock!(published).clone()).collect(),
            resources,
        })
    }
}

/// Waits until the duration has passed or a signal came.
fn wait(duration: Duration, interrupted: &AtomicBool) {
    let start = Instant::now();
    while !interrupted.load(Ordering::Relaxed)
        && let Some(rest) = duration.checked_sub(start.elapsed())
    {
        std::thread::sleep(SIGNAL_PERIOD.min(rest));
    }
}

fn node_readers(domain: &mut Domain, spec: &NodeSpec, clients: &mut u32) -> NodeReaders {
    let mut readers = NodeReaders { subscriptions: Vec::new(), servers: Vec::new(), clients: Vec::new() };
    for one in &spec.subscribers {
        readers.subscriptions.push(domain.reader(Channel::Topic(one.topic.clone()), one.pass_by));
    }
    for one in &spec.servers {
        readers.servers.push(domain.reader(Channel::Requests(one.service.clone()), PassBy::SharedPtr));
    }
    for _ in &spec.clients {
        let client = *clients;
        *clients += 1;
        readers.clients.push((client, domain.reader(Channel::Responses { client }, PassBy::SharedPtr)));
    }
    readers
}

/// Writers of responses, by service and client.
type Responses = HashMap<String, Arc<HashMap<u32, Writer>>>;

fn response_writers(topology: &Topology, domain: &Domain) -> Responses {
    let mut writers: HashMap<String, HashMap<u32, Writer>> = HashMap::new();
    for (client, spec) in (0..).zip(topology.nodes.iter().flat_map(|node| &node.clients)) {
        let writer = domain.writer(&Channel::Responses { client });
        writers.entry(spec.service.clone()).or_default().insert(client, writer);
    }
    writers.into_iter().map(|(service, writers)| (service, Arc::new(writers))).collect()
}

/// A system under construction.
struct Building {
    system: System,
    domain: Domain,
    responses: Responses,
    clock: Arc<Clock>,
    writers: u32,
}

impl Building {
    fn node(&mut self, spec: &NodeSpec, readers: NodeReaders) {
        let node = Node::new(&*spec.name);
        let tracker = |entity: &str| Arc::new(Mutex::new(Tracker::new(&spec.name, entity)));
        for (one, reader) in spec.subscribers.iter().zip(readers.subscriptions) {
            let tracker = tracker(&one.topic);
            node.add_endpoint(Endpoint::new(Kind::Subscription, reader, tracking_callback(tracker.clone())));
            self.system.subscriptions.push(tracker);
        }
        for (one, reader) in spec.servers.iter().zip(readers.servers) {
            let writers = self.responses.get(&one.service).cloned().unwrap_or_default();
            let answer = move |request: Arc<Message>| {
                if let Some(writer) = writers.get(&request.header.writer) {
                    writer.publish(Message::clone(&request), PassBy::UniquePtr);
                }
            };
            node.add_endpoint(Endpoint::new(Kind::Service, reader, Box::new(answer)));
        }
        for (one, (client, reader)) in spec.clients.iter().zip(readers.clients) {
            let tracker = tracker(&one.service);
            node.add_endpoint(Endpoint::new(Kind::Client, reader, tracking_callback(tracker.clone())));
            node.add_timer(self.requesting_timer(one, client, tracker.clone()));
            self.system.clients.push(tracker);
        }
        for one in &spec.publishers {
            node.add_timer(self.publishing_timer(spec, one));
        }
        self.system.nodes.push(node);
    }

    fn publishing_timer(&mut self, spec: &NodeSpec, publisher: &PublisherSpec) -> Arc<Timer> {
        let writer = self.domain.writer(&Channel::Topic(publisher.topic.clone()));
        let published = Arc::new(Mutex::new(Published {
            node: spec.name.clone(),
            topic: publisher.topic.clone(),
            size_bytes: publisher.size_bytes(),
            period: publisher.period,
            durations: Latencies::default(),
        }));
        self.system.publishers.push(published.clone());
        let mut sequence = Sequence::new(self.writers, publisher.period, publisher.size_bytes());
        self.writers += 1;
        let pass_by = publisher.pass_by;
        Timer::new(&self.clock, sequence.period_ns, move || {
            let message = sequence.next();
            let stamp_ns = message.header.stamp_ns;
            writer.publish(message, pass_by);
            lock!(published).durations.add(now_ns().saturating_sub(stamp_ns));
        })
    }

    fn requesting_timer(&self, client: &ClientSpec, number: u32, tracker: Tracked) -> Arc<Timer> {
        let channel = Channel::Requests(client.service.clone());
        let is_served = self.domain.channels.contains_key(&channel);
        let writer = self.domain.writer(&channel);
        let mut sequence = Sequence::new(number, client.period, client.size_bytes());
        Timer::new(&self.clock, sequence.period_ns, move || {
            // The framework waits a second for the service here, which blocks the executor's other callbacks.
            if is_served {
                writer.publish(sequence.next(), PassBy::UniquePtr);
            } else {
                lock!(tracker).unserved += 1;
            }
        })
    }
}

/// A callback that counts each message.
fn tracking_callback(tracker: Tracked) -> Callback {
    Box::new(move |message| {
        let now = now_ns();
        lock!(tracker).scan(&message.header, message.payload.len(), now);
    })
}

/// The messages of a writer.
struct Sequence {
    writer: u32,
    number: u64,
    period_ns: u64,
    size_bytes: usize,
}

impl Sequence {
    fn new(writer: u32, period: Duration, size_bytes: usize) -> Self {
        Self { writer, number: 0, period_ns: period.as_nanos() as u64, size_bytes }
    }

    /// The next message, stamped last.
    fn next(&mut self) -> Message {
        let payload = vec![0; self.size_bytes];
        let Self { writer, number, period_ns, .. } = *self;
        self.number += 1;
        Message { header: Header { writer, number, stamp_ns: now_ns(), period_ns }, payload }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::schema;
    use super::*;

    fn outcome(topology: &Topology, executor: ExecutorKind, ipc: Ipc) -> Outcome {
        let duration = Duration::from_millis(300);
        let run = Run { executor, ipc, per_wait: PerWait::All };
        System::new(topology, &run).unwrap().spin(duration, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn subscriptions_and_clients_receive_in_every_way_to_run_a_topology() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies/services.json");
        let topology = schema::read(&path).unwrap();
        for executor in [ExecutorKind::Waitset, ExecutorKind::Static, ExecutorKind::Events] {
            for ipc in [Ipc::On, Ipc::Off] {
                let outcome = outcome(&topology, executor, ipc);
                let names: Vec<_> = outcome.clients.iter().map(|one| (&*one.node, &*one.entity)).collect();
                assert_eq!(names, [("planner", "/plan"), ("operator", "/plan"), ("operator", "/map")]);
                assert_eq!(outcome.subscriptions.len(), 1);
                for tracker in outcome.clients.iter().chain(&outcome.subscriptions) {
                    assert!(tracker.received() > 0, "{executor:?}, {ipc:?}: {tracker:?}");
                    assert_eq!(tracker.lost(), 0, "{executor:?}, {ipc:?}: {tracker:?}");
                }
                assert!(outcome.publishers[0].durations.count() >= outcome.subscriptions[0].received());
                assert_eq!((outcome.clients[2].size_bytes, outcome.publishers[0].size_bytes), (100, 8));
                assert!(outcome.resources.elapsed >= Duration::from_millis(300));
            }
        }
    }

    #[test]
    fn requests_without_a_server_are_counted_and_block_nothing() {
        let text = r#"{"nodes": [{"node_name": "asks",
            "clients": [{"service_name": "nothing", "srv_type": "stamped10b", "period_ms": 5}],
            "publishers": [{"topic_name": "t", "msg_type": "stamped10b", "period_ms": 5}],
            "subscribers": [{"topic_name": "t", "msg_type": "stamped10b"}]}]}"#;
        let topology = serde_json::from_str(text).unwrap();
        let outcome = outcome(&topology, ExecutorKind::Waitset, Ipc::On);
        assert_eq!(outcome.clients[0].received(), 0);
        assert!(outcome.subscriptions[0].received() > 5);
        assert!(outcome.clients[0].unserved > 5);
    }
}

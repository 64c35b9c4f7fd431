//! [`System`]: runs a topology in real time, with a thread per executor and trackers in all callbacks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use super::clock::{Clock, now_ns};
use super::cyclonedds::Participant;
use super::cyclonedds::error::DdsError;
use super::events_log::{Code, Events, EventsLog};
use super::executor::kind::ExecutorKind;
use super::executor::{Executor, PerWait, Waker};
use super::latency::Latencies;
use super::loopback::Loopback;
use super::message::{Header, Message, MessageType};
use super::node::{Callback, Endpoint, Kind, Node, Timer};
use super::qos::{PassBy, Qos, Reliability};
use super::reader::{Reader, Readers};
use super::resources::{Resources, Start};
use super::schema::{ClientSpec, NodeSpec, PublisherSpec, Topology};
use super::tracetools::{Handle, Instrumentation, Publication, Reception, Tracetools, Way};
use super::tracker::{Total, Tracker};
use super::wait_set::WaitSet;
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

/// The middleware that transports messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Middleware {
    /// The simulator's own middleware
    Ground,
    /// Eclipse Cyclone DDS, if the program was built with it
    Cyclonedds,
}

/// How a topology is run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The executor.
    pub executor: ExecutorKind,
    /// How messages are passed.
    pub ipc: Ipc,
    /// The middleware.
    pub middleware: Middleware,
    /// How many callbacks run per wait.
    pub per_wait: PerWait,
    /// The library that messages and callbacks are reported to; `None` for marks.
    pub tracetools: Option<&'static Tracetools>,
}

/// Why a topology cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// Sockets or threads cannot be created.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Cyclone DDS cannot be used.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// Cyclone DDS cannot pass messages by pointer.
    #[error("Cyclone DDS passes messages as bytes; leave out --ipc, or use --ipc off")]
    DdsByPointer,
}

/// Time between two samples of resources.
const SAMPLE_PERIOD: Duration = Duration::from_millis(500);
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
    /// Events: late and lost messages, requests without a server.
    pub events: Events,
    /// Resources used so far, at regular times during the run.
    pub samples: Vec<Resources>,
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
    executors: BTreeMap<i64, (String, Box<dyn Executor>)>,
    subscriptions: Vec<Tracked>,
    clients: Vec<Tracked>,
    publishers: Vec<Arc<Mutex<Published>>>,
    log: Arc<EventsLog>,
    loopback: Option<Arc<Loopback>>,
}

/// A channel of messages: a topic, the requests of a service, or the responses to a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Channel {
    Topic(String),
    Requests(String),
    Responses { client: u32 },
}

impl Channel {
    /// Its name in Cyclone DDS.
    fn name(&self) -> String {
        match self {
            Channel::Topic(topic) => topic.clone(),
            Channel::Requests(service) => requests(service),
            Channel::Responses { client } => format!("/client_{client}Reply"),
        }
    }
}

/// Readers by channel. Writers are created after all readers.
struct Domain {
    channels: BTreeMap<Channel, (u32, Readers)>,
    transport: Transport,
    /// Receives reports about buffers within the process.
    tracetools: Option<&'static Tracetools>,
}

enum Transport {
    Pointers,
    Loopback(Arc<Loopback>),
    Dds(Arc<Participant>),
}

impl Domain {
    fn join(run: &Run) -> Result<Self, SystemError> {
        let transport = match (run.middleware, run.ipc) {
            (Middleware::Ground, _) => Transport::Pointers,
            (Middleware::Cyclonedds, Ipc::Off) => Transport::Dds(Participant::new()?),
            (Middleware::Cyclonedds, Ipc::On) => return Err(SystemError::DdsByPointer),
        };
        let tracetools = run.tracetools.filter(|_| run.ipc == Ipc::On);
        Ok(Self { channels: BTreeMap::new(), transport, tracetools })
    }

    fn reader(&mut self, channel: Channel, qos: Qos, pass_by: PassBy) -> Result<Arc<Reader>, SystemError> {
        let number = self.channels.len() as u32;
        let reader = match &self.transport {
            Transport::Dds(participant) => Reader::over(participant.reader(&channel.name(), qos)?),
            _ => match (&channel, self.tracetools) {
                (Channel::Topic(_), Some(tracetools)) => Reader::reporting(qos.history, pass_by, tracetools),
                _ => Reader::new(qos.history, pass_by),
            },
        };
        self.channels.entry(channel).or_insert_with(|| (number, Vec::new())).1.push(reader.clone());
        Ok(reader)
    }

    /// Opens the loopback transport, which needs all readers.
    fn open(&mut self, ipc: Ipc) -> io::Result<()> {
        if ipc == Ipc::Off && matches!(self.transport, Transport::Pointers) {
            let mut topics = vec![Vec::new(); self.channels.len()];
            for (number, readers) in self.channels.values() {
                topics[*number as usize].clone_from(readers);
            }
            self.transport = Transport::Loopback(Loopback::open(topics)?);
        }
        Ok(())
    }

    /// Creates a writer, also for a channel without readers.
    fn writer(&self, channel: &Channel, reliability: Reliability) -> Result<Writer, SystemError> {
        let found = self.channels.get(channel);
        Ok(match &self.transport {
            Transport::Loopback(loopback) => {
                let number = found.map_or(u32::MAX, |(number, _)| *number);
                Writer::Loopback(loopback.clone(), number, reliability)
            }
            Transport::Dds(participant) => {
                let readers = found.map_or(0, |(_, readers)| readers.len());
                Writer::Dds(participant.writer(&channel.name(), reliability, readers)?)
            }
            Transport::Pointers => Writer::IntraProcess(found.map_or_else(Vec::new, |(_, readers)| readers.clone())),
        })
    }

    fn wait_set(&self) -> Result<WaitSet, SystemError> {
        Ok(match &self.transport {
            Transport::Dds(participant) => WaitSet::over(participant.wait_set()?),
            _ => WaitSet::default(),
        })
    }

    fn loopback(&self) -> Option<Arc<Loopback>> {
        match &self.transport {
            Transport::Loopback(loopback) => Some(loopback.clone()),
            _ => None,
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
    /// If the middleware or its transport cannot be created.
    pub fn new(topology: &Topology, run: &Run) -> Result<Self, SystemError> {
        let mut domain = Domain::join(run)?;
        let mut clients = 0;
        let specs = topology.nodes.iter();
        let readers: Vec<_> =
            specs.map(|node| node_readers(&mut domain, node, &mut clients)).collect::<Result<_, _>>()?;
        domain.open(run.ipc)?;
        let mut building = Building {
            responses: response_writers(topology, &domain)?,
            system: Self {
                nodes: Vec::new(),
                executors: BTreeMap::new(),
                subscriptions: Vec::new(),
                clients: Vec::new(),
                publishers: Vec::new(),
                log: Arc::new(EventsLog::new()),
                loopback: domain.loopback(),
            },
            domain,
            clock: Arc::new(Clock::Steady),
            // Numbers of clients precede those of publishers.
            writers: clients,
            instrumentation: Instrumentation {
                tracetools: run.tracetools,
                way: if run.ipc == Ipc::On { Way::Within } else { Way::Transport },
            },
        };
        for (spec, readers) in topology.nodes.iter().zip(readers) {
            building.node(spec, readers)?;
        }
        let Building { mut system, domain, .. } = building;
        for (spec, node) in topology.nodes.iter().zip(&system.nodes) {
            if let Entry::Vacant(place) = system.executors.entry(spec.executor_id) {
                place.insert((spec.name.clone(), run.executor.make(run.per_wait, domain.wait_set()?)));
            }
            if let Some((_, executor)) = system.executors.get_mut(&spec.executor_id) {
                executor.add_node(node);
            }
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
    pub fn spin(mut self, duration: Duration, interrupted: &AtomicBool) -> Result<Outcome, SystemError> {
        // The framework logs both phases of discovery. Here, readers and writers are connected when they are created.
        self.log.add("SYSTEM", Code::Discovery, "[discovery] PDP completed".to_owned());
        self.log.add("SYSTEM", Code::Discovery, "[discovery] EDP completed".to_owned());
        let (start, running) = (Start::now(), AtomicBool::new(true));
        let executors = std::mem::take(&mut self.executors);
        let wakers: Vec<Waker> = executors.values().map(|(_, executor)| executor.waker()).collect();
        let mut samples = Vec::new();
        let resources = std::thread::scope(|threads| {
            let mut started = Ok(());
            for (name, mut executor) in executors.into_values() {
                let running = &running;
                // The kernel keeps 15 bytes of a thread's name.
                let name: String = name.chars().take(15).collect();
                let thread = std::thread::Builder::new().name(name);
                let spawned = thread.spawn_scoped(threads, move || executor.spin(running));
                started = started.and(spawned.map(drop));
            }
            if started.is_ok() {
                samples = sample(&start, duration, interrupted);
            }
            let resources = start.until_now();
            running.store(false, Ordering::Release);
            wakers.iter().for_each(|wake| wake());
            started.map(|()| resources)
        })?;
        if let Some(loopback) = &self.loopback {
            loopback.close();
        }
        Ok(self.outcome(samples, resources))
    }

    fn outcome(self, samples: Vec<Resources>, resources: Resources) -> Outcome {
        let of = |tracked: Vec<Tracked>| tracked.iter().map(|tracker| lock!(tracker).clone()).collect();
        Outcome {
            subscriptions: of(self.subscriptions),
            clients: of(self.clients),
            publishers: self.publishers.iter().map(|published| lock!(published).clone()).collect(),
            events: self.log.take(),
            samples,
            resources,
        }
    }
}

/// Samples resources until the duration has passed or a signal came.
fn sample(start: &Start, duration: Duration, interrupted: &AtomicBool) -> Vec<Resources> {
    let begin = Instant::now();
    let (mut samples, mut next) = (Vec::new(), SAMPLE_PERIOD);
    loop {
        let elapsed = begin.elapsed();
        if elapsed >= duration || interrupted.load(Ordering::Relaxed) {
            return samples;
        }
        if elapsed >= next {
            samples.push(start.until_now());
            next += SAMPLE_PERIOD;
        }
        std::thread::sleep(SIGNAL_PERIOD.min(duration - elapsed).min(next.saturating_sub(elapsed)));
    }
}

fn node_readers(domain: &mut Domain, spec: &NodeSpec, clients: &mut u32) -> Result<NodeReaders, SystemError> {
    let mut readers = NodeReaders { subscriptions: Vec::new(), servers: Vec::new(), clients: Vec::new() };
    for one in &spec.subscribers {
        readers.subscriptions.push(domain.reader(Channel::Topic(one.topic.clone()), one.qos, one.pass_by)?);
    }
    for one in &spec.servers {
        readers.servers.push(domain.reader(Channel::Requests(one.service.clone()), one.qos, PassBy::SharedPtr)?);
    }
    for one in &spec.clients {
        let client = *clients;
        *clients += 1;
        readers.clients.push((client, domain.reader(Channel::Responses { client }, one.qos, PassBy::SharedPtr)?));
    }
    Ok(readers)
}

/// Writers of responses, by service and client.
type Responses = HashMap<String, Arc<HashMap<u32, Writer>>>;

fn response_writers(topology: &Topology, domain: &Domain) -> Result<Responses, SystemError> {
    let mut writers: HashMap<String, HashMap<u32, Writer>> = HashMap::new();
    for (client, spec) in topology.nodes.iter().flat_map(|node| &node.clients).enumerate() {
        let client = client as u32;
        let writer = domain.writer(&Channel::Responses { client }, spec.qos.reliability)?;
        writers.entry(spec.service.clone()).or_default().insert(client, writer);
    }
    Ok(writers.into_iter().map(|(service, writers)| (service, Arc::new(writers))).collect())
}

/// A system under construction.
struct Building {
    system: System,
    domain: Domain,
    responses: Responses,
    clock: Arc<Clock>,
    writers: u32,
    instrumentation: Instrumentation,
}

impl Building {
    fn node(&mut self, spec: &NodeSpec, readers: NodeReaders) -> Result<(), SystemError> {
        let node = Node::new(&*spec.name);
        let handle = self.instrumentation.node(&spec.name);
        for (one, reader) in spec.subscribers.iter().zip(readers.subscriptions) {
            let tracker = self.tracker(spec, &one.topic);
            self.system.subscriptions.push(tracker.clone());
            let reception = self.instrumentation.subscription(handle, &one.topic);
            let callback = self.tracking_callback(spec, &one.topic, tracker, reception);
            node.add_endpoint(Endpoint::new(Kind::Subscription, reader, callback));
        }
        for (one, reader) in spec.servers.iter().zip(readers.servers) {
            let writers = self.responses.get(&one.service).cloned().unwrap_or_default();
            let reception = self.instrumentation.service(handle, &one.service, &requests(&one.service));
            let publication = self.instrumentation.unpublished(&replies(&one.service));
            let answer = move |request: Arc<Message>| {
                reception.tell(&request, || {
                    if let Some(writer) = writers.get(&request.header.writer) {
                        publication.iter().for_each(|publication| publication.tell(&request));
                        writer.publish(Message::clone(&request), PassBy::UniquePtr);
                    }
                });
            };
            node.add_endpoint(Endpoint::new(Kind::Service, reader, Box::new(answer)));
        }
        for (one, (client, reader)) in spec.clients.iter().zip(readers.clients) {
            let tracker = self.tracker(spec, &one.service);
            self.system.clients.push(tracker.clone());
            let reception = self.instrumentation.client(&replies(&one.service));
            let callback = self.tracking_callback(spec, &one.service, tracker.clone(), reception);
            node.add_endpoint(Endpoint::new(Kind::Client, reader, callback));
            node.add_timer(self.requesting_timer(spec, handle, one, client, tracker)?);
        }
        for one in &spec.publishers {
            node.add_timer(self.publishing_timer(spec, handle, one)?);
        }
        self.system.nodes.push(node);
        Ok(())
    }

    fn tracker(&self, spec: &NodeSpec, entity: &str) -> Tracked {
        Arc::new(Mutex::new(Tracker::new(&spec.name, entity)))
    }

    /// A callback that counts each message and logs late and lost ones.
    fn tracking_callback(&self, spec: &NodeSpec, entity: &str, tracker: Tracked, reception: Reception) -> Callback {
        let (log, caller) = (self.system.log.clone(), caller(entity, spec));
        Box::new(move |message| {
            reception.tell(&message, || {
                let now = now_ns();
                stepscope_marks::counter!("latency_ns", now.saturating_sub(message.header.stamp_ns));
                let arrival = lock!(tracker).scan(&message.header, message.payload.size_bytes(), now);
                log.add_arrival(&caller, message.header.number, &arrival);
            });
        })
    }

    fn publishing_timer(
        &mut self,
        spec: &NodeSpec,
        node: Handle,
        publisher: &PublisherSpec,
    ) -> Result<Arc<Timer>, SystemError> {
        let channel = Channel::Topic(publisher.topic.clone());
        let writer = self.domain.writer(&channel, publisher.qos.reliability)?;
        let (message, size, pass_by) = (publisher.message, publisher.msg_size, publisher.pass_by);
        let published = Arc::new(Mutex::new(Published {
            node: spec.name.clone(),
            topic: publisher.topic.clone(),
            size_bytes: message.make(size).size_bytes(),
            period: publisher.period,
            durations: Latencies::default(),
        }));
        self.system.publishers.push(published.clone());
        let mut sequence = Sequence { writer: self.writers, number: 0, period_ns: publisher.period.as_nanos() as u64 };
        self.writers += 1;
        let publication = self.instrumentation.publisher(node, &publisher.topic);
        let due = self.instrumentation.timer(node, sequence.period_ns);
        Ok(Timer::new(&self.clock, sequence.period_ns, move || {
            due.tell(|| {
                let message = sequence.next(message, size);
                let stamp_ns = message.header.stamp_ns;
                publication.tell(&message);
                writer.publish(message, pass_by);
                lock!(published).durations.add(now_ns().saturating_sub(stamp_ns));
            });
        }))
    }

    fn requesting_timer(
        &self,
        spec: &NodeSpec,
        node: Handle,
        client: &ClientSpec,
        number: u32,
        tracker: Tracked,
    ) -> Result<Arc<Timer>, SystemError> {
        let channel = Channel::Requests(client.service.clone());
        let is_served = self.domain.channels.contains_key(&channel);
        let writer = self.domain.writer(&channel, client.qos.reliability)?;
        let (log, caller) = (self.system.log.clone(), caller(&client.service, spec));
        let (service, message) = (client.service.clone(), client.message);
        let mut sequence = Sequence { writer: number, number: 0, period_ns: client.period.as_nanos() as u64 };
        let publication: Option<Publication> = self.instrumentation.unpublished(&requests(&service));
        let due = self.instrumentation.timer(node, sequence.period_ns);
        Ok(Timer::new(&self.clock, sequence.period_ns, move || {
            due.tell(|| {
                // The framework waits a second for the service here, which blocks the executor's other callbacks.
                if is_served {
                    let request = sequence.next(message, 0);
                    publication.iter().for_each(|publication| publication.tell(&request));
                    writer.publish(request, PassBy::UniquePtr);
                } else {
                    lock!(tracker).unserved += 1;
                    log.add(&caller, Code::ServiceUnavailable, format!("[service] '{service}' unavailable"));
                }
            });
        }))
    }
}

/// The topic of a service's requests, as DDS has it.
fn requests(service: &str) -> String {
    format!("{service}Request")
}

/// The topic of a service's responses.
fn replies(service: &str) -> String {
    format!("{service}Reply")
}

/// A node and its topic or service, as the framework names them in its events.
fn caller(entity: &str, spec: &NodeSpec) -> String {
    format!("{entity}->{}", spec.name)
}

/// A writer and its next message number.
struct Sequence {
    writer: u32,
    number: u64,
    period_ns: u64,
}

impl Sequence {
    /// The next message, stamped last.
    fn next(&mut self, message: MessageType, size: usize) -> Message {
        let payload = message.make(size);
        let Self { writer, number, period_ns } = *self;
        self.number += 1;
        Message { header: Header { writer, number, stamp_ns: now_ns(), period_ns }, payload }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::schema;
    use super::*;
    use crate::topology::cyclonedds;

    fn outcome(topology: &Topology, executor: ExecutorKind, middleware: Middleware, ipc: Ipc) -> Outcome {
        let duration = Duration::from_millis(300);
        let run = Run { executor, ipc, middleware, per_wait: PerWait::All, tracetools: None };
        System::new(topology, &run).unwrap().spin(duration, &AtomicBool::new(false)).unwrap()
    }

    /// All transports of this build.
    fn ways() -> Vec<(Middleware, Ipc)> {
        let mut ways = vec![(Middleware::Ground, Ipc::On), (Middleware::Ground, Ipc::Off)];
        match cyclonedds::IS_BUILT {
            true => ways.push((Middleware::Cyclonedds, Ipc::Off)),
            false => println!(
                "skipped: subscriptions_and_clients_receive_in_every_way_to_run_a_topology: cyclonedds: not installed"
            ),
        }
        ways
    }

    #[test]
    fn subscriptions_and_clients_receive_in_every_way_to_run_a_topology() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies/services.json");
        let topology = schema::read(&path).unwrap();
        for executor in [ExecutorKind::Waitset, ExecutorKind::Static, ExecutorKind::Events] {
            for (middleware, ipc) in ways() {
                let outcome = outcome(&topology, executor, middleware, ipc);
                let names: Vec<_> = outcome.clients.iter().map(|one| (&*one.node, &*one.entity)).collect();
                assert_eq!(names, [("planner", "/plan"), ("operator", "/plan"), ("operator", "/map")]);
                assert_eq!(outcome.subscriptions.len(), 1);
                for tracker in outcome.clients.iter().chain(&outcome.subscriptions) {
                    assert!(tracker.received() > 0, "{executor:?}, {middleware:?}, {ipc:?}: {tracker:?}");
                    assert_eq!(tracker.lost(), 0, "{executor:?}, {middleware:?}, {ipc:?}: {tracker:?}");
                }
                assert!(outcome.publishers[0].durations.count() >= outcome.subscriptions[0].received());
                assert_eq!((outcome.clients[2].size_bytes, outcome.publishers[0].size_bytes), (100, 8));
                assert!(outcome.resources.elapsed >= Duration::from_millis(300));
            }
        }
    }

    #[test]
    fn requests_without_a_server_are_counted_and_logged_and_block_nothing() {
        let text = r#"{"nodes": [{"node_name": "asks",
            "clients": [{"service_name": "nothing", "srv_type": "stamped10b", "period_ms": 5}],
            "publishers": [{"topic_name": "t", "msg_type": "stamped10b", "period_ms": 5}],
            "subscribers": [{"topic_name": "t", "msg_type": "stamped10b"}]}]}"#;
        let topology = schema::parse(text.as_bytes(), Path::new("x.json")).unwrap();
        let outcome = outcome(&topology, ExecutorKind::Waitset, Middleware::Ground, Ipc::On);
        assert_eq!(outcome.clients[0].received(), 0);
        assert!(outcome.subscriptions[0].received() > 5);
        assert!(outcome.clients[0].unserved > 5);
        let unavailable: Vec<_> =
            outcome.events.kept.iter().filter(|event| event.code == Code::ServiceUnavailable).collect();
        assert_eq!(unavailable.len() as u64, outcome.clients[0].unserved);
        assert_eq!(unavailable[0].caller, "/nothing->asks");
        assert_eq!(unavailable[0].description, "[service] '/nothing' unavailable");
    }
}

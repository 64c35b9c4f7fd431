//! Messages of ROS 2: from the calls of publishing and taking to stages of flows.
//!
//! A message is published on a thread by `rclcpp_publish`, `rcl_publish` and `rmw_publish`, of which versions and languages
//! have some. It is taken by `rmw_take`, and the next callback of its subscription on that thread is for it.
//!
//! The two ends are joined by the message's source timestamp. Later versions give it to `rmw_publish`, too: then it is
//! equal. In earlier ones it lies just after the publication, so the message is the last one of its topic
//! that was published before it, at most [`MOST_BEFORE_NS`] earlier. This needs a clock with its offset to real time.
//!
//! Within a process, `rclcpp_intra_publish` puts the message into the buffer of each subscription
//! (`rclcpp_ring_buffer_enqueue`), and the place in the buffer joins the two ends. A message that also goes to other processes is the
//! same message.
//!
//! A message that was published on another machine, or outside of the recording, is named by its source timestamp
//! ([`FlowNumber::Stamped`]): a merged capture joins it with its publication.
//!
//! A request to a service and its response are messages, too: their topics are `service /add` and `service /add response`. They are
//! joined by the id of the client and the number of the request.
//!
//! Where the calls that describe publishers and subscriptions are missing, because the program ran before, the topic that a uprobe
//! reads from the transport's handle stands in for them.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{FlowNumber, FlowStage};

use super::graph::{self, Endpoint, Graph, Message};
use super::services::Services;
use super::{Fields, Kind};

/// Time from a publication to its source timestamp, at most: DDS may first allocate, serialise and wait for a lock.
const MOST_BEFORE_NS: u64 = 50_000_000;
/// Most open callbacks of a thread. A trace with more has lost their ends.
const MOST_OPEN: usize = 64;
/// Publications of a topic that can still be taken.
const MOST_KEPT: usize = 65_536;
/// Messages in buffers within processes. Those of processes that ended stay there.
const MOST_BUFFERED: usize = 1 << 20;

/// The thread that calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Its process; 0 if it is not known.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
}

/// A stage of a message, or of a callback without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The thread.
    pub caller: Caller,
    /// When.
    pub time_ns: u64,
    /// The topic; for callbacks without one, what calls them.
    pub topic: Arc<str>,
    /// Number of the message in its topic.
    pub flow: Option<u64>,
    /// What happened.
    pub stage: FlowStage,
    /// The node that published, or the callback.
    pub name: Option<Arc<str>>,
    /// Period of the timer that calls the callback.
    pub period_ns: Option<u64>,
}

/// A callback started or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackEvent {
    /// It started.
    Started {
        /// Its address.
        callback: u64,
        /// Its name.
        name: Arc<str>,
    },
    /// It ended.
    Ended {
        /// Its address.
        callback: Option<u64>,
        /// Its name and its start, if that was seen.
        started: Option<(Arc<str>, u64)>,
    },
}

/// The messages of a recording, by its calls in the order of time.
#[derive(Debug)]
pub struct Messages {
    /// Time zero of the calls in ns since 1970.
    origin_ns: i64,
    graph: Graph,
    stages: VecDeque<Stage>,
    topics: FxHashMap<Arc<str>, Topic>,
    threads: FxHashMap<Caller, OnThread>,
    /// Messages in buffers, by process, buffer and place.
    buffered: FxHashMap<(u32, u64, u64), Message>,
    services: Services,
    /// Messages that were taken and whose publication was not seen.
    pub unmatched: u64,
    /// Takes without a known subscription, and publications without a known publisher.
    pub unknown: u64,
}

#[derive(Debug, Default)]
struct Topic {
    /// Messages before the first of `published`.
    forgotten: u64,
    /// Times and source timestamps of publications.
    published: VecDeque<(u64, Option<u64>)>,
    by_stamp: FxHashMap<u64, u64>,
}

/// What a thread is about to do.
#[derive(Debug, Default)]
struct OnThread {
    /// Time and address of the message that the program handed over last.
    handed_over: Option<(u64, Option<u64>)>,
    /// The message that was published last, and its address.
    published: Option<(Message, Option<u64>)>,
    /// The message that goes into buffers of its process.
    within: Option<Message>,
    /// A message of an unknown publisher.
    nameless: Option<Nameless>,
    /// The publisher that published last, and the address of its message.
    publisher: Option<(u64, Option<u64>)>,
    /// A message that no callback started for yet.
    taken: Option<Message>,
    open: Vec<OpenCallback>,
}

/// A message of a publisher that is not described.
#[derive(Debug, Clone, Copy)]
struct Nameless {
    time_ns: u64,
    address: Option<u64>,
}

#[derive(Debug)]
struct OpenCallback {
    callback: Option<u64>,
    start_ns: u64,
    topic: Arc<str>,
    flow: Option<u64>,
    shown: Arc<str>,
    name: Option<Arc<str>>,
    period_ns: Option<u64>,
}

impl Messages {
    /// No messages yet. `origin_ns` is time zero of the calls in ns since 1970.
    pub fn new(origin_ns: i64) -> Self {
        Self {
            origin_ns,
            graph: Graph::default(),
            stages: VecDeque::new(),
            topics: FxHashMap::default(),
            threads: FxHashMap::default(),
            buffered: FxHashMap::default(),
            services: Services::default(),
            unmatched: 0,
            unknown: 0,
        }
    }

    /// Takes a call.
    pub fn take(&mut self, kind: Kind, call: &impl Fields, caller: Caller, time_ns: u64) -> Option<CallbackEvent> {
        let message = || call.number("message");
        match kind {
            Kind::HandedOver => self.on(caller).handed_over = Some((time_ns, message())),
            Kind::HandedOverWithin => {
                let message = message();
                self.on(caller).publisher = call.number("publisher_handle").map(|handle| (handle, message));
                let publisher = self.publisher(call, caller);
                let is_known = publisher.is_some();
                // The address is often that of the message before.
                self.on(caller).published = None;
                self.publish(caller, time_ns, message, publisher);
                let thread = self.on(caller);
                let published = thread.published.as_ref().filter(|_| is_known);
                thread.within = published.map(|(message, _)| message.clone());
            }
            Kind::Published => {
                let message = message();
                self.on(caller).publisher = call.number("publisher_handle").map(|handle| (handle, message));
                self.publish(caller, time_ns, message, self.publisher(call, caller));
            }
            Kind::Sent => self.send(caller, call, time_ns),
            Kind::Taken => self.receive(caller, call, time_ns),
            Kind::Enqueued => self.put_into_buffer(caller, call),
            Kind::Dequeued => self.take_from_buffer(caller, call, time_ns),
            Kind::CallbackStart => return Some(self.callback_start(caller, call.number("callback")?, time_ns)),
            Kind::CallbackEnd => return Some(self.callback_end(caller, call.number("callback"), time_ns)),
            Kind::RequestSent | Kind::RequestTaken | Kind::ResponseSent | Kind::ResponseTaken => {
                self.take_service_call(kind, call, caller, time_ns);
            }
            kind => self.graph.learn(kind, call, caller.pid),
        }
        None
    }

    /// The first of the stages that were not given yet.
    #[inline]
    pub fn next_stage(&mut self) -> Option<Stage> {
        self.stages.pop_front()
    }

    fn on(&mut self, caller: Caller) -> &mut OnThread {
        self.threads.entry(caller).or_default()
    }

    fn publisher(&self, call: &impl Fields, caller: Caller) -> Option<Endpoint> {
        self.graph.publisher(caller.pid, call.number("publisher_handle")?)
    }

    fn publish(&mut self, caller: Caller, time_ns: u64, address: Option<u64>, publisher: Option<Endpoint>) {
        let thread = self.threads.entry(caller).or_default();
        let handed_over = thread.handed_over.take().filter(|(_, known)| *known == address);
        let time_ns = handed_over.map_or(time_ns, |(time_ns, _)| time_ns);
        let Some(Endpoint { topic, node }) = publisher else {
            thread.nameless = Some(Nameless { time_ns, address });
            self.unknown += 1;
            return;
        };
        // What was handed over within the process also goes to others.
        let is_within = |message: &Message| message.0 == topic && thread.within.as_ref() == Some(message);
        if address.is_some() && matches!(&thread.published, Some((last, known)) if *known == address && is_within(last))
        {
            return;
        }
        let flow = self.topics.entry(topic.clone()).or_default().add(time_ns);
        thread.published = Some(((topic.clone(), flow), address));
        thread.within = None;
        let (flow, stage) = (Some(flow), FlowStage::Published);
        self.stages.push_back(Stage { caller, time_ns, topic, flow, stage, name: node, period_ns: None });
    }

    /// The transport has the message that the thread published last.
    fn send(&mut self, caller: Caller, call: &impl Fields, time_ns: u64) {
        let (mut handle, mut address) = (call.number("rmw_publisher_handle"), call.number("message"));
        let mut stamp = call.number("timestamp");
        let thread = self.threads.entry(caller).or_default();
        let last = [&thread.nameless.map(|message| message.address), &thread.published.as_ref().map(|(_, at)| *at)];
        // Before Jazzy, the message is the only argument, in the place of the handle.
        if handle.is_some() && last.iter().any(|last| **last == Some(handle)) {
            (address, handle, stamp) = (handle, None, None);
        }
        let nameless = thread.nameless.take().filter(|message| message.address == address);
        let by = thread.publisher.take().filter(|(_, known)| *known == address);
        let known = handle.and_then(|handle| self.graph.rmw_publisher(caller.pid, handle));
        let publisher = known.or_else(|| Some(Endpoint { topic: topic_of(call, handle)?, node: None }));
        if let (Some((by, _)), Some(Endpoint { topic, node: None })) = (by, &publisher) {
            self.graph.name_publisher(caller.pid, by, topic);
        }
        if let Some(Nameless { time_ns, address }) = nameless {
            self.unknown -= u64::from(publisher.is_some());
            if publisher.is_some() {
                self.publish(caller, time_ns, address, publisher);
            }
        } else {
            let is_same = |topic: &Arc<str>| publisher.as_ref().is_none_or(|publisher| publisher.topic == *topic);
            let last = thread.published.as_ref();
            if !last.is_some_and(|((topic, _), _)| is_same(topic)) {
                // A language whose library does not say so publishes by itself.
                self.publish(caller, time_ns, address, publisher);
            }
        }
        let Some(((topic, flow), _)) = self.on(caller).published.take() else { return };
        if let (Some(stamp), Some(known)) = (stamp, self.topics.get_mut(&topic)) {
            known.stamp(flow, stamp);
        }
        let (flow, stage) = (Some(flow), FlowStage::Sent);
        self.stages.push_back(Stage { caller, time_ns, topic, flow, stage, name: None, period_ns: None });
    }

    fn take_service_call(&mut self, kind: Kind, call: &impl Fields, caller: Caller, time_ns: u64) {
        let pid = caller.pid;
        if call.number("taken") == Some(0) {
            return;
        }
        match kind {
            Kind::RequestSent | Kind::ResponseSent => {
                let Some((Endpoint { topic, node }, key)) = Services::sent(kind, call, pid, &self.graph) else {
                    self.unknown += 1;
                    return;
                };
                let flow = self.topics.entry(topic.clone()).or_default().add(time_ns);
                if let Some(key) = key {
                    self.services.send(key, (topic.clone(), flow));
                }
                let stage = |stage, name| {
                    let (topic, flow) = (topic.clone(), Some(flow));
                    Stage { caller, time_ns, topic, flow, stage, name, period_ns: None }
                };
                self.stages.extend([stage(FlowStage::Published, node), stage(FlowStage::Sent, None)]);
            }
            _ => {
                let message = self.services.receive(kind, call, pid, &self.graph);
                self.unmatched += u64::from(message.is_none());
                self.take_message(caller, time_ns, message);
                if kind == Kind::ResponseTaken {
                    // No callback of rclcpp tells that it is for a response.
                    self.on(caller).taken = None;
                }
            }
        }
    }

    fn receive(&mut self, caller: Caller, call: &impl Fields, time_ns: u64) {
        if call.number("taken") == Some(0) {
            return;
        }
        let handle = call.number("rmw_subscription_handle");
        let known = handle.and_then(|handle| self.graph.rmw_subscription(caller.pid, handle));
        let Some(topic) = known.or_else(|| topic_of(call, handle)) else {
            self.unknown += 1;
            return;
        };
        let stamp = call.number("source_timestamp");
        let message = stamp.and_then(|stamp| self.topics.get(&topic)?.message(stamp, self.origin_ns));
        self.unmatched += u64::from(message.is_none());
        let message = message.or_else(|| Some(FlowNumber::Stamped(stamp.filter(|stamp| *stamp > 0)?).to_flow()));
        self.take_message(caller, time_ns, message.map(|flow| (topic, flow)));
    }

    fn take_message(&mut self, caller: Caller, time_ns: u64, message: Option<Message>) {
        if let Some((topic, flow)) = message.clone() {
            let (flow, stage) = (Some(flow), FlowStage::Taken);
            self.stages.push_back(Stage { caller, time_ns, topic, flow, stage, name: None, period_ns: None });
        }
        self.on(caller).taken = message;
    }

    fn put_into_buffer(&mut self, caller: Caller, call: &impl Fields) {
        let place = call.number("buffer").zip(call.number("index"));
        let Some((buffer, index)) = place else { return };
        self.name_within(caller);
        let message = self.threads.get(&caller).and_then(|thread| thread.within.clone());
        if self.buffered.len() >= MOST_BUFFERED {
            self.buffered.clear();
        }
        match message {
            Some(message) => self.buffered.insert((caller.pid, buffer, index), message),
            // What was in this place is gone.
            None => self.buffered.remove(&(caller.pid, buffer, index)),
        };
    }

    /// A message of an unknown publisher goes into a buffer of its process: its way there can be followed, whatever its topic.
    fn name_within(&mut self, caller: Caller) {
        let Some(thread) = self.threads.get_mut(&caller).filter(|thread| thread.within.is_none()) else { return };
        let (Some(message), Some((handle, address))) = (thread.nameless, thread.publisher) else { return };
        if message.address != address {
            return;
        }
        thread.nameless = None;
        self.unknown -= 1;
        let publisher = self.graph.unnamed_publisher(caller.pid, handle);
        self.publish(caller, message.time_ns, address, Some(publisher));
        let thread = self.on(caller);
        thread.within = thread.published.as_ref().map(|(message, _)| message.clone());
    }

    fn take_from_buffer(&mut self, caller: Caller, call: &impl Fields, time_ns: u64) {
        let place = call.number("buffer").zip(call.number("index"));
        let message = place.and_then(|(buffer, index)| self.buffered.remove(&(caller.pid, buffer, index)));
        self.unmatched += u64::from(message.is_none());
        self.take_message(caller, time_ns, message);
    }

    /// A callback starts, for the message that its thread took last if it is of this topic.
    fn callback_start(&mut self, caller: Caller, callback: u64, time_ns: u64) -> CallbackEvent {
        let &graph::Callback { name: ref shown, ref what, period_ns, has_name } =
            self.graph.known(caller.pid, callback);
        let thread = self.threads.entry(caller).or_default();
        let is_its = |taken: &mut Message| what.as_ref().is_none_or(|what| taken.0 == *what);
        let taken = thread.taken.take_if(is_its);
        let name = (has_name || taken.is_none()).then(|| shown.clone());
        let (topic, flow) = match taken {
            Some((topic, flow)) => (topic, Some(flow)),
            None => (what.as_ref().unwrap_or(shown).clone(), None),
        };
        if thread.open.len() >= MOST_OPEN {
            thread.open.remove(0);
        }
        let open = OpenCallback {
            callback: Some(callback),
            start_ns: time_ns,
            topic,
            flow,
            shown: shown.clone(),
            name,
            period_ns,
        };
        let (topic, name) = (open.topic.clone(), open.name.clone());
        let stage = FlowStage::CallbackStart;
        self.stages.push_back(Stage { caller, time_ns, topic, flow, stage, name, period_ns });
        thread.open.push(open);
        CallbackEvent::Started { callback, name: shown.clone() }
    }

    /// A callback ends, and with it those within it.
    fn callback_end(&mut self, caller: Caller, callback: Option<u64>, time_ns: u64) -> CallbackEvent {
        let open = self.threads.get_mut(&caller).and_then(|thread| {
            let is_it = |open: &OpenCallback| callback.is_none() || open.callback == callback;
            let at = thread.open.iter().rposition(is_it)?;
            thread.open.truncate(at + 1);
            thread.open.pop()
        });
        let started = open.map(|open| {
            let OpenCallback { start_ns, topic, flow, shown, name, period_ns, .. } = open;
            let stage = FlowStage::CallbackEnd;
            self.stages.push_back(Stage { caller, time_ns, topic, flow, stage, name, period_ns });
            (shown, start_ns)
        });
        CallbackEvent::Ended { callback, started }
    }
}

/// The topic that a uprobe read from the transport's handle.
fn topic_of(call: &impl Fields, handle: Option<u64>) -> Option<Arc<str>> {
    handle?;
    let name = std::str::from_utf8(call.text("topic_name")?).ok()?;
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"/_~".contains(&byte);
    (name.len() > 1 && name.starts_with('/') && name.bytes().all(is_of_names)).then(|| graph::topic(name))
}

/// The number of a message that this recording counted.
fn counted(count: u64) -> u64 {
    FlowNumber::Counted { machine: 0, count }.to_flow()
}

impl Topic {
    /// Adds a message. Gives its number.
    fn add(&mut self, time_ns: u64) -> u64 {
        if self.published.len() >= MOST_KEPT
            && let Some((_, stamp)) = self.published.pop_front()
        {
            stamp.map(|stamp| self.by_stamp.remove(&stamp));
            self.forgotten += 1;
        }
        self.published.push_back((time_ns, None));
        counted(self.forgotten + self.published.len() as u64 - 1)
    }

    fn stamp(&mut self, flow: u64, stamp: u64) {
        let at =
            FlowNumber::of(flow).shown().checked_sub(self.forgotten).and_then(|at| self.published.get_mut(at as usize));
        if let Some((_, known)) = at {
            *known = Some(stamp);
            self.by_stamp.insert(stamp, flow);
        }
    }

    /// The number of the message with this source timestamp, in ns since 1970.
    fn message(&self, stamp: u64, origin_ns: i64) -> Option<u64> {
        if let Some(&flow) = self.by_stamp.get(&stamp) {
            return Some(flow);
        }
        let time_ns = u64::try_from(i64::try_from(stamp).ok()?.checked_sub(origin_ns)?).ok()?;
        let after = self.published.partition_point(|&(published_ns, _)| published_ns <= time_ns);
        let last = after.checked_sub(1)?;
        let (published_ns, stamp) = self.published[last];
        // One with a stamp of its own is another message.
        let is_it = stamp.is_none() && time_ns - published_ns <= MOST_BEFORE_NS;
        is_it.then(|| counted(self.forgotten + last as u64))
    }
}

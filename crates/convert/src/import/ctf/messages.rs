//! Messages of ROS 2: from the events of publishing and taking to stages of flows.
//!
//! A message is published on a thread by `rclcpp_publish`, `rcl_publish` and `rmw_publish`, of which versions and languages
//! have some. It is taken by `rmw_take`, and the next callback of its subscription on that thread is for it.
//!
//! The two ends are joined by the message's source timestamp. Later versions write it in `rmw_publish`, too: then it is
//! equal. In earlier ones it lies just after the publication, so the message is the last one of its topic
//! that was published before it, at most [`MOST_BEFORE_NS`] earlier. This needs a trace clock with its offset to real time,
//! as LTTng writes it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_ctf::Event;
use stepscope_model::quantity::plural;
use stepscope_model::{Capture, FlowEvent, FlowStage, ThreadId};

use super::number;
use super::ros2::{Endpoint, Graph, Kind};
use crate::import::trace::Caller;

/// Time from a publication to its source timestamp, at most: DDS may first allocate, serialise and wait for a lock.
const MOST_BEFORE_NS: u64 = 50_000_000;
/// A thread may seem to start this much after its first event: clocks of CPUs differ a little.
const SLACK_NS: u64 = 1_000_000;

/// A thread of a process.
type Tid = (u32, u32);

/// A stage before its thread has a row.
struct Stage {
    tid: Tid,
    time_ns: u64,
    topic: Arc<str>,
    flow: Option<u64>,
    stage: FlowStage,
    name: Option<Arc<str>>,
    period_ns: Option<u64>,
}

#[derive(Default)]
pub(super) struct Messages {
    stages: Vec<Stage>,
    topics: FxHashMap<Arc<str>, Topic>,
    threads: FxHashMap<Tid, OnThread>,
    /// Messages that were taken and whose publication is not in the trace.
    unmatched: u64,
    /// Takes without a known subscription, and publications without a known publisher.
    unknown: u64,
}

#[derive(Default)]
struct Topic {
    /// Times of publication; the number of a message is its place.
    published_ns: Vec<u64>,
    by_stamp: FxHashMap<u64, u64>,
}

/// What a thread is about to do.
#[derive(Default)]
struct OnThread {
    /// Time and message of the last `rclcpp_publish`.
    handed_over: Option<(u64, Option<u64>)>,
    /// Topic and number of the message that was published last.
    published: Option<(Arc<str>, u64)>,
    /// Topic and number of a message that no callback began for yet.
    taken: Option<(Arc<str>, u64)>,
    /// Open callbacks: topic, number, name, period.
    open: Vec<OpenCallback>,
}

struct OpenCallback {
    callback: Option<u64>,
    topic: Arc<str>,
    flow: Option<u64>,
    name: Arc<str>,
    period_ns: Option<u64>,
}

/// Most open callbacks of a thread. A trace with more has lost their ends.
const MOST_OPEN: usize = 64;

impl Messages {
    /// Takes an event that publishes or takes a message. `origin_ns` is time zero of the capture in ns since 1970.
    pub fn take(&mut self, kind: Kind, event: &Event<'_>, caller: Caller, time_ns: u64, origin_ns: i64, graph: &Graph) {
        let tid = (caller.pid, caller.tid);
        let message = number(event, "message");
        match kind {
            Kind::HandedOver => self.threads.entry(tid).or_default().handed_over = Some((time_ns, message)),
            Kind::Published => {
                let publisher =
                    number(event, "publisher_handle").and_then(|handle| graph.publisher(caller.pid, handle));
                self.publish(tid, time_ns, message, publisher);
            }
            Kind::Sent => self.send(tid, event, time_ns, graph),
            Kind::Taken => self.receive(tid, event, time_ns, origin_ns, graph),
            _ => {}
        }
    }

    fn publish(&mut self, tid: Tid, time_ns: u64, message: Option<u64>, publisher: Option<Endpoint>) {
        let Some(Endpoint { topic, node }) = publisher else {
            self.unknown += 1;
            return;
        };
        let thread = self.threads.entry(tid).or_default();
        let handed_over = thread.handed_over.take().filter(|(_, known)| *known == message);
        let time_ns = handed_over.map_or(time_ns, |(time_ns, _)| time_ns);
        let known = self.topics.entry(topic.clone()).or_default();
        let flow = known.published_ns.len() as u64;
        known.published_ns.push(time_ns);
        thread.published = Some((topic.clone(), flow));
        let (flow, stage) = (Some(flow), FlowStage::Published);
        self.stages.push(Stage { tid, time_ns, topic, flow, stage, name: node, period_ns: None });
    }

    /// The transport has the message that the thread published last.
    fn send(&mut self, tid: Tid, event: &Event<'_>, time_ns: u64, graph: &Graph) {
        let publisher = number(event, "rmw_publisher_handle").and_then(|handle| graph.rmw_publisher(tid.0, handle));
        let is_same = |topic: &Arc<str>| publisher.as_ref().is_none_or(|publisher| publisher.topic == *topic);
        let last = self.threads.get(&tid).and_then(|thread| thread.published.clone());
        if !last.is_some_and(|(topic, _)| is_same(&topic)) {
            // A language whose library does not say so publishes by itself.
            self.publish(tid, time_ns, number(event, "message"), publisher);
        }
        let Some((topic, flow)) = self.threads.get_mut(&tid).and_then(|thread| thread.published.take()) else { return };
        if let (Some(stamp), Some(known)) = (number(event, "timestamp"), self.topics.get_mut(&topic)) {
            known.by_stamp.insert(stamp, flow);
        }
        let (flow, stage) = (Some(flow), FlowStage::Sent);
        self.stages.push(Stage { tid, time_ns, topic, flow, stage, name: None, period_ns: None });
    }

    fn receive(&mut self, tid: Tid, event: &Event<'_>, time_ns: u64, origin_ns: i64, graph: &Graph) {
        if number(event, "taken") == Some(0) {
            return;
        }
        let handle = number(event, "rmw_subscription_handle");
        let Some(topic) = handle.and_then(|handle| graph.rmw_subscription(tid.0, handle)) else {
            self.unknown += 1;
            return;
        };
        let thread = self.threads.entry(tid).or_default();
        let stamp = number(event, "source_timestamp");
        let message = stamp.and_then(|stamp| self.topics.get(&topic)?.message(stamp, origin_ns));
        thread.taken = message.map(|flow| (topic.clone(), flow));
        match message {
            Some(flow) => {
                let (flow, stage) = (Some(flow), FlowStage::Taken);
                self.stages.push(Stage { tid, time_ns, topic, flow, stage, name: None, period_ns: None });
            }
            None => self.unmatched += 1,
        }
    }

    /// A callback starts, for the message that its thread took last if it is of this topic.
    pub fn callback_start(&mut self, caller: Caller, callback: u64, name: Arc<str>, time_ns: u64, graph: &Graph) {
        let tid = (caller.pid, caller.tid);
        let (topic, period_ns) = graph.what(caller.pid, callback);
        let topic = topic.unwrap_or_else(|| name.clone());
        let thread = self.threads.entry(tid).or_default();
        let flow = thread.taken.take_if(|(taken, _)| *taken == topic).map(|(_, flow)| flow);
        if thread.open.len() >= MOST_OPEN {
            thread.open.remove(0);
        }
        let open = OpenCallback { callback: Some(callback), topic, flow, name, period_ns };
        self.stages.push(open.stage(tid, time_ns, FlowStage::CallbackStart));
        thread.open.push(open);
    }

    /// A callback ends, and with it those within it.
    pub fn callback_end(&mut self, caller: Caller, callback: Option<u64>, time_ns: u64) {
        let tid = (caller.pid, caller.tid);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let is_it = |open: &OpenCallback| callback.is_none() || open.callback == callback;
        let Some(at) = thread.open.iter().rposition(is_it) else { return };
        if let Some(open) = thread.open.drain(at..).next() {
            self.stages.push(open.stage(tid, time_ns, FlowStage::CallbackEnd));
        }
    }

    /// Adds the stages to a capture whose threads are complete, and what is missing to its notes.
    pub fn finish(self, capture: &mut Capture) {
        let mut by_tid: FxHashMap<u32, Vec<ThreadId>> = FxHashMap::default();
        for (index, thread) in capture.threads.iter().enumerate() {
            by_tid.entry(thread.tid).or_default().push(ThreadId::from_index(index));
        }
        for Stage { tid, time_ns, topic, flow, stage, name, period_ns } in self.stages {
            let began = |thread: &&ThreadId| {
                let start_ns = capture.threads[thread.index()].start_ns;
                start_ns.is_none_or(|start_ns| start_ns <= time_ns.saturating_add(SLACK_NS))
            };
            let Some(with_id) = by_tid.get(&tid.1) else { continue };
            let Some(&thread) = with_id.iter().rev().find(began).or(with_id.first()) else { continue };
            capture.flows.push(FlowEvent { time_ns, thread, topic, flow, stage, name, period_ns });
        }
        capture.flows.sort_by_key(|event| event.time_ns);
        let mut note = |count: u64, text: &str| {
            if count > 0 {
                capture.info.notes.push(format!("{} {text}", plural(count as usize, "message")));
            }
        };
        note(self.unmatched, "without a publication in the trace: it is of another machine, or was not recorded.");
        note(
            self.unknown,
            "of unknown publishers and subscriptions were skipped: the trace lacks their rcl_publisher_init and \
             rcl_subscription_init. Start the trace before the nodes.",
        );
    }
}

impl Topic {
    /// The number of the message with this source timestamp, in ns since 1970.
    fn message(&self, stamp: u64, origin_ns: i64) -> Option<u64> {
        if let Some(&flow) = self.by_stamp.get(&stamp) {
            return Some(flow);
        }
        let time_ns = u64::try_from(i64::try_from(stamp).ok()?.checked_sub(origin_ns)?).ok()?;
        let after = self.published_ns.partition_point(|&published_ns| published_ns <= time_ns);
        let last = after.checked_sub(1)?;
        (time_ns - self.published_ns[last] <= MOST_BEFORE_NS).then_some(last as u64)
    }
}

impl OpenCallback {
    fn stage(&self, tid: Tid, time_ns: u64, stage: FlowStage) -> Stage {
        let &Self { flow, period_ns, .. } = self;
        Stage { tid, time_ns, topic: self.topic.clone(), flow, stage, name: Some(self.name.clone()), period_ns }
    }
}

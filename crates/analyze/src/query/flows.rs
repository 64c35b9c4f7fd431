//! Messages, and their way from the thread that publishes to each thread that receives.
//!
//! A message is named by its topic and its number there. It is *published* once and *arrives* once for each subscriber: when
//! its callback starts, or at the program's `STEPSCOPE_FLOW_END`. Its *latency* is the time between the two. A number that
//! is published again names a new message.
//!
//! Between the two lie stages. A stage belongs to an arrival if it is of the publisher's thread or the subscriber's, or of
//! a thread of one of their processes on which this message arrives nowhere.
//!
//! Publishers and subscribers are the nodes and callbacks that the source names, else the threads of one name in one
//! process.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{FlowEvent, FlowStage, ProcessId, ThreadId};

use super::select::Selection;

/// The messages of a capture.
pub struct Flows<'a> {
    /// By publication.
    pub messages: Vec<Message<'a>>,
    /// Stages of messages whose publication is not in the capture.
    pub unpublished: u64,
}

/// One message.
pub struct Message<'a> {
    /// Its publication.
    pub published: &'a FlowEvent,
    /// Its later stages, by time.
    pub stages: Vec<&'a FlowEvent>,
}

impl<'a> Flows<'a> {
    /// All messages of a selection's capture.
    pub fn of(selection: &Selection<'a>) -> Self {
        let mut flows = Self { messages: Vec::new(), unpublished: 0 };
        let mut latest: FxHashMap<(&str, u64), usize> = FxHashMap::default();
        for event in &selection.capture().flows {
            let Some(flow) = event.flow else { continue };
            let key = (&*event.topic, flow);
            if event.stage == FlowStage::Published {
                latest.insert(key, flows.messages.len());
                flows.messages.push(Message { published: event, stages: Vec::new() });
                continue;
            }
            match latest.get(&key) {
                Some(&message) => flows.messages[message].stages.push(event),
                None => flows.unpublished += 1,
            }
        }
        flows
    }
}

impl<'a> Message<'a> {
    /// Where it arrived, by time.
    pub fn arrivals(&self) -> impl Iterator<Item = &'a FlowEvent> + '_ {
        self.stages.iter().copied().filter(|event| event.stage.is_arrival())
    }

    /// Its stages from publication to one of its arrivals, both included.
    pub fn way(&self, arrival: &'a FlowEvent, selection: &Selection<'a>) -> Vec<&'a FlowEvent> {
        let process = |thread: ThreadId| -> Option<ProcessId> { selection.capture().threads[thread.index()].process };
        let ends = [self.published.thread, arrival.thread];
        let processes = ends.map(process);
        let is_on_way = |event: &FlowEvent| {
            ends.contains(&event.thread)
                || processes.contains(&process(event.thread))
                    && self.arrivals().all(|other| other.thread != event.thread)
        };
        let between = self.stages.iter().copied().take_while(|event| !std::ptr::eq(*event, arrival));
        let between = between.filter(|event| !event.stage.is_arrival() && event.stage != FlowStage::CallbackEnd);
        let between = between.filter(|event| is_on_way(event));
        std::iter::once(self.published).chain(between).chain([arrival]).collect()
    }
}

/// Labels of publishers and subscribers.
#[derive(Default)]
pub struct Ends {
    threads: FxHashMap<ThreadId, Arc<str>>,
}

impl Ends {
    /// The node, the callback or the thread at which a stage is.
    pub fn label(&mut self, event: &FlowEvent, selection: &Selection<'_>) -> Arc<str> {
        if let Some(name) = &event.name {
            return name.clone();
        }
        let label = || {
            let capture = selection.capture();
            let thread = &capture.threads[event.thread.index()];
            let machine = thread.process.and_then(|process| capture.processes[process.index()].machine.as_deref());
            let is_named_alike = |process: &str| {
                let own = machine.and_then(|machine| process.strip_prefix(machine)?.strip_prefix('/'));
                own.unwrap_or(process) == thread.name
            };
            match selection.process_label_of(thread) {
                "" => thread.name.as_str().into(),
                process if is_named_alike(process) => process.into(),
                process => format!("{process}: {}", thread.name).into(),
            }
        };
        self.threads.entry(event.thread).or_insert_with(label).clone()
    }
}

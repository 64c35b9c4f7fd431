//! Events of ros2_tracing: callbacks are scopes, and messages flows.

use rustc_hash::FxHashMap;
use stepscope_assemble::ros2::{self, CallbackEvent, Fields, Kind, Messages, Stage};
use stepscope_ctf::Event;
use stepscope_model::quantity::plural;
use stepscope_model::{Capture, FlowEvent, ThreadId};

use super::{number, text};
use crate::import::trace::{Caller, Trace};

/// A thread may seem to start this much after its first event: clocks of CPUs differ a little.
const SLACK_NS: u64 = 1_000_000;

/// An event as a call.
struct Call<'a>(&'a Event<'a>);

impl Fields for Call<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        number(self.0, field)
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        text(self.0, field)
    }
}

/// Takes an event.
pub(super) fn take(
    kind: Kind,
    event: &Event<'_>,
    caller: Caller,
    time_ns: u64,
    messages: &mut Messages,
    trace: &mut Trace,
) {
    let by = ros2::Caller { pid: caller.pid, tid: caller.tid };
    match messages.take(kind, &Call(event), by, time_ns) {
        Some(CallbackEvent::Started { callback, name }) => trace.begin(caller, callback, name, time_ns),
        Some(CallbackEvent::Ended { callback, .. }) => trace.end(caller, callback, time_ns),
        None => {}
    }
}

/// Adds the stages of messages to a capture whose threads are complete, and what is missing to its notes.
pub(super) fn finish(mut messages: Messages, capture: &mut Capture) {
    let mut by_tid: FxHashMap<u32, Vec<ThreadId>> = FxHashMap::default();
    for (index, thread) in capture.threads.iter().enumerate() {
        by_tid.entry(thread.tid).or_default().push(ThreadId::from_index(index));
    }
    for Stage { caller, time_ns, topic, flow, stage, name, period_ns } in messages.take_stages() {
        let began = |thread: &&ThreadId| {
            let start_ns = capture.threads[thread.index()].start_ns;
            start_ns.is_none_or(|start_ns| start_ns <= time_ns.saturating_add(SLACK_NS))
        };
        let Some(with_id) = by_tid.get(&caller.tid) else { continue };
        let Some(&thread) = with_id.iter().rev().find(began).or(with_id.first()) else { continue };
        capture.flows.push(FlowEvent { time_ns, thread, topic, flow, stage, name, period_ns });
    }
    capture.flows.sort_by_key(|event| event.time_ns);
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            capture.info.notes.push(format!("{} {text}", plural(count as usize, "message")));
        }
    };
    note(messages.unmatched, "without a publication in the trace: it is of another machine, or was not recorded.");
    note(
        messages.unknown,
        "of unknown publishers and subscriptions were skipped: the trace lacks their rcl_publisher_init and \
         rcl_subscription_init. Start the trace before the nodes.",
    );
}

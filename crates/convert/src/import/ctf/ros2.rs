//! Events of ros2_tracing: callbacks are scopes, and messages flows.

use stepscope_assemble::ros2::{self, CallbackEvent, Fields, Kind, Messages, Stage};
use stepscope_ctf::Event;
use stepscope_model::quantity::plural;
use stepscope_model::{Capture, FlowEvent};

use super::{Class, number, text};
use crate::import::trace::{Caller, Trace};

/// An event as a call.
pub(super) struct Call<'a> {
    pub event: &'a Event<'a>,
    pub class: &'a Class,
}

impl Fields for Call<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        // Fields that most events have.
        let place = match field {
            "callback" => self.class.callback,
            "message" => self.class.message,
            _ => None,
        };
        match place {
            Some(place) => self.event.value(place)?.as_u64(),
            None => number(self.event, field),
        }
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        text(self.event, field)
    }
}

/// Takes an event.
pub(super) fn take(
    kind: Kind,
    call: &Call<'_>,
    caller: Caller,
    time_ns: u64,
    messages: &mut Messages,
    trace: &mut Trace,
) {
    let by = ros2::Caller { pid: caller.pid, tid: caller.tid };
    match messages.take(kind, call, by, time_ns) {
        Some(CallbackEvent::Started { callback, name }) => trace.begin(caller, callback, name, time_ns),
        Some(CallbackEvent::Ended { callback, .. }) => trace.end(caller, callback, time_ns),
        None => {}
    }
    let Some(thread) = trace.thread(caller) else { return };
    // An event makes stages on its own thread alone.
    for Stage { time_ns, topic, flow, stage, name, period_ns, .. } in messages.take_stages() {
        trace.flow(FlowEvent { time_ns, thread, topic, flow, stage, name, period_ns });
    }
}

/// Adds what is missing of messages to the notes of a capture.
pub(super) fn note(messages: &Messages, capture: &mut Capture) {
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

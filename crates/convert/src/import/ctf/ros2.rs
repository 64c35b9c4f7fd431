//! Events of ros2_tracing: callbacks are scopes, and messages flows.

use stepscope_assemble::ros2::{self, CallbackEvent, Fields, Kind, Messages, Stage};
use stepscope_ctf::{Event, Value};
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
    #[inline]
    fn number(&self, field: &str) -> Option<u64> {
        // Fields that most events have.
        let place = match field {
            "callback" => self.class.callback,
            "message" => self.class.message,
            _ => None,
        };
        match (place, field) {
            (Some(place), _) => self.event.number(place),
            (None, "gid" | "client_gid") => half_of_id(self.event, field, 0),
            (None, "gid_rest") => half_of_id(self.event, "gid", 8),
            (None, "client_gid_rest") => half_of_id(self.event, "client_gid", 8),
            (None, _) => number(self.event, field),
        }
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        text(self.event, field)
    }
}

/// Eight bytes of an id, from one on, as a number in little-endian order.
fn half_of_id(event: &Event<'_>, field: &str, first: usize) -> Option<u64> {
    let Value::Array(id) = event.field(field)? else { return None };
    let mut bytes = [0; 8];
    let mut elements = id.iter().skip(first);
    for byte in &mut bytes {
        *byte = u8::try_from(elements.next()?.as_u64()?).ok()?;
    }
    Some(u64::from_le_bytes(bytes))
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
    while let Some(Stage { time_ns, topic, flow, stage, name, period_ns, .. }) = messages.next_stage() {
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

//! Calls of callbacks: from `callback_start` to `callback_end` on one thread. An end closes the last open call of its name;
//! calls within it whose end is missing are left out.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{FlowEvent, FlowStage, ThreadId};

use super::select::Selection;

/// One call of a callback.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// Its start, with the callback's name.
    pub start: &'a FlowEvent,
    /// Its end.
    pub end_ns: u64,
}

impl Call<'_> {
    /// How long it took.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start.time_ns)
    }

    /// The callback's name.
    pub fn name(&self) -> &Arc<str> {
        self.start.name.as_ref().unwrap_or(&self.start.topic)
    }
}

/// Calls of callbacks.
#[derive(Default)]
pub struct Callbacks<'a> {
    /// Calls with both ends, by end.
    pub calls: Vec<Call<'a>>,
    /// Starts and ends without their counterpart.
    pub incomplete: u64,
}

impl<'a> Callbacks<'a> {
    /// The calls of selected threads that lie within the selected time.
    pub fn of(selection: &Selection<'a>) -> Self {
        let mut callbacks = Self::default();
        let mut open: FxHashMap<ThreadId, Vec<&'a FlowEvent>> = FxHashMap::default();
        let is_selected = |event: &&FlowEvent| selection.has_thread(event.thread);
        for event in selection.capture().flows.iter().filter(is_selected) {
            match event.stage {
                FlowStage::CallbackStart => open.entry(event.thread).or_default().push(event),
                FlowStage::CallbackEnd => {
                    let open = open.entry(event.thread).or_default();
                    let is_it = |start: &&FlowEvent| start.name == event.name && start.topic == event.topic;
                    let Some(at) = open.iter().rposition(is_it) else {
                        callbacks.incomplete += 1;
                        continue;
                    };
                    callbacks.incomplete += (open.len() - at - 1) as u64;
                    let start = open[at];
                    open.truncate(at);
                    let window = selection.window().filter(|_| selection.filters_time());
                    let is_inside =
                        |window: std::ops::Range<u64>| start.time_ns >= window.start && event.time_ns <= window.end;
                    if window.is_none_or(is_inside) {
                        callbacks.calls.push(Call { start, end_ns: event.time_ns });
                    }
                }
                _ => {}
            }
        }
        callbacks.incomplete += open.values().map(|open| open.len() as u64).sum::<u64>();
        callbacks
    }
}

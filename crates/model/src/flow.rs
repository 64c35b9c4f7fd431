//! Flows: what happens to one message, from thread to thread.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr};

use crate::ids::ThreadId;

/// A stage on the way of a message, or of a callback without a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEvent {
    /// Time on the capture's clock.
    pub time_ns: u64,
    /// The thread that reached the stage.
    pub thread: ThreadId,
    /// The topic of the message; for callbacks without one, what calls them, such as `timer 10 ms`.
    pub topic: Arc<str>,
    /// Number of the message, unique within its topic; `None` without a message.
    pub flow: Option<u64>,
    /// What happened.
    pub stage: FlowStage,
    /// The node that published, or the callback; `None` if the source has only the thread.
    pub name: Option<Arc<str>>,
    /// Period of the timer that calls the callback.
    pub period_ns: Option<u64>,
}

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FlowStage {
    /// The program handed it over to be sent (`STEPSCOPE_FLOW_BEGIN`, `rclcpp_publish`).
    Published,
    /// The transport has it.
    Sent,
    /// It passed a place that the program marked (`STEPSCOPE_FLOW_STEP`).
    Passed,
    /// A subscriber took it from the transport.
    Taken,
    /// A callback for it began.
    CallbackStart,
    /// That callback ended.
    CallbackEnd,
    /// It is where it should be (`STEPSCOPE_FLOW_END`).
    Arrived,
}

impl FlowStage {
    /// The name of the stage.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether a subscriber has the message from this stage on: the latency of a message ends here.
    pub fn is_arrival(self) -> bool {
        matches!(self, Self::CallbackStart | Self::Arrived)
    }
}

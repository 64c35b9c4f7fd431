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

/// How the note of a capture begins that says why it has no messages of ROS 2, though they were asked for.
pub const NO_ROS2: &str = "Messages of ROS 2 were not recorded";

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

/// How a message got its number ([`FlowEvent::flow`]).
///
/// Programs number their messages by themselves, so such a number names one message on all machines. Messages of ROS 2 have
/// no number: the recorder counts them, and knows those of other machines by the time that their publisher wrote into
/// them. The upper bits say which of these a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowNumber {
    /// The program gave it.
    Program(u64),
    /// The recorder counted the messages of this topic.
    Counted {
        /// The machine, in a merged capture.
        machine: u8,
        /// The number of the message, from 0.
        count: u64,
    },
    /// The message was published elsewhere, at this time in ns since 1970 by its publisher's wall clock.
    Stamped(u64),
}

/// The upper 16 bits of a number that was counted. Eight bits of the machine and 40 of the count follow.
const COUNTED: u64 = 0xf10b;
/// The upper two bits of a number that is a time.
const STAMPED: u64 = 0b10;

impl FlowNumber {
    /// What a number says.
    pub fn of(flow: u64) -> Self {
        match (flow >> 48, flow >> 62) {
            (COUNTED, _) => Self::Counted { machine: (flow >> 40) as u8, count: flow & ((1 << 40) - 1) },
            (_, STAMPED) => Self::Stamped(flow & ((1 << 62) - 1)),
            _ => Self::Program(flow),
        }
    }

    /// The number as it is in captures.
    pub fn to_flow(self) -> u64 {
        match self {
            Self::Program(flow) => flow,
            Self::Counted { machine, count } => COUNTED << 48 | u64::from(machine) << 40 | count & ((1 << 40) - 1),
            Self::Stamped(unix_ns) => STAMPED << 62 | unix_ns & ((1 << 62) - 1),
        }
    }

    /// The number without the bits that say what it is, for people.
    pub fn shown(self) -> u64 {
        match self {
            Self::Program(number) | Self::Counted { count: number, .. } | Self::Stamped(number) => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FlowNumber;

    #[test]
    fn a_number_keeps_what_it_is() {
        for number in [
            FlowNumber::Program(0),
            FlowNumber::Program(1_795_694_400_000_000_000),
            FlowNumber::Counted { machine: 0, count: 0 },
            FlowNumber::Counted { machine: 255, count: (1 << 40) - 1 },
            FlowNumber::Stamped(1_795_694_400_000_000_000),
        ] {
            assert_eq!(FlowNumber::of(number.to_flow()), number);
        }
    }
}

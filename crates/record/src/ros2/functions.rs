//! The functions of tracetools, and which of their arguments are read.
//!
//! Signatures: `tracetools/include/tracetools/tracetools.h` of Galactic to Rolling. They differ for `rmw_publish` alone, whose only
//! argument is the message before Jazzy: [`Messages`](stepscope_assemble::ros2::Messages) tells the two apart by the address of the
//! message.

use stepscope_assemble::ros2::Kind;

/// An argument, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// 64 bits of it.
    Word(usize),
    /// Its first byte.
    Byte(usize),
    /// The first 64 bits at its address.
    First(usize),
    /// The next 64 bits there.
    Second(usize),
    /// The text at its address.
    Text(usize),
    /// The topic of a `rmw_publisher_t` or `rmw_subscription_t`: their third field, in all versions of `rmw/types.h`.
    TopicOf(usize),
}

/// Where `topic_name` is in these: after `implementation_identifier` and `data`.
const TOPIC_AT: usize = 16;

#[cfg(target_arch = "x86_64")]
const REGISTERS: [&str; 5] = ["%di", "%si", "%dx", "%cx", "%r8"];
#[cfg(target_arch = "aarch64")]
const REGISTERS: [&str; 5] = ["%x0", "%x1", "%x2", "%x3", "%x4"];

impl Read {
    /// What the kernel is asked to fetch (kernel documentation, `trace/uprobetracer.rst`).
    pub fn fetched(self) -> String {
        match self {
            Self::Word(number) => format!("{}:u64", REGISTERS[number]),
            Self::Byte(number) => format!("{}:u8", REGISTERS[number]),
            Self::First(number) => format!("+0({}):u64", REGISTERS[number]),
            Self::Second(number) => format!("+8({}):u64", REGISTERS[number]),
            Self::Text(number) => format!("+0({}):string", REGISTERS[number]),
            Self::TopicOf(number) => format!("+0(+{TOPIC_AT}({})):string", REGISTERS[number]),
        }
    }
}

/// A function, by its arguments' names in recordings of ros2_tracing.
pub(super) struct Function {
    pub call: Kind,
    pub arguments: &'static [(&'static str, Read)],
}

macro_rules! functions {
    ($($call:ident($($name:literal: $read:ident $number:literal),*))*) => {
        &[$(Function { call: Kind::$call, arguments: &[$(($name, Read::$read($number))),*] }),*]
    };
}

pub(super) const FUNCTIONS: &[Function] = functions! {
    Node("node_handle": Word 0, "node_name": Text 2, "namespace": Text 3)
    Publisher("publisher_handle": Word 0, "node_handle": Word 1, "rmw_publisher_handle": Word 2, "topic_name": Text 3)
    Subscription("subscription_handle": Word 0, "node_handle": Word 1, "rmw_subscription_handle": Word 2, "topic_name": Text 3)
    SubscriptionObject("subscription_handle": Word 0, "subscription": Word 1)
    SubscriptionCallback("subscription": Word 0, "callback": Word 1)
    Service("service_handle": Word 0, "node_handle": Word 1, "rmw_service_handle": Word 2, "service_name": Text 3)
    ServiceCallback("service_handle": Word 0, "callback": Word 1)
    Client("node_handle": Word 1, "rmw_client_handle": Word 2, "service_name": Text 3)
    ClientId("rmw_client_handle": Word 0, "gid": First 1, "gid_rest": Second 1)
    Timer("timer_handle": Word 0, "period": Word 1)
    TimerCallback("timer_handle": Word 0, "callback": Word 1)
    TimerNode("timer_handle": Word 0, "node_handle": Word 1)
    Symbol("callback": Word 0, "symbol": Text 1)
    HandedOver("publisher_handle": Word 0, "message": Word 1)
    HandedOverWithin("publisher_handle": Word 0, "message": Word 1)
    Published("publisher_handle": Word 0, "message": Word 1)
    Sent("rmw_publisher_handle": Word 0, "message": Word 1, "timestamp": Word 2, "topic_name": TopicOf 0)
    Taken("rmw_subscription_handle": Word 0, "message": Word 1, "source_timestamp": Word 2, "taken": Byte 3, "topic_name": TopicOf 0)
    Enqueued("buffer": Word 0, "index": Word 1)
    Dequeued("buffer": Word 0, "index": Word 1)
    RequestSent("rmw_client_handle": Word 0, "sequence_number": Word 2)
    RequestTaken("rmw_service_handle": Word 0, "client_gid": First 2, "client_gid_rest": Second 2, "sequence_number": Word 3, "taken": Byte 4)
    ResponseSent("rmw_service_handle": Word 0, "client_gid": First 2, "client_gid_rest": Second 2, "sequence_number": Word 3)
    ResponseTaken("rmw_client_handle": Word 0, "sequence_number": Word 2, "taken": Byte 4)
    CallbackStart("callback": Word 0)
    CallbackEnd("callback": Word 0)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_that_is_understood_is_observed() {
        let observed: Vec<Kind> = FUNCTIONS.iter().map(|function| function.call).collect();
        for kind in Kind::ALL {
            assert_eq!(observed.iter().filter(|observed| *observed == kind).count(), 1, "{kind:?}");
        }
    }
}

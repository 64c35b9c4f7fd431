//! Quality of service, and how messages are passed.

/// How a message is passed within the process: `msg_pass_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassBy {
    /// `unique_ptr`. A publisher passes its message on; a subscriber receives its own message, which is a copy unless it is
    /// the only subscriber.
    UniquePtr,
    /// `shared_ptr`. A publisher copies its message; subscribers share it.
    SharedPtr,
}

/// How many messages a reader keeps until they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The last messages, up to this number. Older ones are lost.
    KeepLast(usize),
    /// All.
    KeepAll,
}

/// Whether a writer waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// Waits for room in the transport, at most 100 ms a datagram (the default `max_blocking_time` of DDS).
    Reliable,
    /// Does not wait. Messages without room are lost.
    BestEffort,
}

/// Quality of service, as far as it matters within a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// `qos_history` and `qos_depth`.
    pub history: History,
    /// `qos_reliability`.
    pub reliability: Reliability,
}

impl Default for Qos {
    /// `rmw_qos_profile_default`.
    fn default() -> Self {
        Self { history: History::KeepLast(10), reliability: Reliability::Reliable }
    }
}

/// Called with the number of messages at every delivery, on the delivering thread.
pub type Listener = Box<dyn Fn(usize) + Send + Sync>;

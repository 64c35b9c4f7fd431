//! Quality of service, and how messages are passed.

/// How a message is handed over within the process: `msg_pass_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassBy {
    /// `unique_ptr`. A publisher gives its message away; a subscriber gets one of its own, which is a copy unless nobody
    /// else gets it.
    UniquePtr,
    /// `shared_ptr`. A publisher publishes a copy of its message; a subscriber looks at what others look at too.
    SharedPtr,
}

/// How many messages a reader keeps that nobody has taken yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The last so many; older ones are lost.
    KeepLast(usize),
    /// All.
    KeepAll,
}

/// Whether a writer waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// Waits for room in the transport, at most 100 ms a datagram (the default `max_blocking_time` of DDS).
    Reliable,
    /// Does not wait: what finds no room is lost.
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

/// Called at every delivery, by the thread that delivers, with the number of messages.
pub type Listener = Box<dyn Fn(usize) + Send + Sync>;

//! How much clients may use.

use std::time::Duration;

/// What clients may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once. More are closed at once.
    pub connections: usize,
    /// Viewers of a live recording at once.
    pub viewers: usize,
    /// Bytes of a request's first line and headers.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Until the headers of a request are there; for connections without a request, too.
    pub head_time: Duration,
    /// A client that takes no bytes for this long is gone.
    pub stalled_time: Duration,
    /// Time between the pings that show whether a viewer is still there. A viewer that leaves three without an answer is gone.
    pub ping_time: Duration,
    /// Bytes of a message from a viewer.
    pub command_bytes: usize,
    /// Bytes of tables that are kept for the next request.
    pub kept_bytes: usize,
    /// Threads that make tables. More than there are CPUs, so that small tables do not wait for large ones.
    pub workers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            viewers: 16,
            head_bytes: 16 << 10,
            headers: 64,
            head_time: Duration::from_secs(10),
            stalled_time: Duration::from_secs(30),
            ping_time: Duration::from_secs(10),
            command_bytes: 16 << 10,
            kept_bytes: 1 << 30,
            workers: 4,
        }
    }
}

//! Clocks of two machines against each other, by datagrams.
//!
//! One machine answers ([`Server`]), the other one asks ([`Client`]) and keeps four times of each exchange
//! ([`ClockExchange`](stepscope_model::ClockExchange)). [`ClockWatch`] asks beside a recording: some times at its start and its
//! end, and once a second in between. `stepscope_assemble::clocks` says what the exchanges mean.
//!
//! Times of reception are the kernel's, from when the datagram came (`SO_TIMESTAMPNS`), so it does not matter how long the program
//! waits for a CPU. Where the kernel gives none, the program's own time is used: the round trip is then longer, and so is the error.
//!
//! Datagrams are untrusted. A reply counts if it is of the peer's address and has the random number of a request without a reply.
//! A reply is as long as its request, so that the server cannot be used to amplify traffic.
//!
//! - `datagram`: requests and replies as bytes
//! - `socket`: UDP with the kernel's times

mod client;
mod datagram;
mod measure;
mod server;
mod socket;
mod watch;

use std::io;

pub use client::Client;
pub use measure::measure;
pub use server::Server;
pub use watch::ClockWatch;

/// The UDP port of a server, if no other is named.
pub const PORT: u16 = 4187;

/// Why clocks cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The address is unknown.
    #[error("{address}: {source}; name a host or HOST:PORT")]
    Address {
        /// The address as given.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// Nobody answers.
    #[error(
        "{address}: no reply to {requests} requests for its clock; run `stepscope clock serve` on that machine, and let UDP \
         port {port} through its firewall"
    )]
    NoReply {
        /// The address as given.
        address: String,
        /// Its port.
        port: u16,
        /// How many requests were sent.
        requests: u32,
    },
    /// The socket fails.
    #[error("cannot exchange datagrams with {address}: {source}")]
    Socket {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;

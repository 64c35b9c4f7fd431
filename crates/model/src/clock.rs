//! [`Clocks`]: what a recording knows about its clock and the clocks of other machines.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::machine::Machine;

/// What a recording knows about its clock. Captures of several machines are merged by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocks {
    /// The clock of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<ClockId>,
    /// The wall clock at the start and at the end of the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wall: Vec<WallReading>,
    /// Datagrams exchanged with other machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<ClockPeer>,
}

/// A clock: `CLOCK_MONOTONIC` of one boot of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockId {
    /// Host name.
    pub host: String,
    /// The boot, as in `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Offset of the time namespace (`time_namespaces(7)`); 0 outside of any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub namespace_offset_ns: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ClockId {
    /// Whether times of both are on one clock.
    pub fn is_same(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id && self.namespace_offset_ns == other.namespace_offset_ns
    }
}

/// The wall clock (`CLOCK_REALTIME`) at one moment, with the kernel's word on its error (`adjtimex(2)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallReading {
    /// Time on the capture's clock.
    pub time_ns: u64,
    /// The wall clock at that time, in ns since 1970.
    pub unix_ns: i64,
    /// The two clocks were read within this time.
    pub within_ns: u64,
    /// Whether NTP or PTP keeps the wall clock synchronised.
    pub synchronised: bool,
    /// Largest error of the wall clock, by NTP or PTP.
    pub max_error_ns: u64,
    /// Estimated error of the wall clock, by NTP or PTP.
    pub estimated_error_ns: u64,
}

/// Datagrams exchanged with one other machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPeer {
    /// Its address.
    pub address: String,
    /// Its clock.
    pub clock: ClockId,
    /// Exchanges, by time. Of many, those with the shortest round trips.
    pub exchanges: Vec<ClockExchange>,
    /// Requests without a reply.
    #[serde(default)]
    pub lost: u64,
    /// Datagrams that were no reply to a request.
    #[serde(default)]
    pub refused: u64,
}

/// A request and its reply. Times are of the clock of the machine that took them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// When the request was sent.
    pub sent_ns: u64,
    /// When the peer received it.
    pub peer_received_ns: u64,
    /// When the peer sent the reply.
    pub peer_sent_ns: u64,
    /// When the reply was received.
    pub received_ns: u64,
}

impl ClockExchange {
    /// Time that both datagrams were on their way. `None` if the times contradict each other.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let at_peer = self.peer_sent_ns.checked_sub(self.peer_received_ns)?;
        self.received_ns.checked_sub(self.sent_ns)?.checked_sub(at_peer)
    }
}

/// What a capture of several machines was merged from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    /// The machines, in the order of the captures. Times are on the clock of the first one.
    pub machines: Vec<MergedMachine>,
    /// Messages that arrived before they were published, by less than the error of the clocks. They count as arriving at
    /// once, 1 ns after.
    #[serde(default)]
    pub early_messages: u64,
    /// Messages that arrived before they were published, by more than the error of the clocks. They are left out.
    #[serde(default)]
    pub impossible_messages: u64,
}

impl Merged {
    /// The error of times between the two machines with the least accurate clocks.
    pub fn error_ns(&self) -> u64 {
        let mut errors: Vec<u64> = self.machines.iter().map(|machine| machine.clock.error_ns).collect();
        errors.sort_unstable_by_key(|error| std::cmp::Reverse(*error));
        errors.iter().take(2).fold(0, |sum: u64, error| sum.saturating_add(*error))
    }
}

/// One machine of a merged capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedMachine {
    /// Its name in the capture, which starts the labels of its processes.
    pub name: String,
    /// The capture as it was given.
    pub capture: String,
    /// The machine, where its capture describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Start of its recording, on the clock of the merged capture.
    pub start_ns: u64,
    /// End of its recording.
    pub end_ns: u64,
    /// The number that its CPU 0 has in the merged capture.
    pub first_cpu: u32,
    /// How its clock was aligned.
    pub clock: ClockAlignment,
}

/// How a clock was aligned to the clock of a merged capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockAlignment {
    /// The method.
    pub method: AlignmentMethod,
    /// What was added to its times at the start of its recording.
    pub offset_ns: i64,
    /// By how much its clock was slower than that of the merged capture, in parts per million.
    pub drift_ppm: f64,
    /// The largest error of its times, by the method.
    pub error_ns: u64,
    /// Number of exchanges that the alignment is from.
    #[serde(default)]
    pub exchanges: u64,
    /// The shortest round trip of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<u64>,
}

/// How clocks are aligned.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AlignmentMethod {
    /// Its clock is that of the merged capture.
    #[default]
    Reference,
    /// It was recorded on the same machine, in the same boot.
    SameClock,
    /// Datagrams were exchanged while it was recorded.
    Exchange,
    /// NTP or PTP kept the wall clocks of both machines synchronised.
    WallClock,
    /// The user gave the error of the wall clocks.
    GivenError,
}

impl AlignmentMethod {
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

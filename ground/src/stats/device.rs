//! Devices of the network.

use crate::random::Random;

/// A device that sends packets from a queue.
pub struct Device {
    /// Source of packets and fading.
    pub random: Random,
    /// Longest queue.
    pub max_packets: u64,
    /// Most bytes sent at once.
    pub max_ampdu_size: u64,
    /// bit/s.
    pub data_rate: f64,
    /// Pause before a transmission.
    pub guard_interval_s: f64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Time spent sending.
    pub airtime_s: f64,
    /// Signal-to-noise ratio of the last transmission, dB.
    pub sinr_db: f64,
}

impl Device {
    /// The device of this number.
    pub fn new(number: u32) -> Self {
        Self {
            random: Random::new(u64::from(number)),
            max_packets: 8 + u64::from(number % 5),
            max_ampdu_size: 400 + 100 * u64::from(number % 11),
            data_rate: 5e6 * f64::from(1 + number % 8),
            guard_interval_s: 0.8e-6,
            sent_packets: 0,
            sent_bytes: 0,
            airtime_s: 0.0,
            sinr_db: 0.0,
        }
    }
}

//! Queues of packets, and the reasons for drops.

use std::collections::{BTreeMap, VecDeque};

use crate::account::{self, Counter};

/// A packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Size, bytes.
    pub size: u32,
    /// Step of its arrival.
    pub arrived: u64,
}

/// Why a packet is dropped.
pub type Reason = &'static str;

/// The queue is full.
pub const LIMIT_EXCEEDED: Reason = "Queue disc limit exceeded";
/// No traffic class matches the packet.
pub const UNCLASSIFIED: Reason = "Unclassified drop";
/// The first packet has waited too long.
pub const OVER_TARGET: Reason = "Target exceeded drop";

/// A queue with a limit.
#[derive(Debug, Default)]
pub struct QueueDisc {
    /// Packets in order of arrival.
    pub packets: VecDeque<Packet>,
    /// Number of dropped packets by reason.
    dropped_packets: BTreeMap<String, u64>,
    /// Their bytes.
    dropped_bytes: BTreeMap<String, u64>,
}

/// A packet that a queue dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop {
    /// Number of the queue.
    pub queue: usize,
    /// Why.
    pub reason: Reason,
    /// Bytes of the packet.
    pub size: u32,
}

impl QueueDisc {
    /// Adds a packet, or returns the reason to drop it.
    pub fn enqueue(&mut self, packet: Packet, limit: usize) -> Result<(), Reason> {
        if packet.size.is_multiple_of(31) {
            return Err(UNCLASSIFIED);
        }
        if self.packets.len() >= limit {
            return Err(LIMIT_EXCEEDED);
        }
        if self.packets.front().is_some_and(|first| packet.arrived - first.arrived > 3) {
            return Err(OVER_TARGET);
        }
        self.packets.push_back(packet);
        Ok(())
    }

    /// Counts a dropped packet and builds a string for the look-up in each map.
    #[inline(never)]
    pub fn drop_before_enqueue_by_string(&mut self, reason: Reason, size: u32) {
        let known = self.dropped_packets.len();
        *self.dropped_packets.entry(String::from(reason)).or_default() += 1;
        *self.dropped_bytes.entry(String::from(reason)).or_default() += u64::from(size);
        if self.dropped_packets.len() > known {
            account::count_many(Counter::KeysStored, MAPS);
        }
    }

    /// Counts a dropped packet.
    #[inline(never)]
    pub fn drop_before_enqueue(&mut self, reason: Reason, size: u32) {
        match (self.dropped_packets.get_mut(reason), self.dropped_bytes.get_mut(reason)) {
            (Some(packets), Some(bytes)) => {
                *packets += 1;
                *bytes += u64::from(size);
            }
            _ => self.drop_before_enqueue_by_string(reason, size),
        }
    }

    /// Number and bytes of dropped packets by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let both = self.dropped_packets.iter().zip(self.dropped_bytes.values());
        both.map(|((reason, packets), bytes)| (reason.as_str(), *packets, *bytes))
    }
}

/// Maps in which the reason of a drop is looked up.
const MAPS: u64 = 2;

/// How reasons are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookUp {
    /// By a new string.
    ByString,
    /// By the borrowed text.
    Borrowed,
}

/// Counts dropped packets and their bytes, by queue and reason.
#[inline(never)]
pub fn count_drops(queues: &mut [QueueDisc], dropped: &[Drop], look_up: LookUp) {
    let _timed = account::scope("ground::stats::queue_disc::count_drops");
    let _allocations = account::allocations_for(Counter::AllocationsForDrops);
    account::count_many(Counter::LookUps, MAPS * dropped.len() as u64);
    for &Drop { queue, reason, size } in dropped {
        match look_up {
            LookUp::ByString => queues[queue].drop_before_enqueue_by_string(reason, size),
            LookUp::Borrowed => queues[queue].drop_before_enqueue(reason, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_look_ups_count_drops_by_reason() {
        for look_up in [LookUp::ByString, LookUp::Borrowed] {
            let mut queues = [QueueDisc::default(), QueueDisc::default()];
            let drop = |queue, reason, size| Drop { queue, reason, size };
            let dropped = [
                drop(0, UNCLASSIFIED, 62),
                drop(1, LIMIT_EXCEEDED, 70),
                drop(0, UNCLASSIFIED, 93),
                drop(0, LIMIT_EXCEEDED, 64),
            ];
            count_drops(&mut queues, &dropped, look_up);
            assert_eq!(queues[0].dropped().collect::<Vec<_>>(), [(LIMIT_EXCEEDED, 1, 64), (UNCLASSIFIED, 2, 155)]);
            assert_eq!(queues[1].dropped().collect::<Vec<_>>(), [(LIMIT_EXCEEDED, 1, 70)]);
        }
    }

    #[test]
    fn full_and_stale_queues_drop_packets() {
        let mut queue = QueueDisc::default();
        let packet = |arrived| Packet { size: 100, arrived };
        assert_eq!(queue.enqueue(packet(0), 2), Ok(()));
        assert_eq!(queue.enqueue(packet(4), 2), Err(OVER_TARGET));
        assert_eq!(queue.enqueue(packet(3), 2), Ok(()));
        assert_eq!(queue.enqueue(packet(3), 2), Err(LIMIT_EXCEEDED));
        assert_eq!(queue.enqueue(Packet { size: 62, arrived: 3 }, 2), Err(UNCLASSIFIED));
    }
}

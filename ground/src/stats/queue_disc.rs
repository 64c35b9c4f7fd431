//! Queues of packets, and why some of them never came in.

use std::collections::{BTreeMap, VecDeque};

use crate::account::{self, Counter};

/// A packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Bytes of it.
    pub size: u32,
    /// Step in which it came.
    pub arrived: u64,
}

/// Why a packet is dropped.
pub type Reason = &'static str;

/// The queue holds all it may.
pub const LIMIT_EXCEEDED: Reason = "Queue disc limit exceeded";
/// No class of traffic takes the packet.
pub const UNCLASSIFIED: Reason = "Unclassified drop";
/// Packets waited too long, and the sender must be told.
pub const OVER_TARGET: Reason = "Target exceeded drop";

/// A queue with a limit.
#[derive(Debug, Default)]
pub struct QueueDisc {
    /// Packets, the first come first.
    pub packets: VecDeque<Packet>,
    /// How many were dropped, by reason.
    dropped: BTreeMap<String, u64>,
}

impl QueueDisc {
    /// Takes a packet, or says why not.
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

    /// Counts a packet that was dropped, with a string made to look the reason up.
    #[inline(never)]
    pub fn drop_before_enqueue_by_string(&mut self, reason: Reason) {
        *self.dropped.entry(String::from(reason)).or_default() += 1;
    }

    /// Counts a packet that was dropped.
    #[inline(never)]
    pub fn drop_before_enqueue(&mut self, reason: Reason) {
        match self.dropped.get_mut(reason) {
            Some(count) => *count += 1,
            None => self.drop_before_enqueue_by_string(reason),
        }
    }

    /// How many were dropped, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&str, u64)> {
        self.dropped.iter().map(|(reason, count)| (reason.as_str(), *count))
    }
}

/// How reasons are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookUp {
    /// By a string made for it.
    ByString,
    /// As they are.
    Borrowed,
}

/// Counts the packets that were dropped, each by its queue's number and the reason.
#[inline(never)]
pub fn count_drops(queues: &mut [QueueDisc], dropped: &[(usize, Reason)], look_up: LookUp) {
    let _timed = account::scope("ground::stats::queue_disc::count_drops");
    account::count_many(Counter::LookUps, dropped.len() as u64);
    for &(queue, reason) in dropped {
        match look_up {
            LookUp::ByString => queues[queue].drop_before_enqueue_by_string(reason),
            LookUp::Borrowed => queues[queue].drop_before_enqueue(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_by_reason_however_it_is_looked_up() {
        for look_up in [LookUp::ByString, LookUp::Borrowed] {
            let mut queues = [QueueDisc::default(), QueueDisc::default()];
            let dropped = [(0, UNCLASSIFIED), (1, LIMIT_EXCEEDED), (0, UNCLASSIFIED), (0, LIMIT_EXCEEDED)];
            count_drops(&mut queues, &dropped, look_up);
            assert_eq!(queues[0].dropped().collect::<Vec<_>>(), [(LIMIT_EXCEEDED, 1), (UNCLASSIFIED, 2)]);
            assert_eq!(queues[1].dropped().collect::<Vec<_>>(), [(LIMIT_EXCEEDED, 1)]);
        }
    }

    #[test]
    fn a_full_queue_and_an_old_one_take_nothing() {
        let mut queue = QueueDisc::default();
        let packet = |arrived| Packet { size: 100, arrived };
        assert_eq!(queue.enqueue(packet(0), 2), Ok(()));
        assert_eq!(queue.enqueue(packet(4), 2), Err(OVER_TARGET));
        assert_eq!(queue.enqueue(packet(3), 2), Ok(()));
        assert_eq!(queue.enqueue(packet(3), 2), Err(LIMIT_EXCEEDED));
        assert_eq!(queue.enqueue(Packet { size: 62, arrived: 3 }, 2), Err(UNCLASSIFIED));
    }
}

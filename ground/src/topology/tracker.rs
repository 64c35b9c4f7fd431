//! [`Tracker`]: received, late and lost messages, by the definitions of the framework (`tracker.cpp`).
//!
//! With the publisher's period T, and latency in whole microseconds:
//!
//! - *too late*: latency > min(50 ms, T);
//! - *late*: not too late, and latency > min(5 ms, T / 5);
//! - *lost*: gaps in the publisher's numbers.
//!
//! Three errors of the framework are corrected:
//!
//! - The framework expects ascending numbers. A message that overtakes another makes it count nearly 2^64 losses (a
//!   negative number in later versions). Here the losses of a publisher are its highest number received, plus one, less
//!   the number of messages received.
//! - The framework leaves messages that are too late out of a subscription's mean, but weights that mean with their
//!   number in the total. Here all messages count in both; [`in_time`](Tracker::in_time) is the framework's mean.
//! - The framework's mean of a subscription without messages is NaN, and so is its total. Here it has no mean and no weight.

use std::time::Duration;

use super::latency::Latencies;
use super::message::Header;

/// The messages that a subscription or a client received.
#[derive(Debug, Clone)]
pub struct Tracker {
    /// The node.
    pub node: String,
    /// The topic or service.
    pub entity: String,
    /// Bytes of the last message.
    pub size_bytes: usize,
    /// The publisher's period, from the last message; zero before the first.
    pub period: Duration,
    /// Latencies of all messages.
    pub latencies: Latencies,
    /// Latencies of the messages that were not too late.
    pub in_time: Latencies,
    /// Messages that were late.
    pub late: u64,
    /// Messages that were too late.
    pub too_late: u64,
    /// Requests of a client that no server could receive.
    pub unserved: u64,
    writers: Vec<FromWriter>,
}

/// The messages received from one publisher.
#[derive(Debug, Clone, Copy)]
struct FromWriter {
    writer: u32,
    received: u64,
    /// One more than the highest number received.
    next: u64,
}

/// How late a message was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// Not late.
    InTime,
    /// Above the first threshold.
    Late,
    /// Above the second threshold.
    TooLate,
}

/// Missing messages before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Number of the first missing message.
    pub first: u64,
    /// How many are missing.
    pub count: u64,
}

/// How a message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// How late it was.
    pub lateness: Lateness,
    /// Its latency.
    pub latency_us: u64,
    /// The threshold that its latency exceeded; the first one for a message in time.
    pub threshold_us: u64,
    /// Messages that are missing before it.
    pub gap: Option<Gap>,
}

/// Latencies above which a message is late, and too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thresholds {
    late_us: u64,
    too_late_us: u64,
}

impl Thresholds {
    fn of(period: Duration) -> Self {
        let period_us = period.as_micros() as u64;
        Self { late_us: (period_us / 5).min(5_000), too_late_us: period_us.min(50_000) }
    }
}

impl Tracker {
    /// A tracker without messages.
    pub fn new(node: &str, entity: &str) -> Self {
        Self {
            node: node.to_owned(),
            entity: entity.to_owned(),
            size_bytes: 0,
            period: Duration::ZERO,
            latencies: Latencies::default(),
            in_time: Latencies::default(),
            late: 0,
            too_late: 0,
            unserved: 0,
            writers: Vec::new(),
        }
    }

    /// Counts a message of `size_bytes` that arrived at `now_ns`, on the clock of its stamp.
    pub fn scan(&mut self, header: &Header, size_bytes: usize, now_ns: u64) -> Arrival {
        self.size_bytes = size_bytes;
        self.period = Duration::from_nanos(header.period_ns);
        let latency_ns = now_ns.saturating_sub(header.stamp_ns);
        let latency_us = latency_ns / 1_000;
        let Thresholds { late_us, too_late_us } = Thresholds::of(self.period);
        let (lateness, threshold_us) = match latency_us {
            _ if latency_us > too_late_us => (Lateness::TooLate, too_late_us),
            _ if latency_us > late_us => (Lateness::Late, late_us),
            _ => (Lateness::InTime, late_us),
        };
        self.latencies.add(latency_ns);
        match lateness {
            Lateness::TooLate => self.too_late += 1,
            Lateness::Late => self.late += 1,
            Lateness::InTime => {}
        }
        if lateness != Lateness::TooLate {
            self.in_time.add(latency_ns);
        }
        Arrival { lateness, latency_us, threshold_us, gap: self.count_writer(header) }
    }

    /// Counts a message of its publisher, and returns the gap before it.
    fn count_writer(&mut self, header: &Header) -> Option<Gap> {
        let known = self.writers.iter().position(|from| from.writer == header.writer);
        let index = known.unwrap_or_else(|| {
            self.writers.push(FromWriter { writer: header.writer, received: 0, next: 0 });
            self.writers.len() - 1
        });
        let from = &mut self.writers[index];
        from.received += 1;
        let first = from.next;
        from.next = first.max(header.number.saturating_add(1));
        (header.number > first).then(|| Gap { first, count: header.number - first })
    }

    /// Number of messages received.
    pub fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// Number of messages that are missing although a later one of the same publisher was received.
    pub fn lost(&self) -> u64 {
        self.writers.iter().map(|from| from.next.saturating_sub(from.received)).sum()
    }

    /// The publisher's intended rate. `None` before the first message.
    pub fn frequency_hz(&self) -> Option<f64> {
        (!self.period.is_zero()).then(|| 1.0 / self.period.as_secs_f64())
    }
}

/// The sum of several trackers.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// Latencies of all messages.
    pub latencies: Latencies,
    /// Messages that were late.
    pub late: u64,
    /// Messages that were too late.
    pub too_late: u64,
    /// Messages that were lost.
    pub lost: u64,
}

impl Total {
    /// Sums up trackers.
    pub fn of<'a>(trackers: impl IntoIterator<Item = &'a Tracker>) -> Self {
        let mut total = Self::default();
        for tracker in trackers {
            total.latencies.merge(&tracker.latencies);
            total.late += tracker.late;
            total.too_late += tracker.too_late;
            total.lost += tracker.lost();
        }
        total
    }

    /// Number of messages received.
    pub fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// Share of received messages that were late, in percent.
    pub fn late_percent(&self) -> Option<f64> {
        percent(self.late, self.received())
    }

    /// Share of received messages that were too late, in percent.
    pub fn too_late_percent(&self) -> Option<f64> {
        percent(self.too_late, self.received())
    }

    /// Share of sent messages that were lost, in percent.
    pub fn lost_percent(&self) -> Option<f64> {
        percent(self.lost, self.received() + self.lost)
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn header(writer: u32, number: u64) -> Header {
        Header { writer, number, stamp_ns: 1_000 * MS, period_ns: 10 * MS }
    }

    /// A tracker that received messages, each with its number and its latency in microseconds, and how they arrived.
    fn tracker(messages: &[(u64, u64)]) -> (Tracker, Vec<Arrival>) {
        let mut tracker = Tracker::new("node", "/topic");
        let scan = |(number, us): &(u64, u64)| tracker.scan(&header(0, *number), 10, 1_000 * MS + us * 1_000);
        let arrivals = messages.iter().map(scan).collect();
        (tracker, arrivals)
    }

    #[test]
    fn thresholds_are_a_fifth_of_the_period_and_the_period_up_to_5_and_50_ms() {
        let of = |us: u64| {
            let Thresholds { late_us, too_late_us } = Thresholds::of(Duration::from_micros(us));
            (late_us, too_late_us)
        };
        assert_eq!(of(10_000), (2_000, 10_000));
        assert_eq!(of(15_625), (3_125, 15_625));
        assert_eq!(of(25_000), (5_000, 25_000));
        assert_eq!(of(500_000), (5_000, 50_000));
        assert_eq!(of(13), (2, 13));
    }

    #[test]
    fn a_message_is_late_above_the_first_threshold_and_too_late_above_the_second() {
        let (tracker, arrivals) = tracker(&[(0, 100), (1, 2_000), (2, 2_001), (3, 10_000), (4, 10_001)]);
        use Lateness::{InTime, Late, TooLate};
        let lateness: Vec<_> = arrivals.iter().map(|arrival| arrival.lateness).collect();
        assert_eq!(lateness, [InTime, InTime, Late, Late, TooLate]);
        assert_eq!((tracker.received(), tracker.late, tracker.too_late, tracker.lost()), (5, 2, 1, 0));
        // (100 + 2000 + 2001 + 10000) / 4, and with the last.
        assert_eq!(tracker.in_time.mean_us(), Some(3525.25));
        assert_eq!(tracker.latencies.mean_us(), Some(4820.4));
        assert_eq!(tracker.frequency_hz(), Some(100.0));
    }

    #[test]
    fn a_message_that_arrives_out_of_order_is_not_lost() {
        let (in_order, arrivals) = tracker(&[(0, 1), (1, 1), (5, 1), (6, 1)]);
        assert_eq!((in_order.received(), in_order.lost()), (4, 3));
        let gaps: Vec<_> = arrivals.iter().map(|arrival| arrival.gap).collect();
        assert_eq!(gaps, [None, None, Some(Gap { first: 2, count: 3 }), None]);
        // 2 overtakes 1: the framework adds one, then 1 - 3 of an unsigned number.
        let (reordered, arrivals) = tracker(&[(0, 1), (2, 1), (1, 1), (3, 1)]);
        assert_eq!((reordered.received(), reordered.lost()), (4, 0));
        assert_eq!(arrivals[1].gap, Some(Gap { first: 1, count: 1 }));
        let (first_lost, _) = tracker(&[(2, 1)]);
        assert_eq!(first_lost.lost(), 2);
        let (last, _) = tracker(&[(u64::MAX, 1)]);
        assert_eq!(last.lost(), u64::MAX - 1, "no overflow");
    }

    #[test]
    fn losses_are_counted_per_publisher() {
        let mut tracker = Tracker::new("node", "/topic");
        for (writer, number) in [(1, 0), (2, 0), (2, 1), (1, 1), (1, 3)] {
            tracker.scan(&header(writer, number), 10, 1_000 * MS);
        }
        assert_eq!((tracker.received(), tracker.lost()), (5, 1));
    }

    #[test]
    fn a_subscription_without_messages_has_no_weight_in_the_total() {
        let (one, _) = tracker(&[(0, 100), (1, 300)]);
        let (other, _) = tracker(&[(0, 20_000), (3, 400)]);
        let idle = Tracker::new("node", "/idle");
        let total = Total::of([&one, &idle, &other]);
        assert_eq!((total.received(), total.lost, total.too_late, total.late), (4, 2, 1, 0));
        // (100 + 300 + 20000 + 400) / 4; the framework has (2 * 200 + 2 * 400) / 4 of the two, and NaN of the three.
        assert_eq!(total.latencies.mean_us(), Some(5_200.0));
        assert_eq!(total.too_late_percent(), Some(25.0));
        assert_eq!(total.lost_percent(), Some(100.0 * 2.0 / 6.0));
        let nothing = Total::of([&idle]);
        assert_eq!((nothing.latencies.mean_us(), nothing.late_percent(), nothing.lost_percent()), (None, None, None));
    }
}

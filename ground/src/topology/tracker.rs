//! [`Tracker`]: what came, what came late, and what did not, by the definitions of the framework (`tracker.cpp`).
//!
//! With the publisher's period T, and latency in whole microseconds:
//!
//! - *too late*: latency > min(50 ms, T);
//! - *late*: not too late, and latency > min(5 ms, T / 5);
//! - *lost*: gaps in the publisher's numbers.
//!
//! Where the framework errs, this does not:
//!
//! - It expects numbers to ascend, and takes what is missing before each; a message that overtook another makes it add one, and
//!   then, as that other has a smaller number than it expects, nearly 2^64 (later: a negative number, and loses count). Here
//!   lost are, of each publisher, the numbers up to the highest that came, less those that came.
//! - It leaves messages that are too late out of a subscription's mean, but weighs that mean with their number in the total.
//!   Here all messages count in both; [`in_time`](Tracker::in_time) is the framework's.
//! - The mean of a subscription that got nothing is NaN, and so is then the total. Here it has no mean and no weight.

use std::time::Duration;

use super::latency::Latencies;
use super::message::Header;

/// What one subscription, or one client, received.
#[derive(Debug, Clone)]
pub struct Tracker {
    /// The node.
    pub node: String,
    /// The topic or service.
    pub entity: String,
    /// Bytes of a message, of the last that came.
    pub size_bytes: usize,
    /// The publisher's period, of the last message that came; zero if none did.
    pub period: Duration,
    /// Of all messages.
    pub latencies: Latencies,
    /// Of those that were not too late.
    pub in_time: Latencies,
    /// Messages that were late.
    pub late: u64,
    /// Messages that were too late.
    pub too_late: u64,
    writers: Vec<FromWriter>,
}

/// What came of one publisher.
#[derive(Debug, Clone, Copy)]
struct FromWriter {
    writer: u32,
    received: u64,
    /// One more than the highest number that came.
    next: u64,
}

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// As it should.
    InTime,
    /// Later than that.
    Late,
    /// So late that it would better not have come.
    TooLate,
}

/// What is to be said of a message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// How it came.
    pub lateness: Lateness,
    /// When, after it was published, us.
    pub latency_us: u64,
    /// What it was to be compared with, us.
    pub threshold_us: u64,
    /// First number and number of those that are missing before it.
    pub gap: Option<(u64, u64)>,
}

/// Above these a message is late, and too late, us.
pub fn thresholds_us(period: Duration) -> (u64, u64) {
    let period_us = period.as_micros() as u64;
    ((20 * period_us / 100).min(5_000), period_us.min(50_000))
}

impl Tracker {
    /// One that got nothing.
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
            writers: Vec::new(),
        }
    }

    /// Takes note of a message of `size_bytes` that came at `now_ns`, on the clock of its stamp.
    pub fn scan(&mut self, header: &Header, size_bytes: usize, now_ns: u64) -> Arrival {
        self.size_bytes = size_bytes;
        self.period = Duration::from_nanos(header.period_ns);
        let latency_ns = now_ns.saturating_sub(header.stamp_ns);
        let latency_us = latency_ns / 1_000;
        let (late_us, too_late_us) = thresholds_us(self.period);
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
        Arrival { lateness, latency_us, threshold_us, gap: self.note(header) }
    }

    fn note(&mut self, header: &Header) -> Option<(u64, u64)> {
        let known = self.writers.iter().position(|from| from.writer == header.writer);
        let at = known.unwrap_or_else(|| {
            self.writers.push(FromWriter { writer: header.writer, received: 0, next: 0 });
            self.writers.len() - 1
        });
        let from = &mut self.writers[at];
        from.received += 1;
        let expected = from.next;
        from.next = expected.max(header.number.saturating_add(1));
        (header.number > expected).then(|| (expected, header.number - expected))
    }

    /// Messages that came.
    pub fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// Messages that did not come although a later one of the same publisher did.
    pub fn lost(&self) -> u64 {
        self.writers.iter().map(|from| from.next.saturating_sub(from.received)).sum()
    }

    /// What the publisher means to publish in a second. `None` before anything came.
    pub fn frequency_hz(&self) -> Option<f64> {
        (!self.period.is_zero()).then(|| 1.0 / self.period.as_secs_f64())
    }
}

/// What several trackers come to.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// Of all messages of all.
    pub latencies: Latencies,
    /// Messages that were late.
    pub late: u64,
    /// Messages that were too late.
    pub too_late: u64,
    /// Messages that were lost.
    pub lost: u64,
}

impl Total {
    /// Adds them up.
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

    /// Messages that came.
    pub fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// Late ones of those that came, in percent.
    pub fn late_percent(&self) -> Option<f64> {
        percent(self.late, self.received())
    }

    /// Too late ones of those that came, in percent.
    pub fn too_late_percent(&self) -> Option<f64> {
        percent(self.too_late, self.received())
    }

    /// Lost ones of those that came or were lost, in percent.
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

    /// A tracker that got messages of these numbers, each after so many microseconds.
    fn tracker(messages: &[(u64, u64)]) -> (Tracker, Vec<Arrival>) {
        let mut tracker = Tracker::new("node", "/topic");
        let scan = |(number, us): &(u64, u64)| tracker.scan(&header(0, *number), 10, 1_000 * MS + us * 1_000);
        let arrivals = messages.iter().map(scan).collect();
        (tracker, arrivals)
    }

    #[test]
    fn thresholds_are_a_fifth_of_the_period_and_the_period_up_to_5_and_50_ms() {
        let of = |us: u64| thresholds_us(Duration::from_micros(us));
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
    fn lost_is_what_is_missing_and_nothing_that_came_after_all() {
        let (in_order, arrivals) = tracker(&[(0, 1), (1, 1), (5, 1), (6, 1)]);
        assert_eq!((in_order.received(), in_order.lost()), (4, 3));
        assert_eq!(arrivals.iter().map(|arrival| arrival.gap).collect::<Vec<_>>(), [None, None, Some((2, 3)), None]);
        // 2 overtakes 1: the framework adds one, then 1 - 3 of an unsigned number.
        let (reordered, arrivals) = tracker(&[(0, 1), (2, 1), (1, 1), (3, 1)]);
        assert_eq!((reordered.received(), reordered.lost()), (4, 0));
        assert_eq!(arrivals[1].gap, Some((1, 1)));
        let (first_lost, _) = tracker(&[(2, 1)]);
        assert_eq!(first_lost.lost(), 2);
        let (last, _) = tracker(&[(u64::MAX, 1)]);
        assert_eq!(last.lost(), u64::MAX - 1, "no overflow");
    }

    #[test]
    fn numbers_of_several_publishers_of_a_topic_are_counted_apart() {
        let mut tracker = Tracker::new("node", "/topic");
        for (writer, number) in [(1, 0), (2, 0), (2, 1), (1, 1), (1, 3)] {
            tracker.scan(&header(writer, number), 10, 1_000 * MS);
        }
        assert_eq!((tracker.received(), tracker.lost()), (5, 1));
    }

    #[test]
    fn the_total_is_of_messages_so_that_who_got_none_has_no_weight() {
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

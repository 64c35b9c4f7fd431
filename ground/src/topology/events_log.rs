//! [`EventsLog`]: what happened that should not have, and when.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::tracker::{Arrival, Lateness};

/// What kind of event, by the framework's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Who publishes and who subscribes have found each other.
    Discovery = 0,
    /// A message came late.
    Late = 1,
    /// A message came too late.
    TooLate = 2,
    /// Messages are missing.
    Lost = 3,
    /// Nobody serves a service.
    ServiceUnavailable = 4,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, since the start.
    pub at: Duration,
    /// To whom, as `/topic->node`.
    pub caller: String,
    /// What kind.
    pub code: Code,
    /// What, in words.
    pub description: String,
}

/// Events are kept in memory until the end, so that writing them delays nobody; of more than these only the number.
const MOST: usize = 200_000;

/// Events, in the order they happened.
#[derive(Debug)]
pub struct EventsLog {
    start: Instant,
    rows: Mutex<(Vec<Event>, u64)>,
}

impl EventsLog {
    /// Empty; time starts.
    pub fn new() -> Self {
        Self { start: Instant::now(), rows: Mutex::default() }
    }

    /// Adds one.
    pub fn add(&self, caller: &str, code: Code, description: String) {
        let mut rows = lock!(self.rows);
        if rows.0.len() < MOST {
            let at = self.start.elapsed();
            rows.0.push(Event { at, caller: caller.to_owned(), code, description });
        } else {
            rows.1 += 1;
        }
    }

    /// Adds what is to be said of a message.
    pub fn arrived(&self, caller: &str, number: u64, arrival: &Arrival) {
        match arrival.gap {
            Some((first, 1)) => self.add(caller, Code::Lost, format!("msg {first} lost.")),
            Some((first, count)) => {
                self.add(caller, Code::Lost, format!("msgs {first} to {} lost.", first + (count - 1)));
            }
            None => {}
        }
        let Arrival { latency_us, threshold_us, .. } = arrival;
        let (code, how) = match arrival.lateness {
            Lateness::InTime => return,
            Lateness::Late => (Code::Late, "late"),
            Lateness::TooLate => (Code::TooLate, "too late"),
        };
        self.add(caller, code, format!("msg {number} {how}. {latency_us}us > {threshold_us}us"));
    }

    /// All of them, and the number of those that are not among them.
    pub fn take(&self) -> (Vec<Event>, u64) {
        std::mem::take(&mut *lock!(self.rows))
    }
}

impl Default for EventsLog {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_is_put_into_the_words_of_the_framework() {
        let log = EventsLog::new();
        let arrived = |number, lateness, gap| {
            let arrival = Arrival { lateness, latency_us: 2_345, threshold_us: 2_000, gap };
            log.arrived("/t->n", number, &arrival);
        };
        arrived(7, Lateness::InTime, None);
        arrived(8, Lateness::Late, None);
        arrived(10, Lateness::InTime, Some((9, 1)));
        arrived(14, Lateness::TooLate, Some((11, 3)));
        let (rows, left_out) = log.take();
        let said: Vec<_> = rows.iter().map(|row| (row.code as u8, row.description.as_str())).collect();
        assert_eq!(
            said,
            [
                (1, "msg 8 late. 2345us > 2000us"),
                (3, "msg 9 lost."),
                (3, "msgs 11 to 13 lost."),
                (2, "msg 14 too late. 2345us > 2000us"),
            ]
        );
        assert_eq!(left_out, 0);
    }
}

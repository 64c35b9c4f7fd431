//! [`EventsLog`]: the events of a run, with the codes and texts of the framework.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::tracker::{Arrival, Gap, Lateness};

/// The kind of an event. The numbers are the framework's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Publishers and subscriptions are connected.
    Discovery = 0,
    /// A message was late.
    Late = 1,
    /// A message was too late.
    TooLate = 2,
    /// Messages were lost.
    Lost = 3,
    /// A service has no server.
    ServiceUnavailable = 4,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time since the start.
    pub at: Duration,
    /// The receiver, as `/topic->node`.
    pub caller: String,
    /// The kind.
    pub code: Code,
    /// The description.
    pub description: String,
}

/// The events of a run, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// The first events, at most 200,000.
    pub kept: Vec<Event>,
    /// Number of events after these.
    pub dropped: u64,
}

impl Events {
    /// Number of all events.
    pub fn count(&self) -> u64 {
        self.kept.len() as u64 + self.dropped
    }
}

/// Largest number of events in memory. They are written at the end, so that writing delays no callback.
const MAX_EVENTS: usize = 200_000;

/// A log of events that several threads write.
#[derive(Debug)]
pub struct EventsLog {
    start: Instant,
    events: Mutex<Events>,
}

impl EventsLog {
    /// An empty log. Its time starts now.
    pub fn new() -> Self {
        Self { start: Instant::now(), events: Mutex::default() }
    }

    /// Adds an event.
    pub fn add(&self, caller: &str, code: Code, description: String) {
        let mut events = lock!(self.events);
        if events.kept.len() < MAX_EVENTS {
            let at = self.start.elapsed();
            events.kept.push(Event { at, caller: caller.to_owned(), code, description });
        } else {
            events.dropped += 1;
        }
    }

    /// Adds the events of a message: a gap before it, and its lateness.
    pub fn add_arrival(&self, caller: &str, number: u64, arrival: &Arrival) {
        match arrival.gap {
            Some(Gap { first, count: 1 }) => self.add(caller, Code::Lost, format!("msg {first} lost.")),
            Some(Gap { first, count }) => {
                self.add(caller, Code::Lost, format!("msgs {first} to {} lost.", first + (count - 1)));
            }
            None => {}
        }
        let Arrival { latency_us, threshold_us, .. } = arrival;
        let (code, lateness) = match arrival.lateness {
            Lateness::InTime => return,
            Lateness::Late => (Code::Late, "late"),
            Lateness::TooLate => (Code::TooLate, "too late"),
        };
        self.add(caller, code, format!("msg {number} {lateness}. {latency_us}us > {threshold_us}us"));
    }

    /// Removes and returns all events.
    pub fn take(&self) -> Events {
        std::mem::take(&mut *lock!(self.events))
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
    fn events_have_the_texts_of_the_framework() {
        let log = EventsLog::new();
        let add = |number, lateness, gap| {
            let arrival = Arrival { lateness, latency_us: 2_345, threshold_us: 2_000, gap };
            log.add_arrival("/t->n", number, &arrival);
        };
        add(7, Lateness::InTime, None);
        add(8, Lateness::Late, None);
        add(10, Lateness::InTime, Some(Gap { first: 9, count: 1 }));
        add(14, Lateness::TooLate, Some(Gap { first: 11, count: 3 }));
        let events = log.take();
        let texts: Vec<_> = events.kept.iter().map(|event| (event.code as u8, event.description.as_str())).collect();
        assert_eq!(
            texts,
            [
                (1, "msg 8 late. 2345us > 2000us"),
                (3, "msg 9 lost."),
                (3, "msgs 11 to 13 lost."),
                (2, "msg 14 too late. 2345us > 2000us"),
            ]
        );
        assert_eq!((events.dropped, events.count()), (0, 4));
    }
}

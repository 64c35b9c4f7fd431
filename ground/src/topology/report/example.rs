//! The outcome of a small run, for tests.

use std::time::Duration;

use super::super::events_log::{Code, Event, Events};
use super::super::latency::Latencies;
use super::super::message::Header;
use super::super::resources::Resources;
use super::super::system::{Outcome, Published};
use super::super::tracker::Tracker;

pub(super) fn outcome() -> Outcome {
    let mut tracker = Tracker::new("listener", "/chatter");
    for (number, us) in [(0, 100), (1, 300), (4, 12_000)] {
        let header = Header { writer: 0, number, stamp_ns: 0, period_ns: 10_000_000 };
        tracker.scan(&header, 10, us * 1_000);
    }
    let mut durations = Latencies::default();
    durations.add(7_000);
    let resources = Resources {
        elapsed: Duration::from_millis(2_000),
        cpu_percent: 1.25,
        user_percent: 2.0,
        cpu: Duration::from_millis(50),
        arena_kb: 1,
        in_use_kb: 2,
        mmap_kb: 3,
        rss_kb: 4,
        peak_rss_kb: 5,
        vsz_kb: 6,
    };
    let lost = Event {
        at: Duration::from_millis(40),
        caller: "/chatter->listener".to_owned(),
        code: Code::Lost,
        description: "msgs 2 to 3 lost.".to_owned(),
    };
    Outcome {
        subscriptions: vec![tracker, Tracker::new("a_node_of_a_long_name", "/idle")],
        clients: Vec::new(),
        publishers: vec![Published {
            node: "talker".to_owned(),
            topic: "/chatter".to_owned(),
            size_bytes: 10,
            period: Duration::from_millis(10),
            durations,
        }],
        events: Events { kept: vec![lost], dropped: 0 },
        samples: vec![Resources { elapsed: Duration::from_millis(500), ..resources }],
        resources,
    }
}

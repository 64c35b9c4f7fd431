//! Chains: how long it takes from a sensor to an actuator, through several topics, and where on the way.
//!
//! A message *causes* another one if a thread publishes the second while it works on the first:
//!
//! - from `callback_start` to `callback_end` of the first, on the thread of the callback. Of callbacks within each other,
//!   the innermost counts;
//! - after `STEPSCOPE_FLOW_END` of the first, until the next message arrives on the thread or the callback around it ends. Marks have
//!   no end of the work, so only the first publication of each topic counts.
//!
//! A *chain* starts at a message without a cause and follows causes to an arrival from which no longer chain goes on. It is
//! named by its topics, at least two; chains over other publishers or subscribers have rows of their own. A topic occurs once
//! in a chain: a message that would close a loop starts a new chain.
//!
//! - *latency*: from the first publication to the last arrival. If a start reaches the end more than once, the first
//!   arrival counts;
//! - *complete*: starts that reached the end. *Lost*: those that did not although a later one did, without those from before the
//!   subscribers' threads started. *Pending*: those after the last complete one;
//! - *part*: from each stage on the way to the next, over all processes, named by the topic and the stage that ends it. The parts of a
//!   chain add up to its latency: they are its critical path, as each begins where the one before ends. `published` is the time
//!   from the arrival of the message before. *Share* and *slow share* are as for [flows](super::flows). The *slow part* of a
//!   chain has the largest slow share: it decides p99.
//!
//! A chain counts if it starts within the selected time, on a selected thread.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Column, Columns, FlowEvent, FlowStage, Note, NoteValue, Table, ThreadId, Value, note};
use stepscope_stats::Distribution;

use crate::analyses::flows::{clock_notes, why_no_messages};
use crate::analysis::{Analysis, ReportSection, View};
use crate::query::flows::{Ends, Flows};
use crate::query::select::Selection;
use crate::query::weights::percent;

/// The slowest chains are one of this many.
const SLOW_OF: usize = 100;
/// Longer ways are cut, so that hostile captures cost no more than their size.
const MAX_HOPS: usize = 32;

/// Messages that took the same way so far: a node of the tree of ways.
struct Way {
    before: Option<usize>,
    topic: Arc<str>,
    publisher: Arc<str>,
    subscriber: Arc<str>,
    hops: usize,
    goes_on: bool,
    /// When the first of the subscriber's threads started.
    since_ns: Option<u64>,
    /// The first arrival of each start, by time.
    arrivals: Vec<usize>,
}

/// A message at a subscriber.
struct Arrival<'a> {
    message: usize,
    event: &'a FlowEvent,
    /// The arrival that caused the message.
    cause: Option<usize>,
    way: usize,
    start: Start,
}

/// A message without a cause: which publisher of which topic, and which of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Start {
    publisher: usize,
    number: usize,
}

/// What a thread works on.
struct Work<'a> {
    since: &'a FlowEvent,
    arrival: Option<usize>,
    /// Topics published since a mark.
    published: Vec<&'a str>,
}

/// Where a message comes from.
#[derive(Clone, Copy)]
enum Origin {
    Start(Start),
    Cause(usize),
    Unselected,
}

#[derive(Default)]
struct Chains<'a> {
    ways: Vec<Way>,
    places: FxHashMap<(Option<usize>, [Arc<str>; 3]), usize>,
    arrivals: Vec<Arrival<'a>>,
    reached: FxHashSet<(usize, Start)>,
    /// Times of starts by publisher.
    starts: Vec<Vec<u64>>,
    publishers: FxHashMap<[Arc<str>; 2], usize>,
    loops: usize,
    ends: Ends,
}

impl<'a> Chains<'a> {
    fn of(selection: &Selection<'a>, flows: &Flows<'a>) -> Self {
        let mut chains = Self::default();
        let mut working: FxHashMap<ThreadId, Vec<Work<'a>>> = FxHashMap::default();
        let mut origins: Vec<Origin> = Vec::new();
        let mut latest: FxHashMap<(&str, u64), usize> = FxHashMap::default();
        for event in &selection.capture().flows {
            let work = working.entry(event.thread).or_default();
            match (event.stage, event.flow) {
                (FlowStage::Published, Some(flow)) => {
                    latest.insert((&event.topic, flow), origins.len());
                    origins.push(chains.origin(event, work.last_mut(), selection));
                }
                (FlowStage::CallbackEnd, _) => {
                    let at = work.iter().rposition(|work| is_same_callback(work.since, event));
                    work.truncate(at.unwrap_or(work.len()));
                }
                (stage, flow) if stage.is_arrival() => {
                    let message = flow.and_then(|flow| latest.get(&(&*event.topic, flow)).copied());
                    let arrival =
                        message.and_then(|message| chains.arrive(event, message, origins[message], flows, selection));
                    // A mark ends the work since the mark before; a callback that starts again lost its end.
                    let is_over = |work: &Work<'_>| match stage {
                        FlowStage::Arrived => work.since.stage == FlowStage::Arrived,
                        _ => is_same_callback(work.since, event),
                    };
                    let at = work.iter().position(is_over);
                    work.truncate(at.unwrap_or(work.len()));
                    work.push(Work { since: event, arrival, published: Vec::new() });
                }
                _ => {}
            }
        }
        chains
    }

    fn origin(&mut self, event: &'a FlowEvent, work: Option<&mut Work<'a>>, selection: &Selection<'a>) -> Origin {
        let cause = work.and_then(|work| {
            let is_mark = work.since.stage == FlowStage::Arrived;
            if is_mark && work.published.contains(&&*event.topic) {
                return None;
            }
            if is_mark {
                work.published.push(&event.topic);
            }
            work.arrival
        });
        if let Some(cause) = cause {
            let way = self.arrivals[cause].way;
            if self.ways[way].hops < MAX_HOPS && self.way_to(way).iter().all(|&way| self.ways[way].topic != event.topic)
            {
                return Origin::Cause(cause);
            }
            self.loops += 1;
        }
        if !selection.has_time(Some(event.time_ns)) || !selection.has_thread(event.thread) {
            return Origin::Unselected;
        }
        let key = [event.topic.clone(), self.ends.label(event, selection)];
        let next = self.starts.len();
        let publisher = *self.publishers.entry(key).or_insert(next);
        if publisher == next {
            self.starts.push(Vec::new());
        }
        self.starts[publisher].push(event.time_ns);
        Origin::Start(Start { publisher, number: self.starts[publisher].len() - 1 })
    }

    fn arrive(
        &mut self,
        event: &'a FlowEvent,
        message: usize,
        origin: Origin,
        flows: &Flows<'a>,
        selection: &Selection<'a>,
    ) -> Option<usize> {
        let (cause, start) = match origin {
            Origin::Start(start) => (None, start),
            Origin::Cause(cause) => (Some(cause), self.arrivals[cause].start),
            Origin::Unselected => return None,
        };
        let before = cause.map(|cause| self.arrivals[cause].way);
        let publisher = self.ends.label(flows.messages[message].published, selection);
        let names = [event.topic.clone(), publisher, self.ends.label(event, selection)];
        let way = self.way(before, names);
        let start_ns = selection.capture().threads[event.thread.index()].start_ns;
        let row = &mut self.ways[way];
        row.since_ns = if row.arrivals.is_empty() { start_ns } else { row.since_ns.min(start_ns) };
        let arrival = self.arrivals.len();
        if self.reached.insert((way, start)) {
            row.arrivals.push(arrival);
        }
        self.arrivals.push(Arrival { message, event, cause, way, start });
        Some(arrival)
    }

    fn way(&mut self, before: Option<usize>, names: [Arc<str>; 3]) -> usize {
        let hops = before.map_or(1, |before| self.ways[before].hops + 1);
        if let Some(before) = before {
            self.ways[before].goes_on = true;
        }
        let ways = &mut self.ways;
        *self.places.entry((before, names.clone())).or_insert_with(|| {
            let [topic, publisher, subscriber] = names;
            let (goes_on, since_ns, arrivals) = (false, None, Vec::new());
            ways.push(Way { before, topic, publisher, subscriber, hops, goes_on, since_ns, arrivals });
            ways.len() - 1
        })
    }

    /// The ways from the first hop to this one.
    fn way_to(&self, way: usize) -> Vec<usize> {
        let mut ways: Vec<usize> = std::iter::successors(Some(way), |&way| self.ways[way].before).collect();
        ways.reverse();
        ways
    }

    /// The stages from the start to an arrival, each with its hop.
    fn stages(&self, arrival: usize, flows: &Flows<'a>, selection: &Selection<'a>) -> Vec<(usize, &'a FlowEvent)> {
        let mut arrivals: Vec<usize> =
            std::iter::successors(Some(arrival), |&arrival| self.arrivals[arrival].cause).collect();
        arrivals.reverse();
        let hops = arrivals.iter().map(|&arrival| &self.arrivals[arrival]).enumerate();
        let stages = hops.flat_map(|(hop, arrival)| {
            let way = flows.messages[arrival.message].way(arrival.event, selection);
            way.into_iter().map(move |event| (hop, event))
        });
        stages.collect()
    }
}

/// Whether two events are of one callback.
fn is_same_callback(start: &FlowEvent, event: &FlowEvent) -> bool {
    start.stage == FlowStage::CallbackStart && start.name == event.name && start.topic == event.topic
}

/// Hop, stage, and which of those of its kind in the hop.
type PartName = (usize, FlowStage, usize);

/// A row of the table `chain_stages`.
struct Part {
    chain: Arc<str>,
    subscriber: Arc<str>,
    topic: Arc<str>,
    name: PartName,
    process: String,
    reached: usize,
    times: Distribution,
    sum: u128,
    slow: u128,
    of: u128,
    of_slow: u128,
}

impl Part {
    fn stage(&self) -> String {
        match self.name {
            (_, stage, 1) => stage.name().to_owned(),
            (_, stage, number) => format!("{} {number}", stage.name()),
        }
    }
}

/// A row of the table `chains`.
struct Row {
    chain: Arc<str>,
    publisher: Arc<str>,
    through: String,
    subscriber: Arc<str>,
    starts: usize,
    latencies: Distribution,
    lost: usize,
    pending: usize,
    parts: Vec<Part>,
}

impl Row {
    fn of(chains: &Chains<'_>, way: usize, flows: &Flows<'_>, selection: &Selection<'_>) -> Self {
        let ways: Vec<&Way> = chains.way_to(way).into_iter().map(|way| &chains.ways[way]).collect();
        let end = &chains.ways[way];
        let topics: Vec<&str> = ways.iter().map(|way| &*way.topic).collect();
        let through: Vec<&str> = ways[..ways.len() - 1].iter().map(|way| &*way.subscriber).collect();
        let arrivals: Vec<&Arrival<'_>> = end.arrivals.iter().map(|&arrival| &chains.arrivals[arrival]).collect();
        let starts = &chains.starts[arrivals[0].start.publisher];
        let since_ns = ways.iter().filter_map(|way| way.since_ns).max().unwrap_or(0);
        let first = starts.partition_point(|&ns| ns < since_ns);
        let last = arrivals.iter().map(|arrival| arrival.start.number).max().unwrap_or(0);
        let after_start = arrivals.iter().filter(|arrival| arrival.start.number >= first).count();
        let latency = |arrival: &Arrival<'_>| arrival.event.time_ns.saturating_sub(starts[arrival.start.number]);
        let chain: Arc<str> = topics.join(" > ").into();
        let mut by_latency: Vec<(u64, usize)> =
            end.arrivals.iter().map(|&at| (latency(&chains.arrivals[at]), at)).collect();
        by_latency.sort_unstable_by_key(|&(ns, at)| (Reverse(ns), at));
        Self {
            parts: parts(chains, &by_latency, &ways, &chain, flows, selection),
            chain,
            publisher: ways[0].publisher.clone(),
            through: through.join(" > "),
            subscriber: end.subscriber.clone(),
            starts: starts.len(),
            latencies: by_latency.iter().map(|(ns, _)| *ns).collect(),
            lost: (last + 1).saturating_sub(first).saturating_sub(after_start),
            pending: starts.len() - last - 1,
        }
    }

    fn bounds(&self, of: f64) -> [Option<u64>; 2] {
        self.latencies.percentile_interval(of, 0.95)
    }

    /// The part that decides p99; of equal ones the first.
    fn slow_part(&self) -> Option<String> {
        let part = self.parts.iter().rev().max_by_key(|part| part.slow)?;
        Some(format!("{} {}", part.topic, part.stage()))
    }
}

/// The parts of a chain in their order, from its arrivals, the slowest first.
fn parts(
    chains: &Chains<'_>,
    by_latency: &[(u64, usize)],
    ways: &[&Way],
    chain: &Arc<str>,
    flows: &Flows<'_>,
    selection: &Selection<'_>,
) -> Vec<Part> {
    let slow_count = by_latency.len().div_ceil(SLOW_OF);
    let mut times: BTreeMap<PartName, (Vec<u64>, u128, ThreadId)> = BTreeMap::new();
    for (rank, &(_, arrival)) in by_latency.iter().enumerate() {
        let stages = chains.stages(arrival, flows, selection);
        let mut numbers: FxHashMap<(usize, FlowStage), usize> = FxHashMap::default();
        for pair in stages.windows(2) {
            let (hop, event) = pair[1];
            let number = numbers.entry((hop, event.stage)).or_default();
            *number += 1;
            let ns = event.time_ns.saturating_sub(pair[0].1.time_ns);
            let of = times.entry((hop, event.stage, *number)).or_insert_with(|| (Vec::new(), 0, event.thread));
            of.0.push(ns);
            of.1 += if rank < slow_count { u128::from(ns) } else { 0 };
        }
    }
    let sum_of = |rows: &[(u64, usize)]| rows.iter().map(|(ns, _)| u128::from(*ns)).sum();
    let row = |(name, (times, slow, thread)): (PartName, (Vec<u64>, u128, ThreadId))| Part {
        chain: chain.clone(),
        subscriber: ways[ways.len() - 1].subscriber.clone(),
        topic: ways[name.0].topic.clone(),
        name,
        process: selection.process_label_of(&selection.capture().threads[thread.index()]).to_owned(),
        reached: ways[name.0].arrivals.len(),
        sum: times.iter().copied().map(u128::from).sum(),
        times: times.into_iter().collect(),
        slow,
        of: sum_of(by_latency),
        of_slow: sum_of(&by_latency[..slow_count]),
    };
    times.into_iter().map(row).collect()
}

/// The tables `chains` and `chain_stages`: rows by chain, publisher, way and subscriber.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let flows = Flows::of(selection);
    let chains = Chains::of(selection, &flows);
    let is_end = |&way: &usize| !chains.ways[way].goes_on && chains.ways[way].hops > 1;
    let ends = (0..chains.ways.len()).filter(is_end);
    let mut rows: Vec<Row> = ends.map(|way| Row::of(&chains, way, &flows, selection)).collect();
    let key = |row: &Row| (row.chain.clone(), row.publisher.clone(), row.through.clone(), row.subscriber.clone());
    rows.sort_by_key(key);
    let bound = |name: &str, doc: &str| {
        Column::duration(name, &format!("{doc} bound of its 95 % confidence interval.")).detail()
    };
    let mut table = Columns::<Row>::new()
        .text("chain", "Topics from the first message to the last.", |row| (&*row.chain).into())
        .text("publisher", "Publisher of the first message.", |row| (&*row.publisher).into())
        .text("through", "Subscribers that publish the next message.", |row| row.through.as_str().into())
        .text("subscriber", "Subscriber of the last message.", |row| (&*row.subscriber).into())
        .count("starts", "messages", "First messages that were published.", |row| row.starts)
        .count("complete", "chains", "Starts that reached the last subscriber.", |row| row.latencies.len())
        .duration("median", "Median of the latency: from the first publication to the last arrival.", |row| {
            row.latencies.median()
        })
        .with(bound("median_low", "Lower"), |row| row.bounds(50.0)[0].into())
        .with(bound("median_high", "Upper"), |row| row.bounds(50.0)[1].into())
        .duration("p99", "99th percentile of the latency.", |row| row.latencies.percentile(99.0))
        .with(bound("p99_low", "Lower"), |row| row.bounds(99.0)[0].into())
        .with(bound("p99_high", "Upper"), |row| row.bounds(99.0)[1].into())
        .duration("max", "Longest latency.", |row| row.latencies.max())
        .text("slow_part", "Part with the largest share in the slowest 1 %: it decides p99.", |row| {
            Value::from(row.slow_part().as_deref())
        })
        .count("lost", "chains", "Did not reach the end although a later one did.", |row| row.lost)
        .count("pending", "chains", "Started after the last complete one.", |row| row.pending)
        .essential("chain subscriber complete median p99 slow_part lost")
        .detail("through pending")
        .table("chains", "Chains", &rows);
    table.add_notes(notes(selection, &chains, rows.is_empty()));
    let parts = rows.into_iter().flat_map(|row| row.parts).collect::<Vec<_>>();
    let parts = Columns::<Part>::new()
        .text("chain", "Topics from the first message to the last.", |part| (&*part.chain).into())
        .text("subscriber", "Subscriber of the last message.", |part| (&*part.subscriber).into())
        .text("topic", "Topic of the message.", |part| (&*part.topic).into())
        .text("stage", "Stage that ends this part; the part starts at the stage before.", |part| part.stage().into())
        .with(crate::columns::process(selection.capture()), |part| part.process.as_str().into())
        .count("chains", "chains", "Starts whose message of this topic arrived on this way.", |part| part.reached)
        .duration("median", "Median of the part.", |part| part.times.median())
        .duration("p99", "99th percentile of the part.", |part| part.times.percentile(99.0))
        .percentage("share", "Share of all latencies.", |part| percent(part.sum, part.of))
        .percentage("slow_share", "Share of the latencies of the slowest 1 % of the chains.", |part| {
            percent(part.slow, part.of_slow)
        })
        .essential("chain topic stage median share slow_share")
        .table("chain_stages", "Parts of chains", parts);
    vec![table, parts]
}

fn notes(selection: &Selection<'_>, chains: &Chains<'_>, is_empty: bool) -> Vec<Note> {
    if selection.capture().flows.is_empty() {
        return vec![why_no_messages(selection)];
    }
    let mut notes = clock_notes(selection);
    if is_empty {
        notes.push(note!(Fact, "No thread publishes a message while it works on another one."));
    }
    let lost_marks = selection.capture().info.losses.lost_marks;
    if lost_marks > 0 {
        notes.push(note!(
            Loss,
            "{} of the program are missing, so some chains seem lost.",
            NoteValue::plural(lost_marks as usize, "mark")
        ));
    }
    if chains.loops > 0 {
        notes.push(note!(
            Limit,
            "{} would close a loop, or have more than 32 topics before them: they start new chains.",
            NoteValue::plural(chains.loops, "message")
        ));
    }
    notes
}

/// How long chains of messages take.
pub const ANALYSIS: Analysis = Analysis {
    title: "Chains",
    views: &[View {
        name: "chains",
        question: "How long does it take from sensor to actuator through several topics, and which part decides it?",
        tables: |selection, _| tables(selection),
    }],
    report: |selection| ReportSection::of_rows("Chains", tables(selection)).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn drawing() -> Drawing {
        let names = ["lidar", "planner", "motor", "log"];
        names.into_iter().fold(Drawing::new().window(0..10_000), |drawing, name| drawing.lived(name, 0..10_000, None))
    }

    fn shown(drawing: &Drawing) -> [Vec<String>; 2] {
        let tables = drawn::selected(&drawing.capture, &[], tables);
        let chains = ["chain", "publisher", "through", "subscriber", "starts", "complete", "median", "max"];
        let ends = ["slow_part", "lost", "pending"];
        let chains: Vec<&str> = chains.into_iter().chain(ends).collect();
        let parts = ["topic", "stage", "chains", "median", "share", "slow_share"];
        [cells(&tables[0], &chains), cells(&tables[1], &parts)]
    }

    #[test]
    fn a_chain_through_marks_adds_up_from_first_publication_to_last_arrival() {
        let drawing = drawing()
            .flows(
                "/scan",
                "lidar published 1 at 1000, planner arrived at 1100
                 lidar published 2 at 2000, planner arrived at 2100
                 lidar published 3 at 3000
                 lidar published 4 at 4000, planner arrived at 4100
                 lidar published 5 at 5000, planner arrived at 5100",
            )
            .flows(
                "/cmd",
                "planner published 1 at 1300, motor passed at 1350, motor arrived at 1400
                 planner published 2 at 2200
                 planner published 4 at 4700, motor passed at 4950, motor arrived at 5000
                 planner published 5 at 5200",
            );
        let [chains, parts] = shown(&drawing);
        assert_eq!(chains, ["/scan > /cmd | lidar | planner | motor | 5 | 2 | 400 | 1000 | /cmd published | 2 | 1"]);
        assert_eq!(
            parts,
            [
                "/scan | arrived | 4 | 100 | 14.285714 | 10",
                "/cmd | published | 2 | 200 | 57.142857 | 60",
                "/cmd | passed | 2 | 50 | 21.428571 | 25",
                "/cmd | arrived | 2 | 50 | 7.142857 | 5",
            ]
        );
    }

    #[test]
    fn only_publications_within_the_callback_belong_to_its_message() {
        let drawing = drawing()
            .flows(
                "/scan",
                "lidar published 1 at 1000, planner callback_start at 1100, planner callback_end at 1200
                 lidar published 2 at 2000, planner callback_start at 2100, planner callback_end at 2300",
            )
            .flows(
                "/cmd",
                "planner published 1 at 1250, motor arrived at 1400
                 planner published 2 at 2200, motor arrived at 2500",
            );
        let [chains, _] = shown(&drawing);
        assert_eq!(chains, ["/scan > /cmd | lidar | planner | motor | 2 | 1 | 500 | 500 | /cmd arrived | 1 | 0"]);
    }

    #[test]
    fn each_last_subscriber_has_a_row_and_a_mark_causes_one_message_of_a_topic() {
        let drawing = drawing().flows("/scan", "lidar published 1 at 1000, planner arrived at 1100").flows(
            "/cmd",
            "planner published 1 at 1200, motor arrived at 1300, log arrived at 1500
             planner published 2 at 1600, motor arrived at 1900",
        );
        let [chains, _] = shown(&drawing);
        assert_eq!(
            chains,
            [
                "/scan > /cmd | lidar | planner | log | 1 | 1 | 500 | 500 | /cmd arrived | 0 | 0",
                "/scan > /cmd | lidar | planner | motor | 1 | 1 | 300 | 300 | /scan arrived | 0 | 0",
            ]
        );
    }

    #[test]
    fn a_loop_starts_a_new_chain_and_is_noted() {
        let drawing = drawing()
            .flows(
                "/ping",
                "lidar published 1 at 1000, planner arrived at 1100
                 lidar published 2 at 1400, planner arrived at 1500",
            )
            .flows("/pong", "planner published 1 at 1200, lidar arrived at 1300");
        let table = drawn::selected(&drawing.capture, &[], tables).swap_remove(0);
        assert_eq!(cells(&table, &["chain", "starts", "complete", "pending"]), ["/ping > /pong | 2 | 1 | 1"]);
        assert_eq!(
            table.notes[0].to_string(),
            "1 message would close a loop, or have more than 32 topics before them: they start new chains."
        );
    }
}

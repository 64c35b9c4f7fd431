//! Flows: how long messages take from publisher to subscriber, and where on the way.
//!
//! One row per topic, publisher and subscriber. [`query::flows`](crate::query::flows) defines publication, arrival and latency.
//!
//! - *rate*: publications of the publisher per second, from the first to the last;
//! - *median*, *p99*: of the latencies, with distribution-free 95 % intervals
//!   ([`Distribution::percentile_interval`](stepscope_stats::Distribution::percentile_interval)). They take messages as
//!   independent: a burst of late messages makes them too narrow;
//! - *lost*: messages that did not arrive although a later one of the same publisher did. Messages from before the
//!   subscriber's thread started do not count;
//! - *pending*: messages after the last one that arrived. They are lost, or were on their way when the recording ended;
//! - *late*: messages that arrived after the publisher's next one of the topic was published; with `--deadline` or
//!   `--deadline-share`, those that took longer than that. The share is of the publisher's period on the topic, the median of its
//!   intervals; of both, the shorter counts.
//!
//! A second table splits the latency into its stages: from each stage on the way to the next. *Share* is the sum of a stage over the
//! sum of latencies; *slow share* is the same over the slowest 1 % of the messages, at least one: the stage that decides
//! p99. Of equal stages the order on the way counts: `passed 2` is the second `STEPSCOPE_FLOW_STEP`.
//!
//! A message counts if it is published within the selected time, and published or received by a selected thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepscope_model::{Column, Columns, FlowEvent, FlowStage, NO_ROS2, Note, NoteValue, Table, Value, note};
use stepscope_stats::Distribution;

use crate::analysis::{Analysis, AnalysisOption, OptionValues, ReportSection, View};
use crate::query::flows::{Ends, Flows, Message};
use crate::query::select::Selection;
use crate::query::weights::percent;

/// The slowest messages are one of this many.
const SLOW_OF: usize = 100;

const DEADLINE: AnalysisOption = AnalysisOption {
    name: "deadline",
    value: "MILLISECONDS",
    range: (0.0, 1e9),
    default: "the publisher's next message",
    doc: "Count messages as late that take longer than this.",
};

const DEADLINE_SHARE: AnalysisOption = AnalysisOption {
    name: "deadline-share",
    value: "PERCENT",
    range: (0.0, 1e6),
    default: "the publisher's next message",
    doc: "Count messages as late that take longer than this part of their publisher's period.",
};

/// From when on a message is late, if not after the publisher's next one.
#[derive(Default, Clone, Copy)]
struct Deadline {
    ns: Option<u64>,
    percent: Option<f64>,
}

impl Deadline {
    fn of(options: &OptionValues) -> Self {
        Self { ns: options.get(&DEADLINE).map(|ms| (ms * 1e6) as u64), percent: options.get(&DEADLINE_SHARE) }
    }

    /// For a publisher that published at these times.
    fn ns(self, published: &[u64]) -> Option<u64> {
        let period =
            || published.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect::<Distribution>().median();
        let share = self.percent.and_then(|percent| Some((period()? as f64 * percent / 100.0) as u64));
        [self.ns, share].into_iter().flatten().min()
    }
}

/// Topic, publisher, subscriber.
type Key = (Arc<str>, Arc<str>, Arc<str>);

#[derive(Default)]
struct Edge {
    arrived: Vec<Arrived>,
    /// When the subscriber's first thread started.
    since_ns: Option<u64>,
}

struct Arrived {
    /// Which of the publisher's messages.
    number: usize,
    latency_ns: u64,
    stages: Vec<(StageName, u64)>,
}

/// A stage, and which of those of its kind on the way, from 1.
type StageName = (FlowStage, usize);

struct Edges {
    edges: BTreeMap<Key, Edge>,
    /// Publications by topic and publisher.
    published: BTreeMap<(Arc<str>, Arc<str>), Vec<u64>>,
    unpublished: u64,
}

impl Edges {
    /// `stages_of` gives the stages of an arrival.
    fn of(selection: &Selection<'_>, stages_of: impl Fn(&Message<'_>, &FlowEvent) -> Vec<(StageName, u64)>) -> Self {
        let flows = Flows::of(selection);
        let mut ends = Ends::default();
        let mut all = Self { edges: BTreeMap::new(), published: BTreeMap::new(), unpublished: flows.unpublished };
        for message in &flows.messages {
            if !selection.has_time(Some(message.published.time_ns)) {
                continue;
            }
            let (topic, publisher) = (&message.published.topic, ends.label(message.published, selection));
            let published = all.published.entry((topic.clone(), publisher.clone())).or_default();
            let number = published.len();
            published.push(message.published.time_ns);
            for arrival in message.arrivals() {
                let is_selected = |event: &FlowEvent| selection.has_thread(event.thread);
                if !is_selected(message.published) && !is_selected(arrival) {
                    continue;
                }
                let key = (topic.clone(), publisher.clone(), ends.label(arrival, selection));
                let edge = all.edges.entry(key).or_default();
                let start_ns = selection.capture().threads[arrival.thread.index()].start_ns;
                edge.since_ns = if edge.arrived.is_empty() { start_ns } else { edge.since_ns.min(start_ns) };
                if edge.arrived.last().is_some_and(|last| last.number == number) {
                    continue;
                }
                let latency_ns = arrival.time_ns - message.published.time_ns;
                edge.arrived.push(Arrived { number, latency_ns, stages: stages_of(message, arrival) });
            }
        }
        all
    }

    fn rows(&self, deadline: Deadline) -> Vec<Row<'_>> {
        let row = |(key, edge): (_, &Edge)| {
            let (topic, publisher, _): &Key = key;
            Row::of(key, edge, &self.published[&(topic.clone(), publisher.clone())], deadline)
        };
        self.edges.iter().map(row).collect()
    }
}

/// From each stage to the next.
fn named_stages(way: &[&FlowEvent]) -> Vec<(StageName, u64)> {
    let times = way.windows(2).map(|pair| (pair[1].stage, pair[1].time_ns.saturating_sub(pair[0].time_ns)));
    let times: Vec<(FlowStage, u64)> = times.collect();
    let number = |at: usize| times[..=at].iter().filter(|(stage, _)| *stage == times[at].0).count();
    times.iter().enumerate().map(|(at, &(stage, ns))| ((stage, number(at)), ns)).collect()
}

/// A row of the table `flows`.
struct Row<'a> {
    key: &'a Key,
    published: &'a [u64],
    latencies: Distribution,
    lost: u64,
    pending: u64,
    late: u64,
}

impl<'a> Row<'a> {
    fn of(key: &'a Key, edge: &Edge, published: &'a [u64], deadline: Deadline) -> Self {
        let deadline_ns = deadline.ns(published);
        let arrived: Vec<usize> = edge.arrived.iter().map(|arrived| arrived.number).collect();
        let last = arrived.last().copied().unwrap_or(0);
        let first = published.partition_point(|&ns| edge.since_ns.is_some_and(|since_ns| ns < since_ns));
        let candidates = (last + 1).saturating_sub(first);
        let after_start = arrived.iter().filter(|&&number| number >= first).count();
        let is_late = |arrived: &&Arrived| match (deadline_ns, published.get(arrived.number + 1)) {
            (Some(deadline_ns), _) => arrived.latency_ns > deadline_ns,
            (None, Some(&next_ns)) => published[arrived.number].saturating_add(arrived.latency_ns) > next_ns,
            (None, None) => false,
        };
        Self {
            key,
            published,
            latencies: edge.arrived.iter().map(|arrived| arrived.latency_ns).collect(),
            lost: candidates.saturating_sub(after_start) as u64,
            pending: (published.len() - last - 1) as u64,
            late: edge.arrived.iter().filter(is_late).count() as u64,
        }
    }

    /// Publications per second.
    fn rate(&self) -> Option<f64> {
        let (first, last) = (self.published.first()?, self.published.last()?);
        (last > first).then(|| (self.published.len() - 1) as f64 * 1e9 / (last - first) as f64)
    }

    fn bounds(&self, of: f64) -> [Option<u64>; 2] {
        self.latencies.percentile_interval(of, 0.95)
    }
}

/// A row of the table `flow_stages`.
struct Stage<'a> {
    key: &'a Key,
    name: StageName,
    times: Distribution,
    sum: u64,
    slow: u64,
    of: u64,
    of_slow: u64,
}

fn stages<'a>(key: &'a Key, edge: &Edge) -> Vec<Stage<'a>> {
    let mut by_latency: Vec<&Arrived> = edge.arrived.iter().collect();
    by_latency.sort_by_key(|arrived| std::cmp::Reverse(arrived.latency_ns));
    let slow = &by_latency[..by_latency.len().div_ceil(SLOW_OF)];
    let mut order: Vec<StageName> = Vec::new();
    // The longest way has the stages in their order.
    let longest = edge.arrived.iter().max_by_key(|arrived| arrived.stages.len());
    for (name, _) in longest.into_iter().chain(&edge.arrived).flat_map(|arrived| &arrived.stages) {
        if !order.contains(name) {
            order.push(*name);
        }
    }
    let of_stage = |arrived: &[&Arrived], wanted: StageName| -> Vec<u64> {
        let stages = arrived.iter().flat_map(|arrived| &arrived.stages);
        stages.filter(|(name, _)| *name == wanted).map(|(_, ns)| *ns).collect()
    };
    let sum_of = |arrived: &[&Arrived]| arrived.iter().map(|arrived| arrived.latency_ns).sum();
    let row = |name| {
        let times = of_stage(&by_latency, name);
        Stage {
            key,
            name,
            sum: times.iter().sum(),
            times: times.into_iter().collect(),
            slow: of_stage(slow, name).iter().sum(),
            of: sum_of(&by_latency),
            of_slow: sum_of(slow),
        }
    };
    order.into_iter().map(row).collect()
}

/// The name of a stage in tables.
fn shown((stage, number): StageName) -> String {
    match number {
        1 => stage.name().to_owned(),
        _ => format!("{} {number}", stage.name()),
    }
}

fn keys<'a, R: 'a>(key: impl Fn(&R) -> &Key + Clone + 'a) -> Columns<'a, R> {
    let [topic, publisher, subscriber] = [key.clone(), key.clone(), key];
    Columns::new()
        .text("topic", "Topic of the messages.", move |row| (&*topic(row).0).into())
        .text("publisher", "Node that publishes; without nodes, process and thread.", move |row| {
            (&*publisher(row).1).into()
        })
        .text("subscriber", "Callback that receives; without callbacks, process and thread.", move |row| {
            (&*subscriber(row).2).into()
        })
}

/// The messages of a selection, of all topics together.
pub(crate) struct Totals {
    /// Latencies of those that arrived.
    pub latencies: Distribution,
    /// Percentage of the arrived that were late: the publisher's next one was published before.
    pub late_percent: f64,
    /// Percentage that did not arrive although a later one did.
    pub lost_percent: f64,
}

impl Totals {
    /// `None` if no message arrived.
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        let edges = Edges::of(selection, |_, _| Vec::new());
        let rows = edges.rows(Deadline::default());
        let sum = |of: fn(&Row<'_>) -> u64| rows.iter().map(of).sum::<u64>();
        let (late, lost) = (sum(|row| row.late), sum(|row| row.lost));
        let latencies: Distribution =
            edges.edges.values().flat_map(|edge| &edge.arrived).map(|arrived| arrived.latency_ns).collect();
        let arrived = latencies.len() as f64;
        (arrived > 0.0).then(|| Self {
            latencies,
            late_percent: 100.0 * late as f64 / arrived,
            lost_percent: 100.0 * lost as f64 / (arrived + lost as f64),
        })
    }
}

/// The tables `flows` and `flow_stages`: rows by topic, publisher and subscriber.
pub fn tables(selection: &Selection<'_>, options: &OptionValues) -> Vec<Table> {
    let deadline = Deadline::of(options);
    let edges = Edges::of(selection, |message, arrival| named_stages(&message.way(arrival, selection)));
    let rows = edges.rows(deadline);
    let bound = |name: &str, doc: &str| {
        Column::duration(name, &format!("{doc} bound of its 95 % confidence interval.")).detail()
    };
    let mut table = keys(|row: &Row<'_>| row.key)
        .count("published", "", "Messages that the publisher published.", |row| row.published.len())
        .number("rate", "Hz", "Publications per second.", |row| Value::from(row.rate()))
        .count("arrived", "", "Messages that arrived.", |row| row.latencies.len())
        .duration("median", "Median of the latency: from publication to arrival.", |row| row.latencies.median())
        .with(bound("median_low", "Lower"), |row| row.bounds(50.0)[0].into())
        .with(bound("median_high", "Upper"), |row| row.bounds(50.0)[1].into())
        .duration("p99", "99th percentile of the latency.", |row| row.latencies.percentile(99.0))
        .with(bound("p99_low", "Lower"), |row| row.bounds(99.0)[0].into())
        .with(bound("p99_high", "Upper"), |row| row.bounds(99.0)[1].into())
        .duration("max", "Longest latency.", |row| row.latencies.max())
        .count(
            "late",
            "",
            "Messages that arrived after the next message was published, or after the deadline.",
            |row| row.late,
        )
        .count("lost", "", "Messages that did not arrive although a later one did.", |row| row.lost)
        .count("pending", "", "Messages published after the last one that arrived.", |row| row.pending)
        .essential("topic publisher subscriber arrived median p99 late lost")
        .detail("pending")
        .table("flows", "Flows", &rows);
    table.add_notes(notes(selection, &edges, deadline));
    let stages = edges.edges.iter().flat_map(|(key, edge)| stages(key, edge));
    let stages = keys(|row: &Stage<'_>| row.key)
        .text("stage", "Stage that ends this part of the way; the part starts at the stage before.", |row| {
            shown(row.name).into()
        })
        .duration("median", "Median of the part.", |row| row.times.median())
        .duration("p99", "99th percentile of the part.", |row| row.times.percentile(99.0))
        .percentage("share", "Share of all latencies.", |row| percent(row.sum.into(), row.of.into()))
        .percentage("slow_share", "Share of the latencies of the slowest 1 % of the messages.", |row| {
            percent(row.slow.into(), row.of_slow.into())
        })
        .essential("topic subscriber stage median share slow_share")
        .table("flow_stages", "Stages of flows", stages.collect::<Vec<_>>());
    vec![table, stages]
}

fn notes(selection: &Selection<'_>, edges: &Edges, deadline: Deadline) -> Vec<Note> {
    if selection.capture().flows.is_empty() {
        return vec![why_no_messages(selection)];
    }
    let mut notes = Vec::new();
    let lost_marks = selection.capture().info.losses.lost_marks;
    if lost_marks > 0 {
        notes.push(note!(
            Loss,
            "{} of the program are missing, so some messages seem lost.",
            NoteValue::plural(lost_marks as usize, "mark")
        ));
    }
    notes.extend(clock_notes(selection));
    if edges.unpublished > 0 {
        notes.push(note!(
            Limit,
            "{} of messages without a publication in the capture are left out.",
            NoteValue::plural(edges.unpublished as usize, "stage")
        ));
    }
    let has_edge = |(topic, publisher): &(Arc<str>, Arc<str>)| {
        edges.edges.keys().any(|key| key.0 == *topic && key.1 == *publisher)
    };
    let silent: Vec<&str> = edges.published.keys().filter(|key| !has_edge(key)).map(|(topic, _)| &**topic).collect();
    if !silent.is_empty() {
        notes.push(note!(Fact, "No message arrives of {}.", NoteValue::names(silent, 5)));
    }
    notes.extend(match (deadline.ns, deadline.percent) {
        (None, None) => None,
        (Some(ns), None) => Some(note!(Fact, "Late: latency above {}.", NoteValue::ns(ns))),
        (None, Some(percent)) => {
            Some(note!(Fact, "Late: latency above {} of the period.", NoteValue::percent(percent)))
        }
        (Some(ns), Some(percent)) => Some(note!(
            Fact,
            "Late: latency above {}, or above {} of the period if that is shorter.",
            NoteValue::ns(ns),
            NoteValue::percent(percent)
        )),
    });
    if selection.filters_stacks() {
        notes.push(note!(Limit, "Filters by function, module and ownership do not apply: messages have no stacks."));
    }
    notes
}

/// Why a recording that asked for messages of ROS 2 has none.
pub(crate) fn why_no_ros2(selection: &Selection<'_>) -> Option<Note> {
    let notes = &selection.capture().info.notes;
    notes.iter().find(|note| note.starts_with(NO_ROS2)).map(|why| note!(Loss, "{}", why))
}

/// Says why there are no messages, or how to get them.
pub(crate) fn why_no_messages(selection: &Selection<'_>) -> Note {
    let how = note!(
        Loss,
        "The capture has no messages. Mark them with `STEPSCOPE_FLOW_BEGIN` and `STEPSCOPE_FLOW_END`, record ROS 2 \
         with `--with ros2`, or import a trace of ros2_tracing."
    );
    why_no_ros2(selection).unwrap_or(how)
}

/// How far latencies between machines are right.
pub(crate) fn clock_notes(selection: &Selection<'_>) -> Vec<Note> {
    let Some(merged) = &selection.capture().info.merged else { return Vec::new() };
    let mut notes = Vec::new();
    if merged.error_ns() > 0 {
        let error = NoteValue::ns(merged.error_ns());
        notes.push(note!(
            Limit,
            "Latencies between machines are right to {}: their clocks were aligned to that.",
            error
        ));
    }
    if merged.early_messages > 0 {
        let messages = NoteValue::plural(merged.early_messages as usize, "message");
        notes.push(note!(
            Limit,
            "{} arrived before the publication, by less than the error of the clocks: the latency counts as 1 ns.",
            messages
        ));
    }
    if merged.impossible_messages > 0 {
        let messages = NoteValue::plural(merged.impossible_messages as usize, "message");
        notes.push(note!(
            Loss,
            "{} arrived before the publication, by more than the error of the clocks, and is not counted: the alignment may be wrong.",
            messages
        ));
    }
    notes
}

/// How long messages take.
pub const ANALYSIS: Analysis = Analysis {
    title: "Flows",
    views: &[View {
        name: "flows",
        question: "How long do messages take from publisher to subscriber, and where on the way?",
        tables,
    }],
    options: &[DEADLINE, DEADLINE_SHARE],
    report: |selection| {
        ReportSection::of_rows("Flows", tables(selection, &OptionValues::default())).into_iter().collect()
    },
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn drawing() -> Drawing {
        Drawing::new().window(0..10_000).lived("lidar", 0..10_000, None).lived("planner", 0..10_000, None).lived(
            "map",
            2_500..10_000,
            None,
        )
    }

    fn shown(drawing: &Drawing, options: &OptionValues) -> [Vec<String>; 2] {
        let tables = drawn::selected(&drawing.capture, &[], |selection| tables(selection, options));
        let flows =
            ["publisher", "subscriber", "published", "rate", "arrived", "median", "p99", "late", "lost", "pending"];
        [cells(&tables[0], &flows), cells(&tables[1], &["subscriber", "stage", "median", "share", "slow_share"])]
    }

    const SCAN: &str = "
        lidar published 1 at 1000, planner passed at 1060, planner arrived at 1100
        lidar published 2 at 2000, planner arrived at 3200
        lidar published 3 at 3000, map arrived at 3010
        lidar published 4 at 4000, planner passed at 4010, planner arrived at 4100, map arrived at 4020
        lidar published 5 at 5000, map arrived at 5030";

    #[test]
    fn late_lost_and_pending_messages_are_counted_for_each_subscriber() {
        let drawing = drawing().flows("/scan", SCAN);
        let [flows, _] = shown(&drawing, &OptionValues::default());
        assert_eq!(
            flows,
            [
                // 1 and 2 were before its thread started.
                "lidar | map | 5 | 1000000 | 3 | 20 | 30 | 0 | 0 | 0",
                "lidar | planner | 5 | 1000000 | 3 | 100 | 1200 | 1 | 1 | 1",
            ]
        );
        let mut options = OptionValues::default();
        options.set(&DEADLINE, 0.000_025);
        let [flows, _] = shown(&drawing, &options);
        assert!(flows[0].ends_with("| 1 | 0 | 0") && flows[1].ends_with("| 3 | 1 | 1"), "{flows:?}");
        // The period is 1,000 ns; a tenth of it.
        let mut options = OptionValues::default();
        options.set(&DEADLINE_SHARE, 9.9);
        let [flows, _] = shown(&drawing, &options);
        assert!(flows[0].ends_with("| 0 | 0 | 0") && flows[1].ends_with("| 3 | 1 | 1"), "{flows:?}");
    }

    #[test]
    fn stages_add_up_to_the_latency_of_their_own_subscriber() {
        let [_, stages] = shown(&drawing().flows("/scan", SCAN), &OptionValues::default());
        assert_eq!(
            stages,
            [
                "map | arrived | 20 | 100 | 100",
                "planner | passed | 10 | 5 | 0",
                // 40, 1,200 and 90 of 1,400.
                "planner | arrived | 90 | 95 | 100",
            ]
        );
    }

    #[test]
    fn a_number_that_is_published_again_is_another_message() {
        let text = "
            lidar published 1 at 1000, planner arrived at 1100
            lidar published 1 at 2000, planner arrived at 2300";
        let [flows, _] = shown(&drawing().flows("/scan", text), &OptionValues::default());
        assert_eq!(flows, ["lidar | planner | 2 | 1000000 | 2 | 100 | 300 | 0 | 0 | 0"]);
    }

    #[test]
    fn an_arrival_without_a_publication_is_left_out_and_noted() {
        let drawing = drawing().flows("/scan", "planner arrived 7 at 1000\nlidar published 8 at 2000");
        let table = drawn::selected(&drawing.capture, &[], |selection| tables(selection, &OptionValues::default()));
        let notes: Vec<String> = table[0].notes.iter().map(ToString::to_string).collect();
        assert!(table[0].rows.is_empty());
        assert_eq!(
            notes,
            [
                "1 stage of messages without a publication in the capture are left out.",
                "No message arrives of `/scan`."
            ]
        );
    }
}

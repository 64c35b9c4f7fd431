//! Disturbances: when the machine slowed the program down, and what steps took then.
//!
//! The recording is cut into intervals of 100 ms (longer ones in recordings of more than a minute). An interval is *disturbed* if
//!
//! - the machine is slower: a loop of [`MACHINE_SPEED`] takes [`SLOWER_PERCENT`] longer than usual. *Usual* is the 20th percentile of
//!   all intervals, and an interval counts with [`LEAST_READINGS`] readings or more. A lower clock rate, a neighbour on the other
//!   hardware thread and a neighbour in the cache look alike here; which loops are slower tells them apart;
//! - or the thread of the steps waits for a CPU (runnable) for [`WAITING_PERCENT`] of it. Without steps, any thread does.
//!
//! Adjacent disturbed intervals are one row.
//!
//! # Limits
//! If the machine is slow for more than four fifths of a recording, that is what is usual. Time that a hypervisor steals is known
//! for the whole recording only (`conditions`); in its intervals it shows as slower loops, or not at all.

use std::ops::Range;

use stepscope_model::{Columns, Dimension, MACHINE_SPEED, Note, NoteValue, Table, note};

use crate::analysis::{Analysis, View};
use crate::query::machine_speed;
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};
use crate::query::waits::runnable_ns;

/// How much slower each loop of [`MACHINE_SPEED`] is in a disturbed interval. Memory varies more by itself.
pub const SLOWER_PERCENT: [f64; MACHINE_SPEED.len()] = [15.0, 15.0, 30.0];

/// Time that the thread of the steps waits for a CPU in a disturbed interval.
pub const WAITING_PERCENT: f64 = 20.0;

/// Fewest readings of an interval.
pub const LEAST_READINGS: u32 = 2;

const INTERVAL_NS: u64 = 100_000_000;
const MOST_INTERVALS: u64 = 600;

/// What happened in an interval.
#[derive(Debug, Clone, Default)]
struct Interval {
    /// Sum and number of the logarithms of each loop's time.
    loops: [(f64, u32); MACHINE_SPEED.len()],
    waiting_ns: u64,
}

impl Interval {
    /// Mean logarithm of a loop's time.
    fn slowness(&self, kind: usize) -> Option<f64> {
        let (sum, count) = self.loops[kind];
        (count >= LEAST_READINGS).then(|| sum / f64::from(count))
    }
}

/// A disturbed part of the recording.
#[derive(Debug, Clone)]
struct Disturbance {
    range: Range<u64>,
    /// By how much each loop was slower, in percent: the most of its intervals.
    slower: [Option<f64>; MACHINE_SPEED.len()],
    waiting_ns: u64,
    steps: StepTimes,
}

#[derive(Debug, Clone, Copy, Default)]
struct StepTimes {
    count: u64,
    ns: u64,
}

impl StepTimes {
    fn mean_ns(self) -> Option<f64> {
        (self.count > 0).then(|| self.ns as f64 / self.count as f64)
    }
}

impl Disturbance {
    fn length_ns(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn waiting_percent(&self) -> f64 {
        self.waiting_ns as f64 * 100.0 / self.length_ns() as f64
    }

    fn is_slower(&self) -> bool {
        self.slower.iter().zip(SLOWER_PERCENT).any(|(slower, least)| slower.is_some_and(|slower| slower >= least))
    }

    fn is_disturbed(&self) -> bool {
        self.is_slower() || self.waiting_percent() >= WAITING_PERCENT
    }

    fn cause(&self) -> &'static str {
        match (self.is_slower(), self.waiting_percent() >= WAITING_PERCENT) {
            (true, true) => "slower machine, waiting for a CPU",
            (true, false) => "slower machine",
            _ => "waiting for a CPU",
        }
    }

    fn add(&mut self, next: &Self) {
        self.range.end = next.range.end;
        self.waiting_ns += next.waiting_ns;
        for (slower, next) in self.slower.iter_mut().zip(next.slower) {
            *slower = (*slower).into_iter().chain(next).reduce(f64::max);
        }
    }
}

/// Every interval of the recording.
fn intervals(selection: &Selection<'_>, window: &Range<u64>) -> Vec<Disturbance> {
    let length = window.end - window.start;
    let interval_ns = INTERVAL_NS.max(length.div_ceil(MOST_INTERVALS));
    let count = length.div_ceil(interval_ns) as usize;
    let mut intervals = vec![Interval::default(); count];
    let at = |time_ns: u64| ((time_ns - window.start) / interval_ns) as usize;
    for reading in machine_speed::readings(selection) {
        let (sum, count) = &mut intervals[at(reading.counter.time_ns)].loops[reading.kind];
        *sum += reading.slowness;
        *count += 1;
    }
    let loops = Loops::of(selection);
    for wait in selection.waits() {
        if loops.as_ref().is_some_and(|loops| !loops.in_main(wait.thread)) {
            continue;
        }
        let (mut start, end) = ((wait.end_ns - runnable_ns(&wait)).max(window.start), wait.end_ns.min(window.end));
        while start < end {
            let index = at(start);
            let until = (window.start + (index as u64 + 1) * interval_ns).min(end);
            intervals[index].waiting_ns += until - start;
            start = until;
        }
    }
    let usual: [Option<f64>; MACHINE_SPEED.len()] = std::array::from_fn(|kind| {
        let mut all: Vec<f64> = intervals.iter().filter_map(|interval| interval.slowness(kind)).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 5).copied()
    });
    let disturbance = |(index, interval): (usize, &Interval)| {
        let start = window.start + index as u64 * interval_ns;
        Disturbance {
            range: start..(start + interval_ns).min(window.end),
            slower: std::array::from_fn(|kind| Some(((interval.slowness(kind)? - usual[kind]?).exp() - 1.0) * 100.0)),
            waiting_ns: interval.waiting_ns,
            steps: StepTimes::default(),
        }
    };
    intervals.iter().enumerate().map(disturbance).collect()
}

/// The disturbed parts, and the steps outside of them.
fn disturbances(selection: &Selection<'_>) -> (Vec<Disturbance>, StepTimes) {
    let Some(window) = selection.window().filter(|window| !window.is_empty()) else { return Default::default() };
    let mut found: Vec<Disturbance> = Vec::new();
    for one in intervals(selection, &window).into_iter().filter(Disturbance::is_disturbed) {
        match found.last_mut().filter(|last| last.range.end == one.range.start) {
            Some(last) => last.add(&one),
            None => found.push(one),
        }
    }
    let mut others = StepTimes::default();
    if let Some(steps) = Steps::of(selection) {
        for (step, position) in steps.rows().iter().zip(0..) {
            let after = found.partition_point(|one| one.range.start <= step.start_ns);
            let inside = after.checked_sub(1).filter(|index| step.start_ns < found[*index].range.end);
            let times = inside.map_or(&mut others, |index| &mut found[index].steps);
            times.count += 1;
            times.ns += steps.duration(position);
        }
    }
    (found, others)
}

/// The table `disturbances`, in the order of time.
pub fn table(selection: &Selection<'_>) -> Table {
    let (found, others) = disturbances(selection);
    let from = selection.window().map_or(0, |window| window.start);
    let mut columns = Columns::new()
        .duration("start", "Start, since that of the recording.", move |one: &Disturbance| one.range.start - from)
        .duration("duration", "How long it lasted.", Disturbance::length_ns)
        .text("cause", "`slower machine`, `waiting for a CPU`, or both.", |one| one.cause().into())
        .percentage(
            "waiting",
            "Time that the thread of the steps was runnable, waiting for a CPU; without steps, all threads.",
            |one| one.waiting_percent(),
        );
    for (kind, name) in ["integer", "cache", "memory"].into_iter().enumerate() {
        let doc = format!("By how much the loop `machine_speed.{name}` took longer than usual, at most.");
        columns = columns.percentage(name, &doc, move |one: &Disturbance| one.slower[kind]);
    }
    let mut table = columns
        .count("steps", "steps", "Steps that started in it.", |one: &Disturbance| one.steps.count)
        .duration("step_mean", "Their mean time.", |one: &Disturbance| one.steps.mean_ns())
        .table("disturbances", "Disturbed intervals", &found);
    table.add_notes(notes(selection, &found, others));
    table
}

fn notes(selection: &Selection<'_>, found: &[Disturbance], others: StepTimes) -> Vec<Note> {
    let mut notes = Vec::new();
    let is_measured = selection.capture().counters.iter().any(|one| MACHINE_SPEED.contains(&&*one.name));
    if !is_measured {
        notes.push(note!(
            Limit,
            "The machine's speed was not measured: only waiting for a CPU is known. `stepscope record --speed-probe` measures it."
        ));
    }
    let (disturbed, length) = (found.iter().map(Disturbance::length_ns).sum::<u64>(), selection.wall_ns().unwrap_or(0));
    if disturbed == 0 || length == 0 {
        notes.push(note!(Fact, "No interval is disturbed."));
        return notes;
    }
    let share = NoteValue::percent(disturbed as f64 * 100.0 / length as f64);
    let inside = found.iter().fold(StepTimes::default(), |sum, one| StepTimes {
        count: sum.count + one.steps.count,
        ns: sum.ns + one.steps.ns,
    });
    notes.push(match inside.mean_ns().zip(others.mean_ns()) {
        Some((inside, others)) => note!(
            Fact,
            "{} of the recording is disturbed. Steps took {} there and {} elsewhere, on average.",
            share,
            NoteValue::ns(inside),
            NoteValue::ns(others)
        ),
        None => note!(Fact, "{} of the recording is disturbed.", share),
    });
    notes
}

/// Disturbances.
pub const ANALYSIS: Analysis = Analysis {
    title: "Disturbances",
    views: &[View {
        name: "disturbances",
        question: "When did the machine or other programs slow the program down, and what did steps take then?",
        tables: |selection, _| vec![table(selection)],
    }],
    needs: &[Dimension::Sched],
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Counter, Event, Value};

    use super::*;
    use crate::drawn::{self, Drawing};

    /// One second of steps of 10 ms; 20 ms between 0.4 and 0.6 s. Readings every 20 ms, of half the speed there.
    fn capture(readings: bool) -> Capture {
        let drawing = Drawing::new().window(0..1_000_000_000).steps("main", 0, 10_000_000, 100, 10_000_000);
        let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), "@0 main;run 1").capture;
        let slow = |time_ns: u64| (400_000_000..600_000_000).contains(&time_ns);
        capture.steps.retain(|step| !slow(step.start_ns) || step.start_ns % 20_000_000 == 0);
        for step in capture.steps.iter_mut().filter(|step| slow(step.start_ns)) {
            step.end_ns = step.start_ns + 20_000_000;
        }
        let thread = capture.steps.first().map(|step| step.thread);
        for time_ns in (0..1_000_000_000).step_by(20_000_000).filter(|_| readings) {
            let (name, value) = (capture.intern_text(MACHINE_SPEED[1]), if slow(time_ns) { 25_000 } else { 50_000 });
            capture.counters.push(Counter { time_ns, process: None, thread, name, value });
        }
        capture
    }

    #[test]
    fn intervals_in_which_the_machine_is_slower_are_one_row_with_its_steps() {
        let table = drawn::selected(&capture(true), &[], table);
        assert_eq!(table.rows.len(), 1, "{table:?}");
        let value = |column| table.get(0, column).cloned().unwrap();
        assert_eq!([value("start"), value("duration")], [400_000_000_u64, 200_000_000].map(Value::from));
        assert_eq!([value("cause"), value("integer")], ["slower machine".into(), Value::Missing]);
        assert!(
            matches!(value("cache"), Value::Float(percent) if (percent - 100.0).abs() < 1e-6),
            "{:?}",
            value("cache")
        );
        assert_eq!([value("steps"), value("step_mean")], [10_u64.into(), 2e7.into()]);
        assert_eq!(
            table.notes,
            ["20.00 % of the recording is disturbed. Steps took 20.0 ms there and 10.0 ms elsewhere, on average."]
        );
    }

    #[test]
    fn without_readings_a_note_says_so() {
        let table = drawn::selected(&capture(false), &[], table);
        assert!(table.rows.is_empty());
        assert!(table.notes[0].starts_with("The machine's speed was not measured"), "{:?}", table.notes);
        assert_eq!(table.notes[1], "No interval is disturbed.");
    }
}

//! Steps of drawn captures.

use stepscope_model::{Capture, Event, ThreadId, Value};
use stepscope_stats::Distribution;

use super::histogram::{BINS, bins};
use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};
use crate::query::steps::Steps;

const NAP: &str = "main;gz::Run;usleep;clock_nanosleep";
const LOCK: &str = "main;gz::Step;pthread_mutex_lock;__lll_lock_wait";

fn all(capture: &Capture) -> Vec<Table> {
    drawn::selected(capture, &["gz::"], tables)
}

/// Ten steps of 100 ns that simulate 50 each; in each the loop sleeps 20, and waits 10 + 5 at a lock; a worker runs 30.
fn paced() -> Capture {
    let mut drawing = Drawing::new()
        .window(0..2_000)
        .process(1, "/usr/bin/sim")
        .lived("main", 0..2_000, None)
        .steps("main", 100, 100, 10, 50)
        .lived("worker", 0..2_000, None);
    for step in 1..11 {
        let start = step * 100;
        drawing = drawing
            .blocked_then_runnable("main", start + 10..start + 25, 5, LOCK)
            .blocked("main", start + 80..start + 100, NAP)
            .blocked("worker", start + 30..start + 100, "");
    }
    drawing.folded(Event::sampled("cpu-clock", "ns"), "@140 main;gz::Step;find 9\n@999 worker;gz::Work 30").capture
}

#[test]
fn the_loop_is_shown_with_and_without_pacing() {
    let tables = all(&paced());
    assert_eq!(
        cells(&tables[0], &["loop", "thread", "steps", "rtf", "rtf_unpaced", "first_step", "median", "stalls"]),
        ["sim | main | 10 | 0.5 | 0.625 | 100 | 100 | 0"]
    );
    assert_eq!(tables[0].notes[0], "Pacing is 20.00 % of the steps' time (200 ns): the loop's thread slept.");
}

#[test]
fn the_parts_of_a_step_are_those_of_its_threads_within_it() {
    let tables = all(&paced());
    assert_eq!(
        cells(&tables[1], &["quantity", "total", "share", "mean", "p99", "first_step"]),
        [
            "step | 900 | 100 | 100 | 100 | 100",
            "step without pacing | 720 | 80 | 80 | 80 | 80",
            "pacing | 180 | 20 | 20 | 20 | 20",
            "loop thread running | 585 | 65 | 65 | 65 | 65",
            "loop thread runnable | 45 | 5 | 5 | 5 | 5",
            "loop thread blocked, not pacing | 90 | 10 | 10 | 10 | 10",
            "CPU of all threads | 855 | 95 | 95 | 95 | 95",
        ]
    );
}

#[test]
fn a_condition_that_no_thread_signals_is_pacing_where_wake_ups_are_known() {
    let capture = Drawing::new()
        .lived("main", 0..100, None)
        .blocked_then_runnable("main", 0..10, 0, "gz::Run;pthread_cond_timedwait")
        .blocked("main", 20..30, "gz::Run;pthread_cond_timedwait")
        .capture;
    drawn::selected(&capture, &[], |selection| {
        let nothing = selection.off_cpu();
        let steps = Drawing::new().steps("main", 200, 1, 1, 1).capture;
        let steps = drawn::selected(&steps, &[], |selection| Steps::of(selection).unwrap());
        let mut pacing = Pacing::of(selection, &steps, &nothing);
        let mut signalled = capture.waits.at(0);
        signalled.waker = Some(ThreadId(0));
        let judged = [capture.waits.at(0), signalled, capture.waits.at(1)].map(|wait| pacing.is_pacing(&wait));
        assert_eq!(judged, [true, false, false]);
    });
}

#[test]
fn waits_without_a_stack_have_the_class_of_similar_waits() {
    let paced_by = |stack: &str| {
        let mut drawing = Drawing::new().window(0..2_000).lived("main", 0..2_000, None).steps("main", 0, 100, 20, 50);
        for step in 0..20 {
            let stack = if step % 2 == 0 { stack } else { "" };
            drawing = drawing.blocked_then_runnable("main", step * 100 + 50..step * 100 + 90, 0, stack);
        }
        let tables = all(&drawing.capture);
        cells(&tables[1], &["quantity", "total"])[2].clone()
    };
    assert_eq!([paced_by(NAP), paced_by("main;gz::Save;fsync")], ["pacing | 760", "pacing | 0"]);
}

#[test]
fn a_stall_is_long_among_its_neighbours_and_not_at_the_end_of_a_growing_run() {
    let growing: Vec<u64> = (0..200).map(|step| 1_000 + 20 * step).collect();
    assert!(stalls(&growing).iter().all(|stall| !stall));
    let mut jump = growing.clone();
    jump[10] = 2_600;
    jump[150] = 7_900;
    let found: Vec<usize> = (0..200).filter(|step| stalls(&jump)[*step]).collect();
    assert_eq!(found, [10]);
    assert_eq!(stalls(&[5]), [false]);
}

#[test]
fn a_loop_that_slows_down_has_a_note_with_the_change() {
    let mut capture = Drawing::new().window(0..1_000_000).steps("main", 0, 1, 100, 1).capture;
    let mut start = 0;
    for step in capture.steps.iter_mut() {
        (step.start_ns, step.end_ns) = (start, start + 1_000 + 10 * step.index);
        start = step.end_ns;
    }
    let table = &all(&capture)[0];
    let Some(Value::Float(change)) = table.get(0, "change") else { panic!("{:?}", table.rows) };
    // From 1010 to 1990 ns, with a median of 1500: 65 %.
    assert!((60.0..72.0).contains(change), "{change}");
    assert!(table.notes.iter().any(|note| note.starts_with("Steps become slower: ")), "{:?}", table.notes);
}

#[test]
fn bins_hold_every_step_but_the_first() {
    let table = &all(&paced())[2];
    assert_eq!(
        cells(table, &["from", "to", "steps", "share", "cumulative", "time_share"]),
        ["100 | 101 | 9 | 100 | 100 | 100"]
    );
    let times: Distribution = (1..=1_000_u64).map(|index| 1_000 + index * index).collect();
    let bins = bins(&times);
    assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 1_000);
    assert_eq!(bins.iter().map(|bin| bin.sum).sum::<u128>(), times.sum());
    assert!((5..=BINS).contains(&bins.len()), "{}", bins.len());
}

#[test]
fn the_longest_steps_say_what_they_did() {
    let table = &all(&paced())[3];
    assert_eq!(
        cells(table, &["step", "start", "duration", "running", "blocked", "cpu", "function", "waits_at"])[..2],
        ["0 | 100 | 100 | 65 | 10 | 95 | gz::Step | gz::Step", "1 | 200 | 100 | 65 | 10 | 95 | - | gz::Step"]
    );
    assert_eq!(cells(table, &["function", "function_cpu"])[8], "gz::Work | 30");
}

#[test]
fn without_steps_the_table_says_how_to_have_them() {
    let tables = all(&drawn::folded("main;a 1"));
    assert_eq!(tables.len(), 1);
    assert!(tables[0].notes[0].contains("--step-function"), "{:?}", tables[0].notes);
}

#[test]
fn without_switches_times_and_sampled_cost_are_all_that_is_known() {
    let capture = Drawing::new()
        .window(0..100)
        .steps("main", 0, 10, 5, 1)
        .folded(Event::sampled("cpu-clock", "ns"), "@15 main;a 4\n@25 main;a 6")
        .capture;
    let tables = all(&capture);
    assert_eq!(
        cells(&tables[1], &["quantity", "total", "max"]),
        ["step | 40 | 10", "CPU of all threads, sampled | 10 | 6"]
    );
    assert_eq!(cells(&tables[3], &["running", "pacing"])[0], "- | -");
}

/// 400 steps of these lengths in ns, each within 1 % of it.
fn of_lengths(length: impl Fn(u64) -> u64) -> Capture {
    let mut drawing = Drawing::new().window(0..10_000_000).steps("main", 0, 1, 400, 1);
    let mut time = 0;
    for (index, step) in drawing.capture.steps.iter_mut().enumerate() {
        let length = length(index as u64) * (1_000 + index as u64 * 37 % 10) / 1_000;
        (step.start_ns, step.end_ns) = (time, time + length);
        time += length;
    }
    drawing.capture
}

#[test]
fn steps_that_alternate_have_two_levels_and_no_trend() {
    let tables = all(&of_lengths(|index| if index % 2 == 0 { 3_000 } else { 5_000 }));
    let notes: Vec<String> = tables[0].notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes[0],
        "Step times have two levels: 3.01 µs (49.87 % of the steps) and 5.03 µs (50.13 %). They switch 398 times."
    );
    assert!(notes.iter().any(|note| note.starts_with("No significant trend") && note.ends_with("within each level.")));
    let shares = cells(&tables[0], &["lower_level", "upper_level", "stalls"]);
    assert!(shares[0].starts_with("301") && shares[0].ends_with(" | 0"), "{shares:?}");
}

#[test]
fn a_trend_within_two_levels_is_found_and_one_shift_is_no_trend() {
    let growing = all(&of_lengths(|index| (if index % 3 == 0 { 3_000 } else { 6_000 }) * (1_000 + index / 4) / 1_000));
    let note = |tables: &[Table], start: &str| tables[0].notes.iter().any(|note| note.starts_with(start));
    assert!(note(&growing, "Step times have two levels") && note(&growing, "Steps become slower: +"), "{growing:?}");
    let shifted = all(&of_lengths(|index| if index < 200 { 5_000 } else { 3_000 }));
    assert!(note(&shifted, "Step times shift once, from 5.03 µs to 3.01 µs."), "{:?}", shifted[0].notes);
    assert!(note(&shifted, "No significant trend"), "{:?}", shifted[0].notes);
    let outliers = all(&of_lengths(|index| if index % 40 == 0 { 30_000 } else { 3_000 }));
    assert!(!note(&outliers, "Step times"), "{:?}", outliers[0].notes);
    assert_eq!(cells(&outliers[0], &["stalls", "upper_level"]), ["9 | -"]);
}

/// What the notes say of 400 steps: the number of levels, `once` for a single shift, and the trend.
fn said_of(length: impl Fn(u64) -> u64) -> (&'static str, &'static str) {
    let tables = all(&of_lengths(length));
    let has = |start: &str| tables[0].notes.iter().any(|note| note.starts_with(start));
    let levels = match (has("Step times have two levels"), has("Step times shift once")) {
        (true, _) => "two",
        (_, true) => "once",
        _ => "one",
    };
    let trend = match (has("Steps become slower"), has("Steps become faster")) {
        (true, _) => "slower",
        (_, true) => "faster",
        _ => "none",
    };
    (levels, trend)
}

#[test]
fn levels_are_distinguished_from_a_trend_a_shift_and_all_of_these_together() {
    /// True in about `percent` of the steps, as if by chance.
    fn by_chance(index: u64, percent: u64) -> bool {
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 100 < percent
    }
    let flip = |index: u64| if by_chance(index, 45) { 3_000 } else { 5_000 };
    // By 30 % of the first step over the recording.
    let growing = |index: u64, ns: u64| ns * (4_000 + index * 3) / 4_000;
    assert_eq!(said_of(flip), ("two", "none"), "steps that flip");
    assert_eq!(said_of(|index| growing(index, 3_000)), ("one", "slower"), "a trend");
    assert_eq!(said_of(|index| if index < 150 { 5_000 } else { 3_000 }), ("once", "none"), "a shift");
    assert_eq!(said_of(|index| growing(index, if index < 150 { 2_000 } else { 5_000 })), ("once", "slower"), "both");
    assert_eq!(said_of(|index| growing(index, flip(index))), ("two", "slower"), "levels that grow");
    assert_eq!(said_of(|index| flip(index) * (10_000 - index * 5) / 10_000), ("two", "faster"), "levels that shrink");
    // The lower level becomes more frequent: the median falls by two fifths, and no step becomes faster.
    let more_often = |index: u64| if by_chance(index, 20 + index / 7) { 3_000 } else { 5_000 };
    assert_eq!(said_of(more_often), ("two", "none"), "one level becomes more frequent");
}

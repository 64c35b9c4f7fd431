//! Slow steps of drawn captures.

use std::ops::Range;

use stepscope_model::{AllocationBurst, Capture, Event, ProcessId, ThreadId, Value};
use stepscope_stats::SplitMix64;

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};
use crate::query::steps::Steps;

const MS: u64 = 1_000_000;

/// Steps of 10 ms and some noise, sampled once a ms: physics on the loop's thread, a worker that renders half of the
/// time. Every 50th step decodes a texture for 20 ms. 3 % of the others are delayed, by something that is no function.
fn injected(steps: u64, decode_ms: u64) -> Capture {
    let mut random = SplitMix64::new(5);
    let mut text = String::new();
    let mut drawing = Drawing::new().process(1, "sim").steps("main", 0, 1, steps, 1);
    let mut time = MS;
    let mut delays: Vec<std::ops::Range<u64>> = Vec::new();
    for step in 0..steps {
        let decodes = step % 50 == 49;
        let load = if step == 0 { 300 } else { 0 };
        let work = 9 + random.below(3) as u64;
        let start = time;
        let mut run = |stack: &str, ms: u64, time: &mut u64| {
            for _ in 0..ms {
                // A sample somewhere in each ms.
                let at = *time + random.below(MS as usize) as u64;
                text.push_str(&format!("@{at} {stack} {MS}\n"));
                *time += MS;
            }
        };
        run("main;gz::Run;gz::Step;gz::Load;read", load, &mut time);
        run("main;gz::Run;gz::Step;dSolve", work, &mut time);
        if decodes {
            run("main;gz::Run;gz::Step;gz::Decode;stbi_load;memcpy", decode_ms, &mut time);
        }
        let mut other = start;
        run("worker;gz::Render", work / 2, &mut other);
        if !decodes && random.below(33) == 0 {
            delays.push(time..time + 4 * MS);
            time += 4 * MS;
        }
        let row = &mut drawing.capture.steps[step as usize];
        (row.start_ns, row.end_ns) = (start, time);
    }
    let mut drawing = drawing.window(0..time).lived("main", 0..time, None).lived("worker", 0..time, None);
    for delay in delays {
        drawing = drawing.preempted("main", delay, "");
    }
    drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture
}

fn number(table: &Table, row: usize, column: &str) -> f64 {
    match table.get(row, column) {
        Some(Value::Float(number)) => *number,
        other => panic!("{column} of row {row} is {other:?}"),
    }
}

fn slow(capture: &Capture, slow: Slow) -> Vec<Table> {
    let options = Options { slow, replicates: 400 };
    drawn::selected(capture, &["gz::"], |selection| tables(selection, &options))
}

#[test]
fn work_injected_in_every_50th_step_is_on_top_and_its_cost_is_recovered() {
    let capture = injected(1_000, 20);
    let tables = slow(&capture, Slow::Natural);
    let table = &tables[1];
    assert_eq!(cells(table, &["function", "verdict", "in_slow", "in_typical"])[0], "gz::Decode | more | 100 | 0");
    let cost = number(table, 0, "difference");
    assert!((cost / (20 * MS) as f64 - 1.0).abs() < 0.02, "{cost}");
    assert!(number(table, 0, "low") > 19e6 && number(table, 0, "high") < 21e6, "{:?}", table.rows[0]);
    assert_eq!(
        tables[0].notes[0],
        "Slow: 20 steps (2.00 %) of 29.0 ms or more without CPU waits, beyond a gap in the step times."
    );
    assert_eq!(tables[0].notes[2], "A cut-off at p95 would add 31 steps without extra work.");
    let loads = (0..table.rows.len()).any(|row| table.get(row, "function") == Some(&"gz::Load".into()));
    assert!(!loads, "the first step is in neither set");
}

/// 5 % of 999 steps are 50, of which 20 decode: the mean over them is two fifths of the cost.
#[test]
fn above_a_percentile_the_cost_and_in_slow_are_those_of_a_mixed_set() {
    let tables = slow(&injected(1_000, 20), Slow::Percentile(95.0));
    let table = &tables[1];
    assert_eq!(cells(table, &["function"])[0], "gz::Decode");
    let in_slow = number(table, 0, "in_slow");
    let cost = number(table, 0, "difference");
    assert!((30.0..45.0).contains(&in_slow), "{in_slow}");
    assert!((cost / (20.0 * MS as f64 * in_slow / 100.0) - 1.0).abs() < 0.02, "{cost} in {in_slow} %");
}

#[test]
fn the_parts_of_the_loops_thread_add_up_to_the_difference() {
    let tables = slow(&injected(1_000, 20), Slow::Natural);
    let difference = |row| number(&tables[0], row, "difference");
    assert_eq!(cells(&tables[0], &["quantity"])[0], "step");
    let parts: f64 = (1..5).map(difference).sum();
    assert!((parts - difference(0)).abs() < 1.0, "{parts} {}", difference(0));
}

#[test]
fn noise_has_no_natural_gap_and_a_group_apart_has() {
    let gap = |times: Vec<u64>| natural_gap(&times.into_iter().collect());
    let mut random = SplitMix64::new(9);
    let mut exponential = || (-(random.below(1_000_000) as f64 + 1.0).ln() + 14.0) * 1e6;
    assert_eq!(gap((0..2_000).map(|_| 1_000_000 + exponential() as u64).collect()), None);
    assert_eq!(gap((0..2_000).map(|index| 1_000 + index).collect()), None);
    assert_eq!(gap(vec![500; 1_000]), None);
    let narrow = |index: u64| 10_000 + index % 100;
    assert_eq!(gap((0..1_000).map(narrow).collect()), None);
    // A single outlier is no group.
    assert_eq!(gap((0..1_000).map(narrow).chain([90_000]).collect()), None);
    let threshold = gap((0..1_000).map(narrow).chain((0..7).map(|index| 11_200 + 10 * index)).collect()).unwrap();
    assert_eq!(threshold, 11_200);
    assert!(gap((0..800).map(narrow).chain((0..200).map(|index| 40_000 + 100 * index)).collect()).is_some());
}

#[test]
fn waits_of_the_loop_are_apart_and_those_for_other_threads_do_not_lead() {
    let mut drawing = Drawing::new().process(1, "sim").window(0..1_000 * MS);
    drawing = drawing.lived("main", 0..1_000 * MS, None).lived("worker", 0..1_000 * MS, None);
    let mut text = String::new();
    let mut start = 0;
    for step in 0..50_u64 {
        // Every tenth step the worker takes 9 ms longer, and main waits for it; a file takes 4 ms.
        let late = step % 10 == 5;
        let worker = if late { 10 } else { 1 };
        (0..worker).for_each(|ms| text.push_str(&format!("@{} worker;gz::Solve {MS}\n", start + ms * MS)));
        let joined = start + worker * MS;
        drawing = drawing.blocked("main", start..joined, "gz::Join;pthread_cond_wait");
        let end = joined + if late { 4 * MS } else { 0 } + MS;
        if late {
            drawing = drawing.blocked("main", joined..joined + 4 * MS, "gz::Save;fsync");
        }
        let mut one = Drawing { capture: std::mem::take(&mut drawing.capture) }.steps("main", start, end - start, 1, 1);
        one.capture.steps.last_mut().unwrap().index = step;
        drawing = one;
        start = end;
    }
    let capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
    let table = &slow(&capture, Slow::Natural)[1];
    assert_eq!(
        cells(table, &["function", "difference", "blocked_difference"]),
        ["gz::Solve | 9000000 | 0", "gz::Save | 0 | 4000000", "gz::Join | 0 | 9000000"]
    );
}

#[test]
fn trees_of_slow_and_typical_steps_are_per_step() {
    let capture = injected(1_000, 20);
    drawn::selected(&capture, &["gz::"], |selection| {
        let (slow, typical) =
            trees(selection, &Options::default(), &calltree::Options::default(), Evidence::OnCpu).unwrap();
        let total = |tree: &CallTree, name: &str| {
            tree.nodes.iter().filter(|node| &*node.name == name).map(|node| node.total).sum::<u64>()
        };
        assert_eq!((total(&typical, "gz::Decode"), total(&slow, "gz::Decode") / MS), (0, 20));
        assert_eq!((slow.unit.as_str(), slow.title.as_str()), ("ns", "On-CPU time per step, 20 slow steps"));
        let sets = Steps::of(selection).unwrap().count();
        assert_eq!(sets, 1_000);
    });
}

#[test]
fn without_switches_slow_steps_are_found_by_a_gap_on_the_clock() {
    let mut drawing = Drawing::new().window(0..100_000).steps("main", 0, 1, 100, 1);
    let mut time = 0;
    for (index, step) in drawing.capture.steps.iter_mut().enumerate() {
        let length = if index % 20 == 7 { 1_500 } else { 500 + index as u64 % 3 };
        (step.start_ns, step.end_ns) = (time, time + length);
        time += length;
    }
    let text = "@3600 main;gz::Extra 1000\n@3700 main;gz::Step 500";
    let capture = drawing.folded(Event::sampled("cpu-clock", "ns"), text).capture;
    let tables = slow(&capture, Slow::Natural);
    assert_eq!(tables[0].notes[0], "Slow: 5 steps (5.05 %) of 1.50 µs or more, beyond a gap in the step times.");
    assert_eq!(cells(&tables[0], &["quantity", "slow"])[..2], ["step | 1500", "CPU of all threads, sampled | 300"]);
    assert_eq!(cells(&tables[1], &["function", "difference", "in_slow"])[0], "gz::Extra | 200 | 20");
}

#[test]
fn equal_steps_and_few_steps_are_not_compared() {
    let equal = Drawing::new().window(0..1_000).steps("main", 0, 10, 50, 1).capture;
    let notes = |capture: &Capture| slow(capture, Slow::Natural)[0].notes.clone();
    assert_eq!(notes(&equal), ["The slowest steps take as long as typical steps (10 ns): nothing to compare."]);
    let few = Drawing::new().window(0..1_000).steps("main", 0, 10, 5, 1).capture;
    assert_eq!(
        notes(&few),
        ["4 steps after the first are too few for slow and typical steps: at least 20 are needed."]
    );
    assert!(notes(&drawn::folded("main;a 1"))[0].contains("--step-function"));
}

#[test]
fn steps_on_the_upper_of_two_levels_are_slow() {
    let mut drawing = Drawing::new().window(0..10_000_000).steps("main", 0, 1, 200, 1);
    let mut time = 0;
    for (index, step) in drawing.capture.steps.iter_mut().enumerate() {
        let length = if index % 2 == 0 { 3_000 } else { 5_000 } + index as u64 % 7;
        (step.start_ns, step.end_ns) = (time, time + length);
        time += length;
    }
    let note = slow(&drawing.capture, Slow::Natural)[0].notes[0].to_string();
    assert_eq!(
        note,
        "Slow: 100 steps (50.25 %) of 5.00 µs or more, on the upper of two levels (5.00 µs; the lower is 3.00 µs)."
    );
}

/// Steps of 1 ms; every tenth takes 5 ms, allocates 100 blocks more and makes 30 calls more.
#[test]
fn allocations_and_system_calls_of_slow_steps_are_counted_by_function() {
    let mut drawing = Drawing::new().process(1, "sim").window(0..200 * MS).steps("main", 0, 1, 100, 1);
    let mut start = 0;
    let mut calls = Vec::new();
    let [usual, decode] = ["usual", "decode"].map(|name| {
        let frames = ["gz::Step", name].map(|name| drawing.capture.intern_function(&format!("gz::{name}")));
        drawing.capture.intern_stack(frames)
    });
    for step in 0..100 {
        let is_slow = step % 10 == 9;
        let end = start + if is_slow { 5 * MS } else { MS };
        let row = &mut drawing.capture.steps[step];
        (row.start_ns, row.end_ns) = (start, end);
        let mut burst = |stack, at: Range<u64>, calls, bytes| {
            drawing.capture.allocation_bursts.push(AllocationBurst {
                start_ns: at.start,
                end_ns: at.end,
                process: ProcessId(0),
                thread: Some(ThreadId(0)),
                stack,
                calls,
                bytes,
            });
        };
        burst(usual, start..start, 4, 400);
        if is_slow {
            burst(decode, start + MS..start + 3 * MS, 100, 100_000);
            calls.push((start + 2 * MS, 30));
        }
        start = end;
    }
    for (end_ns, count) in calls {
        drawn::system_calls(&mut drawing.capture, end_ns, "main;gz::Step;gz::decode", "read", count);
    }
    let tables = slow(&drawing.capture, Slow::Natural);
    let [heap, system_calls] = ["slow_steps_heap", "slow_steps_syscalls"].map(|name| {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        assert_eq!(table.notes, [""; 0]);
        table
    });
    let columns = ["function", "slow", "typical", "difference", "verdict"];
    assert_eq!(
        cells(heap, &columns),
        ["(all) | 104 | 4 | 100 | more", "gz::decode | 100 | 0 | 100 | more", "gz::usual | 4 | 4 | 0 | inconclusive"]
    );
    assert_eq!(cells(heap, &["bytes_difference"])[1], "100000");
    assert_eq!(
        cells(system_calls, &["function", "difference", "calls", "time_difference"]),
        ["(all) | 30 |  | 300", "gz::decode | 30 | read +30.0 | 300"]
    );
}

/// Sums of 10 ms do not say which of ten steps they belong to.
#[test]
fn allocations_of_a_time_longer_than_steps_are_spread_and_a_note_says_so() {
    let mut drawing = Drawing::new().process(1, "sim").window(0..200 * MS).steps("main", 0, 1, 100, 1);
    for (step, row) in drawing.capture.steps.iter_mut().enumerate() {
        let start = step as u64 * MS;
        (row.start_ns, row.end_ns) = (start, start + if step % 10 == 9 { MS } else { MS / 2 });
    }
    drawing.capture.allocation_bursts.push(AllocationBurst {
        start_ns: 0,
        end_ns: 100 * MS,
        process: ProcessId(0),
        thread: None,
        stack: None,
        calls: 1000,
        bytes: 8000,
    });
    let tables = slow(&drawing.capture, Slow::Natural);
    let table = tables.iter().find(|table| table.name == "slow_steps_heap").unwrap();
    assert_eq!(cells(table, &["function", "slow", "typical"])[0], "(all) | 10 | 5");
    assert!(table.notes[0].to_string().starts_with("The times of 100.00 % of these allocations"), "{}", table.notes[0]);
}

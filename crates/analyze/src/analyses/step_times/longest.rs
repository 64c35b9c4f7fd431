//! The table `longest_steps`.

use std::cmp::Reverse;

use stepscope_model::{Columns, StackId, Step, Table, Value};

use super::stalls::times_the_neighbours;
use super::{Pacing, STALL, StepParts};
use crate::query::functions::FunctionId;
use crate::query::off_cpu::{OffCpu, Spent};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::waits::blocked_ns;

/// The number of rows.
const LONGEST: usize = 30;

/// Time of a function in a step.
#[derive(Clone, Copy)]
struct Share {
    function: FunctionId,
    ns: u64,
}

struct Row<'a> {
    step: &'a Step,
    duration: u64,
    pacing: u64,
    times_neighbours: Option<f64>,
    /// States of the loop's thread.
    spent: Option<Spent>,
    cpu: Option<u64>,
    most_cpu: Option<Share>,
    most_blocked: Option<Share>,
}

/// The table `longest_steps`: the longest steps without pacing, and their parts.
pub(super) fn table(selection: &Selection<'_>, loops: &Loops, parts: &StepParts, off_cpu: &OffCpu<'_>) -> Table {
    let steps = loops.main();
    let unpaced = parts.unpaced();
    let mut order: Vec<usize> = (0..steps.count()).collect();
    order.sort_by_key(|position| Reverse(unpaced[*position]));
    order.truncate(LONGEST);
    let most_cpu = attributed_in(selection, loops, &order);
    let mut pacing = Pacing::of(selection, steps, off_cpu);
    let rows = order.iter().zip(most_cpu).map(|(&position, most_cpu)| {
        let step = &steps.rows()[position];
        Row {
            step,
            duration: parts.durations[position],
            pacing: parts.pacing[position],
            times_neighbours: times_the_neighbours(&unpaced, position),
            spent: parts.spent.as_ref().map(|spent| spent[position]),
            cpu: parts.cpu.as_ref().map(|cpu| cpu[position]),
            most_cpu,
            most_blocked: waited_at(selection, off_cpu, step, &mut pacing),
        }
    });
    let start = selection.capture().info.start_ns.unwrap_or(steps.span.start);
    let name = |share: Option<Share>| Value::from(share.map(|share| &*selection.functions().get(share.function).name));
    let function = "Function with the most attributed samples of all threads (nearest owned function; of the program, if \
                    nothing is owned).";
    let waits_at = "Function with the most attributed blocked time of the loop's thread, without pacing.";
    Columns::<Row<'_>>::new()
        .number("step", "", "Number of the step.", |row| row.step.index)
        .duration("start", "Start of the step, since the start of the recording.", |row| {
            row.step.start_ns.saturating_sub(start)
        })
        .duration("duration", "Duration of the step.", |row| row.duration)
        .duration("pacing", "Part of `duration`: pacing of the loop's thread.", |row| row.spent.map(|_| row.pacing))
        .number("times_neighbours", "", "Its time without pacing, divided by the median of its neighbours.", |row| {
            row.times_neighbours
        })
        .flag("stall", "Whether it is a stall.", |row| row.times_neighbours.map(|ratio| ratio > STALL))
        .duration("running", "Time of the loop's thread on a CPU.", |row| row.spent.map(|spent| spent.running))
        .duration("runnable", "Time of the loop's thread waiting for a CPU.", |row| {
            row.spent.map(|spent| spent.runnable)
        })
        .duration("blocked", "Time of the loop's thread blocked, without pacing.", |row| {
            row.spent.map(|spent| spent.blocked.saturating_sub(row.pacing))
        })
        .duration("cpu", "CPU time of all threads.", |row| row.cpu)
        .text("function", function, move |row| name(row.most_cpu))
        .duration("function_cpu", "That function's time.", |row| row.most_cpu.map(|share| share.ns))
        .text("waits_at", waits_at, move |row| name(row.most_blocked))
        .duration("waits_at_blocked", "That function's time.", |row| row.most_blocked.map(|share| share.ns))
        .essential("step duration function")
        .detail("start pacing stall function_cpu waits_at_blocked")
        .table("longest_steps", "The longest steps", rows)
}

/// For each of these steps, the function with the most attributed samples.
fn attributed_in(selection: &Selection<'_>, loops: &Loops, positions: &[usize]) -> Vec<Option<Share>> {
    let mut place_of = vec![None; loops.main().count()];
    positions.iter().enumerate().for_each(|(place, position)| place_of[*position] = Some(place));
    let mut sums: Vec<Vec<Share>> = vec![Vec::new(); positions.len()];
    for sample in selection.samples() {
        let Some(place) = loops.main_step_of(sample).and_then(|position| place_of[position]) else { continue };
        if let Some(function) = sample.stack.and_then(|stack| selection.functions().attributed(stack)) {
            sums[place].push(Share { function, ns: sample.weight });
        }
    }
    sums.into_iter().map(largest).collect()
}

fn waited_at(selection: &Selection<'_>, off_cpu: &OffCpu<'_>, step: &Step, pacing: &mut Pacing<'_>) -> Option<Share> {
    let waits = off_cpu.within(step.thread, step.start_ns..step.end_ns);
    let attributed = |stack: StackId| selection.functions().attributed(stack);
    largest(
        waits
            .filter(|wait| !pacing.is_pacing(wait))
            .filter_map(|wait| Some(Share { function: wait.stack.and_then(attributed)?, ns: blocked_ns(&wait) }))
            .filter(|share| share.ns > 0)
            .collect(),
    )
}

/// The function with the largest sum; of equal ones the first of the capture.
fn largest(mut shares: Vec<Share>) -> Option<Share> {
    shares.sort_unstable_by_key(|share| share.function);
    let sums = shares.chunk_by(|a, b| a.function == b.function).map(|of_one| Share {
        function: of_one[0].function,
        ns: of_one.iter().fold(0, |sum, share| sum.saturating_add(share.ns)),
    });
    sums.reduce(|best, one| if one.ns > best.ns { one } else { best })
}

//! What a function does besides using CPUs: its part of the steps, its allocations and its system calls.

use std::sync::Arc;

use stepscope_model::{MemoryError, StackId, Table};

use super::calls::Calls;
use super::{LONGEST_LIST, capture, common_unit};
use crate::analyses::memory_errors;
use crate::analyses::sharing::LineOfFunction;
use crate::analyses::system_calls::{self, OfFile};
use crate::query::attributed_place::place;
use crate::query::heap::{HeapSums, Sums};
use crate::query::steps::Loops;
use crate::query::system_calls::{CallSum, SelectedCalls};

/// The tables of all dimensions but CPU and waits.
pub(super) fn tables(calls: &[Calls<'_, '_>]) -> Vec<Table> {
    vec![steps(calls), heap(calls), system_calls(calls), files(calls), sharing(calls), memory_errors(calls)]
}

/// The percentile from which on steps are slow.
const SLOW: f64 = 95.0;

/// Fewest steps for a statement about a twentieth of them.
const FEWEST_STEPS: usize = 40;

fn steps(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        steps: usize,
        /// In a step: in all of them, in slow ones, and in the others.
        all: f64,
        slow: Option<f64>,
        others: Option<f64>,
    }
    let of_capture = |one: &Calls<'_, '_>| -> Option<Row> {
        let loops = Loops::of_costs(one.selection)?;
        let steps = loops.main();
        let slow_ns = steps.times.percentile(SLOW).filter(|_| steps.count() >= FEWEST_STEPS).unwrap_or(u64::MAX);
        let slow_steps = steps.rows().iter().filter(|step| step.end_ns - step.start_ns >= slow_ns).count();
        let (mut slow, mut others) = (0_u128, 0_u128);
        let in_main = |sample: &&stepscope_model::Sample| loops.in_main(sample.thread) && one.is_under(sample.stack);
        for sample in one.selection.samples().filter(in_main) {
            let Some(position) = sample.time_ns.and_then(|time| steps.at(time)) else { continue };
            *(if steps.duration(position) >= slow_ns { &mut slow } else { &mut others }) += u128::from(sample.weight);
        }
        let mean = |weight: u128, count: usize| (count > 0).then(|| weight as f64 / count as f64);
        let (count, has_slow) = (steps.count(), slow_steps > 0);
        Some(Row {
            label: one.label(),
            steps: count,
            all: mean(slow + others, count)?,
            slow: mean(slow, slow_steps),
            others: mean(others, count - slow_steps).filter(|_| has_slow),
        })
    };
    let unit = common_unit(calls);
    capture(|row: &Row| row.label.clone())
        .count("steps", "steps", "Number of steps of the main loop.", |row| row.steps)
        .weight("per_step", unit, "Mean cost in a step, with all that it calls.", |row| row.all)
        .weight("per_slow_step", unit, "Mean cost in one of the slowest 5 % of the steps.", |row| row.slow)
        .weight("per_other_step", unit, "Mean cost in one of the other steps.", |row| row.others)
        .essential("per_step per_slow_step per_other_step")
        .table("explain_steps", "Its part of the steps", calls.iter().filter_map(of_capture))
}

fn heap(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        has_steps: bool,
        attributed: Sums,
        inclusive: Sums,
    }
    let of_capture = |one: &Calls<'_, '_>| -> Option<Row> {
        let heap = HeapSums::of(one.selection);
        let (mut attributed, mut inclusive) = (Sums::default(), Sums::default());
        for ((_, _, stack), sums) in &heap.places {
            if one.is_under(*stack) {
                inclusive += sums;
            }
            if stack.is_some_and(|stack| one.is_attributed(stack)) {
                attributed += sums;
            }
        }
        let allocates = inclusive != Sums::default();
        allocates.then(|| Row { label: one.label(), has_steps: heap.has_steps, attributed, inclusive })
    };
    capture(|row: &Row| row.label.clone())
        .count("calls", "allocations", "Allocations of it and of all that it calls.", |row| row.inclusive.calls)
        .count("attributed_calls", "allocations", "Those whose nearest owned function it is.", |row| {
            row.attributed.calls
        })
        .count("temporary", "allocations", "Those that their thread freed before it allocated again.", |row| {
            row.inclusive.temporary
        })
        .bytes("bytes", "Bytes that they asked for.", |row| row.inclusive.bytes)
        .bytes("peak_bytes", "The part that lived when the process had most live bytes.", |row| {
            row.inclusive.peak_bytes
        })
        .bytes("leaked_bytes", "The part that lives at the end.", |row| row.inclusive.live_bytes)
        .number("calls_per_step", "allocations", "Allocations in a step; missing without steps.", |row| {
            row.has_steps.then_some(row.inclusive.step.calls)
        })
        .number("temporary_per_step", "allocations", "Temporary ones in a step; missing without steps.", |row| {
            row.has_steps.then_some(row.inclusive.step.temporary)
        })
        .bytes("bytes_per_step", "Their bytes in a step; missing without steps.", |row| {
            row.has_steps.then_some(row.inclusive.step.bytes)
        })
        .essential("calls temporary bytes peak_bytes calls_per_step")
        .detail("attributed_calls")
        .table("explain_heap", "Its allocations", calls.iter().filter_map(of_capture))
}

/// The system calls at stacks that contain the function.
fn under<'a>(one: &Calls<'_, 'a>) -> SelectedCalls<'a> {
    let mut calls = SelectedCalls::of(one.selection);
    calls.rows.retain(|(row, _)| one.is_under(row.stack));
    calls.times.retain(|times| one.is_under(times.stack));
    calls
}

fn system_calls(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        call: Arc<str>,
        sum: CallSum,
        attributed: u64,
        per_step: Option<f64>,
    }
    let of_capture = |one: &Calls<'_, '_>| -> Vec<Row> {
        let calls = under(one);
        let is_own = |stack: Option<StackId>| stack.is_some_and(|stack| one.is_attributed(stack));
        let sums = calls.by(|calls| Some(calls.call.clone())).into_iter();
        let row = |(call, sum): (Arc<str>, CallSum)| {
            let own = calls.rows.iter().filter(|(row, _)| row.call == call && is_own(row.stack));
            let attributed = own.map(|(row, _)| row.count).sum();
            let per_step = calls.per_step(sum.in_steps.count);
            Row { label: one.label(), call, sum, attributed, per_step }
        };
        sums.map(row).take(LONGEST_LIST).collect()
    };
    capture(|row: &Row| row.label.clone())
        .text("call", "Name of the system call.", |row| (&*row.call).into())
        .count("count", "calls", "Calls at stacks that contain it. The number is exact.", |row| row.sum.count)
        .count("attributed", "calls", "Those whose nearest owned function it is.", |row| row.attributed)
        .duration("total", "Time within them, waits included.", |row| row.sum.total_ns)
        .number("calls_per_step", "calls", "Calls within steps, by number of steps.", |row| row.per_step)
        .count("errors", "calls", "Calls that failed.", |row| row.sum.errors)
        .bytes("bytes", "Bytes that they read or wrote.", |row| Some(row.sum.bytes).filter(|bytes| *bytes > 0))
        .essential("call count total calls_per_step")
        .detail("attributed")
        .table("explain_syscalls", "Its system calls", calls.iter().flat_map(of_capture))
}

fn files(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        file: String,
        sequence: String,
        sum: CallSum,
    }
    let of_capture = |one: &Calls<'_, '_>| -> Vec<Row> {
        let files: Vec<OfFile<'_>> = system_calls::of_files(one.selection, &under(one));
        let row = |file: OfFile<'_>| Row {
            label: one.label(),
            file: file.file.to_string(),
            sequence: file.described(),
            sum: file.sum,
        };
        files.into_iter().take(LONGEST_LIST).map(row).collect()
    };
    capture(|row: &Row| row.label.clone())
        .text("file", "Path of the file, or the name of a socket or pipe.", |row| row.file.as_str().into())
        .prose("sequence", "Which calls, in the order in which they began.", |row| row.sequence.as_str().into())
        .count("count", "calls", "Number of calls.", |row| row.sum.count)
        .duration("total", "Time within them, waits included.", |row| row.sum.total_ns)
        .count("errors", "calls", "Calls that failed.", |row| row.sum.errors)
        .essential("file sequence count total")
        .table("explain_files", "Files that it uses", calls.iter().flat_map(of_capture))
}

fn sharing(calls: &[Calls<'_, '_>]) -> Table {
    struct Row {
        label: String,
        line: LineOfFunction,
    }
    let of_capture = |one: &Calls<'_, '_>| -> Vec<Row> {
        let lines = LineOfFunction::all(one.selection, |stack| one.is_under(stack));
        lines.into_iter().take(LONGEST_LIST).map(|line| Row { label: one.label(), line }).collect()
    };
    capture(|row: &Row| row.label.clone())
        .text("line", "Address of the cache line's first byte.", |row| row.line.line.as_str().into())
        .text("object", "Global variables in it; missing for the heap and stacks.", |row| {
            row.line.object.as_deref().into()
        })
        .text("verdict", "`false sharing`, `true sharing` or `both`; missing with too few samples.", |row| {
            row.line.verdict.into()
        })
        .count("samples", "accesses", "Sampled accesses at stacks that contain the function.", |row| row.line.samples)
        .count(
            "hitm",
            "loads",
            "Those that found the line modified in another core's cache; missing if unknown.",
            |row| row.line.hitm,
        )
        .essential("line object verdict samples hitm")
        .table("explain_sharing", "Cache lines that it shares with other threads", calls.iter().flat_map(of_capture))
}

fn memory_errors(calls: &[Calls<'_, '_>]) -> Table {
    struct Row<'c> {
        label: String,
        error: &'c MemoryError,
        role: &'static str,
        place: Option<String>,
    }
    fn of_error<'c>(one: &Calls<'_, '_>, error: &'c MemoryError) -> Option<Row<'c>> {
        let roles = [
            ("made it", error.stack),
            ("allocated the memory", error.allocated),
            ("freed or used it before", error.other),
        ];
        let (role, stack) = roles.into_iter().find(|(_, stack)| one.is_under(*stack))?;
        Some(Row { label: one.label(), error, role, place: place(one.selection, stack) })
    }
    let rows = calls.iter().flat_map(|one| {
        let errors = memory_errors::by_severity(one.selection).into_iter();
        errors.filter_map(|error| of_error(one, error)).take(LONGEST_LIST)
    });
    capture(|row: &Row<'_>| row.label.clone())
        .text("kind", "What is wrong. All checkers share these words.", |row| (&*row.error.kind).into())
        .text("role", "What the function, or one that it calls, has to do with it.", |row| row.role.into())
        .text("error_place", "File and line in the function to which that is attributed.", |row| {
            row.place.as_deref().into()
        })
        .count("count", "errors", "How often the checker saw it; of a leak, the number of blocks.", |row| {
            row.error.count
        })
        .bytes("bytes", "Bytes of a leak.", |row| row.error.bytes)
        .text("tool", "The checker.", |row| (&*row.error.tool).into())
        .essential("kind role error_place count")
        .table("explain_memory_errors", "Its memory errors", rows)
}

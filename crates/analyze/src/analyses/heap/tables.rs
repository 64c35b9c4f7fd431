//! The tables of the heap.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::{
    BLOCK_LIFETIMES_NS, BLOCK_SIZES, Columns, NoteValue, ProcessId, StackId, Table, ThreadId, Value, note,
};

use crate::columns::of_function;
use crate::query::functions::FunctionId;
use crate::query::heap::{HeapSums, Sums};
use crate::query::select::Selection;
use crate::query::weights::percent;

fn share(part: u64, whole: u64) -> Option<f64> {
    percent(part.into(), whole.into())
}

/// The columns that several tables share. massif knows live bytes alone: then numbers of allocations are missing, not 0. So are the
/// kinds of blocks that a file of memray leaves out.
fn columns<'a>(heap: &HeapSums) -> Columns<'a, Sums> {
    let (total, is_of_one_kind) = (heap.total(), heap.is_of_one_kind);
    let has_temporary = !is_of_one_kind || total.temporary > 0;
    let has_peak = !is_of_one_kind || total.peak_bytes != 0;
    let has_leaked = heap.knows_leaks(&total);
    let is_live_only = total.calls == 0 && (total.live_bytes != 0 || total.peak_bytes != 0);
    let counted = move |value: u64| (!is_live_only).then_some(value);
    Columns::<Sums>::new()
        .count("calls", "allocations", "Allocations; missing if only live bytes are known.", move |sums| {
            counted(sums.calls)
        })
        .percentage("calls_share", "Allocations in percent of all selected ones.", move |sums| {
            share(sums.calls, total.calls)
        })
        .count(
            "temporary",
            "allocations",
            "Allocations that their thread freed before it allocated again.",
            move |sums| counted(sums.temporary).filter(|_| has_temporary),
        )
        .percentage("temporary_share", "Temporary allocations in percent of the row's allocations.", move |sums| {
            share(sums.temporary, sums.calls).filter(|_| has_temporary)
        })
        .bytes("bytes", "Allocated bytes, as asked for.", move |sums| counted(sums.bytes))
        .bytes("mean_size", "Bytes per allocation.", |sums| sums.bytes.checked_div(sums.calls))
        .bytes("peak_bytes", "Live bytes when the process had most.", move |sums| has_peak.then_some(sums.peak_bytes))
        .bytes("leaked_bytes", "Bytes that live at the end.", move |sums| has_leaked.then_some(sums.live_bytes))
        .count("leaked_blocks", "blocks", "Blocks that live at the end.", move |sums| {
            has_leaked.then_some(sums.live_blocks)
        })
        .count("foreign_frees", "blocks", "Blocks that another thread freed than allocated them.", move |sums| {
            (!is_of_one_kind).then_some(sums.foreign_frees)
        })
}

fn per_step<'a>(heap: &HeapSums) -> Columns<'a, Sums> {
    let rate = |value: f64, has_steps: bool| has_steps.then_some(value);
    let has_steps = heap.has_steps;
    Columns::<Sums>::new()
        .number("calls_per_step", "allocations", "Allocations in a step; missing without steps.", move |sums| {
            rate(sums.step.calls, has_steps)
        })
        .number(
            "temporary_per_step",
            "allocations",
            "Temporary allocations in a step; missing without steps.",
            move |sums| rate(sums.step.temporary, has_steps),
        )
        .bytes("bytes_per_step", "Allocated bytes in a step; missing without steps.", move |sums| {
            rate(sums.step.bytes, has_steps)
        })
}

/// The table `heap_totals`: one row with the sums of all.
pub fn totals(selection: &Selection<'_>) -> Table {
    let heap = HeapSums::of(selection);
    let total = heap.total();
    let rows: Vec<Sums> = if heap.places.is_empty() { Vec::new() } else { vec![total] };
    let columns = columns(&heap).with_all(per_step(&heap)).essential("calls temporary bytes peak_bytes leaked_bytes");
    let mut table = columns.detail("calls_share").table("heap_totals", "Heap", rows);
    if total.calls > 0 && !(heap.is_of_one_kind && total.temporary == 0) {
        table.note(note!(
            Fact,
            "{} of {} allocations ({}) are temporary: freed by their thread before it allocates again.",
            NoteValue::number(total.temporary),
            NoteValue::number(total.calls),
            NoteValue::percent(share(total.temporary, total.calls).unwrap_or(0.0)),
        ));
    }
    table
}

/// The table `heap`: one row per function, by allocations.
pub fn by_function(selection: &Selection<'_>) -> Table {
    struct Row {
        function: Option<FunctionId>,
        sums: Sums,
        inclusive: Sums,
    }
    let (capture, functions) = (selection.capture(), selection.functions());
    let heap = HeapSums::of(selection);
    let mut rows: FxHashMap<Option<FunctionId>, (Sums, Sums)> = FxHashMap::default();
    for ((_, _, stack), sums) in &heap.places {
        let attributed = stack.and_then(|stack| functions.attributed(stack));
        rows.entry(attributed).or_default().0 += sums;
    }
    for (stack, sums) in by_node(selection, &heap) {
        if functions.is_outermost(stack) {
            rows.entry(Some(functions.of_node(capture, stack))).or_default().1 += &sums;
        }
    }
    let attributed = rows.into_iter().filter(|(_, (sums, _))| *sums != Sums::default());
    let mut rows: Vec<Row> =
        attributed.map(|(function, (sums, inclusive))| Row { function, sums, inclusive }).collect();
    rows.sort_by_key(|row| {
        let name = row.function.map(|function| functions.get(function).identity());
        (Reverse((row.sums.calls, row.sums.bytes, row.sums.live_bytes)), name)
    });
    let columns = of_function(functions)
        .on(|row: &Row| &row.function)
        .with_all(columns(&heap).with_all(per_step(&heap)).on(|row: &Row| &row.sums))
        .count("inclusive_calls", "allocations", "Allocations in it and in its callees.", |row: &Row| {
            row.function.map(|_| row.inclusive.calls)
        })
        .bytes("inclusive_bytes", "Bytes allocated in it and in its callees.", |row: &Row| {
            row.function.map(|_| row.inclusive.bytes)
        })
        .essential("calls temporary bytes peak_bytes leaked_bytes")
        .detail("leaked_blocks foreign_frees mean_size");
    let mut table = columns.table("heap", "Allocations by function", rows);
    if !heap.places.is_empty() && !functions.ownership_known() {
        table.note(note!(
            Hint,
            "Allocations count for the nearest function of the program. Name your code with {} to see which of your functions cause them.",
            NoteValue::names(["--owned"], 1),
        ));
    }
    table
}

/// The sums of each node of the call tree and all below it.
fn by_node(selection: &Selection<'_>, heap: &HeapSums) -> Vec<(StackId, Sums)> {
    let stacks = &selection.capture().stacks;
    let mut nodes: BTreeMap<Reverse<StackId>, Sums> = BTreeMap::new();
    for ((_, _, stack), sums) in &heap.places {
        if let Some(stack) = stack {
            *nodes.entry(Reverse(*stack)).or_default() += sums;
        }
    }
    let mut inclusive = Vec::new();
    // Parents come before their children, so the last node is complete.
    while let Some((Reverse(stack), sums)) = nodes.pop_first() {
        if let Some(parent) = stacks[stack.index()].parent {
            *nodes.entry(Reverse(parent)).or_default() += &sums;
        }
        inclusive.push((stack, sums));
    }
    inclusive
}

/// The table `heap_threads`: one row per thread, by allocations.
pub fn by_thread(selection: &Selection<'_>) -> Table {
    struct Row {
        process: ProcessId,
        thread: Option<ThreadId>,
        sums: Sums,
    }
    let capture = selection.capture();
    let heap = HeapSums::of(selection);
    let mut threads: BTreeMap<(ProcessId, Option<ThreadId>), Sums> = BTreeMap::new();
    for ((process, thread, _), sums) in &heap.places {
        *threads.entry((*process, *thread)).or_default() += sums;
    }
    let mut rows: Vec<Row> =
        threads.into_iter().map(|((process, thread), sums)| Row { process, thread, sums }).collect();
    rows.sort_by_key(|row| (Reverse(row.sums.calls), row.thread));
    let name = |row: &Row| row.thread.map_or("(other threads)", |thread| &*capture.threads[thread.index()].name);
    Columns::new()
        .text("thread", "Last name of the thread.", move |row: &Row| name(row).into())
        .number("tid", "", "Thread id.", |row: &Row| row.thread.map(|thread| capture.threads[thread.index()].tid))
        .with(crate::columns::process(capture), |row: &Row| selection.process_label(row.process).into())
        .with_all(columns(&heap).on(|row: &Row| &row.sums))
        .essential("thread calls temporary bytes foreign_frees")
        .detail("leaked_blocks leaked_bytes")
        .table("heap_threads", "Allocations by thread", rows)
}

/// A class of blocks.
struct Class {
    from: u64,
    to: Option<u64>,
    blocks: u64,
}

fn classes(ends: &[u64], blocks: &[u64]) -> Vec<Class> {
    let ends = ends.iter().copied().map(Some).chain([None]);
    let starts = [0].into_iter().chain(ends.clone().flatten());
    let classes = starts.zip(ends).zip(blocks);
    classes.map(|((from, to), &blocks)| Class { from, to, blocks }).filter(|class| class.blocks > 0).collect()
}

/// The table `heap_sizes`: how many blocks of which size.
pub fn by_size(selection: &Selection<'_>) -> Table {
    let total = HeapSums::of(selection).total();
    Columns::new()
        .bytes("larger_than", "Blocks of the row are larger.", |class: &Class| class.from)
        .bytes("up_to_size", "Size of the largest block of the row; missing without a limit.", |class: &Class| class.to)
        .count("calls", "allocations", "Allocations.", |class: &Class| class.blocks)
        .percentage("share", "In percent of all selected allocations.", move |class: &Class| {
            share(class.blocks, total.calls)
        })
        .essential("up_to_size calls share")
        .table("heap_sizes", "Sizes of allocated blocks", classes(&BLOCK_SIZES, &total.sizes))
}

/// The table `heap_lifetimes`: how many freed blocks lived how long.
pub fn by_lifetime(selection: &Selection<'_>) -> Table {
    let total = HeapSums::of(selection).total();
    let freed: u64 = total.lifetimes.iter().sum();
    Columns::new()
        .duration("longer_than", "Blocks of the row lived longer.", |class: &Class| class.from)
        .duration("up_to_time", "The longest lifetime of the row; missing without a limit.", |class: &Class| class.to)
        .count("blocks", "blocks", "Freed blocks.", |class: &Class| class.blocks)
        .percentage("share", "In percent of all freed blocks.", move |class: &Class| share(class.blocks, freed))
        .essential("up_to_time blocks share")
        .table("heap_lifetimes", "Lifetimes of freed blocks", classes(&BLOCK_LIFETIMES_NS, &total.lifetimes))
}

/// The table `heap_time`: live bytes and sums at each reading, thinned to some 500 rows a process.
pub fn over_time(selection: &Selection<'_>) -> Table {
    const MOST: usize = 500;
    struct Row {
        time_ns: u64,
        process: ProcessId,
        live_bytes: Option<i64>,
        calls: Option<i64>,
        bytes: Option<i64>,
    }
    let capture = selection.capture();
    let mut readings: BTreeMap<(ProcessId, u64), [Option<i64>; 3]> = BTreeMap::new();
    for counter in capture.counters.iter().filter(|counter| selection.has_time(Some(counter.time_ns))) {
        let quantity = ["heap_live_bytes", "heap_calls", "heap_bytes"].iter().position(|name| **name == *counter.name);
        if let (Some(quantity), Some(process)) = (quantity, counter.process) {
            readings.entry((process, counter.time_ns)).or_default()[quantity] = Some(counter.value);
        }
    }
    let mut of_process: FxHashMap<ProcessId, usize> = FxHashMap::default();
    readings.keys().for_each(|(process, _)| *of_process.entry(*process).or_default() += 1);
    let mut seen: FxHashMap<ProcessId, usize> = FxHashMap::default();
    let start_ns = capture.info.start_ns.unwrap_or(0);
    let rows = readings.into_iter().filter_map(|((process, time_ns), [live_bytes, calls, bytes])| {
        let (index, count) = (seen.entry(process).or_default(), of_process[&process]);
        *index += 1;
        let is_kept = *index * MOST / count.max(MOST) != (*index - 1) * MOST / count.max(MOST) || *index == count;
        let time_ns = time_ns.saturating_sub(start_ns);
        is_kept.then_some(Row { time_ns, process, live_bytes, calls, bytes })
    });
    let rows: Vec<Row> = rows.collect();
    Columns::new()
        .duration("time", "Time since the start of the recording.", |row: &Row| row.time_ns)
        .with(crate::columns::process(capture), |row: &Row| Value::from(selection.process_label(row.process)))
        .bytes("live_bytes", "Live bytes.", |row: &Row| row.live_bytes)
        .count("calls", "allocations", "Allocations since the process started.", |row: &Row| row.calls)
        .bytes("bytes", "Allocated bytes since the process started.", |row: &Row| row.bytes)
        .essential("time live_bytes calls")
        .table("heap_time", "Heap over time", rows)
}

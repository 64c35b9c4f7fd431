//! The form on disk of heap allocations.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::allocation::{Allocation, BLOCK_LIFETIMES_NS, BLOCK_SIZES};
use crate::capture::Capture;
use crate::ids::{ProcessId, StackId, ThreadId};

/// Columns of the classes of sizes.
const SIZES: [&str; BLOCK_SIZES.len() + 1] = [
    "size_to_16",
    "size_to_32",
    "size_to_64",
    "size_to_128",
    "size_to_256",
    "size_to_512",
    "size_to_1k",
    "size_to_4k",
    "size_to_16k",
    "size_to_64k",
    "size_to_1m",
    "size_above",
];

/// Columns of the classes of lifetimes.
const LIFETIMES: [&str; BLOCK_LIFETIMES_NS.len() + 1] = [
    "lived_to_1us",
    "lived_to_10us",
    "lived_to_100us",
    "lived_to_1ms",
    "lived_to_10ms",
    "lived_to_100ms",
    "lived_to_1s",
    "lived_longer",
];

pub(super) const FORM: TableForm =
    TableForm { name: "allocations", len: |capture| capture.allocations.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.allocations[range.clone()].iter();
    let pid = |row: &Allocation| capture.processes[row.process.index()].pid;
    let tid = |row: &Allocation| row.thread.map(|thread| capture.threads[thread.index()].tid);
    let mut columns = vec![
        Column::u64s("start_ns", rows().map(|row| row.start_ns)),
        Column::u64s("end_ns", rows().map(|row| row.end_ns)),
        Column::u32s("pid", rows().map(pid)),
        Column::u32s("process", rows().map(|row| row.process.0)),
        Column::maybe_u32s("tid", rows().map(tid)),
        Column::maybe_u32s("thread", rows().map(|row| row.thread.map(|thread| thread.0))),
        Column::maybe_u32s("stack", rows().map(|row| row.stack.map(|stack| stack.0))),
        Column::u64s("calls", rows().map(|row| row.calls)),
        Column::u64s("bytes", rows().map(|row| row.bytes)),
        Column::u64s("temporary", rows().map(|row| row.temporary)),
        Column::u64s("frees", rows().map(|row| row.frees)),
        Column::u64s("freed_bytes", rows().map(|row| row.freed_bytes)),
        Column::u64s("foreign_frees", rows().map(|row| row.foreign_frees)),
        Column::u64s("foreign_freed_bytes", rows().map(|row| row.foreign_freed_bytes)),
        Column::i64s("live_blocks", rows().map(|row| row.live_blocks)),
        Column::i64s("live_bytes", rows().map(|row| row.live_bytes)),
        Column::i64s("peak_bytes", rows().map(|row| row.peak_bytes)),
    ];
    columns.extend((0..SIZES.len()).map(|class| Column::u32s(SIZES[class], rows().map(|row| row.sizes[class]))));
    let lifetimes = (0..LIFETIMES.len()).map(|class| (class, LIFETIMES[class]));
    columns.extend(lifetimes.map(|(class, name)| Column::u32s(name, rows().map(|row| row.lifetimes[class]))));
    columns
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let ends = rows.u64s("end_ns")?;
    let processes = rows.u32s("process")?;
    let threads = rows.maybe_u32s("thread")?;
    let stacks = rows.maybe_u32s("stack")?;
    let counts = |name: &str| rows.u64s(name);
    let (calls, bytes, temporary) = (counts("calls")?, counts("bytes")?, counts("temporary")?);
    let (frees, freed_bytes) = (counts("frees")?, counts("freed_bytes")?);
    let (foreign_frees, foreign_freed_bytes) = (counts("foreign_frees")?, counts("foreign_freed_bytes")?);
    let (live_blocks, live_bytes) = (rows.i64s("live_blocks")?, rows.i64s("live_bytes")?);
    let peaks = rows.i64s("peak_bytes")?;
    let classes = |names: &[&str]| names.iter().map(|name| rows.u32s(name)).collect::<Result<Vec<_>, _>>();
    let (sizes, lifetimes) = (classes(&SIZES)?, classes(&LIFETIMES)?);
    for (row, start_ns) in rows.u64s("start_ns")?.into_iter().enumerate() {
        capture.allocations.push(Allocation {
            start_ns,
            end_ns: ends[row],
            process: ProcessId(processes[row]),
            thread: threads[row].map(ThreadId),
            stack: stacks[row].map(StackId),
            calls: calls[row],
            bytes: bytes[row],
            temporary: temporary[row],
            frees: frees[row],
            freed_bytes: freed_bytes[row],
            foreign_frees: foreign_frees[row],
            foreign_freed_bytes: foreign_freed_bytes[row],
            live_blocks: live_blocks[row],
            live_bytes: live_bytes[row],
            peak_bytes: peaks[row],
            sizes: std::array::from_fn(|class| sizes[class][row]),
            lifetimes: std::array::from_fn(|class| lifetimes[class][row]),
        });
    }
    Ok(())
}

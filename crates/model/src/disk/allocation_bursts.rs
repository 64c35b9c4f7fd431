//! The form on disk of bursts of allocations.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::allocation::AllocationBurst;
use crate::capture::Capture;
use crate::ids::{ProcessId, StackId, ThreadId};

pub(super) const FORM: TableForm = TableForm {
    name: "allocation_bursts",
    len: |capture| capture.allocation_bursts.len(),
    columns,
    is_optional: true,
    read,
};

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.allocation_bursts[range.clone()].iter();
    let tid = |row: &AllocationBurst| row.thread.map(|thread| capture.threads[thread.index()].tid);
    vec![
        Column::u64s("start_ns", rows().map(|row| row.start_ns)),
        Column::u64s("end_ns", rows().map(|row| row.end_ns)),
        Column::u32s("pid", rows().map(|row| capture.processes[row.process.index()].pid)),
        Column::u32s("process", rows().map(|row| row.process.0)),
        Column::maybe_u32s("tid", rows().map(tid)),
        Column::maybe_u32s("thread", rows().map(|row| row.thread.map(|thread| thread.0))),
        Column::maybe_u32s("stack", rows().map(|row| row.stack.map(|stack| stack.0))),
        Column::u64s("calls", rows().map(|row| row.calls)),
        Column::u64s("bytes", rows().map(|row| row.bytes)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (ends, processes) = (rows.u64s("end_ns")?, rows.u32s("process")?);
    let (threads, stacks) = (rows.maybe_u32s("thread")?, rows.maybe_u32s("stack")?);
    let (calls, bytes) = (rows.u64s("calls")?, rows.u64s("bytes")?);
    for (row, start_ns) in rows.u64s("start_ns")?.into_iter().enumerate() {
        capture.allocation_bursts.push(AllocationBurst {
            start_ns,
            end_ns: ends[row],
            process: ProcessId(processes[row]),
            thread: threads[row].map(ThreadId),
            stack: stacks[row].map(StackId),
            calls: calls[row],
            bytes: bytes[row],
        });
    }
    Ok(())
}

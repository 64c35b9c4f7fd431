//! The form on disk of memory errors.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::capture::Capture;
use crate::ids::{ProcessId, StackId};
use crate::memory_error::MemoryError;

pub(super) const FORM: TableForm =
    TableForm { name: "memory_errors", len: |capture| capture.memory_errors.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.memory_errors[range.clone()].iter();
    let pid = |row: &MemoryError| row.process.map(|process| capture.processes[process.index()].pid);
    let stack = |stack: Option<StackId>| stack.map(|stack| stack.0);
    vec![
        Column::texts("tool", rows().map(|row| row.tool.clone())),
        Column::texts("kind", rows().map(|row| row.kind.clone())),
        Column::texts("message", rows().map(|row| row.message.clone())),
        Column::maybe_u32s("pid", rows().map(pid)),
        Column::maybe_u32s("process", rows().map(|row| row.process.map(|process| process.0))),
        Column::maybe_u32s("stack", rows().map(|row| stack(row.stack))),
        Column::maybe_u32s("allocated_stack", rows().map(|row| stack(row.allocated))),
        Column::maybe_u32s("other_stack", rows().map(|row| stack(row.other))),
        Column::u64s("count", rows().map(|row| row.count)),
        Column::maybe_u64s("bytes", rows().map(|row| row.bytes)),
        Column::maybe_u64s("first_ns", rows().map(|row| row.first_ns)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (kinds, messages) = (rows.texts("kind")?, rows.texts("message")?);
    let processes = rows.maybe_u32s("process")?;
    let stacks = rows.maybe_u32s("stack")?;
    let (allocated, others) = (rows.maybe_u32s("allocated_stack")?, rows.maybe_u32s("other_stack")?);
    let counts = rows.u64s("count")?;
    let (bytes, firsts) = (rows.maybe_u64s("bytes")?, rows.maybe_u64s("first_ns")?);
    for (row, tool) in rows.texts("tool")?.into_iter().enumerate() {
        capture.memory_errors.push(MemoryError {
            tool,
            kind: kinds[row].clone(),
            message: messages[row].clone(),
            process: processes[row].map(ProcessId),
            stack: stacks[row].map(StackId),
            allocated: allocated[row].map(StackId),
            other: others[row].map(StackId),
            count: counts[row],
            bytes: bytes[row],
            first_ns: firsts[row],
        });
    }
    Ok(())
}

//! The form on disk of system calls.

use super::marks::Names;
use super::{Keys, LongRow, TableOnDisk, read_file};
use crate::capture::SystemCalls;
use crate::disk::table_writer::Column;
use crate::disk::tables::text;
use crate::ids::{StackId, ThreadId};

impl LongRow for SystemCalls {
    const TABLE: &'static str = "syscalls";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let rows = rows.iter();
        let [tid, thread] = keys.thread_columns(rows.clone().map(|row| row.thread));
        let file = |row: &Self| row.file.clone().unwrap_or_else(|| text(""));
        vec![
            Column::u64s("start_ns", rows.clone().map(|row| row.start_ns)),
            Column::u64s("end_ns", rows.clone().map(|row| row.end_ns)),
            tid,
            thread,
            Column::shared_texts("name", rows.clone().map(|row| &row.call)),
            Column::maybe_u32s("stack", rows.clone().map(|row| row.stack.map(|stack| stack.0))),
            Column::texts("path", rows.clone().map(file)),
            Column::u64s("count", rows.clone().map(|row| row.count)),
            Column::u64s("errors", rows.clone().map(|row| row.errors)),
            Column::u64s("total_ns", rows.clone().map(|row| row.total_ns)),
            Column::u64s("longest_ns", rows.clone().map(|row| row.longest_ns)),
            Column::u64s("bytes", rows.clone().map(|row| row.bytes)),
            Column::maybe_u64s("last_ns", rows.map(|row| row.last_ns)),
        ]
    }

    /// Rows stay in the order in which they were made.
    fn sort(rows: &mut [Self]) -> usize {
        rows.len()
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let (mut calls, mut shared) = (Vec::new(), Names::default());
        read_file(&table.file.path, None, |rows| {
            calls.clear();
            let [starts, ends] = [rows.u64s("start_ns")?, rows.u64s("end_ns")?];
            let [names, paths] = [rows.texts("name")?, rows.texts("path")?];
            let [counts, errors, totals] = [rows.u64s("count")?, rows.u64s("errors")?, rows.u64s("total_ns")?];
            let [longest, bytes] = [rows.u64s("longest_ns")?, rows.u64s("bytes")?];
            let last = rows.maybe_u64s("last_ns")?;
            let stacks = rows.maybe_u32s("stack")?;
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                calls.push(Self {
                    start_ns: starts[row],
                    end_ns: ends[row],
                    thread: ThreadId(thread),
                    call: shared.shared(&names[row]),
                    stack: stacks[row].map(StackId),
                    file: (!paths[row].is_empty()).then(|| shared.shared(&paths[row])),
                    count: counts[row],
                    errors: errors[row],
                    total_ns: totals[row],
                    longest_ns: longest[row],
                    bytes: bytes[row],
                    last_ns: last[row],
                });
            }
            table.handles.check_system_calls(&calls)?;
            take(&calls);
            Ok(())
        })
    }
}

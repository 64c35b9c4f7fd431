//! The form on disk of times of system calls.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::call_times::CallTimes;
use crate::capture::Capture;
use crate::ids::{StackId, ThreadId};

pub(super) const FORM: TableForm =
    TableForm { name: "syscall_times", len: |capture| capture.call_times.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.call_times[range.clone()].iter();
    vec![
        Column::u32s("thread", rows().map(|row| row.thread.0)),
        Column::u32s("tid", rows().map(|row| capture.threads[row.thread.index()].tid)),
        Column::texts("name", rows().map(|row| row.call.clone())),
        Column::maybe_u32s("stack", rows().map(|row| row.stack.map(|stack| stack.0))),
        Column::maybe_texts("path", rows().map(|row| row.file.clone())),
        Column::u64s("from_ns", rows().map(|row| row.from_ns)),
        Column::u64s("until_ns", rows().map(|row| row.until_ns)),
        Column::u64s("count", rows().map(|row| row.count)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (names, stacks) = (rows.texts("name")?, rows.maybe_u32s("stack")?);
    let (paths, counts) = (rows.maybe_texts("path")?, rows.u64s("count")?);
    let (from, until) = (rows.u64s("from_ns")?, rows.u64s("until_ns")?);
    for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
        let times = CallTimes {
            thread: ThreadId(thread),
            call: capture.intern_text(&names[row]),
            stack: stacks[row].map(StackId),
            file: paths[row].as_deref().map(|path| capture.intern_text(path)),
            from_ns: from[row],
            until_ns: until[row],
            count: counts[row],
        };
        capture.call_times.push(times);
    }
    Ok(())
}

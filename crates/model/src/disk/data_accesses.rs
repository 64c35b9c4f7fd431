//! The form on disk of accesses to data.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::capture::Capture;
use crate::data_access::DataAccess;
use crate::ids::{StackId, ThreadId};

pub(super) const FORM: TableForm =
    TableForm { name: "data_accesses", len: |capture| capture.data_accesses.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.data_accesses[range.clone()].iter();
    vec![
        Column::u32s("thread", rows().map(|row| row.thread.0)),
        Column::u32s("tid", rows().map(|row| capture.threads[row.thread.index()].tid)),
        Column::maybe_u32s("stack", rows().map(|row| row.stack.map(|stack| stack.0))),
        Column::u64s("address", rows().map(|row| row.address)),
        Column::maybe_u64s("bytes", rows().map(|row| row.bytes)),
        Column::maybe_texts("object", rows().map(|row| row.object.clone())),
        Column::u64s("reads", rows().map(|row| row.reads)),
        Column::u64s("writes", rows().map(|row| row.writes)),
        Column::maybe_u64s("awaited", rows().map(|row| row.awaited)),
        Column::maybe_u64s("local_hitm", rows().map(|row| row.local_hitm)),
        Column::maybe_u64s("remote_hitm", rows().map(|row| row.remote_hitm)),
        Column::maybe_u64s("latency_cycles", rows().map(|row| row.latency_cycles)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (stacks, addresses) = (rows.maybe_u32s("stack")?, rows.u64s("address")?);
    let (bytes, objects) = (rows.maybe_u64s("bytes")?, rows.maybe_texts("object")?);
    let (reads, writes) = (rows.u64s("reads")?, rows.u64s("writes")?);
    let awaited = rows.maybe_u64s("awaited")?;
    let (local, remote) = (rows.maybe_u64s("local_hitm")?, rows.maybe_u64s("remote_hitm")?);
    let latencies = rows.maybe_u64s("latency_cycles")?;
    for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
        capture.data_accesses.push(DataAccess {
            thread: ThreadId(thread),
            stack: stacks[row].map(StackId),
            address: addresses[row],
            bytes: bytes[row],
            object: objects[row].clone(),
            reads: reads[row],
            writes: writes[row],
            awaited: awaited[row],
            local_hitm: local[row],
            remote_hitm: remote[row],
            latency_cycles: latencies[row],
        });
    }
    Ok(())
}

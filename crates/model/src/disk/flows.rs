//! The form on disk of flows.

use std::ops::Range;
use std::sync::Arc;

use super::columns::{Column, Rows};
use super::table_form::TableForm;
use crate::capture::Capture;
use crate::flow::FlowEvent;
use crate::ids::ThreadId;

pub(super) const FORM: TableForm =
    TableForm { name: "flows", len: |capture| capture.flows.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.flows[range.clone()].iter();
    vec![
        Column::u64s("time_ns", rows().map(|row| row.time_ns)),
        Column::u32s("tid", rows().map(|row| capture.threads[row.thread.index()].tid)),
        Column::u32s("thread", rows().map(|row| row.thread.0)),
        Column::texts("topic", rows().map(|row| row.topic.clone())),
        Column::maybe_u64s("flow", rows().map(|row| row.flow)),
        Column::texts("stage", rows().map(|row| Arc::from(row.stage.name()))),
        Column::maybe_texts("name", rows().map(|row| row.name.clone())),
        Column::maybe_u64s("period_ns", rows().map(|row| row.period_ns)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (times, topics) = (rows.u64s("time_ns")?, rows.texts("topic")?);
    let (flows, stages) = (rows.maybe_u64s("flow")?, rows.texts("stage")?);
    let (names, periods) = (rows.maybe_texts("name")?, rows.maybe_u64s("period_ns")?);
    for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
        let stage = stages[row].parse().map_err(|_| format!("`{}` is not a stage of a message", stages[row]))?;
        let (topic, name) =
            (capture.intern_text(&topics[row]), names[row].as_ref().map(|name| capture.intern_text(name)));
        capture.flows.push(FlowEvent {
            time_ns: times[row],
            thread: ThreadId(thread),
            topic,
            flow: flows[row],
            stage,
            name,
            period_ns: periods[row],
        });
    }
    Ok(())
}

//! The form on disk of flows.

use super::marks::Names;
use super::{Keys, LongRow, TableOnDisk, read_file};
use crate::disk::table_writer::{Cells, Column, Ids, MaybeSharedTexts, MaybeU64s, SharedTexts, U64s};
use crate::flow::FlowEvent;
use crate::ids::ThreadId;

impl LongRow for FlowEvent {
    const TABLE: &'static str = "flows";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let mut times = U64s::with_capacity(rows.len());
        let [mut tids, mut threads] = [Ids::with_capacity(rows.len()), Ids::with_capacity(rows.len())];
        let mut topics = SharedTexts::with_capacity(rows.len());
        let mut flows = MaybeU64s::with_capacity(rows.len());
        let mut stages = SharedTexts::with_capacity(rows.len());
        let mut names = MaybeSharedTexts::with_capacity(rows.len());
        let mut periods = MaybeU64s::with_capacity(rows.len());
        for row in rows {
            times.push(row.time_ns);
            tids.push(keys.tids[row.thread.index()]);
            threads.push(row.thread.0);
            topics.push(&row.topic);
            flows.push(row.flow);
            stages.push(row.stage.name());
            names.push(row.name.as_deref());
            periods.push(row.period_ns);
        }
        vec![
            times.column("time_ns"),
            tids.column("tid"),
            threads.column("thread"),
            topics.column("topic"),
            flows.column("flow"),
            stages.column("stage"),
            names.column("name"),
            periods.column("period_ns"),
        ]
    }

    /// A stage can be known a little later than those that come after it. The reader puts those of different groups in order.
    fn sort(rows: &mut [Self]) -> usize {
        Self::settle(rows);
        rows.len()
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let (mut events, mut shared) = (Vec::new(), Names::default());
        read_file(&table.file.path, None, |rows| {
            events.clear();
            let (times, topics) = (rows.u64s("time_ns")?, rows.texts("topic")?);
            let (flows, stages) = (rows.maybe_u64s("flow")?, rows.texts("stage")?);
            let (names, periods) = (rows.maybe_texts("name")?, rows.maybe_u64s("period_ns")?);
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                let stage =
                    stages[row].parse().map_err(|_| format!("`{}` is not a stage of a message", stages[row]))?;
                events.push(Self {
                    time_ns: times[row],
                    thread: ThreadId(thread),
                    topic: shared.shared(&topics[row]),
                    flow: flows[row],
                    stage,
                    name: names[row].as_ref().map(|name| shared.shared(name)),
                    period_ns: periods[row],
                });
            }
            table.handles.check_flows(&events)?;
            take(&events);
            Ok(())
        })
    }

    fn settle(rows: &mut [Self]) {
        if !rows.is_sorted_by_key(|event| event.time_ns) {
            rows.sort_by_key(|event| event.time_ns);
        }
    }
}

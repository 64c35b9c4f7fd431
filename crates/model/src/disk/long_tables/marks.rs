//! The form on disk of scopes and counters.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Keys, LongRow, TableOnDisk, read_by_thread, read_file};
use crate::capture::{Counter, Scope};
use crate::disk::table_writer::{Cells, Column, Ids, SharedTexts, U32s, U64s};
use crate::ids::{ProcessId, ThreadId};

/// One copy of each name.
#[derive(Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    /// Of names that are equal, the first.
    pub fn shared(&mut self, name: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        self.0.insert(name.clone());
        name.clone()
    }
}

impl LongRow for Scope {
    const TABLE: &'static str = "scopes";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let [mut tids, mut threads] = [Ids::with_capacity(rows.len()), Ids::with_capacity(rows.len())];
        let mut names = SharedTexts::with_capacity(rows.len());
        let [mut starts, mut ends] = [U64s::with_capacity(rows.len()), U64s::with_capacity(rows.len())];
        let mut depths = U32s::with_capacity(rows.len());
        for row in rows {
            tids.push(keys.tids[row.thread.index()]);
            threads.push(row.thread.0);
            names.push(&row.name);
            starts.push(row.start_ns);
            ends.push(row.end_ns);
            depths.push(row.depth);
        }
        vec![
            tids.column("tid"),
            threads.column("thread"),
            names.column("name"),
            starts.column("start_ns"),
            ends.column("end_ns"),
            depths.column("depth"),
        ]
    }

    /// The scopes of each thread are in order already, but for those that last very long.
    fn sort(rows: &mut [Self]) -> usize {
        rows.sort_by_key(|scope| scope.thread);
        rows.len()
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let (mut scopes, mut shared) = (Vec::new(), Names::default());
        read_file(&table.file.path, None, |rows| {
            scopes.clear();
            let names = rows.texts("name")?;
            let starts = rows.u64s("start_ns")?;
            let ends = rows.u64s("end_ns")?;
            let depths = rows.u32s("depth")?;
            for (row, thread) in rows.u32s("thread")?.into_iter().enumerate() {
                scopes.push(Self {
                    thread: ThreadId(thread),
                    name: shared.shared(&names[row]),
                    start_ns: starts[row],
                    end_ns: ends[row],
                    depth: depths[row],
                });
            }
            table.handles.check_scopes(&scopes)?;
            take(&scopes);
            Ok(())
        })
    }

    fn read(table: &TableOnDisk<Self>) -> Result<Vec<Self>, String> {
        let empty = Self { thread: ThreadId(0), name: "".into(), start_ns: 0, end_ns: 0, depth: 0 };
        let mut scopes = read_by_thread(table, empty, |scope| scope.thread)?;
        Self::settle(&mut scopes);
        Ok(scopes)
    }

    /// A scope that enclosed very many others is behind them in the file of an import.
    fn settle(rows: &mut [Self]) {
        let order = |scope: &Self| (scope.thread, scope.start_ns);
        if !rows.is_sorted_by_key(order) {
            rows.sort_by_key(|scope| (order(scope), std::cmp::Reverse(scope.end_ns), scope.depth));
        }
    }
}

impl LongRow for Counter {
    const TABLE: &'static str = "counters";

    fn columns(keys: &Keys, rows: &[Self]) -> Vec<Column> {
        let rows = rows.iter();
        let pid = |row: &Self| row.process.map(|process| keys.pids[process.index()]);
        let tid = |row: &Self| row.thread.map(|thread| keys.tids[thread.index()]);
        vec![
            Column::u64s("time_ns", rows.clone().map(|row| row.time_ns)),
            Column::maybe_u32s("pid", rows.clone().map(pid)),
            Column::maybe_u32s("process", rows.clone().map(|row| row.process.map(|process| process.0))),
            Column::maybe_u32s("tid", rows.clone().map(tid)),
            Column::maybe_u32s("thread", rows.clone().map(|row| row.thread.map(|thread| thread.0))),
            Column::shared_texts("name", rows.clone().map(|row| &row.name)),
            Column::i64s("value", rows.map(|row| row.value)),
        ]
    }

    /// Readings stay in the order in which they were made.
    fn sort(rows: &mut [Self]) -> usize {
        rows.len()
    }

    fn stream(table: &TableOnDisk<Self>, take: &mut dyn FnMut(&[Self])) -> Result<(), String> {
        let (mut counters, mut shared) = (Vec::new(), Names::default());
        read_file(&table.file.path, None, |rows| {
            counters.clear();
            let processes = rows.maybe_u32s("process")?;
            let threads = rows.maybe_u32s("thread")?;
            let names = rows.texts("name")?;
            let values = rows.i64s("value")?;
            for (row, time_ns) in rows.u64s("time_ns")?.into_iter().enumerate() {
                counters.push(Self {
                    time_ns,
                    process: processes[row].map(ProcessId),
                    thread: threads[row].map(ThreadId),
                    name: shared.shared(&names[row]),
                    value: values[row],
                });
            }
            table.handles.check_counters(&counters)?;
            take(&counters);
            Ok(())
        })
    }

    fn read(table: &TableOnDisk<Self>) -> Result<Vec<Self>, String> {
        let mut counters = Vec::new();
        Self::stream(table, &mut |rows| counters.extend_from_slice(rows))?;
        Ok(counters)
    }
}

//! The form on disk of counts of events.

use std::ops::Range;

use super::columns::Rows;
use super::table_form::TableForm;
use super::table_writer::Column;
use crate::capture::Capture;
use crate::event_count::EventCount;
use crate::ids::ThreadId;

pub(super) const FORM: TableForm =
    TableForm { name: "event_counts", len: |capture| capture.event_counts.len(), columns, is_optional: true, read };

fn columns(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.event_counts[range.clone()].iter();
    let tid = |row: &EventCount| row.thread.map(|thread| capture.threads[thread.index()].tid);
    vec![
        Column::maybe_u64s("start_ns", rows().map(|row| row.start_ns)),
        Column::maybe_u64s("end_ns", rows().map(|row| row.end_ns)),
        Column::maybe_u32s("tid", rows().map(tid)),
        Column::maybe_u32s("thread", rows().map(|row| row.thread.map(|thread| thread.0))),
        Column::maybe_texts("place", rows().map(|row| row.place.clone())),
        Column::texts("event", rows().map(|row| row.event.clone())),
        Column::texts("unit", rows().map(|row| row.unit.clone())),
        Column::maybe_u64s("count", rows().map(|row| row.count)),
        Column::maybe_u64s("enabled_ns", rows().map(|row| row.enabled_ns)),
        Column::maybe_u64s("running_ns", rows().map(|row| row.running_ns)),
    ]
}

fn read(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let (starts, ends) = (rows.maybe_u64s("start_ns")?, rows.maybe_u64s("end_ns")?);
    let threads = rows.maybe_u32s("thread")?;
    let (places, units) = (rows.maybe_texts("place")?, rows.texts("unit")?);
    let counts = rows.maybe_u64s("count")?;
    let (enabled, running) = (rows.maybe_u64s("enabled_ns")?, rows.maybe_u64s("running_ns")?);
    for (row, event) in rows.texts("event")?.into_iter().enumerate() {
        capture.event_counts.push(EventCount {
            start_ns: starts[row],
            end_ns: ends[row],
            thread: threads[row].map(ThreadId),
            place: places[row].clone(),
            event,
            unit: units[row].clone(),
            count: counts[row],
            enabled_ns: enabled[row],
            running_ns: running[row],
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::default();
        let thread = capture.add_thread_named("main");
        let counted = EventCount {
            start_ns: Some(1),
            end_ns: Some(2),
            thread: Some(thread),
            place: Some("CPU3".into()),
            event: "cpu_core/cycles/".into(),
            unit: "cycles".into(),
            count: Some(u64::MAX),
            enabled_ns: Some(10),
            running_ns: Some(5),
        };
        let (thread, place) = (None, None);
        let unknown = EventCount { start_ns: None, end_ns: None, thread, place, count: None, ..counted.clone() };
        capture.event_counts = vec![counted, unknown];
        let folder = folder.path().join("it.capture");
        disk::write(&capture, &folder).unwrap();
        assert_eq!(disk::read(&folder).unwrap().event_counts, capture.event_counts);
        // A handle of no thread is refused.
        capture.event_counts[0].thread = Some(ThreadId(7));
        assert!(capture.check().unwrap_err().contains("event_counts row 0"));
    }
}

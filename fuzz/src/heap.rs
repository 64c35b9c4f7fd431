//! Tables of the heap, as a program could write them.

use std::os::unix::fs::FileExt as _;

use stepscope_heap::TableFile;
use stepscope_heap::layout::{BURSTS_AT, FILE_BYTES, Header, MAGIC, NODES_AT, RECORDS_AT, THREADS_AT, VERSION};

/// Reads a table with these bytes: its header, then threads, nodes, records and bursts in quarters of the rest.
pub fn read_table(bytes: &[u8]) {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    let (header, rows) = bytes.split_at(bytes.len().min(size_of::<Header>()));
    let mut quarters = rows.chunks(rows.len().div_ceil(4).max(1));
    let mut next = || quarters.next().unwrap_or_default();
    let parts = [(THREADS_AT, next()), (NODES_AT, next()), (RECORDS_AT, next()), (BURSTS_AT, next())];
    let mut start = header.to_vec();
    start.resize(size_of::<Header>(), 0);
    start[..8].copy_from_slice(&MAGIC.to_le_bytes());
    start[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // Numbers of rows: large ones only read zeros.
    for number in start[36..48].chunks_exact_mut(4) {
        number[2..].fill(0);
    }
    let bursts = std::mem::offset_of!(Header, bursts);
    start[bursts + 2..bursts + 8].fill(0);
    let is_written = file.as_file().set_len(FILE_BYTES as u64).is_ok()
        && std::iter::once((0, &start[..]))
            .chain(parts)
            .all(|(at, bytes)| file.as_file().write_all_at(bytes, at as u64).is_ok());
    if !is_written {
        return;
    }
    let mut table = TableFile::open(file.path()).expect("it has this version").expect("it is complete");
    table.sums().expect("it is readable");
    let snapshot = table.read().expect("it is readable");
    let _ = (snapshot.bursts.len(), snapshot.has_lost_bursts);
    for record in &snapshot.records {
        let (addresses, _) = table.stack(record.node);
        assert!(addresses.len() <= table.nodes().len());
        let _ = (record.live_bytes(), record.at_peak(snapshot.header.epoch));
    }
}

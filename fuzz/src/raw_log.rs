//! Raw logs, which killed recorders leave behind.

use stepscope_assemble::raw_log::{CHUNK_MARK, EARLIER_MAGIC, MAGIC};
use stepscope_assemble::{NoSymbols, finish};

/// Finishes `bytes` as a log, and as the content of its only chunk.
pub fn read(bytes: &[u8]) {
    build(bytes);
    // A log with one sound chunk of this content: its checksum would keep damage away from the entries.
    let packed = zstd::bulk::compress(bytes, 1).expect("memory is compressed");
    let length = (packed.len() as u32).to_le_bytes();
    build(&[&MAGIC[..], CHUNK_MARK, &length, &packed].concat());
    build(&[&EARLIER_MAGIC[..], &length, &packed].concat());
}

fn build(log: &[u8]) {
    if let Ok(capture) = finish(log, &mut NoSymbols) {
        capture.check().expect("a capture keeps its own rules, whatever the log says");
    }
}

//! Raw logs, which killed recorders leave behind: as they lie on disk, and the content of a single chunk.
#![no_main]

use stepscope_assemble::raw_log::{CHUNK_MARK, EARLIER_MAGIC, MAGIC};
use stepscope_assemble::{NoSymbols, finish};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    build(data);
    // A log with one sound chunk of this content: its checksum would keep damage away from the entries.
    let packed = zstd::bulk::compress(data, 1).expect("memory is compressed");
    let length = (packed.len() as u32).to_le_bytes();
    build(&[&MAGIC[..], CHUNK_MARK, &length, &packed].concat());
    build(&[&EARLIER_MAGIC[..], &length, &packed].concat());
});

fn build(log: &[u8]) {
    if let Ok(capture) = finish(log, &mut NoSymbols) {
        capture.check().expect("a capture keeps its own rules, whatever the log says");
    }
}

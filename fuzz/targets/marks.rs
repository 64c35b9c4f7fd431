//! Segments of marks, which recorded programs write.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = stepscope_record::read_segment(data);
});

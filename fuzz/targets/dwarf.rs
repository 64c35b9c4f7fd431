//! Debug information from strangers: one section of a small program, replaced.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::name_with_section(data));

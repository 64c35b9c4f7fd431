//! MCAP files from strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::import_and_export("mcap", data));

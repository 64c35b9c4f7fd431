//! Clang's `-ftime-trace` from strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::import_and_export("clang-time-trace", data));

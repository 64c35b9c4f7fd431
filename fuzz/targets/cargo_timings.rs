//! Pages of `cargo build --timings` from strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::import_and_export("cargo-timings", data));

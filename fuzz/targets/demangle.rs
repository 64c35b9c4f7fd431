//! Symbols from strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|symbol: &str| {
    stepscope_symbolize::demangle(symbol);
});

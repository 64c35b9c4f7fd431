//! ELF files from strangers: headers, symbols, debug information, compressed sections.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::name_functions(data.to_vec()));

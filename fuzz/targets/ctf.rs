//! CTF traces from strangers: the metadata, a line `---`, and the bytes of a stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stepscope_fuzz::read_ctf(data));

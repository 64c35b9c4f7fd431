//! Lab files from strangers.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = stepscope_lab::lab_file::LabFile::parse("/lab/stepscope.toml".as_ref(), text) {
        // Errors point into the text, so they are written too.
        let _ = error.to_string();
    }
});

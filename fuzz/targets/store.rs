//! Manifests of runs in a store, and sources on the command line that name captures of one.
#![no_main]

use std::path::{Component, Path};

use stepscope_store::{Manifest, Selection, decode, encode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::parse(data) {
        for file in &manifest.files {
            let mut parts = Path::new(&file.path).components();
            assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{}", file.path);
        }
        for capture in &manifest.captures {
            let folder = capture.cell.capture_folder(capture.repetition);
            assert_eq!(folder.split('/').count(), 8, "{folder}");
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert!(text.is_empty() || decode(&encode(text)) == text);
    let _ = Selection::parse(text);
    let _ = Selection::parse(&format!("store:{text}"));
});

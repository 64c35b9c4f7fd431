//! Stores of runs.

use std::path::{Component, Path};

use stepscope_store::{Manifest, StoreSource, decode, encode};

/// Parses `bytes` as the manifest of a run in a store, and as a source on the command line that names captures of one.
pub fn parse(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        for file in &manifest.files {
            let mut parts = Path::new(&file.path).components();
            assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{}", file.path);
        }
        for capture in &manifest.captures {
            let folder = capture.cell.capture_folder(capture.repetition);
            assert_eq!(folder.split('/').count(), 8, "{folder}");
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(text.is_empty() || decode(&encode(text)) == text);
    let _ = StoreSource::parse(text);
    let _ = StoreSource::parse(&format!("store:{text}"));
}

//! Segments: captures that follow each other, in folders `segment-0001`, `segment-0002`, ... of one recording.

use std::fs;
use std::path::{Path, PathBuf};

const PREFIX: &str = "segment-";

/// The folder of a segment. Segments are numbered from 1.
pub fn segment(recording: &Path, number: u32) -> PathBuf {
    recording.join(format!("{PREFIX}{number:04}"))
}

/// The folders of a recording's segments, in order. Empty if the folder holds none.
pub fn segments(recording: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(recording).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
        entry.path().is_dir().then(|| (number, entry.path()))
    });
    let mut numbered: Vec<(u32, PathBuf)> = numbered.collect();
    numbered.sort();
    numbered.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_ordered_by_number() {
        let recording = tempfile::tempdir().unwrap();
        let expected: Vec<PathBuf> = [2, 9_999, 10_000].map(|number| segment(recording.path(), number)).into();
        expected.iter().rev().for_each(|path| fs::create_dir(path).unwrap());
        fs::create_dir(recording.path().join("segment-x")).unwrap();
        fs::write(recording.path().join("segment-0003"), "a file").unwrap();
        assert_eq!(segments(recording.path()), expected);
        assert!(segments(&recording.path().join("missing")).is_empty());
    }
}

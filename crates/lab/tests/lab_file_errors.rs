//! Golden messages for lab files that are wrong. `BLESS=1` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_lab::lab_file::LabFile;

fn lab_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab_files");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_wrong_lab_file_is_refused_with_all_its_problems_their_places_and_what_is_expected() {
    let files = lab_files();
    assert!(files.len() >= 10, "the lab files of this test are missing");
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = Path::new(path.file_name().unwrap());
        let message = format!("{}\n", LabFile::parse(name, &text).expect_err(&format!("{} is wrong", path.display())));
        let golden = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, message).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(message, expected, "of {}", path.display());
    }
}

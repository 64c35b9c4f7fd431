//! Outputs compared with files. `BLESS=1 cargo test` rewrites the files; then read the difference before committing.

use std::path::{Path, PathBuf};

/// Asserts that `actual` is what `tests/golden/<name>` holds, or writes it there if `BLESS` is set.
pub fn assert_golden(name: &str, actual: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; BLESS=1 cargo test writes it", path.display()));
    assert!(
        expected == actual,
        "{} differs; BLESS=1 cargo test rewrites it\n--- expected\n{expected}\n--- actual\n{actual}",
        path.display()
    );
}

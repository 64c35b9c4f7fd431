//! `stepscope publish` as a user meets it: a run in, a site out.

mod common;

use std::fs;
use std::path::Path;

use common::{stepscope, text};

/// A run of two scenarios, one of them with two variants.
const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema_1/project/stepscope-runs/run");

/// The only run of a site.
fn only_run(site: &Path) -> std::path::PathBuf {
    let mut runs = fs::read_dir(site.join("runs")).unwrap();
    let run = runs.next().unwrap().unwrap().path();
    assert!(runs.next().is_none());
    run
}

#[test]
fn a_run_becomes_a_folder_of_a_site_once() {
    let folder = tempfile::tempdir().unwrap();
    let publish = |options: &[&str]| stepscope(folder.path(), &[&["publish", RUN, "--site", "site"], options].concat());
    let planned = publish(&["--dry-run"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert!(
        text(&planned.stdout).contains("report.html") && text(&planned.stdout).contains("would be added site/runs/")
    );
    assert!(text(&planned.stderr).contains("note: hosts in these files:"));
    assert!(!folder.path().join("site").exists());

    let added = publish(&["--note", "first <b>"]);
    assert!(added.status.success(), "{}", text(&added.stderr));
    let site = folder.path().join("site");
    let run = only_run(&site);
    for file in ["report.html", "index.html", "publication.json", "stepscope.toml", "machine.json"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(index.contains("first &lt;b&gt;") && !index.contains("<script"));
    let tables = fs::read_dir(run.join("tables")).unwrap().map(|entry| entry.unwrap().path());
    let (tsv, parquet): (Vec<_>, Vec<_>) =
        tables.partition(|path| path.extension().is_some_and(|extension| extension == "tsv"));
    assert!(tsv.len() > 10 && tsv.len() == parquet.len());
    assert!(fs::read(&parquet[0]).unwrap().starts_with(b"PAR1"));

    assert!(
        text(&publish(&[]).stdout).contains("\nunchanged site/runs/"),
        "the same bytes each time, and the note stays"
    );
    assert!(text(&publish(&["--note", ""]).stdout).contains("\nreplaced site/runs/"));
    assert!(!fs::read_to_string(site.join("index.html")).unwrap().contains("first &lt;b&gt;"));
    assert_eq!(only_run(&site), run);
}

#[test]
fn what_cannot_be_published_says_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let nothing = stepscope(folder.path(), &["publish", "empty", "--site", "site"]);
    assert!(!nothing.status.success());
    assert!(text(&nothing.stderr).contains("empty: not a run"), "{}", text(&nothing.stderr));
    fs::write(folder.path().join("file"), "").unwrap();
    let blocked = stepscope(folder.path(), &["publish", RUN, "--site", "file"]);
    assert_eq!(blocked.status.code(), Some(1));
    assert!(text(&blocked.stderr).contains("file/runs: "), "{}", text(&blocked.stderr));
}

//! Sites of small invented runs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

use stepscope_analyze::history::{Figure, Kept, Recording};

use super::files::Files;
use super::*;

/// A run of this name and second, with a page of this text.
fn run(name: &str, second: u32, text: &str) -> Prepared {
    let mut files = Files::default();
    files.add_page("report.html", "Report", |out| out.write_all(text.as_bytes())).unwrap();
    let lab = "# the lab file\n".repeat(100);
    files.add_page("stepscope.toml", "Lab file", |out| out.write_all(lab.as_bytes())).unwrap();
    let started_at = format!("2026-11-23T10:00:{second:02}.000Z");
    let figure = Figure {
        name: "step.median".into(),
        unit: "ns".into(),
        better: None,
        value: f64::from(second) * 1e6 + 0.1 / 3.0,
    };
    let recording = Recording {
        run: String::new(),
        at: started_at.clone(),
        scenario: "shapes".into(),
        variant: None,
        phase: None,
        machine: None,
        build: None,
        revision: None,
        tool: "stepscope 0.1.0".into(),
        figures: vec![figure],
        kept: Kept::There,
    };
    let publication = Publication {
        schema: publication::SCHEMA,
        id: format!("{started_at} lab {name}"),
        name: name.into(),
        started_at,
        note: None,
        headline: None,
        scenarios: vec!["shapes".into()],
        tool: "stepscope 0.1.0".into(),
        files: files.listed(),
        recordings: vec![recording],
    };
    Prepared { publication, disclosed: Disclosed::default(), files }
}

fn index(site: &Path) -> String {
    fs::read_to_string(site.join("index.html")).unwrap()
}

#[test]
fn a_run_that_is_published_again_changes_nothing_until_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    let mut first = run("lab", 1, "one");
    first.publication.note = Some("before the fix".into());
    assert_eq!(site.plan(&first).unwrap().1, Change::Added);
    assert!(!folder.path().join("runs").exists(), "a plan writes nothing");
    let added = site.publish(&first).unwrap();
    assert_eq!(
        (added.change, added.folder.file_name().unwrap().to_str()),
        (Change::Added, Some("2026-11-23T10-00-01-lab"))
    );
    let inode = fs::metadata(added.folder.join("report.html")).unwrap().ino();
    assert_eq!(site.publish(&run("lab", 1, "one")).unwrap().change, Change::Unchanged);
    assert_eq!(fs::metadata(added.folder.join("report.html")).unwrap().ino(), inode);
    assert_eq!(site.publish(&run("lab", 1, "two")).unwrap().change, Change::Replaced);
    assert_eq!(fs::read_to_string(added.folder.join("report.html")).unwrap(), "two");
    assert!(index(folder.path()).contains("before the fix"), "the note stays");
    let hidden: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(hidden.len(), 3, "index.html, runs, .lock: {hidden:?}");
}

#[test]
fn equal_files_of_two_runs_are_stored_once_and_the_index_has_trends() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    let first = site.publish(&run("lab", 1, "one")).unwrap();
    assert_eq!(first.shared, (0, 0));
    assert!(!index(folder.path()).contains("Trends"), "one run has no trend");
    let second = site.publish(&run("lab", 2, "two")).unwrap();
    assert_eq!(second.shared, (1, 1500));
    let inode = |folder: &Path| fs::metadata(folder.join("stepscope.toml")).unwrap().ino();
    assert_eq!(inode(&first.folder), inode(&second.folder));
    let page = index(folder.path());
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} in {page}"));
    assert!(place("Trends") < place("runs/2026-11-23T10-00-02-lab/report.html"));
    assert!(place("runs/2026-11-23T10-00-02-lab/") < place("runs/2026-11-23T10-00-01-lab/"), "the latest first");
    assert!(page.contains("step.median by run: 1.00 ms, 2.00 ms"));
}

#[test]
fn runs_of_one_second_and_name_have_folders_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    site.publish(&run("a b", 1, "one")).unwrap();
    let second = site.publish(&run("a/b", 1, "two")).unwrap();
    assert_eq!(second.folder.file_name().unwrap().to_str(), Some("2026-11-23T10-00-01-a-b-2"));
}

#[test]
fn runs_that_are_published_at_the_same_time_are_all_listed() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    thread::scope(|scope| {
        for second in 0..8 {
            let site = &site;
            scope.spawn(move || site.publish(&run("lab", second % 6, "same")).unwrap());
        }
    });
    let page = index(folder.path());
    for second in 0..6 {
        assert!(page.contains(&format!("runs/2026-11-23T10-00-0{second}-lab/report.html")));
    }
    assert_eq!(site.listed().len(), 6);
}

#[test]
fn what_an_interrupted_publication_left_is_removed_and_newer_runs_stay() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    let left = folder.path().join(".unfinished-2026-11-23T10-00-01-lab");
    fs::create_dir_all(left.join("tables")).unwrap();
    let newer = folder.path().join("runs/2030-01-01T00-00-00-lab");
    fs::create_dir_all(&newer).unwrap();
    fs::write(newer.join("publication.json"), r#"{"schema": 99, "id": "x"}"#).unwrap();
    let outcome = site.publish(&run("lab", 1, "one")).unwrap();
    assert!(!left.exists());
    assert_eq!(outcome.notes.len(), 1);
    assert!(index(folder.path()).contains("runs/2030-01-01T00-00-00-lab/"));
    assert_eq!(fs::read_to_string(newer.join("publication.json")).unwrap(), r#"{"schema": 99, "id": "x"}"#);
}

#[test]
fn names_are_escaped_and_paths_of_others_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::at(folder.path());
    let mut hostile = run("<script>alert(1)</script>", 1, "one");
    hostile.publication.note = Some("<img src=x onerror=alert(1)>".into());
    let first = site.publish(&hostile).unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "# the lab file\n".repeat(100)).unwrap();
    let json = fs::read_to_string(first.folder.join("publication.json")).unwrap();
    let json = json.replace("\"stepscope.toml\"", "\"../../outside\"");
    fs::write(first.folder.join("publication.json"), json).unwrap();
    assert_eq!(site.publish(&run("lab", 2, "two")).unwrap().shared, (0, 0));
    for page in [index(folder.path()), fs::read_to_string(first.folder.join("index.html")).unwrap()] {
        assert!(!page.contains("<script") && !page.contains("<img src=x"), "{page}");
        assert!(!page.contains("http://") || !page.contains("src=\"http"), "no network");
    }
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
}

#[test]
fn a_page_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (site, page) = (Site::at(folder.path()), folder.path().join("index.html"));
    fs::write(&page, "mine").unwrap();
    let prepared = run("first", 1, "a 1");
    assert!(matches!(site.plan(&prepared), Err(PublishError::NotOurs(_))));
    assert!(matches!(site.publish(&prepared), Err(PublishError::NotOurs(_))));
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else was written");
    fs::remove_file(&page).unwrap();
    site.publish(&prepared).unwrap();
    site.publish(&prepared).unwrap();
}

#[test]
fn a_site_that_cannot_be_written_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Site::at(&file).publish(&run("lab", 1, "one")).unwrap_err().to_string();
    assert!(error.starts_with(&file.join("runs").display().to_string()), "{error}");
}

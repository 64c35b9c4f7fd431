//! Python functions at their place among native frames.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_model::Capture;
use stepscope_record::Options;
use stepscope_record::launch::Launch;

use recorded::record_command_with;

/// Each CPython from 3.9 to 3.13 in `PATH` and below `~/.pyenv`. Empty, with a line, if there is none.
fn pythons(test: &str) -> Vec<PathBuf> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&folders).filter(|folder| !folder.ends_with(".pyenv/shims"));
    let versions = std::env::home_dir().unwrap_or_default().join(".pyenv/versions");
    let installed = std::fs::read_dir(versions).into_iter().flatten().flatten().map(|folder| folder.path().join("bin"));
    for folder in in_path.chain(installed) {
        for name in ["python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"] {
            let program = folder.join(name);
            const ABOUT: &str = "import sys; v = sys.version_info; sys.implementation.name == 'cpython' \
                                 and (3, 9) <= v < (3, 14) and 'free' not in sys.version and print(sys.version, sys.prefix)";
            let Ok(output) = Command::new(&program).args(["-c", ABOUT]).output() else { continue };
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            if !version.is_empty() && found.iter().all(|(_, known)| *known != version) {
                found.push((program, version));
            }
        }
    }
    if found.is_empty() || !cfg!(target_arch = "x86_64") {
        println!("skipped: {test}: needs CPython 3.9 to 3.13 and x86-64");
        return Vec::new();
    }
    found.into_iter().map(|(program, _)| program).collect()
}

fn with_python() -> Options {
    // Enough samples for shares within 2 points.
    Options { python: true, frequency_hz: 3_989, ..Options::default() }
}

fn shares_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/shares.py")
}

/// Percent of the CPU samples under `run` that have each of these names, and the percent of those stacks with `main`.
fn shares(capture: &Capture, wanted: &[&str]) -> (Vec<f64>, f64) {
    let stacks: Vec<Vec<&str>> = capture
        .samples
        .iter()
        .filter(|sample| ["cpu-clock", "cycles"].contains(&&*capture.event(sample.event).name))
        .map(|sample| capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect())
        .filter(|names: &Vec<&str>| names.iter().any(|name| name.starts_with("py::run:")))
        .collect();
    assert!(stacks.len() > 300, "{} samples: {:?}", stacks.len(), capture.info.notes);
    let percent = |holds: &dyn Fn(&Vec<&str>) -> bool| {
        stacks.iter().filter(|names| holds(names)).count() as f64 * 100.0 / stacks.len() as f64
    };
    let name_of = |wanted: &str| format!("py::{wanted}:");
    let shares = wanted.iter().map(|wanted| {
        let start = name_of(wanted);
        percent(&|names| names.iter().any(|name| name.starts_with(&start)))
    });
    (shares.collect(), percent(&|names| names.iter().any(|name| ["main", "_start", "Py_BytesMain"].contains(name))))
}

/// Removes the maps that the processes wrote.
fn remove_maps(capture: &Capture) {
    for process in &capture.processes {
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", process.pid));
    }
}

fn has_true_shares(capture: &Capture, python: &Path) {
    let frame = |name: &str| {
        let start = format!("py::{name}:");
        capture.frames.iter().find(|frame| frame.function.starts_with(&start))
    };
    // 3.9 and 3.10 have no qualified names.
    let names = match frame("World.physics") {
        Some(_) => ["World.physics", "World.sensors", "render"],
        None => ["physics", "sensors", "render"],
    };
    let (shares, rooted) = shares(capture, &names);
    let places = names.map(|name| frame(name).and_then(|frame| Some((frame.file.as_deref()?, frame.line?))));
    let file = shares_program();
    assert_eq!(places.map(|place| place.map(|(file, _)| Path::new(file))), [Some(file.as_path()); 3]);
    assert_eq!(places.map(|place| place.map(|(_, line)| line)), [Some(13), Some(17), Some(22)]);
    println!("{}: {shares:.1?} %, {rooted:.1} % up to main", python.display());
    for (share, truth) in shares.iter().zip([70.0, 20.0, 10.0]) {
        assert!((share - truth).abs() <= 2.0, "{}: {shares:?}", python.display());
    }
    assert!(rooted >= 99.0, "{}: {rooted} %", python.display());
}

#[test]
fn python_functions_have_their_true_shares_and_lines() {
    const TEST: &str = "python_functions_have_their_true_shares_and_lines";
    for python in pythons(TEST) {
        let program = shares_program();
        let launch = Launch::new([python.as_os_str(), program.as_os_str(), "2000".as_ref()]);
        let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
        remove_maps(&capture);
        has_true_shares(&capture, &python);
    }
}

#[test]
fn a_forked_child_has_the_names_of_its_parent() {
    const TEST: &str = "a_forked_child_has_the_names_of_its_parent";
    let Some(python) = pythons(TEST).into_iter().next() else { return };
    let program = shares_program();
    let arguments = ["-c", "exec \"$@\"; :", "sh"].map(AsRef::as_ref);
    let words = [python.as_os_str(), program.as_os_str(), "2000".as_ref(), "fork".as_ref()];
    // A shell starts Python.
    let launch = Launch::new(std::iter::once("sh".as_ref()).chain(arguments).chain(words));
    let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
    remove_maps(&capture);
    has_true_shares(&capture, &python);
}

#[test]
fn a_program_without_python_is_said_to_have_none() {
    const TEST: &str = "a_program_without_python_is_said_to_have_none";
    let Some((capture, _)) = record_command_with(TEST, Launch::new(["sleep", "0.1"]), &with_python()) else { return };
    let notes = &capture.info.notes;
    assert!(
        notes.iter().any(|note| note.starts_with("No Python functions were recorded"))
            || cfg!(not(target_arch = "x86_64")),
        "{notes:?}"
    );
}

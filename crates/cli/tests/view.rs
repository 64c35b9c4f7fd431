//! `stepscope view`: what its server gives, and what it says where something is in the way.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use common::{command, stepscope, text};

/// Longest wait for anything. Only a defect reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Captures and runs of an earlier version.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema_1/project")
}

/// The program while it serves.
struct View {
    child: Option<Child>,
    host: String,
    query: String,
}

impl View {
    fn start(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(folder, &[&["view"], arguments].concat());
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let Some((host, query)) = address.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?")) else {
            panic!("{address}: {}", text(&child.wait_with_output().unwrap().stderr));
        };
        Self { host: host.to_owned(), query: query.to_owned(), child: Some(child) }
    }

    /// Status and content.
    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let (host, token) = (&self.host, self.query.strip_prefix("token=").unwrap());
        let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = text(&answer[9..12]).parse().unwrap();
        (status, answer.split_off(end + 4))
    }

    fn manifest(&self) -> Value {
        let (status, manifest) = self.get("/data/manifest.json");
        assert_eq!(status, 200, "{}", text(&manifest));
        serde_json::from_slice(&manifest).unwrap()
    }

    /// Asks for every table that the manifest names.
    fn assert_all_tables(&self) {
        for (number, capture) in self.manifest()["captures"].as_array().unwrap().iter().enumerate() {
            // Instructions are tables of single functions.
            let tables = capture["tables"].as_object().unwrap().keys().filter(|table| *table != "instructions");
            for table in tables {
                let (status, bytes) = self.get(&format!("/data/{number}/{table}.parquet"));
                // Whether source files are there shows when they are asked for.
                if (status, table.as_str()) == (204, "sources") {
                    continue;
                }
                assert_eq!(
                    (status, &bytes[..4], &bytes[bytes.len() - 4..]),
                    (200, &b"PAR1"[..], &b"PAR1"[..]),
                    "{table}"
                );
            }
        }
    }

    /// Ends it with Ctrl-C.
    fn end(mut self) -> Output {
        let child = self.child.take().unwrap();
        // SAFETY: a system call without memory; the child has not been waited for, so the id is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        child.wait_with_output().unwrap()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn every_table_of_a_capture_is_served_until_ctrl_c() {
    let view = View::start(&project(), &["steps.capture"], &[]);
    let manifest = view.manifest();
    assert_eq!(manifest["captures"].as_array().unwrap().len(), 1);
    assert!(manifest["captures"][0]["tables"]["samples"].as_u64().unwrap() > 0);
    view.assert_all_tables();
    let (status, report) = view.get("/data/document.json");
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert!(status == 200 && !report["sections"].as_array().unwrap().is_empty());
    assert_eq!(manifest["title"], report["title"]);
    assert_eq!(view.get("/data/1/samples.parquet").0, 204);
    assert_eq!(view.get("/data/0/nothing.parquet").0, 204);
    let (status, page) = view.get("/");
    assert!(status == 200 && text(&page).contains("app.js"));
    assert!(view.get("/app.js").1.len() > 10_000);

    let (port, output) = (view.host.split_once(':').unwrap().1.to_owned(), view.end());
    assert_eq!(output.status.code(), Some(0));
    let notes = text(&output.stderr);
    assert!(notes.contains(&format!("ssh -N -L {port}:127.0.0.1:{port}")), "{notes}");
}

#[test]
fn runs_and_captures_are_shown_side_by_side() {
    let view = View::start(&project(), &["stepscope-runs/run", "steps.capture", "stacks.folded"], &[]);
    let manifest = view.manifest();
    let labels: Vec<&str> =
        manifest["captures"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert!(labels.len() > 2, "{labels:?}");
    view.assert_all_tables();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_folder_that_is_removed_meanwhile_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("steps.capture");
    copy(&project().join("steps.capture"), &capture);
    let view = View::start(folder.path(), &["steps.capture"], &[]);
    fs::remove_dir_all(&capture).unwrap();
    view.assert_all_tables();
}

#[test]
fn failures_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let fails = |arguments: &[&str], words: &str| {
        let output = stepscope(folder.path(), &[&["view", "--no-open"], arguments].concat());
        let message = text(&output.stderr);
        assert!(output.status.code() == Some(1) && message.contains(words), "{message}");
        assert!(output.stdout.is_empty(), "no address of nothing");
    };
    fails(&["empty"], "empty");
    fails(&["nothing"], "nothing");
    let project = project();
    fails(&[project.join("killed.capture").to_str().unwrap()], "stepscope recover");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    fails(&["--port", &port, project.join("steps.capture").to_str().unwrap()], &format!("port {port} is in use"));
}

#[test]
fn the_browser_gets_an_address_that_others_cannot_use_again() {
    let folder = tempfile::tempdir().unwrap();
    let opener = folder.path().join("xdg-open");
    fs::write(&opener, "#!/bin/sh\necho \"$1\" > opened.part && mv opened.part opened\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let capture = project().join("steps.capture");
    let view = View::start(folder.path(), &[capture.to_str().unwrap()], &[("PATH", &path), ("DISPLAY", ":77")]);
    let (started, opened) = (Instant::now(), folder.path().join("opened"));
    while !opened.exists() {
        assert!(started.elapsed() < PATIENCE, "the browser is not opened");
        std::thread::yield_now();
    }
    let address = fs::read_to_string(opened).unwrap();
    assert!(address.starts_with(&format!("http://{}/?ticket=", view.host)), "{address}");
    assert!(!address.contains(view.query.strip_prefix("token=").unwrap()), "other users can read command lines");
    assert!(text(&view.end().stderr).contains("Opening the browser"));
}

#[test]
fn without_a_browser_the_address_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let capture = project().join("steps.capture");
    let variables = [("PATH", folder.path().to_str().unwrap()), ("DISPLAY", ":77")];
    let view = View::start(folder.path(), &[capture.to_str().unwrap()], &variables);
    assert_eq!(view.get("/").0, 200);
    let notes = text(&view.end().stderr);
    assert!(notes.contains("xdg-open is missing") && notes.contains("open the address yourself"), "{notes}");
}

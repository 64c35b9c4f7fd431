//! Names a capture's functions after the recording: from folders, from a server, and with the program gone.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use common::{command, json, stepscope, text};

const PROGRAM: &str = r"
volatile unsigned long sink;
static inline __attribute__((always_inline)) void inner(unsigned long n) { while (n--) sink += n * n; }
__attribute__((noinline)) static void step(unsigned long n) { inner(n); sink++; }
int main(void) { for (int k = 0; k < 100; k++) step(2000000); return 0; }
";

/// A capture `c` of a stripped program that is gone, and its symbols in `deb`.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    /// `None`, with the reason, where this machine cannot make one.
    fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::write(at.join("sim.c"), PROGRAM).unwrap();
        fs::create_dir(at.join("deb")).unwrap();
        let build = "gcc -O2 -g -Wl,--build-id -o whole sim.c && objcopy --only-keep-debug whole deb/sim.debug && strip -o sim whole && rm whole";
        if !Command::new("sh").args(["-c", build]).current_dir(at).status().is_ok_and(|status| status.success()) {
            println!("skipped: {test}: gcc or binutils are missing (Debian packages: gcc binutils)");
            return None;
        }
        if !stepscope(at, &["doctor"]).status.success() {
            println!("skipped: {test}: nothing can be recorded on this machine (see stepscope doctor)");
            return None;
        }
        let recorded = stepscope(at, &["record", "-o", "c", "./sim"]);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let advice = text(&recorded.stderr);
        assert!(advice.contains("stepscope symbolize c"), "{advice}");
        fs::remove_file(at.join("sim")).unwrap();
        Some(Self { folder })
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    fn symbolize(&self, arguments: &[&str]) -> Output {
        stepscope(self.at(), &[&["symbolize", "c", "--format", "json"], arguments].concat())
    }

    /// A copy of the debug file by build-id, as folders of them have it. Returns the build-id.
    fn build_id_folder(&self) -> (PathBuf, String) {
        let id = json(&self.symbolize(&[]))["rows"][0]["build_id"].as_str().unwrap().to_owned();
        let folder = self.at().join("ids");
        let target = folder.join(".build-id").join(&id[..2]);
        fs::create_dir_all(&target).unwrap();
        fs::copy(self.at().join("deb/sim.debug"), target.join(format!("{}.debug", &id[2..]))).unwrap();
        (folder, id)
    }

    /// Self share of each function, largest first.
    fn leaves(&self) -> Vec<String> {
        let shown = json(&stepscope(self.at(), &["show", "c", "--format", "json"]));
        let rows = shown["rows"].as_array().unwrap();
        rows.iter().map(|row| row["function"].as_str().unwrap().to_owned()).collect()
    }
}

fn row_of_program(table: &Value) -> &Value {
    table["rows"].as_array().unwrap().iter().find(|row| row["module"] == "sim").unwrap()
}

#[test]
fn a_program_that_is_gone_gets_its_names_and_inlined_frames_from_a_folder_with_its_symbols() {
    let Some(recorded) =
        Recorded::new("a_program_that_is_gone_gets_its_names_and_inlined_frames_from_a_folder_with_its_symbols")
    else {
        return;
    };
    assert!(recorded.leaves()[0].starts_with("sim+0x"), "{:?}", recorded.leaves());
    fs::write(recorded.at().join("c/mine.txt"), "kept").unwrap();
    let table = json(&recorded.symbolize(&["--debug-dir", "deb"]));
    let row = row_of_program(&table);
    assert!(row["unnamed_share_before"].as_f64().unwrap() > 80.0, "{row}");
    assert_eq!(row["unnamed_share"], 0.0, "{row}");
    assert_eq!(recorded.leaves()[0], "inner");
    assert!(recorded.leaves().contains(&"step".to_owned()));
    assert_eq!(fs::read_to_string(recorded.at().join("c/mine.txt")).unwrap(), "kept");
    // A second time, and without the symbols, nothing changes.
    let before = fs::read(recorded.at().join("c/capture.json")).unwrap();
    for arguments in [&["--debug-dir", "deb"][..], &[]] {
        let again = recorded.symbolize(arguments);
        assert!(text(&again.stdout).contains("Nothing new was found"), "{}", text(&again.stdout));
        assert_eq!(fs::read(recorded.at().join("c/capture.json")).unwrap(), before);
    }
    assert_eq!(recorded.leaves()[0], "inner");
    let parts = fs::read_dir(recorded.at())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(parts.count(), 0);
}

#[test]
fn captures_of_a_folder_are_all_named_and_survive_a_kill_at_any_time() {
    let Some(recorded) = Recorded::new("captures_of_a_folder_are_all_named_and_survive_a_kill_at_any_time") else {
        return;
    };
    let (ids, _) = recorded.build_id_folder();
    let copy = |to: &Path| {
        fs::create_dir_all(to).unwrap();
        for file in fs::read_dir(recorded.at().join("c")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    let runs = recorded.at().join("runs");
    for (index, milliseconds) in [0, 20, 40, 60, 90].into_iter().enumerate() {
        let capture = runs.join(format!("capture{index}"));
        copy(&capture);
        let arguments = ["symbolize", capture.to_str().unwrap(), "--debug-dir", ids.to_str().unwrap()];
        let mut naming = command(recorded.at(), &arguments).spawn().unwrap();
        thread::sleep(Duration::from_millis(milliseconds));
        naming.kill().unwrap();
        naming.wait().unwrap();
        let shown = stepscope(recorded.at(), &["show", capture.to_str().unwrap()]);
        assert!(shown.status.success(), "after {milliseconds} ms: {}", text(&shown.stderr));
    }
    for left in fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()) {
        if left.extension().is_some_and(|extension| extension == "part") {
            fs::remove_dir_all(left).unwrap();
        }
    }
    let arguments = ["symbolize", "runs", "--debug-dir", ids.to_str().unwrap(), "--format", "json"];
    let named = json(&stepscope(recorded.at(), &arguments));
    assert_eq!(named["tables"].as_array().unwrap().len(), 5);
    for capture in 0..5 {
        let shown = stepscope(recorded.at(), &["show", &format!("runs/capture{capture}")]);
        assert!(text(&shown.stdout).contains("inner"), "{}", text(&shown.stdout));
    }
}

/// A debuginfod server with one file. It answers as long as the test runs.
fn serve(path: String, file: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let (status, body) =
                if request.contains(&path) { ("200 OK", &file[..]) } else { ("404 Not Found", &b""[..]) };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    format!("http://{address}")
}

#[test]
fn names_come_from_a_debuginfod_server_if_one_is_named() {
    const TEST: &str = "names_come_from_a_debuginfod_server_if_one_is_named";
    let Some(recorded) = Recorded::new(TEST) else { return };
    let (_, id) = recorded.build_id_folder();
    let urls = serve(format!("/buildid/{id}/debuginfo"), fs::read(recorded.at().join("deb/sim.debug")).unwrap());
    let with = |urls: &str, path: Option<&str>| {
        let mut command = command(recorded.at(), &["symbolize", "c", "--format", "json"]);
        command.env("DEBUGINFOD_URLS", urls).env("DEBUGINFOD_CACHE_PATH", recorded.at().join("cache"));
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let without_client = with(&urls, Some("/nowhere"));
    assert!(without_client.contains("Debian package: debuginfod"), "{without_client}");
    if !Command::new("debuginfod-find").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: {TEST}: debuginfod-find is missing (Debian package: debuginfod)");
    }
    let without_server = with("http://127.0.0.1:1", None);
    assert!(without_server.contains("no debuginfod server answered"), "{without_server}");
    assert!(recorded.leaves()[0].starts_with("sim+0x"));
    let named: Value = serde_json::from_str(&with(&urls, None)).unwrap();
    assert_eq!(row_of_program(&named)["unnamed_share"], 0.0, "{named}");
    assert_eq!(recorded.leaves()[0], "inner");
}

//! Running the program, and reading what it prints.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program under test, to be run in `folder`.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepscope"));
    command.env_remove("COLUMNS");
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it without input.
pub fn stepscope(folder: &Path, arguments: &[&str]) -> Output {
    with_input(folder, arguments, "")
}

/// Runs it with this on standard input.
pub fn with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command(folder, arguments).spawn().unwrap();
    // A program that does not read its input closes the pipe; that is not what these tests are about.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it printed as JSON, once it has succeeded.
pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The row of a function in a table of functions.
pub fn row<'a>(table: &'a Value, function: &str) -> &'a Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter().find(|row| row["function"] == function).unwrap_or_else(|| panic!("no row of {function}"))
}

/// The bundled simulator, built beside the program; says that `test` is skipped where it is not, or where this machine
/// records nothing.
pub fn simulator(test: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_stepscope")).with_file_name("ground");
    if !path.is_file() {
        println!("skipped: {test}: the bundled simulator is not built (cargo build --workspace)");
        return None;
    }
    if !stepscope(Path::new("/"), &["doctor"]).status.success() {
        println!("skipped: {test}: nothing can be recorded on this machine (see stepscope doctor)");
        return None;
    }
    Some(path)
}

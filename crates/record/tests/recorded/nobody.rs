//! Tests that run as a user without rights.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, for the test that runs as another user.
const PROGRAM: &str = "STEPSCOPE_TEST_PROGRAM";

/// Runs the ignored test `inner` of this test binary as `nobody`, with these options of `setpriv` besides. It finds a copy of `program` by
/// [`program`]. Says why `test` is skipped, if it is.
pub fn run(test: &str, inner: &str, program: &str, options: &[&str]) {
    let skip = |why: &str| println!("skipped: {test}: {why}");
    let Some(programs) = super::programs() else { return skip("a compiler is missing") };
    let as_nobody = [&["--reuid=65534", "--regid=65534", "--clear-groups"], options].concat();
    let can_run = Command::new("setpriv").args(&as_nobody).arg("true").output();
    if !can_run.is_ok_and(|output| output.status.success()) {
        return skip("rights cannot be given up here (setpriv)");
    }
    // Everything that `nobody` needs must be open to it.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| -> PathBuf {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let binary = copy(&std::env::current_exe().unwrap(), "tests");
    let program = copy(&programs.join(program), program);
    let mut command = Command::new("setpriv");
    command.args(as_nobody).arg(binary).args(["--exact", inner, "--nocapture", "--include-ignored"]);
    let output = command.env(PROGRAM, program).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

/// The program of the test that runs as another user; `None` if it was started otherwise.
pub fn program() -> Option<OsString> {
    std::env::var_os(PROGRAM)
}

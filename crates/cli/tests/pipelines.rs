//! The files for CI services, run as the services would: `ci/exercise.py`. What a machine lacks is skipped by name.

use std::path::Path;
use std::process::Command;

#[test]
fn action_gitlab_template_and_cmake_module_judge_a_program_with_known_counts() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/exercise.py");
    // That of the system has Debian's modules.
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(|python| Command::new(python).arg("--version").output().is_ok_and(|output| output.status.success()));
    let compiles = Command::new("cc").arg("--version").output().is_ok();
    let (Some(python), true) = (python, compiles) else {
        println!("skipped: files for CI services: python3 or a C compiler is missing");
        return;
    };
    let output = Command::new(python).arg(script).arg(env!("CARGO_BIN_EXE_stepscope")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

//! Exports the step marker from the program, so that a probe finds it in a stripped build too; and builds what connects it
//! with Cyclone DDS, where that is installed with its development files and its IDL compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCES: &str = "src/topology/cyclonedds";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SOURCES}");
    println!("cargo:rerun-if-changed=/usr/include/dds/dds.h");
    println!("cargo:rerun-if-env-changed=CC");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=ground_step");
    println!("cargo:rustc-check-cfg=cfg(cyclonedds)");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    if is_native() && build_shim(&folder) {
        println!("cargo:rustc-cfg=cyclonedds");
    }
}

/// What is installed here is of use to programs that run here.
fn is_native() -> bool {
    let [host, target] = ["HOST", "TARGET"].map(|name| std::env::var(name).expect("cargo sets it"));
    host == target
}

/// A library of its own, which the program carries along and loads when it is asked for Cyclone DDS: linked to the program,
/// the middleware's libraries would be loaded in all its runs.
fn build_shim(folder: &Path) -> bool {
    let sources = Path::new(SOURCES);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    succeeds(Command::new("idlc").arg("-o").arg(folder).arg(sources.join("sample.idl")))
        && succeeds(
            Command::new(compiler)
                .args(["-shared", "-fPIC", "-O2", "-g", "-Wall", "-I"])
                .arg(folder)
                .args([sources.join("shim.c"), folder.join("sample.c")])
                .args(["-lddsc", "-o"])
                .arg(folder.join("cyclonedds_shim.so")),
        )
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

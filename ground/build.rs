//! Exports the step marker and the functions of tracetools from the program, so that probes find them in a stripped build too; and builds what connects it
//! with Cyclone DDS, where that is installed with its development files and its IDL compiler. Elsewhere that is an empty file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCES: &str = "src/topology/cyclonedds";
const CYCLONE_DDS: &str = "/usr/include/dds/dds.h";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SOURCES}");
    // A file that is not there would count as changed at each build.
    if Path::new(CYCLONE_DDS).exists() {
        println!("cargo:rerun-if-changed={CYCLONE_DDS}");
    }
    println!("cargo:rerun-if-env-changed=CC");
    for exported in ["ground_step", "ros_trace_*"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={exported}");
    }
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let shim = folder.join("cyclonedds_shim.so");
    if !(is_native() && build_shim(&folder, &shim)) {
        std::fs::write(&shim, "").expect("the folder is there to be written to");
    }
}

/// What is installed here is of use to programs that run here.
fn is_native() -> bool {
    let [host, target] = ["HOST", "TARGET"].map(|name| std::env::var(name).expect("cargo sets it"));
    host == target
}

/// A library of its own, which the program carries along and loads when it is asked for Cyclone DDS: linked to the program,
/// the middleware's libraries would be loaded in all its runs.
fn build_shim(folder: &Path, shim: &Path) -> bool {
    let sources = Path::new(SOURCES);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    succeeds(Command::new("idlc").arg("-o").arg(folder).arg(sources.join("sample.idl")))
        && succeeds(
            Command::new(compiler)
                .args(["-shared", "-fPIC", "-O2", "-g", "-Wall", "-I"])
                .arg(folder)
                .args([sources.join("shim.c"), folder.join("sample.c")])
                .args(["-lddsc", "-o"])
                .arg(shim),
        )
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

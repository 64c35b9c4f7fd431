//! Compiles a library that is preloaded into programs. Build scripts share this.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Compiles `preload/lib.rs` of the crate, sets `cfg(has_library)`, and puts the library's path into the variable
/// `STEPSCOPE_LIBRARY`. Does nothing for other machines than Linux on x86-64.
pub fn library(name: &str) {
    println!("cargo::rustc-check-cfg=cfg(has_library)");
    let value = |name: &str| env::var(name).unwrap_or_default();
    if value("CARGO_CFG_TARGET_OS") != "linux" || value("CARGO_CFG_TARGET_ARCH") != "x86_64" {
        return;
    }
    let library = PathBuf::from(value("OUT_DIR")).join(format!("libstepscope_{name}.so"));
    let mut rustc = Command::new(value("RUSTC"));
    rustc
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["--crate-name", &format!("stepscope_{name}_preload")])
        .args([
            "-C",
            "opt-level=3",
            "-C",
            "panic=abort",
            "-C",
            "codegen-units=1",
            "-C",
            "force-unwind-tables=yes",
            "-C",
            "strip=debuginfo",
        ])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles", "-C", "link-arg=-Wl,-z,now"])
        // A static program carries it, too, and dynamic ones load it.
        .args(["-C", "target-feature=-crt-static"])
        .args(["--target", &value("TARGET")])
        // Packages have no paths of the machine that built them: not those of the standard library's sources, either.
        .args(value("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| flag.starts_with("--remap-path-prefix=")))
        .arg(format!("--remap-path-prefix={}={name}", value("CARGO_MANIFEST_DIR")));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.arg("preload/lib.rs").arg("-o").arg(&library).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the preloaded library (crates/{name}/preload) cannot be compiled"
    );
    println!("cargo::rustc-cfg=has_library");
    println!("cargo::rustc-env=STEPSCOPE_LIBRARY={}", library.display());
}

//! Compiles the preloaded library (`preload/`) and embeds it: the program carries it, and writes it to a file to record a heap.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed=src/layout.rs");
    println!("cargo::rustc-check-cfg=cfg(has_library)");
    let value = |name: &str| env::var(name).unwrap_or_default();
    if value("CARGO_CFG_TARGET_OS") != "linux" || value("CARGO_CFG_TARGET_ARCH") != "x86_64" {
        return;
    }
    let library = PathBuf::from(value("OUT_DIR")).join("libstepscope_heap.so");
    let mut rustc = Command::new(value("RUSTC"));
    rustc
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "stepscope_heap_preload"])
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "strip=debuginfo"])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles", "-C", "link-arg=-Wl,-z,now"])
        // A static program carries it, too, and dynamic ones load it.
        .args(["-C", "target-feature=-crt-static"])
        .args(["--target", &value("TARGET")])
        .arg(format!("--remap-path-prefix={}=heap", value("CARGO_MANIFEST_DIR")));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.arg("preload/lib.rs").arg("-o").arg(&library).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the preloaded library (crates/heap/preload) cannot be compiled"
    );
    println!("cargo::rustc-cfg=has_library");
    println!("cargo::rustc-env=STEPSCOPE_HEAP_LIBRARY={}", library.display());
}

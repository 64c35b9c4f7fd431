//! Compiles the preloaded library (`preload/`) and embeds it, as `stepscope-heap` does with its own.

#[path = "../heap/compile.rs"]
mod compile;

fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed=../heap/compile.rs");
    println!("cargo::rerun-if-changed=../heap/preload");
    compile::library("python");
}

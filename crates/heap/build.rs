//! Compiles the preloaded library (`preload/`) and embeds it: the program carries it, and writes it to a file to record a heap.

mod compile;

fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed=compile.rs");
    println!("cargo::rerun-if-changed=src/layout.rs");
    compile::library("heap");
}

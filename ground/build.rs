//! Exports the step marker from the program, so that a probe finds it in a stripped build, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=ground_step");
}

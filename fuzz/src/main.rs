//! The program for libFuzzer. The environment variable `STEPSCOPE_FUZZ` names the target.
#![no_main]

use std::sync::LazyLock;

use stepscope_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("STEPSCOPE_FUZZ").unwrap_or_default();
    let mut targets = Target::all();
    let found = targets.iter().position(|target| target.name == name);
    let at = found.unwrap_or_else(|| panic!("STEPSCOPE_FUZZ={name} names no target; there are {targets:?}"));
    targets.swap_remove(at)
});

libfuzzer_sys::fuzz_target!(
    // The reader of captures catches panics of the Parquet library, and libFuzzer's own hook would end the program there.
    // A panic that no reader catches still ends it.
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |bytes: &[u8]| TARGET.read(bytes)
);

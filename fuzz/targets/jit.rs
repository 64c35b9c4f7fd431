//! Names of generated code: a map for `perf`, and a jitdump, as recorded programs write them.
#![no_main]

use std::sync::LazyLock;

use stepscope_symbolize::{Code, Options, Symbolizer};

/// No process has this id, so no file of this machine is read.
const PID: u32 = u32::MAX;

/// Stands for the recorded process's root directory.
static ROOT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a folder for the files");
    std::fs::create_dir(root.path().join("tmp")).expect("the folder is empty");
    root
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (map, dump) = (format!("tmp/perf-{PID}.map"), "tmp/jit.dump");
    for file in [map.as_str(), dump] {
        std::fs::write(ROOT.path().join(file), data).expect("the folder can be written");
    }
    let roots = vec![ROOT.path().to_owned()];
    let mut symbolizer = Symbolizer::new(Options { roots, ..stepscope_fuzz::no_files() });
    symbolizer.add_jit_dump(PID, format!("/{dump}"));
    let addresses = [0, 0x1000, 0x1008, 0x2000, u64::MAX];
    let named = symbolizer.name(&Code::Jit { pid: PID }, &addresses);
    assert_eq!(named.places.len(), addresses.len());
    assert!(named.places.iter().all(|place| !place.frames.is_empty()), "a place without frames");
});

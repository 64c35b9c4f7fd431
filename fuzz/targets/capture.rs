//! Capture folders from strangers: `capture.json`, or one of the tables.
#![no_main]

use std::cell::OnceCell;

use stepscope_fuzz::Folder;

thread_local! {
    static FOLDER: OnceCell<Folder> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(
    // The reader of captures catches panics of the Parquet library; those that come out of it still end the target.
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |data: &[u8]| FOLDER.with(|folder| folder.get_or_init(Folder::new).read_with(data))
);

//! `long_log FOLDER SECONDS [SWITCHES_PER_SECOND [STEPS_PER_SECOND]]`: writes the raw log of a long recording, for `stepscope recover FOLDER`.

#[path = "../tests/long_log/mod.rs"]
mod long_log;

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use long_log::Recording;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = arguments.as_slice() else { return Err("name a folder and seconds".into()) };
    let number = |index: usize| numbers.get(index).map(|text| text.parse::<u64>()).transpose();
    let recording = Recording {
        seconds: number(0)?.ok_or("say how many seconds")?,
        switches_hz: number(1)?.unwrap_or(10_000),
        steps_hz: number(2)?.unwrap_or(1_000),
    };
    fs::create_dir_all(folder)?;
    recording.write(File::create(Path::new(folder).join("raw.log"))?)?;
    Ok(())
}

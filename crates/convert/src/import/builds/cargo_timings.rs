//! The page of `cargo build --timings`: JSON of each unit in `UNIT_DATA`, in seconds from the start.

use serde_json::Value;
use stepscope_model::{Capture, Counter, Process};

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, json};

/// The page of `cargo build --timings`.
pub struct CargoTimings;

const UNITS: &[u8] = b"const UNIT_DATA = ";

impl InputFormat for CargoTimings {
    fn name(&self) -> &'static str {
        "cargo-timings"
    }

    fn describe(&self) -> &'static str {
        "The page of `cargo build --timings`: start and end of each crate, and where its front end ends."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let has = |text: &[u8]| memchr::memmem::find(head.bytes, text).is_some();
        head.bytes.trim_ascii_start().starts_with(b"<") && has(b"<title>Cargo Build Timings")
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let bytes = json::read_all(input)?;
        let mut malformed = Malformed::default();
        let data = memchr::memmem::find(&bytes, UNITS).map(|at| &bytes[at + UNITS.len()..]);
        let units = data.and_then(|data| json::value(data, &mut malformed)).unwrap_or_default();
        let mut capture = Capture::default();
        for unit in units.as_array().map_or(&[][..], Vec::as_slice) {
            if add(unit, &mut capture).is_none() {
                malformed.add(1, "a unit lacks its name or times");
            }
        }
        capture.info.start_ns = Some(0);
        capture.info.end_ns = capture.processes.iter().filter_map(|process| process.end_ns).max();
        let was_read = !capture.processes.is_empty();
        malformed.settle(&mut capture, &file, self.name(), was_read)?;
        Ok(capture)
    }
}

fn add(unit: &Value, capture: &mut Capture) -> Option<()> {
    let ns = |value: &Value| Some((value.as_f64().filter(|value| (0.0..1e9).contains(value))? * 1e9) as u64);
    let (start, length) = (ns(&unit["start"])?, ns(&unit["duration"])?);
    let words = ["name", "version", "target"].map(|name| unit[name].as_str().unwrap_or_default().trim());
    let [name, version, target] = words;
    if name.is_empty() {
        return None;
    }
    let mode = if unit["mode"].as_str() == Some("run-custom-build") { "build script (run)" } else { target };
    let command_line = [name, version, mode].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let end_ns = start + length;
    let pid = capture.processes.len() as u32 + 1;
    let process = capture.add_process(Process {
        pid,
        start_ns: Some(start),
        end_ns: Some(end_ns),
        command_line,
        executable: stepscope_model::compiler_work::CRATE.to_owned(),
        ..Process::default()
    });
    // Newer versions list sections; older ones have the time at which the metadata were ready.
    let sections = unit["sections"].as_array().map_or(&[][..], Vec::as_slice);
    let front = sections.iter().find(|section| section[0] == "frontend").and_then(|section| ns(&section[1]["end"]));
    if let Some(front) = front.or_else(|| ns(&unit["rmeta_time"])).filter(|front| *front <= length) {
        for (name, value) in [("front_end_wall_ns", front), ("back_end_wall_ns", length - front)] {
            let name = capture.intern_text(name);
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            capture.counters.push(Counter { time_ns: end_ns, process: Some(process), thread: None, name, value });
        }
    }
    Some(())
}

//! What valgrind's tools share: the events of their cache simulation, and their lines of costs.

use stepscope_model::{Capture, Dimension, DimensionStatus, Event, EventId};

use super::text::text;
use super::{ImportError, Input, Malformed, each_line};

/// Units by event of cachegrind and callgrind.
const UNITS: &[(&str, &str)] = &[
    ("Ir", "instructions"),
    ("Dr", "references"),
    ("Dw", "references"),
    ("I1mr", "misses"),
    ("D1mr", "misses"),
    ("D1mw", "misses"),
    ("ILmr", "misses"),
    ("DLmr", "misses"),
    ("DLmw", "misses"),
    // Before valgrind 3.7, the last level was called L2.
    ("I2mr", "misses"),
    ("D2mr", "misses"),
    ("D2mw", "misses"),
    ("Bc", "branches"),
    ("Bi", "branches"),
    ("Bcm", "mispredictions"),
    ("Bim", "mispredictions"),
];

/// Most events of a file. Valgrind's tools have at most 30.
pub const MOST_EVENTS: usize = 64;

/// The names of an `events:` line.
pub fn event_names(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().take(MOST_EVENTS).map(str::to_owned).collect()
}

/// Adds the events of these names. Each row of them is a sum, and exact.
pub fn add_events(capture: &mut Capture, names: &[String]) -> Vec<EventId> {
    let unit = |name: &str| UNITS.iter().find(|(known, _)| *known == name).map_or("weight", |(_, unit)| unit);
    names.iter().map(|name| capture.add_event(Event::weighed(name, unit(name)))).collect()
}

/// States which dimensions the events are evidence of, and that they are simulated.
pub fn describe(capture: &mut Capture, names: &[String], tool: &str, caches: &[String]) {
    let info = &mut capture.info;
    if names.iter().any(|name| name == "Ir") {
        info.notes.push(format!(
            "Simulation: {tool} counted instructions and simulated caches. These are exact counts of a model, not measurements."
        ));
    }
    let misses = ["DLmr", "DLmw", "ILmr", "D2mr", "D2mw", "I2mr"];
    if names.iter().any(|name| misses.contains(&name.as_str())) {
        info.dimensions.insert(Dimension::Cache, DimensionStatus::Recorded);
    }
    if !caches.is_empty() {
        info.notes.push(format!("Simulated caches: {}.", caches.join("; ")));
    }
}

/// Gives each line without its margins to `take`, which says why a line has no meaning. Comments are left out.
pub fn each_content(
    input: Input<'_>,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<Malformed, ImportError> {
    each_line(input, |line, malformed| {
        let bytes = text(line.bytes);
        let content = bytes.trim();
        if content.is_empty() || content.starts_with('#') {
            return;
        }
        if let Err(what) = take(content) {
            malformed.add(line.number, what);
        }
    })
}

/// The value of `key: value`.
pub fn header<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    Some(line.strip_prefix(key)?.strip_prefix(':')?.trim())
}

/// A number in decimal digits, or in hexadecimal ones after `0x`.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => super::text::number(text.as_bytes()),
    }
}

/// The costs of a line: one number per event; missing ones, and `.`, are zero.
///
/// # Errors
/// If one is not a number, or there are more numbers than events.
pub fn costs<'l>(numbers: impl Iterator<Item = &'l str>, events: usize) -> Result<Vec<u64>, String> {
    let read = |text: &str| match text {
        "." => Ok(0),
        text => number(text).ok_or_else(|| format!("`{}` is not a count", shown(text))),
    };
    let costs = numbers.map(read).collect::<Result<Vec<u64>, String>>()?;
    if costs.len() > events {
        return Err(format!("{} counts for {events} events", costs.len()));
    }
    Ok(costs)
}

/// A text of a file, as shown in a note.
pub fn shown(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(40).collect()
}

/// Adds `more` to `sums`, which grows to its length. Sums end at the largest number.
pub fn add(sums: &mut Vec<u64>, more: &[u64]) {
    if sums.len() < more.len() {
        sums.resize(more.len(), 0);
    }
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

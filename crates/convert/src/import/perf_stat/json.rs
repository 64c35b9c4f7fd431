//! Rows of `perf stat -j`.
//!
//! The output is not always JSON: numbers have decimal commas in some locales, some versions leave a comma at the end of an object or
//! write several objects in a line, and perf 5.19 wrote the percentage again after the running time. So it is read as pairs of a key
//! and a value.

use super::{Count, Row, scaled};

/// The rows of a line. Objects with only metrics have none.
pub(super) fn rows(line: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find('{') {
        let end = rest.find('}').filter(|end| *end > start).ok_or("the object does not end")?;
        rows.extend(row(&rest[start + 1..end])?);
        rest = &rest[end + 1..];
    }
    match rest.trim_matches([',', '[', ']', ' ']) {
        "" => Ok(rows),
        _ => Err("it is no JSON object".to_owned()),
    }
}

fn row(object: &str) -> Result<Option<Row>, String> {
    let pairs = pairs(object)?;
    let value = |key: &str| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let Some(count) = value("counter-value") else {
        return if value("metric-value").is_some() { Ok(None) } else { Err("it has no counter-value".to_owned()) };
    };
    let percent = value("pcnt-running");
    let running = value("event-runtime").map(|running| match percent {
        Some(percent) if running.contains(['.', ',']) => running.strip_suffix(percent).unwrap_or(running),
        _ => running,
    });
    let places = ["cpu", "core", "die", "cluster", "cache", "socket", "node"];
    let place = places.iter().find_map(|key| Some((*key, value(key)?)));
    Ok(Some(Row {
        time_ns: value("interval").and_then(|time| scaled(time, 9)),
        is_summary: pairs.iter().any(|(name, _)| *name == "summary"),
        place: place.map(|(key, place)| match key {
            "cpu" => format!("CPU{place}"),
            _ => place.to_owned(),
        }),
        thread: value("thread").map(str::to_owned),
        count: Count::read(count).ok_or("its counter-value is not a number")?,
        unit: value("unit").unwrap_or_default().to_owned(),
        event: value("event").filter(|event| !event.is_empty()).ok_or("it has no event")?.to_owned(),
        running_ns: running.and_then(|running| scaled(running, 0)),
        running_ppm: percent.and_then(|percent| scaled(percent, 4)),
    }))
}

/// The keys and values of an object.
fn pairs(object: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut pairs = Vec::new();
    let mut rest = object.trim_start();
    while let Some(after) = rest.strip_prefix('"') {
        let (key, after) = after.split_once('"').ok_or("a key does not end")?;
        let after = after.trim_start().strip_prefix(':').ok_or("a key has no value")?.trim_start();
        let (value, after) = match after.strip_prefix('"') {
            Some(text) => text.split_once('"').ok_or("a text does not end")?,
            None => number(after),
        };
        pairs.push((key, value));
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    if rest.is_empty() { Ok(pairs) } else { Err("a key is not in quotes".to_owned()) }
}

/// A number, which ends at the comma before the next key.
fn number(text: &str) -> (&str, &str) {
    let is_end = |(at, _): &(usize, &str)| {
        let next = text[at + 1..].trim_start();
        next.is_empty() || next.starts_with('"')
    };
    let end = text.match_indices(',').find(is_end).map_or(text.len(), |(at, _)| at);
    (text[..end].trim(), &text[end..])
}

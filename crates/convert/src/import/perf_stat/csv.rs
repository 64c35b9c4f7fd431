//! Rows of `perf stat -x SEPARATOR`.
//!
//! ```text
//! [time] [place,count of CPUs | thread] value unit event [variance%] running percent [metric unit]
//! ```
//!
//! What stands before the value depends on perf's options, which the output does not name. So the event is found first, as the first
//! name after a value and a unit.

use super::{Count, Row, scaled};

/// What separates the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(char);

impl Separator {
    pub const COMMA: Self = Self(',');
    /// In this order: a comma may also be part of numbers, and a space of values.
    pub const ALL: [Self; 7] = [Self(';'), Self('\t'), Self('|'), Self('#'), Self('@'), Self(':'), Self::COMMA];
}

/// Reads a row; `None` if it has only metrics.
pub(super) fn row(line: &str, separator: Separator) -> Result<Option<Row>, String> {
    let fields = fields(line, separator);
    let Some(at) = (2..fields.len()).find(|&at| is_event(&fields, at)) else {
        let is_metric = fields.len() > 5 && fields.iter().filter(|field| field.is_empty()).count() >= 4;
        return if is_metric { Ok(None) } else { Err("it has no value, unit and event".to_owned()) };
    };
    let mut rest = &fields[at + 1..];
    // `-r` adds the variance; with a decimal comma, it has two fields.
    if let Some(percent) = rest.iter().take(2).position(|field| field.ends_with('%')) {
        rest = &rest[percent + 1..];
    }
    let running_ns = rest.first().and_then(|field| scaled(field, 0));
    let is_two_digits = |field: &String| field.len() == 2 && field.bytes().all(|byte| byte.is_ascii_digit());
    let (running_ppm, decimal_comma) = match (rest.get(1), rest.get(2)) {
        (Some(percent), _) if percent.contains(['.', ',']) => (scaled(percent, 4), false),
        (Some(percent), Some(decimals)) if separator == Separator::COMMA && is_two_digits(decimals) => {
            (scaled(&format!("{percent}.{decimals}"), 4), true)
        }
        (percent, _) => (percent.and_then(|percent| scaled(percent, 4)), false),
    };
    if running_ns.is_none() || running_ppm.is_none() {
        return Err("it ends before its running time and percentage".to_owned());
    }
    let mut before = &fields[..at - 2];
    let mut value = fields[at - 2].clone();
    // Values with a unit have decimals.
    if decimal_comma && !fields[at - 1].is_empty() && !value.starts_with('<') {
        let (whole, earlier) = before.split_last().ok_or("its value has no decimals")?;
        (value, before) = (format!("{whole}.{value}"), earlier);
    }
    let mut row = Row {
        count: Count::read(&value).ok_or("its value is not a number")?,
        unit: fields[at - 1].clone(),
        event: fields[at].clone(),
        running_ns,
        running_ppm,
        ..Row::default()
    };
    if let Some((first, later)) = before.split_first().filter(|(first, _)| *first == "summary") {
        debug_assert_eq!(first, "summary");
        (row.is_summary, before) = (true, later);
    } else if let [seconds, decimals, later @ ..] = before
        && decimal_comma
        && decimals.len() == 9
    {
        (row.time_ns, before) = (scaled(&format!("{seconds}.{decimals}"), 9), later);
    } else if let [seconds, later @ ..] = before
        && seconds.contains(['.', ','])
        && let Some(time) = scaled(seconds, 9)
    {
        (row.time_ns, before) = (Some(time), later);
    }
    if let Some(label) = before.first() {
        let label = Some(label.clone());
        if is_thread(before) { row.thread = label } else { row.place = label }
    }
    Ok(Some(row))
}

/// Splits a line. Events such as `cpu/event=0x3c,umask=0x0/` may hold the separator.
fn fields(line: &str, separator: Separator) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    let mut open = false;
    for part in line.split(separator.0) {
        match fields.last_mut() {
            Some(last) if open => {
                last.push(separator.0);
                last.push_str(part.trim_end());
            }
            _ => fields.push(part.trim().to_owned()),
        }
        let last = fields.last().map_or("", String::as_str);
        // `K/sec` and the like are metrics, whose slash has no partner.
        open = last.matches('/').count() == 1 && last.contains('=') && !last.contains(' ');
    }
    fields
}

/// Whether the field is an event: a name after a value and a unit.
fn is_event(fields: &[String], at: usize) -> bool {
    let is_name = |text: &str| text.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name(&fields[at])
        && (fields[at - 1].is_empty() || is_name(&fields[at - 1]))
        && Count::read(&fields[at - 2]).is_some()
}

/// Whether this is `name-TID`, without a number of CPUs after it. Cores are `S0-D0-C1`.
fn is_thread(before: &[String]) -> bool {
    let [label] = before else { return false };
    let ends_in_id = label.rsplit_once('-').is_some_and(|(_, tid)| tid.parse::<u32>().is_ok());
    ends_in_id && !label.starts_with("CPU")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_hold_the_separator() {
        let read = row("123,,cpu/event=0x3c,umask=0x0/,500,25.00,,", Separator::COMMA).unwrap().unwrap();
        assert_eq!((read.event.as_str(), read.running_ppm), ("cpu/event=0x3c,umask=0x0/", Some(250_000)));
        assert_eq!(row("", Separator::COMMA).unwrap_err(), "it has no value, unit and event");
        assert_eq!(row(",,,,,,29.4,%  tma_backend_bound", Separator::COMMA), Ok(None));
    }
}

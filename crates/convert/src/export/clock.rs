//! Wall-clock times of a capture.

use stepscope_model::Capture;

/// Start of the capture in ns since 1970 UTC, if known.
pub fn started_at_ns(capture: &Capture) -> Option<i64> {
    epoch_ns(capture.info.started_at.as_deref()?)
}

/// Parses an RFC 3339 time in UTC, `2026-11-21T11:39:32.25Z`, to ns since 1970.
fn epoch_ns(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers::<3>(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers::<3>(time, ':')?;
    let is_time = hour < 24 && minute < 60 && second <= 60 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_time || !(1970..2200).contains(&year) || fraction.is_empty() {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000_000_000 + nanos)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let parts: Vec<i64> = text.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Days since 1970 in the proleptic Gregorian calendar. Years start in March, so that the leap day is last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days_of_years = 365 * year + year / 4 - year / 100 + year / 400;
    let days_of_months = (153 * month + 2) / 5;
    const DAYS_TO_1970: i64 = 719_468;
    days_of_years + days_of_months + day - 1 - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_times_are_counted_from_1970() {
        assert_eq!(epoch_ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(epoch_ns("2000-02-29T12:00:00Z"), Some(951_825_600_000_000_000));
        assert_eq!(epoch_ns("2026-11-21T11:39:32.25Z"), Some(1_795_261_172_250_000_000));
        assert_eq!(epoch_ns("2100-03-01T00:00:00.000000001Z"), Some(4_107_542_400_000_000_001));
    }

    #[test]
    fn other_texts_are_no_utc_times() {
        for text in [
            "",
            "yesterday",
            "2026-11-21T11:39:32+01:00",
            "2026-13-21T11:39:32Z",
            "2026-11-21 11:39:32Z",
            "é-1-1T1:1:1Z",
        ] {
            assert_eq!(epoch_ns(text), None, "{text}");
        }
    }
}

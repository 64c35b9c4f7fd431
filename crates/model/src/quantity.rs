//! The one formatter of quantities: durations, sizes, shares and counts, each in a readable unit.
//!
//! It shows three significant digits; the machine-readable formats have the exact value. Zero shows as zero, a value that
//! rounds to zero does not, and an unknown value shows as [`MISSING`]. `web/src/units.ts` follows the same rules; both are
//! checked by the cases in `web/test/quantities.json`.

use std::borrow::Cow;

use crate::column::{Column, Kind};
use crate::value::Value;

/// Shown where a value is unknown or does not apply.
pub const MISSING: &str = "–";

/// A value as shown: a number and its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    /// The number, or the text.
    pub number: String,
    /// The unit, empty where there is none or the column header says it.
    pub unit: &'static str,
}

impl Quantity {
    fn bare(number: impl Into<String>) -> Self {
        Self { number: number.into(), unit: "" }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.number)?;
        if !self.unit.is_empty() {
            write!(f, " {}", self.unit)?;
        }
        Ok(())
    }
}

/// A value as a number, if it is one and finite.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(integer) => Some(*integer as f64),
        Value::Float(number) if number.is_finite() => Some(*number),
        _ => None,
    }
}

/// How a value of a column of this kind is shown. Text is returned whole and unescaped.
pub fn quantity(value: &Value, kind: Kind) -> Quantity {
    let number = match value {
        Value::Missing => return Quantity::bare(MISSING),
        Value::Bool(true) => return Quantity::bare("yes"),
        Value::Bool(false) => return Quantity::bare("no"),
        Value::Text(text) => return Quantity::bare(text.as_str()),
        Value::Int(integer) => *integer as f64,
        Value::Float(number) => *number,
    };
    match kind {
        Kind::Duration => in_unit(number, DURATIONS),
        Kind::Bytes => in_unit(number, SIZES),
        Kind::Percent => Quantity::bare(bare_percent(number)),
        Kind::Count | Kind::Number | Kind::InRowUnit | Kind::Text | Kind::Prose | Kind::Flag => match value {
            Value::Int(integer) if kind != Kind::Number || integer.unsigned_abs() < 10_000_000 => {
                Quantity::bare(grouped(*integer))
            }
            Value::Int(_) => in_unit(number, MULTIPLES),
            _ => real(number),
        },
    }
}

/// The unit in a column's header. Cells of durations and sizes carry their own unit, so their header has only the
/// divisor: `/step` of `ns/step`.
pub fn header_unit(column: &Column) -> &str {
    match column.kind {
        Kind::Duration | Kind::Bytes => column.unit.find('/').map_or("", |slash| &column.unit[slash..]),
        Kind::Percent => "%",
        _ => &column.unit,
    }
}

/// The [`header_unit`], empty where the column's name already says it (`threads_first`, in threads).
pub fn unit_beside_name(column: &Column) -> &str {
    if column.name.split('_').any(|word| word == column.unit) { "" } else { header_unit(column) }
}

/// The kind of a number in this unit: `ns` and `ns/step` are durations, `bytes` sizes, `percent` shares.
pub fn kind_of_unit(unit: &str) -> Kind {
    match unit.split('/').next() {
        Some("ns") => Kind::Duration,
        Some("bytes") => Kind::Bytes,
        Some("percent") => Kind::Percent,
        _ => Kind::Number,
    }
}

/// The part of a unit that a number formatted by its [kind](kind_of_unit) does not show: `/step` of `ns/step`, nothing of
/// `bytes`, all of `faults/step`.
pub fn unit_beside_number(unit: &str) -> Cow<'_, str> {
    let of_what = unit.find('/').map_or("", |slash| &unit[slash..]);
    match kind_of_unit(unit) {
        Kind::Duration | Kind::Bytes => Cow::Borrowed(of_what),
        Kind::Percent => Cow::Owned(format!("%{of_what}")),
        _ => Cow::Borrowed(unit),
    }
}

/// An estimate and its confidence interval: the estimate as a quantity, the bounds as `[low, high]`.
///
/// All three use the estimate's unit. The larger bound has three digits, or as many as the bounds need to differ. If a
/// bound would show only zeros or too many digits in that unit, both bounds carry their own units.
pub fn estimate(point: &Value, low: &Value, high: &Value, kind: Kind) -> (Quantity, String) {
    let shown = quantity(point, kind);
    let by_themselves = |end: &Value| quantity(end, kind).to_string();
    let apart = || format!("[{}, {}]", by_themselves(low), by_themselves(high));
    let (Some(point), Some(ends)) = (number(point), number(low).zip(number(high))) else { return (shown, apart()) };
    let size = size_of(shown.unit, kind);
    let ends = [ends.0 / size, ends.1 / size];
    let plain = shown.number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b','));
    if !plain || point.abs() / size >= MOST_IN_UNIT {
        return (shown, apart());
    }
    let decimals_of = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let of_point = decimals_of(&shown.number);
    let of_ends = match ends[0].abs().max(ends[1].abs()) {
        0.0 => of_point,
        larger => decimals_of(&three_digits(larger)).min(of_point.max(2)),
    };
    let decimals = decimals_to_differ(ends[1] - ends[0]).clamp(of_ends, of_ends.max(of_point) + 3);
    let written = |number: f64| format!("{number:.decimals$}");
    let shows_zero = |end: f64| end != 0.0 && written(end).bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if ends.iter().any(|&end| end.abs() >= MOST_IN_UNIT || shows_zero(end)) {
        return (shown, apart());
    }
    // Without the sign of zero.
    let [low, high] = ends.map(|end| written(end + 0.0));
    let number = if decimals > of_point { written(point / size) } else { shown.number };
    (Quantity { number, unit: shown.unit }, format!("[{low}, {high}]"))
}

/// Above this, a number has too many digits to read at a glance.
const MOST_IN_UNIT: f64 = 9_999.5;

/// Decimals in which two numbers at this distance differ.
fn decimals_to_differ(distance: f64) -> usize {
    match -distance.abs().log10() {
        decimals if decimals > 0.0 && decimals.is_finite() => decimals.ceil() as usize,
        _ => 0,
    }
}

/// The size of a unit of this kind.
fn size_of(unit: &str, kind: Kind) -> f64 {
    let scale = match kind {
        Kind::Duration => DURATIONS,
        Kind::Bytes => SIZES,
        _ => MULTIPLES,
    };
    scale.iter().find(|(_, name)| *name == unit).map_or(1.0, |(size, _)| *size)
}

/// Units by ascending size.
type Scale = &'static [(f64, &'static str)];

/// Durations switch to minutes, hours and days at two of them: `65.0 s`, `2.00 min`, `100 min`, `2.00 h`, `2.00 d`.
const DURATIONS: Scale =
    &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"), (60e9, "min"), (3600e9, "h"), (86_400e9, "d")];
const SIZES: Scale = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
];
const MULTIPLES: Scale = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")];

/// The first unit in which the number has at most three digits before the point and is below two of the next unit, if
/// that is no decimal multiple.
fn in_unit(number: f64, scale: Scale) -> Quantity {
    // Rounded to three digits, these would be written as `1,000`, `120` and `48.0`.
    let limit = |unit: &str| match unit {
        "s" | "min" => 119.5,
        "h" => 47.95,
        _ => 999.5,
    };
    let fitting = scale.iter().find(|(size, unit)| number.abs() / size < limit(unit));
    let &(size, unit) = fitting.unwrap_or(&scale[scale.len() - 1]);
    let scaled = number / size;
    let whole = size == 1.0 && scaled.fract() == 0.0;
    Quantity { number: if whole { grouped(scaled as i128) } else { three_digits(scaled) }, unit }
}

fn three_digits(number: f64) -> String {
    match number.abs() {
        size if size >= 1e15 => format!("{number:.2e}"),
        size if size >= 999.5 => grouped(number.round() as i128),
        size if size >= 99.95 => with_decimals(number, 0),
        size if size >= 9.995 => with_decimals(number, 1),
        size if size >= 0.0995 => with_decimals(number, 2),
        _ => with_decimals(number, 3),
    }
}

/// Equals `format!("{number:.places$}")`, several times faster unless rounding is a close call. Pictures and tables are
/// mostly numbers.
fn with_decimals(number: f64, places: usize) -> String {
    const LARGEST: f64 = 1e9;
    const CLOSE_CALL: f64 = 1e-3;
    let scaled = number.abs() * [1.0, 10.0, 100.0, 1000.0][places];
    if scaled >= LARGEST || number.is_sign_negative() || (scaled.fract() - 0.5).abs() < CLOSE_CALL || scaled.is_nan() {
        return format!("{number:.places$}");
    }
    let mut digits = format_digits(scaled.round() as u64);
    if places > 0 {
        while digits.len() <= places {
            digits.insert(0, '0');
        }
        digits.insert(digits.len() - places, '.');
    }
    digits
}

fn format_digits(number: u64) -> String {
    let mut digits = String::with_capacity(24);
    push_digits(number, &mut digits);
    digits
}

fn real(number: f64) -> Quantity {
    match number.abs() {
        0.0 => Quantity::bare("0"),
        size if size < 0.001 => Quantity::bare(format!("{number:.1e}")),
        size if size >= 9_999_999.5 => in_unit(number, MULTIPLES),
        _ => Quantity::bare(three_digits(number)),
    }
}

/// A percentage with two decimals and no sign, for a column whose header has the sign. Below 0.005 it shows `<0.01`.
fn bare_percent(number: f64) -> String {
    match number {
        number if number > 0.0 && number < 0.005 => "<0.01".to_owned(),
        number if number < 0.0 && number > -0.005 => ">-0.01".to_owned(),
        number => with_decimals(number, 2),
    }
}

/// An integer with its digits in groups of three.
pub fn grouped(integer: i128) -> String {
    let size = integer.unsigned_abs();
    let digits = u64::try_from(size).map_or_else(|_| size.to_string(), format_digits);
    if integer >= 0 && digits.len() <= 3 {
        return digits;
    }
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if integer < 0 {
        shown.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Appends an integer's digits: pictures and tables are mostly numbers, and this is faster than formatting.
pub fn push_digits(mut number: u64, text: &mut String) {
    const MOST_DIGITS: usize = 20;
    let mut digits = [b'0'; MOST_DIGITS];
    let mut start = MOST_DIGITS;
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.push_str(std::str::from_utf8(&digits[start..]).expect("digits are ASCII"));
}

/// A weight with its unit: `1.23 s` for ns, `1.20 MiB` for bytes, `1.23 ms/step` for ns/step, `157 G cycles` for other units.
pub fn weight(weight: impl Into<Value>, unit: &str) -> String {
    let value = weight.into();
    let (base, per) = unit.split_at(unit.find('/').unwrap_or(unit.len()));
    let (Quantity { number: mut text, unit: of_cell }, of_weight) = match base {
        "ns" => (quantity(&value, Kind::Duration), ""),
        "bytes" => (quantity(&value, Kind::Bytes), ""),
        "percent" => (quantity(&value, Kind::Percent), "%"),
        base => (quantity(&value, Kind::Number), base),
    };
    for unit in [of_cell, of_weight].into_iter().filter(|unit| !unit.is_empty()) {
        text.push(' ');
        text.push_str(unit);
    }
    text.push_str(per);
    text
}

/// A duration in ns: `292 µs`, `5.82 s`, `2.00 h`.
pub fn duration(ns: impl Into<Value>) -> String {
    weight(ns, "ns")
}

/// A percentage with its sign: `19.86 %`, `<0.01 %`.
pub fn percent(percent: f64) -> String {
    weight(percent, "percent")
}

/// A count with its noun in the right form: `1 thread`, `9,676 waits`, `2 processes`, `3 entries`.
pub fn plural(number: usize, noun: &str) -> String {
    format!("{} {}", grouped(number as i128), if number == 1 { Cow::Borrowed(noun) } else { plural_of(noun) })
}

/// The plural of an English noun, by the regular rules.
pub fn plural_of(noun: &str) -> Cow<'_, str> {
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    Cow::Owned(match before_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        None => format!("{noun}s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: impl Into<Value>, kind: Kind) -> String {
        quantity(&value.into(), kind).to_string()
    }

    #[test]
    fn durations_take_the_first_unit_with_three_digits_or_fewer() {
        let cases = [
            (0_i64, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_234_567_890, "1.23 s"),
            (65_000_000_000, "65.0 s"),
            (999_499_999_999, "16.7 min"),
            (1_200_000_000_000, "20.0 min"),
            (360_000_000_000_000, "4.17 d"),
            (8_640_000_000_000_000, "100 d"),
            (i64::MAX, "106,752 d"),
            (-1_500_000, "-1.50 ms"),
        ];
        for (ns, text) in cases {
            assert_eq!(shown(ns, Kind::Duration), text, "{ns}");
        }
        assert_eq!(shown(0.5, Kind::Duration), "0.50 ns");
    }

    #[test]
    fn sizes_are_binary_multiples() {
        let cases =
            [(0_i64, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1536, "1.50 KiB"), (33_000_000_000, "30.7 GiB")];
        for (bytes, text) in cases {
            assert_eq!(shown(bytes, Kind::Bytes), text, "{bytes}");
        }
    }

    #[test]
    fn values_that_round_to_zero_are_not_shown_as_zero() {
        assert_eq!(shown(0.0, Kind::Percent), "0.00");
        assert_eq!(shown(0.0049, Kind::Percent), "<0.01");
        assert_eq!(shown(-0.001, Kind::Percent), ">-0.01");
        assert_eq!(shown(12.345, Kind::Percent), "12.35");
        assert_eq!(shown(100_i64, Kind::Percent), "100.00");
    }

    #[test]
    fn counts_are_exact_and_long_weights_are_not() {
        assert_eq!(shown(1_234_567_i64, Kind::Count), "1,234,567");
        assert_eq!(shown(-1_000_i64, Kind::Count), "-1,000");
        assert_eq!(shown(156_578_009_190_u64, Kind::Number), "157 G");
        assert_eq!(shown(9_999_999_i64, Kind::Number), "9,999,999");
        assert_eq!(grouped(i128::MIN), "-170,141,183,460,469,231,731,687,303,715,884,105,728");
    }

    #[test]
    fn real_numbers_have_three_significant_digits() {
        let cases = [
            (1.3, "1.30"),
            (12.34, "12.3"),
            (123.4, "123"),
            (0.0123, "0.012"),
            (1.2e-5, "1.2e-5"),
            (1e300, "1.00e282 E"),
        ];
        for (number, text) in cases {
            assert_eq!(shown(number, Kind::Number), text);
        }
    }

    #[test]
    fn decimals_are_written_as_the_standard_library_does() {
        let mut number = 1e-6_f64;
        while number < 1e7 {
            for number in [number, -number, number.round() + 0.5, (number * 1000.0).round() / 1000.0 + 0.0005] {
                for places in 0..=3 {
                    assert_eq!(with_decimals(number, places), format!("{number:.places$}"), "{number:e} {places}");
                }
            }
            number *= 1.0003;
        }
        for number in [0.0, -0.0, 0.5, 1.5, 2.5, 0.125, f64::MAX, f64::INFINITY, f64::NAN, 999.4999999999999] {
            assert_eq!(with_decimals(number, 2), format!("{number:.2}"));
        }
    }

    #[test]
    fn a_header_does_not_repeat_a_unit_that_is_in_the_name() {
        let unit = |name: &str, kind, unit: &str| unit_beside_name(&Column::new(name, kind, unit, "")).to_owned();
        assert_eq!(unit("threads_first", Kind::Count, "threads"), "");
        assert_eq!(unit("count", Kind::Count, "samples"), "samples");
        assert_eq!(unit("share", Kind::Percent, "percent"), "%");
        assert_eq!(unit("cost", Kind::Duration, "ns/step"), "/step");
    }

    #[test]
    fn the_unknown_is_neither_zero_nor_empty() {
        assert_eq!(shown(Option::<u64>::None, Kind::Duration), MISSING);
        assert_eq!(shown(true, Kind::Flag), "yes");
        assert_eq!(shown(false, Kind::Flag), "no");
    }

    /// The cases that the browser's formatter is tested with: one line for each: `[value, unit, shown]`.
    fn browser_cases() -> String {
        const UNITS: [&str; 9] =
            ["ns", "ns/step", "bytes", "bytes/step", "percent", "cycles", "faults/step", "samples", ""];
        const WHOLE: [i64; 32] = [
            0,
            1,
            7,
            42,
            99,
            100,
            119,
            120,
            500,
            999,
            1_000,
            1_005,
            1_023,
            1_024,
            1_125,
            1_135,
            1_536,
            9_994,
            9_995,
            12_345,
            99_949,
            99_950,
            999_499,
            999_500,
            1_048_575,
            9_999_999,
            10_000_000,
            1_234_567_890,
            119_499_999_999,
            7_200_000_000_000,
            172_619_999_999_999,
            8_640_000_000_000_000,
        ];
        const OTHER: [f64; 20] = [
            -1.0,
            -999.5,
            -1_125.0,
            -65e9,
            -0.001,
            -0.25,
            0.0004,
            0.001,
            0.0049,
            0.005,
            0.0625,
            0.0995,
            0.125,
            0.375,
            2.5,
            9.995,
            99.95,
            999.5,
            1_234.5,
            12_345_678.9,
        ];
        let values = WHOLE.iter().map(|&whole| whole as f64).chain(OTHER).chain([1e15, 1.5e18]);
        let values: Vec<f64> = values.collect();
        let line = |unit: &str, value: f64| {
            let exact = if value.fract() == 0.0 { Value::Int(value as i128) } else { Value::Float(value) };
            serde_json::to_string(&(&exact, unit, weight(exact.clone(), unit))).expect("plain values")
        };
        let lines: Vec<String> =
            UNITS.iter().flat_map(|unit| values.iter().map(move |&value| line(unit, value))).collect();
        format!("[\n  {}\n]\n", lines.join(",\n  "))
    }

    #[test]
    fn the_cases_of_the_browser_code_are_those_of_this_formatter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/quantities.json");
        let cases = browser_cases();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &cases).expect("the file can be written");
        }
        let written = std::fs::read_to_string(path).expect("the cases are beside the browser code");
        assert!(written == cases, "web/test/quantities.json is stale: run `BLESS=1 cargo test -p stepscope-model`");
        assert!(cases.lines().count() > 400);
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(plural(1, "thread"), "1 thread");
        assert_eq!(plural(0, "thread"), "0 threads");
        assert_eq!(plural(9_676, "wait"), "9,676 waits");
        assert_eq!(plural(2, "process"), "2 processes");
        assert_eq!(plural(3, "entry"), "3 entries");
        assert_eq!(plural(2, "run-queue delay"), "2 run-queue delays");
    }

    #[test]
    fn a_point_and_its_ends_have_one_unit_and_as_many_decimals_as_the_ends_need_to_differ() {
        let shown = |point: f64, low: f64, high: f64, kind| {
            let (quantity, ends) = estimate(&point.into(), &low.into(), &high.into(), kind);
            format!("{quantity} {ends}")
        };
        assert_eq!(shown(1.02e6, 0.98e6, 1.1e6, Kind::Duration), "1.02 ms [0.98, 1.10]");
        assert_eq!(shown(123.0, 99.0, 140.0, Kind::Duration), "123 ns [99, 140]");
        assert_eq!(shown(1.002, 0.998, 1.006, Kind::Number), "1.002 [0.998, 1.006]");
        assert_eq!(shown(1.0, 0.99999, 1.00001, Kind::Number), "1.00000 [0.99999, 1.00001]");
        assert_eq!(
            shown(2.99e6, -21.897e6, 16.44e6, Kind::Duration),
            "2.99 ms [-21.9, 16.4]",
            "three digits are enough"
        );
        assert_eq!(shown(0.007, 0.001, 0.022, Kind::Number), "0.007 [0.001, 0.022]");
        assert_eq!(shown(-0.98, -1073.99, 713.9, Kind::Bytes), "-0.98 B [-1074, 714]");
        assert_eq!(shown(12.3e6, 1_000.0, 25e6, Kind::Duration), "12.3 ms [1.00 µs, 25.0 ms]", "not 0.0 ms");
        assert_eq!(shown(0.0, -1.2e6, 0.9e6, Kind::Duration), "0 ns [-1.20 ms, 900 µs]", "not millions of ns");
        assert_eq!(shown(0.0, -0.0, 0.0, Kind::Percent), "0.00 [0.00, 0.00]");
        assert_eq!(shown(0.0, 0.0, 0.0, Kind::Bytes), "0 B [0, 0]");
    }
}

//! Notes and errors: numbers to be read by people, in the unit that suits each, and what several notes say.
//!
//! Tables carry exact values and leave their form to whoever shows them; a note is text, and `5819458218 ns` is none.

use crate::select::Selection;

/// A duration with three digits: `292 µs`, `5.82 s`.
pub(crate) fn duration(ns: u128) -> String {
    scaled(ns, &[(1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")])
}

/// A weight with its unit: a duration where it is one, `157 G cycles`, `1,234 faults`.
pub(crate) fn weight(weight: u128, unit: &str) -> String {
    match unit {
        "ns" => duration(weight),
        "bytes" => scaled(weight, &[(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB")]),
        "" => large(weight),
        unit => format!("{} {unit}", large(weight)),
    }
}

/// A number of things, exactly, its digits in groups of three.
pub(crate) fn count(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 thread`, `2 threads`: a number of things and what they are, in the form that the number asks for.
pub(crate) fn things(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", count(number as u128), if number == 1 { one } else { several })
}

/// A percentage with two decimals; what is too small for them is not said to be nothing.
pub(crate) fn percent(percent: f64) -> String {
    if percent > 0.0 && percent < 0.005 { "<0.01 %".to_owned() } else { format!("{percent:.2} %") }
}

/// Beyond this, the digits of a weight say nothing that its first three do not.
const LONGEST_EXACT: u128 = 10_000_000;

fn large(number: u128) -> String {
    if number < LONGEST_EXACT {
        return count(number);
    }
    scaled(number, &[(1_000_000, "M"), (1_000_000_000, "G"), (1_000_000_000_000, "T"), (1_000_000_000_000_000, "P")])
}

/// Three digits in the first unit in which there are no more of them before the point.
fn scaled(number: u128, units: &[(u128, &str)]) -> String {
    let rounded = |size: u128| (number as f64 / size as f64 * 100.0).round() / 100.0;
    let fitting = units.iter().find(|(size, _)| rounded(*size) < 999.5);
    let &(size, unit) = fitting.unwrap_or(&units[units.len() - 1]);
    match number as f64 / size as f64 {
        _ if size == 1 => format!("{} {unit}", count(number)),
        value if value >= 999.5 => format!("{} {unit}", count(value.round() as u128)),
        value if value >= 99.95 => format!("{value:.0} {unit}"),
        value if value >= 9.995 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

/// What a reader must know of ownership to judge what is attributed: that a pattern owns nothing in any of the selections'
/// captures, and what namespaces there are.
pub(crate) fn ownership_note(selections: &[Selection<'_>]) -> Option<String> {
    let first = selections.first()?;
    let in_none = |pattern: &&String| selections.iter().all(|one| one.functions().owning_nothing().contains(pattern));
    let quoted = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let nothing: Vec<String> = first.functions().owning_nothing().iter().filter(in_none).cloned().collect();
    let patterns = match nothing.len() {
        0 => return None,
        1 => "pattern",
        _ => "patterns",
    };
    let mut namespaces = first.functions().largest_namespaces(first.capture(), SHOWN);
    namespaces.iter_mut().for_each(|name| name.push_str("::*"));
    let here = match namespaces.as_slice() {
        [] => String::new(),
        some => format!(" Most of the program here is in {}.", quoted(some)),
    };
    Some(format!("Nothing here matches the owned {patterns} {}.{here}", quoted(&nothing)))
}

/// Namespaces that a note offers.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_the_unit_that_suits_them() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (291_696, "292 µs"),
            (999_600, "1.00 ms"),
            (5_819_458_218, "5.82 s"),
            (20_000_000_000, "20.0 s"),
            (7_200_000_000_000, "7,200 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    #[test]
    fn weights_carry_their_unit_and_long_ones_are_rounded() {
        assert_eq!(weight(100, "ns"), "100 ns");
        assert_eq!(weight(156_578_009_190, "cycles"), "157 G cycles");
        assert_eq!(weight(1_234_567, "faults"), "1,234,567 faults");
        assert_eq!(weight(33 << 20, "bytes"), "33.0 MiB");
    }

    #[test]
    fn few_things_are_counted_in_words_that_agree_and_small_shares_are_not_nothing() {
        assert_eq!(things(1, "thread", "threads"), "1 thread");
        assert_eq!(things(9_676, "wait", "waits"), "9,676 waits");
        assert_eq!(percent(0.0), "0.00 %");
        assert_eq!(percent(0.001), "<0.01 %");
        assert_eq!(percent(19.856), "19.86 %");
    }
}

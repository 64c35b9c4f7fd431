//! Reads values from a parsed TOML document, with the place of each.
//!
//! `toml` parses. This module reads its tree instead of deriving `Deserialize`, because derived code cannot report *every*
//! error of a file with its place, nor name the expected value in the words of the lab file.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::problem::{Problem, did_you_mean};

/// Longest duration in a lab file: 11 days. It prevents overflow.
const LONGEST_S: f64 = 1e6;

/// Collects errors while values are read.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: Vec<(usize, Problem)>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new() }
    }

    pub(super) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.found.push((span.start, Problem::at(self.text, span, message)));
    }

    /// All of them, in the order of the file.
    pub(super) fn into_vec(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|&(start, _)| start);
        self.found.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// A value, its name in messages, and its place.
#[derive(Clone)]
pub(super) struct Field<'t> {
    /// Its name or place, e.g. `` `frequency_hz` in [record] ``.
    pub(super) what: String,
    /// Place of the key, or of the value if it has none.
    pub(super) key_span: Range<usize>,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Field<'t> {
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    fn value(&self) -> &'t DeValue<'t> {
        self.value.get_ref()
    }

    /// Adds "WHAT must be EXPECTED, not a KIND".
    pub(super) fn refuse(&self, problems: &mut Problems, expected: &str) {
        let found = match self.value().type_str() {
            "array" => "an array",
            "integer" => "an integer",
            "string" => "a string",
            "float" => "a number with a fraction",
            "boolean" => "true or false",
            "datetime" => "a date",
            _ => "a table",
        };
        problems.add(self.span(), format!("{} must be {expected}, not {found}", self.what));
    }

    pub(super) fn is_string(&self) -> bool {
        self.value().is_str()
    }

    pub(super) fn is_integer(&self) -> bool {
        self.value().is_integer()
    }

    pub(super) fn is_array(&self) -> bool {
        self.value().is_array()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value().is_table()
    }

    /// A string that is not empty and has no NUL, which paths, arguments and variables cannot hold.
    pub(super) fn string(&self, problems: &mut Problems, expected: &str) -> Option<String> {
        let Some(string) = self.value().as_str() else {
            self.refuse(problems, expected);
            return None;
        };
        if string.is_empty() {
            problems.add(self.span(), format!("{} must not be empty; expected {expected}", self.what));
            return None;
        }
        self.text(problems, expected)
    }

    /// A string, perhaps empty, without NUL.
    pub(super) fn text(&self, problems: &mut Problems, expected: &str) -> Option<String> {
        match self.value().as_str() {
            Some(string) if string.contains('\0') => {
                problems.add(
                    self.span(),
                    format!("{} has a NUL character, which arguments and paths cannot hold", self.what),
                );
                None
            }
            Some(string) => Some(string.to_owned()),
            None => {
                self.refuse(problems, expected);
                None
            }
        }
    }

    pub(super) fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        let value = self.value().as_bool();
        if value.is_none() {
            self.refuse(problems, "true or false");
        }
        value
    }

    pub(super) fn integer(&self, problems: &mut Problems, range: RangeInclusive<u64>) -> Option<u64> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let Some(integer) = self.value().as_integer() else {
            self.refuse(problems, &expected);
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                problems.add(self.span(), format!("{} must be {expected}", self.what));
                None
            }
        }
    }

    /// Seconds: an integer or a fraction, not negative.
    pub(super) fn seconds(&self, problems: &mut Problems) -> Option<Duration> {
        const EXPECTED: &str = "a number of seconds from 0 to 1000000";
        let seconds: Option<f64> = match self.value() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(_) => None,
            _ => {
                self.refuse(problems, EXPECTED);
                return None;
            }
        };
        match seconds {
            Some(seconds) if (0.0..=LONGEST_S).contains(&seconds) => Some(Duration::from_secs_f64(seconds)),
            _ => {
                problems.add(self.span(), format!("{} must be {EXPECTED}", self.what));
                None
            }
        }
    }

    /// A number above 0.
    pub(super) fn positive(&self, problems: &mut Problems) -> Option<f64> {
        const EXPECTED: &str = "a number above 0";
        let number: Option<f64> = match self.value() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => {
                self.refuse(problems, EXPECTED);
                return None;
            }
        };
        let positive = number.filter(|number| number.is_finite() && *number > 0.0);
        if positive.is_none() {
            problems.add(self.span(), format!("{} must be {EXPECTED}", self.what));
        }
        positive
    }

    /// The items of an array.
    pub(super) fn items(&self, problems: &mut Problems, expected: &str) -> Option<Vec<Field<'t>>> {
        let Some(array) = self.value().as_array() else {
            self.refuse(problems, expected);
            return None;
        };
        Some(self.fields_of(array))
    }

    fn fields_of(&self, array: &'t DeArray<'t>) -> Vec<Field<'t>> {
        let item = |(index, value): (usize, &'t Spanned<DeValue<'t>>)| Field {
            what: format!("item {} of {}", index + 1, self.what),
            key_span: value.span(),
            value,
        };
        array.iter().enumerate().map(item).collect()
    }

    /// The fields of a table, called `place` in messages.
    pub(super) fn table(&self, problems: &mut Problems, place: String, expected: &str) -> Option<Fields<'t>> {
        let Some(table) = self.value().as_table() else {
            self.refuse(problems, expected);
            return None;
        };
        Some(Fields::new(place, table))
    }
}

/// The fields of a table. Known ones are taken one by one.
pub(super) struct Fields<'t> {
    place: String,
    rest: Vec<(&'t str, Field<'t>)>,
    known: Vec<&'static str>,
}

impl<'t> Fields<'t> {
    /// The fields of `table`, in the order of the file.
    pub(super) fn new(place: String, table: &'t DeTable<'t>) -> Self {
        let mut rest: Vec<(&str, Field)> = table
            .iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                let what = if place.is_empty() { format!("`{name}`") } else { format!("`{name}` in {place}") };
                (name, Field { what, key_span: key.span(), value })
            })
            .collect();
        rest.sort_by_key(|(_, field)| field.key_span.start);
        Self { place, rest, known: Vec::new() }
    }

    /// Takes the field of this name, if present.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Field<'t>> {
        self.known.push(name);
        let index = self.rest.iter().position(|&(key, _)| key == name)?;
        Some(self.rest.remove(index).1)
    }

    /// Takes all fields, for tables whose keys the user chooses.
    pub(super) fn take_all(&mut self) -> Vec<(&'t str, Field<'t>)> {
        std::mem::take(&mut self.rest)
    }

    /// Reports every unknown field.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (name, field) in &self.rest {
            let place = if self.place.is_empty() { "a lab file" } else { &self.place };
            let hint = match did_you_mean(name, self.known.iter().copied()) {
                none if none.is_empty() => format!("; known here: `{}`", self.known.join("`, `")),
                nearest => nearest,
            };
            problems.add(field.key_span.clone(), format!("{place} has no key `{name}`{hint}"));
        }
    }
}

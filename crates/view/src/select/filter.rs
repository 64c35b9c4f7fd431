//! [`Filter`]: a condition on rows.

use std::cmp::Ordering;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use stepscope_model::quantity::{kind_of_unit, number};
use stepscope_model::{Column, Kind, Row, Table, Value};

use super::{QueryError, UnknownColumn};
use crate::reading::unit_column;

/// A condition on rows, as written on a command line.
///
/// `COLUMN OPERATOR VALUE`, where the operator is one of `=`, `!=`, `<`, `<=`, `>`, `>=` and `~`, `!~` (matches a
/// regular expression, or not): `self_share>1`, `self>=10ms`, `owned=yes`, `module!~^libc`. Any other text is a regular
/// expression that some text of the row must match. Patterns without capital letters ignore case.
///
/// A condition on a column that no table has is an error; `vector<int>` and `operator<<` are no conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(String);

impl From<&str> for Filter {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for Filter {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Matches,
    MatchesNot,
    Is,
    IsNot,
    Compare(fn(Ordering) -> bool),
}

/// Longer ones first: `<=` starts with `<`.
const OPERATORS: [(&str, Operator); 8] = [
    ("!~", Operator::MatchesNot),
    ("!=", Operator::IsNot),
    ("<=", Operator::Compare(Ordering::is_le)),
    (">=", Operator::Compare(Ordering::is_ge)),
    ("~", Operator::Matches),
    ("=", Operator::Is),
    ("<", Operator::Compare(Ordering::is_lt)),
    (">", Operator::Compare(Ordering::is_gt)),
];

pub(super) enum Condition {
    AnyText(Regex),
    Matches { column: usize, pattern: Regex, wanted: bool },
    Is { column: usize, text: String, wanted: bool },
    Compares { column: usize, with: f64, accepts: fn(Ordering) -> bool, of: Option<OfUnit> },
}

/// A number to compare a column's values with.
struct Amount {
    number: f64,
    /// The rows that can be compared with it; `None` for all.
    rows: Option<OfUnit>,
}

/// Rows whose unit is of a kind: an amount of `10ms` is compared with durations, not with sizes.
#[derive(Clone, Copy)]
pub(super) struct OfUnit {
    /// The column that names each row's unit.
    unit: usize,
    kind: Kind,
}

impl OfUnit {
    fn is_of(self, row: &Row) -> bool {
        matches!(&row[self.unit], Value::Text(unit) if kind_of_unit(unit) == self.kind)
    }
}

impl Filter {
    /// The text given.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is a condition on a column of one of these tables, and no pattern.
    pub(super) fn names_column(&self, tables: &[Table]) -> Result<bool, UnknownColumn> {
        if tables.iter().any(|table| self.split(table).is_some()) {
            return Ok(true);
        }
        let end = self.0.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        let Some((operator, value)) = split_operator(rest).filter(|_| !name.is_empty() && name != "operator") else {
            return Ok(false);
        };
        let unknown = UnknownColumn::of(name, tables);
        // Names of C++ and Rust have angle brackets.
        let is_name = matches!(operator, Operator::Compare(_))
            && unknown.nearest().is_none()
            && !value.trim().starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
        if is_name || tables.is_empty() { Ok(false) } else { Err(unknown) }
    }

    /// The condition for a table's rows; `None` if the table lacks the column.
    pub(super) fn bind(&self, names_column: bool, table: &Table) -> Result<Option<Condition>, QueryError> {
        if !names_column {
            return Ok(Some(Condition::AnyText(pattern(&self.0)?)));
        }
        self.split(table).map(|(index, operator, value)| condition(table, index, operator, value)).transpose()
    }

    /// The column, operator and value, if the text starts with a column's name and an operator.
    fn split<'a>(&'a self, table: &Table) -> Option<(usize, Operator, &'a str)> {
        table.columns.iter().enumerate().find_map(|(index, column)| {
            let (operator, value) = split_operator(self.0.strip_prefix(column.name.as_str())?)?;
            Some((index, operator, value))
        })
    }
}

fn split_operator(text: &str) -> Option<(Operator, &str)> {
    let text = text.trim_start();
    OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?.trim_start())))
}

fn condition(table: &Table, index: usize, operator: Operator, value: &str) -> Result<Condition, QueryError> {
    let column = &table.columns[index];
    Ok(match operator {
        Operator::Matches => Condition::Matches { column: index, pattern: pattern(value)?, wanted: true },
        Operator::MatchesNot => Condition::Matches { column: index, pattern: pattern(value)?, wanted: false },
        Operator::Is => is(table, column, index, value, true),
        Operator::IsNot => is(table, column, index, value, false),
        Operator::Compare(accepts) => {
            let Amount { number: with, rows: of } = amount(table, column, value)?;
            Condition::Compares { column: index, with, accepts, of }
        }
    })
}

fn pattern(text: &str) -> Result<Regex, QueryError> {
    let has_capitals = text.chars().any(char::is_uppercase);
    RegexBuilder::new(text)
        .case_insensitive(!has_capitals)
        .build()
        .map_err(|error| QueryError::Pattern { pattern: text.to_owned(), reason: last_line(&error.to_string()) })
}

/// The parser draws the pattern with a caret under it; its last line says what is wrong.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// `=` compares numbers where both sides are numbers, and text otherwise.
fn is(table: &Table, column: &Column, index: usize, value: &str, wanted: bool) -> Condition {
    let accepts = if wanted { Ordering::is_eq } else { Ordering::is_ne };
    match (column.kind, amount(table, column, value)) {
        (Kind::Text | Kind::Prose | Kind::Flag, _) | (_, Err(_)) => {
            Condition::Is { column: index, text: value.to_owned(), wanted }
        }
        (_, Ok(Amount { number: with, rows: of })) => Condition::Compares { column: index, with, accepts, of },
    }
}

/// A number in the column's unit, from text that may carry another: `10ms`, `2 MiB`, `5%`. In a column whose rows have
/// units of their own, the unit also selects the rows that can be compared with it.
fn amount(table: &Table, column: &Column, text: &str) -> Result<Amount, QueryError> {
    let text = text.trim();
    let finite = |number: &f64| number.is_finite();
    if let Some(plain) = text.parse::<f64>().ok().filter(finite) {
        return Ok(Amount { number: plain, rows: None });
    }
    let unit = unit_column(table).filter(|_| column.kind == Kind::InRowUnit);
    let kinds: &[Kind] = match (column.kind, unit) {
        (Kind::InRowUnit, Some(_)) => &[Kind::Duration, Kind::Bytes, Kind::Percent],
        _ => std::slice::from_ref(&column.kind),
    };
    let in_unit = |&kind: &Kind| {
        let number = in_units_of(kind, text).filter(finite)?;
        Some(Amount { number, rows: unit.map(|unit| OfUnit { unit, kind }) })
    };
    kinds
        .iter()
        .find_map(in_unit)
        .ok_or_else(|| QueryError::NotANumber { column: column.name.clone(), value: text.to_owned() })
}

/// A number with a unit of this kind.
fn in_units_of(kind: Kind, text: &str) -> Option<f64> {
    let units: &[(&str, f64)] = match kind {
        Kind::Duration => {
            &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)]
        }
        Kind::Bytes => &[
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("B", 1.0),
        ],
        Kind::Percent => &[("%", 1.0)],
        _ => &[],
    };
    let in_unit = |&(unit, size): &(&str, f64)| {
        text.strip_suffix(unit)?.trim_end().parse::<f64>().ok().map(|number| number * size)
    };
    units.iter().find_map(in_unit)
}

impl Condition {
    pub(super) fn holds(&self, row: &Row) -> bool {
        match self {
            Condition::AnyText(pattern) => {
                row.iter().any(|value| matches!(value, Value::Text(text) if pattern.is_match(text)))
            }
            Condition::Matches { column, pattern, wanted } => pattern.is_match(&as_text(&row[*column])) == *wanted,
            Condition::Is { column, text, wanted } => equals(&row[*column], text) == *wanted,
            Condition::Compares { column, with, accepts, of } => {
                of.is_none_or(|of| of.is_of(row))
                    && number(&row[*column]).is_some_and(|number| accepts(number.total_cmp(with)))
            }
        }
    }
}

pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Int(integer) => integer.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
    }
}

fn equals(value: &Value, text: &str) -> bool {
    match value {
        Value::Bool(yes) => text == if *yes { "yes" } else { "no" } || text == if *yes { "true" } else { "false" },
        value => as_text(value) == text,
    }
}

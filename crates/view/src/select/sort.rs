//! [`Sort`]: the column to sort by, and the order of values.

use std::cmp::Ordering;
use std::str::FromStr;

use stepscope_model::quantity::number;
use stepscope_model::{Table, Value};

/// The column to sort by, and which end comes first. Written `COLUMN`, `COLUMN:asc` or `COLUMN:desc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// Name of the column.
    pub column: String,
    /// Which end comes first. If `None`: the largest number, the first text, `yes` before `no`.
    pub direction: Option<Direction>,
}

/// Which end of an order comes first. Missing values come last in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl FromStr for Sort {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (column, direction) = match text.rsplit_once(':') {
            Some((column, "asc")) => (column, Some(Direction::Ascending)),
            Some((column, "desc")) => (column, Some(Direction::Descending)),
            _ => (text, None),
        };
        Ok(Self { column: column.to_owned(), direction })
    }
}

impl Sort {
    /// Sorts the table's rows, if it has the column.
    pub(super) fn apply(&self, table: &mut Table) {
        let Some(index) = table.column(&self.column) else { return };
        let natural = if table.columns[index].kind.is_text() { Direction::Ascending } else { Direction::Descending };
        let direction = self.direction.unwrap_or(natural);
        table.rows.sort_by(|a, b| compare(&a[index], &b[index], direction));
    }
}

fn compare(a: &Value, b: &Value, direction: Direction) -> Ordering {
    match (a, b) {
        (Value::Missing, Value::Missing) => Ordering::Equal,
        (Value::Missing, _) => Ordering::Greater,
        (_, Value::Missing) => Ordering::Less,
        _ if direction == Direction::Ascending => ascending(a, b),
        _ => ascending(b, a),
    }
}

/// Numbers by size, texts by character. Of different types: numbers, texts, flags.
fn ascending(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => rank(a).cmp(&rank(b)),
        },
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::Text(_) => 1,
        Value::Bool(_) => 2,
        Value::Missing => 3,
    }
}

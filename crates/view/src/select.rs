//! Which rows and columns of a table are shown, and in which order: `--filter`, `--sort`, `--limit`, `--columns`.

use std::cmp::Ordering;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use stepscope_model::{Column, Importance, Kind, Row, Table, Value};

use crate::reading::unit_column;
use stepscope_model::quantity::{grouped, kind_of_unit};

/// What a reader asked to see of a table. The default is all of it, as it is.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Rows that do not pass every one of these are left out.
    pub filters: Vec<Filter>,
    /// The order; the table's own where absent.
    pub sort: Option<Sort>,
    /// Rows beyond this many are left out.
    pub limit: Option<usize>,
    /// The columns; where absent, all of them, of which a terminal shows those that have room.
    pub columns: Option<Columns>,
}

impl Selection {
    /// Filters, then sorts, then limits the table's rows. A note says how many rows are left out and how to see them.
    ///
    /// # Errors
    /// If a filter or the order names a column that the table has not, or compares what cannot be compared.
    pub fn apply(&self, table: &mut Table) -> Result<(), SelectionError> {
        let conditions =
            self.filters.iter().map(|filter| filter.bind(table)).collect::<Result<Vec<_>, SelectionError>>()?;
        let order = self.sort.as_ref().map(|sort| sort.bind(table)).transpose()?;
        let columns = self.columns.as_ref().map(|columns| columns.bind(table)).transpose()?;
        let all = table.rows.len();
        table.rows.retain(|row| conditions.iter().all(|condition| condition.holds(row)));
        let matching = table.rows.len();
        if matching < all {
            table.note(format!("{} of {} rows do not match the filter.", count(all - matching), count(all)));
        }
        if let Some((index, direction)) = order {
            // An order by something that cannot be seen reads as none.
            table.columns[index].importance = Importance::Essential;
            table.rows.sort_by(|a, b| compare(&a[index], &b[index], direction));
        }
        if let Some(limit) = self.limit.filter(|&limit| limit < matching) {
            table.rows.truncate(limit);
            let left_out = count(matching - limit);
            table.note(format!("{left_out} more of {} rows are left out by --limit {limit}.", count(matching)));
        }
        if let Some(columns) = columns {
            keep_columns(table, &columns);
        }
        Ok(())
    }
}

/// Leaves the table these columns, in this order, and none of them for want of room.
fn keep_columns(table: &mut Table, indices: &[usize]) {
    let asked_for = |column: &Column| column.clone().essential();
    table.columns = indices.iter().map(|&index| asked_for(&table.columns[index])).collect();
    for row in &mut table.rows {
        *row = indices.iter().map(|&index| row[index].clone()).collect();
    }
}

/// Applies a selection to each of several tables, as far as it speaks of columns that the table has: an order or a
/// condition that one table understands need not fit the others, and a table that has none of the named columns keeps
/// its own. A filter that names no table's column is a pattern
/// for all of them, as it is for one.
///
/// # Errors
/// Those of [`Selection::apply`]; an order by a column, or a column by name, that none of the tables has.
pub fn apply_to_all(selection: &Selection, tables: &mut [Table]) -> Result<(), SelectionError> {
    let sorted = |table: &Table| selection.sort.as_ref().is_some_and(|sort| table.column(&sort.column).is_some());
    let orders_any = tables.iter().any(sorted);
    let names_column = |filter: &Filter| tables.iter().any(|table| filter.split(table).is_some());
    let (conditions, patterns): (Vec<_>, Vec<_>) = selection.filters.iter().partition(|filter| names_column(filter));
    let unknown = |name: &&String| tables.iter().all(|table| table.column(name).is_none());
    if let (Some(Columns::Named(names)), Some(table)) = (&selection.columns, tables.first()) {
        names.iter().find(unknown).map_or(Ok(()), |name| column_index(table, name).map(drop))?;
    }
    for table in tables {
        let conditions = conditions.iter().filter(|filter| filter.split(table).is_some());
        let part = Selection {
            filters: conditions.chain(&patterns).map(|filter| (*filter).clone()).collect(),
            sort: selection.sort.clone().filter(|_| !orders_any || sorted(table)),
            limit: selection.limit,
            columns: selection.columns.as_ref().and_then(|columns| columns.known_in(table)),
        };
        part.apply(table)?;
    }
    Ok(())
}

/// Which columns are shown. Written `all`, or `NAME,NAME,...` in the order wanted.
///
/// Both are promises: on a terminal too, none of these columns is left out for want of room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// Every column that the table has.
    All,
    /// These, in this order.
    Named(Vec<String>),
}

/// A list of columns without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no column is named; write names with commas between them, or `all`")]
pub struct NoColumns;

impl FromStr for Columns {
    type Err = NoColumns;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() { Err(NoColumns) } else { Ok(Self::Named(names)) }
    }
}

impl Columns {
    fn bind(&self, table: &Table) -> Result<Vec<usize>, SelectionError> {
        match self {
            Self::All => Ok((0..table.columns.len()).collect()),
            Self::Named(names) => names.iter().map(|name| column_index(table, name)).collect(),
        }
    }

    /// The part of them that a table has, if it has any.
    fn known_in(&self, table: &Table) -> Option<Self> {
        let Self::Named(names) = self else { return Some(self.clone()) };
        let known: Vec<String> = names.iter().filter(|name| table.column(name).is_some()).cloned().collect();
        (!known.is_empty()).then_some(Self::Named(known))
    }
}

fn count(rows: usize) -> String {
    grouped(rows as i128)
}

/// Why a selection does not fit a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such column.
    #[error("the table `{table}` has no column `{column}`; its columns are {}", available.join(", "))]
    UnknownColumn {
        /// Name of the table.
        table: String,
        /// The name asked for.
        column: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// A pattern that is not a regular expression.
    #[error(
        "`{pattern}` is not a regular expression: {reason}; put a backslash before characters that stand for themselves"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that the column's values cannot be compared with.
    #[error("`{value}` is not a number to compare column `{column}` with; write one such as 5, 1.5, 10ms, 2MiB or 5%")]
    NotANumber {
        /// The column.
        column: String,
        /// The text given.
        value: String,
    },
}

/// The column to sort by, and which end comes first. Written `COLUMN`, `COLUMN:asc` or `COLUMN:desc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// Name of the column.
    pub column: String,
    /// Which end comes first; for `None`, the largest number, the first text, `yes` before `no`.
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
    fn bind(&self, table: &Table) -> Result<(usize, Direction), SelectionError> {
        let index = column_index(table, &self.column)?;
        let natural = match table.columns[index].kind {
            Kind::Text | Kind::Prose => Direction::Ascending,
            _ => Direction::Descending,
        };
        Ok((index, self.direction.unwrap_or(natural)))
    }
}

fn column_index(table: &Table, name: &str) -> Result<usize, SelectionError> {
    table.column(name).ok_or_else(|| SelectionError::UnknownColumn {
        table: table.name.clone(),
        column: name.to_owned(),
        available: table.columns.iter().map(|column| column.name.clone()).collect(),
    })
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

/// Numbers by size, texts by character; of different types, numbers before texts before flags.
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

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(integer) => Some(*integer as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// A condition on rows, as written on a command line.
///
/// `COLUMN OPERATOR VALUE`, where the operator is one of `=`, `!=`, `<`, `<=`, `>`, `>=` and `~`, `!~` (matches a
/// regular expression, or not): `self_share>1`, `self>=10ms`, `owned=yes`, `module!~^libc`. Anything that does not
/// start with a column's name and an operator is a regular expression that some text of the row must match. Patterns
/// without capital letters ignore case.
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

enum Condition {
    AnyText(Regex),
    Matches { column: usize, pattern: Regex, wanted: bool },
    Is { column: usize, text: String, wanted: bool },
    Compares { column: usize, with: f64, accepts: fn(Ordering) -> bool, of: Option<OfUnit> },
}

/// Rows whose unit is of a kind: an amount of `10ms` is compared with durations, not with sizes.
#[derive(Clone, Copy)]
struct OfUnit {
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
    fn bind(&self, table: &Table) -> Result<Condition, SelectionError> {
        let Some((index, operator, value)) = self.split(table) else {
            return Ok(Condition::AnyText(pattern(&self.0)?));
        };
        let column = &table.columns[index];
        Ok(match operator {
            Operator::Matches => Condition::Matches { column: index, pattern: pattern(value)?, wanted: true },
            Operator::MatchesNot => Condition::Matches { column: index, pattern: pattern(value)?, wanted: false },
            Operator::Is => is(table, column, index, value, true),
            Operator::IsNot => is(table, column, index, value, false),
            Operator::Compare(accepts) => {
                let (with, of) = amount(table, column, value)?;
                Condition::Compares { column: index, with, accepts, of }
            }
        })
    }

    /// The column, operator and value, if the text starts with a column's name and an operator.
    fn split<'a>(&'a self, table: &Table) -> Option<(usize, Operator, &'a str)> {
        table.columns.iter().enumerate().find_map(|(index, column)| {
            let rest = self.0.strip_prefix(column.name.as_str())?.trim_start();
            let (operator, value) =
                OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, rest.strip_prefix(sign)?)))?;
            Some((index, operator, value.trim_start()))
        })
    }
}

fn pattern(text: &str) -> Result<Regex, SelectionError> {
    let has_capitals = text.chars().any(char::is_uppercase);
    RegexBuilder::new(text)
        .case_insensitive(!has_capitals)
        .build()
        .map_err(|error| SelectionError::Pattern { pattern: text.to_owned(), reason: last_line(&error.to_string()) })
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
        (_, Ok((with, of))) => Condition::Compares { column: index, with, accepts, of },
    }
}

/// A number in the column's unit, from text that may carry another: `10ms`, `2 MiB`, `5%`. In a column whose rows have
/// units of their own such a text also tells which rows it can be compared with.
fn amount(table: &Table, column: &Column, text: &str) -> Result<(f64, Option<OfUnit>), SelectionError> {
    let text = text.trim();
    let finite = |number: &f64| number.is_finite();
    if let Some(plain) = text.parse::<f64>().ok().filter(finite) {
        return Ok((plain, None));
    }
    let unit = unit_column(table).filter(|_| column.kind == Kind::InRowUnit);
    let kinds: &[Kind] = match (column.kind, unit) {
        (Kind::InRowUnit, Some(_)) => &[Kind::Duration, Kind::Bytes, Kind::Percent],
        _ => std::slice::from_ref(&column.kind),
    };
    let in_unit = |&kind: &Kind| {
        let number = in_units_of(kind, text).filter(finite)?;
        Some((number, unit.map(|unit| OfUnit { unit, kind })))
    };
    kinds
        .iter()
        .find_map(in_unit)
        .ok_or_else(|| SelectionError::NotANumber { column: column.name.clone(), value: text.to_owned() })
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
    fn holds(&self, row: &Row) -> bool {
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

fn as_text(value: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// function        module   self[ns]   share[%]  owned
    /// operator<<      libc     2000000    20        no
    /// Run             app      5000000    50        yes
    /// step<int>       app      –          –         yes
    /// write           Libc2    3000000    30        no
    /// ```
    fn table() -> Table {
        let mut table = Table::new(
            "hotspots",
            "Hot spots",
            vec![
                Column::new("function", Kind::Text, "", ""),
                Column::new("module", Kind::Text, "", ""),
                Column::new("self", Kind::Duration, "ns", ""),
                Column::new("share", Kind::Percent, "percent", ""),
                Column::new("owned", Kind::Flag, "", ""),
            ],
        );
        table.push(vec!["operator<<".into(), "libc".into(), 2_000_000_u64.into(), 20.0.into(), false.into()]);
        table.push(vec!["Run".into(), "app".into(), 5_000_000_u64.into(), 50.0.into(), true.into()]);
        table.push(vec!["step<int>".into(), "app".into(), Value::Missing, Value::Missing, true.into()]);
        table.push(vec!["write".into(), "Libc2".into(), 3_000_000_u64.into(), 30.0.into(), false.into()]);
        table
    }

    fn selected(selection: &Selection) -> Result<Vec<String>, SelectionError> {
        let mut table = table();
        selection.apply(&mut table)?;
        Ok(table.rows.iter().map(|row| as_text(&row[0])).collect())
    }

    fn filtered(filter: &str) -> Vec<String> {
        selected(&Selection { filters: vec![filter.into()], ..Selection::default() }).unwrap()
    }

    fn sorted(sort: &str) -> Vec<String> {
        selected(&Selection { sort: Some(sort.parse().unwrap()), ..Selection::default() }).unwrap()
    }

    #[test]
    fn numbers_are_sorted_largest_first_and_texts_by_the_alphabet() {
        assert_eq!(sorted("self"), ["Run", "write", "operator<<", "step<int>"]);
        assert_eq!(sorted("function"), ["Run", "operator<<", "step<int>", "write"]);
        assert_eq!(sorted("function:desc"), ["write", "step<int>", "operator<<", "Run"]);
    }

    #[test]
    fn missing_values_come_last_in_both_directions_and_equal_rows_keep_their_order() {
        assert_eq!(sorted("self:asc"), ["operator<<", "write", "Run", "step<int>"]);
        assert_eq!(sorted("owned"), ["Run", "step<int>", "operator<<", "write"]);
    }

    #[test]
    fn a_limit_is_noted_with_what_it_leaves_out() {
        let mut table = table();
        let selection = Selection { filters: vec!["share<40".into()], limit: Some(1), ..Selection::default() };
        selection.apply(&mut table).unwrap();
        assert_eq!(table.rows.len(), 1);
        assert_eq!(
            table.notes,
            ["2 of 4 rows do not match the filter.", "1 more of 2 rows are left out by --limit 1."]
        );
    }

    #[test]
    fn of_several_tables_each_heeds_what_speaks_of_its_columns() {
        let other = || {
            let mut other = Table::new("threads", "Threads", vec![Column::new("thread", Kind::Text, "", "")]);
            other.push(vec!["writer".into()]);
            other.push(vec!["main".into()]);
            other
        };
        let first = |tables: &[Table]| tables.iter().map(|table| as_text(&table.rows[0][0])).collect::<Vec<_>>();
        let mut tables = [table(), other()];
        let selection =
            Selection { filters: vec!["self<5ms".into()], sort: Some("self".parse().unwrap()), ..Selection::default() };
        apply_to_all(&selection, &mut tables).unwrap();
        assert_eq!(first(&tables), ["write", "writer"]);
        let mut tables = [table(), other()];
        apply_to_all(&Selection { filters: vec!["^writ".into()], ..Selection::default() }, &mut tables).unwrap();
        assert_eq!(tables.each_ref().map(|table| table.rows.len()), [1, 1]);
        let selection = Selection { sort: Some("nothing".parse().unwrap()), ..Selection::default() };
        assert!(matches!(apply_to_all(&selection, &mut tables), Err(SelectionError::UnknownColumn { .. })));
    }

    fn columns_of(columns: &str, table: &mut Table) -> Result<Vec<String>, SelectionError> {
        Selection { columns: Some(columns.parse().unwrap()), ..Selection::default() }.apply(table)?;
        Ok(table.columns.iter().map(|column| column.name.clone()).collect())
    }

    #[test]
    fn named_columns_are_shown_in_the_order_asked_for_and_are_not_left_out() {
        let mut table = table();
        assert_eq!(columns_of("share, function,share,", &mut table).unwrap(), ["share", "function"]);
        assert_eq!(table.rows[1], [Value::from(50.0), "Run".into()]);
        assert!(table.columns.iter().all(|column| column.importance == Importance::Essential));
        assert_eq!(columns_of("all", &mut table).unwrap(), ["share", "function"]);
        assert!(matches!(columns_of("self", &mut table), Err(SelectionError::UnknownColumn { .. })));
        assert_eq!(" , ".parse::<Columns>(), Err(NoColumns));
    }

    #[test]
    fn rows_are_sorted_and_filtered_by_columns_that_are_not_shown_and_the_order_is_seen_if_all_are() {
        let mut table = table();
        let columns = Some("function".parse().unwrap());
        let sort: Option<Sort> = Some("self:asc".parse().unwrap());
        let filters = vec!["owned=yes".into()];
        Selection { columns, sort: sort.clone(), filters, limit: None }.apply(&mut table).unwrap();
        assert_eq!(table.rows, [vec![Value::from("Run")], vec!["step<int>".into()]]);
        let mut table = self::table();
        Selection { sort, ..Selection::default() }.apply(&mut table).unwrap();
        assert_eq!(table.columns[2].importance, Importance::Essential);
    }

    #[test]
    fn of_several_tables_each_shows_the_named_columns_that_it_has() {
        let other = Table::new("threads", "Threads", vec![Column::new("thread", Kind::Text, "", "")]);
        let mut tables = [table(), other];
        let named = |names: &str| Selection { columns: Some(names.parse().unwrap()), ..Selection::default() };
        apply_to_all(&named("share"), &mut tables).unwrap();
        assert_eq!(tables.each_ref().map(|table| table.columns[0].name.as_str()), ["share", "thread"]);
        assert!(apply_to_all(&named("thread,nothing"), &mut tables).is_err());
    }

    #[test]
    fn comparisons_take_units_and_what_is_missing_compares_with_nothing() {
        assert_eq!(filtered("self>=3ms"), ["Run", "write"]);
        assert_eq!(filtered("self < 3000 us"), ["operator<<"]);
        assert_eq!(filtered("share>25%"), ["Run", "write"]);
        assert_eq!(filtered("share!=50"), ["operator<<", "write"]);
        assert_eq!(filtered("owned=yes"), ["Run", "step<int>"]);
        assert_eq!(filtered("owned!=true"), ["operator<<", "write"]);
    }

    #[test]
    fn in_a_column_of_several_units_an_amount_is_compared_with_rows_of_its_kind() {
        let filtered = |filter: &str| {
            let columns = vec![
                Column::new("metric", Kind::Text, "", ""),
                Column::new("unit", Kind::Text, "", ""),
                Column::new("before", Kind::InRowUnit, "", ""),
            ];
            let mut table = Table::new("compare_runs", "", columns);
            for (metric, unit, before) in
                [("p50", "ns/step", 4e6), ("p99", "ns/step", 12e6), ("rss", "bytes", 5e7), ("rtf", "", 0.9)]
            {
                table.push(vec![metric.into(), unit.into(), before.into()]);
            }
            Selection { filters: vec![filter.into()], ..Selection::default() }.apply(&mut table)?;
            Ok::<_, SelectionError>(table.rows.iter().map(|row| as_text(&row[0])).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(filtered("before>10ms").unwrap(), "p99");
        assert_eq!(filtered("before<10ms").unwrap(), "p50", "neither a size nor a factor");
        assert_eq!(filtered("before>=1MB").unwrap(), "rss");
        assert_eq!(filtered("before<1e7").unwrap(), "p50 rtf", "the values as they are");
        assert!(filtered("before>much").is_err());
    }

    #[test]
    fn patterns_without_capitals_ignore_case() {
        assert_eq!(filtered("module~^libc"), ["operator<<", "write"]);
        assert_eq!(filtered("module~^Libc"), ["write"]);
        assert_eq!(filtered("module!~libc"), ["Run", "step<int>"]);
    }

    #[test]
    fn text_that_names_no_column_is_a_pattern_for_every_text() {
        assert_eq!(filtered("operator<<"), ["operator<<"]);
        assert_eq!(filtered("app"), ["Run", "step<int>"]);
    }

    #[test]
    fn errors_name_what_there_is() {
        let error = |selection| selected(&selection).unwrap_err().to_string();
        let sort = Some("slef".parse().unwrap());
        assert_eq!(
            error(Selection { sort, ..Selection::default() }),
            "the table `hotspots` has no column `slef`; its columns are function, module, self, share, owned"
        );
        assert_eq!(
            error(Selection { filters: vec!["self>lots".into()], ..Selection::default() }),
            "`lots` is not a number to compare column `self` with; write one such as 5, 1.5, 10ms, 2MiB or 5%"
        );
        assert_eq!(
            error(Selection { filters: vec!["a(".into()], ..Selection::default() }),
            "`a(` is not a regular expression: unclosed group; put a backslash before characters that stand for themselves"
        );
    }
}

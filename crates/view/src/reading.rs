//! A table for people: an estimate and its interval are one field, a number has the unit of its row, a verdict has a tone.
//!
//! Programs get every column. People see this table
//!
//! ```text
//! metric  unit     before   ratio  ratio_low  ratio_high  verdict
//! p99     ns/step  4200000  0.512  0.481      0.553       changed
//! ```
//!
//! as `p99  /step  4.20 ms  0.51 [0.48, 0.55]  changed`:
//!
//! - Two neighbouring columns `PREFIXlow` and `PREFIXhigh` are the bounds of the interval of the column right before them, if
//!   its name begins with the prefix (`ratio, ratio_low, ratio_high`; `difference, low, high`; `self_difference, self_low,
//!   self_high`) and the three are of one kind and unit. Point and bounds are written with the same decimals, as many as the
//!   bounds need to differ.
//! - A column of [`Kind::InRowUnit`] is written as a column of its row's `unit` would be: `ns` as a duration, `bytes` as
//!   a size. The `unit` cell then has only the rest: `/step` of `ns/step`.
//! - Texts of columns named `verdict`, `verdict_...` or `result` have a [`Tone`].
//! - Columns that [stand below](Column::below) their row are no fields: they come after it, with their headers.

use std::borrow::Cow;

use stepscope_model::{Column, Importance, Kind, Row, Table, Value};

use stepscope_model::quantity::{self, Quantity, quantity, unit_beside_number};

/// Columns that are read as one: an estimate and the bounds of its interval; or a column by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The column, or the estimate's.
    pub column: usize,
    /// The columns of the interval's bounds, low and high.
    pub bounds: Option<[usize; 2]>,
}

/// A table as people read it.
pub struct Reading<'t> {
    table: &'t Table,
    /// The fields, in the order of the columns.
    pub fields: Vec<Field>,
    /// The columns whose texts stand below their rows.
    below: Vec<usize>,
    /// The column `number`, if it numbers the rows.
    number: Option<usize>,
    /// The column that names each row's unit, if there are numbers in it.
    unit: Option<usize>,
}

/// A cell as people read it.
#[derive(Debug, PartialEq, Eq)]
pub struct Cell {
    /// The value, or the estimate.
    pub quantity: Quantity,
    /// The interval, as `[low, high]`, if known.
    pub bounds: Option<String>,
}

impl<'t> Reading<'t> {
    /// How a table is read.
    pub fn of(table: &'t Table) -> Self {
        let mut fields = Vec::with_capacity(table.columns.len());
        let mut column = 0;
        while column < table.columns.len() {
            let bounds =
                table.columns.get(column..column + 3).is_some_and(is_estimate).then(|| [column + 1, column + 2]);
            fields.push(Field { column, bounds });
            column += if bounds.is_some() { 3 } else { 1 };
        }
        let is_below = |column: &usize| table.columns[*column].below;
        let below = (0..table.columns.len()).filter(is_below).collect();
        fields.retain(|field| !is_below(&field.column));
        let number = table.column("number").filter(|&number| table.columns[number].kind == Kind::Count);
        Self { table, fields, below, number, unit: unit_column(table) }
    }

    /// Whether texts stand below the rows.
    pub fn has_below(&self) -> bool {
        !self.below.is_empty()
    }

    /// The number of each card: the row's own, which it keeps when rows are sorted or left out, else its place.
    pub fn numbers(&self) -> impl Iterator<Item = i128> {
        let number =
            |row: &Row| self.number.and_then(|number| if let Value::Int(own) = row[number] { Some(own) } else { None });
        self.table.rows.iter().zip(1..).map(move |(row, place)| number(row).unwrap_or(place))
    }

    /// The field that is the heading of each card: the first prose.
    pub fn heading(&self) -> Option<Field> {
        self.fields.iter().find(|field| self.table.columns[field.column].kind == Kind::Prose).copied()
    }

    /// The fields of a card between its number and heading and the texts below: known ones without details.
    pub fn card_fields(&self, row: &'t Row) -> impl Iterator<Item = Field> {
        let heading = self.heading();
        let is_known = |field: Field| match &row[field.column] {
            Value::Missing => false,
            Value::Text(text) => !text.is_empty(),
            _ => true,
        };
        let is_shown = move |field: &Field| {
            let importance = self.table.columns[field.column].importance;
            let is_apart = Some(*field) == heading || Some(field.column) == self.number;
            importance > Importance::Detail && !is_apart && is_known(*field)
        };
        self.fields.iter().copied().filter(is_shown)
    }

    /// What stands below a row: the header and the lines of each text.
    pub fn below<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = (&'t str, std::str::Lines<'r>)> {
        self.below.iter().filter_map(|&column| match &row[column] {
            Value::Text(text) if !text.is_empty() => Some((self.table.columns[column].header(), text.lines())),
            _ => None,
        })
    }

    /// How the cell of this field is shown in a row of the table.
    pub fn cell(&self, row: &Row, field: Field) -> Cell {
        let (value, kind) = (&row[field.column], self.kind(row, field.column));
        if Some(field.column) == self.unit {
            let shown = if let Value::Text(unit) = value { unit_beside_number(unit) } else { Cow::Borrowed("") };
            return Cell { quantity: Quantity { number: shown.into_owned(), unit: "" }, bounds: None };
        }
        match field.bounds.map(|[low, high]| (&row[low], &row[high])) {
            None | Some((Value::Missing, Value::Missing)) => Cell { quantity: quantity(value, kind), bounds: None },
            Some((low, high)) => {
                let is_ratio = self.table.columns[field.column].name == "ratio";
                let [low, high] = if is_ratio { bounds_of_ratio(low, high) } else { [low.clone(), high.clone()] };
                let (quantity, bounds) = quantity::estimate(value, &low, &high, kind);
                Cell { quantity, bounds: Some(bounds) }
            }
        }
    }

    /// The kind of a cell: that of its column, or of its row's unit.
    fn kind(&self, row: &Row, column: usize) -> Kind {
        match (self.table.columns[column].kind, self.unit.map(|unit| &row[unit])) {
            (Kind::InRowUnit, Some(Value::Text(unit))) => quantity::kind_of_unit(unit),
            (Kind::InRowUnit, _) => Kind::Number,
            (kind, _) => kind,
        }
    }
}

/// The interval of a ratio as people read it. A bound beyond a factor of 1,000 says nothing: it is 0, or unknown.
fn bounds_of_ratio(low: &Value, high: &Value) -> [Value; 2] {
    const MOST: f64 = 1_000.0;
    let low = if matches!(low, Value::Float(low) if *low < 1.0 / MOST) { Value::Float(0.0) } else { low.clone() };
    let high = if matches!(high, Value::Float(high) if *high > MOST) { Value::Missing } else { high.clone() };
    [low, high]
}

/// The column `unit` of a table that has columns in their row's unit.
pub(crate) fn unit_column(table: &Table) -> Option<usize> {
    let asked_for = table.columns.iter().any(|column| column.kind == Kind::InRowUnit);
    table.column("unit").filter(|_| asked_for)
}

/// Whether three neighbouring columns are an estimate and the bounds of its interval.
fn is_estimate(columns: &[Column]) -> bool {
    let [point, low, high] = columns else { return false };
    let is_number = !point.kind.is_text() && point.kind != Kind::Flag;
    let alike = |column: &Column| column.kind == point.kind && column.unit == point.unit;
    let prefix = low.name.strip_suffix("low").filter(|prefix| high.name.strip_suffix("high") == Some(prefix));
    let of_point = |prefix: &str| match prefix.strip_suffix('_') {
        Some(stem) => point.name == stem || point.name.starts_with(prefix),
        None => prefix.is_empty(),
    };
    is_number && alike(low) && alike(high) && prefix.is_some_and(of_point)
}

/// How strongly a verdict is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A change.
    Strong,
    /// A regression.
    Alarm,
    /// Equivalent or passed.
    Calm,
    /// Inconclusive.
    Faint,
}

impl Tone {
    /// The tone of a cell; none if it is no verdict.
    pub fn of(column: &Column, value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        if !is_verdict(column) {
            return None;
        }
        match text.as_str() {
            "changed" | "more" | "less" => Some(Tone::Strong),
            "regression" => Some(Tone::Alarm),
            "equivalent" | "pass" => Some(Tone::Calm),
            "inconclusive" => Some(Tone::Faint),
            _ => None,
        }
    }
}

/// Whether a column's texts are words of ours, not names from elsewhere.
pub fn is_prose(column: &Column) -> bool {
    column.kind == Kind::Prose
        || is_verdict(column)
        || ["reason", "allowed", "presence"].contains(&column.name.as_str())
}

/// Whether a column's texts are verdicts.
pub fn is_verdict(column: &Column) -> bool {
    let name = column.name.as_str();
    column.kind == Kind::Text && (name == "verdict" || name == "result" || name.starts_with("verdict_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::findings;

    fn column(name: &str, kind: Kind, unit: &str) -> Column {
        Column::new(name, kind, unit, "")
    }

    /// The text of each field of the row, with the bounds behind it.
    fn read(table: &Table) -> Vec<String> {
        let reading = Reading::of(table);
        let shown = |&field: &Field| {
            let Cell { quantity, bounds } = reading.cell(&table.rows[0], field);
            format!("{quantity} {}", bounds.unwrap_or_default()).trim_end().to_owned()
        };
        reading.fields.iter().map(shown).collect()
    }

    #[test]
    fn an_estimate_and_its_interval_are_one_part_and_numbers_have_the_unit_of_the_row() {
        let columns = vec![
            column("metric", Kind::Text, ""),
            column("unit", Kind::Text, ""),
            column("before", Kind::InRowUnit, ""),
            column("difference", Kind::InRowUnit, ""),
            column("difference_low", Kind::InRowUnit, ""),
            column("difference_high", Kind::InRowUnit, ""),
            column("ratio", Kind::Number, ""),
            column("ratio_low", Kind::Number, ""),
            column("ratio_high", Kind::Number, ""),
        ];
        let mut table = Table::new("compare_runs", "", columns);
        let mut row = |unit: &str, [before, difference, low, high]: [f64; 4]| {
            let ratio = [0.512, 0.481, 0.553].map(Value::from);
            let numbers = [before, difference, low, high].map(Value::from);
            let names = ["p99".into(), unit.into()];
            table.rows = vec![names.into_iter().chain(numbers).chain(ratio).collect()];
            read(&table)[1..].join(" | ")
        };
        assert_eq!(
            row("ns/step", [4.2e6, -2.05e6, -2.3e6, -0.95e6]),
            "/step | 4.20 ms | -2.05 ms [-2.30, -0.95] | 0.51 [0.48, 0.55]"
        );
        assert_eq!(
            row("bytes", [1536.0, 0.0, -512.0, 2048.0]),
            " | 1.50 KiB | 0 B [-512, 2048] | 0.51 [0.48, 0.55]".trim_start_matches('|')
        );
        assert_eq!(row("percent", [97.0, 1.0, 0.5, 1.5]), "% | 97.00 | 1.00 [0.50, 1.50] | 0.51 [0.48, 0.55]");
        assert_eq!(
            row("faults/step", [1.25, 0.0, -0.1, 0.1]),
            "faults/step | 1.25 | 0.00 [-0.10, 0.10] | 0.51 [0.48, 0.55]"
        );
    }

    #[test]
    fn ends_are_found_by_their_prefix_and_place() {
        let duration = |name: &str| column(name, Kind::Duration, "ns");
        let fields = |columns: Vec<Column>| -> Vec<usize> {
            Reading::of(&Table::new("t", "", columns)).fields.iter().map(|field| field.column).collect()
        };
        let named = |names: [&str; 4]| fields(names.map(duration).into());
        assert_eq!(named(["difference", "low", "high", "slow"]), [0, 3]);
        assert_eq!(named(["self_difference", "self_low", "self_high", "slow"]), [0, 3]);
        assert_eq!(named(["ratio", "ratio_low", "ratio_high", "slow"]), [0, 3]);
        assert_eq!(named(["ratio", "share_low", "share_high", "slow"]), [0, 1, 2, 3], "of another");
        assert_eq!(named(["ratio", "ratio_low", "p", "ratio_high"]), [0, 1, 2, 3], "apart");
        assert_eq!(named(["ratio", "flow", "fhigh", "slow"]), [0, 1, 2, 3], "`flow` is no end of `ratio`");
        let mixed = vec![duration("ratio"), column("ratio_low", Kind::Number, ""), duration("ratio_high")];
        assert_eq!(fields(mixed), [0, 1, 2], "of other kinds");
        let names = ["f", "low", "high"].map(|name| column(name, Kind::Text, ""));
        assert_eq!(fields(names.into()), [0, 1, 2]);
    }

    #[test]
    fn an_unknown_interval_is_hidden_and_half_of_one_is_shown() {
        let columns = ["d", "d_low", "d_high"].map(|name| column(name, Kind::Number, ""));
        let mut table = Table::new("t", "", columns.into());
        let mut row = |values: [Value; 3]| {
            table.rows = vec![values.into()];
            read(&table).remove(0)
        };
        assert_eq!(row([2.0.into(), Value::Missing, Value::Missing]), "2.00");
        assert_eq!(row([2.0.into(), 1.5.into(), Value::Missing]), "2.00 [1.50, –]");
        assert_eq!(row([Value::Missing, Value::Missing, Value::Missing]), "–");
    }

    #[test]
    fn cards_keep_their_numbers_and_any_column_may_be_the_first() {
        let facts = |table: &Table| {
            let reading = Reading::of(table);
            let names = reading.card_fields(&table.rows[0]).map(|field| table.columns[field.column].name.clone());
            (reading.numbers().collect::<Vec<_>>(), names.collect::<Vec<_>>().join(" "))
        };
        let mut table = findings();
        assert_eq!(facts(&table), (vec![2, 1], "gain".to_owned()));
        table.drop_columns(&["number"]);
        table.columns.swap(0, 1);
        table.rows.iter_mut().for_each(|row| row.swap(0, 1));
        assert_eq!(facts(&table), (vec![1, 2], "gain".to_owned()));
    }

    #[test]
    fn only_columns_of_verdicts_have_a_tone() {
        let tone = |name: &str, text: &str| Tone::of(&column(name, Kind::Text, ""), &text.into());
        assert_eq!(tone("verdict", "changed"), Some(Tone::Strong));
        assert_eq!(tone("verdict_to_first", "equivalent"), Some(Tone::Calm));
        assert_eq!(tone("result", "regression"), Some(Tone::Alarm));
        assert_eq!(tone("verdict", "inconclusive"), Some(Tone::Faint));
        assert_eq!(tone("function", "changed"), None);
        assert_eq!(tone("verdict", "strange"), None);
    }
}

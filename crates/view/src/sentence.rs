//! Rows of comparisons as sentences, for headings, pull requests and test reports.

use stepscope_model::{Kind, Table, Value};

use crate::reading::{Cell, Field, Reading};
use stepscope_model::quantity::{Quantity, unit_beside_number};

/// A row of a comparison as a sentence: `step.p99 12.3 ms → 14.1 ms: ×1.15 [1.09, 1.21]`, `rss.peak 1.20 GiB → 1.21 GiB`.
///
/// The table has columns `before` and `after`; one of the columns `metric`, `function`, `thread` and
/// `category` names the row. The sentence ends with the `ratio` and its interval, if known. `None` if a side is unknown.
pub fn change(table: &Table, row: usize) -> Option<String> {
    let reading = Reading::of(table);
    let row = table.rows.get(row)?;
    let shown = |name: &str| -> Option<Cell> {
        let column = table.column(name).filter(|&column| row[column] != Value::Missing)?;
        Some(reading.cell(row, *reading.fields.iter().find(|field| field.column == column)?))
    };
    let name = match &row[name_column(table)?] {
        Value::Text(name) => name.as_str(),
        _ => return None,
    };
    let (before, after) = (shown("before")?.quantity, shown("after")?.quantity);
    let per = per_unit(table, &reading, row);
    let mut sentence = format!("{name} {before} \u{2192} {after}{per}");
    if let Some(Cell { quantity: Quantity { number, .. }, bounds }) = shown("ratio") {
        let bounds = bounds.map_or(String::new(), |bounds| format!(" {bounds}"));
        sentence.push_str(&format!(": \u{d7}{number}{bounds}"));
    }
    Some(sentence)
}

/// The column that names what a row is about.
fn name_column(table: &Table) -> Option<usize> {
    const NAMES: [&str; 4] = ["metric", "function", "thread", "category"];
    NAMES.iter().find_map(|name| table.column(name))
}

/// The part of the unit that the numbers do not show.
fn per_unit(table: &Table, reading: &Reading<'_>, row: &stepscope_model::Row) -> String {
    let before = table.column("before").map(|column| &table.columns[column]);
    let unit = match (before, table.column("unit")) {
        (Some(before), _) if before.kind != Kind::InRowUnit => unit_beside_number(&before.unit).into_owned(),
        (_, Some(column)) => reading.cell(row, Field { column, bounds: None }).quantity.number,
        _ => String::new(),
    };
    if unit.is_empty() || unit.starts_with('/') { unit } else { format!(" {unit}") }
}

#[cfg(test)]
mod tests {
    use stepscope_model::Column;

    use super::*;

    fn sentence(unit: &str, [before, after]: [f64; 2], ratio: [Option<f64>; 3]) -> Option<String> {
        let names = ["scenario", "metric", "unit"].map(|name| Column::new(name, Kind::Text, "", ""));
        let sides = ["before", "after"].map(|name| Column::new(name, Kind::InRowUnit, "", ""));
        let ratios = ["ratio", "ratio_low", "ratio_high"].map(|name| Column::new(name, Kind::Number, "", ""));
        let columns = names.into_iter().chain(sides).chain(ratios);
        let mut table = Table::new("gate", "", columns.collect());
        let numbers = [before, after].map(Value::from).into_iter().chain(ratio.map(Value::from));
        table.push(["shapes".into(), "p99".into(), unit.into()].into_iter().chain(numbers).collect());
        change(&table, 0)
    }

    #[test]
    fn a_sentence_has_units_and_the_interval() {
        let ratio = [Some(1.15), Some(1.09), Some(1.21)];
        assert_eq!(sentence("ns", [12.3e6, 14.1e6], ratio).unwrap(), "p99 12.3 ms → 14.1 ms: ×1.15 [1.09, 1.21]");
        assert_eq!(sentence("ns/step", [1e3, 2e3], [None; 3]).unwrap(), "p99 1.00 µs → 2.00 µs/step");
        assert_eq!(sentence("faults/step", [1.0, 2.0], [None; 3]).unwrap(), "p99 1.00 → 2.00 faults/step");
        assert_eq!(sentence("", [1.0, 2.0], [Some(2.0), None, None]).unwrap(), "p99 1.00 → 2.00: ×2.00");
        assert_eq!(sentence("", [f64::NAN, 2.0], [None; 3]), None);
    }

    #[test]
    fn functions_have_the_unit_of_their_column() {
        let columns = vec![
            Column::new("function", Kind::Text, "", ""),
            Column::new("before", Kind::Duration, "ns/step", ""),
            Column::new("after", Kind::Duration, "ns/step", ""),
        ];
        let mut table = Table::new("compare_self", "", columns);
        table.push(vec!["gz::Step".into(), 1e6.into(), 2e6.into()]);
        assert_eq!(change(&table, 0).unwrap(), "gz::Step 1.00 ms → 2.00 ms/step");
        assert_eq!(change(&table, 1), None);
    }
}

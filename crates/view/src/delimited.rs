//! Tables for programs: tab- and comma-separated values.
//!
//! The first line has the column headers: each column's `name[unit]`, or its `name` alone where it has no unit (`function`,
//! `count`, `self[ns]`, `self_share[percent]`). Every further line is a row of exact values: integers in full, real
//! numbers with as many digits as bring back the same number, `true` and `false`, and nothing where a value is
//! missing. Notes are not written: they are in the other formats.
//!
//! - CSV is RFC 4180: lines end in CR LF; a field with a comma, a quote, a CR or an LF is quoted, quotes in it doubled.
//! - TSV has a line feed after each row and no quotes: a tab is written `\t`, a line feed `\n`, a carriage return `\r`
//!   and a backslash `\\`, so that a line is always a row and a tab always ends a field.

use std::borrow::Cow;
use std::io::{self, Write};

use stepscope_model::{Column, Table, Value};

/// What separates the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// TSV.
    Tab,
    /// CSV.
    Comma,
}

/// Writes the column headers and all rows.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, delimiter: Delimiter, out: &mut dyn Write) -> io::Result<()> {
    write_record(table.columns.iter().map(header), delimiter, out)?;
    for row in &table.rows {
        write_record(row.iter().map(exact), delimiter, out)?;
    }
    Ok(())
}

fn header(column: &Column) -> Cow<'_, str> {
    if column.unit.is_empty() {
        Cow::Borrowed(&column.name)
    } else {
        Cow::Owned(format!("{}[{}]", column.name, column.unit))
    }
}

fn exact(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Missing => Cow::Borrowed(""),
        Value::Int(integer) => Cow::Owned(integer.to_string()),
        Value::Float(number) => Cow::Owned(number.to_string()),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bool(yes) => Cow::Borrowed(if *yes { "true" } else { "false" }),
    }
}

fn write_record<'a>(
    fields: impl Iterator<Item = Cow<'a, str>>,
    delimiter: Delimiter,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (separator, end): (&[u8], &[u8]) = match delimiter {
        Delimiter::Tab => (b"\t", b"\n"),
        Delimiter::Comma => (b",", b"\r\n"),
    };
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.write_all(separator)?;
        }
        let quoted = match delimiter {
            Delimiter::Tab => escaped(&field),
            Delimiter::Comma => quoted(&field),
        };
        out.write_all(quoted.as_bytes())?;
    }
    out.write_all(end)
}

fn escaped(field: &str) -> Cow<'_, str> {
    if !field.contains(['\t', '\n', '\r', '\\']) {
        return Cow::Borrowed(field);
    }
    Cow::Owned(field.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}

fn quoted(field: &str) -> Cow<'_, str> {
    if !field.contains([',', '"', '\r', '\n']) {
        return Cow::Borrowed(field);
    }
    Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_model::Kind;

    fn text_of(values: Vec<Value>, delimiter: Delimiter) -> String {
        let columns = (0..values.len()).map(|index| Column::new(&format!("c{index}"), Kind::Text, "", "")).collect();
        let mut table = Table::new("t", "T", columns);
        table.push(values);
        let mut out = Vec::new();
        render(&table, delimiter, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_quotes_what_would_be_read_as_structure() {
        let row = vec!["std::pair<int, long>".into(), "say \"hi\"".into(), "two\nlines".into(), " plain ".into()];
        assert_eq!(
            text_of(row, Delimiter::Comma),
            "c0,c1,c2,c3\r\n\"std::pair<int, long>\",\"say \"\"hi\"\"\",\"two\nlines\", plain \r\n"
        );
    }

    #[test]
    fn a_tsv_line_is_always_a_row_and_a_tab_always_ends_a_field() {
        let row =
            vec!["tab\there".into(), "two\nlines\r".into(), "back\\slash \\n".into(), "std::function<bool ".into()];
        assert_eq!(
            text_of(row, Delimiter::Tab),
            "c0\tc1\tc2\tc3\ntab\\there\ttwo\\nlines\\r\tback\\\\slash \\\\n\tstd::function<bool \n"
        );
    }

    #[test]
    fn values_are_exact() {
        let row = vec![u64::MAX.into(), (1.0 / 3.0).into(), Value::Missing, true.into(), 1e21.into()];
        assert_eq!(
            text_of(row, Delimiter::Comma),
            "c0,c1,c2,c3,c4\r\n18446744073709551615,0.3333333333333333,,true,1000000000000000000000\r\n"
        );
    }
}

//! Tables in documents and pull requests: GitHub-flavoured Markdown (<https://github.github.com/gfm/#tables-extension->).

use std::io::{self, Write};

use stepscope_model::{Column, Kind, Note, NoteKind, Row, Table, Value};

use crate::embed::code_spans;
use crate::reading::{Field, Reading, Tone, is_prose, unit_column};
use crate::visible::visible;
use stepscope_model::quantity::unit_beside_name;

/// Writes the title as a bold line, the table with quantities in readable units, and the notes as a list.
///
/// Names are code spans, so that nothing in them is markup. An estimate and its interval are one cell; a verdict of change
/// is bold. Rows with [texts below them](Column::below) are a numbered list.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", prose(&table.title))?;
    let reading = Reading::of(table);
    match reading.has_below() {
        true => write_list(table, &reading, out)?,
        false => write_rows(table, &reading, out)?,
    }
    if table.rows.is_empty() {
        writeln!(out, "\n*No rows.*")?;
    }
    let mut notes: Vec<&Note> = table.notes.iter().collect();
    notes.sort_by_key(|note| note.kind());
    for (index, note) in notes.into_iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let lead = if note.kind() == NoteKind::Loss { "**Warning:** " } else { "" };
        writeln!(out, "{gap}- {lead}{}", prose(&note.to_string()))?;
    }
    Ok(())
}

fn write_rows(table: &Table, reading: &Reading<'_>, out: &mut dyn Write) -> io::Result<()> {
    let columns = || reading.fields.iter().map(|field| &table.columns[field.column]);
    write_line(columns().map(header), out)?;
    write_line(columns().map(|column| rule(column.kind).to_owned()), out)?;
    for row in &table.rows {
        write_line(reading.fields.iter().map(|&field| cell(table, reading, row, field)), out)?;
    }
    Ok(())
}

/// Each row as an item of a list: its first prose in bold, its other fields without details, then the texts below it.
///
/// Markdown counts the items of a numbered list itself. So a list of other numbers is not a numbered one.
fn write_list(table: &Table, reading: &Reading<'_>, out: &mut dyn Write) -> io::Result<()> {
    let heading = reading.heading();
    let is_counted = reading.numbers().eq(1..=table.rows.len() as i128);
    for (row, number) in table.rows.iter().zip(reading.numbers()) {
        let title = heading.map_or(String::new(), |field| cell(table, reading, row, field));
        let fact =
            |field: Field| format!("{} {}", header(&table.columns[field.column]), cell(table, reading, row, field));
        let facts: Vec<String> = reading.card_fields(row).map(fact).collect();
        let (lead, indent) =
            if is_counted { (format!("{number}. **"), "   ") } else { (format!("- **{number}. "), "  ") };
        writeln!(out, "{lead}{title}**<br>{}", facts.join(" · "))?;
        for (name, lines) in reading.below(row) {
            let lines: Vec<String> = lines.map(prose).collect();
            writeln!(out, "{indent}- {}: {}", prose(name), lines.join("<br>"))?;
        }
    }
    Ok(())
}

fn write_line(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    for cell in cells {
        write!(out, "| {cell} ")?;
    }
    writeln!(out, "|")
}

fn header(column: &Column) -> String {
    let name = prose(column.header());
    match unit_beside_name(column) {
        "" => name,
        unit => format!("{name} ({})", prose(unit)),
    }
}

fn rule(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Prose | Kind::Flag => ":--",
        _ => "--:",
    }
}

fn cell(table: &Table, reading: &Reading<'_>, row: &Row, field: Field) -> String {
    let (value, column) = (&row[field.column], &table.columns[field.column]);
    match value {
        Value::Text(text) if text.is_empty() => String::new(),
        Value::Text(text) if is_prose(column) => match Tone::of(column, value) {
            Some(Tone::Strong | Tone::Alarm) => format!("**{}**", prose(text)),
            _ => prose(text),
        },
        Value::Text(_) if unit_column(table) == Some(field.column) => prose(&reading.cell(row, field).quantity.number),
        Value::Text(text) => code(text),
        _ => {
            let cell = reading.cell(row, field);
            let bounds = cell.bounds.map_or(String::new(), |bounds| format!(" {bounds}"));
            format!("{}{bounds}", cell.quantity)
        }
    }
}

/// A code span. A pipe ends a cell even there, unless a backslash is before it.
fn code(text: &str) -> String {
    let text = visible(text).replace('|', "\\|");
    let longest_run = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest_run + 1);
    // One space next to each fence is not part of the span, and keeps backticks and spaces at its ends.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Text in backticks as code spans; the rest with everything escaped that Markdown or HTML could read as markup.
fn prose(text: &str) -> String {
    code_spans(text).map(|(is_code, part)| if is_code { code(part) } else { escaped(part) }).collect()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in visible(text).chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' | '!' | '$') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code_spans_that_nothing_ends_early() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("has ` tick"), "``has ` tick``");
        assert_eq!(code("`at end"), "`` `at end ``");
        assert_eq!(code("std::function<bool "), "` std::function<bool  `");
        assert_eq!(code("line\nbreak"), "`line\\nbreak`");
    }

    #[test]
    fn headers_are_labels_where_columns_have_them() {
        let column = |name: &str| Column::new(name, Kind::Duration, "ns", "");
        assert_eq!(header(&column("before")), "before");
        assert_eq!(header(&column("before").labelled("no_pool")), "no\\_pool");
    }

    #[test]
    fn rows_with_texts_below_are_a_list() {
        let columns = vec![
            Column::new("number", Kind::Count, "", ""),
            Column::new("finding", Kind::Prose, "", ""),
            Column::new("gain", Kind::Duration, "ns", ""),
            Column::new("rtf_after", Kind::Number, "", ""),
            Column::new("evidence", Kind::Text, "", "").below(),
        ];
        let mut table = Table::new("findings", "Findings", columns);
        table.push(vec![1.into(), "`f` scans".into(), 2e6.into(), Value::Missing, "40 %.\nSee `x`.".into()]);
        let mut out = Vec::new();
        render(&table, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "**Findings**\n\n1. **`f` scans**<br>gain 2.00 ms\n   - evidence: 40 %.<br>See `x`.\n");
    }

    #[test]
    fn a_list_in_another_order_keeps_its_numbers() {
        let mut out = Vec::new();
        render(&crate::tests::findings(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("\n- **2. `g` waits**<br>gain 1.00 ms\n  - evidence: 20 %.\n- **1. `f` scans**"),
            "{text}"
        );
    }

    #[test]
    fn prose_is_not_markup() {
        assert_eq!(prose("<script> *a* [b](c) | d"), "\\<script\\> \\*a\\* \\[b\\](c) \\| d");
        assert_eq!(prose("run `a_b | c` *now*"), "run `a_b \\| c` \\*now\\*");
        assert_eq!(prose("a ` alone"), "a \\` alone");
    }
}

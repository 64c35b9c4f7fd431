//! Tables in documents and pull requests: GitHub-flavoured Markdown (<https://github.github.com/gfm/#tables-extension->).

use std::io::{self, Write};

use stepscope_model::{Column, Kind, Row, Table, Value};

use crate::reading::{Part, Reading, Tone, says_words, unit_column};
use crate::visible::visible;
use stepscope_model::quantity::unit_beside_name;

/// Writes the title as a bold line, the table with quantities in readable units, and the notes as a list.
///
/// Names are code spans, so that nothing in them is markup. An estimate and its interval are one cell; a verdict of change
/// is bold.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", prose(&table.title))?;
    let reading = Reading::of(table);
    let columns = || reading.parts.iter().map(|part| &table.columns[part.column]);
    write_line(columns().map(head), out)?;
    write_line(columns().map(|column| rule(column.kind).to_owned()), out)?;
    for row in &table.rows {
        write_line(reading.parts.iter().map(|&part| cell(table, &reading, row, part)), out)?;
    }
    if table.rows.is_empty() {
        writeln!(out, "\n*No rows.*")?;
    }
    for (index, note) in table.notes.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        writeln!(out, "{gap}- {}", prose(&note.to_string()))?;
    }
    Ok(())
}

fn write_line(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    for cell in cells {
        write!(out, "| {cell} ")?;
    }
    writeln!(out, "|")
}

fn head(column: &Column) -> String {
    let name = prose(&column.name);
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

fn cell(table: &Table, reading: &Reading<'_>, row: &Row, part: Part) -> String {
    let (value, column) = (&row[part.column], &table.columns[part.column]);
    match value {
        Value::Text(text) if text.is_empty() => String::new(),
        Value::Text(text) if says_words(column) => match Tone::of(column, value) {
            Some(Tone::Strong | Tone::Alarm) => format!("**{}**", prose(text)),
            _ => prose(text),
        },
        Value::Text(_) if unit_column(table) == Some(part.column) => prose(&reading.cell(row, part).quantity.number),
        Value::Text(text) => code(text),
        _ => {
            let cell = reading.cell(row, part);
            let ends = cell.ends.map_or(String::new(), |ends| format!(" {ends}"));
            format!("{}{ends}", cell.quantity)
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

/// Text with everything escaped that Markdown or HTML could read as markup.
fn prose(text: &str) -> String {
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
    fn prose_is_not_markup() {
        assert_eq!(prose("<script> *a* [b](c) | d"), "\\<script\\> \\*a\\* \\[b\\](c) \\| d");
    }
}

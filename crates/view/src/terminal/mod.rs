//! Tables for people: aligned columns, quantities in readable units, notes below.
//!
//! ```text
//! On-CPU time by function
//! function                    module         owned    self  self_share[%]
//! std::_Hashtable<…>::find    libgz-sim8.so  no     12.3 s           27.96
//! gz::sim::Physics::Update    libgz-sim8.so  yes     816 ms           1.85
//! warning: …
//! note: …
//! ```
//!
//! An estimate and its interval are one cell, `2.10 ms [1.88, 2.31]`. Verdicts have a colour as well as their word. Losses
//! are warnings and come before other notes.
//!
//! [`layout`] chooses the columns that fit into the width of the [`Style`], and the last line counts the others. Only
//! [prose](Kind::Prose) is wrapped, within its column. A single row that does not fit is shown as a list, one line per
//! column. Rows with [texts below them](stepscope_model::Column::below) are cards. Without a width, all columns are shown and all names are whole.

mod layout;

use std::io::{self, Write};

use stepscope_model::quantity::{MISSING, plural, unit_beside_name};
use stepscope_model::{Kind, Note, NoteKind, Row, Table, Value};
use unicode_width::UnicodeWidthStr;

use crate::reading::{Cell, Field, Reading, Tone};
use crate::shorten::shorten;
use crate::style::{Role, Style};
use crate::visible::visible;
use layout::{Form, GAP, Layout, NARROWEST_TEXT, TextColumn};

/// Width to which notes are wrapped if lines have no limit.
const NOTE_WIDTH: usize = 100;

/// Writes the title, the column headers, the rows and the notes.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let reading = Reading::of(table);
    let Layout { columns, hidden, form } = Layout::of(table, &reading, style.width);
    for line in wrapped("", &visible(&table.title), style.width.unwrap_or(usize::MAX)) {
        writeln!(out, "{}", Role::Title.paint(&line, style.colour))?;
    }
    match form {
        // Without rows, no column can be narrower.
        Form::Rows if table.rows.is_empty() && style.width.is_some_and(|width| line_width(&columns) > width) => {}
        Form::Rows => write_rows(table, &columns, style, out)?,
        Form::List => write_list(table, &reading, style, out)?,
        Form::Cards => write_cards(table, &reading, style, out)?,
    }
    if table.rows.is_empty() {
        writeln!(out, "{}", Role::Faint.paint("(no rows)", style.colour))?;
    }
    let mut notes: Vec<&Note> = table.notes.iter().collect();
    notes.sort_by_key(|note| note.kind());
    for note in notes {
        write_note(note.kind(), &note.to_string(), style, out)?;
    }
    match hidden {
        0 => Ok(()),
        _ if table.rows.is_empty() => Ok(()),
        hidden => write_note(NoteKind::Hint, &hidden_columns(hidden), style, out),
    }
}

fn line_width(columns: &[TextColumn]) -> usize {
    columns.iter().map(|column| column.width + column.gap().len()).sum::<usize>().saturating_sub(GAP.len())
}

fn write_note(kind: NoteKind, sentence: &str, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let (lead, role) = match kind {
        NoteKind::Loss => ("warning: ", Role::Warning),
        _ => ("note: ", Role::Faint),
    };
    for line in wrapped(lead, &visible(sentence), style.width.unwrap_or(NOTE_WIDTH)) {
        writeln!(out, "{}", role.paint(&line, style.colour))?;
    }
    Ok(())
}

fn hidden_columns(hidden: usize) -> String {
    let them = if hidden == 1 { "it" } else { "them" };
    format!("{} hidden to fit the line. Show {them} with `--columns all`.", plural(hidden, "column"))
}

fn write_rows(table: &Table, columns: &[TextColumn], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let owned = table.columns.iter().position(|column| column.name == "owned" && column.kind == Kind::Flag);
    if !columns.is_empty() {
        write_line(columns.iter().map(|column| (column.header.as_str(), Role::Header, column)), style, out)?;
    }
    for (index, row) in table.rows.iter().enumerate() {
        let is_owned = owned.is_some_and(|owned| row[owned] == Value::Bool(true));
        let cells: Vec<Vec<String>> = columns.iter().map(|column| column.lines(index)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let cells = columns.iter().zip(&cells).map(|(column, lines)| {
                let cell = lines.get(line).map_or("", String::as_str);
                let role = match column.tones.get(index) {
                    Some(Some(tone)) => Role::of_tone(*tone),
                    _ => role(cell, column.kind, is_owned),
                };
                (cell, role, column)
            });
            write_line(cells, style, out)?;
        }
    }
    Ok(())
}

/// Each row as a card: its first prose, its other fields without details, then the texts below it.
fn write_cards(table: &Table, reading: &Reading<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let heading = reading.heading();
    let numbered = reading.numbers().max().unwrap_or(0).to_string().len();
    let indent = " ".repeat(numbered + 2);
    for (index, (row, number)) in table.rows.iter().zip(reading.numbers()).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let title = heading.map_or_else(String::new, |field| reading.cell(row, field).quantity.number);
        let lead = format!("{number:>numbered$}. ");
        for line in wrapped(&lead, &visible(&title), style.width.unwrap_or(usize::MAX)) {
            writeln!(out, "{}", Role::Header.paint(&line, style.colour))?;
        }
        let fact = |field: Field| {
            let name = visible(table.columns[field.column].header()).into_owned();
            format!("{name} {}", value_with_unit(table, reading, row, field))
        };
        let facts: Vec<String> = reading.card_fields(row).map(fact).collect();
        for line in wrapped(&indent, &facts.join("; "), style.width.unwrap_or(usize::MAX)) {
            writeln!(out, "{line}")?;
        }
        for (header, lines) in reading.below(row) {
            write_below(&format!("{indent}{}: ", visible(header)), lines, style, out)?;
        }
    }
    Ok(())
}

/// A text below a row, after its header.
fn write_below(lead: &str, texts: std::str::Lines<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for (index, text) in texts.enumerate() {
        let lines = wrapped(lead, &visible(text), style.width.unwrap_or(NOTE_WIDTH));
        for (line_index, line) in lines.iter().enumerate() {
            let (before, text) = line.split_at(lead.len());
            let before = if index == 0 && line_index == 0 { before } else { &" ".repeat(lead.width()) };
            writeln!(out, "{}{text}", Role::Faint.paint(before, style.colour))?;
        }
    }
    Ok(())
}

/// The first row, one line per column. Columns without a value are named together in the last line.
fn write_list(table: &Table, reading: &Reading<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let row = &table.rows[0];
    let name_of = |field: &Field| visible(table.columns[field.column].header()).into_owned();
    let (unknown, known): (Vec<Field>, Vec<Field>) =
        reading.fields.iter().partition(|field| row[field.column] == Value::Missing);
    let columns = || known.iter().map(|field| &table.columns[field.column]);
    let names: Vec<String> = known.iter().map(name_of).collect();
    let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(longest + GAP.len())).max(NARROWEST_TEXT);
    for ((name, column), &field) in names.iter().zip(columns()).zip(&known) {
        let value = &row[field.column];
        let shown = value_with_unit(table, reading, row, field);
        let lines = match column.kind {
            Kind::Prose => wrapped("", &shown, room),
            _ => vec![shorten(&shown, room).into_owned()],
        };
        let padding = " ".repeat(longest - name.width());
        let role = Tone::of(column, value).map_or_else(|| role(&shown, Kind::Text, false), Role::of_tone);
        for (index, line) in lines.iter().enumerate() {
            let lead = if index == 0 { format!("{name}{padding}") } else { " ".repeat(longest) };
            writeln!(out, "{lead}{GAP}{}", role.paint(line, style.colour))?;
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = unknown.iter().map(name_of).collect();
    for line in wrapped("unknown: ", &names.join(", "), style.width.unwrap_or(NOTE_WIDTH)) {
        writeln!(out, "{}", Role::Faint.paint(&line, style.colour))?;
    }
    Ok(())
}

/// A value with its unit and its interval, for a place that has no column header.
fn value_with_unit(table: &Table, reading: &Reading<'_>, row: &Row, field: Field) -> String {
    let unit = match unit_beside_name(&table.columns[field.column]) {
        unit if unit.is_empty() || row[field.column] == Value::Missing => String::new(),
        unit if unit.starts_with('/') => unit.to_owned(),
        unit => format!(" {unit}"),
    };
    let Cell { quantity, bounds } = reading.cell(row, field);
    let bounds = bounds.map_or(String::new(), |bounds| format!(" {bounds}"));
    format!("{}{unit}{bounds}", visible(&quantity.to_string()))
}

fn role(cell: &str, kind: Kind, is_owned: bool) -> Role {
    match kind {
        _ if cell.trim_end() == MISSING => Role::Faint,
        Kind::Text | Kind::Prose | Kind::Flag if is_owned => Role::Owned,
        Kind::Flag => Role::Faint,
        _ => Role::Plain,
    }
}

fn write_line<'a>(
    cells: impl ExactSizeIterator<Item = (&'a str, Role, &'a TextColumn)>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cells: Vec<_> = cells.collect();
    let last = cells.iter().rposition(|(cell, ..)| !cell.trim_end().is_empty()).unwrap_or(0);
    for (index, (cell, role, column)) in cells.into_iter().take(last + 1).enumerate() {
        let gap = if index == 0 { "" } else { column.gap() };
        let padding = " ".repeat(column.width.saturating_sub(cell.width()));
        let shown = if index == last { cell.trim_end() } else { cell };
        let painted = role.paint(shown, style.colour);
        match column.is_left_aligned() {
            true if index == last => write!(out, "{gap}{painted}")?,
            true => write!(out, "{gap}{painted}{padding}")?,
            false => write!(out, "{gap}{padding}{painted}")?,
        }
    }
    writeln!(out)
}

/// Lines of at most `width` columns, broken at spaces; those after the first are indented under the text. Text in
/// backticks, such as a command, is not broken if a line holds it; a word that no line holds is not broken.
fn wrapped(lead: &str, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(lead.len());
    let mut lines = Vec::new();
    let mut line = lead.to_owned();
    let mut is_fresh = true;
    for word in words(text, width.saturating_sub(lead.len())) {
        if !is_fresh && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(&word);
        is_fresh = false;
    }
    lines.push(line);
    lines
}

/// The words of a text. Words in one pair of backticks that fit into `room` together are one.
fn words(text: &str, room: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_code = false;
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if is_code && last.width() + 1 + word.width() <= room => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        is_code ^= word.matches('`').count() % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use stepscope_model::Column;

    use super::*;

    #[test]
    fn notes_are_wrapped_at_spaces_and_long_words_are_not_broken() {
        assert_eq!(wrapped("note: ", "a bb ccc dddd", 12), ["note: a bb", "      ccc", "      dddd"]);
        assert_eq!(wrapped("note: ", "unbreakable_word", 8), ["note: unbreakable_word"]);
        assert_eq!(wrapped("", "run `sudo sysctl a=1` once", 18), ["run", "`sudo sysctl a=1`", "once"]);
        assert_eq!(wrapped("", "run `sudo sysctl a=1` once", 12), ["run", "`sudo sysctl", "a=1` once"]);
    }

    #[test]
    fn rows_with_texts_below_are_cards() {
        let columns = vec![
            Column::new("number", Kind::Count, "", "").labelled("#").essential(),
            Column::new("finding", Kind::Prose, "", "").essential(),
            Column::new("gain", Kind::Duration, "ns", "").essential(),
            Column::new("evidence", Kind::Text, "", "").below(),
            Column::new("advice", Kind::Text, "", "").labelled("to do").below(),
        ];
        let mut table = Table::new("findings", "Findings", columns);
        let evidence = "It takes 40 % of the CPU time. See `stepscope explain 'a b'`.\nIt runs 12 times a step.";
        table.push(vec![
            1.into(),
            "`f` scans all entities".into(),
            2e6.into(),
            evidence.into(),
            "Keep an index.".into(),
        ]);
        table.push(vec![2.into(), "`g` waits".into(), 1e6.into(), Value::Missing, "".into()]);
        let mut out = Vec::new();
        render(&table, &Style { width: Some(50), colour: crate::style::Colour::Never }, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Findings\n\
             1. `f` scans all entities\n\
             \x20  gain 2.00 ms\n\
             \x20  evidence: It takes 40 % of the CPU time. See\n\
             \x20            `stepscope explain 'a b'`.\n\
             \x20            It runs 12 times a step.\n\
             \x20  to do: Keep an index.\n\
             \n\
             2. `g` waits\n\
             \x20  gain 1.00 ms\n"
        );
    }

    #[test]
    fn cards_in_another_order_keep_their_numbers() {
        let mut out = Vec::new();
        render(&crate::tests::findings(), &Style::PLAIN, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\n2. `g` waits\n   gain 1.00 ms\n") && text.contains("\n1. `f` scans\n"), "{text}");
    }

    #[test]
    fn prose_is_wrapped_within_its_column_and_commands_stay_whole() {
        let columns = vec![
            Column::new("dimension", Kind::Text, "", ""),
            Column::new("detail", Kind::Prose, "", ""),
            Column::new("remedy", Kind::Prose, "", ""),
        ];
        let mut table = Table::new("doctor", "Doctor", columns);
        let remedy = "sudo sysctl kernel.perf_event_paranoid=1";
        table.push(vec!["cpu".into(), "The kernel allows no samples of other users' programs.".into(), remedy.into()]);
        table.push(vec!["steps".into(), "".into(), "".into()]);
        let mut out = Vec::new();
        render(&table, &Style { width: Some(74), colour: crate::style::Colour::Never }, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Doctor\n\
             dimension  detail                          remedy\n\
             cpu        The kernel allows no samples    sudo sysctl\n\
             \x20          of other users' programs.       kernel.perf_event_paranoid=1\n\
             steps\n"
        );
    }
}

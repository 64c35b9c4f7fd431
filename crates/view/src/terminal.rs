//! Tables for people: aligned columns, quantities in readable units, notes below.
//!
//! ```text
//! On-CPU time by function
//! function                    module         owned    self  self_share[%]
//! std::_Hashtable<…>::find    libgz-sim8.so  no     12.3 s           27.96
//! gz::sim::Physics::Update    libgz-sim8.so  yes     816 ms           1.85
//! note: …
//! ```
//!
//! Names are whole unless the terminal is too narrow; then the widest columns of text give way, each by
//! [shortening](crate::shorten::shorten) its names. No column is left out: what still does not fit is wrapped by the
//! terminal.

use std::borrow::Cow;
use std::io::{self, Write};

use stepscope_model::{Column, Kind, Table, Value};
use unicode_width::UnicodeWidthStr;

use crate::quantity::{MISSING, Quantity, head_unit, quantity};
use crate::shorten::shorten;
use crate::style::{Role, Style};
use crate::visible::visible;

const GAP: &str = "  ";
/// Text narrower than this tells too little: columns are not shortened further.
const NARROWEST_TEXT: usize = 12;
/// Width to which notes are wrapped where nothing limits the width of a line.
const NOTE_WIDTH: usize = 100;

/// Writes the title, the head, the rows and the notes.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let columns = laid_out(table, style.width);
    let owned = table.columns.iter().position(|column| column.name == "owned" && column.kind == Kind::Flag);
    writeln!(out, "{}", Role::Title.paint(&visible(&table.title), style.colour))?;
    if !columns.is_empty() {
        write_line(columns.iter().map(|column| (&column.head, Role::Head, column)), style, out)?;
    }
    for (index, row) in table.rows.iter().enumerate() {
        let is_owned = owned.is_some_and(|owned| row[owned] == Value::Bool(true));
        let cells = columns.iter().map(|column| {
            let cell = &column.cells[index];
            (cell, role(cell, column.kind, is_owned), column)
        });
        write_line(cells, style, out)?;
    }
    if table.rows.is_empty() {
        writeln!(out, "{}", Role::Faint.paint("(no rows)", style.colour))?;
    }
    for note in &table.notes {
        for line in wrapped("note: ", &visible(note), style.width.unwrap_or(NOTE_WIDTH)) {
            writeln!(out, "{}", Role::Faint.paint(&line, style.colour))?;
        }
    }
    Ok(())
}

/// A column as it is shown.
struct Shown {
    head: String,
    cells: Vec<String>,
    kind: Kind,
    width: usize,
}

fn laid_out(table: &Table, width: Option<usize>) -> Vec<Shown> {
    let mut columns: Vec<Shown> =
        table.columns.iter().enumerate().map(|(index, column)| shown(table, index, column)).collect();
    if let Some(width) = width {
        narrow(&mut columns, width);
    }
    columns
}

fn shown(table: &Table, index: usize, column: &Column) -> Shown {
    let values = table.rows.iter().map(|row| &row[index]);
    let cells = match column.kind {
        Kind::Text => values.map(|value| visible(&quantity(value, column.kind).number).into_owned()).collect(),
        kind => with_aligned_units(values.map(|value| quantity(value, kind))),
    };
    let head = match head_unit(column) {
        "" => column.name.clone(),
        unit => format!("{}[{unit}]", column.name),
    };
    let head = visible(&head).into_owned();
    let width = cells.iter().map(|cell: &String| cell.width()).max().unwrap_or(0).max(head.width());
    Shown { head, cells, kind: column.kind, width }
}

/// Numbers and their units, the units of one width so that the numbers end at the same column.
fn with_aligned_units(quantities: impl Iterator<Item = Quantity>) -> Vec<String> {
    let quantities: Vec<_> = quantities.collect();
    let width = quantities.iter().map(|quantity| quantity.unit.width()).max().unwrap_or(0);
    let gap = if width > 0 { " " } else { "" };
    let cell = |quantity: &Quantity| match quantity.number.as_str() {
        MISSING => format!("{MISSING}{gap}{}", " ".repeat(width)),
        number => {
            let padding = " ".repeat(width - quantity.unit.width());
            format!("{}{gap}{}{padding}", visible(number), quantity.unit)
        }
    };
    quantities.iter().map(cell).collect()
}

/// Takes room from the widest columns of text until the table fits, or none of them can give more.
fn narrow(columns: &mut [Shown], width: usize) {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let fixed: usize =
        columns.iter().filter(|column| column.kind != Kind::Text).map(|column| column.width).sum::<usize>() + gaps;
    let natural: Vec<usize> =
        columns.iter().filter(|column| column.kind == Kind::Text).map(|column| column.width).collect();
    let cap = widest_that_fits(&natural, width.saturating_sub(fixed)).max(NARROWEST_TEXT);
    for column in columns.iter_mut().filter(|column| column.kind == Kind::Text && column.width > cap) {
        column.width = cap.max(column.head.width());
        for cell in &mut column.cells {
            if let Cow::Owned(short) = shorten(cell, column.width) {
                *cell = short;
            }
        }
    }
}

/// The largest cap such that columns of these widths, none wider than the cap, fit into `room` together.
fn widest_that_fits(widths: &[usize], room: usize) -> usize {
    let mut ascending = widths.to_vec();
    ascending.sort_unstable();
    let mut room = room;
    for (index, &width) in ascending.iter().enumerate() {
        let share = room / (ascending.len() - index);
        if width > share {
            return share;
        }
        room -= width;
    }
    usize::MAX
}

fn role(cell: &str, kind: Kind, is_owned: bool) -> Role {
    match kind {
        _ if cell.trim_end() == MISSING => Role::Faint,
        Kind::Text | Kind::Flag if is_owned => Role::Owned,
        Kind::Flag => Role::Faint,
        _ => Role::Plain,
    }
}

fn write_line<'a>(
    cells: impl ExactSizeIterator<Item = (&'a String, Role, &'a Shown)>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let last = cells.len() - 1;
    for (index, (cell, role, column)) in cells.enumerate() {
        let gap = if index == 0 { "" } else { GAP };
        let padding = " ".repeat(column.width.saturating_sub(cell.width()));
        let shown = if index == last { cell.trim_end() } else { cell };
        let painted = role.paint(shown, style.colour);
        match column.kind {
            Kind::Text | Kind::Flag if index == last => write!(out, "{gap}{painted}")?,
            Kind::Text | Kind::Flag => write!(out, "{gap}{painted}{padding}")?,
            _ => write!(out, "{gap}{padding}{painted}")?,
        }
    }
    writeln!(out)
}

/// Lines of at most `width` columns, broken at spaces, those after the first indented under the text.
fn wrapped(lead: &str, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(lead.len());
    let mut lines = Vec::new();
    let mut line = lead.to_owned();
    let mut is_fresh = true;
    for word in text.split_whitespace() {
        if !is_fresh && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_give_way_first() {
        assert_eq!(widest_that_fits(&[10, 80], 60), 50);
        assert_eq!(widest_that_fits(&[70, 80], 60), 30);
        assert_eq!(widest_that_fits(&[10, 20], 60), usize::MAX);
        assert_eq!(widest_that_fits(&[], 0), usize::MAX);
    }

    #[test]
    fn notes_are_wrapped_at_spaces_and_long_words_are_not_broken() {
        assert_eq!(wrapped("note: ", "a bb ccc dddd", 12), ["note: a bb", "      ccc", "      dddd"]);
        assert_eq!(wrapped("note: ", "unbreakable_word", 8), ["note: unbreakable_word"]);
    }
}

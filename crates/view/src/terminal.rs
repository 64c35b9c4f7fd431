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
//! An estimate and its interval are one cell, `2.10 ms [1.88, 2.31]`, of which the interval may be left out. Verdicts have
//! a colour as well as their word.
//!
//! Where nothing limits the width of a line (a file, a pipe), all columns are there and all names are whole. On a terminal
//! only [prose](Kind::Prose) is wrapped, within its column. What has no room is left out by its [importance](Importance), and the last line says so:
//!
//! 1. Essential columns, the first column, and what the reader asked for by name always stay.
//! 2. The others are taken in as long as the names in the essential columns have [their part of the line](NameRoom);
//!    normal columns first, then details, then those in which nothing is known.
//! 3. Names share what is left; those that do not fit are [shortened](crate::shorten::shorten).
//!
//! A single row that does not fit is shown as a list instead, a column a line.

use std::borrow::Cow;
use std::io::{self, Write};

use stepscope_model::{Importance, Kind, Note, Table, Value};
use unicode_width::UnicodeWidthStr;

use crate::reading::{Cell, Part, Reading, Tone};
use crate::shorten::{shorten, shorten_indented};
use crate::style::{Role, Style};
use crate::visible::visible;
use stepscope_model::quantity::{MISSING, Quantity, unit_beside_name};

const GAP: &str = "  ";
/// Text narrower than this tells too little: columns are not shortened further.
const NARROWEST_TEXT: usize = 12;
/// Text beside the names (modules, sources) has so much while names are short of room.
const WIDEST_BESIDE: usize = 24;
/// Prose is wrapped to no less than this.
const NARROWEST_PROSE: usize = 30;
/// Width to which notes are wrapped where nothing limits the width of a line.
const NOTE_WIDTH: usize = 100;

/// Writes the title, the head, the rows and the notes.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let Layout { columns, left_out, form } = Layout::of(table, style.width);
    for line in wrapped("", &visible(&table.title), style.width.unwrap_or(usize::MAX)) {
        writeln!(out, "{}", Role::Title.paint(&line, style.colour))?;
    }
    match form {
        Form::Rows => write_rows(table, &columns, style, out)?,
        Form::List => write_list(table, style, out)?,
    }
    if table.rows.is_empty() {
        writeln!(out, "{}", Role::Faint.paint("(no rows)", style.colour))?;
    }
    for note in table.notes.iter().map(Note::to_string).chain(said(&left_out)) {
        for line in wrapped("note: ", &visible(&note), style.width.unwrap_or(NOTE_WIDTH)) {
            writeln!(out, "{}", Role::Faint.paint(&line, style.colour))?;
        }
    }
    Ok(())
}

fn write_rows(table: &Table, columns: &[Shown], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let owned = table.columns.iter().position(|column| column.name == "owned" && column.kind == Kind::Flag);
    if !columns.is_empty() {
        write_line(columns.iter().map(|column| (&column.head, Role::Head, column)), style, out)?;
    }
    for (index, row) in table.rows.iter().enumerate() {
        let is_owned = owned.is_some_and(|owned| row[owned] == Value::Bool(true));
        let cells: Vec<Vec<String>> = columns.iter().map(|column| column.lines(index)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let empty = String::new();
        for line in 0..height {
            let cells = columns.iter().zip(&cells).map(|(column, lines)| {
                let cell = lines.get(line).unwrap_or(&empty);
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

/// The first row, a column a line.
fn write_list(table: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let (reading, row) = (Reading::of(table), &table.rows[0]);
    let columns = || reading.parts.iter().map(|part| &table.columns[part.column]);
    let names: Vec<String> = columns().map(|column| visible(&column.name).into_owned()).collect();
    let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(longest + GAP.len())).max(NARROWEST_TEXT);
    for ((name, column), &part) in names.iter().zip(columns()).zip(&reading.parts) {
        let value = &row[part.column];
        let unit = match unit_beside_name(column) {
            unit if unit.is_empty() || *value == Value::Missing => String::new(),
            unit if unit.starts_with('/') => unit.to_owned(),
            unit => format!(" {unit}"),
        };
        let Cell { quantity, ends } = reading.cell(row, part);
        let ends = ends.map_or(String::new(), |ends| format!(" {ends}"));
        let shown = format!("{}{unit}{ends}", visible(&quantity.to_string()));
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
    Ok(())
}

/// Which columns are left out, and how to see them.
fn said(left_out: &[&str]) -> Option<String> {
    let them = match left_out.len() {
        0 => return None,
        1 => "1 column has no room here",
        several => &format!("{several} columns have no room here"),
    };
    Some(format!("{them}: {}. Choose with `--columns NAME,...|all`; `--format tsv` has them all.", left_out.join(", ")))
}

/// A column as it is shown.
struct Shown {
    /// The table's columns that it shows.
    of: Vec<usize>,
    head: String,
    cells: Vec<String>,
    /// The tone of each verdict; empty in columns of anything else.
    tones: Vec<Option<Tone>>,
    kind: Kind,
    place: Place,
    width: usize,
    importance: Importance,
}

/// Where a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Apart from the one before it.
    Apart,
    /// Close to it: the intervals of the estimates in it.
    Close,
}

impl Shown {
    fn gap(&self) -> &'static str {
        match self.place {
            Place::Apart => GAP,
            Place::Close => " ",
        }
    }

    /// Whether its cells begin at the same place, and not end at it.
    fn is_left_aligned(&self) -> bool {
        self.kind.is_text() || self.kind == Kind::Flag || self.place == Place::Close
    }

    fn is_name(&self) -> bool {
        self.kind == Kind::Text && self.importance == Importance::Essential
    }
}

/// Whether a table's rows are lines, or its only row is a list.
enum Form {
    Rows,
    List,
}

/// How a table is shown.
struct Layout<'t> {
    columns: Vec<Shown>,
    left_out: Vec<&'t str>,
    form: Form,
}

impl<'t> Layout<'t> {
    fn of(table: &'t Table, width: Option<usize>) -> Self {
        let reading = Reading::of(table);
        let all: Vec<Shown> = reading.parts.iter().flat_map(|&part| shown(table, &reading, part)).collect();
        let Some(width) = width else {
            return Self { columns: all, left_out: Vec::new(), form: Form::Rows };
        };
        let has_room = with_room(table, &all, width);
        if table.rows.len() == 1 && (has_room.contains(&false) || least_width(&all) > width) {
            return Self { columns: Vec::new(), left_out: Vec::new(), form: Form::List };
        }
        let without_room = all.iter().zip(&has_room).filter(|(_, has_room)| !**has_room);
        let left_out =
            without_room.flat_map(|(shown, _)| &shown.of).map(|&index| table.columns[index].name.as_str()).collect();
        let mut columns: Vec<Shown> =
            all.into_iter().zip(&has_room).filter(|(_, has_room)| **has_room).map(|(column, _)| column).collect();
        narrow(&mut columns, width);
        Self { columns, left_out, form: Form::Rows }
    }
}

/// The part of a line that the essential columns of text need before a column of this importance is taken in: a column
/// that is worth its room has two fifths of the line beside it, a detail three fifths, and more where there are several.
struct NameRoom {
    names: usize,
    width: usize,
}

impl NameRoom {
    fn of_each(&self, beside: Importance) -> usize {
        let fifths = match beside {
            Importance::Detail => 3,
            Importance::Normal | Importance::Essential => 2,
        };
        let several = self.names.saturating_sub(1);
        self.width * (fifths + several).min(5) / 5 / self.names.max(1)
    }
}

/// One flag a column: whether it has room on a line of this width.
fn with_room(table: &Table, columns: &[Shown], width: usize) -> Vec<bool> {
    let names = NameRoom { names: columns.iter().filter(|column| column.is_name()).count(), width };
    let wanted = |column: &Shown, beside: Importance| match column.kind {
        Kind::Text if column.is_name() => column.width.min(names.of_each(beside).max(NARROWEST_TEXT)),
        Kind::Text => column.width.min(WIDEST_BESIDE),
        Kind::Prose => column.width.min(NARROWEST_PROSE),
        _ => column.width,
    };
    let nothing_known = |index: usize| {
        let is_missing = |row: &stepscope_model::Row| columns[index].of.iter().all(|&of| row[of] == Value::Missing);
        !table.rows.is_empty() && table.rows.iter().all(is_missing)
    };
    let mut has_room: Vec<bool> = columns.iter().map(|column| column.importance == Importance::Essential).collect();
    let mut order: Vec<usize> = (0..columns.len()).filter(|&index| !has_room[index]).collect();
    order.sort_by_key(|&index| (nothing_known(index), std::cmp::Reverse(columns[index].importance), index));
    for candidate in order {
        if columns[candidate].place == Place::Close && !has_room[candidate - 1] {
            continue;
        }
        has_room[candidate] = true;
        let beside = columns[candidate].importance;
        let taken = columns.iter().zip(&has_room).filter(|(_, has_room)| **has_room);
        let widths: usize = taken.map(|(column, _)| wanted(column, beside) + column.gap().len()).sum();
        has_room[candidate] = widths.saturating_sub(GAP.len()) <= width;
    }
    has_room
}

/// Width of a line of all these columns with every text as narrow as it may be.
fn least_width(columns: &[Shown]) -> usize {
    let least = |column: &Shown| match column.kind {
        Kind::Text => column.width.min(NARROWEST_TEXT),
        Kind::Prose => column.width.min(NARROWEST_PROSE),
        _ => column.width,
    };
    let widths: usize = columns.iter().map(|column| least(column) + column.gap().len()).sum();
    widths.saturating_sub(GAP.len())
}

/// The column of a part, and that of its intervals.
fn shown(table: &Table, reading: &Reading<'_>, part: Part) -> Vec<Shown> {
    let column = &table.columns[part.column];
    let read: Vec<Cell> = table.rows.iter().map(|row| reading.cell(row, part)).collect();
    let values = || table.rows.iter().map(|row| &row[part.column]);
    let tones: Vec<Option<Tone>> = values().map(|value| Tone::of(column, value)).collect();
    let head = match unit_beside_name(column) {
        "" => column.name.clone(),
        unit => format!("{}[{unit}]", column.name),
    };
    let cells = match column.kind {
        Kind::Text | Kind::Prose => read.iter().map(|cell| visible(&cell.quantity.number).into_owned()).collect(),
        _ => with_aligned_units(read.iter().map(|cell| &cell.quantity)),
    };
    let mut shown = vec![Shown {
        of: vec![part.column],
        width: width_of(&head, &cells),
        head: visible(&head).into_owned(),
        cells,
        tones: if tones.iter().any(Option::is_some) { tones } else { Vec::new() },
        kind: column.kind,
        place: Place::Apart,
        importance: if part.column == 0 { Importance::Essential } else { column.importance },
    }];
    if let Some([low, high]) = part.ends {
        let cells: Vec<String> = read.into_iter().map(|cell| cell.ends.unwrap_or_default()).collect();
        let head = "[low, high]".to_owned();
        shown.push(Shown {
            of: vec![low, high],
            width: width_of(&head, &cells),
            head,
            cells,
            tones: Vec::new(),
            kind: column.kind,
            place: Place::Close,
            importance: table.columns[low].importance.min(table.columns[high].importance),
        });
    }
    shown
}

fn width_of(head: &str, cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(visible(head).width())
}

/// Numbers and their units, the units of one width so that the numbers end at the same column.
fn with_aligned_units<'q>(quantities: impl Iterator<Item = &'q Quantity>) -> Vec<String> {
    let quantities: Vec<_> = quantities.collect();
    let width = quantities.iter().map(|quantity| quantity.unit.width()).max().unwrap_or(0);
    let gap = if width > 0 { " " } else { "" };
    let cell = |quantity: &&Quantity| match quantity.number.as_str() {
        MISSING => format!("{MISSING}{gap}{}", " ".repeat(width)),
        number => {
            let padding = " ".repeat(width - quantity.unit.width());
            format!("{}{gap}{}{padding}", visible(number), quantity.unit)
        }
    };
    quantities.iter().map(cell).collect()
}

/// Wraps prose to what the names leave, and takes room from the widest columns of text until the table fits, or none of them can give more: from those beside the
/// names first, which have at most [`WIDEST_BESIDE`] while a name is short of room.
fn narrow(columns: &mut [Shown], width: usize) {
    let gaps: usize = columns.iter().skip(1).map(|column| column.gap().len()).sum();
    let fixed: usize =
        columns.iter().filter(|column| !column.kind.is_text()).map(|column| column.width).sum::<usize>() + gaps;
    let room = width.saturating_sub(fixed);
    let widths = |wanted: fn(&Shown) -> bool| -> Vec<usize> {
        columns.iter().filter(|column| wanted(column)).map(|column| column.width).collect()
    };
    let (names, beside) = (widths(Shown::is_name), widths(|column| column.kind == Kind::Text && !column.is_name()));
    let prose = widths(|column| column.kind == Kind::Prose);
    let least_prose: usize = prose.iter().map(|width| (*width).min(NARROWEST_PROSE)).sum();
    let reserved: usize = beside.iter().map(|width| (*width).min(WIDEST_BESIDE)).sum::<usize>() + least_prose;
    let cap_names = widest_that_fits(&names, room.saturating_sub(reserved)).max(NARROWEST_TEXT);
    let used: usize = names.iter().map(|width| (*width).min(cap_names)).sum();
    let cap_beside = widest_that_fits(&beside, room.saturating_sub(used + least_prose)).max(NARROWEST_TEXT);
    let used = used + beside.iter().map(|width| (*width).min(cap_beside)).sum::<usize>();
    let cap_prose = widest_that_fits(&prose, room.saturating_sub(used)).max(NARROWEST_PROSE);
    for column in columns.iter_mut().filter(|column| column.kind == Kind::Prose) {
        column.width = column.width.min(cap_prose);
    }
    for column in columns.iter_mut().filter(|column| column.kind == Kind::Text) {
        let cap = if column.is_name() { cap_names } else { cap_beside };
        if column.width > cap {
            column.cut(cap);
        }
    }
}

impl Shown {
    /// The lines of a row's cell.
    fn lines(&self, row: usize) -> Vec<String> {
        match self.kind {
            Kind::Prose => wrapped("", &self.cells[row], self.width),
            _ => vec![self.cells[row].clone()],
        }
    }

    /// Shortens the texts of a column, those of a tree with their indentation.
    fn cut(&mut self, width: usize) {
        self.width = width;
        self.head = shorten(&self.head, width).into_owned();
        if self.cells.iter().any(|cell| cell.starts_with(' ')) {
            shorten_indented(&mut self.cells, width);
            return;
        }
        for cell in &mut self.cells {
            if let Cow::Owned(short) = shorten(cell, width) {
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
        Kind::Text | Kind::Prose | Kind::Flag if is_owned => Role::Owned,
        Kind::Flag => Role::Faint,
        _ => Role::Plain,
    }
}

fn write_line<'a>(
    cells: impl ExactSizeIterator<Item = (&'a String, Role, &'a Shown)>,
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
    use stepscope_model::Column;

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

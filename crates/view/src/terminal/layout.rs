//! Which columns a terminal shows, and how wide each is.
//!
//! 1. Essential columns that have a value, the first column, and columns that the reader chose always stay.
//! 2. Normal columns are taken while the names keep [a least part of the line](NameRoom): numbers first, then names. Then
//!    details, beside wider names; then columns of zeros. Columns without any value are shown if all others are.
//! 3. Names share what is left. Those that do not fit are [shortened](crate::shorten::shorten_column).

use stepscope_model::quantity::{MISSING, Quantity, unit_beside_name};
use stepscope_model::{Importance, Kind, Row, Table, Value};
use unicode_width::UnicodeWidthStr;

use super::wrapped;
use crate::reading::{Cell, Field, Reading, Tone, is_prose, unit_column};
use crate::shorten::{shorten, shorten_column, shorten_indented};
use crate::visible::visible;

/// Between columns.
pub(super) const GAP: &str = "  ";
/// Texts are not shortened further than this.
pub(super) const NARROWEST_TEXT: usize = 12;
/// Text beside the names (modules, sources) is not wider than this while names are shortened.
const WIDEST_BESIDE: usize = 24;
/// Prose is wrapped to no less than this.
const NARROWEST_PROSE: usize = 30;

/// How the rows of a table are written: as lines, the only row as a list, or as cards.
pub(super) enum Form {
    Rows,
    List,
    /// A row is a heading with lines below it.
    Cards,
}

/// How a table is shown.
pub(super) struct Layout {
    pub columns: Vec<TextColumn>,
    /// How many columns the line has no room for. The details of cards are left out by design, and do not count.
    pub hidden: usize,
    pub form: Form,
}

impl Layout {
    pub fn of(table: &Table, reading: &Reading<'_>, width: Option<usize>) -> Self {
        if reading.has_below() {
            return Self { columns: Vec::new(), hidden: 0, form: Form::Cards };
        }
        let all: Vec<TextColumn> =
            reading.fields.iter().flat_map(|&field| TextColumn::of_field(table, reading, field)).collect();
        let Some(width) = width else { return Self { columns: all, hidden: 0, form: Form::Rows } };
        let fits = fitting(table, &all, width);
        if table.rows.len() == 1 && (fits.contains(&false) || least_width(&all) > width) {
            return Self { columns: Vec::new(), hidden: 0, form: Form::List };
        }
        let (shown, hidden): (Vec<_>, Vec<_>) = all.into_iter().zip(fits).partition(|(_, fits)| *fits);
        let hidden = hidden.iter().map(|(column, _)| column.columns.len()).sum();
        let mut columns: Vec<TextColumn> = shown.into_iter().map(|(column, _)| column).collect();
        narrow(&mut columns, width);
        Self { columns, hidden, form: Form::Rows }
    }
}

/// A column of text on the terminal.
pub(super) struct TextColumn {
    /// The table's columns that it shows.
    columns: Vec<usize>,
    pub header: String,
    pub cells: Vec<String>,
    /// The tone of each verdict; empty in other columns.
    pub tones: Vec<Option<Tone>>,
    pub kind: Kind,
    pub width: usize,
    importance: Importance,
    /// Whether it holds the intervals of the column before it.
    is_interval: bool,
    /// Whether its texts are a few words of ours, such as verdicts, and no names.
    is_words: bool,
}

impl TextColumn {
    /// The column of a field, and that of its intervals.
    fn of_field(table: &Table, reading: &Reading<'_>, field: Field) -> Vec<Self> {
        let column = &table.columns[field.column];
        let cells: Vec<Cell> = table.rows.iter().map(|row| reading.cell(row, field)).collect();
        let values = || table.rows.iter().map(|row| &row[field.column]);
        let tones: Vec<Option<Tone>> = values().map(|value| Tone::of(column, value)).collect();
        let header = match unit_beside_name(column) {
            "" => visible(column.header()).into_owned(),
            unit => format!("{}[{unit}]", visible(column.header())),
        };
        let texts = match column.kind {
            Kind::Text | Kind::Prose => cells.iter().map(|cell| visible(&cell.quantity.number).into_owned()).collect(),
            _ => with_aligned_units(cells.iter().map(|cell| &cell.quantity)),
        };
        // A number must not lose its unit.
        let is_unit = unit_column(table) == Some(field.column);
        let width = width_of(&header, &texts);
        // Their last word is the most informative: `metric.latency.p99`.
        let are_metrics = column.name == "metric" && width <= WIDEST_BESIDE;
        let mut columns = vec![Self {
            columns: vec![field.column],
            width,
            header: visible(&header).into_owned(),
            cells: texts,
            tones: if tones.iter().any(Option::is_some) { tones } else { Vec::new() },
            kind: column.kind,
            importance: if field.column == 0 || is_unit { Importance::Essential } else { column.importance },
            is_interval: false,
            is_words: is_prose(column) || is_unit || are_metrics,
        }];
        if let Some([low, high]) = field.bounds {
            let cells: Vec<String> = cells.into_iter().map(|cell| cell.bounds.unwrap_or_default()).collect();
            let header = "[low, high]".to_owned();
            columns.push(Self {
                columns: vec![low, high],
                width: width_of(&header, &cells),
                header,
                cells,
                tones: Vec::new(),
                kind: column.kind,
                importance: table.columns[low].importance.min(table.columns[high].importance),
                is_interval: true,
                is_words: false,
            });
        }
        columns
    }

    pub fn gap(&self) -> &'static str {
        if self.is_interval { " " } else { GAP }
    }

    /// Whether its cells begin at the same place, and not end at it.
    pub fn is_left_aligned(&self) -> bool {
        self.kind.is_text() || self.kind == Kind::Flag || self.is_interval
    }

    /// Whether its texts are shortened.
    fn is_name(&self) -> bool {
        self.kind == Kind::Text && !self.is_words
    }

    fn is_essential_name(&self) -> bool {
        self.is_name() && self.importance == Importance::Essential
    }

    /// The least width of the column.
    fn least_width(&self) -> usize {
        match self.kind {
            Kind::Prose => self.width.min(NARROWEST_PROSE),
            _ if self.is_name() => self.width.min(NARROWEST_TEXT),
            _ => self.width,
        }
    }

    /// The lines of a row's cell.
    pub fn lines(&self, row: usize) -> Vec<String> {
        match self.kind {
            Kind::Prose => wrapped("", &self.cells[row], self.width),
            _ => vec![self.cells[row].clone()],
        }
    }

    /// Shortens the texts, those of a tree with their indentation.
    fn shorten(&mut self, width: usize) {
        self.width = width;
        self.header = shorten(&self.header, width).into_owned();
        match self.cells.iter().any(|cell| cell.starts_with(' ')) {
            true => shorten_indented(&mut self.cells, width),
            false => shorten_column(&mut self.cells, width),
        }
    }
}

fn width_of(header: &str, cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(visible(header).width())
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

/// Width that each essential name keeps before a column of some importance is taken.
struct NameRoom {
    names: usize,
    width: usize,
}

impl NameRoom {
    /// Beside normal columns two fifths of the line, beside details three fifths, and more where there are several names.
    fn beside(&self, importance: Importance) -> usize {
        const LEAST: usize = 16;
        let names = self.names.max(1);
        match importance {
            Importance::Detail => self.width * (2 + names).min(5) / 5 / names,
            Importance::Normal | Importance::Essential => (self.width * 2 / 5).max(LEAST) / names.min(2),
        }
    }
}

/// What a column has to say, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Values,
    Zeros,
    Missing,
}

impl Content {
    fn of(column: &TextColumn, table: &Table) -> Self {
        let values = || table.rows.iter().flat_map(|row: &Row| column.columns.iter().map(|&index| &row[index]));
        let is_zero = |value: &Value| matches!(value, Value::Missing | Value::Int(0)) || *value == Value::Float(0.0);
        match table.rows.is_empty() {
            false if values().all(|value| *value == Value::Missing) => Self::Missing,
            false if values().all(is_zero) => Self::Zeros,
            _ => Self::Values,
        }
    }
}

/// For each column, whether it is shown on a line of this width.
fn fitting(table: &Table, columns: &[TextColumn], width: usize) -> Vec<bool> {
    let room = NameRoom { names: columns.iter().filter(|column| column.is_essential_name()).count(), width };
    let wanted = |column: &TextColumn, beside: Importance| match column.kind {
        Kind::Text if column.is_essential_name() => column.width.min(room.beside(beside).max(NARROWEST_TEXT)),
        Kind::Text if column.is_name() => column.width.min(WIDEST_BESIDE),
        _ => column.least_width(),
    };
    let contents: Vec<Content> = columns.iter().map(|column| Content::of(column, table)).collect();
    let is_essential = |column: &TextColumn| column.importance == Importance::Essential;
    let are_chosen = columns.iter().all(is_essential);
    let stays = |index: usize| are_chosen || index == 0 || contents[index] != Content::Missing;
    let mut fits: Vec<bool> = (0..columns.len()).map(|index| is_essential(&columns[index]) && stays(index)).collect();
    let mut candidates: Vec<usize> = (0..columns.len()).filter(|&index| !fits[index]).collect();
    candidates.sort_by_key(|&index| {
        let column = &columns[index];
        (contents[index], std::cmp::Reverse(column.importance), column.is_name(), index)
    });
    for candidate in candidates {
        let values_are_hidden = (0..columns.len()).any(|index| contents[index] != Content::Missing && !fits[index]);
        if columns[candidate].is_interval && !fits[candidate - 1]
            || contents[candidate] == Content::Missing && values_are_hidden
        {
            continue;
        }
        fits[candidate] = true;
        let beside = match contents[candidate] {
            Content::Values => columns[candidate].importance,
            Content::Zeros | Content::Missing => Importance::Detail,
        };
        let shown = columns.iter().zip(&fits).filter(|(_, fits)| **fits);
        let widths: usize = shown.map(|(column, _)| wanted(column, beside) + column.gap().len()).sum();
        fits[candidate] = widths.saturating_sub(GAP.len()) <= width;
    }
    fits
}

/// Width of a line of all these columns with every text as narrow as it may be.
fn least_width(columns: &[TextColumn]) -> usize {
    let widths: usize = columns.iter().map(|column| column.least_width() + column.gap().len()).sum();
    widths.saturating_sub(GAP.len())
}

/// Narrows texts to the line: names beside the essential ones first, then essential names. Prose is wrapped to what the
/// names leave.
fn narrow(columns: &mut [TextColumn], width: usize) {
    type Group = fn(&TextColumn) -> bool;
    const NAMES: Group = TextColumn::is_essential_name;
    const BESIDE: Group = |column| column.is_name() && !column.is_essential_name();
    const PROSE: Group = |column| column.kind == Kind::Prose;
    let gaps: usize = columns.iter().skip(1).map(|column| column.gap().len()).sum();
    let is_fixed = |column: &&TextColumn| !column.is_name() && column.kind != Kind::Prose;
    let fixed: usize = columns.iter().filter(is_fixed).map(|column| column.width).sum::<usize>() + gaps;
    let room = width.saturating_sub(fixed);
    let widths = |group: Group| -> Vec<usize> {
        columns.iter().filter(|column| group(column)).map(|column| column.width).collect()
    };
    let capped = |group: Group, cap: usize| -> usize { widths(group).iter().map(|width| (*width).min(cap)).sum() };
    let fit = |group: Group, room: usize| widest_that_fits(&widths(group), room);
    let least_prose = capped(PROSE, NARROWEST_PROSE);
    let names = fit(NAMES, room.saturating_sub(capped(BESIDE, WIDEST_BESIDE) + least_prose)).max(NARROWEST_TEXT);
    let room = room.saturating_sub(capped(NAMES, names));
    let beside = fit(BESIDE, room.saturating_sub(least_prose)).max(NARROWEST_TEXT);
    let prose = fit(PROSE, room.saturating_sub(capped(BESIDE, beside))).max(NARROWEST_PROSE);
    for column in columns {
        let cap = if column.is_essential_name() { names } else { beside };
        match column.kind {
            Kind::Prose => column.width = column.width.min(prose),
            _ if column.is_name() && column.width > cap => column.shorten(cap),
            _ => {}
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
}

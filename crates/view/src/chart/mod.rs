//! Charts: columns of a table over another, as a picture that needs no script.
//!
//! A [`Chart`] names columns of a [`Table`]; values are placed, axes get round ticks, and what stands out can be pointed
//! at (each bar and point has a title). The scale of the vertical axis is linear from zero, or logarithmic where the
//! largest value would flatten all others; the axis says so.
//!
//! ```
//! use stepscope_model::{Column, Kind, Table};
//! use stepscope_view::chart::{Chart, Mark};
//!
//! let mut table = Table::new(
//!     "step_times",
//!     "Step time",
//!     vec![
//!         Column::new("at", Kind::Duration, "ns", "Time since the start."),
//!         Column::new("duration", Kind::Duration, "ns", "Time from one step to the next."),
//!     ],
//! );
//! table.push(vec![0_u64.into(), 1_000_000_u64.into()]);
//! table.push(vec![1_000_000_u64.into(), 1_200_000_u64.into()]);
//! let svg = Chart::new(table, "at", vec![Mark::Line("duration".into())]).svg();
//! assert!(svg.starts_with("<svg ") && svg.contains("1.00 ms"));
//! ```

mod axis;
mod forest;

pub use stepscope_model::Mark;
use stepscope_model::{Column, Table, Value};

use self::axis::{Axis, Scale, labelled};
pub use self::forest::Forest;
use crate::assets;
use crate::embed::{append, markup};
use crate::shorten::shorten;
use stepscope_model::quantity::number;

/// Columns of a table, drawn over one of them.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Chart {
    /// The values; its title is the chart's.
    pub table: Table,
    /// The column that the horizontal axis shows. For bars it is the start of each.
    pub across: String,
    /// The marks, in this order: later ones lie above earlier ones. Columns that the table lacks are left out.
    pub marks: Vec<Mark>,
    /// Description of the marks; if empty, the names of columns.
    pub caption: String,
    /// Start of the vertical axis.
    pub floor: Floor,
}

/// Start of a vertical axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Floor {
    /// At zero, so that heights are in proportion.
    #[default]
    Zero,
    /// Below the least value: for small changes of something large, such as a history. Bars begin at zero nevertheless.
    Least,
    /// Both axes are logarithmic, if all values are above zero: a power is a straight line.
    Ratios,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 14.0;
/// Room for the names of lines, right of them.
const NAMES: f64 = 210.0;
/// Least distance of two names.
const NAME_HEIGHT: f64 = 14.0;
/// Characters of a name that fit.
const LONGEST_NAME: usize = 30;
/// Colours of lines that have names.
const HUES: usize = 7;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;

impl Chart {
    /// A chart of these columns of a table.
    pub fn new(table: Table, across: impl Into<String>, marks: Vec<Mark>) -> Self {
        Self { table, across: across.into(), marks, caption: String::new(), floor: Floor::Zero }
    }

    /// With a vertical axis that begins here.
    pub fn floor(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    /// With this description of the marks.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// The picture: an `svg` element to stand in a page whose style sheet has the classes of charts.
    ///
    /// Empty if the table has no row, or lacks the columns.
    pub fn svg(&self) -> String {
        self.drawing().map(|drawing| drawing.svg(self)).unwrap_or_default()
    }

    fn rules(&self) -> Vec<Rule> {
        let column = |mark: &Mark| match mark {
            Mark::Rules(column) => self.table.column(column),
            _ => None,
        };
        let Some(across) = self.table.column(&self.across) else { return Vec::new() };
        let rule = |row: &stepscope_model::Row, column: usize| {
            let title = match &row[column] {
                Value::Bool(true) => self.table.columns[column].name.replace('_', " "),
                Value::Text(text) if !text.is_empty() => text.clone(),
                _ => return None,
            };
            Some(Rule { at: number(&row[across])?, title })
        };
        let columns = self.marks.iter().filter_map(column);
        columns.flat_map(|column| self.table.rows.iter().filter_map(move |row| rule(row, column))).collect()
    }

    fn drawing(&self) -> Option<Drawing<'_>> {
        let table = &self.table;
        let series: Vec<Series<'_>> =
            self.marks.iter().filter_map(|mark| Series::of(mark, table, &self.across)).collect();
        let up = series.first()?.up;
        let across = table.column(&self.across)?;
        let of_bars = series.iter().any(|series| matches!(series.shape, Shape::Bars));
        let ups: Vec<f64> = series.iter().flat_map(|series| &series.rows).flat_map(|row| [row.low, row.high]).collect();
        let (least, most) = range(ups.iter().copied())?;
        let by_ratios = self.floor == Floor::Ratios && least > 0.0;
        let scale = match of_bars {
            true => Scale::Linear,
            false if by_ratios => Scale::Logarithmic,
            false => Scale::suiting(ups),
        };
        let air = (most - least) * 0.08;
        let (least, most) = match (scale, self.floor) {
            (Scale::Linear, Floor::Zero | Floor::Ratios) => (least.min(0.0), most),
            (Scale::Linear, Floor::Least) if !of_bars && air > 0.0 => (least - air, most + air),
            (Scale::Linear, Floor::Least) => (least.min(0.0), most),
            (Scale::Logarithmic, _) => (least, most),
        };
        let places = series.iter().flat_map(|series| &series.rows).flat_map(|row| [row.from, row.to]);
        let (first, last) = range(places)?;
        // Bins that grow with their values are equally wide on a logarithmic axis.
        let by_ratio = of_bars && first > 0.0 && last / first > 10.0;
        let mut names: Vec<&str> = Vec::new();
        for line in series.iter().filter(|series| matches!(series.shape, Shape::Line)) {
            if !names.contains(&line.up.header()) {
                names.push(line.up.header());
            }
        }
        if names.len() < 2 {
            names.clear();
        }
        let right = WIDTH - RIGHT - if names.is_empty() { 0.0 } else { NAMES };
        let along = if by_ratio || (by_ratios && first > 0.0) { Scale::Logarithmic } else { Scale::Linear };
        Some(Drawing {
            x: Axis::holding(along, (first, last), (LEFT, right)),
            y: Axis::holding(scale, (least, most), (HEIGHT - BOTTOM, TOP)),
            scale,
            across: &table.columns[across],
            up,
            series,
            rules: self.rules(),
            names,
            right,
        })
    }
}

/// An `svg` element as a document of its own, for pages that lack the style sheet: with the style in it, light and dark, and
/// a background.
pub fn document(svg: &str) -> String {
    let Some((start, rest)) = svg.split_once('>') else { return String::new() };
    let Some((before, size)) = start.split_once("viewBox=\"0 0 ") else { return String::new() };
    let size = size.split('"').next().unwrap_or_default();
    let Some((width, height)) = size.split_once(' ') else { return String::new() };
    format!(
        "{before}xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {size}\" role=\"img\">\n\
         <style>{}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>{rest}",
        assets::CHART_CSS
    )
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        let (least, most) = range.unwrap_or((value, value));
        Some((least.min(value), most.max(value)))
    })
}

/// What a mark draws of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
}

enum Shape {
    Band,
    Line,
    Interval,
    Steps,
    Points,
    Bars,
}

/// A place on the horizontal axis where something happened.
struct Rule {
    at: f64,
    title: String,
}

/// The rows of one mark.
struct Series<'a> {
    shape: Shape,
    /// The column that its height is of.
    up: &'a Column,
    rows: Vec<Row>,
}

impl<'a> Series<'a> {
    fn of(mark: &Mark, table: &'a Table, across: &str) -> Option<Self> {
        let (shape, to, low, high) = match mark {
            Mark::Band(low, high) => (Shape::Band, across, low, high),
            Mark::Line(column) => (Shape::Line, across, column, column),
            Mark::Interval(low, high) => (Shape::Interval, across, low, high),
            Mark::Steps(column) => (Shape::Steps, across, column, column),
            Mark::Points(column) => (Shape::Points, across, column, column),
            Mark::Rules(_) => return None,
            Mark::Bars { to, height } => (Shape::Bars, to.as_str(), height, height),
        };
        let (from, to, low) = (table.column(across)?, table.column(to)?, table.column(low)?);
        let high = table.column(high)?;
        let row = |row: &stepscope_model::Row| {
            let value = |column: usize| number(&row[column]);
            Some(Row { from: value(from)?, to: value(to)?, low: value(low)?, high: value(high)? })
        };
        let rows = table.rows.iter().filter_map(row).collect();
        Some(Self { shape, up: &table.columns[high], rows })
    }
}

struct Drawing<'a> {
    x: Axis,
    y: Axis,
    scale: Scale,
    across: &'a Column,
    up: &'a Column,
    series: Vec<Series<'a>>,
    rules: Vec<Rule>,
    /// Names of the lines, if there are several. What is of the same name has the same colour.
    names: Vec<&'a str>,
    /// Right end of the horizontal axis.
    right: f64,
}

impl Drawing<'_> {
    fn svg(&self, chart: &Chart) -> String {
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            markup(&chart.table.title)
        );
        self.push_axes(&chart.caption, &mut svg);
        for Rule { at, title } in &self.rules {
            let x = self.x.place(*at);
            let bottom = HEIGHT - BOTTOM;
            append!(svg, "<path class=\"rule\" d=\"M{x:.1} {TOP}V{bottom}\"><title>{}</title></path>\n", markup(title));
        }
        for series in &self.series {
            self.push_series(series, &mut svg);
        }
        self.push_names(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn push_axes(&self, caption: &str, svg: &mut String) {
        let (bottom, right) = (HEIGHT - BOTTOM, self.right);
        svg.push_str("<g class=\"axis\">");
        for tick in self.y.ticks(4) {
            let y = self.y.place(tick);
            append!(*svg, "<path d=\"M{LEFT} {y:.1}H{right}\"/>");
            append!(
                *svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                markup(&labelled(tick, self.up))
            );
        }
        for tick in self.x.ticks(8) {
            let x = self.x.place(tick);
            append!(*svg, "<path d=\"M{x:.1} {bottom}v4\"/>");
            append!(
                *svg,
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                markup(&labelled(tick, self.across))
            );
        }
        let words = |column: &Column| column.name.replace('_', " ");
        let caption = match caption {
            "" => format!("{} over {}", words(self.up), words(self.across)),
            caption => caption.to_owned(),
        };
        let scale = if self.scale == Scale::Logarithmic { " (logarithmic)" } else { "" };
        append!(
            *svg,
            "<text class=\"of\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}{scale}</text></g>\n",
            HEIGHT - 6.0,
            markup(&caption)
        );
    }

    /// The class of what is drawn of this column: its form, and its colour if there are several lines.
    fn class(&self, form: &str, up: &Column) -> String {
        match self.names.iter().position(|name| *name == up.header()) {
            Some(place) => format!("{form} hue{}", place % HUES),
            None => form.to_owned(),
        }
    }

    /// Writes each line's name at its right end, moved so that no two overlap.
    fn push_names(&self, svg: &mut String) {
        let mut ends: Vec<(f64, &str)> = Vec::new();
        for line in self.series.iter().filter(|series| matches!(series.shape, Shape::Line)) {
            if let Some(last) = line.rows.last().filter(|_| !self.names.is_empty()) {
                ends.push((self.y.place(last.high), line.up.header()));
            }
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = TOP;
        for (at, _) in &mut ends {
            *at = at.max(free);
            free = *at + NAME_HEIGHT;
        }
        let mut limit = HEIGHT - BOTTOM;
        for (at, _) in ends.iter_mut().rev() {
            *at = at.min(limit);
            limit = *at - NAME_HEIGHT;
        }
        for (at, name) in ends {
            let class = self.names.iter().position(|one| *one == name).unwrap_or(0) % HUES;
            append!(
                *svg,
                "<text class=\"name hue{class}\" x=\"{}\" y=\"{:.1}\"><title>{}</title>{}</text>\n",
                self.right + 8.0,
                at + 4.0,
                markup(name),
                markup(&shorten(name, LONGEST_NAME))
            );
        }
    }

    fn push_series(&self, series: &Series<'_>, svg: &mut String) {
        let class = |form| self.class(form, series.up);
        let (x, y) = (|value| self.x.place(value), |value| self.y.place(value));
        match series.shape {
            Shape::Line => {
                let path = path_through(series.rows.iter().map(|row| (x(row.from), y(row.high))));
                append!(*svg, "<path class=\"{}\" d=\"{path}\"/>\n", class("line"));
            }
            Shape::Band => {
                let above = series.rows.iter().map(|row| (x(row.from), y(row.high)));
                let below = series.rows.iter().rev().map(|row| (x(row.from), y(row.low)));
                let path = path_through(above.chain(below));
                append!(*svg, "<path class=\"{}\" d=\"{path}Z\"/>\n", class("band"));
            }
            Shape::Steps => {
                append!(*svg, "<path class=\"steps\" d=\"{}\"/>\n", self.stairs(&series.rows));
            }
            Shape::Interval => {
                let mut path = String::new();
                for row in &series.rows {
                    append!(path, "M{:.1} {:.1}V{:.1}", x(row.from), y(row.low), y(row.high));
                }
                append!(*svg, "<path class=\"interval\" d=\"{path}\"/>\n");
            }
            Shape::Points => {
                for row in &series.rows {
                    append!(
                        *svg,
                        "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>\n",
                        class("point"),
                        x(row.from),
                        y(row.high),
                        markup(&self.tooltip(row, series.up))
                    );
                }
            }
            Shape::Bars => {
                for row in &series.rows {
                    let (left, top) = (x(row.from), y(row.high));
                    append!(
                        *svg,
                        "<rect class=\"bar\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>\n",
                        (x(row.to) - left - 1.0).max(0.5),
                        HEIGHT - BOTTOM - top,
                        markup(&self.tooltip(row, series.up))
                    );
                }
            }
        }
    }

    /// A line that changes its height halfway between rows.
    fn stairs(&self, rows: &[Row]) -> String {
        let mut path = String::new();
        for (index, row) in rows.iter().enumerate() {
            let (x, y) = (self.x.place(row.from), self.y.place(row.high));
            let before = index.checked_sub(1).map(|before| &rows[before]);
            match before {
                None => append!(path, "M{x:.1} {y:.1}"),
                Some(before) if before.high == row.high => {}
                Some(before) => append!(path, "H{:.1}V{y:.1}", (self.x.place(before.from) + x) / 2.0),
            }
        }
        if let Some(last) = rows.last() {
            append!(path, "H{:.1}", self.x.place(last.from));
        }
        path
    }

    /// Tooltip of a bar or a point.
    fn tooltip(&self, row: &Row, up: &Column) -> String {
        let across = match row.from == row.to {
            true => labelled(row.from, self.across),
            false => format!("{} to {}", labelled(row.from, self.across), labelled(row.to, self.across)),
        };
        format!(
            "{}: {} {}",
            across,
            labelled(row.high, up),
            up.label.clone().unwrap_or_else(|| up.name.replace('_', " "))
        )
    }
}

fn path_through(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (index, (x, y)) in places.enumerate() {
        append!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    path
}

#[cfg(test)]
mod tests {
    use stepscope_model::Kind;

    use super::*;

    fn table(rows: &[(u64, Option<u64>)]) -> Table {
        let columns = vec![
            Column::new("at", Kind::Duration, "ns", ""),
            Column::new("steps", Kind::Count, "steps", ""),
            Column::new("until", Kind::Duration, "ns", ""),
        ];
        let mut table = Table::new("t", "Steps <over> time", columns);
        for &(at, steps) in rows {
            table.push(vec![at.into(), steps.into(), (at + 10).into()]);
        }
        table
    }

    #[test]
    fn a_line_goes_through_the_rows_that_have_values() {
        let svg =
            Chart::new(table(&[(0, Some(10)), (5, None), (10, Some(0))]), "at", vec![Mark::Line("steps".into())]).svg();
        assert!(svg.contains("<path class=\"line\" d=\"M74.0 12.0L946.0 188.0\"/>"), "{svg}");
        assert!(svg.contains("aria-label=\"Steps &lt;over&gt; time\""));
    }

    #[test]
    fn bars_reach_from_one_column_to_the_other_and_have_a_label() {
        let bars = Mark::Bars { to: "until".into(), height: "steps".into() };
        let svg = Chart::new(table(&[(0, Some(4)), (10, Some(8))]), "at", vec![bars]).svg();
        assert!(svg.contains("<rect class=\"bar\" x=\"74.0\" y=\"100.0\" width=\"435.0\" height=\"88.0\"><title>0 ns to 10 ns: 4 steps</title>"), "{svg}");
    }

    #[test]
    fn a_history_has_points_levels_and_what_happened() {
        let column = |name, kind| Column::new(name, kind, "", "");
        let columns = vec![
            column("run", Kind::Count),
            column("p99", Kind::Number),
            column("level", Kind::Number),
            column("environment", Kind::Text),
        ];
        let mut table = Table::new("history", "p99", columns);
        for (run, p99, level, environment) in [
            (0, 100.0, 101.0, ""),
            (1, 102.0, 101.0, ""),
            (2, 110.0, 110.0, "new kernel <6.18>"),
            (3, 110.0, 110.0, ""),
        ] {
            table.push(vec![run.into(), p99.into(), level.into(), environment.into()]);
        }
        let marks = ["p99".to_owned()].map(Mark::Points).into_iter();
        let marks = marks.chain([Mark::Steps("level".into()), Mark::Rules("environment".into())]);
        let chart = Chart::new(table, "run", marks.collect()).floor(Floor::Least);
        let svg = chart.svg();
        // The axis reaches from 99.2 to 110.8, 176 pixels; runs are 290.67 apart.
        assert!(svg.contains("<path class=\"steps\" d=\"M74.0 160.7H510.0V24.1H946.0\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"rule\" d=\"M655.3 12V188\"><title>new kernel &lt;6.18&gt;</title>"));
        assert_eq!(svg.matches("<circle class=\"point\"").count(), 4);
        assert!(!svg.contains(">0</text></g>"), "the vertical axis does not begin at zero");
    }

    #[test]
    fn several_lines_have_colours_and_names_that_do_not_overlap() {
        let column = |name: &str, label: &str| Column::new(name, Kind::Number, "", "").labelled(label);
        let columns = vec![column("n", "n"), column("a", "a::F"), column("low", "a::F"), column("b", "b::G<T>")];
        let mut table = Table::new("t", "T", columns);
        table.push([1.0, 5.0, 4.0, 5.1].map(Value::from).into());
        table.push([2.0, 9.0, 8.0, 9.1].map(Value::from).into());
        let marks = vec![Mark::Line("a".into()), Mark::Line("b".into()), Mark::Points("low".into())];
        let svg = Chart::new(table, "n", marks).svg();
        assert!(svg.contains("<path class=\"line hue0\"") && svg.contains("<path class=\"line hue1\""), "{svg}");
        assert!(svg.contains("<circle class=\"point hue0\""), "{svg}");
        let name = |name: &str, y: &str| svg.contains(&format!("y=\"{y}\"><title>{name}</title>"));
        assert!(name("b::G&lt;T&gt;", "16.0") && name("a::F", "30.0"), "{svg}");
    }

    #[test]
    fn an_interval_is_an_upright_line() {
        let columns = ["at", "low", "high"].map(|name| Column::new(name, Kind::Number, "", ""));
        let mut table = Table::new("t", "T", columns.into());
        table.push(vec![0.0.into(), 5.0.into(), 10.0.into()]);
        table.push(vec![1.0.into(), 0.0.into(), 5.0.into()]);
        let svg = Chart::new(table, "at", vec![Mark::Interval("low".into(), "high".into())]).svg();
        assert!(svg.contains("<path class=\"interval\" d=\"M74.0 100.0V12.0M946.0 188.0V100.0\"/>"), "{svg}");
    }

    #[test]
    fn a_document_brings_its_style() {
        let svg = Chart::new(table(&[(0, Some(10)), (5, Some(3))]), "at", vec![Mark::Line("steps".into())]).svg();
        let document = document(&svg);
        let head = "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"230\" viewBox=\"0 0 960 230\" role=\"img\">";
        assert!(document.starts_with(head) && document.contains("prefers-color-scheme:dark"), "{document}");
        assert_eq!(super::document(""), "");
    }

    #[test]
    fn a_table_without_the_columns_or_without_rows_is_not_drawn() {
        assert_eq!(Chart::new(table(&[]), "at", vec![Mark::Line("steps".into())]).svg(), "");
        assert_eq!(Chart::new(table(&[(0, Some(1))]), "at", vec![Mark::Line("none".into())]).svg(), "");
        assert_eq!(Chart::new(table(&[(0, Some(1))]), "none", vec![Mark::Line("steps".into())]).svg(), "");
    }

    #[test]
    fn one_spike_among_many_makes_the_axis_logarithmic_and_it_says_so() {
        let rows: Vec<(u64, Option<u64>)> = (0..50).map(|at| (at, Some(if at == 7 { 100_000 } else { 10 }))).collect();
        let svg = Chart::new(table(&rows), "at", vec![Mark::Line("steps".into())]).svg();
        assert!(svg.contains("steps over at (logarithmic)") && svg.contains(">10,000</text>"), "{svg}");
    }
}

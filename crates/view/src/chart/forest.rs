//! [`Forest`]: ratios and their intervals on one logarithmic axis, one row each: the forest plot of meta-analyses.
//!
//! The band is the tolerance. An interval that excludes 1 is *changed*, one inside the band *equivalent*, any other
//! *inconclusive*. Verdicts differ in shape as well as colour.

use stepscope_model::{Row, Table, Value};

use super::WIDTH;
use super::axis::{Axis, Scale};
use crate::embed::{append, markup};
use crate::reading::{Field, Reading};
use crate::shorten::{label, shorten};
use crate::visible::visible;
use stepscope_model::quantity::number;

/// Rows of a table as estimates of a ratio.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Forest {
    /// The values; its title is the picture's.
    pub table: Table,
    /// The column that names rows.
    pub label: String,
    /// The column of ratios. The ends of their intervals are the two columns after it, `RATIO_low` and `RATIO_high`.
    pub ratio: String,
    /// The column that marks rows without a ratio as `new` or `vanished`. They stand at an end of the axis.
    pub presence: String,
    /// The column of verdicts: `changed`, `equivalent` or `inconclusive`; optional.
    pub verdict: String,
    /// Ratios from `1 / (1 + tolerance)` to `1 + tolerance` count as no change: the band. Zero draws no band.
    pub tolerance: f64,
    /// Rows beyond this many are not drawn, and the picture says so.
    pub most: usize,
}

const ROW: f64 = 25.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 42.0;
/// Where names end, and where numbers begin.
const LEFT: f64 = 300.0;
const RIGHT: f64 = WIDTH - 265.0;
/// Where verdicts begin.
const VERDICT: f64 = WIDTH - 92.0;
/// Columns of a name that fit.
const LABEL_COLUMNS: usize = 44;
/// Ratios beyond this factor are at the end of the axis, with an arrow: what vanished would need an endless one.
const FARTHEST: f64 = 16.0;

impl Forest {
    /// The column `ratio` of a table, with its intervals and the column `verdict`.
    pub fn new(table: Table, label: impl Into<String>) -> Self {
        let [ratio, presence, verdict] = ["ratio", "presence", "verdict"].map(str::to_owned);
        Self { table, label: label.into(), ratio, presence, verdict, tolerance: 0.0, most: usize::MAX }
    }

    /// With a band of ratios that do not matter.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// With its first rows only.
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The picture: an `svg` element to stand in a page whose style sheet has the classes of charts.
    ///
    /// Empty if no row has a ratio or a presence.
    pub fn svg(&self) -> String {
        self.drawing().map(|drawing| drawing.svg(&self.table.title)).unwrap_or_default()
    }

    fn drawing(&self) -> Option<Drawing> {
        let (table, reading) = (&self.table, Reading::of(&self.table));
        let (name, ratio) = (table.column(&self.label)?, table.column(&self.ratio)?);
        let field = *reading.fields.iter().find(|field| field.column == ratio)?;
        let columns = Columns {
            name,
            field,
            presence: table.column(&self.presence),
            verdict: table.column(&self.verdict),
            better: table.column("better"),
        };
        let all: Vec<Estimate> = table.rows.iter().filter_map(|row| columns.estimate(row, &reading)).collect();
        let left_out = all.len().saturating_sub(self.most);
        let rows: Vec<Estimate> = all.into_iter().take(self.most).collect();
        let ends = rows.iter().flat_map(|row| [row.low, row.point, row.high]);
        let band = (self.tolerance > 0.0).then_some((1.0 / (1.0 + self.tolerance), 1.0 + self.tolerance));
        let seen = ends.chain(band.into_iter().flat_map(|(low, high)| [low, high])).chain([1.0]);
        let within = seen.filter(|ratio| ratio.is_finite()).map(|ratio| ratio.clamp(1.0 / FARTHEST, FARTHEST));
        let (least, most) = super::range(within)?;
        if rows.is_empty() {
            return None;
        }
        let axis = Axis::holding(Scale::Logarithmic, (least, most), (LEFT + 14.0, RIGHT - 14.0));
        Some(Drawing { rows, axis, band, left_out })
    }
}

/// A row of the picture.
struct Estimate {
    name: String,
    point: f64,
    low: f64,
    high: f64,
    /// The numbers as text.
    shown: String,
    verdict: String,
    /// Whether more of it is better: it is no cost.
    gain: bool,
}

/// Where the fields of an estimate stand in a row.
struct Columns {
    name: usize,
    field: Field,
    presence: Option<usize>,
    verdict: Option<usize>,
    /// The column that says `higher` where more is better, so that colours show better and worse.
    better: Option<usize>,
}

impl Columns {
    fn estimate(&self, row: &Row, reading: &Reading<'_>) -> Option<Estimate> {
        let text = |column: usize| match &row[column] {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        };
        let presence = self.presence.map(text).unwrap_or_default();
        let of_ratio = number(&row[self.field.column]).filter(|point| *point >= 0.0);
        let (point, shown) = match (of_ratio, presence.as_str()) {
            (Some(point), _) => {
                let cell = reading.cell(row, self.field);
                let bounds = cell.bounds.map_or(String::new(), |bounds| format!(" {bounds}"));
                (point, format!("{}{bounds}", cell.quantity))
            }
            (None, "new") => (f64::INFINITY, presence),
            (None, "vanished") => (0.0, presence),
            (None, _) => return None,
        };
        let end = |index: usize| {
            let bounds = self.field.bounds.filter(|_| of_ratio.is_some());
            bounds.and_then(|bounds| number(&row[bounds[index]])).unwrap_or(point)
        };
        let verdict = self.verdict.map(text).unwrap_or_default();
        let gain = self.better.map(text).is_some_and(|better| better == "higher");
        Some(Estimate { name: text(self.name), point, low: end(0), high: end(1), shown, verdict, gain })
    }
}

impl Estimate {
    /// Classes of the row: its verdict, and whether a change is for the better (`less`, as of a cost) or the worse.
    fn class(&self) -> &'static str {
        match self.verdict.as_str() {
            "equivalent" | "pass" => "even",
            "inconclusive" => "unsure",
            _ if (self.point < 1.0) != self.gain => "less",
            _ => "more",
        }
    }
}

struct Drawing {
    rows: Vec<Estimate>,
    axis: Axis,
    band: Option<(f64, f64)>,
    left_out: usize,
}

impl Drawing {
    fn svg(&self, title: &str) -> String {
        let bottom = TOP + self.rows.len() as f64 * ROW;
        let height = bottom + BOTTOM;
        let mut svg = format!(
            "<svg class=\"chart forest\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
            markup(title)
        );
        self.push_axis(bottom, &mut svg);
        for (index, row) in self.rows.iter().enumerate() {
            self.push_row(row, TOP + (index as f64 + 0.5) * ROW, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn push_axis(&self, bottom: f64, svg: &mut String) {
        if let Some((low, high)) = self.band {
            let (from, to) = (self.axis.place(low), self.axis.place(high));
            append!(
                *svg,
                "<rect class=\"tolerance\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\n",
                to - from,
                bottom - TOP
            );
        }
        svg.push_str("<g class=\"axis\">");
        for tick in self.axis.ticks(6) {
            let x = self.axis.place(tick);
            append!(*svg, "<path d=\"M{x:.1} {TOP}V{:.1}\"/>", bottom + 4.0);
            append!(
                *svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                ratio_of(tick)
            );
        }
        let one = self.axis.place(1.0);
        append!(*svg, "<path class=\"reference\" d=\"M{one:.1} {TOP}V{:.1}\"/>", bottom + 4.0);
        let band = match self.band {
            Some((low, high)) => format!("; shaded: {} to {}, treated as no change", ratio_of(low), ratio_of(high)),
            None => String::new(),
        };
        let left_out = match self.left_out {
            0 => String::new(),
            1 => "; 1 more row is not drawn".to_owned(),
            rows => format!("; {rows} more rows are not drawn"),
        };
        append!(
            *svg,
            "<text class=\"of\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">after / before, log scale{band}{left_out}</text></g>\n",
            WIDTH - 14.0,
            bottom + BOTTOM - 6.0
        );
    }

    fn push_row(&self, row: &Estimate, y: f64, svg: &mut String) {
        let text = y + 4.0;
        let shown = visible(&row.name);
        let name = label(&shown, LABEL_COLUMNS).unwrap_or_else(|| shorten(&shown, LABEL_COLUMNS));
        let comma = if row.verdict.is_empty() { "" } else { ", " };
        let sentence = [row.name.as_str(), ": ", &row.shown, comma, &row.verdict];
        append!(*svg, "<g class=\"{}\"><title>{}</title>", row.class(), markup(&sentence.concat()));
        append!(*svg, "<text class=\"name\" x=\"{LEFT}\" y=\"{text:.1}\" text-anchor=\"end\">{}</text>", markup(&name));
        self.push_whisker(row, y, svg);
        self.push_shape(row, y, svg);
        append!(*svg, "<text x=\"{RIGHT}\" y=\"{text:.1}\">{}</text>", markup(&row.shown));
        append!(*svg, "<text class=\"verdict\" x=\"{VERDICT}\" y=\"{text:.1}\">{}</text></g>\n", markup(&row.verdict));
    }

    /// The interval: a line with an end at each side that is on the axis, an arrow where one is not.
    fn push_whisker(&self, row: &Estimate, y: f64, svg: &mut String) {
        let (low, high) = (self.axis.place(row.low), self.axis.place(row.high));
        if low == high {
            return;
        }
        append!(*svg, "<path class=\"whisker\" d=\"M{low:.1} {y:.1}H{high:.1}");
        for (end, ratio, inwards) in [(low, row.low, 5.0), (high, row.high, -5.0)] {
            match self.is_on_axis(ratio) {
                true => append!(*svg, "M{end:.1} {:.1}v8", y - 4.0),
                false => append!(*svg, "M{:.1} {:.1}l{:.1} 4l{inwards:.1} 4", end + inwards, y - 4.0, -inwards),
            }
        }
        svg.push_str("\"/>");
    }

    /// A diamond for changed, a disc for equivalent, a ring for inconclusive; an arrow beyond the axis.
    fn push_shape(&self, row: &Estimate, y: f64, svg: &mut String) {
        let x = self.axis.place(row.point);
        match row.class() {
            "even" => append!(*svg, "<circle class=\"shape\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
            "unsure" => append!(*svg, "<circle class=\"shape ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
            _ if !self.is_on_axis(row.point) => {
                let outwards = if row.point < 1.0 { -9.0 } else { 9.0 };
                append!(
                    *svg,
                    "<path class=\"shape\" d=\"M{:.1} {y:.1}l{:.1} -6v12z\"/>",
                    x + outwards / 2.0,
                    -outwards
                );
            }
            _ => append!(*svg, "<path class=\"shape\" d=\"M{:.1} {y:.1}l6 -6l6 6l-6 6z\"/>", x - 6.0),
        }
    }

    fn is_on_axis(&self, ratio: f64) -> bool {
        (1.0 / FARTHEST..=FARTHEST).contains(&ratio)
    }
}

/// A ratio on the axis, without needless zeros.
fn ratio_of(ratio: f64) -> String {
    let text = format!("{ratio:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Column, Kind};

    use super::*;

    fn forest(rows: &[(&str, [Option<f64>; 3], &str)]) -> Forest {
        let text = |name| Column::new(name, Kind::Text, "", "");
        let ratios = ["ratio", "ratio_low", "ratio_high"].map(|name| Column::new(name, Kind::Number, "", ""));
        let columns = [text("function")].into_iter().chain(ratios).chain([text("verdict")]);
        let mut table = Table::new("compare_attributed", "Functions <after>", columns.collect());
        for (name, ratio, verdict) in rows {
            let ratio = ratio.map(Value::from);
            table.push([(*name).into()].into_iter().chain(ratio).chain([(*verdict).into()]).collect());
        }
        Forest::new(table, "function").tolerance(0.05)
    }

    #[test]
    fn a_metric_that_should_rise_has_the_colour_of_better_when_it_rises() {
        let mut forest = forest(&[("rtf", [Some(2.0), Some(1.9), Some(2.1)], "changed")]);
        forest.table.columns.push(Column::new("better", Kind::Text, "", ""));
        forest.table.rows[0].push("higher".into());
        assert!(forest.svg().contains("<g class=\"less\"><title>rtf"), "{}", forest.svg());
    }

    #[test]
    fn rows_have_the_shape_of_their_verdict_and_a_text() {
        let svg = forest(&[
            ("Step", [Some(0.5), Some(0.48), Some(0.52)], "changed"),
            ("Load", [Some(1.0), Some(0.98), Some(1.02)], "equivalent"),
            ("Poll<int>", [Some(1.1), Some(0.7), Some(1.9)], "inconclusive"),
        ])
        .svg();
        assert!(svg.contains("aria-label=\"Functions &lt;after&gt;\""));
        assert!(svg.contains("<g class=\"less\"><title>Step: 0.50 [0.48, 0.52], changed</title>"), "{svg}");
        assert!(svg.contains("<g class=\"even\"><title>Load: 1.00 [0.98, 1.02], equivalent</title>"));
        assert!(svg.contains("<g class=\"unsure\"><title>Poll&lt;int&gt;: 1.10 [0.70, 1.90], inconclusive</title>"));
        assert_eq!(svg.matches("class=\"shape\" d=").count(), 1, "one diamond");
        assert_eq!(svg.matches("<circle class=\"shape\"").count(), 1, "one disc");
        assert_eq!(svg.matches("<circle class=\"shape ring\"").count(), 1);
        assert!(svg.contains("shaded: 0.952 to 1.05, treated as no change"));
    }

    #[test]
    fn halving_and_doubling_are_equally_far_from_one() {
        let forest = forest(&[("a", [Some(0.5), None, None], "changed"), ("b", [Some(2.0), None, None], "changed")]);
        let axis = forest.drawing().unwrap().axis;
        let [half, one, double] = [0.5, 1.0, 2.0].map(|ratio| axis.place(ratio));
        assert!(((one - half) - (double - one)).abs() < 1e-9);
    }

    #[test]
    fn new_and_vanished_rows_have_an_arrow_at_an_end_and_rows_without_a_ratio_are_not_drawn() {
        let gone = forest(&[("gone", [Some(0.0), Some(0.0), Some(0.01)], "changed"), ("new", [None; 3], "changed")]);
        let svg = gone.svg();
        assert!(svg.contains("gone: 0.00 [") && !svg.contains("new:"), "{svg}");
        assert!(svg.contains("l9.0 -6v12z") && !svg.contains("whisker"), "only an arrow to the left: {svg}");
        assert_eq!(forest(&[("new", [None; 3], "changed")]).svg(), "");
        let mut picture =
            forest(&[("f", [Some(1.0), None, None], ""), ("n", [None; 3], "changed"), ("v", [None; 3], "")]);
        picture.table.columns.push(Column::new("presence", Kind::Text, "", ""));
        for (row, presence) in picture.table.rows.iter_mut().zip(["both", "new", "vanished"]) {
            row.push(presence.into());
        }
        let svg = picture.svg();
        assert!(svg.contains("<g class=\"more\"><title>n: new, changed</title>"), "{svg}");
        assert!(svg.contains("<g class=\"less\"><title>v: vanished</title>") && !svg.contains("NaN"), "{svg}");
        assert!(svg.contains("l-9.0 -6v12z") && svg.contains("l9.0 -6v12z"), "an arrow to each side: {svg}");
    }

    #[test]
    fn rows_beyond_the_most_are_counted() {
        let rows = [("a", [Some(1.0), None, None], ""); 5];
        let svg = forest(&rows).most(3).svg();
        assert!(svg.contains("2 more rows are not drawn"), "{svg}");
    }
}

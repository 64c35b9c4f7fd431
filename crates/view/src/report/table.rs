//! A table in the page: its first rows as HTML, and all of it as data for the script.
//!
//! The data is one JSON object:
//!
//! | key | holds |
//! |---|---|
//! | `columns` | for each column: `kind`, the `class` of its cells, and `largest`, the share with the longest bar, or null |
//! | `owned` | index of the column that says whose a row is, or null |
//! | `values` | for each column, every row's value: a number, a text, true, false or null; of a long text its short form and itself |
//! | `shown` | for each column of numbers, every row's text as `number` or `number|unit`; for others null |

use stepscope_model::{Column, Kind, Table, Value};
use unicode_width::UnicodeWidthStr;

use super::heat;
use crate::embed::{append, markup, push_json_string};
use crate::quantity::{Quantity, head_unit, number, quantity};
use crate::shorten::shorten;
use crate::visible::visible;

/// Rows of a long table that are shown until the reader asks for more.
pub(super) const ROWS_SHOWN: usize = 15;

/// Names that take more columns than this are shortened to fewer until the reader unfolds them.
const LONGEST_NAME: usize = 120;
const SHORT_NAME: usize = 96;

/// Appends a table: head, first rows, data and what the columns mean.
pub(super) fn push_table(table: &Table, heading: Option<&str>, html: &mut String) {
    append!(*html, "<div class=\"table\" data-rows=\"{}\">\n<div class=\"bar\">", table.rows.len());
    if let Some(heading) = heading {
        append!(*html, "<h4>{}</h4>", markup(heading));
    }
    html.push_str("</div>\n");
    if table.rows.is_empty() {
        html.push_str("<p class=\"none\">No rows.</p>\n");
    } else {
        append!(*html, "<div class=\"scroll\"><table aria-label=\"{}\">\n", markup(&table.title));
        let columns = Shown::columns(table);
        push_head(&columns, html);
        push_first_rows(table, &columns, html);
        html.push_str("</table></div>\n");
        push_data(table, &columns, html);
    }
    push_notes(&table.notes, html);
    push_meanings(&table.columns, html);
    html.push_str("</div>\n");
}

/// Appends a table's rows as groups of figures, and names those that are not known.
pub(super) fn push_figures(table: &Table, html: &mut String) {
    for row in &table.rows {
        let figures = || row.iter().zip(&table.columns);
        html.push_str("<dl class=\"figures\">\n");
        for (value, column) in figures().filter(|(value, _)| **value != Value::Missing) {
            push_figure(value, column, html);
        }
        html.push_str("</dl>\n");
        let unknown: Vec<String> = figures()
            .filter(|(value, _)| **value == Value::Missing)
            .map(|(_, column)| in_words(&column.name))
            .collect();
        if !unknown.is_empty() {
            append!(*html, "<p class=\"note\">Not known: {}.</p>\n", markup(&unknown.join(", ")));
        }
    }
    if table.rows.is_empty() {
        html.push_str("<p class=\"none\">Nothing to sum up.</p>\n");
    }
    push_notes(&table.notes, html);
}

fn push_figure(value: &Value, column: &Column, html: &mut String) {
    let (class, shown) = match value {
        Value::Text(text) => (" class=\"words\"", breakable(text)),
        value => ("", shown_figure(&quantity(value, column.kind), column)),
    };
    let (doc, name) = (markup(&column.doc), in_words(&column.name));
    append!(*html, "<div title=\"{doc}\"{class}><dt>{}</dt><dd>{shown}</dd></div>\n", markup(&name));
}

/// The unit of a column's head, unless it only repeats the name (`steps`, in steps).
fn told_unit(column: &Column) -> &str {
    Some(head_unit(column)).filter(|unit| *unit != column.name).unwrap_or("")
}

/// A figure with its unit.
fn shown_figure(quantity: &Quantity, column: &Column) -> String {
    let number = markup(&quantity.number);
    let unit = [quantity.unit, told_unit(column)].join(" ");
    match unit.trim() {
        "" => number.into_owned(),
        unit => format!("{number} <i>{}</i>", markup(unit)),
    }
}

/// A column's name as people write it: `self_share` is `self share`.
fn in_words(name: &str) -> String {
    name.replace('_', " ")
}

pub(super) fn push_notes(notes: &[String], html: &mut String) {
    for note in notes {
        append!(*html, "<p class=\"note\">{}</p>\n", markup(note));
    }
}

fn push_head(columns: &[Shown<'_>], html: &mut String) {
    html.push_str("<thead><tr>");
    for Shown { column, class, .. } in columns {
        append!(
            *html,
            "<th scope=\"col\" class=\"{class}\" data-name=\"{}\" title=\"{}\">{}",
            markup(&column.name),
            markup(&column.doc),
            markup(&in_words(&column.name))
        );
        match told_unit(column) {
            "" => {}
            unit => append!(*html, " <i>{}</i>", markup(unit)),
        }
        html.push_str("</th>");
    }
    html.push_str("</tr></thead>\n");
}

fn push_first_rows(table: &Table, columns: &[Shown<'_>], html: &mut String) {
    let owned = owned_column(table);
    html.push_str("<tbody>\n");
    for row in table.rows.iter().take(ROWS_SHOWN) {
        let is_owned = owned.is_some_and(|owned| row[owned] == Value::Bool(true));
        html.push_str(if is_owned { "<tr class=\"mine\">" } else { "<tr>" });
        for (value, column) in row.iter().zip(columns) {
            push_cell(value, column, html);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>");
}

/// A cell as the script makes it too.
fn push_cell(value: &Value, column: &Shown<'_>, html: &mut String) {
    let class = column.class;
    match value {
        Value::Text(text) => match short_form(text) {
            Some(short) => append!(
                *html,
                "<td class=\"{class}\"><details><summary>{}</summary>{}</details></td>",
                breakable(&short),
                breakable(text)
            ),
            None => append!(*html, "<td class=\"{class}\">{}</td>", breakable(text)),
        },
        Value::Bool(false) => append!(*html, "<td class=\"{class} off\">no</td>"),
        value => {
            let Quantity { number, unit } = quantity(value, column.column.kind);
            append!(*html, "<td class=\"{class}{}\">{}", heat::class_of(value, column.largest), markup(&number));
            if column.class == WITH_UNITS {
                append!(*html, " <i>{unit}</i>");
            }
            html.push_str("</td>");
        }
    }
}

/// Text as markup, with permission to break lines between the parts of a qualified name.
fn breakable(text: &str) -> String {
    markup(text).replace("::", "::<wbr>")
}

/// The form in which a long name is shown first.
fn short_form(text: &str) -> Option<String> {
    // No character takes less than a byte, so short texts need no measuring.
    if text.len() <= LONGEST_NAME {
        return None;
    }
    let shown = visible(text);
    (shown.width() > LONGEST_NAME).then(|| shorten(&shown, SHORT_NAME).into_owned())
}

/// Class of the cells of columns in which numbers carry units of their own: the units are given equal room, so that the
/// numbers line up.
const WITH_UNITS: &str = "num unit";

/// A column, and how its cells are shown.
struct Shown<'a> {
    column: &'a Column,
    class: &'static str,
    /// The share with the longest bar.
    largest: Option<f64>,
}

impl<'a> Shown<'a> {
    fn columns(table: &'a Table) -> Vec<Self> {
        let of_column = |(index, column)| Self::of(column, table.rows.iter().map(move |row| &row[index]));
        let mut columns: Vec<Self> = table.columns.iter().enumerate().map(of_column).collect();
        // What rows are about is told by the first column of text.
        if let Some(name) = columns.iter_mut().find(|shown| shown.column.kind == Kind::Text) {
            name.class = "text name";
        }
        columns
    }

    fn of(column: &'a Column, mut values: impl Iterator<Item = &'a Value> + Clone) -> Self {
        let largest = heat::largest_share(column, values.clone());
        let class = match column.kind {
            Kind::Text => "text",
            Kind::Flag => "flag",
            Kind::Percent => "num share",
            kind if values.any(|value| !quantity(value, kind).unit.is_empty()) => WITH_UNITS,
            _ => "num",
        };
        Self { column, class, largest }
    }
}

fn name_of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Count => "count",
        Kind::Duration => "duration",
        Kind::Bytes => "bytes",
        Kind::Percent => "percent",
        Kind::Number | Kind::InRowUnit => "number",
        Kind::Flag => "flag",
    }
}

fn owned_column(table: &Table) -> Option<usize> {
    table.column("owned").filter(|&owned| table.columns[owned].kind == Kind::Flag)
}

fn push_data(table: &Table, columns: &[Shown<'_>], html: &mut String) {
    html.push_str("<script type=\"application/json\" class=\"table-data\">{\"columns\":[");
    for (index, Shown { column, class, largest }) in columns.iter().enumerate() {
        let largest = largest.map_or("null".to_owned(), |largest| largest.to_string());
        append!(
            *html,
            "{}{{\"kind\":\"{}\",\"class\":\"{class}\",\"largest\":{largest}}}",
            if index == 0 { "" } else { "," },
            name_of_kind(column.kind)
        );
    }
    let owned = owned_column(table).map_or("null".to_owned(), |owned| owned.to_string());
    append!(*html, "],\"owned\":{owned},\"values\":[");
    for index in 0..table.columns.len() {
        html.push_str(if index == 0 { "[" } else { ",[" });
        push_list(table.rows.iter().map(|row| &row[index]), html, push_value);
        html.push(']');
    }
    html.push_str("],\"shown\":[");
    for (index, column) in table.columns.iter().enumerate() {
        html.push_str(if index == 0 { "" } else { "," });
        if matches!(column.kind, Kind::Text | Kind::Flag) {
            html.push_str("null");
            continue;
        }
        html.push('[');
        push_list(table.rows.iter().map(|row| &row[index]), html, |value, html| push_shown(value, column, html));
        html.push(']');
    }
    html.push_str("]}</script>\n");
}

fn push_list<'a>(
    values: impl Iterator<Item = &'a Value>,
    html: &mut String,
    mut push: impl FnMut(&Value, &mut String),
) {
    for (index, value) in values.enumerate() {
        html.push_str(if index == 0 { "" } else { "," });
        push(value, html);
    }
}

fn push_value(value: &Value, html: &mut String) {
    match value {
        Value::Text(text) => match short_form(text) {
            Some(short) => {
                html.push('[');
                push_json_string(&short, html);
                html.push(',');
                push_json_string(text, html);
                html.push(']');
            }
            None => push_json_string(text, html),
        },
        Value::Bool(yes) => append!(*html, "{yes}"),
        Value::Int(integer) => append!(*html, "{integer}"),
        Value::Float(number) if number.is_finite() => append!(*html, "{number}"),
        Value::Missing | Value::Float(_) => html.push_str("null"),
    }
}

fn push_shown(value: &Value, column: &Column, html: &mut String) {
    if number(value).is_none() {
        html.push_str("\"\"");
        return;
    }
    let Quantity { number, unit } = quantity(value, column.kind);
    match unit {
        "" => append!(*html, "\"{number}\""),
        unit => append!(*html, "\"{number}|{unit}\""),
    }
}

fn push_meanings(columns: &[Column], html: &mut String) {
    let told: Vec<&Column> = columns.iter().filter(|column| !column.doc.is_empty()).collect();
    if told.is_empty() {
        return;
    }
    html.push_str("<details class=\"meanings\"><summary>What the columns mean</summary><dl>\n");
    for column in told {
        append!(*html, "<dt>{}</dt><dd>{}</dd>\n", markup(&in_words(&column.name)), markup(&column.doc));
    }
    html.push_str("</dl></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hotspots(rows: &[(&str, bool, Value, f64)]) -> Table {
        let columns = vec![
            Column::new("function", Kind::Text, "", "The \"function\"."),
            Column::new("owned", Kind::Flag, "", ""),
            Column::new("self", Kind::Duration, "ns", "Time in it."),
            Column::new("self_share", Kind::Percent, "percent", "Of all."),
        ];
        let mut table = Table::new("hotspots", "Hot spots", columns);
        for (name, owned, own, share) in rows {
            table.push(vec![(*name).into(), (*owned).into(), own.clone(), (*share).into()]);
        }
        table
    }

    fn html_of(table: &Table) -> String {
        let mut html = String::new();
        push_table(table, None, &mut html);
        html
    }

    fn data_of(html: &str) -> serde_json::Value {
        let start = html.find("class=\"table-data\">").unwrap() + "class=\"table-data\">".len();
        let end = start + html[start..].find("</script>").unwrap();
        serde_json::from_str(&html[start..end]).unwrap()
    }

    #[test]
    fn a_row_has_quantities_bars_and_a_mark_where_it_is_owned() {
        let html = html_of(&hotspots(&[
            ("gz::Step", true, 1_230_000_000_u64.into(), 40.0),
            ("a<b>&c", false, Value::Missing, 10.0),
        ]));
        assert!(html.contains(
            "<tr class=\"mine\"><td class=\"text name\">gz::<wbr>Step</td><td class=\"flag\">yes</td>\
             <td class=\"num unit\">1.23 <i>s</i></td><td class=\"num share h100\">40.00</td></tr>"
        ));
        assert!(html.contains(
            "<tr><td class=\"text name\">a&lt;b&gt;&amp;c</td><td class=\"flag off\">no</td>\
             <td class=\"num unit\">– <i></i></td><td class=\"num share h25\">10.00</td></tr>"
        ));
        assert!(html.contains("data-name=\"self_share\" title=\"Of all.\">self share <i>%</i></th>"));
    }

    #[test]
    fn the_data_holds_exact_values_and_the_text_of_numbers() {
        let name = "x".repeat(LONGEST_NAME + 1);
        let html =
            html_of(&hotspots(&[("</script>", true, i64::MAX.into(), 40.5), (&name, false, Value::Missing, f64::NAN)]));
        let data = data_of(&html);
        assert_eq!(data["values"][0][0], "</script>");
        assert_eq!(data["values"][0][1][1], name);
        assert_eq!(data["values"][1], serde_json::json!([true, false]));
        assert_eq!(data["values"][2], serde_json::json!([i64::MAX, null]));
        assert_eq!(data["values"][3], serde_json::json!([40.5, null]));
        assert_eq!(data["shown"], serde_json::json!([null, null, ["106,752|d", ""], ["40.50", ""]]));
        assert_eq!(data["columns"][3], serde_json::json!({"kind": "percent", "class": "num share", "largest": 40.5}));
        assert_eq!(data["owned"], 1);
    }

    #[test]
    fn of_a_long_table_only_the_first_rows_are_html() {
        let rows = vec![("f", false, Value::from(1_u32), 0.0); ROWS_SHOWN + 1000];
        let html = html_of(&hotspots(&rows));
        assert_eq!(html.matches("<tr").count(), ROWS_SHOWN + 1);
        assert_eq!(data_of(&html)["values"][0].as_array().unwrap().len(), ROWS_SHOWN + 1000);
    }

    #[test]
    fn a_table_without_rows_says_so() {
        let html = html_of(&hotspots(&[]));
        assert!(html.contains("No rows.") && !html.contains("<table"));
    }

    #[test]
    fn figures_carry_units_unless_they_repeat_the_name_and_the_unknown_are_named() {
        let columns = vec![
            Column::new("cycles_total", Kind::Number, "cycles", "All."),
            Column::new("steps", Kind::Count, "steps", ""),
            Column::new("rtf", Kind::Number, "", ""),
            Column::new("coverage", Kind::Percent, "percent", ""),
        ];
        let mut table = Table::new("summary", "Summary", columns);
        table.push(vec![157_000_000_000_u64.into(), 3000_u32.into(), Value::Missing, 97.3.into()]);
        let mut html = String::new();
        push_figures(&table, &mut html);
        let shown: Vec<&str> = html.split("<dd>").skip(1).map(|rest| rest.split("</dd>").next().unwrap()).collect();
        assert_eq!(shown, ["157 <i>G cycles</i>", "3,000", "97.30 <i>%</i>"]);
        assert!(html.contains("Not known: rtf."));
    }
}

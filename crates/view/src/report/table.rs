//! A table in the page: its first rows as HTML, and all of it as data for the script.
//!
//! The data is one JSON object:
//!
//! | key | holds |
//! |---|---|
//! | `columns` | for each column: `kind`, the `class` of its cells, and `largest`, the share with the longest bar, or null |
//! | `owned` | index of the column that says whether a row is owned, or null |
//! | `values` | for each column, every row's value: a number, a text, true, false or null; of a long text its short form and itself |
//! | `shown` | for each column of numbers, every row's text as `number` or `number|unit`; for others null |
//! | `bounds` | for each column of estimates, every row's interval as text, and both bounds as numbers; for others null |
//! | `tones` | for each column of verdicts, the class of each word; for others null |
//!
//! Columns are those of the [reading](crate::reading) of the table: an estimate and its interval are one.

use stepscope_model::note::ShownNotes;
use stepscope_model::{Column, Kind, Note, NoteKind, Row, Table, Value};
use unicode_width::UnicodeWidthStr;

use super::heat;
use crate::embed::{append, markup, push_json_string};
use crate::reading::{Cell, Field, Reading, Tone, is_prose, unit_column};
use crate::shorten::shorten;
use crate::visible::visible;
use stepscope_model::quantity::{Quantity, header_unit, number};

/// Rows of a long table that are shown until the reader asks for more.
pub(super) const ROWS_SHOWN: usize = 15;

/// Names that take more columns than this are shortened to fewer until the reader unfolds them.
const LONGEST_NAME: usize = 120;
const SHORT_NAME: usize = 96;

/// Appends a table: column headers, first rows, data and the columns' docs.
pub(super) fn push_table(table: &Table, heading: Option<&str>, shown: &mut ShownNotes, html: &mut String) {
    append!(*html, "<div class=\"table\" data-rows=\"{}\">\n<div class=\"bar\">", table.rows.len());
    if let Some(heading) = heading {
        append!(*html, "<h4>{}</h4>", markup(heading));
    }
    html.push_str("</div>\n");
    let reading = Reading::of(table);
    if table.rows.is_empty() {
        html.push_str("<p class=\"none\">No rows.</p>\n");
    } else if reading.has_below() {
        push_cards(table, &reading, html);
    } else {
        append!(*html, "<div class=\"scroll\"><table aria-label=\"{}\">\n", markup(&table.title));
        let columns = HtmlColumn::columns(table, &reading);
        push_header(&columns, html);
        push_first_rows(table, &reading, &columns, html);
        html.push_str("</table></div>\n");
        push_data(table, &reading, &columns, html);
    }
    push_notes(&table.notes, shown, html);
    push_meanings(&table.columns, html);
    html.push_str("</div>\n");
}

/// Appends each row as a card: its first prose as the heading, its other fields in a line, then the texts below it.
fn push_cards(table: &Table, reading: &Reading<'_>, html: &mut String) {
    let heading = reading.heading();
    html.push_str("<ol class=\"cards\">\n");
    for ((row, number), place) in table.rows.iter().zip(reading.numbers()).zip(1..) {
        match number == place {
            true => html.push_str("<li>"),
            false => append!(*html, "<li value=\"{number}\">"),
        }
        if let Some(heading) = heading {
            append!(*html, "<h5>{}</h5>", with_code(&reading.cell(row, heading).quantity.number));
        }
        html.push_str("<p class=\"facts\">");
        for field in reading.card_fields(row) {
            let (column, cell) = (&table.columns[field.column], reading.cell(row, field));
            let shown = shown_figure(&cell.quantity, column);
            let bounds = cell.bounds.map_or(String::new(), |bounds| format!(" <small>{}</small>", markup(&bounds)));
            let (doc, name) = (markup(&column.doc), header(column));
            append!(*html, "<span title=\"{doc}\">{} <b>{shown}</b>{bounds}</span> ", markup(&name));
        }
        html.push_str("</p><dl>");
        for (name, lines) in reading.below(row) {
            append!(*html, "<dt>{}</dt>", markup(name));
            lines.for_each(|line| append!(*html, "<dd>{}</dd>", with_code(line)));
        }
        html.push_str("</dl></li>\n");
    }
    html.push_str("</ol>\n");
}

/// Appends a table's rows as groups of figures, and names those that are not known.
pub(super) fn push_figures(table: &Table, shown: &mut ShownNotes, html: &mut String) {
    let reading = Reading::of(table);
    for row in &table.rows {
        let known = |field: &&Field| row[field.column] != Value::Missing;
        html.push_str("<dl class=\"figures\">\n");
        for field in reading.fields.iter().filter(known) {
            push_figure(&row[field.column], &table.columns[field.column], &reading.cell(row, *field), html);
        }
        html.push_str("</dl>\n");
        let unknown: Vec<String> = reading
            .fields
            .iter()
            .filter(|field| !known(field))
            .map(|field| header(&table.columns[field.column]))
            .collect();
        if !unknown.is_empty() {
            append!(*html, "<p class=\"note\">Not known: {}.</p>\n", markup(&unknown.join(", ")));
        }
    }
    if table.rows.is_empty() {
        html.push_str("<p class=\"none\">Nothing to sum up.</p>\n");
    }
    push_notes(&table.notes, shown, html);
}

fn push_figure(value: &Value, column: &Column, cell: &Cell, html: &mut String) {
    let (class, shown) = match value {
        Value::Text(_) => (" class=\"words\"", breakable(&cell.quantity.number)),
        _ => ("", shown_figure(&cell.quantity, column)),
    };
    let bounds = cell.bounds.as_ref().map_or(String::new(), |bounds| format!(" <small>{}</small>", markup(bounds)));
    let (doc, name) = (markup(&column.doc), header(column));
    append!(*html, "<div title=\"{doc}\"{class}><dt>{}</dt><dd>{shown}{bounds}</dd></div>\n", markup(&name));
}

/// The unit in a column's header, unless it only repeats the name (`steps`, in steps).
fn unit_of_header(column: &Column) -> &str {
    Some(header_unit(column)).filter(|unit| *unit != column.name).unwrap_or("")
}

/// A figure with its unit.
fn shown_figure(quantity: &Quantity, column: &Column) -> String {
    let number = markup(&quantity.number);
    let unit = [quantity.unit, unit_of_header(column)].join(" ");
    match unit.trim() {
        "" => number.into_owned(),
        unit => format!("{number} <i>{}</i>", markup(unit)),
    }
}

/// A column's header: its label as it is, else its name as people write it (`self share`).
fn header(column: &Column) -> String {
    column.label.clone().unwrap_or_else(|| column.name.replace('_', " "))
}

/// Appends the notes that were not shown yet, losses as warnings.
pub(super) fn push_notes(notes: &[Note], shown: &mut ShownNotes, html: &mut String) {
    for note in shown.add(notes) {
        match note.kind() {
            NoteKind::Loss => push_warning(&note, html),
            _ => append!(*html, "<p class=\"note\">{}</p>\n", with_code(&note.to_string())),
        }
    }
}

pub(super) fn push_warning(note: &Note, html: &mut String) {
    append!(*html, "<p class=\"note warning\"><b>Warning:</b> {}</p>\n", with_code(&note.to_string()));
}

/// Text as markup, with code in place of text in backticks.
fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return markup(text).into_owned();
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => markup(part).into_owned(),
        _ => format!("<code>{}</code>", markup(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

fn push_header(columns: &[HtmlColumn<'_>], html: &mut String) {
    html.push_str("<thead><tr>");
    for HtmlColumn { column, class, field, .. } in columns {
        // The interval is a cell of its own, so that both line up.
        let span = if field.bounds.is_some() { " colspan=\"2\"" } else { "" };
        append!(
            *html,
            "<th scope=\"col\" class=\"{class}\"{span} data-name=\"{}\" title=\"{}\">{}",
            markup(&column.name),
            markup(&column.doc),
            markup(&header(column))
        );
        match unit_of_header(column) {
            "" => {}
            unit => append!(*html, " <i>{}</i>", markup(unit)),
        }
        html.push_str("</th>");
    }
    html.push_str("</tr></thead>\n");
}

fn push_first_rows(table: &Table, reading: &Reading<'_>, columns: &[HtmlColumn<'_>], html: &mut String) {
    let owned = owned_column(table);
    html.push_str("<tbody>\n");
    for row in table.rows.iter().take(ROWS_SHOWN) {
        let is_owned = owned.is_some_and(|owned| row[owned] == Value::Bool(true));
        html.push_str(if is_owned { "<tr class=\"mine\">" } else { "<tr>" });
        for column in columns {
            push_cell(&row[column.field.column], &reading.cell(row, column.field), column, html);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>");
}

/// A cell as the script makes it too.
fn push_cell(value: &Value, cell: &Cell, column: &HtmlColumn<'_>, html: &mut String) {
    let class = column.class;
    match value {
        Value::Text(text) => match (Tone::of(column.column, value), column.short_form(text)) {
            (Some(tone), _) => {
                append!(*html, "<td class=\"{class} {}\">{}</td>", tone.class(), markup(text));
            }
            (None, Some(short)) => append!(
                *html,
                "<td class=\"{class}\"><details><summary>{}</summary>{}</details></td>",
                breakable(&short),
                breakable(text)
            ),
            (None, None) => append!(*html, "<td class=\"{class}\">{}</td>", breakable(&cell.quantity.number)),
        },
        Value::Bool(false) => append!(*html, "<td class=\"{class} off\">no</td>"),
        value => {
            let Quantity { number, unit } = &cell.quantity;
            append!(*html, "<td class=\"{class}{}\">{}", heat::class_of(value, column.largest), markup(number));
            if column.class == WITH_UNITS {
                append!(*html, " <i>{unit}</i>");
            }
            html.push_str("</td>");
        }
    }
    if column.field.bounds.is_some() {
        append!(*html, "<td class=\"bounds\">{}</td>", cell.bounds.as_deref().unwrap_or(""));
    }
}

/// Text as markup, with permission to break lines between the parts of a qualified name. Indentation is kept.
fn breakable(text: &str) -> String {
    let name = text.trim_start_matches(' ');
    let indentation = "\u{a0}".repeat(text.len() - name.len());
    format!("{indentation}{}", markup(name).replace("::", "::<wbr>"))
}

/// Class of the cells of columns in which numbers carry units of their own: the units are given equal room, so that the
/// numbers line up.
const WITH_UNITS: &str = "num unit";

/// A column, and how its cells are shown.
struct HtmlColumn<'a> {
    field: Field,
    column: &'a Column,
    class: &'static str,
    /// The share with the longest bar.
    largest: Option<f64>,
}

impl<'a> HtmlColumn<'a> {
    fn columns(table: &'a Table, reading: &Reading<'_>) -> Vec<Self> {
        let mut columns: Vec<Self> = reading.fields.iter().map(|&field| Self::of(field, table, reading)).collect();
        // The column with the longest text names the rows, the first of equals.
        let longest = |shown: &&mut Self| {
            let length = |row: &Row| if let Value::Text(text) = &row[shown.field.column] { text.len() } else { 0 };
            table.rows.iter().map(length).max()
        };
        let texts = columns.iter_mut().rev().filter(|shown| shown.class == "text" && !is_prose(shown.column));
        if let Some(name) = texts.max_by_key(longest) {
            name.class = "text name";
        }
        columns
    }

    fn of(field: Field, table: &'a Table, reading: &Reading<'_>) -> Self {
        let column = &table.columns[field.column];
        let largest = heat::largest_share(column, table.rows.iter().map(|row| &row[field.column]));
        let has_unit = |row: &Row| !reading.cell(row, field).quantity.unit.is_empty();
        let class = match column.kind {
            Kind::Text if unit_column(table) == Some(field.column) => "text of",
            Kind::Text => "text",
            Kind::Prose => "text prose",
            Kind::Flag => "flag",
            Kind::Percent => "num share",
            _ if table.rows.iter().any(has_unit) => WITH_UNITS,
            _ => "num",
        };
        Self { field, column, class, largest }
    }

    /// The form in which a long name is shown first.
    fn short_form(&self, text: &str) -> Option<String> {
        // No character takes less than a byte, so short texts need no measuring.
        if self.column.kind == Kind::Prose || text.len() <= LONGEST_NAME {
            return None;
        }
        let shown = visible(text);
        (shown.width() > LONGEST_NAME).then(|| shorten(&shown, SHORT_NAME).into_owned())
    }
}

fn name_of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Prose => "text",
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

fn push_data(table: &Table, reading: &Reading<'_>, columns: &[HtmlColumn<'_>], html: &mut String) {
    html.push_str("<script type=\"application/json\" class=\"table-data\">{\"columns\":");
    push_list(columns, html, |HtmlColumn { column, class, largest, .. }, html| {
        let largest = largest.map_or("null".to_owned(), |largest| largest.to_string());
        let kind = name_of_kind(column.kind);
        append!(*html, "{{\"kind\":\"{kind}\",\"class\":\"{class}\",\"largest\":{largest}}}");
    });
    let owned = owned_column(table)
        .and_then(|owned| reading.fields.iter().position(|field| field.column == owned))
        .map_or("null".to_owned(), |owned| owned.to_string());
    append!(*html, ",\"owned\":{owned},\"values\":");
    push_list(columns, html, |shown, html| {
        push_list(&table.rows, html, |row, html| push_value(shown, row, reading, html));
    });
    html.push_str(",\"shown\":");
    push_list(columns, html, |shown, html| match shown.column.kind {
        Kind::Text | Kind::Prose | Kind::Flag => html.push_str("null"),
        _ => push_list(&table.rows, html, |row, html| {
            push_shown(&row[shown.field.column], &reading.cell(row, shown.field), html);
        }),
    });
    html.push_str(",\"bounds\":");
    push_list(columns, html, |shown, html| match shown.field.bounds {
        None => html.push_str("null"),
        Some(bounds) => push_list(&table.rows, html, |row, html| {
            append!(*html, "[\"{}\"", reading.cell(row, shown.field).bounds.unwrap_or_default());
            for end in bounds {
                match number(&row[end]) {
                    Some(end) => append!(*html, ",{end}"),
                    None => html.push_str(",null"),
                }
            }
            html.push(']');
        }),
    });
    html.push_str(",\"tones\":");
    push_list(columns, html, |shown, html| push_tones(shown, table, html));
    html.push_str("}</script>\n");
}

/// The classes of the words that occur as verdicts.
fn push_tones(shown: &HtmlColumn<'_>, table: &Table, html: &mut String) {
    let mut tones = std::collections::BTreeMap::new();
    for value in table.rows.iter().map(|row| &row[shown.field.column]) {
        if let (Value::Text(text), Some(tone)) = (value, Tone::of(shown.column, value)) {
            tones.insert(text, tone.class());
        }
    }
    if tones.is_empty() {
        html.push_str("null");
        return;
    }
    for (index, (text, class)) in tones.into_iter().enumerate() {
        html.push(if index == 0 { '{' } else { ',' });
        push_json_string(text, html);
        append!(*html, ":\"{class}\"");
    }
    html.push('}');
}

/// Appends a JSON array.
fn push_list<T>(values: impl IntoIterator<Item = T>, html: &mut String, mut push: impl FnMut(T, &mut String)) {
    html.push('[');
    for (index, value) in values.into_iter().enumerate() {
        html.push_str(if index == 0 { "" } else { "," });
        push(value, html);
    }
    html.push(']');
}

fn push_value(shown: &HtmlColumn<'_>, row: &Row, reading: &Reading<'_>, html: &mut String) {
    match &row[shown.field.column] {
        Value::Text(text) => match shown.short_form(text) {
            Some(short) => {
                html.push('[');
                push_json_string(&short, html);
                html.push(',');
                push_json_string(text, html);
                html.push(']');
            }
            None => push_json_string(&reading.cell(row, shown.field).quantity.number, html),
        },
        Value::Bool(yes) => append!(*html, "{yes}"),
        Value::Int(integer) => append!(*html, "{integer}"),
        Value::Float(number) if number.is_finite() => append!(*html, "{number}"),
        Value::Missing | Value::Float(_) => html.push_str("null"),
    }
}

fn push_shown(value: &Value, cell: &Cell, html: &mut String) {
    if number(value).is_none() {
        html.push_str("\"\"");
        return;
    }
    let Quantity { number, unit } = &cell.quantity;
    match *unit {
        "" => append!(*html, "\"{number}\""),
        unit => append!(*html, "\"{number}|{unit}\""),
    }
}

fn push_meanings(columns: &[Column], html: &mut String) {
    let documented: Vec<&Column> = columns.iter().filter(|column| !column.doc.is_empty()).collect();
    if documented.is_empty() {
        return;
    }
    html.push_str("<details class=\"meanings\"><summary>What the columns mean</summary><dl>\n");
    for column in documented {
        append!(*html, "<dt>{}</dt><dd>{}</dd>\n", markup(&header(column)), markup(&column.doc));
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
        push_table(table, None, &mut ShownNotes::default(), &mut html);
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
    fn a_label_is_the_header_as_it_is_and_the_name_stays_for_scripts() {
        let column = Column::new("after", Kind::Count, "", "Mean.").labelled("no_<pool>");
        let mut table = Table::new("t", "t", vec![column]);
        table.push(vec![Value::from(1)]);
        let html = html_of(&table);
        assert!(html.contains("data-name=\"after\" title=\"Mean.\">no_&lt;pool&gt;</th>"), "{html}");
        assert!(html.contains("<dt>no_&lt;pool&gt;</dt><dd>Mean.</dd>"), "{html}");
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

    /// ```text
    /// metric  unit     before  ratio [low, high]  verdict
    /// p99     ns/step  4.2e6   0.512 [0.48, 0.55] changed
    /// rss     bytes    2048    –                  inconclusive
    /// ```
    fn comparison() -> Table {
        let column = |name: &str, kind| Column::new(name, kind, "", "");
        let mut columns = vec![column("metric", Kind::Text), column("unit", Kind::Text)];
        columns.push(column("before", Kind::InRowUnit));
        columns.extend(["ratio", "ratio_low", "ratio_high"].map(|name| column(name, Kind::Number)));
        columns.push(column("verdict", Kind::Text));
        let mut table = Table::new("compare_runs", "Whole runs", columns);
        let ratio = [0.512, 0.48, 0.55].map(Value::from);
        let row = |metric: &str, unit: &str, before: f64, ratio: [Value; 3], verdict: &str| {
            let [metric, unit, verdict] = [metric, unit, verdict].map(Value::from);
            [metric, unit, before.into()].into_iter().chain(ratio).chain([verdict]).collect()
        };
        table.push(row("p99", "ns/step", 4.2e6, ratio, "changed"));
        table.push(row("rss", "bytes", 2048.0, [Value::Missing, Value::Missing, Value::Missing], "inconclusive"));
        table
    }

    #[test]
    fn an_estimate_has_a_cell_for_its_interval_and_a_verdict_a_tone() {
        let html = html_of(&comparison());
        assert!(html.contains("<th scope=\"col\" class=\"num\" colspan=\"2\" data-name=\"ratio\""), "{html}");
        assert!(!html.contains("data-name=\"ratio_low\""));
        assert!(html.contains(
            "<td class=\"text of\">/step</td><td class=\"num unit\">4.20 <i>ms</i></td><td class=\"num\">0.51</td>\
             <td class=\"bounds\">[0.48, 0.55]</td><td class=\"text strong\">changed</td></tr>"
        ));
        assert!(
            html.contains(
                "<td class=\"num\">–</td><td class=\"bounds\"></td><td class=\"text faint\">inconclusive</td>"
            )
        );
        let data = data_of(&html);
        assert_eq!(data["columns"].as_array().unwrap().len(), 5);
        assert_eq!(data["values"][2], serde_json::json!([4_200_000, 2048]), "exact");
        let bounds = serde_json::json!([null, null, null, [["[0.48, 0.55]", 0.48, 0.55], ["", null, null]], null]);
        assert_eq!(data["bounds"], bounds);
        assert_eq!(data["tones"][4], serde_json::json!({"changed": "strong", "inconclusive": "faint"}));
    }

    #[test]
    fn of_a_long_table_only_the_first_rows_are_html() {
        let rows = vec![("f", false, Value::from(1_u32), 0.0); ROWS_SHOWN + 1000];
        let html = html_of(&hotspots(&rows));
        assert_eq!(html.matches("<tr").count(), ROWS_SHOWN + 1);
        assert_eq!(data_of(&html)["values"][0].as_array().unwrap().len(), ROWS_SHOWN + 1000);
    }

    #[test]
    fn cards_in_another_order_keep_their_numbers() {
        let mut html = String::new();
        let table = crate::tests::findings();
        push_cards(&table, &Reading::of(&table), &mut html);
        assert!(html.contains("<li value=\"2\"><h5><code>g</code> waits</h5>"), "{html}");
    }

    #[test]
    fn rows_with_texts_below_are_cards() {
        let columns = vec![
            Column::new("number", Kind::Count, "", ""),
            Column::new("finding", Kind::Prose, "", ""),
            Column::new("gain", Kind::Duration, "ns", "Time."),
            Column::new("evidence", Kind::Text, "", "").below(),
        ];
        let mut table = Table::new("findings", "Findings", columns);
        table.push(vec![1.into(), "`f<int>` scans".into(), 2e6.into(), "40 %.\nSee `x`.".into()]);
        let html = html_of(&table);
        let card = "<li><h5><code>f&lt;int&gt;</code> scans</h5><p class=\"facts\"><span title=\"Time.\">gain \
                    <b>2.00 <i>ms</i></b></span> </p><dl><dt>evidence</dt><dd>40 %.</dd><dd>See <code>x</code>.</dd></dl></li>";
        assert!(html.contains(card), "{html}");
        assert!(!html.contains("<table"), "{html}");
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
        push_figures(&table, &mut ShownNotes::default(), &mut html);
        let shown: Vec<&str> = html.split("<dd>").skip(1).map(|rest| rest.split("</dd>").next().unwrap()).collect();
        assert_eq!(shown, ["157 <i>G cycles</i>", "3,000", "97.30 <i>%</i>"]);
        assert!(html.contains("Not known: rtf."));
    }
}

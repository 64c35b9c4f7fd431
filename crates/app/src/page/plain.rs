//! What the page shows without scripts: the first rows of the report's first tables.

use std::fmt::Write;

use stepscope_model::quantity::unit_beside_name;
use stepscope_model::{Importance, Table};
use stepscope_view::embed;
use stepscope_view::reading::{Field, Reading};
use stepscope_view::report::{Block, Report, Section};
use stepscope_view::shorten::shorten;

use crate::document::header;
use crate::profile::cut;

/// Tables that are shown.
const TABLES: usize = 4;

/// Rows of each.
const ROWS: usize = 10;

/// Characters of a text that are shown.
const LONGEST: usize = 200;

/// A `noscript` element.
pub(super) fn html(report: &Report) -> String {
    let mut html = String::from("<noscript>\n");
    let _ = writeln!(html, "<h1>{}</h1>", markup(&report.title));
    html.push_str(
        "<p>This page needs scripts for its timeline, flame graphs and other tables. These are the first tables.</p>\n",
    );
    for warning in &report.warnings {
        let _ = writeln!(html, "<p>Warning: {}</p>", markup(&warning.to_string()));
    }
    tables(&report.sections).into_iter().take(TABLES).for_each(|table| push(table, &mut html));
    html.push_str("</noscript>\n");
    html
}

/// Text as markup, shortened if it is long.
fn markup(text: &str) -> String {
    embed::markup(&shorten(&cut(text), LONGEST)).into_owned()
}

/// The tables of sections, in order.
fn tables(sections: &[Section]) -> Vec<&Table> {
    let mut found = Vec::new();
    for section in sections {
        found.extend(section.blocks.iter().filter_map(table_of));
        found.extend(tables(&section.sections));
    }
    found
}

fn table_of(block: &Block) -> Option<&Table> {
    match block {
        Block::Table(table) | Block::Figures(table) => Some(table),
        _ => None,
    }
}

fn push(table: &Table, html: &mut String) {
    let reading = Reading::of(table);
    let is_shown = |field: &&Field| table.columns[field.column].importance > Importance::Detail;
    let fields: Vec<Field> = reading.fields.iter().filter(is_shown).copied().collect();
    let _ = writeln!(html, "<h2>{}</h2>\n<table><thead><tr>", markup(&table.title));
    for field in &fields {
        let column = &table.columns[field.column];
        let _ = write!(html, "<th>{} {}</th>", markup(&header(column)), markup(unit_beside_name(column)));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in table.rows.iter().take(ROWS) {
        html.push_str("<tr>");
        for field in &fields {
            let cell = reading.cell(row, *field);
            let shown = format!("{} {}", cell.quantity, cell.bounds.unwrap_or_default());
            let _ = write!(html, "<td>{}</td>", markup(shown.trim_end()));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    if table.rows.len() > ROWS {
        let _ = writeln!(html, "<p>{} more rows.</p>", table.rows.len() - ROWS);
    }
}

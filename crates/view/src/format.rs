//! [`render`]: any table in any text format.

use std::io::{self, Write};
use std::str::FromStr;

use stepscope_model::{Table, table};
use strum::{Display, EnumCount, IntoStaticStr, VariantArray};

use crate::delimited::{self, Delimiter};
use crate::style::Style;
use crate::{json, markdown, sarif, terminal};

/// A form of text that a table can take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// Aligned columns for people: [`terminal`].
    #[default]
    Table,
    /// Tab-separated exact values: [`delimited`].
    Tsv,
    /// Comma-separated exact values (RFC 4180): [`delimited`].
    Csv,
    /// One JSON object, indented: [`json`].
    Json,
    /// The same object on one line.
    JsonCompact,
    /// A GitHub-flavoured Markdown table for people: [`markdown`].
    Markdown,
    /// Findings as SARIF, for code hosts: [`sarif`].
    Sarif,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used with `--format`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An unknown name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an output format; use one of table, tsv, csv, json, json-compact, markdown, sarif")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Writes `table` in `format`. The style applies to [`Format::Table`] only.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => terminal::render(table, style, out),
        Format::Tsv => delimited::render(table, Delimiter::Tab, out),
        Format::Csv => delimited::render(table, Delimiter::Comma, out),
        Format::Json => json::render(table, json::Layout::Indented, out),
        Format::JsonCompact => json::render(table, json::Layout::Compact, out),
        Format::Markdown => markdown::render(table, out),
        Format::Sarif => sarif::render_all(std::slice::from_ref(table), out),
    }
}

/// Writes several tables in `format`: a blank line between them, or for JSON one object, `{"tables": [...]}`, unless
/// there is exactly one. For people, equal notes of several tables appear once.
///
/// # Errors
/// Those of writing to `out`.
pub fn render_all(tables: &[Table], format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    match (tables, format) {
        ([_, _, ..] | [], Format::Json) => return json::render_all(tables, json::Layout::Indented, out),
        ([_, _, ..] | [], Format::JsonCompact) => return json::render_all(tables, json::Layout::Compact, out),
        (_, Format::Sarif) => return sarif::render_all(tables, out),
        ([table], Format::Json | Format::JsonCompact) => return render(table, format, style, out),
        _ => {}
    }
    let mut tables = tables.to_vec();
    table::collapse(&mut tables);
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        render(table, format, style, out)?;
    }
    Ok(())
}

/// The text of [`render_all`], for a pager.
pub fn text(tables: &[Table], format: Format, style: &Style) -> String {
    let mut text = Vec::new();
    render_all(tables, format, style, &mut text).expect("memory takes any text");
    String::from_utf8(text).expect("every format is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name_and_the_error_lists_them_all() {
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert!(error.contains(format.name()), "{error}");
        }
    }
}

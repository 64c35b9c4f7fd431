//! A table as one JSON object: `{"table", "title", "columns", "rows", "notes"}`.
//!
//! Integers are exact (readers that hold numbers as doubles lose what exceeds 2^53); names are whole.

use std::io::{self, Write};

use serde::Serialize;
use stepscope_model::Table;

/// How the object is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Indented by two spaces a level.
    Indented,
    /// On one line.
    Compact,
}

/// Writes the object and a line feed.
///
/// # Errors
/// Those of writing to `out`.
pub fn render(table: &Table, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    write(table, layout, out)
}

/// Writes several tables as one object, `{"tables": [...]}`, and a line feed.
///
/// # Errors
/// Those of writing to `out`.
pub fn render_all(tables: &[Table], layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Tables<'a> {
        tables: &'a [Table],
    }
    write(&Tables { tables }, layout, out)
}

fn write(value: &impl Serialize, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    match layout {
        Layout::Indented => serde_json::to_writer_pretty(&mut *out, value)?,
        Layout::Compact => serde_json::to_writer(&mut *out, value)?,
    }
    out.write_all(b"\n")
}

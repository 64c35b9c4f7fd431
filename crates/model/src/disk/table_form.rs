//! What a table of a capture is on disk.

use std::ops::Range;

use super::columns::Rows;
use super::table_writer::Column;
use crate::capture::Capture;

/// A table of the format on disk.
pub(super) struct TableForm {
    pub(super) name: &'static str,
    pub(super) len: fn(&Capture) -> usize,
    /// The columns of some rows.
    pub(super) columns: fn(&Capture, Range<usize>) -> Vec<Column>,
    /// Whether a capture without rows has no file of it.
    pub(super) is_optional: bool,
    /// Appends rows.
    pub(super) read: fn(&Rows, &mut Capture) -> Result<(), String>,
}

impl TableForm {
    pub(super) fn file(&self) -> String {
        format!("{}.parquet", self.name)
    }
}

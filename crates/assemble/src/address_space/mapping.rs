//! An executable mapping.

use std::ops::Range;

use crate::entry::ModuleRef;

/// Where a file, or code without one, is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub range: Range<u64>,
    /// Offset in the module of the range's start; the absolute address for code without a file.
    pub offset: u64,
    pub module: ModuleRef,
}

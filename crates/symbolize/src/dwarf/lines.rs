//! Source files and lines.

use std::sync::Arc;

use gimli::{IncompleteLineProgram, LineProgramHeader};
use rustc_hash::FxHashMap;

use super::{Dwarf, Slice, Unit};
use crate::texts::Texts;

/// A row of a unit's line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Index in the unit's list of files.
    pub file: u64,
    /// Line; absent for code without one.
    pub line: Option<u32>,
}

/// The rows that cover `addresses` (ascending). From a damaged table, the rows before the damage.
pub(super) fn rows_at(program: IncompleteLineProgram<Slice<'_>>, addresses: &[u64]) -> Vec<Option<Row>> {
    let mut found = vec![None; addresses.len()];
    let mut rows = program.rows();
    // The previous row, and the index of the first address at or after it. Addresses never decrease within a sequence.
    let mut before: Option<(u64, Row, usize)> = None;
    while let Ok(Some((_, row))) = rows.next_row() {
        let address = row.address();
        let next = match before {
            Some((start, covering, first)) if address >= start => {
                let covered = addresses[first..].iter().take_while(|&&wanted| wanted < address).count();
                found[first..first + covered].fill(Some(covering));
                first + covered
            }
            _ => addresses.partition_point(|&wanted| wanted < address),
        };
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        before = (!row.end_sequence()).then_some((address, Row { file: row.file_index(), line }, next));
    }
    found
}

/// The names of a unit's source files.
pub(super) struct Files<'a, 'data> {
    dwarf: &'a Dwarf<'data>,
    unit: &'a Unit<'data>,
    header: Option<&'a LineProgramHeader<Slice<'data>>>,
    names: FxHashMap<u64, Option<Arc<str>>>,
}

impl<'a, 'data> Files<'a, 'data> {
    pub(super) fn of(dwarf: &'a Dwarf<'data>, unit: &'a Unit<'data>) -> Self {
        let header = unit.line_program.as_ref().map(|program| program.header());
        Self { dwarf, unit, header, names: FxHashMap::default() }
    }

    /// The name of the file at `index`.
    pub(super) fn name(&mut self, index: u64, texts: &mut Texts) -> Option<Arc<str>> {
        if let Some(name) = self.names.get(&index) {
            return name.clone();
        }
        let name = self.path(index).map(|path| texts.intern(&path));
        self.names.insert(index, name.clone());
        name
    }

    /// The file's path: name, directory and compiler's directory are joined as long as they are relative.
    fn path(&self, index: u64) -> Option<String> {
        let header = self.header?;
        let file = header.file(index)?;
        let text = |value| self.dwarf.attr_string(self.unit, value).ok().map(|text| text.to_string_lossy());
        let mut path = self.unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default();
        // Directory 0 is the compiler's working directory: listed in version 5, implied before.
        if file.directory_index() != 0 {
            append(&mut path, &file.directory(header).and_then(text).unwrap_or_default());
        }
        append(&mut path, &text(file.path_name())?);
        Some(path)
    }
}

fn append(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_are_joined_to_the_previous_directory() {
        let path = |parts: &[&str]| {
            let mut path = String::new();
            parts.iter().for_each(|part| append(&mut path, part));
            path
        };
        assert_eq!(path(&["/build", "src", "a.cpp"]), "/build/src/a.cpp");
        assert_eq!(path(&["/build", "/usr/include", "a.h"]), "/usr/include/a.h");
        assert_eq!(path(&["", "a.c"]), "a.c");
    }
}

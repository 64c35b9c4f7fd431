//! Findings of captures, with the machine code of their programs and their Python sources as evidence.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use stepscope_analyze::diagnose::{self, Calls, ReadCode, WantedFile};
use stepscope_analyze::{Selection, parallel};
use stepscope_convert::export::started_at_ns;
use stepscope_model::{FileLoops, Table};
use stepscope_symbolize::{Options, Symbolizer, python_loops};

/// The table `findings`. Code that is not here, or of another build, is no evidence.
pub fn findings(selections: &[Selection<'_>], calls: &Calls) -> Table {
    diagnose::table_with_code(selections, calls, &read_code(selections))
}

/// The loops of the code that findings need.
pub fn read_code(selections: &[Selection<'_>]) -> ReadCode {
    let wanted = diagnose::wanted(selections);
    let modules =
        parallel::map(&wanted, |wanted| Symbolizer::new(Options::default()).loops(&wanted.module, &wanted.addresses));
    let files = diagnose::wanted_files(selections);
    let files = files.iter().filter_map(|wanted| loops_of_file(wanted, selections)).collect();
    ReadCode { modules, files }
}

/// The loops of a source that has not changed since it was recorded.
fn loops_of_file(wanted: &WantedFile, selections: &[Selection<'_>]) -> Option<FileLoops> {
    let path = Path::new(&wanted.path);
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    let changed_ns = changed.duration_since(UNIX_EPOCH).ok()?.as_nanos() as i64;
    let is_older = |index: &usize| {
        let started_ns = selections.get(*index).and_then(|one| started_at_ns(one.capture()));
        started_ns.is_some_and(|started_ns| changed_ns < started_ns)
    };
    if !wanted.selections.iter().all(is_older) {
        return None;
    }
    Some(python_loops(&wanted.path, &fs::read_to_string(path).ok()?))
}

//! Findings of captures, with the machine code of their programs as evidence.

use stepscope_analyze::diagnose::{self, Calls};
use stepscope_analyze::{Selection, parallel};
use stepscope_model::Table;
use stepscope_symbolize::{Options, Symbolizer};

/// The table `findings`. Code that is not here, or of another build, is no evidence.
pub fn findings(selections: &[Selection<'_>], calls: &Calls) -> Table {
    let wanted = diagnose::wanted(selections);
    let loops =
        parallel::map(&wanted, |wanted| Symbolizer::new(Options::default()).loops(&wanted.module, &wanted.addresses));
    diagnose::table_with_code(selections, calls, &loops)
}

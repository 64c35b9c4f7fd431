//! Tables that tests of several forms draw.

use stepscope_model::{Column, Table};

/// Findings 2 and 1, as sorted by the user.
pub(crate) fn findings() -> Table {
    let columns = vec![
        Column::count("number", "", "").labelled("#"),
        Column::prose("finding", ""),
        Column::duration("gain", ""),
        Column::text("evidence", "").below(),
    ];
    let mut table = Table::new("findings", "Findings", columns);
    table.push(vec![2.into(), "`g` waits".into(), 1e6.into(), "20 %.".into()]);
    table.push(vec![1.into(), "`f` scans".into(), 2e6.into(), "40 %.".into()]);
    table
}

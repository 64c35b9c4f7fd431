//! Queries of SQLite that read many rows for each one that they return.
//!
//! Evidence: below one owned function, SQLite goes from row to row for much of the CPU time, all the time. Hardly any of it is what each statement costs however
//! much it returns, nor looking a key up in an index or a table, writing, or fetching what was found. Look-alikes: sums and counts over a table, which have to read
//! it; their result can be kept.

use stepscope_model::StackId;

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};

/// Least share of CPU time.
const LEAST: f64 = 10.0;

/// Least part of the statements' time that going to the next row is: SQLite's interpreter does the rest.
const NEXT: f64 = 0.03;

/// Most part of it for looking up and writing, and for what was found.
const FOUND: f64 = 0.03;
const FETCHED: f64 = 0.1;

const STEPS: [&str; 2] = ["sqlite3_step", "sqlite3VdbeExec"];
const NEXT_ROW: [&str; 2] = ["sqlite3BtreeNext", "sqlite3BtreePrevious"];
const LOOKS_UP: [&str; 6] = [
    "sqlite3BtreeIndexMoveto",
    "sqlite3BtreeTableMoveto",
    "sqlite3BtreeMovetoUnpacked",
    "sqlite3BtreeInsert",
    "sqlite3BtreeDelete",
    "sqlite3BtreeBeginTrans",
];
const FETCHES: [&str; 4] = ["sqlite3_column", "columnMem", "_pysqlite_fetch_one_row", "sqlite3_value"];

/// Functions whose queries scan.
pub(super) fn found(seen: &Seen<'_, '_>) -> Vec<Found> {
    if seen.is_loading() {
        return Vec::new();
    }
    let [steps, next, looks_up, fetches] = [&STEPS[..], &NEXT_ROW, &LOOKS_UP, &FETCHES]
        .map(|names| seen.paths_through(|function| is_one_of(function, names)));
    let owner_of = |stack: StackId| seen.owner(stack).filter(|_| steps[stack.index()]);
    let owners = seen.by_function(owner_of).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
    let scanning = owners.filter(|(owner, amount)| {
        let at = |stack: StackId| owner_of(stack) == Some(*owner);
        let part = |flags: &[bool]| {
            let inside = seen.sum(|stack| seen.owner(stack) == Some(*owner) && flags[stack.index()]);
            inside.weight as f64 / amount.weight.max(1) as f64
        };
        part(&next) >= NEXT && part(&looks_up) < FOUND && part(&fetches) < FETCHED && seen.is_repeated(at)
    });
    scanning
        .map(|(owner, amount)| {
            let title = format!("`{}` has SQLite read many rows for each one that it gets", seen.name(owner));
            let text = format!(
                "Going through rows takes {} of the CPU time. Add an index for what `WHERE` and `ORDER BY` name: `EXPLAIN QUERY PLAN` \
                 says `SCAN` where one is missing.",
                percent(seen.share(amount))
            );
            let without = parts((0..steps.len()).map(|index| owner_of(StackId::from_index(index)) == Some(owner)));
            Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::analyses::diagnose::tests::{found, looping, work};

    #[test]
    fn a_query_that_goes_through_a_table_is_a_scan_and_one_that_looks_its_rows_up_or_returns_them_is_none() {
        const NEXT: &str = "sim::Stop;sqlite3_step;sqlite3VdbeExec;sqlite3BtreeNext";
        const RUN: &str = "sim::Stop;sqlite3_step;sqlite3VdbeExec";
        let of = |other: &str| found(&looping(|_, tenth| work(tenth, &[(1, NEXT), (4, RUN), (5, other)], "sim::Move")));
        assert_eq!(of(RUN), ["full-scan-each-step | sim::Stop | 50"]);
        let looks_up = of("sim::Stop;sqlite3_step;sqlite3VdbeExec;sqlite3BtreeTableMoveto");
        assert!(looks_up.is_empty(), "{looks_up:?}");
        let returns = of("sim::Stop;sqlite3_column_double");
        assert!(returns.is_empty(), "{returns:?}");
    }
}

//! A database is asked once per item instead of once for all.
//!
//! Evidence: below one owned function, most of a database's time is what each statement costs however much it returns:
//! preparing it, locking the file, asking the server. A statement that returns many rows has little of it. Look-alikes:
//! few statements on a remote server, whose time is waiting, not CPU time; those are below the limit.

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use crate::query::work::Work;
use stepscope_model::{FrameKind, StackId};

/// Least share of CPU time that the database takes below one function.
const LEAST: f64 = 5.0;

/// Least part of it that statements cost whatever they return.
const FIXED: f64 = 0.2;

/// Beginnings of database clients' module names.
const MODULES: [&str; 4] = ["libsqlite3", "libpq.", "libmysqlclient", "libmariadb"];

/// What SQLite does once per statement: preparation, locks, end.
const ONCE: [&str; 17] = [
    "sqlite3_bind",
    "sqlite3_clear_bindings",
    "get_statement_from_cache",
    "bind_parameters",
    "pysqlite_connection_cursor",
    "pysqlite_cursor_init",
    "_pysqlite_build_column_name",
    "sqlite3LockAndPrepare",
    "sqlite3_prepare",
    "sqlite3Prepare",
    "sqlite3BtreeBeginTrans",
    "sqlite3VdbeHalt",
    "sqlite3_finalize",
    "sqlite3_reset",
    "sqlite3PagerSharedLock",
    "fcntl_setlk",
    "do_fcntl",
];

pub(super) struct QueryPerItem;

impl Kind for QueryPerItem {
    fn name(&self) -> &'static str {
        "query-per-item"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Ask once for all items (`WHERE id IN (...)`, a join), or prepare the statement once within one transaction."
    }

    fn confirm(&self) -> &'static str {
        "Count the statements: `ltrace -c -e sqlite3_step`, or the server's log. As many as items confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let inside = inside(seen);
        let mut found = Vec::new();
        for (owner, amount) in seen.by_owner(|_| true).into_iter().filter(|(_, all)| seen.share(*all) >= LEAST) {
            let of_owner = seen.is_at(owner, |_| true);
            let part = |least: Inside| seen.sum(|stack| of_owner(stack) && inside[stack.index()] >= least);
            let (all, fixed): (Amount, Amount) = (part(Inside::Database), part(Inside::Fixed));
            if seen.share(all) < LEAST || (fixed.weight as f64) < FIXED * all.weight as f64 {
                continue;
            }
            if !seen.is_loading() && !seen.is_repeated(&of_owner) {
                continue;
            }
            let goes = |index: usize| of_owner(StackId::from_index(index)) && inside[index] >= Inside::Fixed;
            let title = format!("`{}` asks the database once per item", seen.name(owner));
            found.push(
                Found::of(seen, owner, title, parts((0..inside.len()).map(goes))).sure(Confidence::Fair).because(
                    format!(
                        "Preparing, locking and ending statements take {} of the CPU time, all its work {}.",
                        percent(seen.share(fixed)),
                        percent(seen.share(amount))
                    ),
                    explain(seen, owner),
                ),
            );
        }
        found.extend(in_python(seen));
        found
    }
}

/// What Python's `sqlite3` does once per statement, where Python functions have no names.
fn in_python(seen: &Seen<'_, '_>) -> Option<Found> {
    const STATEMENTS: [&str; 4] = [
        "pysqlite_connection_execute",
        "pysqlite_cursor_execute",
        "pysqlite_cursor_fetchone",
        "pysqlite_cursor_iternext",
    ];
    const ONCE: [&str; 5] = [
        "get_statement_from_cache",
        "bind_parameters",
        "pysqlite_connection_cursor_impl",
        "pysqlite_cursor_init_impl",
        "_pysqlite_build_column_name",
    ];
    /// Least part of the statements' cost: what SQLite itself does once per statement has no names.
    const PART: f64 = 0.12;
    let (all, once) = (python::below(seen, &STATEMENTS), python::below(seen, &ONCE));
    let [of_all, of_once] = [&all, &once].map(|at| seen.sum(|stack| at[stack.index()]));
    (of_once.weight as f64 >= PART * of_all.weight as f64)
        .then(|| python::found(seen, &once, LEAST, "asks the database once per item", python::IN_CPYTHON))
        .flatten()
}

/// Where a stack's leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Inside {
    Elsewhere,
    Database,
    /// In what a statement costs whatever it returns.
    Fixed,
}

/// For each stack, whether it is inside of a database.
fn inside(seen: &Seen<'_, '_>) -> Vec<Inside> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let of_function = |id: FunctionId| {
        let function = functions.get(id);
        let own = own_name(&function.name);
        match () {
            () if functions.is_owner(id) => None,
            () if ONCE.iter().any(|start| own.starts_with(start)) => Some(Inside::Fixed),
            () if own.starts_with("sqlite3") => Some(Inside::Database),
            () if MODULES.iter().any(|start| function.module.starts_with(start)) => Some(Inside::Database),
            () => Some(Inside::Elsewhere),
        }
    };
    let kinds: Vec<Option<Inside>> = functions.all().map(|(id, _)| of_function(id)).collect();
    let mut found: Vec<Inside> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let id = functions.of_node(capture, StackId::from_index(index));
        let above = node.parent.map_or(Inside::Elsewhere, |parent| found[parent.index()]);
        let is_kernel = functions.get(id).kind == FrameKind::Kernel;
        found.push(match kinds[id.index()] {
            None => Inside::Elsewhere,
            Some(Inside::Fixed) if is_kernel && above == Inside::Elsewhere => Inside::Elsewhere,
            Some(kind) => above.max(kind),
        });
    }
    // Each statement goes to the server and back, and looks whether the file changed.
    let is_trip = |work: Work| matches!(work, Work::Send | Work::Receive | Work::Poll | Work::FileState);
    let with_trips = |(index, inside): (usize, Inside)| match inside {
        Inside::Database if is_trip(seen.work[index]) => Inside::Fixed,
        other => other,
    };
    found.into_iter().enumerate().map(with_trips).collect()
}

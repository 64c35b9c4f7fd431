//! The columns that several analyses share, so that equal names mean equal things.

use stepscope_model::{Capture, Column, Columns, Importance, ThreadId};
use stepscope_stats::Estimate;

use crate::query::functions::{FunctionId, Functions, NO_STACK};
use crate::query::select::Selection;

/// The columns `low` and `high`, after a prefix: the bounds of an estimate.
pub(crate) fn bounds<'a, R: 'a>(
    prefix: &str,
    column: impl Fn(&str, &str) -> Column,
    estimate: impl Fn(&R) -> Option<Estimate> + Copy + 'a,
) -> Columns<'a, R> {
    let bound = |end: &str, doc: &str| {
        column(&format!("{prefix}{end}"), &format!("{doc} bound of its 95 % confidence interval.")).detail()
    };
    Columns::new()
        .with(bound("low", "Lower"), move |row| estimate(row).map(|estimate| estimate.low).into())
        .with(bound("high", "Upper"), move |row| estimate(row).map(|estimate| estimate.high).into())
}

/// The columns `change, change_low, change_high`: a trend from first to last.
pub(crate) fn trend<'a, R: 'a>(doc: &str, estimate: impl Fn(&R) -> Option<Estimate> + Copy + 'a) -> Columns<'a, R> {
    Columns::new()
        .with(Column::percentage("change", doc), move |row| estimate(row).map(|estimate| estimate.value).into())
        .with_all(bounds("change_", Column::percentage, estimate))
}

/// The columns of a function: `function, module, owned, category`. Rows without one are about samples without a stack.
pub(crate) fn of_function<'a>(functions: &'a Functions) -> Columns<'a, Option<FunctionId>> {
    let [name, module, owned, category] = function();
    let get = |id: &Option<FunctionId>| id.map(|id| functions.get(id));
    Columns::new()
        .with(name, move |id| get(id).map_or(NO_STACK, |function| &*function.name).into())
        .with(module, move |id| get(id).map_or("", |function| &*function.module).into())
        .with(owned, move |id| get(id).filter(|_| functions.ownership_known()).map(|function| function.owned).into())
        .with(category, move |id| get(id).map_or("unknown", |function| function.kind.name()).into())
}

/// The column `process` of a thread. It is essential if the capture has several processes.
pub(crate) fn process(capture: &Capture) -> Column {
    let importance = if capture.processes.len() > 1 { Importance::Essential } else { Importance::Detail };
    Column::text("process", "Label of its process; empty where unknown.").at(importance)
}

/// The columns of a thread: `thread, tid, process`.
pub(crate) fn thread<'a>(selection: &Selection<'a>) -> Columns<'a, ThreadId> {
    let (capture, selection) = (selection.capture(), selection.clone());
    let row = |id: &ThreadId| &capture.threads[id.index()];
    Columns::new()
        .with(Column::text("thread", "Last name of the thread."), move |id| row(id).name.as_str().into())
        .with(Column::number("tid", "", "Thread id."), move |id| row(id).tid.into())
        .with(process(capture), move |id| selection.process_label_of(row(id)).into())
}

/// The columns that name a function: `function, module, owned, category`.
pub(crate) fn function() -> [Column; 4] {
    [
        Column::text("function", "Full name of the function, or `(no stack)` for samples without a stack.").essential(),
        Column::text("module", "File name of its module; empty where unknown.").detail(),
        Column::flag(
            "owned",
            "Whether it is code that the user's team can change; missing if no code is marked as owned.",
        )
        .detail(),
        Column::text("category", "Kind of code: native, runtime, allocator, kernel, python or unknown.").detail(),
    ]
}

#[cfg(test)]
pub(crate) mod read {
    //! Reading cells in tests.

    use stepscope_model::{Table, Value};

    /// The named columns of every row, each cell as text: integers and text as they are, real numbers with six decimals,
    /// `-` for a missing value.
    pub(crate) fn cells(table: &Table, columns: &[&str]) -> Vec<String> {
        let cell = |row: usize, column: &&str| match table.get(row, column).unwrap_or_else(|| panic!("column {column}"))
        {
            Value::Missing => "-".to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            Value::Text(value) => value.clone(),
            Value::Bool(value) => value.to_string(),
        };
        (0..table.rows.len())
            .map(|row| columns.iter().map(|column| cell(row, column)).collect::<Vec<_>>().join(" | "))
            .collect()
    }
}

//! Memory errors: which checkers found what, where, and where the memory was allocated.
//!
//! A row is one kind of error at one stack, as the table `memory_errors` of a capture has it. Its function is the one that costs
//! are [attributed](crate::query::functions::Functions::attributed) to: the nearest owned one on the stack, and without
//! configured ownership the nearest one of the program. Its place is the line in that function.
//!
//! Rows are in the order of severity: corruption of memory before undefined behaviour, races and leaks.

use std::cmp::Reverse;

use stepscope_model::{Columns, Dimension, MemoryError, NoteValue, StackId, Table, note};

use crate::analysis::{Analysis, ReportSection, View};
use crate::query::attributed_place::{function, place};
use crate::query::loops::Loops;
use crate::query::select::Selection;

/// Errors that are certain to be defects come first; blocks that live at the exit may be meant.
fn severity(kind: &str) -> u8 {
    match kind {
        "live at exit" => 4,
        "possible leak" => 3,
        "leak" => 2,
        "data race" | "lock order inversion" | "thread leak" => 1,
        _ => 0,
    }
}

/// The selected errors.
pub(crate) fn selected<'a>(selection: &'a Selection<'_>) -> impl Iterator<Item = &'a MemoryError> {
    let errors = selection.capture().memory_errors.iter();
    errors.filter(|error| selection.has_stack(error.stack) && selection.has_time(error.first_ns))
}

/// The selected errors, the severest first.
pub(crate) fn by_severity<'a>(selection: &'a Selection<'_>) -> Vec<&'a MemoryError> {
    let mut errors: Vec<&MemoryError> = selected(selection).collect();
    errors.sort_by_key(|error| (severity(&error.kind), error.first_ns, Reverse(error.bytes), Reverse(error.count)));
    errors
}

/// Number of errors that count: rows but blocks that live at the exit.
pub(crate) fn count(selection: &Selection<'_>) -> usize {
    selected(selection).filter(|error| &*error.kind != "live at exit").count()
}

/// A function and its place.
fn described(selection: &Selection<'_>, stack: Option<StackId>) -> Option<String> {
    stack?;
    let function = function(selection, stack);
    Some(place(selection, stack).map_or_else(|| function.clone(), |place| format!("{function} ({place})")))
}

/// The table `memory_errors`: a row for each kind of error at each stack.
pub fn table(selection: &Selection<'_>) -> Table {
    let loops = Loops::of(selection);
    let steps = loops.as_ref().map(|loops| loops.main());
    let rows = by_severity(selection);
    let step = |error: &MemoryError| {
        let steps = steps?;
        Some(steps.rows()[steps.at(error.first_ns?)?].index)
    };
    let tools: std::collections::BTreeSet<String> = rows.iter().map(|error| error.tool.to_string()).collect();
    let (errors, leaked) = (count(selection), rows.iter().filter_map(|error| error.bytes).sum::<u64>());
    let mut table = Columns::<MemoryError>::new()
        .text("kind", "What is wrong. All checkers share these words.", |error| (&*error.kind).into())
        .text("function", "The function that it is attributed to: the nearest owned one on the stack.", |error| {
            function(selection, error.stack).into()
        })
        .text("error_place", "File and line in that function.", |error| place(selection, error.stack).into())
        .text("allocated", "The function that allocated the memory, with its file and line.", |error| {
            described(selection, error.allocated).into()
        })
        .text("other_place", "The function that freed it, or that made the other access of a data race.", |error| {
            described(selection, error.other).into()
        })
        .count("count", "errors", "How often the checker saw it; of a leak, the number of blocks.", |error| error.count)
        .bytes("bytes", "Bytes of a leak.", |error| error.bytes)
        .number("found_in_step", "", "The step in which it was first seen; missing without steps.", step)
        .text("tool", "The checker: memcheck, asan, lsan, ubsan, tsan, msan, helgrind or drd.", |error| {
            (&*error.tool).into()
        })
        .prose("message", "The first report in the checker's words.", |error| (&*error.message).into())
        .essential("kind function error_place allocated count")
        .detail("other_place tool message")
        .table("memory_errors", "Memory errors", rows);
    if errors > 0 {
        table.note(note!(
            Fact,
            "{} found by {}; {} leaked.",
            NoteValue::plural(errors, "memory error"),
            NoteValue::names(tools.iter().map(String::as_str), 8),
            NoteValue::of(leaked, "bytes"),
        ));
    }
    table
}

/// Memory errors.
pub const ANALYSIS: Analysis = Analysis {
    title: "Memory errors",
    views: &[View {
        name: "memory-errors",
        question: "Which memory errors were found, and where?",
        tables: |selection, _| vec![table(selection)],
    }],
    needs: &[Dimension::Memcheck],
    report: |selection| ReportSection::of_rows("Memory errors", vec![table(selection)]).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Step, ThreadId};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn;

    fn with(errors: &[(&str, &str, Option<u64>)]) -> Capture {
        let mut capture = drawn::folded("main;sim::Use;malloc 1\nmain;sim::Make;malloc 1");
        for &(kind, tool, first_ns) in errors {
            capture.memory_errors.push(MemoryError {
                tool: tool.into(),
                kind: kind.into(),
                message: "m".into(),
                process: None,
                stack: capture.samples[0].stack,
                allocated: capture.samples[1].stack,
                other: None,
                count: 3,
                bytes: (kind == "leak").then_some(99),
                first_ns,
            });
        }
        capture
    }

    #[test]
    fn errors_have_their_function_place_and_step_the_severe_ones_first() {
        let mut capture =
            with(&[("leak", "lsan", None), ("live at exit", "memcheck", None), ("use after free", "asan", Some(15))]);
        for (index, start_ns) in [0, 10, 20].into_iter().enumerate() {
            let (index, end_ns) = (index as u64, start_ns + 10);
            capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: None, thread: ThreadId(0) });
        }
        let frame = capture.frames.iter_mut().find(|frame| &*frame.function == "sim::Use").unwrap();
        (frame.file, frame.line) = (Some("/src/use.cc".into()), Some(7));
        let table = drawn::selected(&capture, &["sim::"], table);
        assert_eq!(
            cells(&table, &["kind", "function", "error_place", "allocated", "count", "bytes", "found_in_step"]),
            [
                "use after free | sim::Use | /src/use.cc:7 | sim::Make | 3 | - | 1",
                "leak | sim::Use | /src/use.cc:7 | sim::Make | 3 | 99 | -",
                "live at exit | sim::Use | /src/use.cc:7 | sim::Make | 3 | - | -",
            ]
        );
        assert_eq!(table.notes, ["2 memory errors found by `asan`, `lsan`, `memcheck`; 99 B leaked."]);
    }
}

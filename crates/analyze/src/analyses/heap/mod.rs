//! Heap: who allocates, how often, how much, for how long, and who holds memory at the peak and at the end.
//!
//! An *allocation* is a successful call of `malloc` or its family (`operator new` calls it); `realloc` frees its block and
//! allocates another. An allocation is *temporary* if the thread that made it frees it before it allocates again: such a block
//! could live on the stack, or be reused. (heaptrack's definition, but for one point: heaptrack does not count it if the
//! thread freed another block in between.) *Live* is what is allocated and not freed. The *peak* is the moment when a process
//! had most live bytes: `peak_bytes` is what each function held then. *Leaked* is what lives at the end of the capture.
//!
//! Each allocation is attributed to one function: the nearest owned one on its stack; without configured ownership, the
//! nearest one of the program. Releases count where the block was allocated.
//!
//! Limits: sizes are those asked for, without the allocator's overhead. Memory that a program maps itself (`mmap`) or takes
//! from a pool of its own does not count. Per step: allocations in the intervals that lie within the main loop's steps, over
//! the number of these steps; intervals last about a second.

mod tables;
#[cfg(test)]
mod tests;

use stepscope_model::{Dimension, Mark};

use crate::analyses::calltree;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::query::heap::Measure;
use crate::query::select::Selection;

pub use tables::{by_function, by_lifetime, by_size, by_thread, over_time, totals};

fn report(selection: &Selection<'_>) -> Vec<ReportSection> {
    if selection.capture().allocations.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![Part::Figures(totals(selection)), Part::Table(by_function(selection))];
    let curve = over_time(selection);
    if !curve.rows.is_empty() {
        let marks = vec![Mark::Line("live_bytes".to_owned())];
        parts.push(Part::Chart { table: curve, across: "time", marks, caption: "live bytes over time" });
    }
    parts.push(Part::FlameGraph(calltree::heap(selection, &calltree::Options::default(), Measure::Calls)));
    vec![ReportSection::new("Heap", parts).most_rows(200)]
}

/// The heap.
pub const ANALYSIS: Analysis = Analysis {
    title: "Heap",
    views: &[
        View {
            name: "heap",
            question: "Which functions allocate, how often, and who holds the memory?",
            tables: |selection, _| vec![totals(selection), by_function(selection)],
        },
        View {
            name: "heap-threads",
            question: "Which threads allocate, and which free blocks of others?",
            tables: |selection, _| vec![by_thread(selection)],
        },
        View {
            name: "heap-sizes",
            question: "How large are allocated blocks, and how long do they live?",
            tables: |selection, _| vec![by_size(selection), by_lifetime(selection)],
        },
        View {
            name: "heap-time",
            question: "How does the heap grow over time?",
            tables: |selection, _| vec![over_time(selection)],
        },
    ],
    needs: &[Dimension::Heap],
    report,
    ..Analysis::NONE
};

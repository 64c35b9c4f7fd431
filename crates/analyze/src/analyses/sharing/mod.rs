//! Sharing: which cache lines several threads use and at least one writes, and whether they share data or only the line.
//!
//! A core must own a line to write it, so a write takes the line away from all other cores. Threads that use the same bytes *share
//! data* (true sharing); threads that use different bytes of one line wait for each other without need (*false sharing*).
//!
//! # Definitions
//!
//! Accesses are [sampled](stepscope_model::DataAccess). An access belongs to the line of 64 bytes that its first byte is in. A line is
//! shown if two threads of a process accessed it and at least one of them wrote to it.
//!
//! - `local_hitm`, `remote_hitm`: sampled loads that found the line modified in another core's cache, of the same socket or another one. Only
//!   the CPU knows them; they are missing where addresses were sampled in software.
//! - `shared_accesses`: for each thread, its accesses to the line, at most as many as the writes of the other threads; added up. So one
//!   stray write makes no hot line.
//! - `true_share`: when a thread accesses the line, the part of the other threads' writes to the line that are to the same bytes:
//!   `sum(a × overlapping / all)` over all accesses with `a` samples, divided by `sum(a)`. Samples are loads with HITM where there are any,
//!   else all accesses. Where the size of accesses is not known (CPU sampling), an access is to its first byte only.
//! - `verdict`: *false sharing* if `true_share` is below 10 %, *true sharing* above 90 %, *both* in between; missing below 10 shared
//!   accesses.
//!
//! # Limits
//!
//! Addresses of the code at CPU samples are no events: their number says how much CPU time is spent near the access, and nothing about what
//! the sharing costs. Memory that processes share has several addresses, and is not recognised. Heap blocks have no names.

mod lines;
mod tables;
#[cfg(test)]
mod tests;

use stepscope_model::Dimension;

use crate::analysis::{Analysis, ReportSection, View};

pub(crate) use lines::{Line, Verdict, hitm, samples};
pub(crate) use tables::{LineOfFunction, functions, objects, offsets};

/// Sharing.
pub const ANALYSIS: Analysis = Analysis {
    title: "Sharing",
    views: &[View {
        name: "sharing",
        question: "Which cache lines do several threads write, and do they share data or only the line?",
        tables: |selection, _| tables::tables(selection),
    }],
    needs: &[Dimension::Sharing],
    report: |selection| ReportSection::of_rows("Sharing", tables::tables(selection)).into_iter().collect(),
    ..Analysis::NONE
};

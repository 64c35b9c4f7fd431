//! The analyses: one module each, with its question, definition and limits. They import [`query`](crate::query) and make tables.

pub mod calltree;
pub mod comparable;
pub mod compare;
pub mod critical_path;
pub mod explain;
pub mod faults;
pub mod gate;
pub mod history;
pub mod hotspots;
pub mod metrics;
pub mod proof;
pub mod rank;
pub mod resources;
pub mod sched;
pub mod scopes;
pub mod slow_steps;
pub mod step_times;
pub mod steps_over_time;
pub mod summary;
pub mod threads;
pub mod tree;
pub mod wall;

use crate::analysis::Analysis;

/// Every analysis of one capture, in the order of a report.
pub static ANALYSES: &[&dyn Analysis] = &[
    &summary::Summary,
    &step_times::StepTimes,
    &slow_steps::SlowSteps,
    &critical_path::CriticalPath,
    &scopes::Scopes,
    &hotspots::HotSpots,
    &tree::Tree,
    &threads::Threads,
    &wall::Wall,
    &sched::Scheduling,
    &faults::PageFaults,
    &resources::Resources,
];

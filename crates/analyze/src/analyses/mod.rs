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

//! The query layer: which part of a capture an analysis sees, and what its functions, steps and waits are.
//!
//! Analyses stand above it and import it; nothing here imports an analysis.

pub mod basis;
pub mod category;
pub mod cpu_holders;
pub mod events;
pub mod functions;
pub mod off_cpu;
pub mod ownership;
pub mod pattern;
pub mod qualified_name;
pub mod scope_paths;
pub mod select;
pub mod steps;
pub mod wait_class;
pub mod wake_ups;
pub mod weights;

//! Analyses: pure functions from captures to tables.
//!
//! Each analysis is one module, whose documentation has its definition, its reasons and its limits. Each takes a
//! [`Selection`]: a capture, its [`Functions`] and a filter. [`ANALYSES`] and [`analysis::OF_SEVERAL`] list them.
//!
//! ```
//! use stepscope_analyze::{Filter, Functions, Ownership, Selection, hotspots};
//! use stepscope_model::{Capture, Event, Sample, Value};
//!
//! # let mut capture = Capture::default();
//! # let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
//! # let main = capture.add_thread_named("main");
//! let run = capture.intern_function("gz::sim::Server::Run");
//! let find = capture.intern_function("std::map<gz::Entity, int>::find");
//! let stack = capture.intern_stack([run, find]);
//! capture.samples.push(Sample { time_ns: None, thread: main, cpu: None, stack, event, weight: 1_003_009 });
//!
//! let owned = Ownership { namespaces: vec!["gz::".into()], ..Ownership::default() }.compile()?;
//! let functions = Functions::of(&capture, &owned);
//! let selection = Selection::new(&capture, &functions, &Filter::default())?;
//! let table = hotspots::table(&selection);
//! assert_eq!(table.get(0, "function"), Some(&Value::from("std::map<gz::Entity, int>::find")));
//! assert_eq!(table.get(1, "attributed_share"), Some(&Value::from(100.0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analyses;
pub mod analysis;
mod columns;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod drawn;
mod notes;
pub mod parallel;
pub mod query;
pub mod unnamed;

pub use analyses::hotspots::Hotspots;
pub use analyses::{
    calltree, capacity, comparable, compare, cores, cost_tree, critical_path, diagnose, explain, faults, gate, growth,
    heap, history, hotspots, metrics, proof, rank, resources, sched, scopes, slow_steps, step_classes, step_times,
    steps_over_time, summary, threads, tree, variants, wall,
};
pub use analysis::{ANALYSES, Analysis};
pub use query::functions::{Function, Functions, Identity};
pub use query::heap::Measure as HeapMeasure;
pub use query::naming::Naming;
pub use query::ownership::{Owned, Ownership};
pub use query::pattern::{Pattern, PatternError};
pub use query::select::{Filter, ProcessPattern, SelectError, Selection, ThreadPattern, TimeRange, Under};
pub use query::{
    basis, categories, coverage, cpu_holders, events, function_names, functions, off_cpu, ownership, pattern,
    process_label, qualified_name, select, step_candidates, step_loop, step_paths, step_stacks, steps, wait_class,
    weights,
};

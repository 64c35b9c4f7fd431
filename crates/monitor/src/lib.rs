//! Resources of a set of processes and of the machine, read for hours at little cost.
//!
//! ```no_run
//! use std::time::Duration;
//! use stepscope_monitor::{Pace, Sampler};
//! use stepscope_record::clock;
//! use stepscope_record::proc::{ProcessSelection, ProcessSet};
//!
//! let set = ProcessSet::open(ProcessSelection::tree(4242))?;
//! let mut sampler = Sampler::new(set, Pace::every(Duration::from_secs(1)));
//! sampler.sample(clock::now_ns());
//! for process in sampler.processes() {
//!     println!("{} {:?}", process.pid(), process.value("rss_bytes"));
//! }
//! # Ok::<(), stepscope_record::proc::SelectionError>(())
//! ```
//!
//! What keeps it cheap: files that are read each time stay open; texts are parsed where they lie; what the namespace of a network or a
//! control group says is read once for all its processes; the machine's processes are listed only when one was started. Figures
//! that cost more are read one after another, and less often the more they cost ([`Pace`]).
//!
//! A [`Log`] is an ordinary raw log, so `stepscope recover` and every reader of captures understand it.

mod cgroup;
mod csv;
mod gpu;
mod log;
mod machine;
mod network;
mod nvml;
mod pace;
mod process;
mod readings;
mod sampler;
mod screen;
mod text;

pub use csv::Csv;
pub use log::{Log, LogError};
pub use pace::Pace;
pub use process::{FIGURES, WatchedProcess};
pub use sampler::Sampler;
pub use screen::Screen;

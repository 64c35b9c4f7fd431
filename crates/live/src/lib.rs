//! A recording while it goes on: tables for the app, a moment after things happen.
//!
//! The recorder writes its raw log anyway, twice a second. [`LiveRecording`] reads it behind the recorder, in a process of its own
//! with low priority (`nice 10`). So the recorder does nothing for its viewers, and neither a slow viewer nor a defect here can
//! disturb it. It also follows recordings that were started without viewers.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use stepscope_live::{LiveRecording, Options};
//! use stepscope_serve::Feed as _;
//!
//! let live = LiveRecording::follow(Path::new("sim.capture"), Options::default());
//! let viewer = live.subscribe();
//! println!("{} messages so far", viewer.so_far.len());
//! ```
//!
//! # Messages
//!
//! A message is a line of JSON, and for rows a Parquet file behind it. The tables and their columns are those of
//! [`stepscope_app::profile`]; ids continue from message to message.
//!
//! | line | the Parquet file holds |
//! |---|---|
//! | `{"table":"0/samples","rows":9}` | rows to add, in the table's order: `samples`, `waits`, `scopes`, `counters` |
//! | `{"table":"0/frames","rows":9,"at":40}` | rows in place of those from row 40 on: tables that others refer to |
//! | `{"table":"0/steps","rows":9,"since":1e9}` | rows in place of those that start at 1 s or later: `steps`, whose classes change with later steps |
//! | `{"live":{...}}` | nothing: see [`State`]. What came before belongs together, and can be shown |
//!
//! All other tables (`lanes`, `path`, `sources`, ...) are those of the retained window. The page asks for them again when `snapshot` in the
//! state has changed.
//!
//! Waits and scopes arrive when they end, so they may start before rows that are there. The depth of a scope counts those of
//! its message; the page counts again. A thread that is off the CPU has no wait until it runs again: until then, nothing is known
//! of it, and its lane ends. Samples and waits also wait for the names of their stacks; see `named` in the state.
//!
//! # What is kept
//!
//! The rows of the last minute, or fewer if there are more than a million waits or samples. A viewer that comes late gets these
//! first. Definitions (stacks, threads, names) are kept from the start.
//!
//! # Against the finished capture
//!
//! Samples, waits, steps and counters are those of the finished capture, in number, place and time. Three things are known
//! only at the end: the exact CPU time that samples share (here each weighs what its timer says), the kernel's cost of a
//! switch, and the names of code whose debug information a server has. The page offers the capture when it is finished.
//!
//! Modules:
//!
//! - `recording`: [`LiveRecording`], and what a server asks of it
//! - `follower`: the threads that read the log and name code
//! - `encoder`: rows to messages
//! - `window`: the rows of the last minute
//! - `snapshot`: the thread that makes tables of the window
//! - `state`: what a recording says of itself
//! - `save`: the last seconds, or everything, as a capture
//! - `saves`: the saves that go on, and the end that waits for them

mod encoder;
mod follower;
mod recording;
mod save;
mod saves;
mod shared;
mod snapshot;
mod state;
mod window;

pub use recording::LiveRecording;
pub use shared::Options;
pub use state::{Moment, Stage, State};

//! The vocabulary that every other crate of Stepscope shares.
//!
//! Evidence of any kind becomes a [`Capture`]; every analysis is a pure function from captures to
//! a [`Table`] (or, for flame graphs, a [`CallTree`]); every output renders those. This crate holds
//! these types and the capture's form on disk ([`disk`]), and no algorithm.
//!
//! ```
//! use stepscope_model::{Capture, Event, Sample};
//!
//! let mut capture = Capture::default();
//! let event = capture.add_event(Event::weighed("cycles", "cycles"));
//! let main = capture.add_thread_named("main");
//! let run = capture.intern_function("World::Run");
//! let step = capture.intern_function("World::Step");
//! let stack = capture.intern_stack([run, step]);
//! capture.samples.push(Sample { time_ns: None, thread: main, cpu: None, stack, event, weight: 5_200 });
//! assert_eq!(capture.function(capture.frames_of(stack).next().unwrap()), "World::Step");
//! ```

mod allocation;
pub mod build_command;
mod call_times;
pub mod capture;
pub mod clock;
pub mod code_loop;
pub mod column;
pub mod command_line;
pub mod compiler_work;
mod data_access;
pub mod disk;
mod event_count;
mod flow;
pub mod ids;
pub mod info;
mod machine;
pub mod mark;
mod memory_error;
pub mod note;
pub mod output_file;
pub mod quantity;
mod reading;
mod stored;
pub mod table;
pub mod tree;
pub mod value;
pub mod wait;
pub mod waits;

pub use allocation::{Allocation, AllocationBurst, BLOCK_LIFETIMES_NS, BLOCK_SIZES};
pub use call_times::{CALL_TIME_BITS, CallTimes, call_time_bucket};
pub use capture::{
    Capture, Counter, Frame, Language, MACHINE_SPEED, Module, Process, Sample, Scope, StackNode, Step, SymbolSource,
    SystemCalls, Thread, ThreadName,
};
pub use clock::{
    AlignmentMethod, ClockAlignment, ClockExchange, ClockId, ClockPeer, Clocks, Merged, MergedMachine, WallReading,
};
pub use code_loop::{CodeLoop, FileLoops, LineLoop, LoopShape, ModuleLoops};
pub use column::{Column, Importance, Kind};
pub use data_access::{CACHE_LINE_BYTES, DataAccess};
pub use event_count::EventCount;
pub use flow::{FlowEvent, FlowNumber, FlowStage, NO_ROS2};
pub use ids::{EventId, FrameId, ModuleId, ProcessId, StackId, ThreadId};
pub use info::{
    Better, Build, CaptureInfo, Conditions, Counts, Dimension, DimensionStatus, Event, Losses, Origin, OwnMetric,
    Phase, RecordingCost, SCHEMA,
};
pub use machine::Machine;
pub use mark::Mark;
pub use memory_error::MemoryError;
pub use note::{Note, NoteKind, NoteValue};
pub use reading::{READINGS, ReadingKind, SYSTEM, SYSTEM_PID, reading_kind};
pub use stored::{LoadError, Stored};
pub use table::{Columns, Row, Table};
pub use tree::{BaseWeight, CallNode, CallTree, FrameKind, TreeDifference, TreeUnion, Verdict};
pub use value::Value;
pub use wait::{Wait, WaitState};
pub use waits::Waits;

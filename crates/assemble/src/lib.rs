//! Kernel records, traces and raw logs become captures, without I/O.

mod address_space;
mod assembler;
mod builder;
mod calls;
mod entry;
mod kernel_record;
mod machine_reading;
mod marks;
pub mod raw_log;
mod step_time;
mod symbols;
mod target;
mod thread_timeline;
mod unwind_tables;

pub use assembler::{Assembler, EventRole, Follow, InitialMapping, InitialProcess, InitialThread, Switches};
pub use builder::{Builder, finish};
pub use entry::{
    Entry, EventRef, FrameRef, MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd,
    Sample, Sink, StackRef, ThreadRef, Wait,
};
pub use machine_reading::MachineReading;
pub use step_time::{StepPoint, StepTime, StepTimeSource, TimeArgument, TimeArgumentError, TimeValue};
pub use symbols::{NoSymbols, Symbols};
pub use target::{NoTarget, Target};
pub use thread_timeline::InitialState;
pub use unwind_tables::UnwindTables;

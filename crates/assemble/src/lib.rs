//! Kernel records, traces and raw logs become captures, without I/O.

mod address_space;
mod assembler;
mod builder;
mod calls;
mod entry;
mod event_role;
mod initial_process;
mod kernel_record;
mod machine_reading;
mod marks;
pub mod raw_log;
mod registers;
mod step_time;
mod symbols;
mod target;
mod thread_timeline;
mod unwind_tables;

pub use assembler::Assembler;
pub use builder::{Builder, finish};
pub use entry::{
    Entry, EventRef, FrameRef, MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd,
    Sample, Sink, StackRef, ThreadRef, Wait,
};
pub use event_role::{EventRole, Follow, Switches};
pub use initial_process::{InitialMapping, InitialProcess, InitialThread};
pub use machine_reading::MachineReading;
pub use step_time::{StepPoint, StepTime, StepTimeSource, TimeArgument, TimeArgumentError, TimeValue};
pub use symbols::{NoSymbols, Symbols};
pub use target::{Image, NoTarget, Target};
pub use thread_timeline::InitialState;
pub use unwind_tables::UnwindTables;

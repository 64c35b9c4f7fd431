//! Kernel records, traces and raw logs become captures, without I/O.
//!
//! One assembler serves live rings and files. A source gives it kernel records in the order of time
//! ([`Assembler::add_record`]); it gives entries to a [`Sink`]. That is the [raw log](raw_log) of a live recording, or the
//! [`Builder`] of a capture. The end of a recording and `stepscope recover` read the log into the same builder ([`finish`]).
//! What needs the machine or its files is passed in: [`Target`] (unwind tables, live memory) and [`Symbols`] (names).
//!
//! ```
//! use stepscope_assemble::{Entry, NoSymbols, ProcessRef, Sink, ThreadRef, finish, raw_log};
//!
//! let mut log = Vec::new();
//! let mut writer = raw_log::Writer::new(&mut log)?;
//! writer.take(Entry::Process { pid: 40, parent_pid: None, start_ns: Some(100) });
//! writer.take(Entry::Thread { tid: 40, process: ProcessRef(0), start_ns: Some(100), name: "sim".into() });
//! writer.take(Entry::StepStart { time_ns: 200, thread: ThreadRef(0), sim_time_ns: Some(0) });
//! writer.take(Entry::StepStart { time_ns: 300, thread: ThreadRef(0), sim_time_ns: Some(1_000) });
//! writer.flush();
//!
//! let capture = finish(&log[..], &mut NoSymbols)?;
//! assert_eq!(capture.steps.len(), 1);
//! assert_eq!(capture.steps[0].sim_time_ns, Some(1_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules:
//!
//! - `assembler`: records to entries; processes and threads, samples, numbering
//! - `kernel_record`: records, parsed without trust
//! - `event_role`, `initial_process`: what a source records, and what ran before it
//! - `thread_timeline`: running, runnable and blocked, from context switches and wake-ups
//! - `address_space`: executable mappings, and stacks through them
//! - `calls`: whether a call led to a function, by the machine code of both
//! - `data_operand`, `data_source`, `data_accesses`: sampled addresses of data, by the code and by the CPU, added up
//! - `registers`, `unwind_tables`, `target`: what unwinding needs
//! - [`system_call`]: sums of system calls
//! - `step_time`: the simulated time of a step
//! - [`ros2`]: what ROS 2 tells tracetools, to the way of each message
//! - `entry`: the content of a log
//! - [`raw_log`]: entries as bytes
//! - `code_names`: names for addresses, and stacks with inlined frames
//! - `builder`, `rows`, `steps`, `marks`, `nesting`, `machine_reading`, `symbols`: entries to a capture
//! - `running_time`, `sample_weights`: what each CPU sample stands for, by context switches
//! - `written_switch`: context switches and sums of waits, as BPF programs write them
//! - `join`: one capture of the segments of a recording, or of captures of several machines
//! - [`clocks`], [`merge`]: the clocks of several machines, and their captures on one clock
//! - `naming`: names for a capture that lacks some
//! - `kernel_account`: CPU time by context switches against what the kernel says
//! - `switch_cost`: the cost of switches from idle CPUs, from the kernel's account

mod address_space;
mod assembler;
mod builder;
mod calls;
pub mod clocks;
mod code_names;
mod data_accesses;
mod data_operand;
mod data_source;
mod entry;
mod event_role;
mod initial_process;
mod join;
mod kernel_account;
mod kernel_record;
mod machine_reading;
mod marks;
pub mod merge;
mod naming;
mod nesting;
pub mod raw_log;
mod registers;
pub mod ros2;
mod rows;
mod running_time;
mod sample_weights;
mod step_time;
mod steps;
mod switch_cost;
mod symbols;
pub mod system_call;
mod target;
mod thread_timeline;
mod unwind_tables;
pub mod written_switch;

#[doc(hidden)]
pub use address_space::PYTHON_STUB;
pub use assembler::{Assembler, BlockedThread, Code};
pub use builder::{Builder, Growing, Rows, finish, finish_in};
pub use code_names::{NamedCode, Unnamed};
pub use data_source::Hitm;
pub use entry::{
    AccessCost, AllocationBurst, AllocationSums, Allocations, CountedEvent, DataAccess, Entry, EventRef, FrameRef,
    MarkNameRef, MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd, Sample, Sink, StackMark,
    StackRef, SystemCalls, ThreadRef, Wait,
};
pub use event_role::{EventRole, Follow, Switches};
pub use initial_process::{InitialMapping, InitialProcess, InitialThread};
pub use join::Joiner;
pub use machine_reading::MachineReading;
pub use naming::{Renaming, name_again};
pub use registers::{GENERAL_REGISTERS, STACK_REGISTERS};
pub use step_time::{StepPoint, StepTime, StepTimeSource, TimeArgument, TimeArgumentError, TimeValue};
pub use symbols::{NoSymbols, Symbols};
pub use target::{Image, NoTarget, Target, UsedFile};
pub use thread_timeline::{InitialState, OffCpu, ThreadTimeline, WakeUp};
pub use unwind_tables::UnwindTables;

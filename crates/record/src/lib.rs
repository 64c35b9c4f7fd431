//! Recording on Linux: perf events, unwinding, launching and attaching to process trees.
//!
//! A [`Recording`] writes a raw log into a folder until it is stopped; [`finish`] makes a capture of that log.
//!
//! Modules:
//!
//! - [`session`]: a recording from start to stop, and what it is asked to record
//! - `perf`: the kernel's perf events, and their rings in the order of time
//! - [`launch`]: starting a program, and ending it with everything that it started
//! - [`proc`]: processes as `/proc` shows them; process trees, resources
//! - [`process_log`]: each process of a tree from fork to exit, with what it used, and no samples
//! - [`build_times`]: the CPU time of a build by what compilers worked on; [`compiler_shim`]: the program that takes GCC's report
//! - `marks`: what programs mark themselves: steps, scopes, counters
//! - `heap`: allocations of programs that preload our library
//! - `python`: Python functions of programs that preload our library
//! - [`replay`]: which calls of functions repeat an earlier one
//! - `ros2`: messages and callbacks of ROS 2, by uprobes
//! - `live`: files and memory of running processes, for unwinding
//! - `finish`: the raw log, from its folder to a capture
//! - [`abilities`]: what this machine and user can record
//! - [`conditions`], [`machine`]: background load; CPU model, cores, kernel
//! - [`clock`]: the clocks of a recording; [`clock_exchange`]: those of other machines against them

pub mod abilities;
pub mod build_times;
pub mod calls;
pub mod clock;
pub mod clock_exchange;
pub mod compiler_shim;
pub mod conditions;
mod error_logs;
mod finish;
mod heap;
mod kept_files;
pub mod launch;
mod library_file;
mod live;
pub mod machine;
mod marks;
mod perf;
pub mod proc;
pub mod process_log;
mod python;
pub mod python_look;
pub mod replay;
mod ros2;
pub mod session;

pub use finish::{LogError, finish};
#[doc(hidden)]
pub use marks::{ReadMark, read_segment};
pub use python::PythonFunctions;
pub use session::{
    Kernel, Label, Options, Progress, Reason, RecordError, Recording, StepPoint, StepTime, TimeArgument, Until,
};

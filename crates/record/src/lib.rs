//! Recording on Linux: perf events, unwinding, launching and attaching to process trees.

pub mod abilities;
pub mod build;
pub mod clock;
pub mod conditions;
pub mod finish;
pub mod launch;
mod live;
pub mod machine;
mod marks;
mod perf;
pub mod proc;
pub mod rawlog;
pub mod session;
pub mod stream;

pub use finish::{Builder, finish};
pub use live::vdso;
#[doc(hidden)]
pub use marks::{ReadMark, read_segment};
pub use session::{
    Kernel, Label, Options, Progress, Reason, RecordError, Recording, StepPoint, StepTime, TimeArgument, Until,
};

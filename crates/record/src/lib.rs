//! Recording on Linux: perf events, unwinding, launching and attaching to process trees.

pub mod abilities;
pub mod calls;
pub mod clock;
pub mod conditions;
mod finish;
mod kept_files;
pub mod launch;
mod live;
pub mod machine;
mod marks;
mod perf;
pub mod proc;
pub mod session;

pub use finish::{LogError, finish};
#[doc(hidden)]
pub use marks::{ReadMark, read_segment};
pub use session::{
    Kernel, Label, Options, Progress, Reason, RecordError, Recording, StepPoint, StepTime, TimeArgument, Until,
};

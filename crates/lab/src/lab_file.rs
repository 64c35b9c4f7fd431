//! The lab file, `stepscope.toml`: what to run, what to record of it, and which code is the user's own.
//!
//! `docs/lab-file.md` documents every key with its default. [`LabFile::read`] resolves all of them, so that the rest of
//! this crate sees no optional setting: paths are absolute, `[record]` is merged into each scenario, and
//! [`LabFile::trials`] multiplies scenarios by variants.
//!
//! ```
//! use stepscope_lab::lab_file::{LabFile, Ready};
//!
//! let lab = LabFile::parse("/home/me/lab/stepscope.toml".as_ref(), r#"
//!     [scenario.shapes]
//!     command = ["gz", "sim", "-s", "-r", "shapes.sdf"]
//!     ready = { log = "Loaded world" }
//! "#)?;
//! assert_eq!(lab.scenarios[0].ready, Some(Ready::Log("Loaded world".into())));
//! assert_eq!(lab.scenarios[0].record.frequency_hz, 997);
//! # Ok::<(), stepscope_lab::lab_file::LabFileError>(())
//! ```

mod decode;
mod limits;
mod metric;
mod placeholders;
mod problem;
mod read;
mod relocate;
mod settings;
mod sweep;
mod trial;

pub use limits::{Allowed, Inconclusive, Limit, Limited, Limits, Unit};
pub use metric::{MetricSettings, MetricSource};
pub use problem::{LabFileError, Problem};
pub use settings::{
    AbSettings, Attach, BASE, CompareSettings, Driver, FILE_NAME, LabFile, Ready, RecordSettings, Scenario, Source,
    StepSource, StopSettings, Variant,
};
pub use sweep::{CORES, Point, SizeAxis, SweepSettings};
pub use trial::{Pair, Pairs, Trial, TrialFilter, TrialFilterError};

//! Stores: runs of many machines as one dataset of partitioned Parquet files, in a folder or a bucket.
//!
//! ```text
//! STORE/
//!   stepscope-store.json            version of the form
//!   runs/run=2026-11-25T17-34-46Z-robot1-9f3a2b1c/
//!     _manifest.json                what belongs to the run: every file with its size and checksum
//!     _stepscope.toml               its lab file, if there is one
//!     table=hotspots/project=P/scenario=S/phase=steady/variant=base/date=2026-11-25/machine=robot1/part.parquet
//!     table=metrics/...             one folder per table
//!     table=capture/.../repetition=1/capture.json, samples.parquet, ...    a capture, if samples were asked for
//!   .staging/...                    runs that are being written
//! ```
//!
//! What holds:
//!
//! - In a folder, a run appears by one rename of its whole folder. A writer that was killed, or whose disk was full, leaves only
//!   something in `.staging`, which no query reads and the next writer removes.
//! - A bucket has no rename. There the rows of the table `captures` are written after those of all other tables, and
//!   the definitions of this crate ([`engines`]) show only runs that have them. `_manifest.json` comes last.
//! - A run is in a store once: its name follows from when and where it was made.
//! - Writers at the same time do not disturb each other: each writes its own staging folder.
//! - Files of a store are untrusted: no path in a manifest leads out of its run.
//!
//! ```
//! use stepscope_store::{Cell, Manifest, RunStore};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let store = RunStore::at(folder.path().to_str().unwrap()).unwrap();
//! store.create().unwrap();
//! let cell = Cell { project: "sim".into(), scenario: "shapes".into(), ..Cell::default() };
//! let mut staging = store.stage().unwrap();
//! staging.write(&cell.file("metrics"), b"the bytes of a Parquet file").unwrap();
//! store.publish(staging, Manifest::new("run-1", "sim")).unwrap();
//! assert_eq!(store.runs().unwrap().manifests[0].run, "run-1");
//! ```

pub mod bucket;
mod check;
pub mod engines;
mod layout;
mod manifest;
mod place;
mod program;
mod publish;
pub mod query;
mod select;
mod store;

pub use self::check::Finding;
pub use self::layout::{CAPTURE_TABLE, Cell, KEYS, REPETITION, RUN_KEY, decode, encode};
pub use self::manifest::{Manifest, SCHEMA, StoredCapture, StoredFile, TableColumn};
pub use self::place::StoreError;
pub use self::publish::{Change, Staging};
pub use self::select::{PREFIX, StoreSource};
pub use self::store::{Listing, RunStore};

//! Reads traces of the Common Trace Format, version 1.8, as LTTng, ros2_tracing and barectf write them.
//!
//! ```no_run
//! let mut reader = stepscope_ctf::Reader::open("my-session".as_ref())?;
//! while let Some(event) = reader.next_event() {
//!     let thread = event.context("vtid").and_then(|tid| tid.as_i64());
//!     println!("{:?} {} {thread:?} {}", event.time_ns(), event.name(), event.fields().len());
//! }
//! println!("{} events were discarded by the tracer", reader.losses().discarded_events);
//! # Ok::<(), stepscope_ctf::CtfError>(())
//! ```
//!
//! Definitions are those of the [CTF 1.8.3 specification](https://diamon.org/ctf/v1.8.3/); sections are named where they apply.
//! A field that is read of many events has a place, which is found once by its name: [`Schema::field`], [`Event::value`],
//! [`Event::number`]. Fields that are always in the same places cost nothing until they are asked for.
//!
//! The crate is pure Rust without `unsafe`. An [`Event`] borrows its fields from the reader: reading one allocates nothing.
//!
//! What is damaged costs what is damaged: valid events before it and in the packets behind it are read, and [`Losses`] has
//! the numbers. Lengths that a trace claims allocate nothing.
//!
//! Not read: CTF 2, integers of more than 64 bits, compressed packets and metadata.

#![forbid(unsafe_code)]

mod decode;
mod error;
mod event;
mod layout;
mod metadata;
mod number;
mod plan;
mod reader;
mod schema;
mod stream;
mod tsdl;

pub use error::{CtfError, Losses};
pub use event::{Elements, Enumeration, Event, FieldPlace, Fields, Value};
pub use metadata::is_metadata;
pub use number::ByteOrder;
pub use reader::{METADATA_FILE, Reader, Trace, first_trace};
pub use schema::{Clock, EnvironmentValue, EventClass, Schema};
pub use tsdl::SyntaxError;

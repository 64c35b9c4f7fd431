//! Imports and exports captures: one module per format.
//!
//! [`import()`] reads another tool's file into a [`Capture`](stepscope_model::Capture) and recognises the format by
//! content. [`export::write`] writes a capture for other tools. `docs/formats.md` lists what each format keeps and
//! loses, and how to add one.
//!
//! ```
//! use stepscope_convert::{import, ImportOptions, Source, export};
//!
//! let folded = &b"main;World::Run;std::function<bool (int)>::operator() 42\n"[..];
//! let capture = import(Source::stream("cpu.folded", folded), &ImportOptions::default())?;
//! assert_eq!(capture.samples[0].weight, 42);
//!
//! let mut written = Vec::new();
//! export::write(&capture, export::Format::Folded, &mut written, &export::ExportOptions::default())?;
//! assert_eq!(written, folded);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod export;
pub mod import;

pub use import::{ImportError, ImportOptions, Source, import};

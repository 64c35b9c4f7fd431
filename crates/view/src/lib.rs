//! Outputs of analyses: any [`Table`](stepscope_model::Table) in any format, and call trees as flame graphs. This crate does
//! no arithmetic on profiles.
//!
//! | module | gives |
//! |---|---|
//! | [`mod@format`] | a table in any text format: [`terminal`], [`delimited`], [`json`], [`markdown`] |
//! | [`select`] | which rows and columns, in which order: `--filter`, `--sort`, `--limit`, `--columns` |
//! | [`chart`] | columns of a table as lines, bands, bars and points; ratios with their intervals |
//! | [`flamegraph`] | a call tree as a standalone interactive SVG |
//! | [`report`] | what a report holds |
//! | [`junit`] | checks as JUnit XML, for continuous integration |
//! | [`sentence`] | a row of a comparison in words |
//! | [`shorten`], [`visible`], [`style`] | how names are written: width, safety, colour |
//!
//! ```
//! use stepscope_model::{Column, Kind, Table};
//! use stepscope_view::{Format, Style, render};
//!
//! let mut table = Table::new("threads", "Threads", vec![Column::new("cpu", Kind::Duration, "ns", "Time on a CPU.")]);
//! table.push(vec![1_230_000_000_u64.into()]);
//! let mut text = Vec::new();
//! render(&table, Format::Table, &Style::PLAIN, &mut text).unwrap();
//! assert_eq!(String::from_utf8(text).unwrap(), "Threads\n   cpu\n1.23 s\n");
//! ```
//!
//! The scripts and styles of flame graphs and charts are written in TypeScript and CSS in `web/`, and committed as
//! built in `assets/`, so that this crate builds without Node.js.

mod assets;
pub mod chart;
pub mod delimited;
pub mod embed;
pub mod flamegraph;
pub mod format;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod parquet;
pub mod reading;
pub mod report;
pub mod sarif;
pub mod select;
pub mod sentence;
pub mod shorten;
pub mod style;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod visible;

pub use format::{Format, render, render_all, text};
pub use select::{ColumnChoice, Filter, Sort, TableQuery};
pub use style::{Colour, ColourChoice, Style};

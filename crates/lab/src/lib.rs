//! The lab: orders recordings and analyses as a lab file says.
mod driver;
pub mod event;
pub mod execution;
pub mod lab_file;
pub mod outcome;
pub mod output;
pub mod ready;
pub mod recorder;
pub mod run;

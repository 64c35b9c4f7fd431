//! `stepscope merge`: one capture of the captures of several machines.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use stepscope_lab::merge::{Merging, merge};
use stepscope_model::disk;

use crate::arguments::duration;
use crate::failure::Failure;
use crate::progress;

/// Merge captures of several machines (a robot and its base station) into one, on one clock, with the error stated.
///
/// Record one of them with `record --clock-of HOST` while `clock serve` runs on the other machine. Without that, the wall clocks
/// count, if NTP or PTP kept them synchronised. docs/several-machines.md describes it.
#[derive(Debug, Args)]
pub struct Merge {
    /// The captures, one of each machine. Times of the result are of the clock of the first one.
    #[arg(required = true, num_args = 2.., value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Folder of the merged capture.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Names of the machines, in the order of the captures: labels of processes start with them [default: host names].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    names: Vec<String>,
    /// Exchanges from beside the recordings, which `stepscope clock measure -o FILE` wrote; repeatable.
    #[arg(long, value_name = "FILE")]
    clocks: Vec<PathBuf>,
    /// Align by the wall clocks, which agree within this (1ms, 200us), whatever NTP and PTP say. Exchanges come first where they are.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wall_clock_error: Option<Duration>,
    /// Replace an existing capture.
    #[arg(long)]
    force: bool,
}

impl Merge {
    pub fn run(self) -> Result<ExitCode, Failure> {
        super::refuse_to_replace(&self.output, self.force)?;
        let output = fs::canonicalize(&self.output).ok();
        if let Some(part) = self.captures.iter().find(|part| output.is_some() && fs::canonicalize(part).ok() == output)
        {
            return Err(Failure::Usage(format!(
                "{}: one of the captures to merge; name another folder with -o",
                part.display()
            )));
        }
        let merging = Merging { names: self.names, clocks: self.clocks, wall_clock_error: self.wall_clock_error };
        let capture = progress::of_step("merging", || merge(&self.captures, &merging))?;
        disk::remove(&self.output)?;
        progress::of_step("writing the capture", || disk::write(&capture, &self.output))?;
        for note in &capture.info.notes {
            eprintln!("note: {note}");
        }
        println!("{}", self.output.display());
        eprintln!("next: stepscope show {0} --view summary ; stepscope view {0}", self.output.display());
        Ok(ExitCode::SUCCESS)
    }
}

//! A monitor of processes and their connections.

use std::io;

use clap::Args;

use crate::catalogue::{Control, Pathology};
use crate::simulation::Simulation;
use crate::switches::Switches;

/// What can be slow.
pub const PATHOLOGIES: &[Pathology] = &[];

/// What must stay silent.
pub const CONTROLS: &[Control] = &[];

/// Options of this world alone.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of world `monitor`")]
pub struct Options {}

/// Makes the world.
///
/// # Errors
/// If what it needs of the system cannot be had.
pub fn load(_size: u32, _options: &Options, _switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this world is not built yet"))
}

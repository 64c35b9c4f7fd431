//! Flags of `run`, `ab` and `sweep`: recording on the nodes of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stepscope_lab::cluster::{Placement, SCHEDULERS, Scheduler};

use crate::failure::Failure;

/// Recording on other computers.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArguments {
    /// Record on the nodes of a cluster: slurm, ray or ssh. A task is one repetition of a scenario in all variants, so that these
    /// run on one node; docs/cluster.md.
    #[arg(long, value_name = "SCHEDULER", value_parser = scheduler_name)]
    on: Option<String>,
    /// With --on ssh: the hosts, as ssh names them, with commas between.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', requires = "on")]
    hosts: Vec<String>,
    /// With --on: CPUs of a task [default: a whole node].
    #[arg(long, value_name = "COUNT", requires = "on", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// With --on: longest time of a task, in seconds; Slurm rounds up to minutes [default: no limit of ours].
    #[arg(long, value_name = "SECONDS", requires = "on", value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: Option<u64>,
    /// With --on: how often a task that did not end well is submitted.
    #[arg(long, value_name = "COUNT", default_value_t = 2, requires = "on", value_parser = clap::value_parser!(u32).range(1..=10))]
    attempts: u32,
    /// With --on: an argument for sbatch or ssh, such as --scheduler-argument=--partition=lab; repeatable.
    #[arg(long = "scheduler-argument", value_name = "ARGUMENT", requires = "on", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// With --on: path of this program on the nodes [default: its path here].
    #[arg(long, value_name = "PATH", requires = "on")]
    program: Option<PathBuf>,
    /// With --on ssh: the nodes have no shared folder; copy the run there and its captures back.
    #[arg(long, requires = "on")]
    copy: bool,
}

fn scheduler_name(name: &str) -> Result<String, String> {
    let names = || SCHEDULERS.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    find(name).map(|one| one.name().to_owned()).ok_or_else(|| format!("the schedulers are {}", names()))
}

fn find(name: &str) -> Option<&'static dyn Scheduler> {
    SCHEDULERS.iter().find(|one| one.name() == name).copied()
}

impl ClusterArguments {
    /// Where to record; `None` for this machine.
    pub fn placement(&self) -> Result<Option<Placement>, Failure> {
        let Some(scheduler) = self.on.as_deref().and_then(find) else { return Ok(None) };
        let here = || std::env::current_exe().map_err(Failure::writing("the path of this program"));
        Ok(Some(Placement {
            scheduler,
            hosts: self.hosts.clone(),
            arguments: self.arguments.clone(),
            cpus: self.cpus,
            time_limit: self.time_limit.map(Duration::from_secs),
            attempts: self.attempts,
            program: self.program.clone().map_or_else(here, Ok)?,
            copies: self.copy,
        }))
    }
}

//! `ground topology`: runs a topology of the ROS 2 performance framework in real time.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ground::account::{Account, Moment};
use ground::switches::{Switch, Switches};
use ground::topology::executor::{ExecutorKind, PerWait};
use ground::topology::report::{self, Conditions};
use ground::topology::schema;
use ground::topology::system::{Ipc, Middleware, Run, System};
use serde::Serialize;

use crate::Failure;
use crate::run::{parse_seconds, say, stop_flag};

#[derive(Args)]
pub(crate) struct TopologyArgs {
    /// The topology, as JSON of the ROS 2 performance framework
    file: PathBuf,
    /// What serves its nodes: one of these for each executor_id
    #[arg(long, value_enum, default_value = "events")]
    executor: ExecutorKind,
    /// How messages get from one node to another [default: on, and off over Cyclone DDS]
    #[arg(long, value_enum)]
    ipc: Option<Ipc>,
    /// Over what they get there
    #[arg(long, value_enum, default_value = "ground")]
    middleware: Middleware,
    /// Run for this long
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "5")]
    seconds: Duration,
    /// What is slow: `one-per-wait`, or none
    #[arg(long, value_name = "NAMES", default_value = "")]
    slow: Switches,
    /// Write latency_all.txt, latency_total.txt, resources.txt and events.txt into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what was done to this file, as JSON: time, context switches, and exact counts
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// How to print the report
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// To be read
    Text,
    /// For programs
    Json,
}

/// What a run did, for other programs.
#[derive(Serialize)]
struct AccountFile<'a> {
    schema: u32,
    conditions: &'a Conditions,
    run: &'a Account,
}

pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::Signals)?;
    let topology = schema::read(&args.file)?;
    let per_wait = if args.slow.is_slow(Switch::OnePerWait) { PerWait::One } else { PerWait::All };
    let default_ipc = if args.middleware == Middleware::Ground { Ipc::On } else { Ipc::Off };
    let ipc = args.ipc.unwrap_or(default_ipc);
    let run = Run { executor: args.executor, ipc, middleware: args.middleware, per_wait };
    let failed = |source| Failure::Topology { path: args.file.clone(), source };
    let system = System::new(&topology, &run).map_err(failed)?;
    let conditions = Conditions {
        topology: args.file.display().to_string(),
        nodes: topology.nodes.len(),
        executors: system.executors(),
        executor: run.executor.name(),
        ipc: run.ipc.name(),
        middleware: run.middleware.name(),
        slow: args.slow.to_string(),
    };
    let began = Moment::now();
    let outcome = system.spin(args.seconds, &stop).map_err(failed)?;
    let account = Moment::now().since(&began);
    if let Some(folder) = &args.out {
        report::write_files(folder, &outcome)?;
    }
    if let Some(path) = &args.account {
        let file = AccountFile { schema: 1, conditions: &conditions, run: &account };
        let text = serde_json::to_string_pretty(&file).expect("numbers and names can be written");
        std::fs::write(path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    match args.format {
        Format::Text => say(report::text(&conditions, &outcome).trim_end()),
        Format::Json => say(&format!("{:#}", report::json(&conditions, &outcome))),
    }
    Ok(())
}

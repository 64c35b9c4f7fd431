//! `ground topology`: runs a topology of the ROS 2 performance framework in real time.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ground::account::{Account, Moment};
use ground::switches::Switches;
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
    /// What serves its nodes, one for each executor_id [default: events, or waitset with --slow wait-set]
    #[arg(long, value_enum)]
    executor: Option<ExecutorKind>,
    /// How messages get from one node to another [default: on, and off over Cyclone DDS]
    #[arg(long, value_enum)]
    ipc: Option<Ipc>,
    /// Over what they get there
    #[arg(long, value_enum, default_value = "ground")]
    middleware: Middleware,
    /// Run for this long
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "5")]
    seconds: Duration,
    /// What is slow: names from `ground list`, of which `wait-set` and `one-per-wait` matter here
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

impl TopologyArgs {
    fn run(&self) -> Run {
        let default_ipc = if self.middleware == Middleware::Ground { Ipc::On } else { Ipc::Off };
        Run {
            executor: self.executor.unwrap_or_else(|| ExecutorKind::of(&self.slow)),
            ipc: self.ipc.unwrap_or(default_ipc),
            middleware: self.middleware,
            per_wait: PerWait::of(&self.slow),
        }
    }

    fn conditions(&self, run: &Run, nodes: usize, executors: usize) -> Conditions {
        Conditions {
            topology: self.file.display().to_string(),
            nodes,
            executors,
            executor: run.executor.name(),
            ipc: run.ipc.name(),
            middleware: run.middleware.name(),
            slow: self.slow.to_string(),
        }
    }
}

pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::Signals)?;
    let topology = schema::read(&args.file)?;
    let run = args.run();
    let failed = |source| Failure::Topology { path: args.file.clone(), source };
    let system = System::new(&topology, &run).map_err(failed)?;
    let conditions = args.conditions(&run, topology.nodes.len(), system.executors());
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

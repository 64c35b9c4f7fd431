//! `ground topology`: runs a topology of the ROS 2 performance framework in real time.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ground::account::{Account, Moment};
use ground::switches::Switches;
use ground::topology::executor::PerWait;
use ground::topology::executor::kind::ExecutorKind;
use ground::topology::report::{self, Conditions, files};
use ground::topology::schema;
use ground::topology::system::{Ipc, Middleware, Run, System};
use ground::topology::tracetools::Tracetools;
use serde::Serialize;

use crate::arguments::parse_seconds;
use crate::console::{print_line, stop_flag};
use crate::failure::Failure;

/// Instead of a file: the functions of this program.
const OWN: &str = "own";

#[derive(Args)]
pub(crate) struct TopologyArgs {
    /// Topology file, in the JSON of the ROS 2 performance framework
    file: PathBuf,
    /// Executor of the nodes, one per executor_id [default: that of the variable GROUND_EXECUTOR, else events, or waitset with
    /// --slow wait-set]
    #[arg(long, value_enum)]
    executor: Option<ExecutorKind>,
    /// Whether messages are passed by pointer within the process [default: on, or off with Cyclone DDS]
    #[arg(long, value_enum)]
    ipc: Option<Ipc>,
    /// Middleware that transports messages
    #[arg(long, value_enum, default_value = "ground")]
    middleware: Middleware,
    /// Run for this long
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "5")]
    seconds: Duration,
    /// Switches to make slow; `wait-set` and `one-per-wait` have an effect here
    #[arg(long, value_name = "NAMES", default_value = "")]
    slow: Switches,
    /// Tell a tracetools library of messages, callbacks and timers, as ROS 2 does: `own` for functions in this program, or a
    /// libtracetools.so [default: mark messages for Stepscope]
    #[arg(long, value_name = "own|FILE")]
    tracetools: Option<PathBuf>,
    /// Write the framework's latency_all.txt, latency_total.txt, resources.txt and events.txt into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write the time, context switches and exact counts of the run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Text for people
    Text,
    /// JSON
    Json,
}

/// The account of a run, in JSON.
#[derive(Serialize)]
struct AccountFile<'a> {
    schema: u32,
    conditions: &'a Conditions,
    run: &'a Account,
}

impl TopologyArgs {
    fn run(&self) -> Result<Run, Failure> {
        let load = |path: &PathBuf| match path.to_str() {
            Some(OWN) => Ok(Tracetools::own()),
            _ => Tracetools::load(path.as_os_str()).map_err(|source| Failure::Library { path: path.clone(), source }),
        };
        let default_ipc = if self.middleware == Middleware::Ground { Ipc::On } else { Ipc::Off };
        let of_variable = match std::env::var("GROUND_EXECUTOR") {
            Ok(name) => Some(ExecutorKind::from_str(&name, true).map_err(|_| Failure::Executor(name))?),
            Err(_) => None,
        };
        let executor = self.executor.or(of_variable);
        Ok(Run {
            executor: executor.unwrap_or_else(|| ExecutorKind::of(&self.slow)),
            ipc: self.ipc.unwrap_or(default_ipc),
            middleware: self.middleware,
            per_wait: PerWait::of(&self.slow),
            tracetools: self.tracetools.as_ref().map(load).transpose()?,
        })
    }

    fn conditions(&self, run: &Run, nodes: usize, executors: usize) -> Conditions {
        Conditions {
            topology: self.file.display().to_string(),
            nodes,
            executors,
            executor: run.executor,
            ipc: run.ipc,
            middleware: run.middleware,
            slow: self.slow.to_string(),
        }
    }
}

pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::Signals)?;
    let topology = schema::read(&args.file)?;
    let run = args.run()?;
    let failed = |source| Failure::Topology { path: args.file.clone(), source };
    let system = System::new(&topology, &run).map_err(failed)?;
    let conditions = args.conditions(&run, topology.nodes.len(), system.executors());
    let start = Moment::now();
    let outcome = system.spin(args.seconds, &stop).map_err(failed)?;
    let account = Moment::now().since(&start);
    if let Some(folder) = &args.out {
        files::write(folder, &outcome)?;
    }
    if let Some(path) = &args.account {
        let file = AccountFile { schema: 1, conditions: &conditions, run: &account };
        let text = serde_json::to_string_pretty(&file).expect("numbers and names can be written");
        std::fs::write(path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    match args.format {
        Format::Text => print_line(report::text(&conditions, &outcome).trim_end()),
        Format::Json => print_line(&format!("{:#}", report::json(&conditions, &outcome))),
    }
    Ok(())
}

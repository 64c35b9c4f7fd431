//! Nodes that publish and subscribe, served by an executor.
//!
//! The executor benchmark of iRobot's study, in one process and without ROS: [nodes](node) with timers, subscriptions,
//! services and clients from the framework's [JSON topologies](schema), connected by a small
//! middleware ([reader], [writer]), and served by one of three [executors](executor).
//!
//! `ground topology` [runs](system) a topology in real time, and reports latency, losses and resources as the framework
//! does. `ground run --world topology` [ticks](ticked): a step lets all timers of N nodes come due and serves all that follows.

/// Locks a mutex. A panicked callback leaves no inconsistent state behind. A macro, so that profiles attribute the cost to
/// the caller.
macro_rules! lock {
    ($mutex:expr) => {
        $mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    };
}

pub mod clock;
pub mod cyclonedds;
pub mod events_log;
pub mod executor;
pub mod latency;
pub mod loopback;
pub mod message;
pub mod node;
pub mod qos;
pub mod reader;
pub mod report;
pub mod resources;
pub mod schema;
pub mod system;
pub mod ticked;
pub mod tracetools;
pub mod tracker;
pub mod wait_set;
pub mod writer;

use std::io;

use clap::Args;

use self::executor::PerWait;
use self::executor::kind::ExecutorKind;
use self::loopback::IdleThreads;
use self::ticked::Ticked;
use crate::simulation::Simulation;
use crate::switches::Switches;

/// Options of this world.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of world `topology`")]
pub struct Options {
    /// Executor of the nodes [default: events, or waitset with --slow wait-set]
    #[arg(long, value_enum)]
    executor: Option<ExecutorKind>,
    /// Number of idle transport threads, which sleep in poll
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    transport_threads: u32,
}

/// Creates the world.
///
/// # Errors
/// If sockets or threads cannot be created.
pub fn load(size: u32, options: &Options, switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    let executor = options.executor.unwrap_or_else(|| ExecutorKind::of(switches));
    let per_wait = PerWait::of(switches);
    let idle = IdleThreads::start(options.transport_threads)?;
    Ok(Box::new(Ticked::new(size, executor, per_wait, idle)))
}

//! Nodes that publish and subscribe, served by an executor.
//!
//! The benchmark of executors that iRobot's study made, in one process and without ROS: [nodes](node) with timers,
//! subscriptions, services and clients, made from the framework's [JSON topologies](schema), connected by a small
//! [middleware], and served by one of three [executors](executor).
//!
//! `ground topology` [runs](system) a topology in real time, and reports latency, losses and resources as the framework
//! does. `ground run --world topology` [ticks](ticked): a step lets all timers of N nodes come due and serves all that follows.

/// Locks a mutex. A callback that panicked has left nothing half done that others see. No function, so that profiles give
/// what it costs to whoever locks.
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
pub mod middleware;
pub mod node;
pub mod report;
pub mod resources;
pub mod schema;
pub mod system;
pub mod ticked;
pub mod tracker;
pub mod wait_set;

use std::io;

use clap::Args;

use self::executor::{ExecutorKind, PerWait};
use self::loopback::IdleThreads;
use self::ticked::Ticked;
use crate::catalogue::{Axis, Control, Expected, Pathology, Phase, Saves, World};
use crate::simulation::Simulation;
use crate::switches::{Switch, Switches};

/// What can be slow.
pub const PATHOLOGIES: &[Pathology] = &[
    Pathology {
        switch: Switch::WaitSet,
        name: "wait-set",
        study: "ROS 2 executors",
        phase: Phase::Steady,
        world: World::Topology,
        options: &[],
        axis: Axis { option: "--n", counts: "nodes", size: 160, smaller: &[20, 40, 80] },
        function: "ground::topology::executor::wait_set::WaitSetExecutor::spin_all",
        guilty: &[
            "ground::topology::executor::wait_set::WaitSetExecutor::spin_all",
            "ground::topology::executor::wait_set::WaitSetExecutor::get_next_ready_executable",
            "ground::topology::executor::wait_set::WaitSetExecutor::wait_for_work",
            "ground::topology::executor::wait_set::WaitSetExecutor::rebuild",
            "ground::topology::node::CallbackGroup::find_endpoint",
            "ground::topology::node::CallbackGroup::find_timer",
        ],
        seam: &["ground::topology::ticked::Ticked::serve"],
        slow: "collects what to wait for from all nodes before each wait, and looks for the owner of each callback",
        fast: "is told by listeners, through a queue of events, what is ready",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 100.0, gain_percent: 98.0, growth_slow: 1.9, growth_fast: 1.1 },
    },
    Pathology {
        switch: Switch::OnePerWait,
        name: "one-per-wait",
        study: "ROS 2 executors",
        phase: Phase::Steady,
        world: World::Topology,
        options: &["--executor", "static"],
        axis: Axis { option: "--n", counts: "nodes", size: 40, smaller: &[10, 20] },
        function: "ground::topology::executor::collected::StaticExecutor::spin_one_per_wait",
        guilty: &[
            "ground::topology::executor::collected::StaticExecutor::spin_one_per_wait",
            "ground::topology::executor::collected::StaticExecutor::refresh_wait_set",
            "ground::topology::wait_set::WaitSet::wait",
            "ground::topology::middleware::Notice::attach",
            "ground::topology::middleware::Notice::detach",
        ],
        seam: &["ground::topology::ticked::Ticked::serve"],
        slow: "waits again after each callback, however many a wait found ready",
        fast: "serves all that a wait found ready before the next",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 100.0, gain_percent: 96.0, growth_slow: 1.9, growth_fast: 1.0 },
    },
];

/// What must stay silent.
pub const CONTROLS: &[Control] = &[Control {
    name: "idle-transport",
    world: World::Topology,
    options: &["--n", "40", "--transport-threads", "8"],
    why: "Transport threads sleep in poll for as long as the program runs; nobody waits for them.",
    silent: &["ground::topology::loopback::idle_thread", "ground::topology::loopback::wait_readable"],
}];

/// Options of this world alone.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of world `topology`")]
pub struct Options {
    /// What serves the nodes [default: events, or waitset with --slow wait-set]
    #[arg(long, value_enum)]
    executor: Option<ExecutorKind>,
    /// Threads of a transport that nothing comes over, which sleep in poll
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    transport_threads: u32,
}

/// Makes the world.
///
/// # Errors
/// If what it needs of the system cannot be had.
pub fn load(size: u32, options: &Options, switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    let executor = options.executor.unwrap_or_else(|| ExecutorKind::of(switches));
    let per_wait = PerWait::of(switches);
    let idle = IdleThreads::start(options.transport_threads)?;
    Ok(Box::new(Ticked::new(size, executor, per_wait, idle)))
}

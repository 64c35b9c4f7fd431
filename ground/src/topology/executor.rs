//! The three executors of the study: who finds out what is ready, and runs its callback.
//!
//! They follow rclcpp of 2020 to 2022, on which the study was made:
//!
//! - [`WaitSetExecutor`] is `SingleThreadedExecutor` with its `AllocatorMemoryStrategy`: entities are collected from all
//!   groups of all nodes before each wait.
//! - [`StaticExecutor`] is `StaticSingleThreadedExecutor`: they are collected once, and put into the wait set each time.
//! - [`EventsExecutor`] is iRobot's (and now rclcpp's) `EventsExecutor`: what becomes ready says so in a queue.
//!
//! Of the first two, all that a wait found ready is served before there is another wait, once each; unless they are told to
//! [serve one](PerWait::One), which is not how rclcpp of that time did it. (Its static executor did so later for a while: a `spin`
//! that called `spin_once_impl`, which returns after one callback.)

mod collected;
mod events;
mod wait_set;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use serde::Serialize;

use super::node::Node;
use super::wait_set::WaitSet;
use crate::switches::{Switch, Switches};

pub use collected::StaticExecutor;
pub use events::EventsExecutor;
pub use wait_set::WaitSetExecutor;

/// Serves the callbacks of nodes.
pub trait Executor: Send {
    /// Serves those of this node too.
    fn add_node(&mut self, node: &Arc<Node>);

    /// Waits and serves for as long as `running` is set. Whoever clears it has to [wake](Self::waker) it then.
    fn spin(&mut self, running: &AtomicBool);

    /// Serves until nothing is ready, without waiting for anything.
    fn spin_all(&mut self);

    /// Ends a wait from another thread.
    fn waker(&self) -> Waker;
}

/// Ends an executor's wait.
pub type Waker = Box<dyn Fn() + Send>;

/// Which executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorKind {
    /// Collects what to wait for from all nodes before each wait
    Waitset,
    /// Collects it once, and puts it into the wait set each time
    Static,
    /// Is told what is ready through a queue
    Events,
}

/// How much of what a wait found ready is served before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerWait {
    /// All of it.
    #[default]
    All,
    /// The first of it: the planted defect.
    One,
}

impl PerWait {
    /// What the switches ask for.
    pub fn of(switches: &Switches) -> Self {
        if switches.is_slow(Switch::OnePerWait) { PerWait::One } else { PerWait::All }
    }
}

impl ExecutorKind {
    /// What the switches ask for, where nobody says which.
    pub fn of(switches: &Switches) -> Self {
        if switches.is_slow(Switch::WaitSet) { ExecutorKind::Waitset } else { ExecutorKind::Events }
    }

    /// Makes one. `per_wait` and the wait set are nothing to that which does not wait for sets.
    pub fn make(self, per_wait: PerWait, wait_set: WaitSet) -> Box<dyn Executor> {
        match self {
            ExecutorKind::Waitset => Box::new(WaitSetExecutor::new(per_wait, wait_set)),
            ExecutorKind::Static => Box::new(StaticExecutor::new(per_wait, wait_set)),
            ExecutorKind::Events => Box::new(EventsExecutor::new()),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ExecutorKind::Waitset => "waitset",
            ExecutorKind::Static => "static",
            ExecutorKind::Events => "events",
        }
    }
}

#[cfg(test)]
mod tests;

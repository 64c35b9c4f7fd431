//! [`ExecutorKind`]: the choice of an executor.

use clap::ValueEnum;
use serde::Serialize;

use super::collected::StaticExecutor;
use super::events::EventsExecutor;
use super::wait_set::WaitSetExecutor;
use super::{Executor, PerWait};
use crate::switches::{Switch, Switches};
use crate::topology::wait_set::WaitSet;

/// An executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorKind {
    /// Collects the wait set from all nodes before each wait
    Waitset,
    /// Collects the entities once and fills the wait set before each wait
    Static,
    /// Reads ready entities from a queue of events
    Events,
}

impl ExecutorKind {
    /// The default, which depends on the switches.
    pub fn of(switches: &Switches) -> Self {
        if switches.is_slow(Switch::WaitSet) { ExecutorKind::Waitset } else { ExecutorKind::Events }
    }

    /// Creates the executor. `events` ignores `per_wait` and the wait set.
    pub fn make(self, per_wait: PerWait, wait_set: WaitSet) -> Box<dyn Executor> {
        match self {
            ExecutorKind::Waitset => Box::new(WaitSetExecutor::new(per_wait, wait_set)),
            ExecutorKind::Static => Box::new(StaticExecutor::new(per_wait, wait_set)),
            ExecutorKind::Events => Box::new(EventsExecutor::new()),
        }
    }
}

//! [`ExecutorKind`]: the choice of an executor.

use clap::ValueEnum;
use serde::Serialize;

use super::collected::StaticExecutor;
use super::events::EventsExecutor;
use super::wait_set::WaitSetExecutor;
use super::{Executor, PerWait};
use crate::switches::{Switch, Switches};
use crate::topology::wait_set::WaitSet;

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

//! The three executors of the study: who finds out what is ready, and runs its callback.
//!
//! They follow rclcpp of 2020 to 2022, on which the study was made:
//!
//! - [`WaitSetExecutor`](wait_set::WaitSetExecutor) is `SingleThreadedExecutor` with its `AllocatorMemoryStrategy`: entities are collected from all
//!   groups of all nodes before each wait.
//! - [`StaticExecutor`](collected::StaticExecutor) is `StaticSingleThreadedExecutor`: they are collected once, and put into the wait set each time.
//! - [`EventsExecutor`](events::EventsExecutor) is iRobot's (and now rclcpp's) `EventsExecutor`: what becomes ready says so in a queue.
//!
//! Of the first two, all that a wait found ready is served before there is another wait, once each; unless they are told to
//! [serve one](PerWait::One), which is not how rclcpp of that time did it. (Its static executor did so later for a while: a `spin`
//! that called `spin_once_impl`, which returns after one callback.)

pub mod collected;
pub mod events;
pub mod kind;
pub mod wait_set;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::node::Node;
use crate::switches::{Switch, Switches};

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

#[cfg(test)]
mod tests;

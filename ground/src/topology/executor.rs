//! The three executors of the study, which find ready entities and run their callbacks.
//!
//! They follow rclcpp of 2020 to 2022, on which the study was made:
//!
//! - [`WaitSetExecutor`](wait_set::WaitSetExecutor) is `SingleThreadedExecutor` with its `AllocatorMemoryStrategy`: entities are collected from all
//!   groups of all nodes before each wait.
//! - [`StaticExecutor`](collected::StaticExecutor) is `StaticSingleThreadedExecutor`: they are collected once, and put into the wait set each time.
//! - [`EventsExecutor`](events::EventsExecutor) is iRobot's (and now rclcpp's) `EventsExecutor`: entities that become
//!   ready add an event to a queue.
//!
//! The first two run all ready callbacks once before the next wait. With [`PerWait::One`] they run one callback per wait,
//! which is a planted defect. (The static executor of rclcpp had it for a while, when `spin` called `spin_once_impl`.)

pub mod collected;
pub mod events;
pub mod kind;
pub mod wait_set;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::node::Node;
use crate::switches::{Switch, Switches};

/// Runs the callbacks of nodes.
pub trait Executor: Send {
    /// Adds a node.
    fn add_node(&mut self, node: &Arc<Node>);

    /// Waits and runs callbacks while `running` is set. To end it, clear `running`, then call the [waker](Self::waker).
    fn spin(&mut self, running: &AtomicBool);

    /// Runs callbacks until none is ready, without waiting.
    fn spin_all(&mut self);

    /// Returns a function that ends a wait from another thread.
    fn waker(&self) -> Waker;
}

/// Ends an executor's wait.
pub type Waker = Box<dyn Fn() + Send>;

/// How many ready callbacks run before the next wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerWait {
    /// All of them.
    #[default]
    All,
    /// The first one: the planted defect.
    One,
}

impl PerWait {
    /// The choice of the switches.
    pub fn of(switches: &Switches) -> Self {
        if switches.is_slow(Switch::OnePerWait) { PerWait::One } else { PerWait::All }
    }
}

#[cfg(test)]
mod tests;

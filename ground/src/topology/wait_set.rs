//! [`WaitSet`]: entities to wait for, like `rcl_wait_set_t`, and the wait, like `rcl_wait` with `rmw_fastrtps`.

use std::sync::Arc;
use std::time::Duration;

use super::cyclonedds;
use super::cyclonedds::error::Token;
use super::node::{Endpoint, Kind, Timer};
use super::reader::{GuardCondition, Signal};
use crate::account::{Counter, count};

/// The timeout of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until something is ready.
    Forever,
    /// Does not wait.
    None,
}

/// Entities to wait for. A wait replaces those that are not ready by `None`, so the set must be filled before each wait.
#[derive(Default)]
pub struct WaitSet {
    /// Timers.
    pub timers: Vec<Option<Arc<Timer>>>,
    /// Endpoints by [kind](Kind).
    pub endpoints: [Vec<Option<Arc<Endpoint>>>; Kind::ALL.len()],
    /// Guard conditions.
    pub guards: Vec<Option<Arc<GuardCondition>>>,
    signal: Arc<Signal>,
}

impl WaitSet {
    /// A wait set of Cyclone DDS.
    pub fn over(wait_set: cyclonedds::WaitSet) -> Self {
        Self { signal: Arc::new(Signal::over(wait_set)), ..Self::default() }
    }

    /// Removes all entities.
    pub fn clear(&mut self) {
        self.timers.clear();
        self.endpoints.iter_mut().for_each(Vec::clear);
        self.guards.clear();
    }

    /// Reserves room.
    pub fn resize(&mut self, timers: usize, endpoints: [usize; Kind::ALL.len()], guards: usize) {
        self.timers.reserve(timers);
        for (room, count) in self.endpoints.iter_mut().zip(endpoints) {
            room.reserve(count);
        }
        self.guards.reserve(guards);
    }

    /// Waits until an entity is ready, or until the timeout.
    pub fn wait(&mut self, patience: Patience) {
        let timeout = match patience {
            Patience::None => Some(Duration::ZERO),
            Patience::Forever => self.time_until_first_timer(),
        };
        self.attach();
        let found = self.signal.wait_until(timeout, || self.is_any_ready());
        self.detach();
        count(Counter::Wakes);
        self.keep_ready(&found);
    }

    fn time_until_first_timer(&self) -> Option<Duration> {
        let first = self.timers.iter().flatten().filter_map(|timer| timer.time_until_trigger_ns()).min();
        first.map(Duration::from_nanos)
    }

    fn attach(&self) {
        for endpoint in self.endpoints.iter().flatten().flatten() {
            endpoint.reader.attach(&self.signal);
        }
        for guard in self.guards.iter().flatten() {
            guard.notice.attach(&self.signal);
        }
    }

    fn detach(&self) {
        for endpoint in self.endpoints.iter().flatten().flatten() {
            endpoint.reader.detach();
        }
        for guard in self.guards.iter().flatten() {
            guard.notice.detach();
        }
    }

    fn is_any_ready(&self) -> bool {
        self.endpoints.iter().flatten().flatten().any(|endpoint| endpoint.reader.is_ready(&[]))
            || self.guards.iter().flatten().any(|guard| guard.is_triggered())
    }

    fn keep_ready(&mut self, found: &[Token]) {
        for timer in &mut self.timers {
            timer.take_if(|timer| !timer.is_ready());
        }
        for endpoint in self.endpoints.iter_mut().flatten() {
            endpoint.take_if(|endpoint| !endpoint.reader.is_ready(found));
        }
        for guard in &mut self.guards {
            guard.take_if(|guard| !guard.consume());
        }
    }
}

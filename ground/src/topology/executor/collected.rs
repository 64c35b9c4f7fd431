//! [`StaticExecutor`]: rclcpp's `StaticSingleThreadedExecutor`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Executor, PerWait, Waker};
use crate::account::{self, Counter, count};
use crate::topology::node::{Endpoint, Kind, Node, Timer};
use crate::topology::reader::GuardCondition;
use crate::topology::wait_set::{Patience, WaitSet};

/// Collects entities when a node is added. Before each wait it fills the wait set with all of them, and afterwards it walks
/// the whole set: the cost of a wait grows with the number of entities.
pub struct StaticExecutor {
    timers: Vec<Arc<Timer>>,
    endpoints: [Vec<Arc<Endpoint>>; Kind::ALL.len()],
    guards: Vec<Arc<GuardCondition>>,
    interrupt: Arc<GuardCondition>,
    wait_set: WaitSet,
    per_wait: PerWait,
}

impl StaticExecutor {
    /// An executor without nodes.
    pub fn new(per_wait: PerWait, wait_set: WaitSet) -> Self {
        let interrupt = Arc::new(GuardCondition::default());
        Self {
            timers: Vec::new(),
            endpoints: Default::default(),
            guards: vec![interrupt.clone()],
            interrupt,
            wait_set,
            per_wait,
        }
    }

    #[inline(never)]
    fn refresh_wait_set(&mut self, patience: Patience) {
        self.wait_set.clear();
        self.wait_set.timers.extend(self.timers.iter().cloned().map(Some));
        for (places, endpoints) in self.wait_set.endpoints.iter_mut().zip(&self.endpoints) {
            places.extend(endpoints.iter().cloned().map(Some));
        }
        self.wait_set.guards.extend(self.guards.iter().cloned().map(Some));
        self.wait_set.wait(patience);
        count(Counter::WaitSetsBuilt);
    }

    fn spin_until_nothing_is_ready(&mut self) {
        loop {
            self.refresh_wait_set(Patience::None);
            if self.execute_ready_executables() == 0 {
                return;
            }
        }
    }

    /// The planted defect: a wait per callback.
    #[inline(never)]
    fn spin_one_per_wait(&mut self) {
        let _timed = account::scope("ground::topology::executor::collected::StaticExecutor::spin_one_per_wait");
        self.spin_until_nothing_is_ready();
    }

    /// Runs ready callbacks: subscriptions, then timers, services and clients. Returns their number.
    #[inline(never)]
    fn execute_ready_executables(&mut self) -> usize {
        let most = if self.per_wait == PerWait::One { 1 } else { usize::MAX };
        let mut executed = self.execute_endpoints(Kind::Subscription, most);
        for index in 0..self.timers.len() {
            let is_found = self.wait_set.timers[index].is_some();
            if executed < most && is_found && self.timers[index].is_ready() {
                self.timers[index].call();
                self.timers[index].execute_callback();
                executed += 1;
            }
        }
        for kind in [Kind::Service, Kind::Client] {
            executed += self.execute_endpoints(kind, most - executed);
        }
        executed
    }

    fn execute_endpoints(&self, kind: Kind, most: usize) -> usize {
        let places = self.wait_set.endpoints[kind as usize].iter().zip(&self.endpoints[kind as usize]);
        let ready = places.filter(|(place, _)| place.is_some()).take(most);
        ready.map(|(_, endpoint)| endpoint.execute()).count()
    }
}

impl Executor for StaticExecutor {
    fn add_node(&mut self, node: &Arc<Node>) {
        self.guards.push(node.notify.clone());
        for group in &node.groups {
            for kind in Kind::ALL {
                group.find_endpoint(kind, |endpoint| {
                    self.endpoints[kind as usize].push(endpoint.clone());
                    false
                });
            }
            group.find_timer(|timer| {
                self.timers.push(timer.clone());
                false
            });
        }
    }

    fn spin(&mut self, running: &AtomicBool) {
        while running.load(Ordering::Acquire) {
            self.refresh_wait_set(Patience::Forever);
            self.execute_ready_executables();
        }
    }

    #[inline(never)]
    fn spin_all(&mut self) {
        let _timed = account::scope("ground::topology::executor::collected::StaticExecutor::spin_all");
        match self.per_wait {
            PerWait::All => self.spin_until_nothing_is_ready(),
            PerWait::One => self.spin_one_per_wait(),
        }
    }

    fn waker(&self) -> Waker {
        let interrupt = self.interrupt.clone();
        Box::new(move || interrupt.trigger())
    }
}

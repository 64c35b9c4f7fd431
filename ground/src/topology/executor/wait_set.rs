//! [`WaitSetExecutor`]: rclcpp's `SingleThreadedExecutor` and `AllocatorMemoryStrategy`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::{Executor, PerWait, Waker};
use crate::account::{self, Counter, count};
use crate::topology::node::{CallbackGroup, Endpoint, Kind, Node, Timer};
use crate::topology::reader::GuardCondition;
use crate::topology::wait_set::{Patience, WaitSet};

/// Collects all entities of all nodes before each wait. After it, walks all nodes to find the owner of each ready entity. The
/// cost of a wait grows with the number of entities, and the cost of callbacks with the number of entities times callbacks.
pub struct WaitSetExecutor {
    nodes: Vec<Weak<Node>>,
    handles: Handles,
    wait_set: WaitSet,
    interrupt: Arc<GuardCondition>,
    per_wait: PerWait,
}

/// Before a wait: all entities. After it: ready entities whose callbacks have not run yet.
#[derive(Default)]
struct Handles {
    timers: Vec<Arc<Timer>>,
    endpoints: [Vec<Arc<Endpoint>>; Kind::ALL.len()],
}

impl Handles {
    fn clear(&mut self) {
        self.timers.clear();
        self.endpoints.iter_mut().for_each(Vec::clear);
    }
}

/// A ready callback, and the group that is locked while it runs.
struct AnyExecutable {
    what: Executable,
    group: Arc<CallbackGroup>,
    /// Kept alive while it runs.
    _node: Arc<Node>,
}

enum Executable {
    Timer(Arc<Timer>),
    Endpoint(Arc<Endpoint>),
}

impl WaitSetExecutor {
    /// An executor without nodes.
    pub fn new(per_wait: PerWait, wait_set: WaitSet) -> Self {
        Self { nodes: Vec::new(), handles: Handles::default(), wait_set, interrupt: Arc::default(), per_wait }
    }

    /// Builds the wait set and waits.
    #[inline(never)]
    fn wait_for_work(&mut self, patience: Patience) {
        let _timed = account::scope("ground::topology::executor::wait_set::WaitSetExecutor::wait_for_work");
        self.rebuild();
        self.wait_set.wait(patience);
        self.remove_null_handles();
    }

    #[inline(never)]
    fn rebuild(&mut self) {
        self.handles.clear();
        self.collect_entities();
        self.wait_set.clear();
        let Handles { timers, endpoints } = &self.handles;
        let counts = [0, 1, 2].map(|kind: usize| endpoints[kind].len());
        self.wait_set.resize(timers.len(), counts, self.nodes.len() + 1);
        self.add_handles_to_wait_set();
        count(Counter::WaitSetsBuilt);
    }

    /// Collects the entities of every group of every node.
    fn collect_entities(&mut self) {
        let Handles { timers, endpoints } = &mut self.handles;
        for node in self.nodes.iter().filter_map(Weak::upgrade) {
            for group in node.groups.iter().filter(|group| group.can_be_taken_from()) {
                for kind in Kind::ALL {
                    group.find_endpoint(kind, |endpoint| {
                        endpoints[kind as usize].push(endpoint.clone());
                        false
                    });
                }
                group.find_timer(|timer| {
                    timers.push(timer.clone());
                    false
                });
            }
        }
    }

    fn add_handles_to_wait_set(&mut self) {
        self.wait_set.timers.extend(self.handles.timers.iter().cloned().map(Some));
        for (places, handles) in self.wait_set.endpoints.iter_mut().zip(&self.handles.endpoints) {
            places.extend(handles.iter().cloned().map(Some));
        }
        self.wait_set.guards.push(Some(self.interrupt.clone()));
        let notify = self.nodes.iter().filter_map(Weak::upgrade).map(|node| Some(node.notify.clone()));
        self.wait_set.guards.extend(notify);
    }

    /// Keeps the handles that are ready in the wait set.
    fn remove_null_handles(&mut self) {
        let mut places = self.wait_set.timers.iter();
        self.handles.timers.retain(|_| places.next().is_some_and(Option::is_some));
        for (handles, places) in self.handles.endpoints.iter_mut().zip(&self.wait_set.endpoints) {
            let mut places = places.iter();
            handles.retain(|_| places.next().is_some_and(Option::is_some));
        }
    }

    /// The next ready callback: timers first, then subscriptions, services and clients.
    #[inline(never)]
    fn get_next_ready_executable(&mut self) -> Option<AnyExecutable> {
        let next = self.get_next_timer();
        let next = next.or_else(|| Kind::ALL.into_iter().find_map(|kind| self.get_next_endpoint(kind)))?;
        next.group.take();
        Some(next)
    }

    fn get_next_timer(&mut self) -> Option<AnyExecutable> {
        let mut at = 0;
        while at < self.handles.timers.len() {
            let handle = self.handles.timers[at].clone();
            let Some((timer, group)) = self.timer_by_handle(&handle).zip(self.group_by_timer(&handle)) else {
                self.handles.timers.remove(at);
                continue;
            };
            if !group.can_be_taken_from() {
                at += 1;
                continue;
            }
            self.handles.timers.remove(at);
            let node = self.node_by_group(&group)?;
            return Some(AnyExecutable { what: Executable::Timer(timer), group, _node: node });
        }
        None
    }

    fn get_next_endpoint(&mut self, kind: Kind) -> Option<AnyExecutable> {
        let mut at = 0;
        while at < self.handles.endpoints[kind as usize].len() {
            let handle = self.handles.endpoints[kind as usize][at].clone();
            let found = self.endpoint_by_handle(&handle).zip(self.group_by_endpoint(&handle));
            let Some((endpoint, group)) = found else {
                self.handles.endpoints[kind as usize].remove(at);
                continue;
            };
            if !group.can_be_taken_from() {
                at += 1;
                continue;
            }
            self.handles.endpoints[kind as usize].remove(at);
            let node = self.node_by_group(&group)?;
            return Some(AnyExecutable { what: Executable::Endpoint(endpoint), group, _node: node });
        }
        None
    }

    fn groups(&self) -> impl Iterator<Item = Arc<CallbackGroup>> {
        self.nodes.iter().filter_map(Weak::upgrade).flat_map(|node| node.groups.clone())
    }

    fn timer_by_handle(&self, handle: &Arc<Timer>) -> Option<Arc<Timer>> {
        self.groups().find_map(|group| group.find_timer(|timer| Arc::ptr_eq(timer, handle)))
    }

    fn group_by_timer(&self, handle: &Arc<Timer>) -> Option<Arc<CallbackGroup>> {
        self.groups().find(|group| group.find_timer(|timer| Arc::ptr_eq(timer, handle)).is_some())
    }

    fn endpoint_by_handle(&self, handle: &Arc<Endpoint>) -> Option<Arc<Endpoint>> {
        self.groups().find_map(|group| group.find_endpoint(handle.kind, |endpoint| Arc::ptr_eq(endpoint, handle)))
    }

    fn group_by_endpoint(&self, handle: &Arc<Endpoint>) -> Option<Arc<CallbackGroup>> {
        let is_it = |endpoint: &Arc<Endpoint>| Arc::ptr_eq(endpoint, handle);
        self.groups().find(|group| group.find_endpoint(handle.kind, is_it).is_some())
    }

    fn node_by_group(&self, group: &Arc<CallbackGroup>) -> Option<Arc<Node>> {
        let has_it = |node: &Arc<Node>| node.groups.iter().any(|one| Arc::ptr_eq(one, group));
        self.nodes.iter().filter_map(Weak::upgrade).find(has_it)
    }

    /// Runs a callback, then ends the next wait at once, because a blocked callback may be ready now. Like rclcpp, it triggers
    /// its own guard condition for that, so it builds one more wait set after each burst of callbacks.
    fn execute_any_executable(&mut self, next: AnyExecutable) {
        match next.what {
            Executable::Timer(timer) => {
                timer.call();
                timer.execute_callback();
            }
            Executable::Endpoint(endpoint) => endpoint.execute(),
        }
        next.group.give_back();
        self.interrupt.trigger();
        if self.per_wait == PerWait::One {
            self.handles.clear();
        }
    }
}

impl Executor for WaitSetExecutor {
    fn add_node(&mut self, node: &Arc<Node>) {
        self.nodes.push(Arc::downgrade(node));
    }

    fn spin(&mut self, running: &AtomicBool) {
        while running.load(Ordering::Acquire) {
            let mut next = self.get_next_ready_executable();
            if next.is_none() {
                self.wait_for_work(Patience::Forever);
                next = self.get_next_ready_executable();
            }
            if let Some(next) = next {
                self.execute_any_executable(next);
            }
        }
    }

    #[inline(never)]
    fn spin_all(&mut self) {
        let _timed = account::scope("ground::topology::executor::wait_set::WaitSetExecutor::spin_all");
        loop {
            self.wait_for_work(Patience::None);
            let Some(mut next) = self.get_next_ready_executable() else { return };
            loop {
                self.execute_any_executable(next);
                let Some(after) = self.get_next_ready_executable() else { break };
                next = after;
            }
        }
    }

    fn waker(&self) -> Waker {
        let interrupt = self.interrupt.clone();
        Box::new(move || interrupt.trigger())
    }
}

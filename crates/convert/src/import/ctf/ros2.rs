//! Names of ROS 2's callbacks, from the events with which ros2_tracing describes nodes, topics, services and timers.
//!
//! Handles are addresses, so they belong to a process. A callback leads to its node over several events:
//! `callback -> subscription -> subscription_handle -> node_handle`, `callback -> timer_handle -> node_handle`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_ctf::Event;

use super::{number, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    CallbackStart,
    CallbackEnd,
    Node,
    Subscription,
    SubscriptionObject,
    SubscriptionCallback,
    Service,
    ServiceCallback,
    Timer,
    TimerCallback,
    TimerNode,
    Symbol,
}

impl Kind {
    /// By the event's name after `ros2:`.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "callback_start" => Kind::CallbackStart,
            "callback_end" => Kind::CallbackEnd,
            "rcl_node_init" => Kind::Node,
            "rcl_subscription_init" => Kind::Subscription,
            "rclcpp_subscription_init" => Kind::SubscriptionObject,
            "rclcpp_subscription_callback_added" => Kind::SubscriptionCallback,
            "rcl_service_init" => Kind::Service,
            "rclcpp_service_callback_added" => Kind::ServiceCallback,
            "rcl_timer_init" => Kind::Timer,
            "rclcpp_timer_callback_added" => Kind::TimerCallback,
            "rclcpp_timer_link_node" => Kind::TimerNode,
            "rclcpp_callback_register" | "callback_register" => Kind::Symbol,
            _ => return None,
        })
    }
}

/// A handle of a process.
type Handle = (u32, u64);

/// What has callbacks, by its handle.
#[derive(Debug, Clone, Default)]
struct Owner {
    node: Option<u64>,
    /// `/chatter`, `service /add`, `timer 100 ms`.
    what: Option<String>,
}

#[derive(Default)]
pub(super) struct Graph {
    nodes: FxHashMap<Handle, String>,
    owners: FxHashMap<Handle, Owner>,
    /// Handles of subscriptions, by their objects.
    subscriptions: FxHashMap<Handle, u64>,
    /// Handles of owners, or objects of subscriptions, by callbacks.
    callbacks: FxHashMap<Handle, u64>,
    symbols: FxHashMap<Handle, String>,
    /// Names so far.
    names: FxHashMap<Handle, Arc<str>>,
}

impl Graph {
    /// Takes what an event says of the graph.
    pub fn learn(&mut self, kind: Kind, event: &Event<'_>, pid: u32) {
        let handle = |field| Some((pid, number(event, field)?));
        let shown = |field| Some(String::from_utf8_lossy(text(event, field)?).into_owned());
        let node = number(event, "node_handle");
        let learnt = match kind {
            Kind::CallbackStart | Kind::CallbackEnd => None,
            Kind::Node => handle("node_handle").zip(shown("node_name")).map(|(node, name)| {
                let space = shown("namespace").unwrap_or_default();
                self.nodes.insert(node, format!("{}/{name}", space.trim_end_matches('/')));
            }),
            Kind::Subscription => handle("subscription_handle").map(|handle| {
                self.owners.insert(handle, Owner { node, what: shown("topic_name") });
            }),
            Kind::Service => handle("service_handle").map(|handle| {
                let what = shown("service_name").map(|name| format!("service {name}"));
                self.owners.insert(handle, Owner { node, what });
            }),
            Kind::Timer => handle("timer_handle").map(|handle| {
                let what = number(event, "period").map(|ns| format!("timer {}", period(ns)));
                self.owners.entry(handle).or_default().what = what;
            }),
            Kind::TimerNode => handle("timer_handle").map(|handle| self.owners.entry(handle).or_default().node = node),
            Kind::SubscriptionObject => handle("subscription")
                .zip(number(event, "subscription_handle"))
                .map(|(object, handle)| _ = self.subscriptions.insert(object, handle)),
            Kind::SubscriptionCallback => self.callback(handle("callback"), number(event, "subscription")),
            Kind::ServiceCallback => self.callback(handle("callback"), number(event, "service_handle")),
            Kind::TimerCallback => self.callback(handle("callback"), number(event, "timer_handle")),
            Kind::Symbol => handle("callback").zip(shown("symbol")).map(|(callback, symbol)| {
                self.symbols.insert(callback, symbol);
            }),
        };
        if learnt.is_some() {
            self.names.clear();
        }
    }

    fn callback(&mut self, callback: Option<Handle>, owner: Option<u64>) -> Option<()> {
        self.callbacks.insert(callback?, owner?);
        Some(())
    }

    /// The name of a callback: its node and its topic, service or timer; else its function; else its address.
    pub fn name(&mut self, pid: u32, callback: u64) -> Arc<str> {
        if let Some(name) = self.names.get(&(pid, callback)) {
            return name.clone();
        }
        let name: Arc<str> = self.made_name(pid, callback).into();
        self.names.insert((pid, callback), name.clone());
        name
    }

    fn made_name(&self, pid: u32, callback: u64) -> String {
        let symbol = self.symbols.get(&(pid, callback));
        let owner = self.callbacks.get(&(pid, callback)).and_then(|&owner| {
            let handle = self.subscriptions.get(&(pid, owner)).copied().unwrap_or(owner);
            self.owners.get(&(pid, handle))
        });
        let node = owner.and_then(|owner| self.nodes.get(&(pid, owner.node?)));
        match (node, owner.and_then(|owner| owner.what.as_ref()), symbol) {
            (Some(node), Some(what), _) => format!("{node}: {what}"),
            (None, Some(what), Some(symbol)) => format!("{what}: {symbol}"),
            (None, Some(what), None) => what.clone(),
            (Some(node), None, Some(symbol)) => format!("{node}: {symbol}"),
            (Some(node), None, None) => format!("{node}: callback {callback:#x}"),
            (None, None, Some(symbol)) => symbol.clone(),
            (None, None, None) => format!("callback {callback:#x}"),
        }
    }
}

/// A timer's period in the largest unit that shows it whole.
fn period(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{} s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{} ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{} us", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}

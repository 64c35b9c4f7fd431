//! Names of ROS 2's callbacks, from the calls with which its libraries describe nodes, topics, services and timers.
//!
//! Handles are addresses, so they belong to a process. A callback leads to its node over several calls:
//! `callback -> subscription -> subscription_handle -> node_handle`, `callback -> timer_handle -> node_handle`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Fields, Kind};

/// A handle of a process.
type Handle = (u32, u64);

/// The id of a client, which the transport sends with each request.
pub(super) type ClientId = [u64; 2];

/// What has callbacks, by its handle.
#[derive(Debug, Clone, Default)]
struct Owner {
    node: Option<u64>,
    /// `/chatter`, `service /add`, `timer 100 ms`.
    what: Option<Arc<str>>,
    /// Of a timer.
    period_ns: Option<u64>,
}

/// The topic of a publisher, and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub topic: Arc<str>,
    pub node: Option<Arc<str>>,
}

/// A message: its topic and its number there.
pub(super) type Message = (Arc<str>, u64);

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: FxHashMap<Handle, String>,
    owners: FxHashMap<Handle, Owner>,
    publishers: FxHashMap<Handle, Owner>,
    /// Publishers of which only the handle is known.
    unnamed: FxHashSet<Handle>,
    unnamed_so_far: u32,
    /// Handles of publishers and topics of subscriptions, by the handles of the transport.
    rmw_publishers: FxHashMap<Handle, u64>,
    rmw_subscriptions: FxHashMap<Handle, Arc<str>>,
    /// Handles of services, clients and their ids, by the handles of the transport.
    rmw_services: FxHashMap<Handle, u64>,
    rmw_clients: FxHashMap<Handle, Owner>,
    client_ids: FxHashMap<Handle, ClientId>,
    /// Handles of subscriptions, by their objects.
    subscriptions: FxHashMap<Handle, u64>,
    /// Handles of owners, or objects of subscriptions, by callbacks.
    callbacks: FxHashMap<Handle, u64>,
    symbols: FxHashMap<Handle, String>,
    /// Names and owners of callbacks that were asked for.
    known: FxHashMap<Handle, Callback>,
}

/// The name and the owner of a callback.
#[derive(Debug, Clone)]
pub(super) struct Callback {
    /// Its node and its topic, service or timer; else its function; else its address.
    pub name: Arc<str>,
    /// The topic, service or timer that calls it.
    pub what: Option<Arc<str>>,
    /// The timer's period.
    pub period_ns: Option<u64>,
    /// Whether the name is more than its address.
    pub has_name: bool,
}

impl Graph {
    /// Takes what an event says of the graph.
    pub fn learn(&mut self, kind: Kind, event: &impl Fields, pid: u32) {
        let handle = |field| Some((pid, event.number(field)?));
        let shown = |field| Some(String::from_utf8_lossy(event.text(field)?).into_owned());
        let node = event.number("node_handle");
        let learnt = match kind {
            Kind::CallbackStart
            | Kind::CallbackEnd
            | Kind::HandedOver
            | Kind::HandedOverWithin
            | Kind::Published
            | Kind::Sent
            | Kind::Taken
            | Kind::Enqueued
            | Kind::Dequeued
            | Kind::RequestSent
            | Kind::RequestTaken
            | Kind::ResponseSent
            | Kind::ResponseTaken => None,
            Kind::Publisher => handle("publisher_handle").map(|handle| {
                let what = shown("topic_name").map(|name| topic(&name));
                self.unnamed.remove(&handle);
                if let Some(rmw) = event.number("rmw_publisher_handle") {
                    self.rmw_publishers.insert((pid, rmw), handle.1);
                }
                self.publishers.insert(handle, Owner { node, what, period_ns: None });
            }),
            Kind::Node => handle("node_handle").zip(shown("node_name")).map(|(node, name)| {
                let space = shown("namespace").unwrap_or_default();
                self.nodes.insert(node, format!("{}/{name}", space.trim_end_matches('/')));
            }),
            Kind::Subscription => handle("subscription_handle").map(|handle| {
                let what = shown("topic_name").map(|name| topic(&name));
                if let (Some(rmw), Some(topic)) = (event.number("rmw_subscription_handle"), &what) {
                    self.rmw_subscriptions.insert((pid, rmw), topic.clone());
                }
                self.owners.insert(handle, Owner { node, what, period_ns: None });
            }),
            Kind::Service => handle("service_handle").map(|handle| {
                let what = shown("service_name").map(|name| service(&name));
                if let Some(rmw) = event.number("rmw_service_handle") {
                    self.rmw_services.insert((pid, rmw), handle.1);
                }
                self.owners.insert(handle, Owner { node, what, period_ns: None });
            }),
            Kind::Client => handle("rmw_client_handle").map(|handle| {
                let what = shown("service_name").map(|name| service(&name));
                self.rmw_clients.insert(handle, Owner { node, what, period_ns: None });
            }),
            Kind::ClientId => {
                handle("rmw_client_handle").zip(client_id(event, "gid", "gid_rest")).map(|(handle, id)| {
                    self.client_ids.insert(handle, id);
                })
            }
            Kind::Timer => handle("timer_handle").map(|handle| {
                let owner = self.owners.entry(handle).or_default();
                owner.period_ns = event.number("period");
                owner.what = owner.period_ns.map(|ns| format!("timer {}", period(ns)).into());
            }),
            Kind::TimerNode => handle("timer_handle").map(|handle| self.link_timer(handle, node)),
            Kind::SubscriptionObject => handle("subscription")
                .zip(event.number("subscription_handle"))
                .map(|(object, handle)| _ = self.subscriptions.insert(object, handle)),
            Kind::SubscriptionCallback => self.callback(handle("callback"), event.number("subscription")),
            Kind::ServiceCallback => self.callback(handle("callback"), event.number("service_handle")),
            Kind::TimerCallback => self.callback(handle("callback"), event.number("timer_handle")),
            Kind::Symbol => handle("callback").zip(shown("symbol")).map(|(callback, symbol)| {
                self.symbols.insert(callback, symbol);
            }),
        };
        if learnt.is_some() {
            self.known.clear();
        }
    }

    /// A timer is of this node. The second one of a node with the same period is `timer 100 ms #2`.
    fn link_timer(&mut self, handle: Handle, node: Option<u64>) {
        let period_ns = self.owners.entry(handle).or_default().period_ns;
        let is_alike = |(other, owner): (&Handle, &Owner)| {
            *other != handle && other.0 == handle.0 && owner.node == node && owner.period_ns == period_ns
        };
        let earlier = self.owners.iter().filter(|&one| node.is_some() && period_ns.is_some() && is_alike(one)).count();
        let owner = self.owners.entry(handle).or_default();
        owner.node = node;
        if let (Some(ns), 1..) = (period_ns, earlier) {
            owner.what = Some(format!("timer {} #{}", period(ns), earlier + 1).into());
        }
    }

    fn callback(&mut self, callback: Option<Handle>, owner: Option<u64>) -> Option<()> {
        self.callbacks.insert(callback?, owner?);
        Some(())
    }

    /// The name and the owner of a callback.
    pub fn known(&mut self, pid: u32, callback: u64) -> &Callback {
        if !self.known.contains_key(&(pid, callback)) {
            let owner = self.owner(pid, callback);
            let known = Callback {
                name: self.made_name(pid, callback).into(),
                what: owner.and_then(|owner| owner.what.clone()),
                period_ns: owner.and_then(|owner| owner.period_ns),
                has_name: owner.is_some() || self.symbols.contains_key(&(pid, callback)),
            };
            self.known.insert((pid, callback), known);
        }
        &self.known[&(pid, callback)]
    }

    /// What has a callback: a subscription, a service or a timer.
    fn owner(&self, pid: u32, callback: u64) -> Option<&Owner> {
        let &owner = self.callbacks.get(&(pid, callback))?;
        let handle = self.subscriptions.get(&(pid, owner)).copied().unwrap_or(owner);
        self.owners.get(&(pid, handle))
    }

    /// A publisher by its handle.
    pub fn publisher(&self, pid: u32, handle: u64) -> Option<Endpoint> {
        self.endpoint(pid, self.publishers.get(&(pid, handle))?)
    }

    fn endpoint(&self, pid: u32, owner: &Owner) -> Option<Endpoint> {
        let node = owner.node.and_then(|node| self.nodes.get(&(pid, node)));
        Some(Endpoint { topic: owner.what.clone()?, node: node.map(|name| name.as_str().into()) })
    }

    /// A service by the transport's handle.
    pub fn rmw_service(&self, pid: u32, handle: u64) -> Option<Endpoint> {
        self.endpoint(pid, self.owners.get(&(pid, *self.rmw_services.get(&(pid, handle))?))?)
    }

    /// A client by the transport's handle.
    pub fn rmw_client(&self, pid: u32, handle: u64) -> Option<Endpoint> {
        self.endpoint(pid, self.rmw_clients.get(&(pid, handle))?)
    }

    /// The id of a client, by the transport's handle.
    pub fn client_id(&self, pid: u32, handle: u64) -> Option<ClientId> {
        self.client_ids.get(&(pid, handle)).copied()
    }

    /// A publisher that was made before the recording and publishes within its process, where nothing tells its topic.
    pub fn unnamed_publisher(&mut self, pid: u32, handle: u64) -> Endpoint {
        self.unnamed_so_far += 1;
        let topic: Arc<str> = format!("(unnamed {} in process {pid})", self.unnamed_so_far).into();
        self.unnamed.insert((pid, handle));
        self.publishers.insert((pid, handle), Owner { what: Some(topic.clone()), ..Owner::default() });
        Endpoint { topic, node: None }
    }

    /// The transport tells the topic of a publisher that was made before.
    pub fn name_publisher(&mut self, pid: u32, handle: u64, topic: &Arc<str>) {
        if self.unnamed.remove(&(pid, handle)) || !self.publishers.contains_key(&(pid, handle)) {
            self.publishers.insert((pid, handle), Owner { what: Some(topic.clone()), ..Owner::default() });
        }
    }

    /// A publisher by the transport's handle.
    pub fn rmw_publisher(&self, pid: u32, handle: u64) -> Option<Endpoint> {
        self.publisher(pid, *self.rmw_publishers.get(&(pid, handle))?)
    }

    /// The topic of a subscription, by the transport's handle.
    pub fn rmw_subscription(&self, pid: u32, handle: u64) -> Option<Arc<str>> {
        self.rmw_subscriptions.get(&(pid, handle)).cloned()
    }

    fn made_name(&self, pid: u32, callback: u64) -> String {
        let symbol = self.symbols.get(&(pid, callback));
        let owner = self.owner(pid, callback);
        let node = owner.and_then(|owner| self.nodes.get(&(pid, owner.node?)));
        match (node, owner.and_then(|owner| owner.what.as_ref()), symbol) {
            (Some(node), Some(what), _) => format!("{node}: {what}"),
            (None, Some(what), Some(symbol)) => format!("{what}: {symbol}"),
            (None, Some(what), None) => what.to_string(),
            (Some(node), None, Some(symbol)) => format!("{node}: {symbol}"),
            (Some(node), None, None) => format!("{node}: callback {callback:#x}"),
            (None, None, Some(symbol)) => symbol.clone(),
            (None, None, None) => format!("callback {callback:#x}"),
        }
    }
}

/// The id of a client, by the names of its two halves.
pub(super) fn client_id(call: &impl Fields, first: &str, rest: &str) -> Option<ClientId> {
    Some([call.number(first)?, call.number(rest)?])
}

/// What a topic is called. An action has hidden ones: `/fibonacci/_action/feedback` is `action /fibonacci: feedback`.
pub(super) fn topic(name: &str) -> Arc<str> {
    of_action(name).unwrap_or_else(|| name.into())
}

/// What a service is called; those of an action as its topics.
fn service(name: &str) -> Arc<str> {
    of_action(name).unwrap_or_else(|| format!("service {name}").into())
}

fn of_action(name: &str) -> Option<Arc<str>> {
    let (action, part) = name.split_once("/_action/")?;
    Some(format!("action {action}: {part}").into())
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

//! Requests to services and their responses, while they are on their way.
//!
//! The transport numbers the requests of a client, and each client has an id. Both come with `rmw_take_request` and
//! `rmw_send_response`; at the client, its handle leads to its id (`rmw_client_init`).

use rustc_hash::FxHashMap;

use super::graph::{ClientId, Endpoint, Graph, Message, client_id};
use super::{Fields, Kind};

/// Requests and responses that can still be taken. Those to services that ended stay there.
const MOST_KEPT: usize = 65_536;

/// A request or its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    client: ClientId,
    number: u64,
    is_response: bool,
}

#[derive(Debug, Default)]
pub(super) struct Services {
    sent: FxHashMap<Key, Message>,
}

impl Services {
    /// The topic and the sender of a request or response, and what joins it with its other end, if the call has it. `None` if
    /// the client or service is not known.
    pub fn sent(kind: Kind, call: &impl Fields, pid: u32, graph: &Graph) -> Option<(Endpoint, Option<Key>)> {
        let key = key(kind, call, pid, graph);
        if kind == Kind::RequestSent {
            return Some((graph.rmw_client(pid, call.number("rmw_client_handle")?)?, key));
        }
        let Endpoint { topic, node } = graph.rmw_service(pid, call.number("rmw_service_handle")?)?;
        Some((Endpoint { topic: format!("{topic} response").into(), node }, key))
    }

    /// A request or response is on its way.
    pub fn send(&mut self, key: Key, message: Message) {
        if self.sent.len() >= MOST_KEPT {
            self.sent.clear();
        }
        self.sent.insert(key, message);
    }

    /// The request or response that a call takes.
    pub fn receive(&mut self, kind: Kind, call: &impl Fields, pid: u32, graph: &Graph) -> Option<Message> {
        self.sent.remove(&key(kind, call, pid, graph)?)
    }
}

fn key(kind: Kind, call: &impl Fields, pid: u32, graph: &Graph) -> Option<Key> {
    let client = match kind {
        Kind::RequestSent | Kind::ResponseTaken => graph.client_id(pid, call.number("rmw_client_handle")?)?,
        _ => client_id(call, "client_gid", "client_gid_rest")?,
    };
    let is_response = matches!(kind, Kind::ResponseSent | Kind::ResponseTaken);
    Some(Key { client, number: call.number("sequence_number")?, is_response })
}

//! The topologies of iRobot's [ROS 2 performance framework](https://github.com/irobot-ros/ros2-performance), as JSON.
//!
//! ```json
//! {"nodes": [
//!   {"node_name": "talker", "executor_id": 1,
//!    "publishers": [{"topic_name": "chatter", "msg_type": "stamped10b", "period_ms": 10, "msg_pass_by": "shared_ptr"}]},
//!   {"node_name": "listener", "executor_id": 2, "number": 3,
//!    "subscribers": [{"topic_name": "chatter", "msg_type": "stamped10b", "qos_depth": 1}]}
//! ]}
//! ```
//!
//! Besides `publishers` and `subscribers` there are `clients` and `servers` (`service_name`, `srv_type`). All keys of the
//! framework are accepted, with its defaults: executor 0, `unique_ptr` for publishers and `shared_ptr` for subscribers,
//! reliable, a history of ten. Unknown keys, which the framework ignores, are errors that name their position.

mod fields;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::fields::{Fields, Mistake, Parsed, array, integer, number, string};
use super::message::{MAX_PAYLOAD_BYTES, MessageType};
use super::qos::{History, PassBy, Qos, Reliability};

/// A topology.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Its nodes, including copies.
    pub nodes: Vec<NodeSpec>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// `node_name`, with `_1`, `_2` and so on for copies (`number`).
    pub name: String,
    /// Its executor; each has a thread.
    pub executor_id: i64,
    /// Its publishers.
    pub publishers: Vec<PublisherSpec>,
    /// Its subscriptions.
    pub subscribers: Vec<SubscriberSpec>,
    /// Its clients.
    pub clients: Vec<ClientSpec>,
    /// Its servers.
    pub servers: Vec<ServerSpec>,
}

/// A periodic publisher.
#[derive(Debug, Clone, PartialEq)]
pub struct PublisherSpec {
    /// Full name of its topic. Relative names are in the node's namespace.
    pub topic: String,
    /// Its message type.
    pub message: MessageType,
    /// Size of a vector, bytes.
    pub msg_size: usize,
    /// Its period.
    pub period: Duration,
    /// How it passes messages.
    pub pass_by: PassBy,
    /// Quality of service.
    pub qos: Qos,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriberSpec {
    /// Full name of its topic.
    pub topic: String,
    /// Its message type.
    pub message: MessageType,
    /// How it receives messages.
    pub pass_by: PassBy,
    /// Quality of service.
    pub qos: Qos,
}

/// A client that sends requests periodically.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSpec {
    /// Full name of the service.
    pub service: String,
    /// Type of requests and responses.
    pub message: MessageType,
    /// Its period.
    pub period: Duration,
    /// Quality of service.
    pub qos: Qos,
}

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// Full name of the service.
    pub service: String,
    /// Type of requests and responses.
    pub message: MessageType,
    /// Quality of service.
    pub qos: Qos,
}

/// Why a topology cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file cannot be read.
    #[error(
        "cannot read the topology {path}: {source}; `ground topology FILE.json` expects a topology of the ROS 2 performance framework"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not JSON.
    #[error("{path} is not JSON: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where, and why.
        source: serde_json::Error,
    },
    /// A value in it is invalid.
    #[error("{path}: {place}: {mistake}")]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Where in the file, as `nodes[3] (osaka).publishers[0].freq_hz`.
        place: String,
        /// What is wrong, and what to do.
        mistake: String,
    },
}

/// Most nodes, including copies.
const MAX_NODES: usize = 10_000;
/// Most publishers, subscriptions, clients and servers of all nodes.
const MAX_ENTITIES: usize = 1_000_000;
/// The shortest period: 100 kHz.
const MIN_PERIOD: Duration = Duration::from_micros(10);
/// The longest period: a day.
const MAX_PERIOD: Duration = Duration::from_secs(86_400);
/// A file larger than this is not a topology.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads a topology from a file.
///
/// # Errors
/// If it cannot be read, or is not a topology.
pub fn read(path: &Path) -> Result<Topology, SchemaError> {
    let unreadable = |source| SchemaError::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("the file is too large ({size} bytes)"))));
    }
    parse(&std::fs::read(path).map_err(unreadable)?, path)
}

/// Reads a topology from text; `path` is for messages.
///
/// # Errors
/// If it is not a topology.
pub fn parse(text: &[u8], path: &Path) -> Result<Topology, SchemaError> {
    let json: Value =
        serde_json::from_slice(text).map_err(|source| SchemaError::Json { path: path.to_owned(), source })?;
    topology(&json).map_err(|Mistake { place, what }| SchemaError::Mistake {
        path: path.to_owned(),
        place,
        mistake: what,
    })
}

fn topology(json: &Value) -> Parsed<Topology> {
    let root = Fields::of(json, "the topology".to_owned())?;
    root.expect_only(&["nodes"])?;
    let listed = root.array("nodes")?;
    if listed.is_empty() {
        return Err(root.mistake("nodes", "the list is empty; a topology has at least one node"));
    }
    let (mut nodes, mut entities) = (Vec::new(), 0);
    for (index, json) in listed.iter().enumerate() {
        let name = json
            .get("node_name")
            .and_then(Value::as_str)
            .map_or_else(String::new, |name| format!(" ({})", name.escape_debug()));
        let fields = Fields::of(json, format!("nodes[{index}]{name}"))?;
        let suffixes = suffixes(&fields)?;
        entities += suffixes.len() * entities_of(json);
        if nodes.len() + suffixes.len() > MAX_NODES || entities > MAX_ENTITIES {
            let most = format!("{MAX_NODES} nodes or {MAX_ENTITIES} publishers, subscribers, clients and servers");
            return Err(root.mistake("nodes", format!("there are more than {most} with all copies")));
        }
        for suffix in &suffixes {
            nodes.push(node(&fields, suffix)?);
        }
    }
    match mismatch(&nodes) {
        Some(what) => Err(root.mistake("nodes", what)),
        None => Ok(Topology { nodes }),
    }
}

/// Finds a topic with two message types. In ROS its endpoints would not connect.
fn mismatch(nodes: &[NodeSpec]) -> Option<String> {
    let mut types = std::collections::HashMap::new();
    for node in nodes {
        let published = node.publishers.iter().map(|one| (&one.topic, one.message));
        let subscribed = node.subscribers.iter().map(|one| (&one.topic, one.message));
        for (topic, message) in published.chain(subscribed) {
            let (first, by) = *types.entry(topic).or_insert((message, &node.name));
            if first != message {
                let name = &node.name;
                return Some(format!(
                    "topic `{topic}` is {first:?} for {by} and {message:?} for {name}; use one msg_type"
                ));
            }
        }
    }
    None
}

const LISTS: [&str; 4] = ["publishers", "subscribers", "clients", "servers"];

/// Suffixes of the node's name: numbers for copies (`number`).
fn suffixes(fields: &Fields<'_>) -> Parsed<Vec<String>> {
    fields.expect_only(&[&["node_name", "node_namespace", "executor_id", "number"][..], &LISTS].concat())?;
    let Some(number) = fields.optional("number", integer)? else { return Ok(vec![String::new()]) };
    match (1..=MAX_NODES as i64).contains(&number) {
        true => Ok((1..=number).map(|copy| format!("_{copy}")).collect()),
        false => Err(fields.mistake("number", format!("{number} is not between 1 and {MAX_NODES}"))),
    }
}

/// Number of entities of a node.
fn entities_of(node: &Value) -> usize {
    LISTS.iter().filter_map(|list| node.get(list).and_then(Value::as_array)).map(Vec::len).sum()
}

fn node(fields: &Fields<'_>, suffix: &str) -> Parsed<NodeSpec> {
    let name = fields.text("node_name")?;
    let namespace = fields.optional("node_namespace", string)?;
    let namespace = namespace.map_or_else(String::new, |name| format!("/{}{suffix}", name.trim_matches('/')));
    let list = |name: &str| -> Parsed<Vec<Fields<'_>>> {
        let entries = fields.optional(name, array)?.unwrap_or_default();
        let at = |index: usize| format!("{}.{name}[{index}]", fields.place);
        entries.iter().enumerate().map(|(index, json)| Fields::of(json, at(index))).collect()
    };
    Ok(NodeSpec {
        name: format!("{name}{suffix}"),
        executor_id: fields.optional("executor_id", integer)?.unwrap_or(0),
        publishers: list("publishers")?.iter().map(|entry| publisher(entry, &namespace)).collect::<Parsed<_>>()?,
        subscribers: list("subscribers")?.iter().map(|entry| subscriber(entry, &namespace)).collect::<Parsed<_>>()?,
        clients: list("clients")?.iter().map(|entry| client(entry, &namespace)).collect::<Parsed<_>>()?,
        servers: list("servers")?.iter().map(|entry| server(entry, &namespace)).collect::<Parsed<_>>()?,
    })
}

const QOS: [&str; 9] = [
    "qos_history",
    "qos_depth",
    "qos_reliability",
    "qos_durability",
    "qos_liveliness",
    "qos_avoid_ros_namespace_conventions",
    "qos_deadline",
    "qos_lifespan",
    "qos_liveliness_lease_duration",
];

fn publisher(fields: &Fields<'_>, namespace: &str) -> Parsed<PublisherSpec> {
    let own = ["topic_name", "msg_type", "msg_size", "freq_hz", "period_ms", "msg_pass_by"];
    fields.expect_only(&[&own[..], &QOS].concat())?;
    let message = message_type(fields, "msg_type")?;
    let msg_size = fields.optional("msg_size", integer)?;
    let msg_size = usize::try_from(msg_size.unwrap_or(0)).ok().filter(|size| *size <= MAX_PAYLOAD_BYTES);
    Ok(PublisherSpec {
        topic: resolved(&fields.text("topic_name")?, namespace),
        message,
        msg_size: msg_size
            .ok_or_else(|| fields.mistake("msg_size", format!("a vector has 0 to {MAX_PAYLOAD_BYTES} bytes")))?,
        period: period(fields)?,
        pass_by: pass_by(fields, PassBy::UniquePtr)?,
        qos: qos(fields)?,
    })
}

fn subscriber(fields: &Fields<'_>, namespace: &str) -> Parsed<SubscriberSpec> {
    let own = ["topic_name", "msg_type", "msg_size", "msg_pass_by"];
    fields.expect_only(&[&own[..], &QOS].concat())?;
    Ok(SubscriberSpec {
        topic: resolved(&fields.text("topic_name")?, namespace),
        message: message_type(fields, "msg_type")?,
        pass_by: pass_by(fields, PassBy::SharedPtr)?,
        qos: qos(fields)?,
    })
}

fn client(fields: &Fields<'_>, namespace: &str) -> Parsed<ClientSpec> {
    fields.expect_only(&[&["service_name", "srv_type", "freq_hz", "period_ms"][..], &QOS].concat())?;
    Ok(ClientSpec {
        service: resolved(&fields.text("service_name")?, namespace),
        message: message_type(fields, "srv_type")?,
        period: period(fields)?,
        qos: qos(fields)?,
    })
}

fn server(fields: &Fields<'_>, namespace: &str) -> Parsed<ServerSpec> {
    fields.expect_only(&[&["service_name", "srv_type"][..], &QOS].concat())?;
    Ok(ServerSpec {
        service: resolved(&fields.text("service_name")?, namespace),
        message: message_type(fields, "srv_type")?,
        qos: qos(fields)?,
    })
}

/// A name as ROS resolves it.
fn resolved(name: &str, namespace: &str) -> String {
    match name.strip_prefix('/') {
        Some(_) => name.to_owned(),
        None => format!("{namespace}/{name}"),
    }
}

fn message_type(fields: &Fields<'_>, name: &str) -> Parsed<MessageType> {
    let text = fields.text(name)?;
    text.parse().map_err(|unknown| fields.mistake(name, unknown))
}

/// Reads `freq_hz`, or else `period_ms`.
fn period(fields: &Fields<'_>) -> Parsed<Duration> {
    let (name, seconds) = match (fields.optional("freq_hz", number)?, fields.optional("period_ms", number)?) {
        (Some(frequency), _) => ("freq_hz", 1.0 / frequency),
        (None, Some(period)) => ("period_ms", 1e-3 * period),
        (None, None) => return Err(fields.mistake("freq_hz", "it is missing; set freq_hz or period_ms")),
    };
    let period = Duration::try_from_secs_f64(seconds).ok();
    let period = period.filter(|period| (MIN_PERIOD..=MAX_PERIOD).contains(period));
    period.ok_or_else(|| fields.mistake(name, "a period is between 0.01 ms (100 kHz) and a day"))
}

fn pass_by(fields: &Fields<'_>, default: PassBy) -> Parsed<PassBy> {
    match fields.optional("msg_pass_by", string)?.as_deref() {
        None => Ok(default),
        Some("unique_ptr" | "loaned_msg") => Ok(PassBy::UniquePtr),
        Some("shared_ptr") => Ok(PassBy::SharedPtr),
        Some(other) => {
            Err(fields.mistake("msg_pass_by", format!("`{other}` is not one of unique_ptr, shared_ptr, loaned_msg")))
        }
    }
}

fn qos(fields: &Fields<'_>) -> Parsed<Qos> {
    let choice = |name: &str, choices: &[&str]| -> Parsed<Option<String>> {
        let Some(chosen) = fields.optional(name, string)? else { return Ok(None) };
        match choices.contains(&chosen.as_str()) {
            true => Ok(Some(chosen)),
            false => Err(fields.mistake(name, format!("`{chosen}` is not one of {}", choices.join(", ")))),
        }
    };
    // These have no effect within a process, but must be valid.
    choice("qos_durability", &["system_default", "volatile", "transient_local", "unknown"])?;
    choice("qos_liveliness", &["system_default", "automatic", "manual_by_topic", "unknown"])?;
    choice("qos_avoid_ros_namespace_conventions", &["false", "true"])?;
    for name in ["qos_deadline", "qos_lifespan", "qos_liveliness_lease_duration"] {
        choice(name, &["default"])?;
    }
    let depth = fields.optional("qos_depth", integer)?.unwrap_or(10);
    let depth = usize::try_from(depth).ok().filter(|depth| *depth <= 1_000_000);
    let depth = depth.ok_or_else(|| fields.mistake("qos_depth", "a depth is between 0 and 1000000"))?;
    let history = choice("qos_history", &["system_default", "keep_last", "keep_all", "unknown"])?;
    let reliability = choice("qos_reliability", &["system_default", "reliable", "best_effort", "unknown"])?;
    Ok(Qos {
        history: if history.as_deref() == Some("keep_all") { History::KeepAll } else { History::KeepLast(depth) },
        reliability: match reliability.as_deref() {
            Some("best_effort") => Reliability::BestEffort,
            _ => Reliability::Reliable,
        },
    })
}

#[cfg(test)]
mod tests;

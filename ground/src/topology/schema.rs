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
//! Besides `publishers` and `subscribers` there are `clients` and `servers` (`service_name`, `srv_type`). What the framework takes
//! is taken here, with its defaults: executor 0, `unique_ptr` for publishers and `shared_ptr` for subscribers, reliable, the
//! last ten kept. What it would ignore, as a name that it does not know, is an error here, which says where it is.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::message::{MAX_PAYLOAD_BYTES, MessageType};
use super::middleware::{History, PassBy, Qos, Reliability};

/// A topology.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Its nodes; those that are asked for several times are there several times.
    pub nodes: Vec<NodeSpec>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// `node_name`, with `_1`, `_2` and so on where `number` asks for copies.
    pub name: String,
    /// Which executor serves it; each has a thread.
    pub executor_id: i64,
    /// Its publishers.
    pub publishers: Vec<PublisherSpec>,
    /// Its subscriptions.
    pub subscribers: Vec<SubscriberSpec>,
    /// What asks services.
    pub clients: Vec<ClientSpec>,
    /// What serves them.
    pub servers: Vec<ServerSpec>,
}

/// A publisher, which publishes periodically.
#[derive(Debug, Clone, PartialEq)]
pub struct PublisherSpec {
    /// Whole name of its topic: relative names are in the node's namespace.
    pub topic: String,
    /// What it publishes.
    pub message: MessageType,
    /// Bytes of a vector.
    pub msg_size: usize,
    /// How often.
    pub period: Duration,
    /// How it hands its messages over.
    pub pass_by: PassBy,
    /// How.
    pub qos: Qos,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriberSpec {
    /// Whole name of its topic.
    pub topic: String,
    /// What it expects.
    pub message: MessageType,
    /// How it takes messages.
    pub pass_by: PassBy,
    /// How.
    pub qos: Qos,
}

/// A client, which asks periodically.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSpec {
    /// Whole name of the service.
    pub service: String,
    /// What is asked and answered.
    pub message: MessageType,
    /// How often.
    pub period: Duration,
    /// How.
    pub qos: Qos,
}

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// Whole name of the service.
    pub service: String,
    /// What is asked and answered.
    pub message: MessageType,
    /// How.
    pub qos: Qos,
}

/// Why a topology cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file cannot be read.
    #[error(
        "cannot read the topology {path}: {source}; `ground topology FILE.json` reads a topology of the ROS 2 performance framework"
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
    /// Something in it is not as it has to be.
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

/// What a file can ask for at most.
const MAX_NODES: usize = 10_000;
/// Publishers, subscriptions, clients and servers of all nodes with their copies.
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
        return Err(unreadable(io::Error::other(format!("{size} bytes are too many for a topology"))));
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

/// What is wrong, and where.
#[derive(Debug)]
struct Mistake {
    place: String,
    what: String,
}

type Parsed<T> = Result<T, Mistake>;

fn topology(json: &Value) -> Parsed<Topology> {
    let root = Fields::of(json, "the topology".to_owned())?;
    root.expect_only(&["nodes"])?;
    let listed = root.array("nodes")?;
    if listed.is_empty() {
        return Err(root.mistake("nodes", "there are none; a topology has at least one"));
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

/// A topic whose messages are not the same for all: in ROS these would not hear each other.
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

/// What comes after the node's name: numbers, where `number` wants copies of it.
fn suffixes(fields: &Fields<'_>) -> Parsed<Vec<String>> {
    fields.expect_only(&[&["node_name", "node_namespace", "executor_id", "number"][..], &LISTS].concat())?;
    let Some(number) = fields.optional("number", integer)? else { return Ok(vec![String::new()]) };
    match (1..=MAX_NODES as i64).contains(&number) {
        true => Ok((1..=number).map(|copy| format!("_{copy}")).collect()),
        false => Err(fields.mistake("number", format!("{number} is not between 1 and {MAX_NODES}"))),
    }
}

/// How many entities a node has.
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

/// `freq_hz`, or if that is not there `period_ms`.
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
            Err(fields.mistake("msg_pass_by", format!("`{other}` is none of unique_ptr, shared_ptr and loaned_msg")))
        }
    }
}

fn qos(fields: &Fields<'_>) -> Parsed<Qos> {
    let choice = |name: &str, choices: &[&str]| -> Parsed<Option<String>> {
        let Some(chosen) = fields.optional(name, string)? else { return Ok(None) };
        match choices.contains(&chosen.as_str()) {
            true => Ok(Some(chosen)),
            false => Err(fields.mistake(name, format!("`{chosen}` is none of {}", choices.join(", ")))),
        }
    };
    // These say nothing within a process in which everything is there from the start, but have to be right.
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

/// An object of the file, and where it is.
struct Fields<'a> {
    place: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn of(json: &'a Value, place: String) -> Parsed<Self> {
        match json {
            Value::Object(map) => Ok(Self { place, map }),
            other => Err(Mistake { place, what: format!("this is {}, not an object", kind(other)) }),
        }
    }

    fn mistake(&self, name: &str, what: impl ToString) -> Mistake {
        Mistake { place: format!("{}.{name}", self.place), what: what.to_string() }
    }

    fn expect_only(&self, known: &[&str]) -> Parsed<()> {
        match self.map.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.mistake(name, format!("it is not known here; there are {}", known.join(", ")))),
        }
    }

    fn optional<T>(&self, name: &str, read: impl Fn(&'a Value) -> Result<T, &'static str>) -> Parsed<Option<T>> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        let what = |wanted| self.mistake(name, format!("this is {}, not {wanted}", kind(value)));
        read(value).map(Some).map_err(what)
    }

    fn text(&self, name: &str) -> Parsed<String> {
        let text = self.optional(name, string)?.ok_or_else(|| self.mistake(name, "it is missing; give it a name"))?;
        match &text {
            text if text.is_empty() => Err(self.mistake(name, "it is empty; give it a name")),
            text if text.contains(char::is_control) => Err(self.mistake(name, "there is a control character in it")),
            _ => Ok(text),
        }
    }

    fn array(&self, name: &str) -> Parsed<&'a [Value]> {
        self.optional(name, array)?.ok_or_else(|| self.mistake(name, "it is missing"))
    }
}

fn string(value: &Value) -> Result<String, &'static str> {
    value.as_str().map(str::to_owned).ok_or("a string")
}

fn integer(value: &Value) -> Result<i64, &'static str> {
    value.as_i64().ok_or("a whole number")
}

fn number(value: &Value) -> Result<f64, &'static str> {
    value.as_f64().ok_or("a number")
}

fn array(value: &Value) -> Result<&[Value], &'static str> {
    value.as_array().map(Vec::as_slice).ok_or("an array")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Topology, String> {
        parse(text.as_bytes(), Path::new("x.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_topology_is_read_with_the_defaults_of_the_framework() {
        let topology = parsed(
            r#"{"nodes": [
                {"node_name": "talker", "executor_id": 4, "node_namespace": "ns",
                 "publishers": [{"topic_name": "t", "msg_type": "stamped_vector", "msg_size": 25000, "freq_hz": 64}],
                 "clients": [{"service_name": "s", "srv_type": "stamped10b", "period_ms": 500}]},
                {"node_name": "listener", "number": 2,
                 "subscribers": [{"topic_name": "/ns/t", "msg_type": "stamped_vector", "msg_pass_by": "unique_ptr",
                                  "qos_depth": 1, "qos_reliability": "best_effort"}],
                 "servers": [{"service_name": "/ns/s", "srv_type": "stamped10b", "qos_history": "keep_all"}]}
            ]}"#,
        )
        .unwrap();
        let names: Vec<_> = topology.nodes.iter().map(|node| (node.name.as_str(), node.executor_id)).collect();
        assert_eq!(names, [("talker", 4), ("listener_1", 0), ("listener_2", 0)]);
        let publisher = PublisherSpec {
            topic: "/ns/t".to_owned(),
            message: MessageType::Vector,
            msg_size: 25_000,
            period: Duration::from_nanos(15_625_000),
            pass_by: PassBy::UniquePtr,
            qos: Qos::default(),
        };
        assert_eq!(topology.nodes[0].publishers, [publisher]);
        assert_eq!(topology.nodes[0].clients[0].period, Duration::from_millis(500));
        assert_eq!(topology.nodes[0].clients[0].service, "/ns/s");
        let subscriber = &topology.nodes[2].subscribers[0];
        assert_eq!((subscriber.topic.as_str(), subscriber.pass_by), ("/ns/t", PassBy::UniquePtr));
        let qos = Qos { history: History::KeepLast(1), reliability: Reliability::BestEffort };
        assert_eq!(subscriber.qos, qos);
        assert_eq!(topology.nodes[1].servers[0].qos.history, History::KeepAll);
    }

    /// A node `n` with this in it.
    fn node_with(rest: &str) -> Result<Topology, String> {
        parsed(&format!(r#"{{"nodes": [{{"node_name": "n", {rest}}}]}}"#))
    }

    #[test]
    fn mistakes_are_answered_with_where_they_are_and_what_to_do() {
        let publisher = |rest: &str| node_with(&format!(r#""publishers": [{{"topic_name": "t", {rest}}}]"#));
        let answers = [
            (parsed("[]"), "x.json: the topology: this is an array, not an object"),
            (parsed(r#"{"nodes": []}"#), "x.json: the topology.nodes: there are none; a topology has at least one"),
            (parsed(r#"{"nodes": [7]}"#), "x.json: nodes[0]: this is another number, not an object"),
            (parsed(r#"{"nodes": [{}]}"#), "x.json: nodes[0].node_name: it is missing; give it a name"),
            (
                parsed(r#"{"nodes": [{"node_name": "a\u0000"}]}"#),
                "x.json: nodes[0] (a\\0).node_name: there is a control character in it",
            ),
            (node_with(r#""number": 0"#), "x.json: nodes[0] (n).number: 0 is not between 1 and 10000"),
            (
                publisher(r#""msg_type": "stamped10b""#),
                "x.json: nodes[0] (n).publishers[0].freq_hz: it is missing; set freq_hz or period_ms",
            ),
            (
                publisher(r#""msg_type": "stamped10b", "freq_hz": 0"#),
                "x.json: nodes[0] (n).publishers[0].freq_hz: a period is between 0.01 ms (100 kHz) and a day",
            ),
            (
                publisher(r#""msg_type": "stamped_vector", "msg_size": -1, "freq_hz": 1"#),
                "x.json: nodes[0] (n).publishers[0].msg_size: a vector has 0 to 67108864 bytes",
            ),
            (
                publisher(r#""msg_type": "stamped10b", "freq_hz": "10""#),
                "x.json: nodes[0] (n).publishers[0].freq_hz: this is a string, not a number",
            ),
            (
                publisher(r#""msg_type": "stamped10b", "freq_hz": 1, "qos_history": "some""#),
                "x.json: nodes[0] (n).publishers[0].qos_history: `some` is none of system_default, keep_last, keep_all, unknown",
            ),
        ];
        for (answer, expected) in answers {
            assert_eq!(answer.unwrap_err(), expected);
        }
        let unknown = publisher(r#""msg_type": "stamped10b", "freq_hz": 1, "qos_dept": 1"#).unwrap_err();
        assert!(unknown.contains(".publishers[0].qos_dept: it is not known here; there are topic_name, "), "{unknown}");
        let no_type = publisher(r#""msg_type": "string", "freq_hz": 1"#).unwrap_err();
        assert!(no_type.contains(".msg_type: `string` is no message type; there are stamped<N>b"), "{no_type}");
        assert!(parsed("{").unwrap_err().starts_with("x.json is not JSON: EOF while parsing an object at line 1"));
    }

    #[test]
    fn a_topic_has_one_type() {
        let error = node_with(
            r#""publishers": [{"topic_name": "t", "msg_type": "stamped10b", "freq_hz": 1}],
               "subscribers": [{"topic_name": "t", "msg_type": "stamped_int64"}]"#,
        );
        let error = error.unwrap_err();
        assert!(error.contains("topic `/t` is Bytes(10) for n and Int64 for n; use one msg_type"), "{error}");
    }

    #[test]
    fn a_file_cannot_ask_for_more_nodes_than_there_may_be() {
        let many = r#"{"node_name": "n", "number": 9000}"#;
        let error = parsed(&format!(r#"{{"nodes": [{many}, {many}]}}"#)).unwrap_err();
        assert!(error.contains("there are more than 10000 nodes or 1000000 publishers"), "{error}");
        let servers = vec![r#"{"service_name": "s", "srv_type": "stamped10b"}"#; 101].join(", ");
        let error = node_with(&format!(r#""number": 10000, "servers": [{servers}]"#)).unwrap_err();
        assert!(error.contains("there are more than 10000 nodes or 1000000 publishers"), "{error}");
    }

    #[test]
    fn the_project_s_own_topologies_are_such() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies");
        let mut shapes = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let topology = read(&path).unwrap();
            let sum = |count: fn(&NodeSpec) -> usize| topology.nodes.iter().map(count).sum::<usize>();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            shapes.push((
                name,
                topology.nodes.len(),
                sum(|node| node.publishers.len()),
                sum(|node| node.subscribers.len()),
            ));
        }
        shapes.sort();
        let shapes: Vec<_> =
            shapes.iter().map(|(name, nodes, pubs, subs)| (name.as_str(), *nodes, *pubs, *subs)).collect();
        assert_eq!(
            shapes,
            [("house", 9, 13, 19), ("pub_sub_10b", 2, 1, 1), ("ridge", 20, 23, 35), ("services", 4, 1, 1)]
        );
    }

    /// Those of the framework, where they are at hand: in `$STEPSCOPE_SAMPLES` or beside the repository.
    #[test]
    fn topologies_of_the_framework_are_read() {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
        let samples = std::env::var_os("STEPSCOPE_SAMPLES").map_or(beside, PathBuf::from).join("topologies");
        for (name, nodes, publishers, subscribers) in [
            ("cedar", 9, 13, 19),
            ("white_mountain", 20, 23, 35),
            ("mont_blanc", 20, 23, 35),
            ("sierra_nevada", 10, 13, 17),
        ] {
            let path = samples.join(format!("{name}.json"));
            if !path.exists() {
                println!("skipped: topologies_of_the_framework_are_read: {name}: no such sample");
                continue;
            }
            let topology = read(&path).unwrap();
            let sum = |count: fn(&NodeSpec) -> usize| topology.nodes.iter().map(count).sum::<usize>();
            let shape = (topology.nodes.len(), sum(|node| node.publishers.len()), sum(|node| node.subscribers.len()));
            assert_eq!(shape, (nodes, publishers, subscribers), "{name}");
        }
    }
}

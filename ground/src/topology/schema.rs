//! The topologies of iRobot's [ROS 2 performance framework](https://github.com/irobot-ros/ros2-performance), as JSON.
//!
//! ```json
//! {"nodes": [
//!   {"node_name": "talker", "executor_id": 1,
//!    "publishers": [{"topic_name": "chatter", "msg_type": "stamped10b", "period_ms": 10, "msg_pass_by": "shared_ptr"}]},
//!   {"node_name": "listener", "executor_id": 2,
//!    "subscribers": [{"topic_name": "chatter", "msg_type": "stamped10b"}]}
//! ]}
//! ```
//!
//! Besides `publishers` and `subscribers` there are `clients` and `servers` (`service_name`, `srv_type`). Defaults are the
//! framework's: executor 0, `unique_ptr` for publishers and `shared_ptr` for subscribers. Histories keep ten messages, and
//! writers are reliable. Other keys, such as quality of service, are errors.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use super::message::{MessageSize, PassBy};

/// A topology.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Its nodes.
    pub nodes: Vec<NodeSpec>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name.
    #[serde(rename = "node_name")]
    pub name: String,
    /// Its executor; each has a thread.
    #[serde(default)]
    pub executor_id: i64,
    /// Its publishers.
    #[serde(default)]
    pub publishers: Vec<PublisherSpec>,
    /// Its subscriptions.
    #[serde(default)]
    pub subscribers: Vec<SubscriberSpec>,
    /// Its clients.
    #[serde(default)]
    pub clients: Vec<ClientSpec>,
    /// Its servers.
    #[serde(default)]
    pub servers: Vec<ServerSpec>,
}

/// A periodic publisher.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublisherSpec {
    /// Full name of its topic.
    #[serde(rename = "topic_name", deserialize_with = "full_name")]
    pub topic: String,
    msg_type: MessageSize,
    #[serde(default)]
    msg_size: usize,
    /// Its period.
    #[serde(rename = "period_ms", deserialize_with = "milliseconds")]
    pub period: Duration,
    /// How it passes messages.
    #[serde(rename = "msg_pass_by", default = "unique_ptr")]
    pub pass_by: PassBy,
}

impl PublisherSpec {
    /// Bytes of a message.
    pub fn size_bytes(&self) -> usize {
        self.msg_type.bytes(self.msg_size)
    }
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriberSpec {
    /// Full name of its topic.
    #[serde(rename = "topic_name", deserialize_with = "full_name")]
    pub topic: String,
    #[serde(rename = "msg_type")]
    _msg_type: MessageSize,
    /// How it receives messages.
    #[serde(rename = "msg_pass_by", default = "shared_ptr")]
    pub pass_by: PassBy,
}

/// A client that sends requests periodically.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Full name of the service.
    #[serde(rename = "service_name", deserialize_with = "full_name")]
    pub service: String,
    srv_type: MessageSize,
    /// Its period.
    #[serde(rename = "period_ms", deserialize_with = "milliseconds")]
    pub period: Duration,
}

impl ClientSpec {
    /// Bytes of a request and of its response.
    pub fn size_bytes(&self) -> usize {
        self.srv_type.bytes(0)
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Full name of the service.
    #[serde(rename = "service_name", deserialize_with = "full_name")]
    pub service: String,
    #[serde(rename = "srv_type")]
    _srv_type: MessageSize,
}

fn unique_ptr() -> PassBy {
    PassBy::UniquePtr
}

fn shared_ptr() -> PassBy {
    PassBy::SharedPtr
}

/// A name as ROS resolves it.
fn full_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(if name.starts_with('/') { name } else { format!("/{name}") })
}

/// A period between 10 us (100 kHz) and a day.
fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let period = Duration::try_from_secs_f64(1e-3 * f64::deserialize(deserializer)?).ok();
    let period = period.filter(|period| (Duration::from_micros(10)..=Duration::from_secs(86_400)).contains(period));
    period.ok_or_else(|| de::Error::custom("a period is between 0.01 ms (100 kHz) and a day"))
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
    /// The file is not a topology.
    #[error("{path}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where, and why.
        source: serde_json::Error,
    },
}

/// Reads a topology from a file.
///
/// # Errors
/// If it cannot be read, or is not a topology.
pub fn read(path: &Path) -> Result<Topology, SchemaError> {
    let text = std::fs::read(path).map_err(|source| SchemaError::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| SchemaError::Invalid { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Topology, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn the_bundled_topologies_have_the_sizes_of_the_study() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies");
        let counts = |name: &str| {
            let nodes = read(&folder.join(name)).unwrap().nodes;
            let sum = |count: fn(&NodeSpec) -> usize| nodes.iter().map(count).sum::<usize>();
            (nodes.len(), sum(|node| node.publishers.len()), sum(|node| node.subscribers.len()))
        };
        assert_eq!(counts("pub_sub_10b.json"), (2, 1, 1));
        assert_eq!(counts("ridge.json"), (20, 23, 35));
    }

    #[test]
    fn defaults_are_those_of_the_framework() {
        let topology = parse(
            r#"{"nodes": [{"node_name": "a",
                "publishers": [{"topic_name": "t", "msg_type": "stamped_vector", "msg_size": 30, "period_ms": 2.5}],
                "subscribers": [{"topic_name": "/t", "msg_type": "stamped10b", "msg_pass_by": "loaned_msg"}]}]}"#,
        );
        let node = topology.unwrap().nodes.remove(0);
        assert_eq!((&*node.name, node.executor_id), ("a", 0));
        let publisher = &node.publishers[0];
        assert_eq!((&*publisher.topic, publisher.size_bytes()), ("/t", 30));
        assert_eq!((publisher.period, publisher.pass_by), (Duration::from_micros(2_500), PassBy::UniquePtr));
        assert_eq!((&*node.subscribers[0].topic, node.subscribers[0].pass_by), ("/t", PassBy::UniquePtr));
    }

    #[test]
    fn errors_say_where_and_what_is_expected() {
        let error = |publisher: &str| {
            parse(&format!("{{\"nodes\": [{{\"node_name\": \"a\",\n\"publishers\": [{{{publisher}}}]}}]}}"))
                .unwrap_err()
                .to_string()
        };
        for (publisher, expected) in [
            (r#""topic_name": "t""#, "missing field `msg_type`"),
            (r#""topic_name": "t", "qos_depth": 1"#, "unknown field `qos_depth`, expected one of `topic_name`"),
            (r#""msg_type": "stamped10tb""#, "`stamped10tb` is not a message type; use for example stamped10b"),
            (r#""period_ms": 0"#, "a period is between 0.01 ms (100 kHz) and a day"),
            (r#""msg_pass_by": "value""#, "unknown variant `value`, expected one of"),
        ] {
            let error = error(publisher);
            assert!(error.contains(expected) && error.contains("at line 2 column"), "{error}");
        }
    }
}

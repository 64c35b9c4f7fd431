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
fn errors_name_their_position_and_what_to_do() {
    let publisher = |rest: &str| node_with(&format!(r#""publishers": [{{"topic_name": "t", {rest}}}]"#));
    let answers = [
        (parsed("[]"), "x.json: the topology: this is an array, not an object"),
        (parsed(r#"{"nodes": []}"#), "x.json: the topology.nodes: the list is empty; a topology has at least one node"),
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
            "x.json: nodes[0] (n).publishers[0].qos_history: `some` is not one of system_default, keep_last, keep_all, unknown",
        ),
    ];
    for (answer, expected) in answers {
        assert_eq!(answer.unwrap_err(), expected);
    }
    let unknown = publisher(r#""msg_type": "stamped10b", "freq_hz": 1, "qos_dept": 1"#).unwrap_err();
    assert!(unknown.contains(".publishers[0].qos_dept: unknown key; use topic_name, "), "{unknown}");
    let no_type = publisher(r#""msg_type": "string", "freq_hz": 1"#).unwrap_err();
    assert!(no_type.contains(".msg_type: unknown message type `string`; use stamped<N>b"), "{no_type}");
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
fn the_number_of_nodes_is_limited() {
    let many = r#"{"node_name": "n", "number": 9000}"#;
    let error = parsed(&format!(r#"{{"nodes": [{many}, {many}]}}"#)).unwrap_err();
    assert!(error.contains("there are more than 10000 nodes or 1000000 publishers"), "{error}");
    let servers = vec![r#"{"service_name": "s", "srv_type": "stamped10b"}"#; 101].join(", ");
    let error = node_with(&format!(r#""number": 10000, "servers": [{servers}]"#)).unwrap_err();
    assert!(error.contains("there are more than 10000 nodes or 1000000 publishers"), "{error}");
}

#[test]
fn the_bundled_topologies_are_valid() {
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
    let shapes: Vec<_> = shapes.iter().map(|(name, nodes, pubs, subs)| (name.as_str(), *nodes, *pubs, *subs)).collect();
    assert_eq!(shapes, [("house", 9, 13, 19), ("pub_sub_10b", 2, 1, 1), ("ridge", 20, 23, 35), ("services", 4, 1, 1)]);
}

/// The framework's topologies, if they are in `$STEPSCOPE_SAMPLES` or beside the repository.
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

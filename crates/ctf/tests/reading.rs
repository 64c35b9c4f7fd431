//! Traces that are drawn here: every kind of field, losses, damage.

mod drawn;

use drawn::{Drawn, metadata, packet};
use stepscope_ctf::{CtfError, Fields, Reader, Value};

fn shown(fields: Fields<'_>) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", value_shown(value))).collect();
    fields.join(" ")
}

fn value_shown(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => format!("{value:+}"),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Value::Enumeration(value) => {
            format!("{}:{}", value_shown(value.value()), value.labels().collect::<Vec<_>>().join("|"))
        }
        Value::Struct(fields) => format!("({})", shown(fields)),
        Value::Array(elements) => format!("[{}]", elements.iter().map(value_shown).collect::<Vec<_>>().join(",")),
        _ => "?".to_owned(),
    }
}

fn reader(streams: &[&[u8]]) -> Reader {
    Reader::of_bytes(metadata(false).as_bytes(), streams).unwrap()
}

fn times(reader: &mut Reader) -> Vec<i64> {
    let mut times = Vec::new();
    while let Some(event) = reader.next_event() {
        times.push(event.time_ns().unwrap() - 1_000_000_000_000_000_000);
    }
    times
}

#[test]
fn every_kind_of_field_is_read_in_both_byte_orders() {
    for big in [false, true] {
        let stream = packet(big, 0, 0, 5, &[Drawn::All(10), Drawn::Empty(20)]);
        let mut reader = Reader::of_bytes(metadata(big).as_bytes(), &[&stream]).unwrap();
        let event = reader.next_event().unwrap();
        assert_eq!((event.name(), event.time_ns()), ("p:all", Some(1_000_000_000_000_000_010)));
        assert_eq!(
            shown(event.fields()),
            "small=-2 rest=17 f=1.5 d=-0.25 name='main' _n_length=3 n=[7,8,9] s='text' none=() e=2:b v=(x=5 y='five') \
             pairs=[(x=1 y='one'),(x=2 y='two')] grid=[[1,2,3],[4,5,6]] net=4660"
        );
        assert_eq!(event.context("vpid").and_then(|pid| pid.as_i64()), Some(4711));
        assert_eq!(event.context("cpu_id").and_then(|cpu| cpu.as_u64()), Some(2));
        assert_eq!(event.field("s").unwrap().as_text().unwrap(), "text");
        assert!(event.field("missing").is_none());
        assert_eq!(event.class().log_level, Some(13));
        let event = reader.next_event().unwrap();
        assert_eq!((event.name(), event.cycles(), event.fields().len()), ("p:empty", Some(20), 0));
        assert_eq!(shown(event.header()), "id=31:extended v=(id=70 timestamp=20)");
        assert!(reader.next_event().is_none());
        assert!(reader.losses().is_empty(), "{:?}", reader.losses());
        assert_eq!(reader.traces()[0].schema.environment_text("hostname"), Some("box"));
    }
}

#[test]
fn streams_are_merged_by_time_and_short_times_wrap() {
    let wrap = 1 << 27;
    let first = packet(false, 0, 0, wrap - 10, &[Drawn::All(wrap - 5), Drawn::All(wrap + 7), Drawn::All(2 * wrap + 6)]);
    let second = [
        packet(false, 0, 0, 1, &[Drawn::Empty(3), Drawn::All(wrap - 6)]),
        packet(false, 1, 0, wrap + 1, &[Drawn::Empty(wrap + 5), Drawn::Empty(3 * wrap)]),
    ]
    .concat();
    let wrap = wrap as i64;
    let expected = [3, wrap - 6, wrap - 5, wrap + 5, wrap + 7, 2 * wrap + 6, 3 * wrap];
    assert_eq!(times(&mut reader(&[&first, &second])), expected);
}

#[test]
fn discarded_events_and_lost_packets_are_counted() {
    let event = |time| [Drawn::Empty(time)];
    let stream =
        [packet(false, 0, 2, 1, &event(1)), packet(false, 1, 5, 2, &event(2)), packet(false, 4, 5, 3, &event(3))]
            .concat();
    let mut reader = reader(&[&stream]);
    assert_eq!(times(&mut reader), [1, 2, 3]);
    assert_eq!((reader.losses().discarded_events, reader.losses().lost_packets), (5, 2));
    assert_eq!(reader.losses().damaged, 0);
}

#[test]
fn of_a_truncated_stream_the_whole_events_are_kept() {
    let one = packet(false, 0, 0, 1, &[Drawn::Empty(1), Drawn::Empty(2)]);
    let two = packet(false, 1, 0, 3, &[Drawn::Empty(3), Drawn::Empty(4)]);
    let stream = [one.clone(), two].concat();
    for length in 0..stream.len() {
        let mut reader = reader(&[&stream[..length]]);
        let read = times(&mut reader);
        assert_eq!(read, (1..=read.len() as i64).collect::<Vec<_>>());
        if length == one.len() {
            assert_eq!((read.len(), reader.losses().damaged), (2, 0));
        } else if length > one.len() {
            assert!(read.len() >= 2);
        }
    }
    // The second packet's padding may be missing.
    assert_eq!(times(&mut reader(&[&stream[..stream.len() - 20]])), [1, 2, 3, 4]);
}

#[test]
fn a_damaged_packet_costs_its_rest_alone() {
    let mut stream = packet(false, 0, 0, 1, &[Drawn::Empty(1), Drawn::Empty(2), Drawn::Empty(3)]);
    let length = 8 * 2 + 8 * 6 + 4;
    // The second event's id is not described.
    stream[length + 17 + 1] = 99;
    stream.extend(packet(false, 1, 0, 4, &[Drawn::Empty(4)]));
    let mut reader = reader(&[&stream]);
    assert_eq!(times(&mut reader), [1, 4]);
    assert_eq!((reader.losses().damaged, reader.losses().skipped_bytes), (1, 34));
    assert_eq!(
        reader.losses().first_damage.as_deref(),
        Some("stream 0, byte 85: an event has an id that the metadata do not describe")
    );
}

#[test]
fn an_event_longer_than_the_window_is_read() {
    let metadata = "trace { byte_order = le; }; typealias integer { size = 32; } := u32;
        event { name = \"e\"; fields := struct { u32 n; u32 a[n]; string s; }; };";
    let mut stream = Vec::new();
    for length in [3_u32, 1_000_000, 5] {
        stream.extend(length.to_le_bytes());
        (0..length).for_each(|at| stream.extend(at.to_le_bytes()));
        stream.extend(b"end\0");
    }
    let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&stream]).unwrap();
    let mut sums = Vec::new();
    while let Some(event) = reader.next_event() {
        let Some(Value::Array(elements)) = event.field("a") else { panic!("no array") };
        sums.push((elements.len(), elements.iter().filter_map(|element| element.as_u64()).sum::<u64>()));
        assert_eq!(event.field("s").unwrap().as_text().unwrap(), "end");
        assert_eq!(event.time_ns(), None);
    }
    assert_eq!(sums, [(3, 3), (1_000_000, 499_999_500_000), (5, 10)]);
    assert!(reader.losses().is_empty());
}

#[test]
fn hostile_lengths_allocate_nothing_and_end_the_packet() {
    let head = "trace { byte_order = le; }; typealias integer { size = 64; } := u64;";
    let huge = u64::MAX.to_le_bytes();
    for fields in
        ["u64 n; u64 a[n];", "u64 n; struct { } a[n];", "u64 n; struct { string s; } a[n];", "u64 n; u64 a[n][n];"]
    {
        let metadata = format!("{head} event {{ name = \"e\"; fields := struct {{ {fields} }}; }};");
        let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&huge]).unwrap();
        assert!(reader.next_event().is_none());
        assert_eq!(reader.losses().damaged, 1, "{fields}");
    }
    // Types that double with each level are refused.
    let mut types = "struct s0 { u64 a; u64 b; };".to_owned();
    for level in 1..60 {
        types += &format!("struct s{level} {{ struct s{} a; struct s{} b; }};", level - 1, level - 1);
    }
    let metadata = format!("{head} {types} event {{ name = \"e\"; fields := struct s59; }};");
    let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&huge]).unwrap();
    assert!(reader.next_event().is_none());
    assert!(reader.losses().first_damage.as_ref().unwrap().contains("parts"));
}

#[test]
fn of_truncated_metadata_the_whole_statements_are_kept() {
    let whole = metadata(false);
    let stream = packet(false, 0, 0, 5, &[Drawn::All(10), Drawn::Empty(20)]);
    let cut = whole.find("event { name = \"p:empty\"").unwrap() + 20;
    let mut reader = Reader::of_bytes(&whole.as_bytes()[..cut], &[&stream]).unwrap();
    assert_eq!(times(&mut reader), [10]);
    assert_eq!(reader.losses().damaged, 2);
    assert!(matches!(Reader::of_bytes(b"", &[]), Err(CtfError::Metadata(_))));
    assert!(matches!(Reader::of_bytes(b"\x1e{}", &[]), Err(CtfError::Version)));
}

#[test]
fn a_folder_without_a_trace_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = Reader::open(folder.path()).err().unwrap();
    assert!(error.to_string().contains("no CTF trace here"), "{error}");
}

#[test]
fn files_of_one_stream_are_joined_and_traces_below_a_folder_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    for (name, times) in [("kernel", [1, 4]), ("ust/uid/1000/64-bit", [2, 3])] {
        let trace = folder.path().join(name);
        std::fs::create_dir_all(trace.join("index")).unwrap();
        std::fs::write(trace.join("metadata"), metadata(false)).unwrap();
        for (number, time) in times.into_iter().enumerate() {
            let packet = packet(false, number as u64 * 2, 0, time, &[Drawn::Empty(time)]);
            std::fs::write(trace.join(format!("channel0_0_{number}")), packet).unwrap();
        }
        std::fs::write(trace.join("index/channel0_0_0.idx"), "no stream").unwrap();
    }
    let mut reader = Reader::open(folder.path()).unwrap();
    assert_eq!(times(&mut reader), [1, 2, 3, 4]);
    assert_eq!(reader.traces().len(), 2);
    // Numbers 0 and 2 in each stream.
    assert_eq!(reader.losses().lost_packets, 2);
}

use super::*;
use crate::import::{Source, import};

/// A message in CDR, from `w:7` (a number of four bytes), `b:1`, `f:2.5` and `s:text`.
fn cdr(drawn: &str, is_little: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let put = |bytes: &mut Vec<u8>, number: &[u8]| {
        bytes.resize(bytes.len().next_multiple_of(number.len()), 0);
        if is_little { bytes.extend(number) } else { bytes.extend(number.iter().rev()) }
    };
    for word in drawn.split_whitespace() {
        let (kind, value) = word.split_once(':').unwrap();
        match kind {
            "b" => put(&mut bytes, &[value.parse().unwrap()]),
            "w" => put(&mut bytes, &value.parse::<u32>().unwrap().to_le_bytes()),
            "f" => put(&mut bytes, &value.parse::<f64>().unwrap().to_le_bytes()),
            _ => {
                put(&mut bytes, &(value.len() as u32 + 1).to_le_bytes());
                bytes.extend(value.replace('_', " ").as_bytes());
                bytes.push(0);
            }
        }
    }
    [vec![0, u8::from(is_little), 0, 0], bytes].concat()
}

fn record(operation: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    [&[operation][..], &(content.len() as u64).to_le_bytes(), &content].concat()
}

fn sized(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text].concat()
}

/// A file of messages: time, type, bytes.
fn file(messages: &[(u64, &str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = [MAGIC, &record(1, &[&sized(b""), &sized(b"drawn")])].concat();
    for (id, (time, schema, data)) in messages.iter().enumerate() {
        let id = (id as u16 + 1).to_le_bytes();
        bytes.extend(record(3, &[&id, &sized(schema.as_bytes()), &sized(b"ros2msg"), &sized(b"")]));
        bytes.extend(record(4, &[&id, &id, &sized(b"/topic"), &sized(b"cdr"), &[0; 4]]));
        bytes.extend(record(5, &[&id, &[0; 4], &time.to_le_bytes(), &time.to_le_bytes(), data]));
    }
    bytes.extend(record(15, &[&[0; 4]]));
    [&bytes, MAGIC].concat()
}

const METRICS: &str = "statistics_msgs/msg/MetricsMessage";
const DIAGNOSTICS: &str = "diagnostic_msgs/msg/DiagnosticArray";
const AGE: &str = "s:listener s:message_age s:ms w:1 w:0 w:2 w:0 w:3 b:1 f:2.5 b:5 f:40 b:9 f:7";
const CPU: &str = "w:1 w:0 s: w:1 b:2 s:lidar s:hot s:0815 w:3 s:temperature s:71.5_C s:state s:warm s:delay s:3_ms";

fn shown(capture: &Capture) -> Vec<String> {
    let one = |counter: &Counter| {
        let process = &capture.processes[counter.process.unwrap().index()];
        format!("{} {}: {} {}", counter.time_ns, process.executable, counter.name, counter.value)
    };
    capture.counters.iter().map(one).collect()
}

fn read(bytes: &[u8]) -> Capture {
    import(Source::stream("bag.mcap", bytes), &ImportOptions::default()).unwrap()
}

#[test]
fn statistics_and_diagnostics_are_counters_of_what_is_measured() {
    for is_little in [true, false] {
        let capture = read(&file(&[
            (500, METRICS, cdr(AGE, is_little)),
            (400, DIAGNOSTICS, cdr(CPU, is_little)),
            (600, "sensor_msgs/msg/Image", vec![0; 100]),
        ]));
        assert_eq!(
            shown(&capture),
            [
                "400 lidar: level 2",
                "400 lidar: temperature, thousandths of C 71500",
                "400 lidar: delay_ns 3000000",
                "500 listener: message age average_ns 2500000",
                "500 listener: message age samples 40",
            ]
        );
        assert_eq!(capture.info.notes, ["1 of 3 messages have no readings: sensor_msgs/msg/Image (1)."]);
        assert_eq!((capture.info.start_ns, capture.info.end_ns), (Some(400), Some(600)));
    }
}

#[test]
fn a_message_that_is_not_of_its_type_is_counted_and_others_are_kept() {
    let long = cdr("s:a s:b s:ms w:1 w:0 w:2 w:0 w:4000000000", true);
    let capture = read(&file(&[(1, METRICS, long), (2, METRICS, vec![0, 9]), (3, METRICS, cdr(AGE, true))]));
    assert_eq!(capture.counters.len(), 2);
    assert_eq!(capture.info.losses.malformed_records, 2);
}

#[test]
fn a_file_without_an_end_keeps_its_messages_and_one_without_messages_is_an_error() {
    let whole = file(&[(1, METRICS, cdr(AGE, true)), (2, METRICS, cdr(AGE, true))]);
    let error = import(Source::stream("a", &whole[..20]), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("byte 8: a record is cut off"), "{error}");
    let end = whole.len() - MAGIC.len() - 13;
    let without_end = read(&whole[..end]);
    assert_eq!((without_end.counters.len(), without_end.info.notes.len()), (4, 1));
    assert!(without_end.info.notes[0].starts_with("The file has no end"), "{:?}", without_end.info.notes);
    assert_eq!(read(&whole).info.notes.len(), 0);
    let cut = read(&whole[..end - 3]);
    assert_eq!((cut.counters.len(), cut.info.losses.malformed_records), (2, 1));
}

#[test]
fn a_chunk_that_cannot_be_unpacked_is_counted_with_its_reason() {
    let numbers = [0; 16];
    let chunk = |size: u64, compression: &[u8]| {
        let length = 4_u64.to_le_bytes();
        record(6, &[&numbers, &size.to_le_bytes(), &[0; 4], &sized(compression), &length, b"junk"])
    };
    for (chunk, reason) in [
        (chunk(10, b"lz4"), "chunks are packed by lz4, and only zstd is read"),
        (chunk(10, b"zstd"), "a chunk cannot be unpacked"),
        (chunk(u64::MAX, b"zstd"), "a chunk claims to hold 18446744073709551615 bytes"),
        (chunk(4, b""), "in a chunk: a record is cut off"),
    ] {
        let rest = file(&[(1, METRICS, cdr(AGE, true))]).split_off(MAGIC.len());
        let capture = read(&[MAGIC, &chunk, &rest].concat());
        assert_eq!((capture.counters.len(), capture.info.losses.malformed_records), (2, 1), "{reason}");
        assert!(capture.info.notes[0].contains(reason), "{:?}", capture.info.notes);
    }
}

/// Written by the Python packages `mcap` and `mcap-ros2-support`, in zstd.
#[test]
fn a_file_of_another_writer_has_the_readings_that_were_written() {
    let capture = read(include_bytes!("../../../../../fuzz/seeds/mcap/rosbag2.mcap"));
    let shown = shown(&capture);
    assert_eq!(
        shown[..8],
        [
            "1700000000000000000 lidar: temperature: level 0",
            "1700000000000000000 lidar: temperature: Temperature, thousandths of C 40500",
            "1700000000000000000 planner: level 0",
            "1700000000000000000 planner: Frequency, thousandths 9500",
            "1700000000000000005 listener: message_period average_ns 100250000",
            "1700000000000000005 listener: message_period maximum_ns 120000000",
            "1700000000000000005 listener: message_period samples 10",
            "1700000001000000000 lidar: temperature: level 1",
        ]
    );
    assert_eq!((shown.len(), capture.processes.len()), (21, 3));
    assert_eq!(capture.info.notes, ["1 of 7 messages have no readings: std_msgs/msg/String (1)."]);
}

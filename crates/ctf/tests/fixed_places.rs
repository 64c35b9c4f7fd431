//! Fields that always have the same places, beside those that have not.

use stepscope_ctf::{Event, Reader, Value};

/// Events `fixed` (a struct, arrays, numbers of few bits) and `mixed`, which has a text before its numbers.
fn metadata(order: &str) -> String {
    format!(
        r#"/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
typealias integer {{ size = 64; align = 8; signed = true; }} := i64;
typealias integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} := letter;
trace {{ major = 1; minor = 8; byte_order = {order}; }};
clock {{ name = "monotonic"; freq = 1000000000; }};
stream {{
    event.header := struct {{ u32 id; integer {{ size = 64; align = 8; map = clock.monotonic.value; }} timestamp; }};
    event.context := struct {{ u32 _vtid; letter _procname[4]; }};
}};
event {{ name = "fixed"; id = 0; fields := struct {{
    i64 _timestamp; struct {{ u32 x; u32 y; }} _point; u32 _pair[2];
    integer {{ size = 4; align = 1; }} _low; integer {{ size = 4; align = 1; signed = true; }} _high;
    enum : integer {{ size = 8; align = 8; }} {{ one = 1, two = 2 }} _e;
    floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} _f;
}}; }};
event {{ name = "mixed"; id = 1; fields := struct {{ string _s; u32 _after; }}; }};
"#
    )
}

fn stream(is_big: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let u32_of = |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let u64_of = |number: u64| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    bytes.extend([&u32_of(0)[..], &u64_of(10), &u32_of(7), b"sim\0"].concat());
    bytes.extend([&u64_of(-5_i64 as u64)[..], &u32_of(1), &u32_of(2), &u32_of(3), &u32_of(4)].concat());
    // Little-endian numbers begin at the lowest bit, others at the highest.
    bytes.extend([if is_big { 0x5e } else { 0xe5 }, 2]);
    bytes.extend(u64_of(1.5_f64.to_bits()));
    bytes.extend([&u32_of(1)[..], &u64_of(20), &u32_of(8), b"four", b"text\0", &u32_of(9)].concat());
    bytes
}

fn number(value: Option<Value<'_>>) -> i64 {
    value.and_then(|value| value.as_i64()).expect("it is a number")
}

fn text<'a>(value: Option<Value<'a>>) -> &'a [u8] {
    match value {
        Some(Value::Text(text)) => text,
        _ => panic!("it is no text"),
    }
}

fn check_fixed(event: &Event<'_>) {
    assert_eq!((number(event.context("vtid")), text(event.context("procname"))), (7, &b"sim"[..]));
    let Some(Value::Struct(point)) = event.field("point") else { panic!("it is no struct") };
    assert_eq!((point.len(), number(point.get("x")), number(point.get("y"))), (2, 1, 2));
    let Some(Value::Array(pair)) = event.field("pair") else { panic!("it is no array") };
    assert_eq!(pair.iter().map(|value| number(Some(value))).collect::<Vec<_>>(), [3, 4]);
    assert_eq!((number(event.field("low")), number(event.field("high")), number(event.field("e"))), (5, -2, 2));
    assert!(matches!(event.field("e"), Some(Value::Enumeration(e)) if e.labels().eq(["two"])));
    assert!(matches!(event.field("f"), Some(Value::Float(1.5))));
    assert_eq!(event.fields().iter().map(|(name, _)| name).collect::<Vec<_>>().len(), event.fields().len());
}

#[test]
fn fields_are_read_by_name_and_by_place_in_both_byte_orders() {
    for is_big in [false, true] {
        let metadata = metadata(if is_big { "be" } else { "le" });
        let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&stream(is_big)]).unwrap();
        let schema = reader.traces()[0].schema.clone();
        let [high, after] = [schema.field(0, "high").unwrap(), schema.field(1, "after").unwrap()];
        let [tid, name] = [schema.context_field(0, "vtid").unwrap(), schema.context_field(0, "procname").unwrap()];
        assert!(schema.field(0, "after").is_none() && schema.context_field(9, "vtid").is_none());
        assert!(tid.is_of_stream() && !high.is_of_stream());
        let event = reader.next_event().unwrap();
        check_fixed(&event);
        assert_eq!(
            (number(event.value(high)), number(event.value(tid)), text(event.value(name))),
            (-2, 7, &b"sim"[..])
        );
        assert!(event.value(after).is_none(), "it is of another class");
        assert_eq!(event.stream_context_bytes().map(<[u8]>::len), Some(8));
        let event = reader.next_event().unwrap();
        assert_eq!((number(event.value(after)), number(event.field("after"))), (9, 9));
        assert_eq!((text(event.field("s")), text(event.context("procname"))), (&b"text"[..], &b"four"[..]));
        assert!(reader.next_event().is_none() && reader.losses().is_empty(), "{:?}", reader.losses());
    }
}

#[test]
fn a_field_named_timestamp_in_a_payload_is_not_the_time_of_the_event() {
    let mut reader = Reader::of_bytes(metadata("le").as_bytes(), &[&stream(false)]).unwrap();
    let event = reader.next_event().unwrap();
    assert_eq!((event.time_ns(), number(event.field("timestamp"))), (Some(10), -5));
    assert_eq!(reader.next_event().unwrap().time_ns(), Some(20));
}

#[test]
fn of_a_truncated_event_with_fixed_places_nothing_is_read() {
    let (metadata, stream) = (metadata("le"), stream(false));
    for length in 21..stream.len() {
        let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&stream[..length]]).unwrap();
        let mut count = 0;
        while let Some(event) = reader.next_event() {
            count += 1;
            assert_eq!(event.name() == "fixed", count == 1);
        }
        assert_eq!((count, reader.losses().damaged), (u32::from(length >= 54), u64::from(length != 54)), "{length}");
    }
}

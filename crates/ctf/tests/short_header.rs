//! Events whose header is LTTng's compact or large one, short or extended, with fields in fixed places or not.

use stepscope_ctf::{Fields, Reader};

/// LTTng's two kinds of headers (`compact`, `large`), and events with ids on both sides of what the short form can say.
fn metadata(header: &str) -> String {
    format!(
        r#"/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
typealias integer {{ size = 16; align = 8; signed = false; }} := u16;
typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
typealias integer {{ size = 64; align = 8; signed = false; }} := u64;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; }}; }};
clock {{ name = "monotonic"; freq = 1000000000; }};
typealias integer {{ size = 27; align = 1; signed = false; map = clock.monotonic.value; }} := u27_clock;
typealias integer {{ size = 32; align = 8; signed = false; map = clock.monotonic.value; }} := u32_clock;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := u64_clock;
struct compact {{
    enum : integer {{ size = 5; align = 1; signed = false; }} {{ compact = 0 ... 30, extended = 31 }} id;
    variant <id> {{
        struct {{ u27_clock timestamp; }} compact;
        struct {{ u32 id; u64_clock timestamp; }} extended;
    }} v;
}} align(8);
struct large {{
    enum : u16 {{ compact = 0 ... 65534, extended = 65535 }} id;
    variant <id> {{
        struct {{ u32_clock timestamp; }} compact;
        struct {{ u32 id; u64_clock timestamp; }} extended;
    }} v;
}} align(8);
stream {{ packet.context := struct {{ u16 cpu_id; }}; event.header := struct {header}; event.context := struct {{ u32 _vtid; }}; }};
event {{ name = "fixed"; id = 1; fields := struct {{ u8 _a; u16 _b; }}; }};
event {{ name = "empty"; id = 2; }};
event {{ name = "mixed"; id = 3; fields := struct {{ string _a; u16 _b; }}; }};
event {{ name = "late"; id = 70000; fields := struct {{ u8 _a; u16 _b; }}; }};
"#
    )
}

struct Writer {
    is_large: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn event(&mut self, id: u32, time: u64, is_extended: bool, fields: &[u8]) {
        match (self.is_large, is_extended) {
            (false, false) => self.bytes.extend((id | (time as u32) << 5).to_le_bytes()),
            (false, true) => self.bytes.push(31),
            (true, false) => {
                self.bytes.extend((id as u16).to_le_bytes());
                self.bytes.extend((time as u32).to_le_bytes());
            }
            (true, true) => self.bytes.extend([0xff; 2]),
        }
        if is_extended {
            self.bytes.extend(id.to_le_bytes());
            self.bytes.extend(time.to_le_bytes());
        }
        self.bytes.extend(time.to_le_bytes()[..4].iter().chain(fields));
    }
}

/// The events in the order of time, each with `name time tid a b`.
const EVENTS: [&str; 8] = [
    "fixed 134217700 134217700 1 0x203",
    "empty 134217720 134217720 - -",
    // The clock's 27 bits wrap.
    "mixed 134217730 134217730 3 0x405",
    "fixed 134217740 134217740 5 0x607",
    "late 5000000000 705032704 7 0x809",
    "fixed 5000000001 705032705 8 0x90a",
    "empty 5000000002 705032706 - -",
    "fixed 5000000003 705032707 9 0xb0a",
];

fn stream(is_large: bool) -> Vec<u8> {
    let mut writer = Writer { is_large, bytes: 0xc1fc_1fc1_u32.to_le_bytes().to_vec() };
    writer.bytes.extend([3, 0]);
    writer.event(1, 134_217_700, false, &[1, 3, 2]);
    writer.event(2, 134_217_720, false, &[]);
    writer.event(3, 134_217_730, false, &[b'3', 0, 5, 4]);
    writer.event(1, 134_217_740, false, &[5, 7, 6]);
    writer.event(70_000, 5_000_000_000, true, &[7, 9, 8]);
    writer.event(1, 5_000_000_001, false, &[8, 10, 9]);
    writer.event(2, 5_000_000_002, false, &[]);
    writer.event(1, 5_000_000_003, true, &[9, 10, 11]);
    writer.bytes
}

fn shown(reader: &mut Reader) -> Vec<String> {
    let mut lines = Vec::new();
    let schema = reader.traces()[0].schema.clone();
    while let Some(event) = reader.next_event() {
        let number = |fields: Fields<'_>, name: &str| {
            let value = fields.get(name)?;
            value.as_u64().or_else(|| value.as_text()?.parse().ok())
        };
        let show = |number: Option<u64>, is_hex: bool| match number {
            Some(number) if is_hex => format!("{number:#x}"),
            Some(number) => number.to_string(),
            None => "-".to_owned(),
        };
        let [tid, a, b] =
            [number(event.stream_context(), "vtid"), number(event.fields(), "a"), number(event.fields(), "b")];
        let place = |name| schema.field(event.class_index(), name).and_then(|place| event.number(place));
        assert_eq!(place("b"), b);
        assert_eq!(schema.context_field(event.class_index(), "vtid").and_then(|place| event.number(place)), tid);
        let cpu = schema.context_field(event.class_index(), "cpu_id").and_then(|place| event.number(place));
        assert_eq!((cpu, number(event.packet_context(), "cpu_id")), (Some(3), Some(3)));
        // The header is decoded again when it is asked for.
        let header = event.header().get("v").expect("it has a variant");
        let stepscope_ctf::Value::Struct(header) = header else { panic!("it is no struct") };
        let time = event.time_ns().unwrap();
        assert_eq!(number(header, "timestamp").unwrap() & 0x7ff_ffff, time as u64 & 0x7ff_ffff);
        lines.push(format!("{} {time} {} {} {}", event.name(), show(tid, false), show(a, false), show(b, true)));
    }
    lines
}

#[test]
fn short_and_extended_headers_are_read_in_any_mixture() {
    for (is_large, header) in [(false, "compact"), (true, "large")] {
        let metadata = metadata(header);
        let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&stream(is_large)]).unwrap();
        assert_eq!(shown(&mut reader), EVENTS, "{header}");
        assert!(reader.losses().is_empty(), "{:?}", reader.losses());
    }
}

#[test]
fn of_a_stream_that_is_cut_anywhere_whole_events_are_read() {
    for (is_large, header) in [(false, "compact"), (true, "large")] {
        let (metadata, stream) = (metadata(header), stream(is_large));
        for length in 7..stream.len() {
            let mut reader = Reader::of_bytes(metadata.as_bytes(), &[&stream[..length]]).unwrap();
            let lines = shown(&mut reader);
            assert_eq!(lines, EVENTS[..lines.len()], "{header}, {length} bytes");
            assert!(lines.len() < EVENTS.len());
        }
    }
}

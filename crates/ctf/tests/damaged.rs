//! Traces damaged at random: nothing panics, memory stays bounded, and all fields can be looked at.

mod drawn;

use drawn::{Drawn, metadata, packet};
use stepscope_ctf::{Fields, Reader, Value};

/// A generator of numbers (xorshift), so that the crate needs none.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => _ = bytes.splice(at..at, [self.below(256) as u8; 3]),
                2 => _ = bytes.drain(at..(at + 9).min(bytes.len())),
                _ if bytes.is_empty() => {}
                _ => bytes[at] = self.below(256) as u8,
            }
        }
    }
}

fn look_at(fields: Fields<'_>) -> usize {
    fields.iter().map(|(name, value)| name.len() + look_at_value(value)).sum()
}

fn look_at_value(value: Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Enumeration(value) => value.labels().count(),
        Value::Struct(fields) => look_at(fields),
        Value::Array(elements) => elements.iter().map(look_at_value).sum(),
        _ => 1,
    }
}

fn read_all(metadata: &[u8], streams: &[&[u8]]) {
    let Ok(mut reader) = Reader::of_bytes(metadata, streams) else { return };
    let schema = reader.traces()[0].schema.clone();
    let mut events = 0_u64;
    while let Some(event) = reader.next_event() {
        for fields in [event.packet_context(), event.header(), event.stream_context(), event.fields()] {
            look_at(fields);
        }
        for (name, _) in event.fields().iter() {
            let place = schema.field(event.class_index(), name).expect("it is in the metadata");
            assert!(event.value(place).is_some() && event.field(name).is_some(), "{name}");
        }
        events += 1;
    }
    // An event has a bit at least.
    assert!(events <= 8 * reader.bytes());
}

#[test]
fn damaged_traces_are_read_without_a_panic() {
    for big in [false, true] {
        let whole = metadata(big).into_bytes();
        let events = [Drawn::All(10), Drawn::Empty(20), Drawn::All(30)];
        let stream = [packet(big, 0, 0, 5, &events), packet(big, 1, 3, 40, &events)].concat();
        let mut random = Random(0x5eed);
        for round in 0..4_000 {
            let (mut metadata, mut stream) = (whole.clone(), stream.clone());
            if round % 3 > 0 {
                random.damage(&mut stream);
            }
            if round % 3 < 2 {
                random.damage(&mut metadata);
            }
            read_all(&metadata, &[&stream, &stream]);
        }
    }
}

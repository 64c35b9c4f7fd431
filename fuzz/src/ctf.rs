//! CTF traces in memory.

use stepscope_ctf::{Fields, Reader, Value};

/// Reads a trace and looks at all its fields: the metadata, a line `---`, and the bytes of a stream.
pub fn read(data: &[u8]) {
    const SEPARATOR: &[u8] = b"\n---\n";
    let at = data.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let (metadata, stream) = at.map_or((data, &[][..]), |at| (&data[..at], &data[at + SEPARATOR.len()..]));
    let Ok(mut reader) = Reader::of_bytes(metadata, &[stream, stream]) else { return };
    let schema = reader.traces()[0].schema.clone();
    while let Some(event) = reader.next_event() {
        for fields in [event.packet_context(), event.header(), event.stream_context(), event.fields()] {
            look_at(fields);
        }
        for (name, _) in event.fields().iter() {
            let place = schema.field(event.class_index(), name).expect("it is in the metadata");
            assert!(event.value(place).is_some(), "{name}");
        }
    }
}

fn look_at(fields: Fields<'_>) {
    fields.iter().for_each(|(_, value)| look_at_value(value));
}

fn look_at_value(value: Value<'_>) {
    match value {
        Value::Enumeration(value) => _ = value.labels().count(),
        Value::Struct(fields) => look_at(fields),
        Value::Array(elements) => elements.iter().for_each(look_at_value),
        _ => {}
    }
}

//! The part of Protocol Buffers' encoding that pprof needs (<https://protobuf.dev/programming-guides/encoding/>).
//!
//! A generated encoder holds the whole profile in memory as one message; this one writes fields one by one.

/// A message under construction: its encoded fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Message(Vec<u8>);

/// Wire type of integers.
const VARINT: u64 = 0;
/// Wire type of strings, messages and packed integers.
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    /// The encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds an integer, unless it is 0, the default.
    pub fn number(mut self, field: u64, value: u64) -> Self {
        if value != 0 {
            self.varint(field << 3 | VARINT);
            self.varint(value);
        }
        self
    }

    /// Adds a boolean.
    pub fn flag(self, field: u64, value: bool) -> Self {
        self.number(field, u64::from(value))
    }

    /// Adds bytes or text, even if empty.
    pub fn bytes_field(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a message.
    pub fn message(self, field: u64, value: &Message) -> Self {
        self.bytes_field(field, &value.0)
    }

    /// Adds a packed list of integers, zeros included.
    pub fn numbers(self, field: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.message(field, &packed)
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_specification_shows() {
        // The examples of the specification.
        assert_eq!(Message::default().number(1, 150).bytes(), b"\x08\x96\x01");
        assert_eq!(Message::default().bytes_field(2, b"testing").bytes(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), b"\x1a\x03\x08\x96\x01");
        assert_eq!(Message::default().numbers(6, [3, 270, 86942]).bytes(), b"\x32\x06\x03\x8e\x02\x9e\xa7\x05");
        assert_eq!(Message::default().number(1, u64::MAX).bytes(), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        assert_eq!(Message::default().number(1, 0).flag(2, false), Message::default());
    }
}

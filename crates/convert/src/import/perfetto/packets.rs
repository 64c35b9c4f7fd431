//! The packets of a trace: a message of repeated field 1, read one packet at a time.

/// The tag of a packet in a trace.
const PACKET: u64 = 1 << 3 | DELIMITED;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// Fields of packets by which a trace is recognised, with their wire types.
const KNOWN: &[(u64, u64)] = &[
    (1, DELIMITED),
    (2, DELIMITED),
    (6, DELIMITED),
    (8, VARINT),
    (10, VARINT),
    (11, DELIMITED),
    (12, DELIMITED),
    (13, VARINT),
    (41, VARINT),
    (42, VARINT),
    (45, DELIMITED),
    (58, VARINT),
    (59, DELIMITED),
    (60, DELIMITED),
];

/// Number of packets by which a trace is recognised.
const PACKETS_OF_HEAD: usize = 8;

/// Packets of a trace, or where it is damaged.
pub struct Packets<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Why the packets end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    pub offset: usize,
    pub what: &'static str,
    pub skipped_bytes: usize,
}

impl<'a> Packets<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    /// Bytes so far.
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn step(&mut self) -> Result<Option<&'a [u8]>, &'static str> {
        let before = self.rest.len();
        let tag = varint(&mut self.rest).ok_or("it ends within a packet's tag")?;
        let content = skip(&mut self.rest, tag & 7).ok_or("it ends within a packet")?;
        self.offset += before - self.rest.len();
        Ok((tag == PACKET).then_some(content))
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<&'a [u8], Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (left, offset) = (self.rest.len(), self.offset);
            match self.step() {
                Ok(Some(packet)) => return Some(Ok(packet)),
                Ok(None) => {}
                Err(what) => {
                    self.rest = &[];
                    return Some(Err(Damage { offset, what, skipped_bytes: left }));
                }
            }
        }
        None
    }
}

/// Whether these are the first bytes of a trace: the first packets have known fields of the right types, and a time or a sequence.
pub fn is_trace(head: &[u8]) -> bool {
    let (mut rest, mut packets, mut is_known) = (head, 0, false);
    while packets < PACKETS_OF_HEAD && !rest.is_empty() {
        let is_packet = varint(&mut rest) == Some(PACKET);
        let Some(length) = varint(&mut rest).filter(|_| is_packet) else { break };
        // The last packet may go on after the head.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let whole = length <= rest.len();
        let (packet, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        match kind(packet) {
            Kind::Packet => is_known = true,
            Kind::Unknown => {}
            Kind::Other if !whole => {}
            Kind::Other => return false,
        }
        packets += 1;
    }
    is_known
}

enum Kind {
    /// A packet with a time or a sequence.
    Packet,
    /// All known fields are right.
    Unknown,
    Other,
}

fn kind(mut packet: &[u8]) -> Kind {
    let mut kind = Kind::Unknown;
    while !packet.is_empty() {
        let Some(tag) = varint(&mut packet) else { return Kind::Other };
        let (field, wire) = (tag >> 3, tag & 7);
        if KNOWN.iter().any(|&(known, of)| known == field && of != wire) || skip(&mut packet, wire).is_none() {
            return Kind::Other;
        }
        if matches!(field, 8 | 10) {
            kind = Kind::Packet;
        }
    }
    kind
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for at in 0..10 {
        let byte = *bytes.get(at)?;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// Goes past a field, and gives the content of a delimited one.
fn skip<'a>(bytes: &mut &'a [u8], wire: u64) -> Option<&'a [u8]> {
    let length = match wire {
        VARINT => {
            varint(bytes)?;
            0
        }
        FIXED_64 => 8,
        DELIMITED => usize::try_from(varint(bytes)?).ok()?,
        FIXED_32 => 4,
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_distinguished_from_other_messages() {
        assert!(is_trace(&[0x0a, 4, 0x40, 5, 0x50, 1]));
        // A profile of pprof: field 1 of its first message is a number.
        assert!(!is_trace(&[0x0a, 4, 0x08, 1, 0x10, 2, 0x12, 2, 0x40, 1]));
        assert!(!is_trace(b"\nmain;f 1\n"));
        assert!(!is_trace(b""));
    }

    #[test]
    fn a_truncated_packet_ends_the_trace_with_its_place() {
        let mut packets = Packets::new(&[0x0a, 2, 0x40, 5, 0x10, 7, 0x0a, 9, 1]);
        assert_eq!(packets.next(), Some(Ok(&[0x40, 5][..])));
        let damage = Damage { offset: 6, what: "it ends within a packet", skipped_bytes: 3 };
        assert_eq!(packets.next(), Some(Err(damage)));
        assert_eq!(packets.next(), None);
    }
}

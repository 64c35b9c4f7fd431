//! The metadata stream: text, or text in packets (CTF 1.8.3, section 7.1).

use crate::error::CtfError;
use crate::number::ByteOrder;

const MAGIC: u32 = 0x75d1_1d57;
/// Bytes of a metadata packet's header.
const HEADER: usize = 37;

/// Whether a file with these first bytes has the metadata of a trace. Those of CTF 2 are [refused](CtfError::Version) when they are read.
pub fn is_metadata(head: &[u8]) -> bool {
    packet_order(head).is_some() || head.trim_ascii_start().starts_with(b"/* CTF 1.8") || is_version_2(head)
}

/// JSON texts behind record separators (CTF 2, section 3).
fn is_version_2(head: &[u8]) -> bool {
    head.strip_prefix(&[0x1e]).is_some_and(|text| text.trim_ascii_start().starts_with(b"{"))
}

fn packet_order(bytes: &[u8]) -> Option<ByteOrder> {
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC, _) => Some(ByteOrder::Little),
        (_, MAGIC) => Some(ByteOrder::Big),
        _ => None,
    }
}

/// The text of metadata, and how many bytes were left out because their packet is damaged.
pub(crate) fn text(bytes: &[u8]) -> Result<(String, u64), CtfError> {
    if is_version_2(bytes) {
        return Err(CtfError::Version);
    }
    let Some(order) = packet_order(bytes) else {
        return Ok((String::from_utf8_lossy(bytes).into_owned(), 0));
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while rest.len() >= HEADER && packet_order(rest) == Some(order) {
        let number = |at: usize| {
            let field = [rest[at], rest[at + 1], rest[at + 2], rest[at + 3]];
            if order == ByteOrder::Little { u32::from_le_bytes(field) } else { u32::from_be_bytes(field) }
        };
        let (content, packet) = (number(24) as usize / 8, number(28) as usize / 8);
        let is_plain = rest[32..35] == [0; 3];
        if !is_plain {
            return Err(CtfError::PackedMetadata);
        }
        if content < HEADER || packet < content {
            break;
        }
        text.extend_from_slice(&rest[HEADER..content.min(rest.len())]);
        rest = &rest[packet.min(rest.len())..];
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), rest.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str, order: ByteOrder) -> Vec<u8> {
        let number = |number: u32| match order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let content = (HEADER + text.len()) as u32 * 8;
        let mut packet = number(MAGIC).to_vec();
        packet.extend([7; 16]);
        packet.extend(number(0));
        packet.extend(number(content));
        packet.extend(number(content + 24));
        packet.extend([0, 0, 0, 1, 8]);
        packet.extend(text.as_bytes());
        packet.extend([0; 3]);
        packet
    }

    #[test]
    fn packets_of_both_byte_orders_are_joined() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = [packet("/* CTF 1.8 */ trace ", order), packet("{};", order)].concat();
            assert!(is_metadata(&bytes));
            assert_eq!(text(&bytes).unwrap(), ("/* CTF 1.8 */ trace {};".to_owned(), 0));
        }
    }

    #[test]
    fn of_damaged_packets_the_whole_ones_are_kept() {
        let bytes = [packet("trace {};", ByteOrder::Little), vec![1; 50]].concat();
        assert_eq!(text(&bytes).unwrap(), ("trace {};".to_owned(), 50));
        let truncated = &packet("trace {};", ByteOrder::Little)[..HEADER + 5];
        assert_eq!(text(truncated).unwrap(), ("trace".to_owned(), 0));
    }

    #[test]
    fn other_versions_are_named() {
        assert!(matches!(text(b"\x1e{\"type\": \"preamble\"}"), Err(CtfError::Version)));
    }
}

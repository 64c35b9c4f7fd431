//! Requests and replies as bytes. Numbers are big-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 7 | [`MAGIC`]; the last digit is the version |
//! | 8 | 1 request, 2 reply |
//! | 9 to 15 | 0 |
//! | 16 to 31 | random number of the request |
//! | 32 to 47 | reply: when the request was received, and when the reply was sent |
//! | 48 to 71 | reply: id of the peer's boot, and offset of its time namespace |
//! | 72 to 127 | reply: length and text of the peer's host name |

use stepscope_model::ClockId;

/// The first bytes.
const MAGIC: &[u8; 8] = b"STEPCLK1";

/// Bytes of a request and of a reply.
pub(super) const BYTES: usize = 128;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const HOST_AT: usize = 73;

/// The random number of a request.
pub(super) type Nonce = [u8; 16];

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub nonce: Nonce,
    pub received_ns: u64,
    pub sent_ns: u64,
    pub clock: ClockId,
}

fn head(kind: u8, nonce: Nonce) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8] = kind;
    bytes[16..32].copy_from_slice(&nonce);
    bytes
}

/// A request.
pub(super) fn request(nonce: Nonce) -> [u8; BYTES] {
    head(REQUEST, nonce)
}

/// The random number of a request. `None` if it is none.
pub(super) fn read_request(bytes: &[u8]) -> Option<Nonce> {
    is_of_kind(bytes, REQUEST).then(|| nonce(bytes)).flatten()
}

/// A reply. `sent_ns` is read last.
pub(super) fn reply(nonce: Nonce, received_ns: u64, clock: &ClockId, sent_ns: impl FnOnce() -> u64) -> [u8; BYTES] {
    let mut bytes = head(REPLY, nonce);
    bytes[32..40].copy_from_slice(&received_ns.to_be_bytes());
    let digits: Vec<u8> =
        clock.boot_id.bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|d| d as u8).collect();
    for (at, pair) in digits.chunks_exact(2).take(16).enumerate() {
        bytes[48 + at] = pair[0] << 4 | pair[1];
    }
    bytes[64..72].copy_from_slice(&clock.namespace_offset_ns.to_be_bytes());
    let mut length = clock.host.len().min(BYTES - HOST_AT);
    while !clock.host.is_char_boundary(length) {
        length -= 1;
    }
    bytes[72] = length as u8;
    bytes[HOST_AT..][..length].copy_from_slice(&clock.host.as_bytes()[..length]);
    bytes[40..48].copy_from_slice(&sent_ns().to_be_bytes());
    bytes
}

/// What a reply says. `None` if it is none.
pub(super) fn read_reply(bytes: &[u8]) -> Option<Reply> {
    if !is_of_kind(bytes, REPLY) {
        return None;
    }
    let number = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let host = bytes.get(HOST_AT..HOST_AT + usize::from(bytes[72]))?;
    let host = std::str::from_utf8(host).ok().filter(|host| !host.contains(char::is_control))?;
    let hex: String = bytes[48..64].iter().map(|byte| format!("{byte:02x}")).collect();
    let boot_id = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    Some(Reply {
        nonce: nonce(bytes)?,
        received_ns: number(32)?,
        sent_ns: number(40)?,
        clock: ClockId { host: host.to_owned(), boot_id, namespace_offset_ns: number(64)? as i64 },
    })
}

fn is_of_kind(bytes: &[u8], kind: u8) -> bool {
    bytes.len() == BYTES && bytes.starts_with(MAGIC) && bytes[8] == kind
}

fn nonce(bytes: &[u8]) -> Option<Nonce> {
    bytes.get(16..32)?.try_into().ok()
}

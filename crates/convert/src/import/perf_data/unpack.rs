//! The records inside compressed ones: one zstd stream over all of them (`perf record -z`).

use std::ops::Range;

use linux_perf_event_reader::Endianness;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::record::{self, HEADER_BYTES, Kind, Record};
use crate::import::cursor::Cursor;

/// perf compresses what lies in a ring, in pieces of less than 64 KiB; no piece comes near this.
const MAX_UNPACKED_BYTES: usize = 64 << 20;

const STEP_BYTES: usize = 128 << 10;

/// The state of the stream.
pub(super) struct Unpacking {
    decoder: Decoder<'static>,
    /// The beginning of a record that goes on in the next piece.
    rest: Vec<u8>,
}

/// A record inside a compressed one.
pub(super) struct Packed {
    pub kind: Kind,
    pub misc: u16,
    /// Where its body is in the unpacked bytes.
    pub body: Range<usize>,
}

impl Unpacking {
    /// A stream at its beginning.
    ///
    /// # Errors
    /// zstd's, in words.
    pub fn new() -> Result<Self, String> {
        Ok(Self { decoder: Decoder::new().map_err(unpackable)?, rest: Vec::new() })
    }

    /// The bytes inside the next compressed record, and the kernel's records in them.
    ///
    /// # Errors
    /// Why it cannot be unpacked, in words.
    pub fn unpack(&mut self, record: &Record<'_>, endian: Endianness) -> Result<(Vec<u8>, Vec<Packed>), String> {
        let packed = match record.kind {
            Kind::COMPRESSED => Some(record.body),
            _ => {
                let mut body = Cursor::new(record.body, endian);
                body.u64().and_then(|size| body.take(usize::try_from(size).ok()?))
            }
        };
        let packed = packed.ok_or("a compressed record is longer than it can be")?;
        let mut bytes = std::mem::take(&mut self.rest);
        self.decode(packed, &mut bytes)?;
        let (mut found, mut end) = (Vec::new(), 0);
        for record in record::scan(&bytes, 0..bytes.len(), endian).map_while(Result::ok) {
            end = record.end;
            if record.kind.is_of_kernel() {
                let start = record.offset + HEADER_BYTES;
                found.push(Packed { kind: record.kind, misc: record.misc, body: start..start + record.body.len() });
            }
        }
        self.rest = bytes[end..].to_vec();
        if self.rest.len() > usize::from(u16::MAX) {
            return Err("a record inside a compressed one has an impossible size".to_owned());
        }
        Ok((bytes, found))
    }

    fn decode(&mut self, packed: &[u8], into: &mut Vec<u8>) -> Result<(), String> {
        let mut input = InBuffer::around(packed);
        loop {
            let start = into.len();
            if start > MAX_UNPACKED_BYTES {
                return Err("a compressed record unpacks to more than a ring can hold".to_owned());
            }
            into.resize(start + STEP_BYTES, 0);
            let mut output = OutBuffer::around_pos(into, start);
            let outcome = self.decoder.run(&mut input, &mut output);
            let (end, room) = (output.pos(), start + STEP_BYTES);
            into.truncate(end);
            outcome.map_err(unpackable)?;
            // Done when everything was read and the decoder had room to spare.
            if input.pos() == packed.len() && end < room {
                return Ok(());
            }
        }
    }
}

fn unpackable(error: std::io::Error) -> String {
    format!("a compressed record cannot be unpacked ({error})")
}

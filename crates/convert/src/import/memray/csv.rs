//! Rows of `memray transform csv`.

use super::super::text::{number, text};
use super::super::{ImportError, Input, Malformed, each_line};
use super::{Heap, Sum};

/// The first line.
pub(super) const HEADER: &[u8] = b"allocator,num_allocations,size,tid,thread_name,stack_trace";

pub(super) fn read(input: Input<'_>, heap: &mut Heap) -> Result<Malformed, ImportError> {
    each_line(input, |line, malformed| {
        if line.number == 1 || line.bytes.is_empty() {
            return;
        }
        match fields(line.bytes) {
            _ if !line.ended => malformed.add(line.number, "the data end within it"),
            Some(fields) => {
                if row(&fields, heap).is_none() {
                    malformed.add(line.number, "its numbers are not integers");
                }
            }
            None => malformed.add(line.number, "it has not 6 columns"),
        }
    })
}

/// The columns of a line. Quotes enclose columns with commas; quotes within are doubled.
fn fields(line: &[u8]) -> Option<[Vec<u8>; 6]> {
    let mut fields: [Vec<u8>; 6] = Default::default();
    let (mut field, mut is_quoted, mut bytes) = (0, false, line.iter().copied().peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if is_quoted && bytes.peek() == Some(&b'"') => fields[field].extend(bytes.next()),
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                field += 1;
                fields.get(field)?;
            }
            _ => fields[field].push(byte),
        }
    }
    (field == 5 && !is_quoted).then_some(fields)
}

fn row([_, calls, bytes, tid, name, stack]: &[Vec<u8>; 6], heap: &mut Heap) -> Option<()> {
    let sum = Sum { calls: number(calls)?, bytes: number(bytes)? };
    // memray's thread names are ids, unless the program names its threads.
    let name = if name.is_empty() { text(tid) } else { text(name) };
    let thread = heap.thread(&name);
    let frames: Vec<_> = stack.split(|&byte| byte == b'|').filter(|frame| !frame.is_empty()).collect();
    let frames: Vec<_> = frames.into_iter().rev().map(|frame| text(frame).into_owned()).collect();
    let frames: Vec<_> = frames.iter().map(|frame| self::frame(frame, heap)).collect();
    let stack = heap.stack(frames);
    heap.add(Some(thread), stack, sum);
    Some(())
}

/// `FUNCTION;FILE;LINE`
fn frame(frame: &str, heap: &mut Heap) -> stepscope_model::FrameId {
    let mut parts = frame.rsplitn(3, ';');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(line), Some(file), Some(function)) => heap.frame(function, Some(file), line.parse().ok()),
        _ => heap.frame(frame, None, None),
    }
}

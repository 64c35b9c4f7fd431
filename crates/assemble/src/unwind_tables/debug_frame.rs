//! `.debug_frame` in the form of `.eh_frame`.
//!
//! Code that is compiled without `.eh_frame` often has the same tables for debuggers. Both sections describe functions by the
//! same instructions, but differ in their headers: DWARF 5, 6.4.1; Linux Standard Base, 10.6.1.

use std::collections::HashMap;

/// Identifies a common entry in `.debug_frame`.
const COMMON: u32 = u32::MAX;
/// An address of eight bytes, in the encoding byte of `.eh_frame`.
const ABSOLUTE_ADDRESS: u8 = 0;

/// Translates the entries of a little-endian, 64-bit `.debug_frame`. Entries in other forms are left out.
pub(super) fn to_eh_frame(section: &[u8]) -> Vec<u8> {
    let mut eh_frame = Vec::with_capacity(section.len() + section.len() / 8);
    // Where each common entry is now, by its place in the section.
    let mut common = HashMap::new();
    let mut at = 0;
    while let Some(entry) = Entry::at(section, at) {
        let start = eh_frame.len();
        if entry.id == COMMON {
            if let Some(body) = common_body(entry.body) {
                common.insert(at as u32, start);
                put(&mut eh_frame, 0, &body);
            }
        } else if let (Some(&parent), Some((range, instructions))) =
            (common.get(&entry.id), entry.body.split_at_checked(16))
        {
            // The distance from this field back to the common entry.
            let distance = (start + 4 - parent) as u32;
            put(&mut eh_frame, distance, &[range, &[0], instructions].concat());
        }
        at = entry.end;
    }
    eh_frame
}

/// An entry of `.debug_frame`.
struct Entry<'a> {
    /// [`COMMON`], or the place of the common entry that it refers to.
    id: u32,
    body: &'a [u8],
    end: usize,
}

impl<'a> Entry<'a> {
    fn at(section: &'a [u8], at: usize) -> Option<Self> {
        let (length, rest) = section.get(at..)?.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (id, body) = rest.get(..length)?.split_first_chunk()?;
        Some(Self { id: u32::from_le_bytes(*id), body, end: at + 4 + length })
    }
}

/// The body of a common entry: version, augmentation, alignments, return register, instructions.
fn common_body(body: &[u8]) -> Option<Vec<u8>> {
    let (&version, rest) = body.split_first()?;
    // An augmentation changes what the instructions mean.
    let rest = rest.strip_prefix(&[0])?;
    let rest = match version {
        1 | 3 => rest,
        // Sizes of addresses and of segment selectors.
        4 => rest.strip_prefix(&[8, 0])?,
        _ => return None,
    };
    let numbers = leb_length(rest, 2)?;
    let register = if version == 1 { 1 } else { leb_length(&rest[numbers..], 1)? };
    let (head, instructions) = rest.split_at_checked(numbers + register)?;
    let version = if version == 1 { 1 } else { 3 };
    Some([&[version], &b"zR\0"[..], head, &[1, ABSOLUTE_ADDRESS], instructions].concat())
}

/// Bytes of the first `count` LEB128 numbers.
fn leb_length(bytes: &[u8], count: usize) -> Option<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte < 0x80);
    ends.map(|(at, _)| at + 1).nth(count - 1)
}

fn put(eh_frame: &mut Vec<u8>, id: u32, body: &[u8]) {
    eh_frame.extend((body.len() as u32 + 4).to_le_bytes());
    eh_frame.extend(id.to_le_bytes());
    eh_frame.extend(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Vec<u8> {
        let mut section = Vec::new();
        // Version 4: code alignment 1, data alignment -8, return register 16, `DW_CFA_def_cfa: rsp + 8`.
        put(&mut section, COMMON, &[4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8]);
        let range = [0x1000_u64.to_le_bytes(), 0x20_u64.to_le_bytes()].concat();
        put(&mut section, 0, &[&range[..], &[0x0e, 16]].concat());
        section
    }

    #[test]
    fn a_function_keeps_its_range_and_its_instructions() {
        let translated = to_eh_frame(&section());
        let mut expected = Vec::new();
        put(&mut expected, 0, &[&[3], &b"zR\0"[..], &[1, 0x78, 16, 1, 0, 0x0c, 7, 8]].concat());
        let distance = expected.len() as u32 + 4;
        let range = [0x1000_u64.to_le_bytes(), 0x20_u64.to_le_bytes()].concat();
        put(&mut expected, distance, &[&range[..], &[0, 0x0e, 16]].concat());
        assert_eq!(translated, expected);
    }

    #[test]
    fn damaged_sections_keep_the_entries_before_the_damage() {
        let whole = section();
        for cut in 0..whole.len() {
            let kept = to_eh_frame(&whole[..cut]);
            assert!(to_eh_frame(&whole).starts_with(&kept), "cut at {cut}");
        }
        let mut orphan = Vec::new();
        put(&mut orphan, 77, &[0; 20]);
        assert!(to_eh_frame(&orphan).is_empty());
    }
}

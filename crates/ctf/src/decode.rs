//! Bits to items (CTF 1.8.3, section 4).

use crate::layout::{ArrayForm, Count, Layouts, NodeId, NodeKind, Role, Uses};
use crate::number::{ByteOrder, IntegerType};
use crate::tsdl::declared::Label;

/// Most items of one event, against lengths that no tracer writes.
const MOST_ITEMS: usize = 1 << 20;

/// A decoded field. Fields of a struct, elements and the chosen option of a variant come behind it, up to `next`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub node: NodeId,
    pub next: u32,
    /// An integer's or float's bits; of an array its count, or its place as [`Place`]; of a variant its option.
    pub value: u64,
}

/// Where text or numbers are: bits from the window's first byte, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub bit: u32,
    pub count: u32,
}

impl Place {
    pub fn packed(self) -> u64 {
        u64::from(self.bit) << 32 | u64::from(self.count)
    }

    pub fn unpacked(value: u64) -> Self {
        Self { bit: (value >> 32) as u32, count: value as u32 }
    }
}

/// Why decoding stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The field is not whole in the window.
    Short,
    /// It cannot be what the metadata describe.
    Malformed(&'static str),
}

/// What a stream remembers from field to field.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Values of lengths and tags.
    pub registers: Vec<u64>,
    /// The clock's value, in cycles.
    pub clock: u64,
    pub roles: [Option<u64>; ROLES],
}

const ROLES: usize = Role::EventId as usize + 1;

impl Memory {
    pub fn role(&self, role: Role) -> Option<u64> {
        self.roles[role as usize]
    }

    pub fn forget(&mut self, role: Role) {
        self.roles[role as usize] = None;
    }

    pub fn forget_all(&mut self) {
        self.roles = [None; ROLES];
    }
}

/// Decodes one scope after the other.
pub(crate) struct Decoder<'a> {
    pub layouts: &'a Layouts,
    pub bytes: &'a [u8],
    /// The place of `bytes` in the packet, in bits.
    pub base: u64,
    /// The next bit, from the packet's start.
    pub at: u64,
    /// Where the packet's content or the window ends, in bits from the packet's start.
    pub end: u64,
    pub memory: &'a mut Memory,
    pub items: &'a mut Vec<Item>,
    /// Fields so far.
    pub fields: usize,
}

/// Where a scope of an event is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    /// Its type, if it has one.
    pub node: Option<NodeId>,
    /// If its places are fixed: its first bit in the bytes of the event.
    pub bit: u32,
    /// Else its items.
    pub items: (u32, u32),
}

impl Decoder<'_> {
    #[inline]
    pub fn align(&mut self, bits: u32) -> Result<(), Stop> {
        let mask = u64::from(bits) - 1;
        self.at = self.at.checked_add(mask).ok_or(Stop::Short)? & !mask;
        Ok(())
    }

    /// Moves over `bits`, and returns their place in `bytes`.
    #[inline]
    pub fn take(&mut self, bits: u64) -> Result<usize, Stop> {
        let start = self.at;
        let end = start.checked_add(bits).filter(|&end| end <= self.end).ok_or(Stop::Short)?;
        self.at = end;
        Ok((start - self.base) as usize)
    }

    /// Passes over a scope: one with fixed places in one move, another one field by field.
    #[inline]
    pub fn part(&mut self, id: Option<NodeId>) -> Result<Part, Stop> {
        let Some(id) = id else { return Ok(Part::default()) };
        if let Some(fixed) = self.layouts.fixed(id) {
            self.align(fixed.align)?;
            let bit = self.take(fixed.bits.into())? as u32;
            return Ok(Part { node: Some(id), bit, items: (0, 0) });
        }
        let first = self.items.len() as u32;
        self.node::<true>(id)?;
        Ok(Part { node: Some(id), bit: 0, items: (first, self.items.len() as u32) })
    }

    /// Decodes a field with all that is in it. Its items are kept if that is wanted.
    pub fn node<const KEPT: bool>(&mut self, id: NodeId) -> Result<(), Stop> {
        let layouts = self.layouts;
        let node = &layouts.nodes[id as usize];
        self.align(node.align)?;
        if self.fields >= MOST_ITEMS {
            return Err(Stop::Malformed("an event has too many fields"));
        }
        self.fields += 1;
        let item = self.items.len();
        if KEPT {
            self.items.push(Item { node: id, next: item as u32 + 1, value: 0 });
        }
        let value = match &node.kind {
            NodeKind::Integer(kind) | NodeKind::Enumeration(kind, _) => {
                let value = self.integer(kind)?;
                if let Some(uses) = &node.uses {
                    self.note(*uses, kind, value);
                }
                value
            }
            NodeKind::Float(kind) => {
                let bits = 32 << u32::from(kind.is_double);
                let bit = self.take(bits.into())?;
                float(self.bytes, bit, bits, kind.order).to_bits()
            }
            NodeKind::String => self.string()?,
            NodeKind::Struct(fields) => {
                for field in fields {
                    self.node::<KEPT>(field.node)?;
                }
                0
            }
            NodeKind::Variant { tag, signed, options } => {
                let tag = self.memory.registers[*tag as usize];
                let is_of = |label: &Label| label.holds(tag, *signed);
                let option = options.iter().position(|option| option.ranges.iter().any(is_of));
                let option = option.ok_or(Stop::Malformed("the tag of a variant has a value without an option"))?;
                self.node::<KEPT>(options[option].named.node)?;
                option as u64
            }
            NodeKind::Array { element, length, form } => {
                let count = match length {
                    Count::Fixed(count) => *count,
                    Count::Register(register) => self.memory.registers[*register as usize],
                };
                self.array::<KEPT>(*element, count, *form)?
            }
        };
        if KEPT {
            let next = self.items.len() as u32;
            let item = &mut self.items[item];
            item.value = value;
            item.next = next;
        }
        Ok(())
    }

    fn integer(&mut self, kind: &IntegerType) -> Result<u64, Stop> {
        let bit = self.take(kind.bits.into())?;
        Ok(integer(self.bytes, bit, kind))
    }

    #[inline]
    pub fn note(&mut self, uses: Uses, kind: &IntegerType, value: u64) {
        if let Some(register) = uses.register {
            self.memory.registers[register as usize] = value;
        }
        if let Some(role) = uses.role {
            self.memory.roles[role as usize] = Some(value);
            if matches!(role, Role::TimeBegin | Role::TimeEnd) {
                return;
            }
        }
        if uses.clock.is_some() {
            self.memory.clock = advanced(self.memory.clock, value, kind.bits);
        }
    }

    fn string(&mut self) -> Result<u64, Stop> {
        let first = self.take(0)? / 8;
        let end = ((self.end - self.base) / 8) as usize;
        let length = self.bytes[first..end].iter().position(|&byte| byte == 0).ok_or(Stop::Short)?;
        self.take(length as u64 * 8 + 8)?;
        Ok(Place { bit: (first * 8) as u32, count: length as u32 }.packed())
    }

    fn array<const KEPT: bool>(&mut self, element: NodeId, count: u64, form: ArrayForm) -> Result<u64, Stop> {
        let bits = match form {
            ArrayForm::Text => 8,
            ArrayForm::Numbers { bits } => bits,
            ArrayForm::Items => {
                for _ in 0..count {
                    self.node::<KEPT>(element)?;
                }
                return Ok(count);
            }
        };
        let bit = self.take(count.checked_mul(bits.into()).ok_or(Stop::Short)?)?;
        Ok(Place { bit: bit as u32, count: count as u32 }.packed())
    }
}

/// The clock after a field of `bits` with this value: the lowest value from `clock` on that ends in these bits.
#[inline]
pub(crate) fn advanced(clock: u64, value: u64, bits: u8) -> u64 {
    if bits >= 64 {
        return value;
    }
    let mask = (1_u64 << bits) - 1;
    let wraps = if value & mask < clock & mask { mask + 1 } else { 0 };
    (clock & !mask).wrapping_add(wraps) | (value & mask)
}

/// An integer at a bit; with a sign, it is extended to 64 bits.
#[inline]
pub(crate) fn integer(bytes: &[u8], bit: usize, kind: &IntegerType) -> u64 {
    let value = unsigned(bytes, bit, kind.bits.into(), kind.order);
    if kind.signed {
        let unused = 64 - u32::from(kind.bits);
        return ((value << unused) as i64 >> unused) as u64;
    }
    value
}

/// A number of 32 or 64 bits at a bit.
pub(crate) fn float(bytes: &[u8], bit: usize, bits: u32, order: ByteOrder) -> f64 {
    let value = unsigned(bytes, bit, bits, order);
    if bits == 64 { f64::from_bits(value) } else { f32::from_bits(value as u32).into() }
}

/// `bits` (1 to 64) from a bit on. Little-endian numbers begin at a byte's least significant bit, big-endian ones at
/// its most significant (section 4.1.5).
#[inline]
fn unsigned(bytes: &[u8], bit: usize, bits: u32, order: ByteOrder) -> u64 {
    let (first, shift) = (bit / 8, (bit % 8) as u32);
    let count = (shift + bits).div_ceil(8) as usize;
    // Mostly, eight bytes hold it and are there.
    if shift + bits <= 64
        && let Some(word) = bytes.get(first..first + 8).and_then(|word| word.try_into().ok())
    {
        let word = match order {
            ByteOrder::Little => u64::from_le_bytes(word) >> shift,
            ByteOrder::Big => u64::from_be_bytes(word) >> (64 - shift - bits),
        };
        return word & (u64::MAX >> (64 - bits));
    }
    let bytes = &bytes[first..first + count];
    // 64 bits within a byte's bits are in nine bytes at most.
    let mut wide = 0_u128;
    match order {
        ByteOrder::Little => {
            for (at, &byte) in bytes.iter().enumerate() {
                wide |= u128::from(byte) << (8 * at);
            }
            wide >>= shift;
        }
        ByteOrder::Big => {
            for &byte in bytes {
                wide = wide << 8 | u128::from(byte);
            }
            wide >>= count as u32 * 8 - shift - bits;
        }
    }
    (wide as u64) & (u64::MAX >> (64 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapping_time_goes_on_upwards() {
        assert_eq!(advanced(0x1_ffff_fff0, 0xffff_fff8, 32), 0x1_ffff_fff8);
        assert_eq!(advanced(0x1_ffff_fff0, 0x10, 32), 0x2_0000_0010);
        assert_eq!(advanced(5 << 27 | 7, 6, 27), 6 << 27 | 6);
        assert_eq!(advanced(100, 7, 64), 7);
        assert_eq!(advanced(u64::MAX, 0, 27), 0);
    }

    #[test]
    fn numbers_of_any_size_and_place_are_read_in_both_orders() {
        let number = 0x1_2345_6789_abcd_ef0f_u128;
        for bits in 1..=64_u32 {
            for shift in 0..8_u32 {
                let value = (number as u64) & (u64::MAX >> (64 - bits));
                let little = (u128::from(value) << shift).to_le_bytes();
                assert_eq!(unsigned(&little, shift as usize, bits, ByteOrder::Little), value);
                let big = (u128::from(value) << (128 - bits - shift)).to_be_bytes();
                assert_eq!(unsigned(&big, shift as usize, bits, ByteOrder::Big), value);
            }
        }
    }

    #[test]
    fn signs_are_extended() {
        let kind = IntegerType { bits: 5, align: 1, signed: true, order: ByteOrder::Little, base: 10, is_text: false };
        assert_eq!(integer(&[0b1111_0000], 3, &kind) as i64, -2);
    }
}

//! How to find a function's caller, from `.eh_frame`: one rule per address, in eight bytes.
//!
//! The tables are those of the loaded modules, as the compiler wrote them. What is not understood gives [`Rule::UNKNOWN`]:
//! a stack then ends with a mark, and never goes on by a guess.

/// How the caller's registers are found at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rule(pub u64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No table describes the address, or not in a way that is known here.
    Unknown,
    /// The frame lies at an offset from the stack pointer.
    FromStackPointer,
    /// It lies at an offset from the frame pointer.
    FromFramePointer,
    /// It is stored at an offset from the frame pointer: functions that align their stack.
    StoredAtFramePointer,
    /// There is no caller: a thread starts here.
    Root,
    /// A signal interrupted the caller; the kernel stored its registers.
    Signal,
}

const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

impl Rule {
    pub const UNKNOWN: Self = Self(0);

    /// Where the frame pointer was saved: from the frame's address, or 0 if it is unchanged. From the frame pointer itself,
    /// for [`Kind::StoredAtFramePointer`].
    fn new(kind: Kind, frame: i64, saved: i64) -> Self {
        let (Ok(frame), Ok(saved)) = (i32::try_from(frame), i16::try_from(saved)) else { return Self::UNKNOWN };
        Self(kind as u64 | u64::from(saved as u16) << 16 | u64::from(frame as u32) << 32)
    }

    pub fn kind(self) -> Kind {
        match self.0 as u8 {
            1 => Kind::FromStackPointer,
            2 => Kind::FromFramePointer,
            3 => Kind::StoredAtFramePointer,
            4 => Kind::Root,
            5 => Kind::Signal,
            _ => Kind::Unknown,
        }
    }

    pub fn frame(self) -> i64 {
        i64::from((self.0 >> 32) as u32 as i32)
    }

    pub fn saved(self) -> i64 {
        i64::from((self.0 >> 16) as u16 as i16)
    }
}

/// Reads bytes of a loaded module up to an end.
#[derive(Clone, Copy)]
struct Bytes {
    at: *const u8,
    end: *const u8,
}

impl Bytes {
    /// # Safety
    /// The memory must stay readable.
    unsafe fn new(at: *const u8, len: usize) -> Self {
        Self { at, end: at.wrapping_add(len) }
    }

    fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    fn take<T: Copy>(&mut self) -> Option<T> {
        if (self.end as usize).saturating_sub(self.at as usize) < size_of::<T>() {
            return None;
        }
        // SAFETY: within the range.
        let value = unsafe { self.at.cast::<T>().read_unaligned() };
        self.at = self.at.wrapping_add(size_of::<T>());
        Some(value)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        if ((self.end as usize).saturating_sub(self.at as usize) as u64) < bytes {
            return None;
        }
        self.at = self.at.wrapping_add(bytes as usize);
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte: u8 = self.take()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    fn signed(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_i64, 0_u32);
        loop {
            let byte: u8 = self.take()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                if byte & 0x40 != 0 && shift < 64 {
                    value |= -1 << shift;
                }
                return Some(value);
            }
        }
    }

    /// A pointer in one of the encodings of `.eh_frame`.
    fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let place = self.at as u64;
        let value = match encoding & 0x0f {
            0 | 4 | 12 => self.take::<u64>()?,
            3 => u64::from(self.take::<u32>()?),
            11 => i64::from(self.take::<i32>()?) as u64,
            2 => u64::from(self.take::<u16>()?),
            10 => i64::from(self.take::<i16>()?) as u64,
            1 => self.unsigned()?,
            9 => self.signed()? as u64,
            _ => return None,
        };
        match encoding & 0xf0 {
            0 => Some(value),
            0x10 => Some(value.wrapping_add(place)),
            _ => None,
        }
    }

    /// The entry at a place: its content after the length.
    unsafe fn entry(at: *const u8) -> Option<Self> {
        // SAFETY: entries start with their length.
        let len = unsafe { at.cast::<u32>().read_unaligned() };
        // SAFETY: the linker's table says that an entry is here.
        (len != 0 && len != u32::MAX).then(|| unsafe { Self::new(at.wrapping_add(4), len as usize) })
    }
}

/// The rule at an address, by the table that `header` (`.eh_frame_hdr`) sorts.
///
/// # Safety
/// `header` is that of a loaded module.
pub unsafe fn rule_at(header: *const u8, address: u64) -> Rule {
    // SAFETY: the caller's.
    unsafe { find_entry(header, address).and_then(|entry| parse_entry(entry, address)).unwrap_or(Rule::UNKNOWN) }
}

unsafe fn find_entry(header: *const u8, address: u64) -> Option<*const u8> {
    const SORTED: u8 = 0x3b;
    const COUNT: u8 = 0x03;
    // SAFETY: the header of a loaded module, with as many pairs as it says.
    unsafe {
        let (version, frames, count, table) = (*header, *header.add(1), *header.add(2), *header.add(3));
        if version != 1 || !matches!(frames & 0x0f, 3 | 11) || count != COUNT || table != SORTED {
            return None;
        }
        let pairs = header.add(12).cast::<[i32; 2]>();
        let (mut low, mut high) = (0, header.add(8).cast::<u32>().read_unaligned() as usize);
        let of = |index: usize| pairs.add(index).read_unaligned();
        let wanted = address.wrapping_sub(header as u64) as i64;
        while low < high {
            let middle = low + (high - low) / 2;
            if i64::from(of(middle)[0]) <= wanted { low = middle + 1 } else { high = middle }
        }
        (low > 0).then(|| header.offset(of(low - 1)[1] as isize))
    }
}

/// What a common entry says.
struct Common {
    code_factor: u64,
    data_factor: i64,
    encoding: u8,
    has_data: bool,
    is_signal: bool,
    instructions: Bytes,
}

unsafe fn parse_common(at: *const u8) -> Option<Common> {
    // SAFETY: the caller's.
    let mut bytes = unsafe { Bytes::entry(at)? };
    let id: u32 = bytes.take()?;
    let version: u8 = bytes.take()?;
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let mut augmentation = bytes;
    let mut has_data = false;
    loop {
        match bytes.take::<u8>()? {
            0 => break,
            b'z' => has_data = true,
            _ => {}
        }
    }
    let code_factor = bytes.unsigned()?;
    let data_factor = bytes.signed()?;
    let register = if version == 1 { u64::from(bytes.take::<u8>()?) } else { bytes.unsigned()? };
    if register != RETURN_ADDRESS {
        return None;
    }
    let (mut encoding, mut is_signal) = (0, false);
    if has_data {
        let len = bytes.unsigned()?;
        let mut data = bytes;
        bytes.skip(len)?;
        loop {
            match augmentation.take::<u8>()? {
                0 => break,
                b'R' => encoding = data.take()?,
                b'L' => drop(data.take::<u8>()?),
                b'P' => {
                    let of: u8 = data.take()?;
                    data.pointer(of & 0x0f)?;
                }
                b'S' => is_signal = true,
                _ => {}
            }
        }
    }
    Some(Common { code_factor, data_factor, encoding, has_data, is_signal, instructions: bytes })
}

unsafe fn parse_entry(at: *const u8, address: u64) -> Option<Rule> {
    // SAFETY: the caller's; the entry says where its common entry is.
    let (mut bytes, common) = unsafe {
        let mut bytes = Bytes::entry(at)?;
        let place = bytes.at;
        let back: u32 = bytes.take()?;
        (bytes, parse_common(place.wrapping_sub(back as usize))?)
    };
    let start = bytes.pointer(common.encoding)?;
    let len = bytes.pointer(common.encoding & 0x0f)?;
    if address.wrapping_sub(start) >= len {
        return None;
    }
    if common.is_signal {
        return Some(Rule::new(Kind::Signal, 0, 0));
    }
    if common.has_data {
        let len = bytes.unsigned()?;
        bytes.skip(len)?;
    }
    let mut row = Row::default();
    run(common.instructions, &common, &mut row, None, start, u64::MAX)?;
    let initial = row;
    run(bytes, &common, &mut row, Some(&initial), start, address)?;
    row.rule(address)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    At { register: u64, offset: i64 },
    By(*const u8, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    Unchanged,
    At(i64),
    By(*const u8, u64),
    Undefined,
    Other,
}

#[derive(Clone, Copy)]
struct Row {
    frame: Frame,
    frame_pointer: Saved,
    return_address: Saved,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            frame: Frame::At { register: u64::MAX, offset: 0 },
            frame_pointer: Saved::Unchanged,
            return_address: Saved::Other,
        }
    }
}

impl Row {
    fn set(&mut self, register: u64, saved: Saved) {
        match register {
            RBP => self.frame_pointer = saved,
            RETURN_ADDRESS => self.return_address = saved,
            _ => {}
        }
    }

    fn rule(&self, address: u64) -> Option<Rule> {
        const RETURN_ADDRESS_AT: Saved = Saved::At(-8);
        if self.return_address == Saved::Undefined {
            return Some(Rule::new(Kind::Root, 0, 0));
        }
        if self.return_address != RETURN_ADDRESS_AT {
            return None;
        }
        let (kind, offset) = match self.frame {
            Frame::At { register: RSP, offset } => (Kind::FromStackPointer, offset),
            Frame::At { register: RBP, offset } => (Kind::FromFramePointer, offset),
            Frame::At { .. } => return None,
            Frame::By(at, len) => return self.rule_by_expression(at, len, address),
        };
        match self.frame_pointer {
            Saved::Unchanged | Saved::Undefined => Some(Rule::new(kind, offset, 0)),
            Saved::At(saved) if saved != 0 => Some(Rule::new(kind, offset, saved)),
            _ => None,
        }
    }

    fn rule_by_expression(&self, at: *const u8, len: u64, address: u64) -> Option<Rule> {
        const DEREF: u8 = 0x06;
        const OF_RBP: u8 = 0x76;
        /// Frames in a procedure linkage table: 8 bytes more from the 11th (or 10th) byte of an entry on.
        const LINKAGE: [u8; 7] = [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b];
        // SAFETY: the block lies within its entry.
        let block = unsafe { core::slice::from_raw_parts(at, len as usize) };
        if len == 11 && block.starts_with(&LINKAGE[..6]) && matches!(block[6], 0x3a | 0x3b) {
            let pushed = address & 15 >= u64::from(block[6] - 0x30);
            return Some(Rule::new(Kind::FromStackPointer, if pushed { 16 } else { 8 }, 0));
        }
        // SAFETY: the same block.
        let mut bytes = unsafe { Bytes::new(at, len as usize) };
        if bytes.take::<u8>()? != OF_RBP {
            return None;
        }
        let offset = bytes.signed()?;
        if bytes.take::<u8>()? != DEREF || !bytes.is_empty() {
            return None;
        }
        let Saved::By(at, len) = self.frame_pointer else { return None };
        // SAFETY: the block lies within its entry.
        let mut bytes = unsafe { Bytes::new(at, len as usize) };
        if bytes.take::<u8>()? != OF_RBP {
            return None;
        }
        let saved = bytes.signed()?;
        bytes.is_empty().then(|| Rule::new(Kind::StoredAtFramePointer, offset, saved))
    }
}

/// Runs instructions up to an address.
fn run(mut bytes: Bytes, of: &Common, row: &mut Row, initial: Option<&Row>, start: u64, until: u64) -> Option<()> {
    const DEPTH: usize = 8;
    let mut remembered = [Row::default(); DEPTH];
    let mut depth = 0;
    let mut at = start;
    while !bytes.is_empty() {
        let byte: u8 = bytes.take()?;
        let low = u64::from(byte & 0x3f);
        let mut ahead = None;
        match byte >> 6 {
            1 => ahead = Some(low),
            2 => {
                let offset = bytes.unsigned()? as i64;
                row.set(low, Saved::At(offset.wrapping_mul(of.data_factor)));
            }
            3 => restore(row, initial, low),
            _ => match byte {
                0x00 => {}
                0x01 => at = bytes.pointer(of.encoding)?,
                0x02 => ahead = Some(u64::from(bytes.take::<u8>()?)),
                0x03 => ahead = Some(u64::from(bytes.take::<u16>()?)),
                0x04 => ahead = Some(u64::from(bytes.take::<u32>()?)),
                0x05 => {
                    let register = bytes.unsigned()?;
                    let offset = bytes.unsigned()? as i64;
                    row.set(register, Saved::At(offset.wrapping_mul(of.data_factor)));
                }
                0x06 => restore(row, initial, bytes.unsigned()?),
                0x07 => row.set(bytes.unsigned()?, Saved::Undefined),
                0x08 => row.set(bytes.unsigned()?, Saved::Unchanged),
                0x09 => {
                    let register = bytes.unsigned()?;
                    bytes.unsigned()?;
                    row.set(register, Saved::Other);
                }
                0x0a => {
                    *remembered.get_mut(depth)? = *row;
                    depth += 1;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    *row = *remembered.get(depth)?;
                }
                0x0c => {
                    let register = bytes.unsigned()?;
                    row.frame = Frame::At { register, offset: bytes.unsigned()? as i64 };
                }
                0x0d => {
                    let Frame::At { offset, .. } = row.frame else { return None };
                    row.frame = Frame::At { register: bytes.unsigned()?, offset };
                }
                0x0e => {
                    let Frame::At { register, .. } = row.frame else { return None };
                    row.frame = Frame::At { register, offset: bytes.unsigned()? as i64 };
                }
                0x0f => {
                    let len = bytes.unsigned()?;
                    row.frame = Frame::By(bytes.at, len);
                    bytes.skip(len)?;
                }
                0x10 => {
                    let register = bytes.unsigned()?;
                    let len = bytes.unsigned()?;
                    row.set(register, Saved::By(bytes.at, len));
                    bytes.skip(len)?;
                }
                0x11 => {
                    let register = bytes.unsigned()?;
                    let offset = bytes.signed()?;
                    row.set(register, Saved::At(offset.wrapping_mul(of.data_factor)));
                }
                0x12 => {
                    let register = bytes.unsigned()?;
                    row.frame = Frame::At { register, offset: bytes.signed()?.wrapping_mul(of.data_factor) };
                }
                0x13 => {
                    let Frame::At { register, .. } = row.frame else { return None };
                    row.frame = Frame::At { register, offset: bytes.signed()?.wrapping_mul(of.data_factor) };
                }
                0x14 | 0x15 => {
                    let register = bytes.unsigned()?;
                    bytes.unsigned()?;
                    row.set(register, Saved::Other);
                }
                0x16 => {
                    let register = bytes.unsigned()?;
                    let len = bytes.unsigned()?;
                    bytes.skip(len)?;
                    row.set(register, Saved::Other);
                }
                0x2e => drop(bytes.unsigned()?),
                _ => return None,
            },
        }
        if let Some(ahead) = ahead {
            at = at.wrapping_add(ahead.wrapping_mul(of.code_factor));
        }
        if at > until {
            return Some(());
        }
    }
    Some(())
}

fn restore(row: &mut Row, initial: Option<&Row>, register: u64) {
    let Some(initial) = initial else { return };
    match register {
        RBP => row.frame_pointer = initial.frame_pointer,
        RETURN_ADDRESS => row.return_address = initial.return_address,
        _ => {}
    }
}

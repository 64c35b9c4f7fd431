//! The program's memory as a replayed call sees it: what it reads first is its input, and what it writes stays here.

use std::hash::Hasher as _;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

use crate::Stop;

const PAGE: usize = 4096;

/// Bytes of the largest stack of a call: what lies below is other memory, in the same mapping.
const LARGEST_STACK: u64 = 8 << 20;

/// Pages of one call: 256 MiB.
const MOST_PAGES: usize = 1 << 16;

/// Pages that are found without a look at all others.
const RECENT: usize = 16;

/// Words of inputs, and of outputs, that are kept of one call.
const MOST_WORDS: usize = 4 << 20;

/// Where memory of the replay's own allocator is: nothing is mapped there.
pub(crate) const ALLOCATED: Range<u64> = 0x2000_0000_0000..0x2001_0000_0000;

/// Stands for each address: other objects with the same content are the same input.
pub(crate) const ADDRESS: u64 = 0xadd7_e555_adda_e555;

/// Reads memory of the stopped program.
pub trait Source {
    /// Fills `into`; `false` if this memory cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// Memory that the program can write.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Ascending.
    writable: Vec<Range<u64>>,
}

impl Ranges {
    /// Of all memory that the program can write.
    pub fn of(writable: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut writable: Vec<Range<u64>> = writable.into_iter().collect();
        writable.sort_unstable_by_key(|range| range.start);
        Self { writable }
    }

    /// The writable memory that holds an address.
    pub fn writable(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.writable.partition_point(|range| range.start <= address);
        self.writable[..after].last().filter(|range| range.contains(&address))
    }
}

/// A page, and which of its bytes were read and written.
struct Page {
    bytes: [u8; PAGE],
    /// Bits of bytes that were read or written before.
    known: [u64; PAGE / 64],
    /// Bits of bytes that were written.
    written: [u64; PAGE / 64],
    /// Whether it can change: what cannot is no input.
    is_state: bool,
}

/// Where a word is that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub address: u64,
    /// 8, but for the last part of what was read at once.
    pub bytes: u8,
}

/// Bits of memory that are the other way round than in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub(crate) address: u64,
    pub(crate) bits: u64,
}

impl Change {
    fn apply(&self, page: u64, bytes: &mut [u8; PAGE]) {
        for (at, bits) in self.bits.to_le_bytes().into_iter().enumerate() {
            let offset = (self.address + at as u64).wrapping_sub(page);
            if let Some(byte) = bytes.get_mut(usize::try_from(offset).unwrap_or(usize::MAX)) {
                *byte ^= bits;
            }
        }
    }
}

/// The memory of one replayed call.
pub struct Memory<'a> {
    source: &'a dyn Source,
    ranges: &'a Ranges,
    pages: Vec<Box<Page>>,
    /// Indices of the pages by address.
    indices: FxHashMap<u64, usize>,
    /// Address and index of pages that were used last.
    recent: [(u64, usize); RECENT],
    /// The part of the stack that belongs to the call.
    own_stack: Range<u64>,
    /// Words that were read before they were written, in the order of reading.
    pub(crate) inputs: Vec<u64>,
    /// Where they are.
    pub(crate) places: Vec<Place>,
    /// What is other than in the program.
    change: Option<Change>,
    /// The same with their addresses.
    pub(crate) exact: FxHasher,
    /// Words that were written, in the order of the first write.
    order: Vec<u64>,
    /// How many of these were read before.
    updates: usize,
    /// The next free byte of [`ALLOCATED`].
    next: u64,
    /// Sizes of what was allocated.
    sizes: FxHashMap<u64, u64>,
}

impl<'a> Memory<'a> {
    /// For a call that begins with this stack pointer.
    pub fn new(source: &'a dyn Source, ranges: &'a Ranges, stack: u64) -> Self {
        let start = ranges.writable(stack).map_or(stack, |range| range.start.max(stack.saturating_sub(LARGEST_STACK)));
        Self {
            source,
            ranges,
            pages: Vec::new(),
            indices: FxHashMap::default(),
            recent: [(u64::MAX, 0); RECENT],
            own_stack: start..stack,
            inputs: Vec::new(),
            places: Vec::new(),
            change: None,
            exact: FxHasher::default(),
            order: Vec::new(),
            updates: 0,
            next: ALLOCATED.start,
            sizes: FxHashMap::default(),
        }
    }

    /// The same, with something else in memory than the program has there.
    #[must_use]
    pub fn with(self, change: Change) -> Self {
        Self { change: Some(change), ..self }
    }

    /// Reads for the program.
    pub(crate) fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), Stop> {
        self.pieces(address, into.len(), |memory, at, piece| memory.read_piece(at, &mut into[piece]))
    }

    /// A word of 8 bytes.
    pub(crate) fn word(&mut self, address: u64) -> Result<u64, Stop> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads without the program's knowledge.
    pub(crate) fn peek(&mut self, address: u64, into: &mut [u8]) -> Result<(), Stop> {
        self.pieces(address, into.len(), |memory, at, piece| {
            let into = &mut into[piece];
            let offset = at as usize % PAGE;
            into.copy_from_slice(&memory.page(at)?.bytes[offset..offset + into.len()]);
            Ok(())
        })
    }

    /// Writes for the program.
    pub(crate) fn write(&mut self, address: u64, from: &[u8]) -> Result<(), Stop> {
        self.pieces(address, from.len(), |memory, at, piece| memory.write_piece(at, &from[piece]))
    }

    /// Calls `each` with the address and the part of `len` bytes in each page.
    fn pieces(
        &mut self,
        address: u64,
        len: usize,
        mut each: impl FnMut(&mut Self, u64, Range<usize>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut done = 0;
        while done < len {
            let at = address.wrapping_add(done as u64);
            let part = (PAGE - at as usize % PAGE).min(len - done);
            each(self, at, done..done + part)?;
            done += part;
        }
        Ok(())
    }

    fn page(&mut self, address: u64) -> Result<&mut Page, Stop> {
        let start = address & !(PAGE as u64 - 1);
        let slot = (start / PAGE as u64) as usize % RECENT;
        let (of, mut index) = self.recent[slot];
        if of != start {
            index = self.index(start)?;
            self.recent[slot] = (start, index);
        }
        Ok(&mut self.pages[index])
    }

    /// Index of the page at an address.
    fn index(&mut self, start: u64) -> Result<usize, Stop> {
        if let Some(index) = self.indices.get(&start) {
            return Ok(*index);
        }
        if self.pages.len() >= MOST_PAGES {
            return Err(Stop::TooLong);
        }
        let mut page =
            Box::new(Page { bytes: [0; PAGE], known: [0; PAGE / 64], written: [0; PAGE / 64], is_state: true });
        if ALLOCATED.contains(&start) {
            // What a program reads of new memory is no input.
            page.known = [u64::MAX; PAGE / 64];
        } else {
            if !self.source.read(start, &mut page.bytes) {
                return Err(Stop::Unreadable(start));
            }
            page.is_state = self.ranges.writable(start).is_some();
            if let Some(change) = &self.change {
                change.apply(start, &mut page.bytes);
            }
        }
        self.pages.push(page);
        self.indices.insert(start, self.pages.len() - 1);
        Ok(self.pages.len() - 1)
    }

    fn read_piece(&mut self, address: u64, into: &mut [u8]) -> Result<(), Stop> {
        let own_stack = self.own_stack.contains(&address);
        let page = self.page(address)?;
        let offset = address as usize % PAGE;
        into.copy_from_slice(&page.bytes[offset..offset + into.len()]);
        if own_stack || !page.is_state || all_set(&page.known, offset, into.len()) {
            return Ok(());
        }
        for (number, word) in into.chunks(8).enumerate() {
            let page = self.page(address)?;
            let offset = offset + number * 8;
            let mut value = [0; 8];
            let mut new = 0;
            for (index, byte) in word.iter().enumerate() {
                if !is_set(&page.known, offset + index) {
                    value[index] = *byte;
                    set(&mut page.known, offset + index);
                    new += 1;
                }
            }
            if new == 0 {
                continue;
            }
            let value = u64::from_le_bytes(value);
            self.exact.write_u64(address + number as u64 * 8);
            self.exact.write_u64(value);
            let value = if new == 8 { self.without_address(value) } else { value };
            self.inputs.push(value);
            self.places.push(Place { address: address + number as u64 * 8, bytes: word.len() as u8 });
        }
        if self.inputs.len() > MOST_WORDS { Err(Stop::TooLong) } else { Ok(()) }
    }

    fn write_piece(&mut self, address: u64, from: &[u8]) -> Result<(), Stop> {
        let own_stack = self.own_stack.contains(&address);
        if !self.page(address)?.is_state {
            return Err(Stop::Unreadable(address));
        }
        let start = address & !(PAGE as u64 - 1);
        let Self { pages, order, recent, updates, .. } = self;
        let page = &mut pages[recent[(start / PAGE as u64) as usize % RECENT].1];
        let offset = (address - start) as usize;
        page.bytes[offset..offset + from.len()].copy_from_slice(from);
        for at in offset..offset + from.len() {
            if !own_stack {
                let word = at & !7;
                if page.written[at / 64] >> (word % 64) & 0xff == 0 {
                    order.push(start + word as u64);
                    *updates += usize::from(is_set(&page.known, at) && !ALLOCATED.contains(&start));
                }
                set(&mut page.written, at);
            }
            set(&mut page.known, at);
        }
        if self.order.len() > MOST_WORDS { Err(Stop::TooLong) } else { Ok(()) }
    }

    /// Whether most of what was written was read before: the call changes a state, or leaves it as it is.
    pub(crate) fn is_update(&self) -> bool {
        self.updates * 2 > self.order.len()
    }

    /// How much was read and written until now.
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            inputs: self.inputs.len(),
            outputs: self.order.len(),
            updates: self.updates,
            exact: self.exact.clone(),
        }
    }

    /// Leaves out what was read and first written since.
    pub(crate) fn cut(&mut self, extent: Extent) {
        self.inputs.truncate(extent.inputs);
        self.places.truncate(extent.inputs);
        self.order.truncate(extent.outputs);
        self.updates = extent.updates;
        self.exact = extent.exact;
    }

    /// What was written outside of the call's own stack, at the end.
    pub(crate) fn outputs(&mut self) -> Vec<u64> {
        let mut outputs = Vec::with_capacity(self.order.len());
        for address in &self.order {
            let page = &self.pages[self.indices[&(address & !(PAGE as u64 - 1))]];
            let offset = *address as usize % PAGE;
            let mut value = [0; 8];
            let mut count = 0;
            for (index, byte) in value.iter_mut().enumerate() {
                if is_set(&page.written, offset + index) {
                    *byte = page.bytes[offset + index];
                    count += 1;
                }
            }
            let value = u64::from_le_bytes(value);
            outputs.push(if count == 8 { self.without_address(value) } else { value });
        }
        outputs
    }

    /// What the call has left in memory. The program must not have gone on since its start.
    pub(crate) fn left(&self) -> Left {
        let mut left = Left::default();
        let mut live: Vec<Range<u64>> = self.sizes.iter().map(|(start, bytes)| *start..start + bytes).collect();
        live.sort_unstable_by_key(|block| block.start);
        let mut before = (u64::MAX, [0; PAGE]);
        for address in &self.order {
            let (start, offset) = (address & !(PAGE as u64 - 1), *address as usize % PAGE);
            if ALLOCATED.contains(address) {
                // A block may begin in the middle of the word.
                let block = live[..live.partition_point(|block| block.start < address + 8)].last();
                left.words += u64::from(block.is_some_and(|block| block.end > *address));
                continue;
            }
            if before.0 != start && self.source.read(start, &mut before.1) {
                before.0 = start;
            }
            let page = &self.pages[self.indices[&start]];
            let word = |bytes: &[u8; PAGE]| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("8 bytes"));
            let (before, after) = (word(&before.1), word(&page.bytes));
            left.words += 1;
            left.same += u64::from(before == after);
            left.near += u64::from(is_near(before, after));
        }
        left
    }

    /// [`ADDRESS`] in place of an address of the program's data.
    pub(crate) fn without_address(&self, value: u64) -> u64 {
        let is_address = ALLOCATED.contains(&value) || self.ranges.writable(value).is_some();
        if is_address { ADDRESS } else { value }
    }

    /// New memory, all zeros; 0 if there is none left.
    pub(crate) fn allocate(&mut self, bytes: u64, align: u64) -> u64 {
        let Some(start) = self.next.checked_next_multiple_of(align.max(16)) else { return 0 };
        let Some(end) = start.checked_add(bytes.max(1)).filter(|end| *end < ALLOCATED.end) else { return 0 };
        self.next = end;
        self.sizes.insert(start, bytes);
        start
    }

    /// Gives memory back that was [allocated](Self::allocate).
    pub(crate) fn free(&mut self, address: u64) {
        self.sizes.remove(&address);
    }

    /// Bytes at `address`, which an allocator gave: ours, or that of the GNU C library, which writes them in front.
    pub(crate) fn allocated_bytes(&mut self, address: u64) -> Result<u64, Stop> {
        if let Some(bytes) = self.sizes.get(&address) {
            return Ok(*bytes);
        }
        let mut head = [0; 8];
        self.peek(address.wrapping_sub(8), &mut head)?;
        let bytes = (u64::from_le_bytes(head) & !7).wrapping_sub(8);
        // A word that is no size is of another allocator.
        if bytes < 1 << 36 { Ok(bytes) } else { Err(Stop::Allocator) }
    }
}

/// What a call has left in memory at its end, but for its own stack and for what it allocated and freed.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Words that it wrote.
    pub words: u64,
    /// Of these, words that hold what they held before, and those that hold nearly the same number.
    pub same: u64,
    pub near: u64,
}

/// Whether two words hold the same number of 8 bytes, or two of 4, but for the last digits: a series that has converged.
fn is_near(before: u64, after: u64) -> bool {
    let long = |before: f64, after: f64, part: f64| {
        before.is_normal() && after.is_normal() && (before - after).abs() <= part * before.abs()
    };
    let short = |before: u32, after: u32| {
        before == after || long(f32::from_bits(before).into(), f32::from_bits(after).into(), 1e-6)
    };
    before == after
        || long(f64::from_bits(before), f64::from_bits(after), 1e-13)
        || short(before as u32, after as u32) && short((before >> 32) as u32, (after >> 32) as u32)
}

/// How much a call had read and written.
pub(crate) struct Extent {
    inputs: usize,
    outputs: usize,
    updates: usize,
    exact: FxHasher,
}

fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 != 0
}

fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

fn all_set(bits: &[u64], start: usize, len: usize) -> bool {
    let (first, shift) = (start / 64, start % 64);
    if shift + len <= 64 && len < 64 {
        let mask = ((1_u64 << len) - 1) << shift;
        return bits[first] & mask == mask;
    }
    (start..start + len).all(|at| is_set(bits, at))
}

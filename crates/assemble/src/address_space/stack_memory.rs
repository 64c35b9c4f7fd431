//! Words of a user stack: from the sample's copy, and beyond it from the live process.

use super::user_stack::UserStack;
use crate::target::Target;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Unwinding goes up the stack. Each piece that is read is twice as large as the one before, up to 32 pages.
const MAX_PIECE_DOUBLINGS: usize = 5;

/// How far beyond the copy live memory is trusted to belong to the same stack.
pub(super) const LIVE_REACH_BYTES: u64 = 8 << 20;

/// Reads words of a stack: from the copy, and beyond its end from the live process.
///
/// The copy ends at its full size, or earlier: the kernel stops at the first page that is not in memory. A large frame of
/// which only the ends were ever touched has such pages.
pub(super) struct StackMemory<'a> {
    pub stack: &'a UserStack<'a>,
    pub live: LiveMemory,
    /// The lowest address of the stack that the walk is on. A signal handler can have a stack of its own.
    pub bottom: u64,
}

impl StackMemory<'_> {
    pub fn word<W: Target>(&mut self, address: u64, target: &mut W) -> Result<u64, ()> {
        if let Some(word) = self.copied_word(address) {
            return Ok(word);
        }
        if address.checked_sub(self.bottom).is_none_or(|above| above > LIVE_REACH_BYTES) {
            return Err(());
        }
        self.live_word(address, target)
    }

    /// A word of the copy.
    pub fn copied_word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.stack.registers.sp)?).ok()?;
        let bytes = self.stack.copied.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn live_word<W: Target>(&mut self, address: u64, target: &mut W) -> Result<u64, ()> {
        let pid = self.stack.ids.pid;
        let piece = self.live.piece_at(address, |start, into| target.read_memory(pid, start, into));
        let at = (address - piece.start) as usize;
        let bytes = piece.bytes[..piece.read].get(at..at + 8).ok_or(())?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

/// Pieces of live memory that a walk has read. They are kept from walk to walk for their allocations.
#[derive(Default)]
pub(super) struct LiveMemory {
    pieces: Vec<Piece>,
    /// How many pieces belong to this walk.
    used: usize,
}

/// A piece of memory, of which `read` bytes could be read.
struct Piece {
    start: u64,
    asked: usize,
    read: usize,
    bytes: Vec<u8>,
}

impl LiveMemory {
    /// Forgets what the last walk read.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Whether the walk has read live memory.
    pub fn is_used(&self) -> bool {
        self.used > 0
    }

    /// The piece that holds an address. It is read now if there is none.
    fn piece_at(&mut self, address: u64, read: impl FnOnce(u64, &mut [u8]) -> usize) -> &Piece {
        let holds = |piece: &Piece| address.checked_sub(piece.start).is_some_and(|at| at + 8 <= piece.asked as u64);
        if let Some(index) = self.pieces[..self.used].iter().position(holds) {
            return &self.pieces[index];
        }
        // Most walks that leave the copy need a page or two; the others go on for long.
        let asked = (PAGE_BYTES as usize) << self.used.min(MAX_PIECE_DOUBLINGS);
        if self.used == self.pieces.len() {
            self.pieces.push(Piece { start: 0, asked: 0, read: 0, bytes: Vec::new() });
        }
        let piece = &mut self.pieces[self.used];
        self.used += 1;
        piece.start = address & !(PAGE_BYTES - 1);
        piece.asked = asked;
        if piece.bytes.len() < asked {
            piece.bytes.resize(asked, 0);
        }
        piece.read = read(piece.start, &mut piece.bytes[..asked]).min(asked);
        piece
    }
}

//! Names and their numbers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::layout::{HEADER_BYTES, NAMES_BYTES, NAMES_STEP};
use super::segment::Segment;
use super::system;

/// Maximum number of names in a segment.
const MAX: usize = 16_384;
/// Maximum length of a name.
const BYTES_MAX: usize = 511;

/// Interned names.
pub struct Names {
    numbers: HashMap<Box<str>, u32>,
    /// Used bytes of the segment's names.
    pub used: usize,
    /// Bytes of the segment's names that have memory.
    pub committed: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self { numbers: HashMap::new(), used: 0, committed: NAMES_STEP }
    }
}

impl Names {
    /// The number of a name, equal for equal names; 0 if there are too many.
    pub fn number(&mut self, name: &str, segment: &Segment) -> u32 {
        let end = (0..=BYTES_MAX.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
        let name = &name[..end];
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = self.add(name, segment).unwrap_or(0);
        if number == 0 {
            segment.header().names_lost.fetch_add(1, Ordering::Relaxed);
        }
        number
    }

    fn add(&mut self, name: &str, segment: &Segment) -> Option<u32> {
        let end = self.used + 2 + name.len();
        if self.numbers.len() == MAX || end > NAMES_BYTES {
            return None;
        }
        if end > self.committed {
            let from = (HEADER_BYTES + self.committed) as u64;
            system::commit(&segment.file().ok()?, from, NAMES_STEP as u64).ok()?;
            self.committed += NAMES_STEP;
        }
        let length = (name.len() as u16).to_ne_bytes();
        // SAFETY: the end is within the names, which are mapped and committed so far.
        unsafe {
            let at = segment.names().add(self.used);
            std::ptr::copy_nonoverlapping(length.as_ptr(), at, 2);
            std::ptr::copy_nonoverlapping(name.as_ptr(), at.add(2), name.len());
        }
        self.used = end;
        let number = self.numbers.len() as u32 + 1;
        self.numbers.insert(name.into(), number);
        segment.header().names_end.store(end as u64, Ordering::Release);
        Some(number)
    }
}

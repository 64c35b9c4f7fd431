//! [`Tenths`]: whether something happens all the time.

use std::ops::Range;

/// What is in this many of ten parts of the time happens all the time.
const MOST: usize = 8;

/// In which of ten equal parts of a time something happens.
#[derive(Debug, Default)]
pub(super) struct Tenths([bool; 10]);

impl Tenths {
    /// It happens at this time of `span`; before it or after it counts as its first or last part.
    pub fn meet(&mut self, time_ns: u64, span: &Range<u64>) {
        let since_ns = u128::from(time_ns.saturating_sub(span.start));
        self.meet_part((since_ns * 10 / u128::from((span.end - span.start).max(1))) as usize);
    }

    /// It happens in this part.
    pub fn meet_part(&mut self, part: usize) {
        self.0[part.min(self.0.len() - 1)] = true;
    }

    /// Whether it happens in most of the parts: all the time.
    pub fn are_most(&self) -> bool {
        self.0.iter().filter(|met| **met).count() >= MOST
    }
}

//! [`HeapSums`]: allocations and releases, in the order of time, added up by place.

use rustc_hash::FxHashMap;
use stepscope_model::{Allocation, BLOCK_SIZES, Capture, ProcessId, StackId, Thread};

/// Sums of each place, and what each held at the peak of all.
#[derive(Debug, Default)]
pub struct HeapSums {
    places: Vec<Place>,
    /// Live bytes of all places.
    pub live_bytes: i64,
    /// Allocations so far.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    peak_bytes: i64,
    /// Number of the last peak.
    peak: u64,
}

#[derive(Debug, Default, Clone)]
struct Place {
    calls: u64,
    bytes: u64,
    temporary: u64,
    frees: u64,
    freed_bytes: u64,
    live_bytes: i64,
    /// Live bytes at the peak of this number. At a later peak, they are what lives now.
    at_peak: i64,
    peak: u64,
    sizes: [u32; BLOCK_SIZES.len() + 1],
}

impl HeapSums {
    /// Adds an allocation of this many bytes. Places are small numbers, such as the rows of a table.
    pub fn allocate(&mut self, place: usize, bytes: u64) {
        let of = self.place(place);
        let size = signed(bytes);
        of.calls += 1;
        of.bytes = of.bytes.saturating_add(bytes);
        of.live_bytes = of.live_bytes.saturating_add(size);
        let class = size_class(bytes);
        of.sizes[class] = of.sizes[class].saturating_add(1);
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.live_bytes = self.live_bytes.saturating_add(size);
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak += 1;
        }
    }

    /// Adds the release of a block that was allocated at `place`.
    pub fn free(&mut self, place: usize, bytes: u64, is_temporary: bool) {
        let of = self.place(place);
        of.frees += 1;
        of.freed_bytes = of.freed_bytes.saturating_add(bytes);
        of.temporary += u64::from(is_temporary);
        of.live_bytes = of.live_bytes.saturating_sub(signed(bytes));
        self.live_bytes = self.live_bytes.saturating_sub(signed(bytes));
    }

    fn place(&mut self, place: usize) -> &mut Place {
        if self.places.len() <= place {
            self.places.resize(place + 1, Place::default());
        }
        let of = &mut self.places[place];
        if of.peak != self.peak {
            (of.at_peak, of.peak) = (of.live_bytes, self.peak);
        }
        of
    }

    /// Rows of a capture, one for each stack.
    pub fn rows(
        &self,
        process: ProcessId,
        end_ns: u64,
        mut stack_of: impl FnMut(usize) -> Option<StackId>,
    ) -> Vec<Allocation> {
        let mut row_of: FxHashMap<Option<StackId>, usize> = FxHashMap::default();
        let mut rows = Vec::new();
        for (index, place) in self.places.iter().enumerate().filter(|(_, place)| place.calls > 0) {
            let stack = stack_of(index);
            let row = *row_of.entry(stack).or_insert_with(|| {
                rows.push(Allocation { end_ns, ..empty(process, stack) });
                rows.len() - 1
            });
            let at_peak = if place.peak == self.peak { place.at_peak } else { place.live_bytes };
            add(&mut rows[row], place, at_peak);
        }
        rows
    }
}

/// A row without allocations.
pub fn empty(process: ProcessId, stack: Option<StackId>) -> Allocation {
    Allocation {
        start_ns: 0,
        end_ns: 0,
        process,
        thread: None,
        stack,
        calls: 0,
        bytes: 0,
        temporary: 0,
        frees: 0,
        freed_bytes: 0,
        foreign_frees: 0,
        foreign_freed_bytes: 0,
        live_blocks: 0,
        live_bytes: 0,
        peak_bytes: 0,
        sizes: Default::default(),
        lifetimes: Default::default(),
    }
}

fn add(row: &mut Allocation, place: &Place, at_peak: i64) {
    row.calls += place.calls;
    row.bytes = row.bytes.saturating_add(place.bytes);
    row.temporary += place.temporary;
    row.frees += place.frees;
    row.freed_bytes = row.freed_bytes.saturating_add(place.freed_bytes);
    row.live_blocks += signed(place.calls) - signed(place.frees);
    row.live_bytes = row.live_bytes.saturating_add(place.live_bytes);
    row.peak_bytes = row.peak_bytes.saturating_add(at_peak);
    row.sizes.iter_mut().zip(place.sizes).for_each(|(sum, more)| *sum = sum.saturating_add(more));
}

/// Names the process of a command line, and the one thread that stands for all of its threads.
pub fn name_program(capture: &mut Capture, process: ProcessId, command: &str) {
    let program = command.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let row = &mut capture.processes[process.index()];
    (row.executable, row.command_line) = (program.to_owned(), command.to_owned());
    capture.add_thread(Thread { name, process: Some(process), ..Thread::default() });
    capture.info.command = command.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
}

/// The class of a block, see [`BLOCK_SIZES`].
pub fn size_class(bytes: u64) -> usize {
    BLOCK_SIZES.partition_point(|&largest| largest < bytes)
}

/// A number of bytes as the capture's tables have it.
pub fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_what_each_place_held_when_all_held_most() {
        let mut sums = HeapSums::default();
        sums.allocate(0, 100);
        sums.allocate(1, 50);
        sums.free(0, 100, false);
        sums.allocate(2, 60);
        sums.free(2, 60, true);
        let rows = sums.rows(ProcessId(0), 9, |place| Some(StackId(place as u32)));
        let held: Vec<_> = rows.iter().map(|row| (row.peak_bytes, row.live_bytes, row.temporary)).collect();
        assert_eq!(held, [(100, 0, 0), (50, 50, 0), (0, 0, 1)]);
        sums.allocate(2, 1000);
        let rows = sums.rows(ProcessId(0), 9, |_| None);
        let [row] = &rows[..] else { panic!("equal stacks are one row") };
        assert_eq!((row.calls, row.peak_bytes, row.live_blocks, row.live_bytes), (4, 1050, 2, 1050));
    }

    #[test]
    fn sums_of_hostile_sizes_do_not_overflow() {
        let mut sums = HeapSums::default();
        for _ in 0..4 {
            sums.allocate(0, u64::MAX);
            sums.free(1, u64::MAX, false);
        }
        sums.free(1, u64::MAX, true);
        assert_eq!(sums.rows(ProcessId(0), 0, |_| None)[0].bytes, u64::MAX);
    }

    #[test]
    fn the_class_of_a_block_has_its_size_as_largest() {
        assert_eq!([0, 16, 17, 1 << 20, u64::MAX].map(size_class), [0, 0, 1, 10, 11]);
    }
}

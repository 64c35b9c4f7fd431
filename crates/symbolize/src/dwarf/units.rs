//! The compilation units, and which of them cover which addresses.
//!
//! `.debug_aranges` tells it at a glance, for the units that it lists (those of gcc; clang writes none). What a unit that is
//! not listed covers is in its first entry, for which its abbreviations must be read: that is only done
//! for addresses that no listed unit covers.

use gimli::{DebugInfoOffset, UnitHeader};

use super::{Dwarf, Losses, Slice, indices_in};

/// The compilation units, and which of them cover which addresses.
pub(super) struct Units<'data> {
    /// In the order of their offsets.
    pub headers: Vec<UnitHeader<Slice<'data>>>,
    /// Ascending, each once.
    pub hits: Vec<Hit>,
}

/// A unit that covers an address, both by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub unit: usize,
    pub address: usize,
}

impl<'data> Units<'data> {
    /// The units of `dwarf`, and those that cover `addresses` (ascending).
    pub fn of(dwarf: &Dwarf<'data>, addresses: &[u64], losses: &mut Losses) -> Self {
        let mut found = Self { headers: Vec::new(), hits: Vec::new() };
        let mut headers = dwarf.units();
        loop {
            match headers.next() {
                Ok(Some(header)) => found.headers.push(header),
                Ok(None) => break,
                Err(error) => {
                    losses.damaged(error);
                    break;
                }
            }
        }
        let mut listed = vec![false; found.headers.len()];
        // A list that is damaged is no loss as long as the units are whole: they tell the same.
        if found.add_listed(dwarf, addresses, &mut listed).is_err() {
            listed.fill(false);
            found.hits.clear();
        }
        if found.covers_all(addresses) {
            listed.fill(true);
        }
        for unit in (0..found.headers.len()).filter(|&unit| !listed[unit]) {
            if let Err(error) = found.add_hits(dwarf, unit, addresses) {
                losses.damaged(error);
            }
        }
        found.hits.sort_unstable();
        found.hits.dedup();
        found
    }

    /// Adds the hits in units that `.debug_aranges` lists, and marks these.
    fn add_listed(&mut self, dwarf: &Dwarf<'data>, addresses: &[u64], listed: &mut [bool]) -> gimli::Result<()> {
        let mut sets = dwarf.debug_aranges.headers();
        while let Some(set) = sets.next()? {
            let Some(unit) = index_of_unit(&self.headers, set.debug_info_offset()) else { continue };
            listed[unit] = true;
            let mut ranges = set.entries();
            while let Some(range) = ranges.next()? {
                let range = range.range();
                self.add_range(unit, range.begin, range.end, addresses);
            }
        }
        Ok(())
    }

    fn covers_all(&self, addresses: &[u64]) -> bool {
        let mut covered = vec![false; addresses.len()];
        self.hits.iter().for_each(|hit| covered[hit.address] = true);
        !covered.contains(&false)
    }

    fn add_hits(&mut self, dwarf: &Dwarf<'data>, index: usize, addresses: &[u64]) -> gimli::Result<()> {
        let unit = dwarf.unit(self.headers[index])?;
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            self.add_range(index, range.begin, range.end, addresses);
        }
        Ok(())
    }

    fn add_range(&mut self, unit: usize, begin: u64, end: u64, addresses: &[u64]) {
        // What the linker dropped is left at address 0, where no code can be.
        if begin == 0 {
            return;
        }
        self.hits.extend(indices_in(addresses, begin, end).map(|address| Hit { unit, address }));
    }
}

fn index_of_unit(headers: &[UnitHeader<Slice<'_>>], offset: DebugInfoOffset<usize>) -> Option<usize> {
    headers.binary_search_by_key(&Some(offset), |header| header.debug_info_offset()).ok()
}

/// The header of the unit that holds an offset.
pub(super) fn header_holding<'data>(
    headers: &[UnitHeader<Slice<'data>>],
    offset: DebugInfoOffset<usize>,
) -> Option<UnitHeader<Slice<'data>>> {
    let after = headers.partition_point(|header| header.debug_info_offset().is_some_and(|start| start.0 <= offset.0));
    headers.get(after.checked_sub(1)?).copied()
}

//! Compilation units and the addresses that they cover.
//!
//! `.debug_aranges` lists the ranges of some units (GCC writes it, clang does not). For other units, the ranges are in
//! the first entry, which requires reading the unit's abbreviations. That is done only for addresses that no listed
//! unit covers.

use gimli::{DebugInfoOffset, UnitHeader};

use super::{Dwarf, Losses, Slice, indices_in};

/// Compilation units and the addresses that they cover.
pub(super) struct Units<'data> {
    /// All headers, ordered by offset.
    pub headers: Vec<UnitHeader<Slice<'data>>>,
    /// Ascending, without duplicates.
    pub hits: Vec<Hit>,
}

/// A unit and an address that it covers, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub unit: usize,
    pub address: usize,
}

impl<'data> Units<'data> {
    /// Reads the units of `dwarf` and finds those that cover `addresses` (ascending).
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
        // A damaged list is no loss if the units are intact: they have the same ranges.
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

    /// Adds hits in the units listed in `.debug_aranges`, and sets `listed` for them.
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
        // The linker leaves dropped functions at address 0.
        if begin == 0 {
            return;
        }
        self.hits.extend(indices_in(addresses, begin, end).map(|address| Hit { unit, address }));
    }
}

fn index_of_unit(headers: &[UnitHeader<Slice<'_>>], offset: DebugInfoOffset<usize>) -> Option<usize> {
    headers.binary_search_by_key(&Some(offset), |header| header.debug_info_offset()).ok()
}

/// The header of the unit that contains an offset.
pub(super) fn header_holding<'data>(
    headers: &[UnitHeader<Slice<'data>>],
    offset: DebugInfoOffset<usize>,
) -> Option<UnitHeader<Slice<'data>>> {
    let after = headers.partition_point(|header| header.debug_info_offset().is_some_and(|start| start.0 <= offset.0));
    headers.get(after.checked_sub(1)?).copied()
}

//! Where functions are inlined: the first address of each inlined call, and the code of some.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{Abbreviation, EntriesRaw};

use super::names::FunctionNames;
use super::unit::{CodeRanges, Entry, Scopes, code_ranges, first_address};
use super::units::Units;
use super::{Dwarf, Losses, Slice};
use crate::texts::Texts;

/// First addresses of inlined calls of functions whose name is `wanted`, ascending. Damaged units are passed over.
pub(super) fn calls(dwarf: &Dwarf<'_>, texts: &mut Texts, wanted: &dyn Fn(&str) -> bool) -> Vec<u64> {
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        headers.push(header);
    }
    let mut found = Vec::new();
    for header in &headers {
        // Names are kept for one unit only, as those of a whole program may be larger than the program.
        let _ = each_call(dwarf, *header, &headers, texts, first_address, |address, name| {
            if let Some(address) = address
                && name().is_some_and(|name| wanted(&name))
            {
                found.push(address);
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Calls `found` for each inlined call of a unit, with what `read` reads of its attributes, and what names its function.
fn each_call<'data, T>(
    dwarf: &Dwarf<'data>,
    header: gimli::UnitHeader<Slice<'data>>,
    headers: &[gimli::UnitHeader<Slice<'data>>],
    texts: &mut Texts,
    read: impl Fn(Entry<'_, 'data>, &Abbreviation, &mut EntriesRaw<'_, Slice<'data>>) -> gimli::Result<T>,
    mut found: impl FnMut(T, &mut dyn FnMut() -> Option<Arc<str>>),
) -> gimli::Result<()> {
    let unit = Rc::new(dwarf.unit(header)?);
    let entry = Entry { dwarf, unit: &unit, headers };
    let mut names = FunctionNames::default();
    let mut naming = names.in_unit(entry, Scopes::of(&unit)?);
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != gimli::DW_TAG_inlined_subroutine {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let call = read(entry, abbreviation, &mut entries)?;
        found(call, &mut || naming.function(offset, texts));
    }
    Ok(())
}

/// The code of an inlined call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InlinedCall {
    /// Address of its first instruction.
    pub entry: u64,
    /// Its addresses.
    pub code: Vec<Range<u64>>,
}

/// The inlined calls that hold these addresses and are of the functions with these names.
pub(super) fn at(dwarf: &Dwarf<'_>, texts: &mut Texts, places: &[(u64, &str)]) -> Vec<Option<InlinedCall>> {
    let mut found = vec![None; places.len()];
    let mut addresses: Vec<u64> = places.iter().map(|(address, _)| *address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let units = Units::of(dwarf, &addresses, &mut Losses::default());
    for hits in units.hits.chunk_by(|one, other| one.unit == other.unit) {
        // What a damaged unit had until then is right.
        let _ = each_call(dwarf, units.headers[hits[0].unit], &units.headers, texts, code_ranges, |code, name| {
            let CodeRanges { entry, ranges } = code;
            let holds = |address: u64| ranges.iter().any(|range| range.contains(&address));
            for (index, _) in places.iter().enumerate().filter(|(_, (address, _))| holds(*address)) {
                if name().is_some_and(|name| *name == *places[index].1) {
                    let first = entry.or_else(|| ranges.first().map(|range| range.start));
                    found[index] = first.map(|entry| InlinedCall { entry, code: ranges.clone() });
                }
            }
        });
    }
    found
}

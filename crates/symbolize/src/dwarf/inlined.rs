//! Where functions are inlined: the first address of each inlined call.

use std::rc::Rc;

use super::names::FunctionNames;
use super::unit::{Entry, Scopes, first_address};
use super::{Dwarf, Slice};
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
        let _ = calls_in(dwarf, *header, &headers, texts, wanted, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn calls_in<'data>(
    dwarf: &Dwarf<'data>,
    header: gimli::UnitHeader<Slice<'data>>,
    headers: &[gimli::UnitHeader<Slice<'data>>],
    texts: &mut Texts,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut Vec<u64>,
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
        let address = first_address(entry, abbreviation, &mut entries)?;
        if let Some(address) = address
            && naming.function(offset, texts).is_some_and(|name| wanted(&name))
        {
            found.push(address);
        }
    }
    Ok(())
}

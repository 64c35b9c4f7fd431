//! Which functions are at an address: one walk over the entries of a compilation unit.

use std::rc::Rc;

use gimli::{Abbreviation, Attribute, AttributeValue, DwTag, EntriesRaw, UnitHeader, UnitOffset};

use super::{Dwarf, Slice, Unit, indices_in};

/// A unit with what it may refer to.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a, 'data> {
    pub dwarf: &'a Dwarf<'data>,
    pub unit: &'a Rc<Unit<'data>>,
    /// All units of the file, by offset.
    pub headers: &'a [UnitHeader<Slice<'data>>],
}

/// A function at an address: the code's own, or one that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// Its entry in the unit.
    pub function: UnitOffset,
    /// Whether it was inlined into the one before.
    pub inlined: bool,
    /// Index of the source file in which it was called.
    pub call_file: Option<u64>,
    /// Line at which it was called.
    pub call_line: Option<u32>,
}

/// What a walk over a unit finds.
pub(super) struct Chains {
    /// Per address, the functions there, outermost first.
    pub chains: Vec<Vec<Link>>,
    /// Where the unit's scopes lie.
    pub scopes: Scopes,
}

/// The entries of a unit that can be part of a qualified name, and how they nest.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// Ascending.
    entries: Vec<Scope>,
}

/// An entry that can be part of a qualified name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub offset: UnitOffset,
    pub tag: DwTag,
    /// Index of the scope around it.
    pub parent: Option<u32>,
}

impl Scopes {
    /// The scopes of a whole unit.
    pub(super) fn of(unit: &Unit<'_>) -> gimli::Result<Self> {
        let mut walk = ScopeWalk::default();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            if let Some(abbreviation) = entries.read_abbreviation()? {
                walk.enter(offset, depth, abbreviation.tag());
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
        Ok(walk.scopes)
    }

    /// The scope at this entry.
    pub(super) fn index_of(&self, offset: UnitOffset) -> Option<usize> {
        self.entries.binary_search_by_key(&offset, |scope| scope.offset).ok()
    }

    pub(super) fn get(&self, index: usize) -> Scope {
        self.entries[index]
    }

    /// The scopes directly inside one, in order; the outermost ones for `None`.
    pub(super) fn inside(&self, parent: Option<u32>) -> impl Iterator<Item = Scope> + '_ {
        let first = parent.map_or(0, |parent| parent as usize + 1);
        let below = self.entries[first..].iter().copied().take_while(move |scope| scope.parent >= parent);
        below.filter(move |scope| scope.parent == parent)
    }
}

#[derive(Default)]
struct ScopeWalk {
    scopes: Scopes,
    /// Depth and index of the scopes around the present entry.
    around: Vec<(isize, u32)>,
}

impl ScopeWalk {
    fn enter(&mut self, offset: UnitOffset, depth: isize, tag: DwTag) {
        if !is_scope(tag) {
            return;
        }
        while self.around.pop_if(|(of_scope, _)| *of_scope >= depth).is_some() {}
        let Ok(index) = u32::try_from(self.scopes.entries.len()) else { return };
        let parent = self.around.last().map(|&(_, index)| index);
        self.scopes.entries.push(Scope { offset, tag, parent });
        self.around.push((depth, index));
    }
}

fn is_scope(tag: DwTag) -> bool {
    tag == gimli::DW_TAG_subprogram || tag == gimli::DW_TAG_namespace || tag == gimli::DW_TAG_module || is_type(tag)
}

pub(super) fn is_type(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_interface_type
    )
}

/// Finds the functions at each of `addresses` (ascending).
pub(super) fn chains_at(entry: Entry<'_, '_>, addresses: &[u64]) -> gimli::Result<Chains> {
    let mut walk = ChainWalk {
        entry,
        addresses,
        chains: vec![Vec::new(); addresses.len()],
        around: Vec::new(),
        scopes: ScopeWalk::default(),
    };
    walk.run()?;
    Ok(Chains { chains: walk.chains, scopes: walk.scopes.scopes })
}

struct ChainWalk<'a, 'data> {
    entry: Entry<'a, 'data>,
    addresses: &'a [u64],
    chains: Vec<Vec<Link>>,
    /// The functions, own or inlined, around the present entry, with their depth. A function that none of the
    /// addresses is in stands here too: what is inlined in a function inside another belongs to the inner one.
    around: Vec<(isize, Link)>,
    scopes: ScopeWalk,
}

impl<'data> ChainWalk<'_, 'data> {
    fn run(&mut self) -> gimli::Result<()> {
        let unit = self.entry.unit;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let tag = abbreviation.tag();
            self.scopes.enter(offset, depth, tag);
            // Functions can be inside functions and types (lambdas are), so nothing can be skipped as a whole.
            match tag {
                gimli::DW_TAG_subprogram => self.subprogram(offset, depth, abbreviation, &mut entries)?,
                gimli::DW_TAG_inlined_subroutine => self.inlined(offset, depth, abbreviation, &mut entries)?,
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        Ok(())
    }

    fn leave_to(&mut self, depth: isize) {
        while self.around.pop_if(|(of_function, _)| *of_function >= depth).is_some() {}
    }

    fn subprogram(
        &mut self,
        offset: UnitOffset,
        depth: isize,
        abbreviation: &Abbreviation,
        entries: &mut EntriesRaw<'_, Slice<'data>>,
    ) -> gimli::Result<()> {
        self.leave_to(depth);
        let link = Link { function: offset, inlined: false, call_file: None, call_line: None };
        self.around.push((depth, link));
        if !has_code(abbreviation) {
            return entries.skip_attributes(abbreviation.attributes());
        }
        let attributes = Attributes::read(self.entry, abbreviation, entries)?;
        self.for_each_index(&attributes, |chain, _| {
            // Two functions at one place were folded into one by the linker; the first is as good as the other.
            if chain.is_empty() {
                chain.push(link);
            }
        })
    }

    fn inlined(
        &mut self,
        offset: UnitOffset,
        depth: isize,
        abbreviation: &Abbreviation,
        entries: &mut EntriesRaw<'_, Slice<'data>>,
    ) -> gimli::Result<()> {
        self.leave_to(depth);
        let attributes = Attributes::read(self.entry, abbreviation, entries)?;
        let (call_file, call_line) = (attributes.call_file, attributes.call_line);
        self.around.push((depth, Link { function: offset, inlined: true, call_file, call_line }));
        self.for_each_index(&attributes, |chain, around| {
            // The ranges of what is around may leave out the address, though it is in them; gcc writes such.
            let Some(last) = chain.last().copied() else { return };
            let inlined = around.iter().rev().take_while(|(_, link)| link.inlined).count();
            let known = around.len() - inlined;
            let from = known.saturating_sub(1);
            if let Some(at) = around[from..].iter().position(|(_, link)| *link == last) {
                chain.extend(around[from + at + 1..].iter().map(|&(_, link)| link));
            }
        })
    }

    fn for_each_index(
        &mut self,
        attributes: &Attributes<'data>,
        mut found: impl FnMut(&mut Vec<Link>, &[(isize, Link)]),
    ) -> gimli::Result<()> {
        let mut in_range = |begin: u64, end: u64| {
            // What the linker dropped is left at address 0, where no code can be.
            if begin != 0 {
                let chains = &mut self.chains[indices_in(self.addresses, begin, end)];
                chains.iter_mut().for_each(|chain| found(chain, &self.around));
            }
        };
        let Entry { dwarf, unit, .. } = self.entry;
        if let Some(value) = attributes.ranges {
            let Some(mut ranges) = dwarf.attr_ranges(unit, value)? else { return Ok(()) };
            while let Some(range) = ranges.next()? {
                in_range(range.begin, range.end);
            }
            return Ok(());
        }
        match (attributes.low_pc, attributes.size, attributes.high_pc) {
            (Some(begin), Some(size), _) => in_range(begin, begin.saturating_add(size)),
            (Some(begin), None, Some(end)) => in_range(begin, end),
            _ => {}
        }
        Ok(())
    }
}

fn has_code(abbreviation: &Abbreviation) -> bool {
    abbreviation.attributes().iter().any(|spec| matches!(spec.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges))
}

/// What a function's entry says about its code.
#[derive(Default)]
struct Attributes<'data> {
    low_pc: Option<u64>,
    high_pc: Option<u64>,
    size: Option<u64>,
    ranges: Option<AttributeValue<Slice<'data>>>,
    call_file: Option<u64>,
    call_line: Option<u32>,
}

impl<'data> Attributes<'data> {
    fn read(
        entry: Entry<'_, 'data>,
        abbreviation: &Abbreviation,
        entries: &mut EntriesRaw<'_, Slice<'data>>,
    ) -> gimli::Result<Self> {
        let mut attributes = Self::default();
        for spec in abbreviation.attributes() {
            attributes.add(entry, entries.read_attribute(*spec)?)?;
        }
        Ok(attributes)
    }

    fn add(
        &mut self,
        Entry { dwarf, unit, .. }: Entry<'_, 'data>,
        attribute: Attribute<Slice<'data>>,
    ) -> gimli::Result<()> {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low_pc = dwarf.attr_address(unit, attribute.value())?,
            gimli::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high_pc = dwarf.attr_address(unit, value)?,
            },
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            gimli::DW_AT_call_file => {
                self.call_file = match attribute.value() {
                    AttributeValue::FileIndex(index) => Some(index),
                    value => value.udata_value(),
                };
            }
            gimli::DW_AT_call_line => {
                self.call_line = attribute.udata_value().and_then(|line| u32::try_from(line).ok())
            }
            _ => {}
        }
        Ok(())
    }
}

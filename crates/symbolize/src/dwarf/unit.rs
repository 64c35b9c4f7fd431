//! Finds the functions at an address, in one walk over the entries of a compilation unit.

use std::ops::Range;
use std::rc::Rc;

use gimli::{Abbreviation, Attribute, AttributeValue, DwTag, EntriesRaw, UnitHeader, UnitOffset};

use super::{Dwarf, Slice, Unit, indices_in};

/// A unit and the data that it refers to.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a, 'data> {
    pub dwarf: &'a Dwarf<'data>,
    pub unit: &'a Rc<Unit<'data>>,
    /// All units of the file by offset.
    pub headers: &'a [UnitHeader<Slice<'data>>],
}

/// A function at an address, inlined or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// Its entry in the unit.
    pub function: UnitOffset,
    /// Whether it is inlined into the previous one.
    pub inlined: bool,
    /// Index of the source file of the call.
    pub call_file: Option<u64>,
    /// Line of the call.
    pub call_line: Option<u32>,
}

/// The result of a walk over a unit.
pub(super) struct Chains {
    /// Functions at each address, outermost first.
    pub chains: Vec<Vec<Link>>,
    /// The unit's scopes.
    pub scopes: Scopes,
}

/// Entries that can be part of a qualified name, and their nesting.
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
    /// Index of the enclosing scope.
    pub parent: Option<u32>,
}

impl Scopes {
    /// Collects the scopes of a unit.
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

    /// Index of the scope at an entry.
    pub(super) fn index_of(&self, offset: UnitOffset) -> Option<usize> {
        self.entries.binary_search_by_key(&offset, |scope| scope.offset).ok()
    }

    pub(super) fn get(&self, index: usize) -> Scope {
        self.entries[index]
    }

    /// Direct children of a scope in order; the top level for `None`.
    pub(super) fn inside(&self, parent: Option<u32>) -> impl Iterator<Item = Scope> + '_ {
        let first = parent.map_or(0, |parent| parent as usize + 1);
        let below = self.entries[first..].iter().copied().take_while(move |scope| scope.parent >= parent);
        below.filter(move |scope| scope.parent == parent)
    }
}

#[derive(Default)]
struct ScopeWalk {
    scopes: Scopes,
    /// Depth and index of the enclosing scopes.
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
    /// Depth and functions around the current entry, inlined ones included. Functions without any of the addresses are
    /// included: code inlined into an inner function belongs to the inner one.
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
            // Blocks end what is before them, too: GCC puts the code behind an inlined call into a block beside it.
            self.leave_to(depth);
            // Functions occur inside functions and types (lambdas), so no subtree can be skipped.
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
        let link = Link { function: offset, inlined: false, call_file: None, call_line: None };
        self.around.push((depth, link));
        if !has_code(abbreviation) {
            return entries.skip_attributes(abbreviation.attributes());
        }
        let attributes = Attributes::read(self.entry, abbreviation, entries)?;
        self.for_each_index(&attributes, |chain, _| {
            // The linker folded two functions into one; either name is right.
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
        let attributes = Attributes::read(self.entry, abbreviation, entries)?;
        let (call_file, call_line) = (attributes.call_file, attributes.call_line);
        self.around.push((depth, Link { function: offset, inlined: true, call_file, call_line }));
        self.for_each_index(&attributes, |chain, around| {
            // An enclosing range may omit the address although its child has it; GCC emits such ranges.
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
        attributes.each_range(self.entry, |begin, end| {
            let chains = &mut self.chains[indices_in(self.addresses, begin, end)];
            chains.iter_mut().for_each(|chain| found(chain, &self.around));
        })
    }
}

/// Where the code of an entry begins. Reads the entry's attributes.
pub(super) fn first_address<'data>(
    entry: Entry<'_, 'data>,
    abbreviation: &Abbreviation,
    entries: &mut EntriesRaw<'_, Slice<'data>>,
) -> gimli::Result<Option<u64>> {
    let attributes = Attributes::read(entry, abbreviation, entries)?;
    let Some(ranges) = attributes.ranges else { return Ok(attributes.low_pc.filter(|&address| address != 0)) };
    let Some(mut ranges) = entry.dwarf.attr_ranges(entry.unit, ranges)? else { return Ok(None) };
    Ok(ranges.next()?.map(|range| range.begin).filter(|&address| address != 0))
}

/// Where the code of an entry is.
pub(super) struct CodeRanges {
    /// Its first instruction, if the compiler says which.
    pub entry: Option<u64>,
    /// Ascending or not; without what the linker dropped.
    pub ranges: Vec<Range<u64>>,
}

/// Where the code of an entry is. Reads the entry's attributes.
pub(super) fn code_ranges<'data>(
    entry: Entry<'_, 'data>,
    abbreviation: &Abbreviation,
    entries: &mut EntriesRaw<'_, Slice<'data>>,
) -> gimli::Result<CodeRanges> {
    let attributes = Attributes::read(entry, abbreviation, entries)?;
    let mut ranges = Vec::new();
    attributes.each_range(entry, |begin, end| ranges.push(begin..end))?;
    let first = attributes.entry_offset.zip(attributes.low_pc).map(|(offset, low)| low.saturating_add(offset));
    Ok(CodeRanges { entry: attributes.entry_pc.or(first), ranges })
}

fn has_code(abbreviation: &Abbreviation) -> bool {
    abbreviation.attributes().iter().any(|spec| matches!(spec.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges))
}

/// Attributes that describe a function's code.
#[derive(Default)]
struct Attributes<'data> {
    low_pc: Option<u64>,
    high_pc: Option<u64>,
    size: Option<u64>,
    ranges: Option<AttributeValue<Slice<'data>>>,
    /// Address of the first instruction.
    entry_pc: Option<u64>,
    /// The same from the lowest address on.
    entry_offset: Option<u64>,
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

    /// Calls `each` with the first address and the end of each part of the code.
    fn each_range(
        &self,
        Entry { dwarf, unit, .. }: Entry<'_, 'data>,
        mut each: impl FnMut(u64, u64),
    ) -> gimli::Result<()> {
        let mut in_range = |begin: u64, end: u64| {
            // The linker leaves dropped functions at address 0.
            if begin != 0 {
                each(begin, end);
            }
        };
        if let Some(value) = self.ranges {
            let Some(mut ranges) = dwarf.attr_ranges(unit, value)? else { return Ok(()) };
            while let Some(range) = ranges.next()? {
                in_range(range.begin, range.end);
            }
            return Ok(());
        }
        match (self.low_pc, self.size, self.high_pc) {
            (Some(begin), Some(size), _) => in_range(begin, begin.saturating_add(size)),
            (Some(begin), None, Some(end)) => in_range(begin, end),
            _ => {}
        }
        Ok(())
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
            gimli::DW_AT_entry_pc => match attribute.value() {
                AttributeValue::Udata(offset) => self.entry_offset = Some(offset),
                value => self.entry_pc = dwarf.attr_address(unit, value)?,
            },
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

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use std::process::Command;

    use object::{Object, ObjectSymbol};

    use crate::{Code, Symbolizer};

    /// GCC puts the loop into a block beside the inlined `clear`, not into it.
    const SOURCE: &str = "
        #include <vector>
        struct Box {
            float low[3], high[3];
            bool overlaps(const Box &other) const {
                for (int axis = 0; axis < 3; ++axis)
                    if (high[axis] < other.low[axis] || other.high[axis] < low[axis]) return false;
                return true;
            }
        };
        extern \"C\" __attribute__((noinline)) void pairs(const std::vector<Box> &boxes, std::vector<int> &found) {
            found.clear();
            for (unsigned long i = 0; i < boxes.size(); ++i)
                for (unsigned long j = i + 1; j < boxes.size(); ++j)
                    if (boxes[i].overlaps(boxes[j])) found.push_back(int(j));
        }
        int main() { std::vector<Box> boxes; std::vector<int> found; pairs(boxes, found); return int(found.size()); }
    ";

    #[test]
    fn code_in_a_block_beside_an_inlined_call_is_not_inside_that_call() {
        const NAME: &str = "code_in_a_block_beside_an_inlined_call_is_not_inside_that_call";
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("pairs.cpp"), folder.path().join("pairs"));
        std::fs::write(&source, SOURCE).unwrap();
        let compiled = Command::new("g++").args(["-O2", "-g", "-o"]).arg(&program).arg(&source).status();
        let Ok(compiled) = compiled else { return println!("skipped: {NAME}: no g++ to build the program") };
        assert!(compiled.success());
        let bytes = std::fs::read(&program).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let pairs = elf.symbols().find(|symbol| symbol.name() == Ok("pairs")).unwrap();
        let addresses: Vec<u64> = (pairs.address()..pairs.address() + pairs.size()).collect();
        let named = Symbolizer::default().name(&Code::file(program.to_str().unwrap()), &addresses);
        let mut compared = 0;
        for place in &named.places {
            let names: Vec<&str> = place.frames.iter().map(|frame| &*frame.function).collect();
            if names.last().is_some_and(|name| name.contains("overlaps")) {
                assert_eq!(names.len(), 2, "{names:?}");
                compared += 1;
            }
        }
        assert!(compared > 0, "overlaps is inlined into pairs");
    }
}

//! Unwind tables of an ELF image, in the form that framehop reads.

mod debug_frame;
mod go_stacks;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::registers::{GENERAL, PRESERVED, Saved, SavedRegisters};
use framehop::ExplicitModuleSectionInfo;
use gimli::{
    BaseAddresses, CieOrFde, EhFrame, FrameDescriptionEntry, LittleEndian, RegisterRule, UnwindContext,
    UnwindSection as _,
};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadRef, elf};
use stepscope_symbolize::{GO_FUNCTIONS_SECTIONS, decompressed, go_text_start};

/// What is needed to unwind through a module, copied out of it: a mapped file can shrink while it is read, which would
/// kill the reader; a copy cannot.
#[derive(Debug, Clone, Default)]
pub struct UnwindTables {
    base: u64,
    /// Where the program starts, by the file's header.
    start: u64,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    /// Functions of Go's runtime that begin a stack or leave one.
    go: Vec<(Range<u64>, TableEntry)>,
}

/// A function of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableEntry {
    /// An ordinary function.
    Function,
    /// The code to which signal handlers return (augmentation `S`).
    SignalReturn,
    /// The first function of a thread or of a program. Nothing calls it.
    Start,
    /// A function that calls another one on another stack. Only frame pointers lead back.
    SwitchesStack,
    /// A function that leaves a stack for that of a scheduler, which works for nobody.
    Scheduler,
}

/// The code at a program's start is short: it calls a function in C.
const START_BYTES: u64 = 32;

/// A loadable part of a file.
#[derive(Debug, Clone)]
struct Segment {
    file: Range<u64>,
    address: u64,
    executable: bool,
}

impl UnwindTables {
    /// Reads the tables of a 64-bit ELF image. `None` if it is something else, or damaged.
    pub fn of_elf<'data, R: ReadRef<'data>>(data: R) -> Option<Self> {
        let file = ElfFile64::<Endianness, R>::parse(data).ok()?;
        let endian = file.endian();
        let segments: Vec<Segment> = (file.elf_header().program_headers(endian, data).ok()?.iter())
            .filter(|header| header.p_type(endian) == elf::PT_LOAD)
            .filter_map(|header| {
                let offset = header.p_offset(endian);
                Some(Segment {
                    file: offset..offset.checked_add(header.p_filesz(endian))?,
                    address: header.p_vaddr(endian),
                    executable: header.p_flags(endian).contains(elf::PF_X),
                })
            })
            .collect();
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let bytes = |name: &str| {
            let bytes = decompressed(file.section_by_name(name)?.compressed_data().ok()?)?;
            Some(Arc::from(&*bytes))
        };
        let base = segments.iter().map(|segment| segment.address & !0xfff).min().unwrap_or(0);
        let mut sections = ExplicitModuleSectionInfo {
            base_svma: base,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            ..Default::default()
        };
        let debug_frame: Option<Arc<[u8]>> = bytes(".debug_frame");
        let go = GO_FUNCTIONS_SECTIONS.iter().find_map(|name| bytes(name));
        let go = go.map(|table| go_stacks::of(&table, go_text_start(&file), debug_frame.is_some())).unwrap_or_default();
        let debug_frame = debug_frame::to_eh_frame(debug_frame.as_deref().unwrap_or(&go.debug_frame));
        if !debug_frame.is_empty() {
            prepend(&mut sections, debug_frame);
        }
        if !has_sound_header(&sections) {
            add_header(&mut sections);
        }
        let start = file.elf_header().e_entry(endian);
        Some(Self { base, start, segments, sections, go: go.entries })
    }

    /// The module for framehop, where the file's bytes from `offset` are mapped at `mapped`.
    pub(crate) fn module(&self, mapped: Range<u64>, offset: u64) -> Option<framehop::Module<Arc<[u8]>>> {
        let base = self.mapped_base(&mapped, offset)?;
        Some(framehop::Module::new(String::new(), mapped, base, self.sections.clone()))
    }

    /// The function at an address, where the file's bytes from `offset` are mapped at `mapped`: from the start of its
    /// entry in `.eh_frame_hdr` to that of the next.
    pub(crate) fn function(&self, mapped: Range<u64>, offset: u64, address: u64) -> Option<Range<u64>> {
        let table = FunctionTable::parse(self.sections.eh_frame_hdr.as_deref()?)?;
        let header_svma = self.sections.eh_frame_hdr_svma.as_ref()?.start;
        let header = self.mapped_base(&mapped, offset)?.checked_add(header_svma.checked_sub(self.base)?)?;
        table.function(header, address, mapped.end)
    }

    /// The entry that covers an address, where the file's bytes from `offset` are mapped at `mapped`.
    pub(crate) fn entry(&self, mapped: &Range<u64>, offset: u64, address: u64) -> Option<TableEntry> {
        let address = address.wrapping_sub(self.mapped_base(mapped, offset)?).wrapping_add(self.base);
        if let Some((_, entry)) = self.go.iter().find(|(function, _)| function.contains(&address)) {
            return Some(*entry);
        }
        let covering = self.covering_entry(address);
        let starts = || (self.start..self.start.saturating_add(START_BYTES)).contains(&address);
        covering.or_else(|| starts().then_some(TableEntry::Start))
    }

    /// Where the function at an address saved its caller's registers, where the file's bytes from `offset` are mapped at
    /// `mapped`.
    pub(crate) fn saved_registers(&self, mapped: &Range<u64>, offset: u64, address: u64) -> Option<SavedRegisters> {
        let address = address.wrapping_sub(self.mapped_base(mapped, offset)?).wrapping_add(self.base);
        let (bases, frames) = (bases(&self.sections), eh_frame(self.sections.eh_frame.as_deref()?));
        let entry = self.fde(address, &bases, &frames)?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&frames, &bases, &mut context, address).ok()?;
        let saved = |number| match row.register(gimli::Register(number)).unwrap_or(RegisterRule::Undefined) {
            RegisterRule::Undefined | RegisterRule::SameValue => Saved::Kept,
            RegisterRule::Offset(offset) => Saved::At(offset),
            _ => Saved::Unknown,
        };
        let mut of_each = [Saved::Unknown; PRESERVED];
        of_each.iter_mut().zip(GENERAL).for_each(|(of_one, (number, _))| *of_one = saved(number));
        Some(of_each)
    }

    fn covering_entry(&self, address: u64) -> Option<TableEntry> {
        let frames = eh_frame(self.sections.eh_frame.as_deref()?);
        let entry = self.fde(address, &bases(&self.sections), &frames)?;
        Some(if entry.is_signal_trampoline() { TableEntry::SignalReturn } else { TableEntry::Function })
    }

    /// The description of the function at an address of the file.
    fn fde<'a>(
        &self,
        address: u64,
        bases: &BaseAddresses,
        frames: &EhFrame<Bytes<'a>>,
    ) -> Option<FrameDescriptionEntry<Bytes<'a>>> {
        let table = FunctionTable::parse(self.sections.eh_frame_hdr.as_deref()?)?;
        let place = table.entry(self.sections.eh_frame_hdr_svma.as_ref()?.start, address)?;
        let place = place.checked_sub(self.sections.eh_frame_svma.as_ref()?.start)?;
        let entry = frames.fde_from_offset(bases, (place as usize).into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(address).then_some(entry)
    }

    /// Where the file's address `base` is in a process.
    fn mapped_base(&self, mapped: &Range<u64>, offset: u64) -> Option<u64> {
        let covers = |segment: &&Segment| (segment.file.start & !0xfff..segment.file.end).contains(&offset);
        let segment = self.segments.iter().filter(covers).max_by_key(|segment| segment.executable)?;
        let base = mapped
            .start
            .wrapping_sub(offset)
            .wrapping_add(segment.file.start)
            .wrapping_sub(segment.address)
            .wrapping_add(self.base);
        (base <= mapped.start).then_some(base)
    }
}

type Bytes<'a> = gimli::EndianSlice<'a, LittleEndian>;
type Sections = ExplicitModuleSectionInfo<Arc<[u8]>>;

fn bases(sections: &Sections) -> BaseAddresses {
    let start = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |range| range.start);
    BaseAddresses::default()
        .set_eh_frame(start(&sections.eh_frame_svma))
        .set_eh_frame_hdr(start(&sections.eh_frame_hdr_svma))
        .set_text(start(&sections.text_svma))
        .set_got(start(&sections.got_svma))
}

fn eh_frame(bytes: &[u8]) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

/// Puts entries in front of `.eh_frame`, which may end in the middle by an entry of length zero.
///
/// What follows keeps its addresses, because the section then starts earlier. Its header no longer fits.
fn prepend(sections: &mut Sections, mut entries: Vec<u8>) {
    if let Some(range) = &mut sections.eh_frame_svma {
        range.start = range.start.wrapping_sub(entries.len() as u64);
    }
    entries.extend(sections.eh_frame.as_deref().unwrap_or_default());
    sections.eh_frame_svma.get_or_insert(0..entries.len() as u64);
    sections.eh_frame = Some(entries.into());
    sections.eh_frame_hdr = None;
}

/// Whether the header is of this `.eh_frame`, and all its entries are in it.
fn has_sound_header(sections: &Sections) -> bool {
    let (Some(header), Some(range), Some(header_range)) =
        (&sections.eh_frame_hdr, &sections.eh_frame_svma, &sections.eh_frame_hdr_svma)
    else {
        return false;
    };
    let Some(table) = FunctionTable::parse(header) else { return false };
    let section = header[4..8].first_chunk().map(|bytes| i32::from_le_bytes(*bytes)).unwrap_or_default();
    let section = header_range.start.wrapping_add(4).wrapping_add_signed(section.into());
    let mut places = table.0.iter().map(|entry| FunctionTable::place(header_range.start, entry));
    section == range.start && places.all(|place| range.contains(&place))
}

/// Makes the sorted table of functions that linkers write to `.eh_frame_hdr`.
fn add_header(sections: &mut Sections) {
    let Some(section) = &sections.eh_frame else { return };
    let bases = bases(sections);
    let section_start = sections.eh_frame_svma.as_ref().map_or(0, |range| range.start);
    let header_start = sections.eh_frame_hdr_svma.as_ref().map_or(sections.base_svma, |range| range.start);
    let mut functions = Vec::new();
    let section = eh_frame(section);
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else { continue };
        let offset = |address: u64| i32::try_from(address.wrapping_sub(header_start) as i64).ok();
        let place = section_start.wrapping_add(entry.offset() as u64);
        // Functions that the linker dropped keep an entry with the address zero.
        if let (1.., Some(start), Some(place)) =
            (entry.initial_address(), offset(entry.initial_address()), offset(place))
        {
            functions.push((start, place));
        }
    }
    // `.eh_frame` lies behind, and covers every instruction of a function.
    functions.sort_by_key(|&(start, place)| (start, Reverse(place)));
    functions.dedup_by_key(|&mut (start, _)| start);
    let mut header = FunctionTable::HEADER.to_vec();
    // The place of `.eh_frame`, from this field.
    header.extend((section_start.wrapping_sub(header_start + 4) as i32).to_le_bytes());
    header.extend((functions.len() as u32).to_le_bytes());
    for (start, place) in functions {
        header.extend(start.to_le_bytes());
        header.extend(place.to_le_bytes());
    }
    sections.eh_frame_hdr_svma = Some(header_start..header_start + header.len() as u64);
    sections.eh_frame_hdr = Some(header.into());
}

/// The sorted table of functions in `.eh_frame_hdr` (Linux Standard Base, 10.6.2).
struct FunctionTable<'a>(&'a [[u8; 8]]);

impl<'a> FunctionTable<'a> {
    /// Version 1 in the encoding that every linker writes: 4-byte offsets from the section's start.
    const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

    fn parse(section: &'a [u8]) -> Option<Self> {
        let rest = section.strip_prefix(&Self::HEADER)?.get(4..)?;
        let (count, entries) = rest.split_first_chunk()?;
        let (entries, _) = entries.as_chunks();
        entries.get(..u32::from_le_bytes(*count) as usize).map(Self)
    }

    fn start(section: u64, entry: &[u8; 8]) -> u64 {
        let offset = i32::from_le_bytes(*entry.first_chunk().expect("eight bytes"));
        section.wrapping_add_signed(i64::from(offset))
    }

    /// The address of an entry's description.
    fn place(section: u64, entry: &[u8; 8]) -> u64 {
        let offset = i32::from_le_bytes(*entry.last_chunk().expect("eight bytes"));
        section.wrapping_add_signed(i64::from(offset))
    }

    /// The address of the description of the function that starts at an address, or last before it.
    fn entry(&self, section: u64, address: u64) -> Option<u64> {
        let next = self.0.partition_point(|entry| Self::start(section, entry) <= address);
        Some(Self::place(section, self.0.get(next.checked_sub(1)?)?))
    }

    /// The function at an address. `section` is the section's own address; the last function ends at `end`.
    fn function(&self, section: u64, address: u64, end: u64) -> Option<Range<u64>> {
        let start = |entry: &[u8; 8]| Self::start(section, entry);
        let next = self.0.partition_point(|entry| start(entry) <= address);
        let from = start(self.0.get(next.checked_sub(1)?)?);
        let to = self.0.get(next).map_or(end, start);
        (from..to).contains(&address).then_some(from..to)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn compressed_tables_are_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("main.c"), "int f(int x) { return x + 1; } int main(void) { return f(1); }")
            .unwrap();
        let tables = |name: &str, compression: &str| {
            let mut gcc = Command::new("gcc");
            gcc.args(["-g", "-fno-asynchronous-unwind-tables", "main.c", "-o", name, compression]);
            if !gcc.current_dir(folder.path()).output().is_ok_and(|output| output.status.success()) {
                return None;
            }
            Some(UnwindTables::of_elf(&*fs::read(folder.path().join(name)).unwrap()).unwrap().sections.eh_frame)
        };
        // Not every linker has both ways to compress.
        let Some(plain) = tables("plain", "-Wl,--compress-debug-sections=none") else { return };
        for kind in ["zlib", "zstd"] {
            let Some(packed) = tables(kind, &format!("-Wl,--compress-debug-sections={kind}")) else { continue };
            assert!(plain == packed, "{kind}");
        }
    }

    #[test]
    fn a_function_reaches_to_the_next_one_in_the_table() {
        let mut section = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0];
        for offset in [-0x300_i32, 0, -0x100, 0] {
            section.extend(offset.to_le_bytes());
        }
        let table = FunctionTable::parse(&section).unwrap();
        let function = |address| table.function(0x1000, address, 0xfff);
        assert_eq!(function(0xcff), None);
        assert_eq!([0xd00, 0xeff].map(function), [Some(0xd00..0xf00), Some(0xd00..0xf00)]);
        assert_eq!(function(0xf80), Some(0xf00..0xfff));
        assert_eq!(function(0xfff), None);
        assert!(FunctionTable::parse(&section[..20]).is_none() && FunctionTable::parse(&[1, 0, 0, 0]).is_none());
    }
}

//! Unwind tables of an ELF image, in the form that framehop reads.

use std::ops::Range;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadRef, elf};

/// What is needed to unwind through a module, copied out of it: a mapped file can shrink while it is read, which would
/// kill the reader; a copy cannot.
#[derive(Debug, Clone, Default)]
pub struct UnwindTables {
    base: u64,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
}

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
            let bytes = file.section_by_name(name)?.uncompressed_data().ok()?;
            (!bytes.is_empty()).then(|| Arc::from(&*bytes))
        };
        let base = segments.iter().map(|segment| segment.address & !0xfff).min().unwrap_or(0);
        let sections = ExplicitModuleSectionInfo {
            base_svma: base,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            debug_frame: if file.section_by_name(".eh_frame").is_some() { None } else { bytes(".debug_frame") },
            ..Default::default()
        };
        Some(Self { base, segments, sections })
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

/// The sorted table of functions in `.eh_frame_hdr` (Linux Standard Base, 10.6.2).
struct FunctionTable<'a>(&'a [[u8; 8]]);

impl<'a> FunctionTable<'a> {
    /// Parses the section in the encoding that every linker writes: 4-byte offsets from the section's start.
    fn parse(section: &'a [u8]) -> Option<Self> {
        const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let rest = section.strip_prefix(&HEADER)?.get(4..)?;
        let (count, entries) = rest.split_first_chunk()?;
        let (entries, _) = entries.as_chunks();
        entries.get(..u32::from_le_bytes(*count) as usize).map(Self)
    }

    /// The function at an address. `section` is the section's own address; the last function ends at `end`.
    fn function(&self, section: u64, address: u64, end: u64) -> Option<Range<u64>> {
        let start = |entry: &[u8; 8]| {
            let offset = i32::from_le_bytes(*entry.first_chunk().expect("eight bytes"));
            section.wrapping_add_signed(i64::from(offset))
        };
        let next = self.0.partition_point(|entry| start(entry) <= address);
        let from = start(self.0.get(next.checked_sub(1)?)?);
        let to = self.0.get(next).map_or(end, start);
        (from..to).contains(&address).then_some(from..to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

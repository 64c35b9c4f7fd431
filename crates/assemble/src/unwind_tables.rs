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
        let covers = |segment: &&Segment| (segment.file.start & !0xfff..segment.file.end).contains(&offset);
        let segment = self.segments.iter().filter(covers).max_by_key(|segment| segment.executable)?;
        // Where address `base` of the file is in the process.
        let base = mapped
            .start
            .wrapping_sub(offset)
            .wrapping_add(segment.file.start)
            .wrapping_sub(segment.address)
            .wrapping_add(self.base);
        (base <= mapped.start).then(|| framehop::Module::new(String::new(), mapped, base, self.sections.clone()))
    }
}

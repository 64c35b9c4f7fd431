//! Starts of functions, from the unwind tables that even stripped files keep.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection};

use crate::image;

type Slice<'data> = EndianSlice<'data, RunTimeEndian>;

/// The unwind tables of a file.
pub(crate) struct FunctionStarts<'data> {
    frames: Cow<'data, [u8]>,
    header: Option<Cow<'data, [u8]>>,
    bases: BaseAddresses,
    endian: RunTimeEndian,
    address_size: u8,
    /// Extents of all functions by start, for files without a search table.
    extents: std::cell::OnceCell<Vec<Range<u64>>>,
}

impl<'data> FunctionStarts<'data> {
    /// The tables of a file, if it has any.
    pub(crate) fn of(elf: &object::File<'data>) -> Option<Self> {
        let address = |name: &str| elf.section_by_name(name).map(|section| section.address());
        let mut bases = BaseAddresses::default().set_eh_frame(address(".eh_frame")?);
        for (name, set) in [
            (".eh_frame_hdr", BaseAddresses::set_eh_frame_hdr as fn(BaseAddresses, u64) -> BaseAddresses),
            (".text", BaseAddresses::set_text),
            (".got", BaseAddresses::set_got),
        ] {
            if let Some(address) = address(name) {
                bases = set(bases, address);
            }
        }
        Some(Self {
            frames: image::section(elf, ".eh_frame")?,
            header: image::section(elf, ".eh_frame_hdr"),
            bases,
            endian: if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big },
            address_size: if elf.is_64() { 8 } else { 4 },
            extents: std::cell::OnceCell::new(),
        })
    }

    /// Start of the function that contains `address`.
    pub(crate) fn start_of(&self, address: u64) -> Option<u64> {
        self.extent_of(address).map(|extent| extent.start)
    }

    /// Addresses of the function that contains `address`.
    pub(crate) fn extent_of(&self, address: u64) -> Option<Range<u64>> {
        match &self.header {
            Some(header) => self.search(header, address).or_else(|| self.scan(address)),
            None => self.scan(address),
        }
    }

    fn frames(&self) -> EhFrame<Slice<'_>> {
        let mut frames = EhFrame::new(&self.frames, self.endian);
        frames.set_address_size(self.address_size);
        frames
    }

    fn search(&self, header: &[u8], address: u64) -> Option<Range<u64>> {
        let header = EhFrameHdr::new(header, self.endian).parse(&self.bases, self.address_size).ok()?;
        let frames = self.frames();
        let entry = header.table()?.fde_for_address(&frames, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        Some(extent(&entry))
    }

    fn scan(&self, address: u64) -> Option<Range<u64>> {
        // The search table is complete; only files without one are scanned.
        if self.header.is_some() {
            return None;
        }
        let extents = self.extents.get_or_init(|| self.all_extents());
        let after = extents.partition_point(|extent| extent.start <= address);
        extents.get(after.checked_sub(1)?).filter(|extent| address < extent.end).cloned()
    }

    fn all_extents(&self) -> Vec<Range<u64>> {
        let frames = self.frames();
        let mut entries = frames.entries(&self.bases);
        let mut extents = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
            extents.push(extent(&entry));
        }
        extents.sort_unstable_by_key(|extent| (extent.start, extent.end));
        extents
    }
}

fn extent(entry: &FrameDescriptionEntry<Slice<'_>>) -> Range<u64> {
    entry.initial_address()..entry.initial_address().saturating_add(entry.len())
}

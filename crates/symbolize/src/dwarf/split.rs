//! Split debug information: `.dwo` files, or one `.dwp` package of them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gimli::{DwarfPackageSections, DwoId, EndianSlice, Reader, RunTimeEndian, Section};

use super::names::FunctionNames;
use super::unit::Entry;
use super::{Dwarf, Unit, name_in_unit, sections};
use crate::NamedFrame;
use crate::image::{self, Image};
use crate::texts::Texts;

/// The package of a file: its name with `.dwp` appended.
pub(super) fn package_beside(debug: &Image) -> Option<Image> {
    let mut path = debug.path().as_os_str().to_owned();
    path.push(".dwp");
    Image::open(Path::new(&path)).ok()
}

/// A package's sections.
pub(super) struct Package<'data>(DwarfPackageSections<Cow<'data, [u8]>>);

impl<'data> Package<'data> {
    pub(super) fn of(elf: &object::File<'data>) -> Option<Self> {
        let load = |id: gimli::SectionId| -> gimli::Result<Cow<'data, [u8]>> {
            Ok(id.dwo_name().and_then(|name| image::section(elf, name)).unwrap_or_default())
        };
        DwarfPackageSections::load(load).ok().map(Self)
    }

    /// The sections of the unit `id`.
    pub(super) fn unit<'a>(&'a self, id: DwoId, parent: &Dwarf<'a>) -> Option<Dwarf<'a>> {
        let endian = parent.debug_info.reader().endian();
        let slice = |section: &'a Cow<'data, [u8]>| EndianSlice::new(section, endian);
        self.0.borrow(slice, EndianSlice::new(&[], endian)).ok()?.find_cu(id, parent).ok()?
    }
}

/// Paths where a unit's `.dwo` file may be: as the compiler wrote it, or beside the linked file.
pub(super) fn candidates(dwarf: &Dwarf<'_>, skeleton: &Unit<'_>, debug: &Image) -> Vec<PathBuf> {
    let name = skeleton.dwo_name().ok().flatten().and_then(|name| dwarf.attr_string(skeleton, name).ok());
    let Some(name) = name else { return Vec::new() };
    let name = Path::new(OsStr::from_bytes(name.slice()));
    let directory =
        skeleton.comp_dir.map_or(Path::new(""), |directory| Path::new(OsStr::from_bytes(directory.slice())));
    let beside = debug.path().parent().zip(name.file_name()).map(|(directory, file)| directory.join(file));
    std::iter::once(directory.join(name)).chain(beside).collect()
}

/// Names addresses by the unit `id` of an open `.dwo` file. `None` if the file has another unit.
pub(super) fn name_in_file(
    elf: &object::File<'_>,
    id: DwoId,
    parent: &Dwarf<'_>,
    skeleton: &Unit<'_>,
    addresses: &[u64],
    texts: &mut Texts,
) -> gimli::Result<Option<Vec<Vec<NamedFrame>>>> {
    let sections = sections(elf, |id| id.dwo_name());
    name_in_sections(&sections, id, parent, skeleton, addresses, texts)
}

fn name_in_sections<'a>(
    sections: &'a super::Sections<'_>,
    id: DwoId,
    parent: &Dwarf<'a>,
    skeleton: &Unit<'a>,
    addresses: &[u64],
    texts: &mut Texts,
) -> gimli::Result<Option<Vec<Vec<NamedFrame>>>> {
    let endian: RunTimeEndian = parent.debug_info.reader().endian();
    let mut dwarf: Dwarf<'a> = sections.borrow(|section| EndianSlice::new(section, endian));
    dwarf.make_dwo(parent);
    name_in_dwarf(&dwarf, id, skeleton, addresses, texts)
}

/// Names addresses by the unit `id` of `dwarf`.
pub(super) fn name_in_dwarf<'a>(
    dwarf: &Dwarf<'a>,
    id: DwoId,
    skeleton: &Unit<'a>,
    addresses: &[u64],
    texts: &mut Texts,
) -> gimli::Result<Option<Vec<Vec<NamedFrame>>>> {
    let mut headers = Vec::new();
    let mut iterator = dwarf.units();
    while let Some(header) = iterator.next()? {
        headers.push(header);
    }
    for &header in &headers {
        let mut unit = dwarf.unit(header)?;
        if unit.dwo_id != Some(id) {
            continue;
        }
        unit.copy_relocated_attributes(skeleton);
        unit.comp_dir = unit.comp_dir.or(skeleton.comp_dir);
        let entry = Entry { dwarf, unit: &Rc::new(unit), headers: &headers };
        return name_in_unit(entry, addresses, &mut FunctionNames::default(), texts).map(Some);
    }
    Ok(None)
}

//! Names from DWARF: functions, inlined functions, source lines.
//!
//! All addresses of a module are named in one pass. They are sorted, each compilation unit that covers some of them is
//! walked once, and only the line rows at those addresses are kept. So the cost depends on the units that were hit, not
//! on the size of the program, and nothing stays in memory. (Libraries that answer one address at a time index every
//! function of a unit and keep the index.)
//!
//! DWARF stores complete names only for functions that the linker sees. Static functions, lambdas and functions in
//! anonymous namespaces are named by their enclosing scopes: see [`names`].

mod inlined;
mod lines;
mod names;
mod split;
mod unit;
mod units;

use std::borrow::Cow;
use std::rc::Rc;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId, UnitHeader};
use object::{Object, ObjectSection};

use crate::image::{self, Image};
use crate::texts::Texts;
use crate::{NamedFrame, Options, Problem, debug_files};

use lines::Files;
use names::FunctionNames;
use unit::{Chains, Entry, Link};
use units::Units;

type Slice<'data> = EndianSlice<'data, RunTimeEndian>;
type Dwarf<'data> = gimli::Dwarf<Slice<'data>>;
type Unit<'data> = gimli::Unit<Slice<'data>>;
type Sections<'data> = DwarfSections<Cow<'data, [u8]>>;

/// The result for a batch of addresses.
pub(crate) struct Found {
    /// Frames at each address, outermost first; empty if unknown. The outermost function's name is empty if only its
    /// line is known.
    pub frames: Vec<Vec<NamedFrame>>,
    /// Damaged or missing parts.
    pub problems: Vec<Problem>,
}

/// Whether a file has debug information.
pub(crate) fn is_in(elf: &object::File<'_>) -> bool {
    elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

/// Names `addresses` (ascending, without duplicates) by the debug information in `debug`.
pub(crate) fn name(
    debug: &Image,
    elf: &object::File<'_>,
    addresses: &[u64],
    options: &Options,
    texts: &mut Texts,
) -> Found {
    let incomplete = |reason: String| Problem::IncompleteDebugInfo { path: debug.path().to_owned(), reason };
    let mut problems = Vec::new();
    let (frames, losses) = with_dwarf(debug, elf, options, &mut problems, |dwarf| {
        let mut namer = Namer::new(debug, dwarf, addresses, texts);
        namer.run();
        (namer.frames, namer.losses)
    });
    problems.extend(losses.describe().map(incomplete));
    Found { frames, problems }
}

/// First addresses of inlined calls of the functions whose name is `wanted`, ascending. Split debug information is not
/// searched.
pub(crate) fn inlined_calls(
    debug: &Image,
    elf: &object::File<'_>,
    options: &Options,
    texts: &mut Texts,
    wanted: &dyn Fn(&str) -> bool,
) -> Vec<u64> {
    with_dwarf(debug, elf, options, &mut Vec::new(), |dwarf| inlined::calls(dwarf, texts, wanted))
}

/// The inlined calls that hold these addresses and are of the functions with these names. Split debug information is not searched.
pub(crate) fn inlined_at(
    debug: &Image,
    elf: &object::File<'_>,
    options: &Options,
    texts: &mut Texts,
    places: &[(u64, &str)],
) -> Vec<Option<inlined::InlinedCall>> {
    with_dwarf(debug, elf, options, &mut Vec::new(), |dwarf| inlined::at(dwarf, texts, places))
}

fn with_dwarf<R>(
    debug: &Image,
    elf: &object::File<'_>,
    options: &Options,
    problems: &mut Vec<Problem>,
    read: impl FnOnce(&Dwarf<'_>) -> R,
) -> R {
    let incomplete = |reason: String| Problem::IncompleteDebugInfo { path: debug.path().to_owned(), reason };
    let supplement = debug_files::find_supplement(debug, options).and_then(|found| match found {
        Ok(image) => Some(image),
        Err(problem) => {
            problems.push(incomplete(format!("its shared part: {problem}")));
            None
        }
    });
    let supplement_elf = supplement.as_ref().map(Image::elf);
    let supplement_sections = supplement_elf.as_ref().map(|elf| sections(elf, main_name));
    let main_sections = sections(elf, main_name);

    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut dwarf = main_sections.borrow(|section| EndianSlice::new(section, endian));
    if let Some(sections) = &supplement_sections {
        dwarf.set_sup(sections.borrow(|section| EndianSlice::new(section, endian)));
    }
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    read(&dwarf)
}

/// Loads the sections that naming reads. The others (locations of variables, macros) may be larger than all of these.
fn sections<'data>(elf: &object::File<'data>, name: impl Fn(SectionId) -> Option<&'static str>) -> Sections<'data> {
    use SectionId::{
        DebugAbbrev, DebugAddr, DebugAranges, DebugInfo, DebugLine, DebugLineStr, DebugRanges, DebugRngLists, DebugStr,
        DebugStrOffsets,
    };
    let load = |id: SectionId| -> Result<Cow<'data, [u8]>, std::convert::Infallible> {
        let wanted = match id {
            DebugAbbrev | DebugAddr | DebugAranges | DebugInfo | DebugLine | DebugLineStr | DebugRanges
            | DebugRngLists | DebugStr | DebugStrOffsets => name(id),
            _ => None,
        };
        Ok(wanted.and_then(|name| image::section(elf, name)).unwrap_or_default())
    };
    match DwarfSections::load(load) {
        Ok(sections) => sections,
        Err(never) => match never {},
    }
}

fn main_name(id: SectionId) -> Option<&'static str> {
    Some(id.name())
}

/// Counts of unreadable parts.
#[derive(Default)]
struct Losses {
    damaged_units: usize,
    first_damage: Option<String>,
    missing_split: usize,
    first_missing_split: Option<String>,
}

impl Losses {
    fn damaged(&mut self, error: gimli::Error) {
        self.damaged_units += 1;
        self.first_damage.get_or_insert_with(|| error.to_string());
    }

    fn missing_split(&mut self, name: String) {
        self.missing_split += 1;
        self.first_missing_split.get_or_insert(name);
    }

    fn describe(&self) -> impl Iterator<Item = String> {
        let damage = self.first_damage.as_ref().map(|first| match self.damaged_units {
            1 => format!("one compilation unit is damaged: {first}"),
            count => format!("{count} compilation units are damaged; the first: {first}"),
        });
        let split = self.first_missing_split.as_ref().map(|first| match self.missing_split {
            1 => format!("{first} is missing"),
            count => format!("{count} .dwo files are missing, among them {first}"),
        });
        [damage, split].into_iter().flatten()
    }
}

/// Names the addresses of one module.
struct Namer<'a, 'data> {
    debug: &'a Image,
    dwarf: &'a Dwarf<'data>,
    units: Units<'data>,
    addresses: &'a [u64],
    frames: Vec<Vec<NamedFrame>>,
    names: FunctionNames<'data>,
    texts: &'a mut Texts,
    losses: Losses,
}

impl<'a, 'data> Namer<'a, 'data> {
    fn new(debug: &'a Image, dwarf: &'a Dwarf<'data>, addresses: &'a [u64], texts: &'a mut Texts) -> Self {
        let mut losses = Losses::default();
        let units = Units::of(dwarf, addresses, &mut losses);
        Self {
            debug,
            dwarf,
            units,
            addresses,
            frames: vec![Vec::new(); addresses.len()],
            names: FunctionNames::default(),
            texts,
            losses,
        }
    }

    fn run(&mut self) {
        let hits = std::mem::take(&mut self.units.hits);
        let package = split::package_beside(self.debug);
        let package_elf = package.as_ref().map(Image::elf);
        let package = package_elf.as_ref().and_then(split::Package::of);
        for hit in hits.chunk_by(|one, other| one.unit == other.unit) {
            let wanted: Vec<usize> =
                hit.iter().map(|hit| hit.address).filter(|&at| self.frames[at].is_empty()).collect();
            if wanted.is_empty() {
                continue;
            }
            if let Err(error) = self.unit(self.units.headers[hit[0].unit], &wanted, package.as_ref()) {
                self.losses.damaged(error);
            }
        }
    }

    fn unit(
        &mut self,
        header: UnitHeader<Slice<'data>>,
        wanted: &[usize],
        package: Option<&split::Package<'_>>,
    ) -> gimli::Result<()> {
        let unit = Rc::new(self.dwarf.unit(header)?);
        let addresses: Vec<u64> = wanted.iter().map(|&at| self.addresses[at]).collect();
        let rows = match &unit.line_program {
            Some(program) => lines::rows_at(program.clone(), &addresses),
            None => vec![None; addresses.len()],
        };
        let mut lines = Files::of(self.dwarf, &unit);
        let lines: Vec<_> =
            rows.into_iter().map(|row| row.map(|row| (lines.name(row.file, self.texts), row.line))).collect();

        let wants_split = unit.dwo_id.is_some() && unit.dwo_name()?.is_some();
        let mut frames = Vec::new();
        if !wants_split {
            let entry = Entry { dwarf: self.dwarf, unit: &unit, headers: &self.units.headers };
            frames = name_in_unit(entry, &addresses, &mut self.names, self.texts)?;
        } else if let Some(found) = self.split_unit(&unit, &addresses, package)? {
            frames = found;
        }
        frames.resize_with(addresses.len(), Vec::new);
        for ((&at, mut frames), line) in wanted.iter().zip(frames).zip(lines) {
            if frames.is_empty() && line.is_some() {
                frames.push(NamedFrame::function(""));
            }
            if let (Some(innermost), Some((file, line))) = (frames.last_mut(), line) {
                innermost.file = file;
                innermost.line = line;
            }
            self.frames[at] = frames;
        }
        Ok(())
    }

    /// Names addresses by the part of a unit that is in a `.dwo` file or a `.dwp` package.
    fn split_unit(
        &mut self,
        skeleton: &Unit<'data>,
        addresses: &[u64],
        package: Option<&split::Package<'_>>,
    ) -> gimli::Result<Option<Vec<Vec<NamedFrame>>>> {
        let Some(id) = skeleton.dwo_id else { return Ok(None) };
        if let Some(dwarf) = package.and_then(|package| package.unit(id, self.dwarf)) {
            return split::name_in_dwarf(&dwarf, id, skeleton, addresses, self.texts);
        }
        let candidates = split::candidates(self.dwarf, skeleton, self.debug);
        for path in &candidates {
            let Ok(image) = Image::open(path) else { continue };
            let found = split::name_in_file(&image.elf(), id, self.dwarf, skeleton, addresses, self.texts)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.losses.missing_split(candidates.first().map_or_else(String::new, |path| path.display().to_string()));
        Ok(None)
    }
}

/// Frames with names and call sites. The caller adds the line of the innermost frame.
fn name_in_unit<'data>(
    entry: Entry<'_, 'data>,
    addresses: &[u64],
    names: &mut FunctionNames<'data>,
    texts: &mut Texts,
) -> gimli::Result<Vec<Vec<NamedFrame>>> {
    let Chains { chains, scopes } = unit::chains_at(entry, addresses)?;
    let mut naming = names.in_unit(entry, scopes);
    let mut files = Files::of(entry.dwarf, entry.unit);
    let mut frames_of = |chain: Vec<Link>| {
        let mut frames: Vec<NamedFrame> = Vec::with_capacity(chain.len());
        for (depth, link) in chain.into_iter().enumerate() {
            let name = naming.function(link.function, texts);
            // An inlined function without a name adds nothing.
            if depth > 0 && name.is_none() {
                continue;
            }
            if let Some(caller) = frames.last_mut() {
                caller.file = link.call_file.and_then(|file| files.name(file, texts));
                caller.line = link.call_line;
            }
            frames.push(NamedFrame { inlined: depth > 0, ..NamedFrame::function(name.unwrap_or_default()) });
        }
        frames
    };
    Ok(chains.into_iter().map(&mut frames_of).collect())
}

/// Indices of the `addresses` (ascending) in a range.
fn indices_in(addresses: &[u64], begin: u64, end: u64) -> std::ops::Range<usize> {
    let first = addresses.partition_point(|&address| address < begin);
    let count = addresses[first..].iter().take_while(|&&address| address < end).count();
    first..first + count
}

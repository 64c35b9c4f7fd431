//! Names of functions in `.gopclntab`, which Go programs keep when they are stripped.
//!
//! The layout is that of Go 1.18 and later: `pcHeader` and `_func` in Go's `runtime/symtab.go` and `runtime/runtime2.go`.

use std::ops::Range;

use object::{Object, ObjectSection as _, ObjectSymbol as _};

/// Names of the section; the second one is that of position-independent programs.
pub const GO_FUNCTIONS_SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Start of the code that Go's linker laid out. Entries are relative to it. Code in C may come before it in `.text`.
///
/// The linker's record of the module has it (`runtime.moduledata`); in position-independent programs it is a relocation.
pub fn go_text_start<'data>(file: &impl Object<'data>) -> u64 {
    let by_symbol = || Some(file.symbols().find(|symbol| symbol.name() == Ok("runtime.text"))?.address());
    let by_section = || Some(file.section_by_name(".text")?.address());
    text_of_module(file).or_else(by_symbol).or_else(by_section).unwrap_or(0)
}

fn text_of_module<'data>(file: &impl Object<'data>) -> Option<u64> {
    /// Place of the field `text`.
    const TEXT: u64 = 22 * 8;
    let module = file.section_by_name(".go.module")?;
    let word = module.data().ok()?.get(TEXT as usize..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
    let relocated = || {
        let place = module.address().checked_add(TEXT)?;
        let mut relocations = file.dynamic_relocations()?;
        relocations.find(|(at, _)| *at == place).map(|(_, relocation)| relocation.addend() as u64)
    };
    if word != 0 { Some(word) } else { relocated() }
}

/// The first bytes: Go 1.20, and Go 1.18; little-endian.
const MAGIC: [u32; 2] = [0xffff_fff1, 0xffff_fff0];

/// The table of functions.
pub struct GoFunctions<'a> {
    names: &'a [u8],
    /// The functions' entries, and what the entries refer to.
    functions: &'a [u8],
    count: usize,
    /// Tables of numbers that change with the address.
    numbers: &'a [u8],
    /// Length of the shortest instruction.
    quantum: u8,
    /// Address that entries are relative to.
    text: u64,
}

impl<'a> GoFunctions<'a> {
    /// Reads the section of a 64-bit little-endian file. `text` is from [`go_text_start`], for versions that leave it
    /// to the linker.
    pub fn parse(table: &'a [u8], text: u64) -> Option<Self> {
        let magic = u32::from_le_bytes(*table.first_chunk()?);
        // Two bytes of padding, the instructions' granularity, the size of an address.
        if !MAGIC.contains(&magic) || table.get(4..6)? != [0, 0] || *table.get(7)? != 8 {
            return None;
        }
        let word = |index: usize| {
            let bytes = table.get(8 + 8 * index..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let at = |index| table.get(usize::try_from(word(index)?).ok()?..);
        let (count, start, names, functions) = (usize::try_from(word(0)?).ok()?, word(2)?, at(3)?, at(7)?);
        (count <= functions.len() / 8).then_some(())?;
        let (numbers, quantum) = (at(6)?, *table.get(6)?);
        Some(Self { names, functions, count, numbers, quantum, text: if start == 0 { text } else { start } })
    }

    /// The name of the function that contains an address.
    pub(crate) fn name_at(&self, address: u64) -> Option<&'a str> {
        let wanted = u32::try_from(address.checked_sub(self.text)?).ok()?;
        // Entries are pairs of a start and the place of its description. The last one only ends the last function.
        let start = |index: usize| number(self.functions, 8 * index);
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if start(middle)? <= wanted { low = middle + 1 } else { high = middle }
        }
        let function = self.function(low.checked_sub(1)?)?;
        function.range.contains(&address).then_some(function.name)
    }

    /// All functions in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = GoFunction<'a>> {
        (0..self.count).filter_map(|index| self.function(index))
    }

    /// Length of the shortest instruction: 1 on x86-64.
    pub fn quantum(&self) -> u8 {
        self.quantum
    }

    fn function(&self, index: usize) -> Option<GoFunction<'a>> {
        let start = |index: usize| self.text.checked_add(number(self.functions, 8 * index)?.into());
        let range = start(index)?..start(index + 1)?;
        let description = number(self.functions, 8 * index + 4)? as usize;
        let name = number(self.functions, description.checked_add(4)?)? as usize;
        let name = self.names.get(name..)?;
        let length = name.iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&name[..length]).ok().filter(|name| !name.is_empty())?;
        let sizes = number(self.functions, description.checked_add(16)?).filter(|&place| place != 0);
        let frame_sizes = sizes.and_then(|place| self.numbers.get(place as usize..)).unwrap_or_default();
        Some(GoFunction { range, name, frame_sizes, quantum: self.quantum })
    }
}

/// A function of a Go program.
#[derive(Debug, Clone)]
pub struct GoFunction<'a> {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its name.
    pub name: &'a str,
    frame_sizes: &'a [u8],
    quantum: u8,
}

impl GoFunction<'_> {
    /// Addresses from which on its frame has another size, in bytes from the stack pointer to the return address.
    pub fn frame_sizes(&self) -> impl Iterator<Item = (u64, u32)> {
        let mut bytes = self.frame_sizes;
        let (mut address, mut size) = (self.range.start, -1_i32);
        std::iter::from_fn(move || {
            let change = leb128(&mut bytes).filter(|&change| change != 0 || address == self.range.start)?;
            // The lowest bit is the sign.
            let change = (change >> 1) as i32 ^ -((change & 1) as i32);
            size = size.checked_add(change)?;
            let from = address;
            let length = u64::from(leb128(&mut bytes)?) * u64::from(self.quantum);
            address = address.checked_add(length).filter(|_| length > 0 && from < self.range.end)?;
            Some((from, u32::try_from(size).ok()?))
        })
    }
}

fn leb128(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions: `main.main` at 0x1000 to 0x1040, `main.step` up to 0x1100.
    fn table(start: u64) -> Vec<u8> {
        let mut table = MAGIC[0].to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        // The table of frame sizes is at the end: 8 bytes from the second instruction on, and 0 before the return.
        for word in [2, 0, start, 72, 0, 0, 156, 96] {
            table.extend(u64::to_le_bytes(word));
        }
        table.extend(b"\0main.main\0main.step\0\0\0\0");
        // The descriptions are at 20 and 40: an entry, the place of the name, two others, the frame sizes.
        for number in [0_u32, 20, 0x40, 40, 0x100, 0, 1, 0, 0, 1, 0x40, 11, 0, 0, 0] {
            table.extend(number.to_le_bytes());
        }
        table.extend([0, 2, 1, 16, 0x3e, 15, 1, 0]);
        table
    }

    #[test]
    fn a_function_reaches_to_the_next_one() {
        for (start, text) in [(0x1000, 0), (0, 0x1000)] {
            let table = table(start);
            let functions = GoFunctions::parse(&table, text).unwrap();
            let name = |address| functions.name_at(address);
            assert_eq!([0x1000, 0x103f].map(name), [Some("main.main"); 2]);
            assert_eq!([0x1040, 0x10ff].map(name), [Some("main.step"); 2]);
            assert_eq!([0xfff, 0x1100, u64::MAX].map(name), [None; 3]);
        }
    }

    #[test]
    fn the_size_of_a_frame_changes_in_its_prologue_and_before_its_return() {
        let table = table(0x1000);
        let functions = GoFunctions::parse(&table, 0).unwrap();
        let sizes: Vec<Vec<(u64, u32)>> = functions.iter().map(|function| function.frame_sizes().collect()).collect();
        assert_eq!(sizes, [vec![(0x1000, 0), (0x1001, 8), (0x103f, 0)], vec![]]);
    }

    #[test]
    fn damaged_tables_have_no_names_and_never_panic() {
        let whole = table(0x1000);
        for cut in 0..whole.len() {
            if let Some(functions) = GoFunctions::parse(&whole[..cut], 0) {
                let _ = [0x1000, 0x1040, 0x10ff].map(|address| functions.name_at(address));
                let _ = functions.iter().map(|function| function.frame_sizes().count()).sum::<usize>();
            }
        }
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 0xff;
            if let Some(functions) = GoFunctions::parse(&damaged, 0) {
                let _ = [0x1000, 0x1040, 0x10ff].map(|address| functions.name_at(address));
                let _ = functions.iter().map(|function| function.frame_sizes().count()).sum::<usize>();
            }
        }
    }
}

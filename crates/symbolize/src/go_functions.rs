//! Names of functions in `.gopclntab`, which Go programs keep when they are stripped.
//!
//! The layout is that of Go 1.18 and later: `pcHeader` and `_func` in Go's `runtime/symtab.go` and `runtime/runtime2.go`.

use std::ops::Range;

/// Names of the section; the second one is that of position-independent programs.
pub const GO_FUNCTIONS_SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// The first bytes: Go 1.20, and Go 1.18; little-endian.
const MAGIC: [u32; 2] = [0xffff_fff1, 0xffff_fff0];

/// The table of functions.
pub struct GoFunctions<'a> {
    names: &'a [u8],
    /// The functions' entries, and what the entries refer to.
    functions: &'a [u8],
    count: usize,
    /// Address that entries are relative to.
    text: u64,
}

impl<'a> GoFunctions<'a> {
    /// Reads the section of a 64-bit little-endian file. `text` is the address of `.text`, for versions that leave it to
    /// the linker.
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
        Some(Self { names, functions, count, text: if start == 0 { text } else { start } })
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
        let (_, name) = self.function(low.checked_sub(1)?).filter(|(range, _)| range.contains(&address))?;
        Some(name)
    }

    /// All functions in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &'a str)> {
        (0..self.count).filter_map(|index| self.function(index))
    }

    fn function(&self, index: usize) -> Option<(Range<u64>, &'a str)> {
        let start = |index: usize| self.text.checked_add(number(self.functions, 8 * index)?.into());
        let range = start(index)?..start(index + 1)?;
        let description = number(self.functions, 8 * index + 4)? as usize;
        let name = number(self.functions, description.checked_add(4)?)? as usize;
        let name = self.names.get(name..)?;
        let length = name.iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&name[..length]).ok().filter(|name| !name.is_empty())?;
        Some((range, name))
    }
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
        for word in [2, 0, start, 72, 0, 0, 0, 96] {
            table.extend(u64::to_le_bytes(word));
        }
        table.extend(b"\0main.main\0main.step\0\0\0\0");
        // The descriptions are at 20 and 28: an entry, then the place of the name.
        for number in [0_u32, 20, 0x40, 28, 0x100, 0, 1, 0x40, 11] {
            table.extend(number.to_le_bytes());
        }
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
    fn damaged_tables_have_no_names_and_never_panic() {
        let whole = table(0x1000);
        for cut in 0..whole.len() {
            if let Some(functions) = GoFunctions::parse(&whole[..cut], 0) {
                let _ = [0x1000, 0x1040, 0x10ff].map(|address| functions.name_at(address));
            }
        }
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 0xff;
            if let Some(functions) = GoFunctions::parse(&damaged, 0) {
                let _ = [0x1000, 0x1040, 0x10ff].map(|address| functions.name_at(address));
            }
        }
    }
}

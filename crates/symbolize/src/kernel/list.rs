//! Reads a list of kernel symbols (`/proc/kallsyms`) line by line.
//!
//! A list has some hundred thousand lines, and a recording needs a few hundred names. So one pass keeps, for each
//! address, only the last symbol before it.

use std::cmp::Reverse;
use std::io::{self, BufRead, BufReader, Read};

/// Size limit of a kernel function. Code farther from a symbol is not in the list.
pub(super) const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// A line: `ffffffff81000000 T _text`, with `\\t[module]` at the end for modules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'list> {
    pub address: u64,
    kind: u8,
    pub name: &'list [u8],
    /// Whether it is in the kernel's image, not in a module, probe or trampoline.
    pub is_of_image: bool,
}

/// Order of names at the same address; the greatest is shown.
pub(super) type Rank = (bool, bool, Reverse<usize>, usize);

impl<'list> Line<'list> {
    /// Parses a line without its line feed. `None` if it is malformed.
    pub fn parse(line: &'list [u8]) -> Option<Self> {
        let space = memchr::memchr(b' ', line)?;
        let (address, rest) = (hexadecimal(&line[..space])?, &line[space + 1..]);
        let (&kind, rest) = rest.split_first()?;
        let rest = rest.strip_prefix(b" ")?;
        let end = rest.iter().position(|byte| matches!(byte, b'\t' | b' ')).unwrap_or(rest.len());
        Some(Self { address, kind, name: &rest[..end], is_of_image: end == rest.len() })
    }

    /// Whether the address is in the upper half of the address space. Hidden addresses are zero; some entries of
    /// per-CPU data are small numbers.
    pub fn is_kernel_address(&self) -> bool {
        self.address >> 63 == 1
    }

    /// Whether it marks the start of the kernel's code.
    pub fn is_start_of_text(&self) -> bool {
        matches!(self.name, b"_text" | b"_stext")
    }

    /// Rank among names at the same address, as in `perf`: global before local, then fewer underscores; section markers
    /// (`_text`, `_stext`) come last. `None` if it is not a function.
    pub fn rank(&self) -> Option<Rank> {
        if !matches!(self.kind, b't' | b'T' | b'w' | b'W') {
            return None;
        }
        let underscores = self.name.iter().take_while(|&&byte| byte == b'_').count();
        let is_mark = matches!(self.name, b"_text" | b"_stext" | b"startup_64");
        Some((!is_mark, self.kind.is_ascii_uppercase(), Reverse(underscores), self.name.len()))
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(u64::from);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |number, &byte| Some(number << 4 | digit(byte)?))
}

/// Calls `visit` with each valid line.
pub(super) fn for_each_line(list: impl Read, mut visit: impl FnMut(&Line<'_>)) -> io::Result<()> {
    let mut list = BufReader::with_capacity(1 << 16, list);
    let mut bytes = Vec::with_capacity(256);
    while list.read_until(b'\n', &mut bytes)? > 0 {
        if let Some(line) = Line::parse(bytes.strip_suffix(b"\n").unwrap_or(&bytes)) {
            visit(&line);
        }
        bytes.clear();
    }
    Ok(())
}

/// Start of the kernel's code according to a list. It is among the first lines. `None` if addresses are hidden.
pub(super) fn start_of_text(list: impl Read) -> Option<u64> {
    // The kernel generates the list while it is read, so a small buffer saves time.
    let mut list = BufReader::with_capacity(1 << 12, list);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if list.read_until(b'\n', &mut bytes).ok()? == 0 {
            return None;
        }
        let line = Line::parse(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).filter(Line::is_start_of_text);
        if let Some(line) = line {
            return Some(line.address).filter(|&address| address != 0);
        }
    }
}

/// The best name at the last address seen before an address.
#[derive(Debug, Default, Clone)]
struct Place {
    start: Option<u64>,
    /// Rank of `name`. `None` ranks lowest: an address without a function.
    rank: Option<Rank>,
    name: Vec<u8>,
}

impl Place {
    fn offer(&mut self, line: &Line<'_>) {
        let rank = line.rank();
        if self.start != Some(line.address) {
            (self.start, self.rank) = (Some(line.address), None);
            self.name.clear();
        }
        if rank.is_some() && rank >= self.rank {
            self.rank = rank;
            self.name.clear();
            self.name.extend_from_slice(line.name);
        }
    }
}

/// Finds the functions that contain some addresses, from lines in any order.
#[derive(Debug)]
pub(super) struct Search {
    /// Ascending, without duplicates.
    addresses: Vec<u64>,
    /// Per address: the best symbol between the previous address and this one.
    before: Vec<Place>,
    /// Gap between addresses that the last line fell into. Neighbouring lines mostly fall into the same gap.
    gap: Gap,
    /// Whether any line had a kernel address.
    pub has_addresses: bool,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    first: u64,
    last: u64,
    index: usize,
}

impl Search {
    pub fn of(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        let before = vec![Place::default(); addresses.len()];
        Self { addresses, before, gap: Gap { first: 1, last: 0, index: 0 }, has_addresses: false }
    }

    pub fn line(&mut self, line: &Line<'_>) {
        if !line.is_kernel_address() {
            return;
        }
        self.has_addresses = true;
        if !(self.gap.first..=self.gap.last).contains(&line.address) {
            self.gap = self.gap_of(line.address);
        }
        let Some(place) = self.before.get_mut(self.gap.index) else { return };
        if place.start.is_none_or(|start| start <= line.address) {
            place.offer(line);
        }
    }

    fn gap_of(&self, address: u64) -> Gap {
        let index = self.addresses.partition_point(|&wanted| wanted < address);
        let first = index.checked_sub(1).map_or(0, |before| self.addresses[before] + 1);
        Gap { first, last: self.addresses.get(index).copied().unwrap_or(u64::MAX), index }
    }

    /// Names of the functions that contain the addresses, ascending by address.
    pub fn finish(self) -> Vec<(u64, Option<String>)> {
        let mut latest = Place::default();
        let mut found = Vec::with_capacity(self.addresses.len());
        for (address, place) in self.addresses.into_iter().zip(self.before) {
            if place.start.is_some() {
                latest = place;
            }
            let holds = latest.start.is_some_and(|start| address - start < MAX_FUNCTION_BYTES);
            let name = holds.then(|| std::str::from_utf8(&latest.name).ok()).flatten();
            found.push((address, name.filter(|name| !name.is_empty()).map(str::to_owned)));
        }
        found
    }
}

//! Names from symbol tables.

use std::cmp::Reverse;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind, SymbolSection};

/// A symbol that names an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol<'data> {
    /// Its address.
    pub start: u64,
    /// Its name in the table.
    pub name: &'data str,
    rank: Rank,
}

/// Order of symbols that cover the same address; the greatest is shown.
///
/// In this order: latest start; function before label; exported (global or weak) before local; fewer leading
/// underscores; global before weak; shorter name.
///
/// Thus glibc's `read` is shown as `read`, not as its local alias `__GI___libc_read`, nor as `__libc_read`, which
/// `perf` shows because it ranks weak names last. Functions of the vdso keep the prefix that distinguishes them from
/// the C library's: `__vdso_clock_gettime`.
type Rank = (u64, Kind, Scope, Reverse<usize>, Binding, Reverse<usize>);

/// Assemblers emit labels for any name; functions have a symbol type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Label,
    Function,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Local,
    Exported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Weak,
    Global,
}

/// Names each of `addresses` (ascending) that a symbol covers.
///
/// A symbol without size extends to the next symbol, the next function start that `function_start` knows, or the end of
/// its section.
pub(crate) fn find<'data>(
    elf: &object::File<'data>,
    table: Table,
    addresses: &[u64],
    function_start: impl Fn(u64) -> Option<u64>,
) -> Vec<Option<Symbol<'data>>> {
    let mut found = covering(elf, table, addresses);
    if found.iter().any(Option::is_none) {
        extend_to_next(elf, table, addresses, function_start, &mut found);
    }
    found
}

/// A symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// `.symtab`
    Full,
    /// `.dynsym`
    Dynamic,
}

fn symbols<'data, 'file>(
    elf: &'file object::File<'data>,
    table: Table,
) -> impl Iterator<Item = (object::Symbol<'data, 'file>, Kind)> {
    let symbols = match table {
        Table::Full => elf.symbols(),
        Table::Dynamic => elf.dynamic_symbols(),
    };
    symbols.filter_map(|symbol| {
        let kind = match symbol.kind() {
            SymbolKind::Text => Kind::Function,
            SymbolKind::Unknown | SymbolKind::Label => Kind::Label,
            _ => return None,
        };
        matches!(symbol.section(), SymbolSection::Section(_)).then_some((symbol, kind))
    })
}

fn ranked<'data>(symbol: &object::Symbol<'data, '_>, kind: Kind) -> Option<Symbol<'data>> {
    let name = symbol.name().ok()?;
    // Mapping symbols of Arm assemblers and local labels are no functions.
    if name.is_empty() || name.starts_with(['$', '.']) {
        return None;
    }
    let scope = if symbol.is_local() { Scope::Local } else { Scope::Exported };
    let binding = if symbol.is_weak() { Binding::Weak } else { Binding::Global };
    let is_of_vdso = name.starts_with("__vdso_") || name.starts_with("__kernel_");
    let underscores = if is_of_vdso { 0 } else { name.bytes().take_while(|&byte| byte == b'_').count() };
    let underscores = Reverse(underscores);
    let start = symbol.address();
    Some(Symbol { start, name, rank: (start, kind, scope, underscores, binding, Reverse(name.len())) })
}

fn offer<'data>(place: &mut Option<Symbol<'data>>, symbol: Symbol<'data>) {
    if place.is_none_or(|present| present.rank < symbol.rank) {
        *place = Some(symbol);
    }
}

fn covering<'data>(elf: &object::File<'data>, table: Table, addresses: &[u64]) -> Vec<Option<Symbol<'data>>> {
    let mut found = vec![None; addresses.len()];
    for (symbol, kind) in symbols(elf, table) {
        let start = symbol.address();
        let end = start.saturating_add(symbol.size());
        let first = addresses.partition_point(|&address| address < start);
        if addresses.get(first).is_none_or(|&address| address >= end) {
            continue;
        }
        let Some(symbol) = ranked(&symbol, kind) else { continue };
        let hit = addresses[first..].iter().zip(&mut found[first..]).take_while(|(address, _)| **address < end);
        hit.for_each(|(_, place)| offer(place, symbol));
    }
    found
}

/// The best exported name of the function that starts at each of `starts` (ascending).
pub(crate) fn exported_at<'data>(elf: &object::File<'data>, starts: &[u64]) -> Vec<Option<&'data str>> {
    let mut found = vec![None; starts.len()];
    for (symbol, kind) in symbols(elf, Table::Dynamic) {
        let Ok(at) = starts.binary_search(&symbol.address()) else { continue };
        if let Some(symbol) = ranked(&symbol, kind).filter(|symbol| symbol.rank.2 == Scope::Exported) {
            offer(&mut found[at], symbol);
        }
    }
    found.into_iter().map(|symbol| symbol.map(|symbol| symbol.name)).collect()
}

/// Extends symbols without size, which are common in assembly.
fn extend_to_next<'data>(
    elf: &object::File<'data>,
    table: Table,
    addresses: &[u64],
    function_start: impl Fn(u64) -> Option<u64>,
    found: &mut [Option<Symbol<'data>>],
) {
    // Per address: the last symbol before it, its size, and the end of its section.
    let mut before: Vec<Option<(Symbol<'data>, u64, u64)>> = vec![None; addresses.len()];
    let sections: Vec<(usize, u64)> = elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .map(|section| (section.index().0, section.address().saturating_add(section.size())))
        .collect();
    for (symbol, kind) in symbols(elf, table) {
        let Some(index) = symbol.section_index() else { continue };
        let Some(&(_, end)) = sections.iter().find(|(section, _)| *section == index.0) else { continue };
        let next = addresses.partition_point(|&address| address < symbol.address());
        let Some(place) = before.get_mut(next) else { continue };
        let Some(candidate) = ranked(&symbol, kind) else { continue };
        if place.as_ref().is_none_or(|(present, ..)| present.rank < candidate.rank) {
            *place = Some((candidate, symbol.size(), end));
        }
    }
    let mut latest = None;
    for ((place, before), &address) in found.iter_mut().zip(before).zip(addresses) {
        latest = before.or(latest);
        let Some((symbol, size, end)) = latest else { continue };
        let in_another_function = || function_start(address).is_some_and(|start| start > symbol.start);
        if place.is_none() && size == 0 && address < end && !in_another_function() {
            *place = Some(symbol);
        }
    }
}

/// Whether a file has this table.
pub(crate) fn is_in(elf: &object::File<'_>, table: Table) -> bool {
    symbols(elf, table).next().is_some()
}

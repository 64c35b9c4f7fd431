//! Names of the stubs through which a module calls other modules: `memcpy@plt`.
//!
//! Stubs have no symbols. Each jumps through a slot of the global offset table, and a relocation names the symbol whose
//! address the dynamic linker writes to that slot.

use object::{Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use rustc_hash::FxHashMap;

/// The stub sections of a file and the symbols of their slots.
pub(crate) struct Linkage<'data> {
    stubs: Vec<(u64, &'data [u8])>,
    slots: FxHashMap<u64, &'data str>,
    architecture: Architecture,
}

impl<'data> Linkage<'data> {
    /// The stubs of a file, if any of `addresses` is in one.
    pub(crate) fn covering(elf: &object::File<'data>, addresses: &[u64]) -> Option<Self> {
        let stubs: Vec<(u64, &'data [u8])> = elf
            .sections()
            .filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")))
            .filter_map(|section| Some((section.address(), section.data().ok()?)))
            .collect();
        let covers = |address: u64| {
            stubs.iter().any(|(start, code)| address.checked_sub(*start).is_some_and(|at| at < code.len() as u64))
        };
        if !addresses.iter().copied().any(covers) {
            return None;
        }
        Some(Self { slots: slots(elf), stubs, architecture: elf.architecture() })
    }

    /// The symbol to which the stub at `address` jumps.
    pub(crate) fn target_of(&self, address: u64) -> Option<&'data str> {
        let (start, code, at) = self.stubs.iter().find_map(|(start, code)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            (at < code.len()).then_some((*start, *code, at))
        })?;
        // Stubs have 16 bytes. Exceptions: `.plt.got` on x86-64 without branch tracking, 8; aarch64 with branch
        // tracking, 24 after a header of 32.
        let sizes: &[(usize, usize)] = match self.architecture {
            Architecture::X86_64 => &[(16, 0), (8, 0)],
            Architecture::Aarch64 => &[(16, 0), (24, 32)],
            _ => return None,
        };
        if resolves(self.architecture, code).is_some_and(|length| at < length) {
            return Some(RESOLVER);
        }
        sizes.iter().find_map(|&(size, head)| {
            let stub = at.checked_sub(head)? / size * size + head;
            let slot = self.slot_of(start + stub as u64, code.get(stub..)?.get(..size)?)?;
            self.slots.get(&slot).copied()
        })
    }

    fn slot_of(&self, address: u64, stub: &[u8]) -> Option<u64> {
        match self.architecture {
            Architecture::X86_64 => slot_of_x86_64(address, stub),
            _ => slot_of_aarch64(address, stub),
        }
    }
}

fn slots<'data>(elf: &object::File<'data>) -> FxHashMap<u64, &'data str> {
    let (Some(relocations), Some(symbols)) = (elf.dynamic_relocations(), elf.dynamic_symbol_table()) else {
        return FxHashMap::default();
    };
    relocations
        .filter_map(|(slot, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            Some((slot, symbols.symbol_by_index(index).ok()?.name().ok()?))
        })
        .collect()
}

/// Where the head of the stubs jumps: the dynamic linker finds a function there at its first call.
const RESOLVER: &str = "_dl_runtime_resolve";

/// The length of the head of a section of stubs, if it has one.
fn resolves(architecture: Architecture, code: &[u8]) -> Option<usize> {
    match architecture {
        // `push link_map(%rip)`
        Architecture::X86_64 => code.starts_with(b"\xff\x35").then_some(16),
        // `[bti c] stp x16, x30, [sp, #-16]!`
        _ => {
            let code = code.strip_prefix(&0xd503_245f_u32.to_le_bytes()).unwrap_or(code);
            code.starts_with(&0xa9bf_7bf0_u32.to_le_bytes()).then_some(32)
        }
    }
}

/// `[endbr64] [bnd] jmp *slot(%rip)`
fn slot_of_x86_64(address: u64, stub: &[u8]) -> Option<u64> {
    let code = stub.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(stub);
    let code = code.strip_prefix(b"\xf2").unwrap_or(code);
    let displacement = code.strip_prefix(b"\xff\x25")?.first_chunk::<4>()?;
    let next = (stub.len() - code.len() + 6) as u64;
    address.checked_add(next)?.checked_add_signed(i32::from_le_bytes(*displacement).into())
}

/// `[bti c] adrp x16, page; ldr x17, [x16, offset]`
fn slot_of_aarch64(address: u64, stub: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u32::from_le_bytes(*stub.get(at..)?.first_chunk::<4>()?));
    let at = if word(0)? == 0xd503_245f { 4 } else { 0 };
    let (adrp, ldr) = (word(at)?, word(at + 4)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (u64::from(adrp >> 5 & 0x7_ffff) << 2 | u64::from(adrp >> 29 & 3)) << 43;
    let page = ((address + at as u64) & !0xfff).wrapping_add_signed((pages as i64) >> 31);
    page.checked_add(u64::from(ldr >> 10 & 0xfff) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_the_stubs_jumps_to_the_dynamic_linker() {
        // From a Debian /usr/bin: `push 0x2fe2(%rip); jmp *0x2fe4(%rip); nopl 0(%rax)`.
        let head = b"\xff\x35\xe2\x2f\x00\x00\xff\x25\xe4\x2f\x00\x00\x0f\x1f\x40\x00";
        let stub = b"\xff\x25\xe2\x2f\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff";
        let code = [&head[..], stub].concat();
        let slots = FxHashMap::from_iter([(0x4018, "fork")]);
        let linkage = Linkage { stubs: vec![(0x1020, &code)], slots, architecture: Architecture::X86_64 };
        let targets = [0x1020, 0x102f, 0x1030, 0x103b, 0x1040].map(|address| linkage.target_of(address));
        assert_eq!(targets, [Some(RESOLVER), Some(RESOLVER), Some("fork"), Some("fork"), None]);
    }

    #[test]
    fn slots_are_decoded_from_stub_code() {
        // From a Debian /usr/bin: `jmp *0x2fe2(%rip)` at 0x1030.
        assert_eq!(slot_of_x86_64(0x1030, b"\xff\x25\xe2\x2f\x00\x00\x68\x00\x00\x00\x00"), Some(0x4018));
        assert_eq!(slot_of_x86_64(0x1050, b"\xf3\x0f\x1e\xfa\xf2\xff\x25\x75\x2f\x00\x00"), Some(0x3fd0));
        assert_eq!(slot_of_x86_64(0x1030, b"\x0f\x1f\x40\x00"), None);
        // `adrp x16, 0x10000; ldr x17, [x16, #0xf98]` at 0x5d0.
        let stub = [0x9000_0090_u32.to_le_bytes(), 0xf947_ce11_u32.to_le_bytes()].concat();
        assert_eq!(slot_of_aarch64(0x5d0, &stub), Some(0x10f98));
    }
}

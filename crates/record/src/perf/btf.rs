//! Where the running kernel's structures have their fields, as it tells itself (BPF Type Format, kernel
//! documentation `bpf/btf.rst`).

use std::io;

/// Where the kernel describes its types.
pub(super) const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;

/// Finds the offset in bytes of each of these fields of a structure. Bytes that are no such description, or describe
/// other structures, give `None`; so does a field inside a structure without name of that structure.
pub(super) fn offsets_of<const N: usize>(btf: &[u8], structure: &str, fields: [&str; N]) -> Option<[u32; N]> {
    let btf = Description::parse(btf)?;
    let members = btf.members_of(structure)?;
    let mut offsets = [0; N];
    for (offset, field) in offsets.iter_mut().zip(fields) {
        *offset = members.clone().find(|&(name, _)| btf.is_named(name, field))?.1;
    }
    Some(offsets)
}

/// The types of the running kernel: some megabytes.
pub(super) struct Kernel(Vec<u8>);

impl Kernel {
    /// Reads them.
    pub fn read() -> io::Result<Self> {
        std::fs::read(KERNEL).map(Self)
    }

    /// The [offsets](offsets_of) in one of its structures.
    pub fn offsets_of<const N: usize>(&self, structure: &str, fields: [&str; N]) -> io::Result<[u32; N]> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's types are not described as expected");
        offsets_of(&self.0, structure, fields).ok_or_else(unknown)
    }

    /// The id of the type of a tracepoint's arguments.
    pub fn id_of_tracepoint(&self, name: &str) -> io::Result<u32> {
        let unknown = || io::Error::new(io::ErrorKind::Unsupported, "the kernel does not describe this tracepoint");
        id_of_typedef(&self.0, &format!("btf_trace_{name}")).ok_or_else(unknown)
    }
}

/// The id of the type definition of this name.
fn id_of_typedef(btf: &[u8], name: &str) -> Option<u32> {
    const TYPEDEF: u32 = 8;
    let btf = Description::parse(btf)?;
    let found = btf.types().position(|of| of.kind == TYPEDEF && btf.is_named(of.name, name))?;
    // The id 0 is that of no type.
    Some(found as u32 + 1)
}

/// What all types have: the first twelve bytes, and where they end.
#[derive(Debug, Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    count: usize,
    has_bit_fields: bool,
    follows: usize,
}

struct Description<'a> {
    types: &'a [u8],
    names: &'a [u8],
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl<'a> Description<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let number = |index: usize| u32_at(bytes, 4 + 4 * index).map(|number| number as usize);
        let body = bytes.get(number(0)?..)?;
        let part = |offset: usize, length: usize| body.get(offset..offset.checked_add(length)?);
        Some(Self { types: part(number(1)?, number(2)?)?, names: part(number(3)?, number(4)?)? })
    }

    fn is_named(&self, at: u32, name: &str) -> bool {
        let bytes = self.names.get(at as usize..).and_then(|names| names.get(..=name.len()));
        bytes.is_some_and(|bytes| bytes[..name.len()] == *name.as_bytes() && bytes[name.len()] == 0)
    }

    /// The types in the order of their ids, from 1 on.
    fn types(&self) -> impl Iterator<Item = Type> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (name, info) = (u32_at(self.types, at)?, u32_at(self.types, at + 4)?);
            let (count, kind) = ((info & 0xffff) as usize, info >> 24 & 0x1f);
            let follows = at + 12;
            at = follows + bytes_after(kind, count)?;
            Some(Type { name, kind, count, has_bit_fields: info >> 31 == 1, follows })
        })
    }

    /// Names and offsets in bytes of the fields of a structure.
    fn members_of(&self, structure: &str) -> Option<impl Iterator<Item = (u32, u32)> + Clone + 'a> {
        const STRUCT: u32 = 4;
        let found = self.types().find(|of| of.kind == STRUCT && self.is_named(of.name, structure))?;
        let members = self.types.get(found.follows..found.follows + 12 * found.count)?.as_chunks::<12>().0;
        // With bit fields among them, the upper eight bits of an offset are a size.
        let mask = if found.has_bit_fields { 0x00ff_ffff } else { u32::MAX };
        let number = |member: &[u8; 12], at: usize| u32_at(member, at).expect("a member has twelve bytes");
        Some(members.iter().map(move |member| (number(member, 0), (number(member, 8) & mask) / 8)))
    }
}

/// Bytes after the twelve that every type has.
fn bytes_after(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Integers, variables, and tags of declarations.
        1 | 14 | 17 => 4,
        // Pointers, forward declarations, typedefs, const, volatile, restrict, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Arrays, and members of structures, unions, sections and 64-bit enumerations.
        3 => 12,
        4 | 5 | 15 | 19 => 12 * count,
        // Values of enumerations, and parameters.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types: an integer, `struct other { pid }`, `struct task_struct { state; pid; tgid }`.
    fn drawn() -> Vec<u8> {
        let names = b"\0int\0other\0pid\0task_struct\0state\0tgid\0btf_trace_switch\0";
        let name = |text: &str| names.windows(text.len() + 1).position(|w| w == [text.as_bytes(), b"\0"].concat());
        let name = |text: &str| name(text).unwrap() as u32;
        let types: Vec<u32> = [
            vec![name("int"), 1 << 24, 4, 32],
            vec![name("other"), 4 << 24 | 1, 4, name("pid"), 1, 32],
            vec![name("task_struct"), 1 << 31 | 4 << 24 | 3, 16],
            vec![name("state"), 1, 3 << 24, name("pid"), 1, 64, name("tgid"), 1, 96],
            vec![name("btf_trace_switch"), 8 << 24, 1],
        ]
        .concat();
        let length = types.len() as u32 * 4;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, length, length, names.len() as u32];
        let mut bytes: Vec<u8> = header.iter().chain(&types).flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend_from_slice(names);
        bytes
    }

    #[test]
    fn fields_are_found_in_the_structure_of_that_name_alone() {
        assert_eq!(offsets_of(&drawn(), "task_struct", ["pid", "tgid"]), Some([8, 12]));
        assert_eq!(offsets_of(&drawn(), "other", ["pid"]), Some([4]));
        assert_eq!(offsets_of(&drawn(), "other", ["tgid"]), None);
        assert_eq!(offsets_of(&drawn(), "task", ["pid"]), None);
    }

    #[test]
    fn a_tracepoint_has_the_id_of_its_type_definition() {
        assert_eq!(id_of_typedef(&drawn(), "btf_trace_switch"), Some(4));
        assert_eq!(id_of_typedef(&drawn(), "task_struct"), None, "it is a structure");
    }

    #[test]
    fn a_description_that_was_cut_gives_nothing_and_does_not_panic() {
        let whole = drawn();
        for length in 0..whole.len() {
            assert_eq!(offsets_of(&whole[..length], "task_struct", ["tgid"]), None, "{length} bytes");
        }
    }
}

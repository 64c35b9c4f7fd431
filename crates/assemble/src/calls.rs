//! Whether the call before a return address can have led to a function, by the machine code of both.
//!
//! A walk that reads live memory may find the return address of a *later* call at the same place of the stack, because
//! the program has moved on. That address follows a call, too, but a call of another function. This check tells the two
//! apart where the code allows it: direct calls, calls through the procedure linkage table, and tail calls. Anything else,
//! such as a virtual call, is possible but not certain.

use std::ops::Range;

/// Whether a call led to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The call leads to it, directly or by tail calls.
    Leads,
    /// The call may lead anywhere.
    Possible,
    /// The call leads elsewhere.
    Elsewhere,
}

/// Code of a process.
pub(crate) trait Code {
    /// Reads code; returns the number of bytes.
    fn read(&mut self, address: u64, into: &mut [u8]) -> usize;

    /// The function at an address, by its unwind table.
    fn function(&mut self, address: u64) -> Option<Range<u64>>;
}

/// Longest chain of tail calls and stubs that is followed.
const MAX_FUNCTIONS: usize = 8;
/// Longest function that is searched for tail calls.
const MAX_FUNCTION_BYTES: u64 = 64 << 10;

/// Whether the call before `return_address` led to `callee`. `None` if the code cannot be read.
#[cfg(target_arch = "x86_64")]
pub(crate) fn evidence_of_call(return_address: u64, callee: &Range<u64>, code: &mut impl Code) -> Option<Evidence> {
    let mut call = [0; 8];
    read_all(code, return_address.wrapping_sub(8), &mut call)?;
    let mut targets = match call_target(return_address, call) {
        Target::Address(address) => vec![address],
        Target::Pointer(pointer) => vec![word(code, pointer)?],
        Target::Unknown => return Some(Evidence::Possible),
    };
    let mut next = 0;
    while let Some(&target) = targets.get(next) {
        next += 1;
        if callee.contains(&target) {
            return Some(Evidence::Leads);
        }
        if targets.len() > MAX_FUNCTIONS {
            return Some(Evidence::Possible);
        }
        if let Some(pointer) = stub_pointer(target, code) {
            targets.push(word(code, pointer)?);
            continue;
        }
        let Some(function) = code.function(target).filter(|function| function.end - target <= MAX_FUNCTION_BYTES)
        else {
            return Some(Evidence::Possible);
        };
        let mut body = vec![0; (function.end - target) as usize];
        read_all(code, target, &mut body)?;
        if has_indirect_jump(&body) {
            return Some(Evidence::Possible);
        }
        for jump in jumps(target, &body).filter(|jump| !function.contains(jump)) {
            if callee.contains(&jump) {
                return Some(Evidence::Leads);
            }
            let starts_function = code.function(jump).is_some_and(|other| other.start == jump);
            if starts_function && !targets.contains(&jump) {
                targets.push(jump);
            }
        }
    }
    Some(Evidence::Elsewhere)
}

/// Calls of other architectures are not decoded.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn evidence_of_call(_: u64, _: &Range<u64>, _: &mut impl Code) -> Option<Evidence> {
    Some(Evidence::Possible)
}

/// Whether eight bytes of code can end in a call: `e8 rel32`, or `ff /2` with any operand.
#[cfg(target_arch = "x86_64")]
pub(crate) fn ends_in_call(code: &[u8; 8]) -> bool {
    code[3] == 0xe8 || (2..=7).any(|length| is_indirect_call(&code[8 - length..]))
}

/// Whether the last instruction of aarch64 code is `bl` or `blr` (authenticated ones too).
#[cfg(target_arch = "aarch64")]
pub(crate) fn ends_in_call(code: &[u8; 8]) -> bool {
    let word = u32::from_le_bytes([code[4], code[5], code[6], code[7]]);
    word >> 26 == 0b100101 || word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800
}

/// Whether these bytes are exactly one `ff /2`. The length is what `mod` and `rm` of the ModRM byte ask for.
#[cfg(target_arch = "x86_64")]
fn is_indirect_call(instruction: &[u8]) -> bool {
    let &[opcode, modrm, ..] = instruction else { return false };
    let length = match (modrm >> 6, modrm & 7) {
        (0, 4) if instruction.len() == 7 => 7,
        (0, 4) => 3,
        (0, 5) => 6,
        (0, _) | (3, _) => 2,
        (1, 4) => 4,
        (1, _) => 3,
        (_, 4) => 7,
        _ => 6,
    };
    opcode == 0xff && modrm >> 3 & 7 == 2 && instruction.len() == length
}

/// The target of a call instruction.
#[derive(Debug, PartialEq, Eq)]
#[cfg(target_arch = "x86_64")]
enum Target {
    Address(u64),
    /// The address of a pointer to it.
    Pointer(u64),
    Unknown,
}

/// Decodes the call that ends at `end`: `e8 rel32`, or `ff 15 rel32`.
#[cfg(target_arch = "x86_64")]
fn call_target(end: u64, code: [u8; 8]) -> Target {
    let relative = |at: usize| end.wrapping_add_signed(displacement(&code[at..]).unwrap_or(0));
    match (code[2], code[3]) {
        (0xff, 0x15) => Target::Pointer(relative(4)),
        // The last bytes may also read as a call through a register or a table.
        (_, 0xe8) if !(2..=4).any(|length| is_indirect_call(&code[8 - length..])) => Target::Address(relative(4)),
        _ => Target::Unknown,
    }
}

/// The pointer of a linkage table's stub: `[endbr64] [bnd] jmp *rel32(%rip)`.
#[cfg(target_arch = "x86_64")]
fn stub_pointer(address: u64, code: &mut impl Code) -> Option<u64> {
    let mut bytes = [0; 16];
    let length = code.read(address, &mut bytes);
    let mut rest = &bytes[..length];
    for prefix in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2]] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    let operand = rest.strip_prefix(&[0xff, 0x25])?;
    let end = address + (length - operand.len() + 4) as u64;
    Some(end.wrapping_add_signed(displacement(operand)?))
}

/// Whether code may contain `jmp` through a register or memory.
#[cfg(target_arch = "x86_64")]
fn has_indirect_jump(code: &[u8]) -> bool {
    code.windows(2).any(|bytes| bytes[0] == 0xff && bytes[1] >> 3 & 7 == 4)
}

/// Targets of everything in the code that reads as a direct jump, conditional or not. Bytes that are no instruction may
/// read as one, too.
#[cfg(target_arch = "x86_64")]
fn jumps(address: u64, code: &[u8]) -> impl Iterator<Item = u64> + '_ {
    (0..code.len()).flat_map(move |at| {
        let far = match code[at] {
            0xe9 => Some(at + 1),
            0x0f if code.get(at + 1).is_some_and(|byte| byte >> 4 == 8) => Some(at + 2),
            _ => None,
        };
        let near = matches!(code[at], 0xeb | 0x70..=0x7f).then_some(at + 1);
        let target = |length: usize, by: i64| address.wrapping_add(length as u64).wrapping_add_signed(by);
        let far = far.and_then(|operand| Some(target(operand + 4, displacement(&code[operand..])?)));
        let near = near.and_then(|operand| Some(target(operand + 1, i64::from(*code.get(operand)? as i8))));
        far.into_iter().chain(near)
    })
}

#[cfg(target_arch = "x86_64")]
fn displacement(bytes: &[u8]) -> Option<i64> {
    Some(i64::from(i32::from_le_bytes(*bytes.first_chunk()?)))
}

#[cfg(target_arch = "x86_64")]
fn word(code: &mut impl Code, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read_all(code, address, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

#[cfg(target_arch = "x86_64")]
fn read_all(code: &mut impl Code, address: u64, into: &mut [u8]) -> Option<()> {
    (code.read(address, into) == into.len()).then_some(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Memory from 0x1000 on; functions are 0x100 bytes long each, up to 0x2000.
    struct Drawn(Vec<u8>);

    impl Drawn {
        fn new() -> Self {
            Self(vec![0x90; 0x2000])
        }

        fn put(mut self, address: usize, bytes: &[u8]) -> Self {
            self.0[address - 0x1000..][..bytes.len()].copy_from_slice(bytes);
            self
        }

        /// An instruction of this opcode at an address, with the 32-bit displacement to a target.
        fn branch(self, address: usize, opcode: &[u8], target: usize) -> Self {
            let end = address + opcode.len() + 4;
            let displacement = (target as i32 - end as i32).to_le_bytes();
            self.put(address, &[opcode, &displacement].concat())
        }

        /// Whether the five bytes of a call at 0x1000 led to the function at 0x1500.
        fn evidence(mut self) -> Option<Evidence> {
            evidence_of_call(0x1005, &(0x1500..0x1600), &mut self)
        }
    }

    impl Code for Drawn {
        fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
            // What lies before the call is filler.
            if address < 0x1000 {
                let before = (0x1000 - address) as usize;
                into[..before].fill(0x90);
                return before + self.read(0x1000, &mut into[before..]);
            }
            let bytes = self.0.get(address as usize - 0x1000..).unwrap_or_default();
            let length = bytes.len().min(into.len());
            into[..length].copy_from_slice(&bytes[..length]);
            length
        }

        fn function(&mut self, address: u64) -> Option<Range<u64>> {
            (0x1000..0x2000).contains(&address).then_some(address & !0xff..(address & !0xff) + 0x100)
        }
    }

    const CALL: &[u8] = &[0xe8];
    const JUMP: &[u8] = &[0xe9];
    const JUMP_IF_EQUAL: &[u8] = &[0x0f, 0x84];
    const JUMP_THROUGH: &[u8] = &[0xff, 0x25];

    #[test]
    fn a_direct_call_leads_to_its_target_only() {
        assert_eq!(Drawn::new().branch(0x1000, CALL, 0x1500).evidence(), Some(Evidence::Leads));
        assert_eq!(Drawn::new().branch(0x1000, CALL, 0x1400).evidence(), Some(Evidence::Elsewhere));
        let mut backwards = Drawn::new().branch(0x1200, CALL, 0x1100);
        assert_eq!(evidence_of_call(0x1205, &(0x1100..0x1200), &mut backwards), Some(Evidence::Leads));
        assert_eq!(evidence_of_call(0x1205, &(0x1500..0x1600), &mut backwards), Some(Evidence::Elsewhere));
    }

    #[test]
    fn a_stub_leads_to_where_its_pointer_points() {
        let through = |function: u64| {
            let call = Drawn::new().branch(0x1000, CALL, 0x1800).put(0x1800, &[0xf3, 0x0f, 0x1e, 0xfa]);
            call.branch(0x1804, JUMP_THROUGH, 0x2800).put(0x2800, &function.to_le_bytes())
        };
        assert_eq!(through(0x1500).evidence(), Some(Evidence::Leads));
        assert_eq!(through(0x1400).evidence(), Some(Evidence::Elsewhere));
    }

    #[test]
    fn tail_calls_lead_further() {
        let call = || Drawn::new().branch(0x1000, CALL, 0x1400);
        assert_eq!(call().branch(0x1410, JUMP, 0x1500).evidence(), Some(Evidence::Leads));
        assert_eq!(call().branch(0x1410, JUMP_IF_EQUAL, 0x1700).evidence(), Some(Evidence::Elsewhere));
        let chain = call().branch(0x1410, JUMP_IF_EQUAL, 0x1700).branch(0x1720, JUMP, 0x1500);
        assert_eq!(chain.evidence(), Some(Evidence::Leads));
        assert_eq!(call().put(0x1410, &[0xff, 0xe0]).evidence(), Some(Evidence::Possible), "jmp *%rax leads anywhere");
    }

    #[test]
    fn undecoded_calls_and_unknown_functions_are_possible_and_unreadable_code_is_no_evidence() {
        assert_eq!(Drawn::new().put(0x1003, &[0xff, 0xd0]).evidence(), Some(Evidence::Possible), "call *%rax");
        assert_eq!(Drawn::new().branch(0x1000, CALL, 0x2500).evidence(), Some(Evidence::Possible), "no unwind table");
        assert_eq!(Drawn(vec![0x90; 2]).evidence(), None);
    }

    #[test]
    fn return_addresses_follow_direct_and_indirect_calls_only() {
        let nops = |tail: &[u8]| {
            let mut code = [0x90; 8];
            code[8 - tail.len()..].copy_from_slice(tail);
            ends_in_call(&code)
        };
        assert!(nops(&[0xe8, 1, 2, 3, 4]));
        assert!(nops(&[0xff, 0xd0]), "call *%rax");
        assert!(nops(&[0xff, 0x15, 1, 2, 3, 4]), "call *rel(%rip)");
        assert!(nops(&[0xff, 0x50, 0x18]), "call *0x18(%rax)");
        assert!(nops(&[0xff, 0x54, 0x24, 0x08]), "call *8(%rsp)");
        assert!(!nops(&[0xe9, 1, 2, 3, 4]), "jmp");
        assert!(!nops(&[0xff, 0xe0]), "jmp *%rax");
        assert!(!nops(&[0xc3]), "ret");
    }
}

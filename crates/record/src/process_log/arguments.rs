//! Arguments that are added to a program as it starts.
//!
//! A process that stops at `exec` has its new stack, but has executed nothing: at the stack pointer stand the number of
//! arguments, pointers to them, NULL, pointers to the environment, NULL, and pairs of numbers for the dynamic linker. A longer copy
//! of it with the new arguments goes below, and the stack pointer there. So the program gets the arguments
//! wherever it was started from and whatever started it: nothing of a build's files changes, a build that was configured
//! before gets them too, and programs that only ask for their command line (`/proc/PID/cmdline`) see the old one.

use std::io;

use super::ptrace::{Registers, read_registers, write_registers};

/// The most that is copied. The kernel gives the stack of a new program at least 128 KiB more than it needs.
const MOST: usize = 96 * 1024;
const WORD: usize = size_of::<usize>();

/// Adds arguments at this position (1: after the program) to a task that stopped at its `exec`.
///
/// # Errors
/// If its memory cannot be read or written, or it has too many arguments. It is unchanged then.
pub(super) fn add(tid: u32, position: usize, arguments: &[String]) -> io::Result<()> {
    let mut registers = read_registers(tid)?;
    let old = *stack_pointer(&mut registers);
    let block = read_block(tid, old)?;
    let (bytes, top) = longer(&block, old, position, arguments)?;
    write(tid, top, &bytes)?;
    *stack_pointer(&mut registers) = top;
    write_registers(tid, &mut registers)
}

/// The block with the new arguments, and the address where it goes, which is a multiple of 16.
fn longer(block: &[usize], old: usize, position: usize, arguments: &[String]) -> io::Result<(Vec<u8>, usize)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let count = block[0];
    if position > count || arguments.iter().any(|one| one.contains('\0')) {
        return Err(invalid());
    }
    let strings: usize = arguments.iter().map(|one| one.len() + 1).sum();
    let words = block.len() + arguments.len();
    let top = old.checked_sub(words * WORD + strings).ok_or_else(invalid)? & !15;
    let mut address = top + words * WORD;
    let mut new = vec![count + arguments.len()];
    new.extend_from_slice(&block[1..=position]);
    for argument in arguments {
        new.push(address);
        address += argument.len() + 1;
    }
    new.extend_from_slice(&block[position + 1..]);
    let mut bytes: Vec<u8> = new.into_iter().flat_map(usize::to_ne_bytes).collect();
    for argument in arguments {
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    Ok((bytes, top))
}

/// The words from the stack pointer to the end of the numbers for the dynamic linker.
fn read_block(tid: u32, at: usize) -> io::Result<Vec<usize>> {
    let mut words: Vec<usize> = Vec::new();
    // Lists that end in NULL: arguments, environment. Then pairs up to one that begins with 0.
    let mut lists_left = 2;
    while words.len() * WORD < MOST {
        // Pages, so that a read at the end of the stack does not fail.
        let from = at + words.len() * WORD;
        let mut part = vec![0_u8; 4096 - from % 4096];
        read(tid, from, &mut part)?;
        for word in part.chunks_exact(WORD) {
            words.push(usize::from_ne_bytes(word.try_into().expect("chunks are whole words")));
            let last = words.len() - 1;
            if last == 0 {
                continue;
            }
            if lists_left > 0 {
                lists_left -= usize::from(words[last] == 0);
                if lists_left == 0 {
                    // Pairs start after this word.
                    return read_pairs(tid, at, words);
                }
            }
        }
    }
    Err(io::Error::from(io::ErrorKind::ArgumentListTooLong))
}

fn read_pairs(tid: u32, at: usize, mut words: Vec<usize>) -> io::Result<Vec<usize>> {
    while words.len() * WORD < MOST {
        let mut pair = [0_u8; 2 * WORD];
        read(tid, at + words.len() * WORD, &mut pair)?;
        let pair = pair.chunks_exact(WORD).map(|word| usize::from_ne_bytes(word.try_into().expect("whole words")));
        words.extend(pair);
        if words[words.len() - 2] == 0 {
            return Ok(words);
        }
    }
    Err(io::Error::from(io::ErrorKind::ArgumentListTooLong))
}

fn vector(bytes: *mut libc::c_void, length: usize) -> libc::iovec {
    libc::iovec { iov_base: bytes, iov_len: length }
}

fn read(tid: u32, from: usize, into: &mut [u8]) -> io::Result<()> {
    let (ours, theirs) = (vector(into.as_mut_ptr().cast(), into.len()), vector(from as *mut _, into.len()));
    // SAFETY: our vector is the slice, which the call fills; theirs is checked by the kernel.
    let count = unsafe { libc::process_vm_readv(tid as libc::pid_t, &ours, 1, &theirs, 1, 0) };
    whole(count, into.len())
}

fn write(tid: u32, to: usize, bytes: &[u8]) -> io::Result<()> {
    let (ours, theirs) = (vector(bytes.as_ptr().cast_mut().cast(), bytes.len()), vector(to as *mut _, bytes.len()));
    // SAFETY: our vector is the slice, which the call only reads; theirs is checked by the kernel.
    let count = unsafe { libc::process_vm_writev(tid as libc::pid_t, &ours, 1, &theirs, 1, 0) };
    whole(count, bytes.len())
}

fn whole(count: isize, wanted: usize) -> io::Result<()> {
    match usize::try_from(count) {
        Ok(count) if count == wanted => Ok(()),
        Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_arch = "x86_64")]
fn stack_pointer(registers: &mut Registers) -> &mut usize {
    // SAFETY: `u64` and `usize` are the same on this machine.
    unsafe { &mut *(&raw mut registers.rsp).cast() }
}

#[cfg(target_arch = "aarch64")]
fn stack_pointer(registers: &mut Registers) -> &mut usize {
    // SAFETY: `u64` and `usize` are the same on this machine.
    unsafe { &mut *(&raw mut registers.sp).cast() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_arguments_stand_at_their_place_and_all_else_stays() {
        // Two arguments, one variable, one pair and the last pair.
        let block = [2, 0x7100, 0x7200, 0, 0x7300, 0, 6, 4096, 0, 0];
        let (bytes, top) = longer(&block, 0x7000, 1, &["-x".to_owned(), "yz".to_owned()]).unwrap();
        let words: Vec<usize> =
            bytes[..12 * WORD].chunks(WORD).map(|word| usize::from_ne_bytes(word.try_into().unwrap())).collect();
        let text = top + 12 * WORD;
        assert_eq!(words, [4, 0x7100, text, text + 3, 0x7200, 0, 0x7300, 0, 6, 4096, 0, 0]);
        assert_eq!(&bytes[12 * WORD..], b"-x\0yz\0");
        assert_eq!(top % 16, 0);
        assert!(top + bytes.len() <= 0x7000);
        assert!(longer(&block, 0x7000, 3, &["-x".to_owned()]).is_err());
    }
}

//! Replays calls of a stopped program on a copy of its memory, and finds those that repeat an earlier one: the same inputs, the same
//! results.
//!
//! A call is run here, instruction by instruction ([`Interpreter`]). Each byte that it reads before it writes it is an input, and what
//! it has written at its end is its result ([`Memory`]). Nothing of this reaches the program, which does the call itself afterwards.
//!
//! Two calls are the same if they take the same path and their inputs and results are the same ([`Calls`]). Addresses of data do not
//! count: a copy of an object is the same input. Of very many words one or two may differ: a counter, the time. The allocator is
//! replaced, and a call that enters the kernel is not replayed.
//!
//! A call can also be run again with another value in its memory, to see whether its result depends on it ([`Trial`]). What a search reads and
//! drops does not matter to its result; what a sum reads does.
//!
//! The program's memory is given as a [`Source`]; stopping it is up to the caller. Only on x86-64 Linux.

/// Declares what is only there where calls can be replayed.
macro_rules! on_x86_64 {
    ($($item:item)*) => { $(#[cfg(all(target_arch = "x86_64", target_os = "linux"))] $item)* };
}

on_x86_64! {
    mod calls;
    mod interpreter;
    mod library;
    mod memory;
    mod native;
    mod scans;
    mod step;
    #[cfg(test)]
    mod tests;

    pub use calls::Calls;
    pub use interpreter::{Done, Interpreter, Limit};
    pub use library::Function;
    pub use memory::{Change, Memory, Ranges, Source};
    pub use native::{Registers, Vectors};
    pub use scans::Trial;
}

/// The calls of mathematical functions within the calls of a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mathematics {
    /// How many there were.
    pub calls: usize,
    /// Of different numbers, or of different functions.
    pub different: usize,
    /// The part of their work that is for the numbers of an earlier one, 0 to 1.
    pub part: f64,
}

/// What was found out about the calls of a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replays {
    /// Calls that were replayed.
    pub followed: usize,
    /// Of these, calls that repeat an earlier one.
    pub repeated: usize,
    /// The part of the function's work that these do, 0 to 1, as far as they tell: not all calls are replayed.
    pub part: f64,
    /// Instructions of a call (median).
    pub instructions: u64,
    /// Bytes that a repeated call reads (median).
    pub input_bytes: u64,
    /// Bytes that a repeated call writes, but for its stack (median).
    pub output_bytes: u64,
    /// What calls read, and what of it matters.
    pub scans: Scans,
    /// What they ask mathematical functions.
    pub mathematics: Mathematics,
    /// What they leave behind.
    pub effects: Effects,
    /// Why calls could not be replayed, if some could not.
    pub stopped: Option<String>,
}

/// What the calls of a function read, and what of it their results depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scans {
    /// Bytes that a call reads (median).
    pub read_bytes: u64,
    /// Bytes that a call writes, but for its stack (median).
    pub written_bytes: u64,
    /// The part of these bytes that an earlier call has read, too, at the same addresses with the same values, 0 to 1 (median): the last one
    /// that has read a fifth of it. Of two calls that read not as much, it is a part of what the one with less reads.
    pub shared: f64,
    /// Different arguments of the calls.
    pub arguments: usize,
    /// Words that a call shares with that one, which were changed, one at a time.
    pub changed: usize,
    /// Of these, words whose change had another result.
    pub mattered: usize,
}

/// What the calls of a function leave behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Calls that write what is there already, but for the last digits of numbers.
    pub kept: usize,
    /// The part of the function's work that these do, 0 to 1.
    pub kept_part: f64,
    /// Bytes that such a call writes (median).
    pub kept_bytes: u64,
    /// Calls that leave all memory as it was.
    pub silent: usize,
    /// Different answers of these that their callers use; 0 if none is used.
    pub answers: usize,
}

/// Why a call cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// It makes a system call.
    #[error("it calls the kernel")]
    Kernel,
    /// It has more instructions, inputs or results than the limit, or its time is over.
    #[error("a call has too many instructions")]
    TooLong,
    /// It reads memory that cannot be read, or writes what cannot be written.
    #[error("memory at {0:#x} cannot be read or written")]
    Unreadable(u64),
    /// It moves a block of memory whose size only its own allocator knows.
    #[error("its allocator is not known")]
    Allocator,
    /// It has an instruction that cannot be run here: at this address.
    #[error("the instruction at {0:#x} cannot be run apart")]
    Instruction(u64),
}

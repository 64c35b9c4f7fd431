//! The programs at `sys_enter` and `sys_exit`.

use std::io;
use std::os::fd::BorrowedFd;

use stepscope_assemble::system_call::{BYTES, Sum};
use stepscope_model::CALL_TIME_BITS;

use super::kind;
use crate::perf::assembly::{Assembly, Label, unless_member_leave};
use crate::perf::bpf::{CONTEXT, Function, Instruction, Jump, RESULT, Register, STACK};
use crate::perf::btf;

/// Least time between two records of a sum.
const PAUSE_NS: i32 = 10_000_000;
/// Calls up to this one have a record if their number is a power of two.
const FIRST_CALLS: i32 = 64;
/// Calls by path up to this one all have a record: each may be of another file.
const FIRST_PATHS: i32 = 256;
/// Records of a place that all have a stack. Then there is one every [`STACK_PAUSE_NS`].
const STACKS_OF_A_PLACE: i32 = 64;
/// Least time between two stacks of a place that has had many.
const STACK_PAUSE_NS: i32 = 1_000_000;
/// Files of a place with sums of their own. Further ones have one sum together: a record for each would cost most of a program that reads a file after the
/// other.
const FILES_OF_A_PLACE: i32 = 4096;
/// Bytes of `struct pt_regs` on x86-64, and where it has what is read.
const REGISTERS_BYTES: i32 = 168;
const DI: i16 = 112;
const SI: i16 = 104;
const IP: i16 = 128;
const SP: i16 = 152;

/// Offsets in the kernel's structures on the way from a task to a file's inode.
pub(super) struct Offsets {
    files: u32,
    table: u32,
    descriptors: u32,
    inode: u32,
    number: u32,
    file_system: u32,
    device: u32,
}

impl Offsets {
    pub(super) fn of_kernel() -> io::Result<Self> {
        let kernel = btf::Kernel::read()?;
        let [files] = kernel.offsets_of("task_struct", ["files"])?;
        let [table] = kernel.offsets_of("files_struct", ["fdt"])?;
        let [descriptors] = kernel.offsets_of("fdtable", ["fd"])?;
        let [inode] = kernel.offsets_of("file", ["f_inode"])?;
        let [number, file_system] = kernel.offsets_of("inode", ["i_ino", "i_sb"])?;
        let [device] = kernel.offsets_of("super_block", ["s_dev"])?;
        Ok(Self { files, table, descriptors, inode, number, file_system, device })
    }
}

/// The maps of the programs.
pub(super) struct Maps<'a> {
    pub(super) entered: BorrowedFd<'a>,
    pub(super) kinds: BorrowedFd<'a>,
    pub(super) sums: BorrowedFd<'a>,
    pub(super) rest: BorrowedFd<'a>,
    pub(super) times: BorrowedFd<'a>,
    pub(super) rest_times: BorrowedFd<'a>,
    /// The records of each place, when the last one with a stack was written, and its files.
    pub(super) places: BorrowedFd<'a>,
    pub(super) scratch: BorrowedFd<'a>,
    pub(super) events: BorrowedFd<'a>,
    /// Those without a stack.
    pub(super) plain_events: BorrowedFd<'a>,
}

/// Places on a program's stack, which both programs share.
mod at {
    /// The thread's id, then 32 bits that index maps.
    pub const TID: i16 = -4;
    pub const INDEX: i16 = -8;
    /// What a program read of the kernel's memory last.
    pub const READ: i16 = -16;
    pub const DESCRIPTOR: i16 = -24;
    pub const INODE: i16 = -32;
    pub const NOW: i16 = -40;
    pub const DURATION: i16 = -48;
    pub const KIND: i16 = -56;
    pub const RETURNED: i16 = -64;
    /// The key of a sum: thread and call, instruction, stack pointer, inode, device. The first three are its place. The bucket follows.
    pub const KEY: i16 = -112;
    pub const FILE: i16 = KEY + 24;
    pub const DEVICE: i16 = KEY + 32;
    pub const BUCKET: i16 = KEY + 40;
    /// A sum of nothing, or what is noted of the start of a call: its time, inode, device and number.
    pub const VALUE: i16 = -168;
    pub const REGISTERS: i16 = -336;
    /// Thread and call, and the bucket.
    pub const REST_KEY: i16 = -352;
    /// Whether the record has no stack.
    pub const IS_PLAIN: i16 = -360;
    /// When the call before of the sum ended.
    pub const PREVIOUS: i16 = -368;
}

fn to_stack(register: Register, at: i16) -> [Instruction; 2] {
    [Instruction::copy(register, STACK), Instruction::add(register, at.into())]
}

/// Looks up the key on the stack.
fn look_up(program: &mut Assembly, map: BorrowedFd<'_>, key_at: i16) {
    program.push(Instruction::map(1, map));
    program.push(to_stack(2, key_at));
    program.push([Instruction::call(Function::MapLookup)]);
}

/// Stores the value on the stack under the key on the stack.
fn update(program: &mut Assembly, map: BorrowedFd<'_>, key_at: i16, value_at: i16) {
    program.push(Instruction::map(1, map));
    program.push(to_stack(2, key_at));
    program.push(to_stack(3, value_at));
    program.push([Instruction::set(4, 0), Instruction::call(Function::MapUpdate)]);
}

/// Reads 64 bits of the kernel's memory, at an offset from the address in the result register, into that register.
fn follow(program: &mut Assembly, offset: u32, fails: Label) {
    program.push([Instruction::copy(3, RESULT), Instruction::add(3, offset as i32)]);
    program.push(to_stack(1, at::READ));
    program.push([Instruction::set(2, 8), Instruction::call(Function::ProbeReadKernel)]);
    program.jump_if(RESULT, Jump::NotEqual, 0, fails);
    program.push([Instruction::load(RESULT, STACK, at::READ)]);
}

/// Finds the inode and the device of the descriptor on the stack, and stores them there.
fn find_file(program: &mut Assembly, offsets: &Offsets, file_at: i16, device_at: i16, fails: Label) {
    program.push([Instruction::call(Function::CurrentTask)]);
    follow(program, offsets.files, fails);
    follow(program, offsets.table, fails);
    follow(program, offsets.descriptors, fails);
    program.push([
        Instruction::load(1, STACK, at::DESCRIPTOR),
        Instruction::shift_left(1, 3),
        Instruction::add_to(RESULT, 1),
    ]);
    follow(program, 0, fails);
    program.jump_if(RESULT, Jump::Equal, 0, fails);
    follow(program, offsets.inode, fails);
    program.push([Instruction::store(STACK, at::INODE, RESULT)]);
    follow(program, offsets.number, fails);
    program.push([Instruction::store(STACK, file_at, RESULT), Instruction::load(RESULT, STACK, at::INODE)]);
    follow(program, offsets.file_system, fails);
    follow(program, offsets.device, fails);
    program.push([
        Instruction::shift_left(RESULT, 32),
        Instruction::shift_right(RESULT, 32),
        Instruction::store(STACK, device_at, RESULT),
    ]);
}

/// The start of both programs: leaves unless the process is a member; keeps the context, and the thread's id on the stack.
fn begin(members: BorrowedFd<'_>) -> Assembly {
    let mut program = Assembly::default();
    program.push(unless_member_leave(members));
    program.push([Instruction::call(Function::CurrentPidTgid), Instruction::store_u32(STACK, at::TID, RESULT)]);
    program
}

fn leave(mut program: Assembly, end: Label) -> Vec<Instruction> {
    program.place(end);
    program.push([Instruction::set(RESULT, 0), Instruction::exit()]);
    program.finish()
}

/// For `sys_enter(registers, call)`: notes the time, the call's number, and the file of a descriptor that is about to be closed.
pub(super) fn at_enter(members: BorrowedFd<'_>, entered: BorrowedFd<'_>, offsets: &Offsets) -> Vec<Instruction> {
    let (file_at, device_at) = (at::VALUE + 8, at::VALUE + 16);
    let mut program = begin(members);
    let [end, noted, known] = [(); 3].map(|()| program.label());
    program.push([
        Instruction::store_wide(STACK, file_at, 0),
        Instruction::store_wide(STACK, device_at, 0),
        Instruction::load(7, CONTEXT, 8),
        Instruction::store(STACK, at::VALUE + 24, 7),
    ]);
    program.jump_if(7, Jump::NotEqual, libc::SYS_close as i32, noted);
    program.push([Instruction::load(RESULT, CONTEXT, 0)]);
    follow(&mut program, DI as u32, noted);
    program.jump_if(RESULT, Jump::Above, 1 << 20, noted);
    program.push([Instruction::store(STACK, at::DESCRIPTOR, RESULT)]);
    find_file(&mut program, offsets, file_at, device_at, noted);
    program.place(noted);
    program.push([Instruction::call(Function::KtimeNs), Instruction::store(STACK, at::VALUE, RESULT)]);
    // Writing in place is cheaper than an update, and most threads are known.
    look_up(&mut program, entered, at::TID);
    program.jump_if(RESULT, Jump::NotEqual, 0, known);
    update(&mut program, entered, at::TID, at::VALUE);
    program.jump(end);
    program.place(known);
    for word in [0, 8, 16, 24] {
        program.push([Instruction::load(1, STACK, at::VALUE + word), Instruction::store(RESULT, word, 1)]);
    }
    leave(program, end)
}

/// For `sys_exit(registers, returned)`: adds the call to its sum, and writes a record if it is time.
pub(super) fn at_exit(members: BorrowedFd<'_>, maps: &Maps<'_>, offsets: &Offsets) -> Vec<Instruction> {
    let register = |offset: i16| at::REGISTERS + offset;
    let mut program = begin(members);
    let [end, no_file, known, succeeded, added, write] = [(); 6].map(|()| program.label());

    // The duration. A call that began before the recording has none.
    look_up(&mut program, maps.entered, at::TID);
    program.jump_if(RESULT, Jump::Equal, 0, end);
    program.push([Instruction::load(7, RESULT, 0)]);
    program.jump_if(7, Jump::Equal, 0, end);
    program.push([
        Instruction::store_wide(RESULT, 0, 0),
        Instruction::load(1, RESULT, 8),
        Instruction::store(STACK, at::FILE, 1),
        Instruction::load(1, RESULT, 16),
        Instruction::store(STACK, at::DEVICE, 1),
        // The registers no longer have it where a signal handler returns: they are those of the interrupted code.
        Instruction::load(1, RESULT, 24),
        Instruction::store_u32(STACK, at::INDEX, 1),
        Instruction::call(Function::KtimeNs),
        Instruction::store(STACK, at::NOW, RESULT),
        Instruction::subtract(RESULT, 7),
        Instruction::store(STACK, at::DURATION, RESULT),
        Instruction::load(1, CONTEXT, 8),
        Instruction::store(STACK, at::RETURNED, 1),
    ]);

    // The key.
    program.push(to_stack(1, at::REGISTERS));
    program.push([
        Instruction::set(2, REGISTERS_BYTES),
        Instruction::load(3, CONTEXT, 0),
        Instruction::call(Function::ProbeReadKernel),
    ]);
    program.jump_if(RESULT, Jump::NotEqual, 0, end);
    program.push([
        Instruction::load_u32(1, STACK, at::INDEX),
        Instruction::copy(8, 1),
        Instruction::shift_left(1, 32),
        Instruction::load_u32(2, STACK, at::TID),
        Instruction::or(1, 2),
        Instruction::store(STACK, at::KEY, 1),
        Instruction::load(1, STACK, register(IP)),
        Instruction::store(STACK, at::KEY + 8, 1),
        Instruction::load(1, STACK, register(SP)),
        Instruction::store(STACK, at::KEY + 16, 1),
    ]);
    // It may return to anywhere: one place for all of a thread. What it "returns" is the interrupted code's.
    let has_place = program.label();
    program.jump_if(8, Jump::NotEqual, libc::SYS_rt_sigreturn as i32, has_place);
    for word in [at::KEY + 8, at::KEY + 16, at::RETURNED] {
        program.push([Instruction::store_wide(STACK, word, 0)]);
    }
    program.place(has_place);
    look_up(&mut program, maps.kinds, at::INDEX);
    program.jump_if(RESULT, Jump::Equal, 0, end);
    program.push([Instruction::load_u32(9, RESULT, 0), Instruction::store(STACK, at::KIND, 9)]);

    // The file.
    program.push([
        Instruction::store_wide(STACK, at::DESCRIPTOR, -1),
        Instruction::load(1, STACK, register(DI)),
        // Only the lower 32 bits of a descriptor count.
        Instruction::shift_left(1, 32),
        Instruction::shift_right(1, 32),
    ]);
    let is_descriptor = program.label();
    program.jump_if(9, Jump::AnyBit, kind::DESCRIPTOR as i32, is_descriptor);
    program.push([Instruction::load(1, STACK, at::RETURNED)]);
    program.jump_if(9, Jump::AnyBit, kind::RETURNS_DESCRIPTOR as i32, is_descriptor);
    program.jump(no_file);
    program.place(is_descriptor);
    program.jump_if(1, Jump::Above, 1 << 20, no_file);
    program.push([Instruction::store(STACK, at::DESCRIPTOR, 1)]);
    find_file(&mut program, offsets, at::FILE, at::DEVICE, no_file);
    program.place(no_file);

    // The sum.
    let sum_of = |program: &mut Assembly, map, known, fails| {
        look_up(program, map, at::KEY);
        program.push([Instruction::copy(7, RESULT)]);
        program.jump_if(7, Jump::NotEqual, 0, known);
        for word in 0..Sum::VALUE_WORDS as i16 {
            program.push([Instruction::store_wide(STACK, at::VALUE + 8 * word, 0)]);
        }
        update(program, map, at::KEY, at::VALUE);
        look_up(program, map, at::KEY);
        program.push([Instruction::copy(7, RESULT)]);
        program.jump_if(7, Jump::Equal, 0, fails);
    };
    let [single, many, full] = [(); 3].map(|()| program.label());
    look_up(&mut program, maps.sums, at::KEY);
    program.push([Instruction::copy(7, RESULT)]);
    program.jump_if(7, Jump::NotEqual, 0, known);
    program.push([Instruction::load(1, STACK, at::FILE)]);
    program.jump_if(1, Jump::Equal, 0, single);
    look_up(&mut program, maps.places, at::KEY);
    program.jump_if(RESULT, Jump::Equal, 0, single);
    program.push([Instruction::load(1, RESULT, 16)]);
    program.jump_if(1, Jump::Above, FILES_OF_A_PLACE - 1, many);
    program.push([Instruction::add(1, 1), Instruction::store(RESULT, 16, 1)]);
    program.jump(single);
    program.place(many);
    program.push([
        Instruction::store_wide(STACK, at::FILE, Sum::MANY_FILES as i32),
        Instruction::store_wide(STACK, at::DEVICE, 0),
    ]);
    program.place(single);
    sum_of(&mut program, maps.sums, known, full);
    program.jump(known);
    program.place(full);
    for word in [8, 16, 24, 32] {
        program.push([Instruction::store_wide(STACK, at::KEY + word, 0)]);
    }
    sum_of(&mut program, maps.rest, known, end);
    program.place(known);
    let add = |word: i16, register| {
        [Instruction::load(1, 7, word), Instruction::add_to(1, register), Instruction::store(7, word, 1)]
    };
    program.push([Instruction::load(8, STACK, at::DURATION), Instruction::set(2, 1)]);
    program.push([
        Instruction::load(1, 7, Sum::LAST),
        Instruction::store(STACK, at::PREVIOUS, 1),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(7, Sum::LAST, 1),
    ]);
    program.push(add(Sum::COUNT, 2));
    program.push([Instruction::copy(9, 1)]);
    program.push(add(Sum::TOTAL, 8));
    program.push([Instruction::load(1, 7, Sum::LONGEST)]);
    let not_longer = program.label();
    program.jump_if_to(8, Jump::Below, 1, not_longer);
    program.push([Instruction::store(7, Sum::LONGEST, 8)]);
    program.place(not_longer);
    program.push([Instruction::load(8, STACK, at::RETURNED)]);
    // -4095 to -1 are errors.
    program.push([Instruction::copy(1, 8), Instruction::add(1, 4095)]);
    program.jump_if(1, Jump::Above, 4094, succeeded);
    program.push(add(Sum::ERRORS, 2));
    program.jump(added);
    program.place(succeeded);
    program.push([Instruction::load(3, STACK, at::KIND)]);
    let returns_bytes = program.label();
    program.jump_if(3, Jump::AnyBit, kind::RETURNS_BYTES as i32, returns_bytes);
    program.jump(added);
    program.place(returns_bytes);
    program.push(add(Sum::BYTES, 8));
    program.place(added);
    count_time(&mut program, maps);

    // Whether to write a record. The number of the call is in register 9.
    let [by_power, paused] = [(); 2].map(|()| program.label());
    program.push([Instruction::load(3, STACK, at::KIND)]);
    program.jump_if(3, Jump::AnyBit, (kind::PATH_FIRST | kind::PATH_SECOND) as i32, by_power);
    program.jump_if(9, Jump::Above, FIRST_CALLS, paused);
    program.push([Instruction::copy(1, 9), Instruction::add(1, -1), Instruction::and(1, 9)]);
    program.jump_if(1, Jump::Equal, 0, write);
    program.jump(paused);
    program.place(by_power);
    program.jump_if(9, Jump::Below, FIRST_PATHS + 1, write);
    program.place(paused);
    // By the start of the call: else long calls would be written more often than short ones.
    program.push([
        Instruction::load(1, STACK, at::NOW),
        Instruction::load(2, STACK, at::DURATION),
        Instruction::subtract(1, 2),
        Instruction::load(2, 7, Sum::WRITTEN),
    ]);
    program.jump_if_to(1, Jump::Below, 2, end);
    program.push([Instruction::subtract(1, 2)]);
    program.jump_if(1, Jump::Below, PAUSE_NS, end);
    program.place(write);
    program.push([Instruction::load(1, STACK, at::NOW), Instruction::store(7, Sum::WRITTEN, 1)]);
    choose_stack(&mut program, maps);
    write_record(&mut program, maps, end);
    leave(program, end)
}

/// Decides whether the record has a stack. A place with many files has one record for each, and stacks cost most of it.
fn choose_stack(program: &mut Assembly, maps: &Maps<'_>) {
    let [known, early, chosen] = [(); 3].map(|()| program.label());
    program.push([Instruction::store_wide(STACK, at::IS_PLAIN, 0)]);
    look_up(program, maps.places, at::KEY);
    program.jump_if(RESULT, Jump::NotEqual, 0, known);
    program.push([
        Instruction::store_wide(STACK, at::VALUE, 1),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(STACK, at::VALUE + 8, 1),
        Instruction::store_wide(STACK, at::VALUE + 16, 0),
    ]);
    update(program, maps.places, at::KEY, at::VALUE);
    program.jump(chosen);
    program.place(known);
    program.push([
        Instruction::load(1, RESULT, 0),
        Instruction::add(1, 1),
        Instruction::store(RESULT, 0, 1),
        Instruction::load(2, STACK, at::NOW),
    ]);
    program.jump_if(1, Jump::Below, STACKS_OF_A_PLACE + 1, early);
    program.push([
        Instruction::copy(3, 2),
        Instruction::load(4, RESULT, 8),
        Instruction::subtract(3, 4),
        Instruction::store_wide(STACK, at::IS_PLAIN, 1),
    ]);
    program.jump_if(3, Jump::Below, STACK_PAUSE_NS, chosen);
    program.place(early);
    program.push([Instruction::store(RESULT, 8, 2), Instruction::store_wide(STACK, at::IS_PLAIN, 0)]);
    program.place(chosen);
}

/// Counts the call in the bucket of its time.
fn count_time(program: &mut Assembly, maps: &Maps<'_>) {
    let [counted, full] = [(); 2].map(|()| program.label());
    // The bucket: 32 for each shift that brings the time below 64, and what is then left of it.
    program.push([Instruction::load(1, STACK, at::DURATION), Instruction::set(2, 0)]);
    for shift in [16, 8, 4, 2, 1] {
        let less = program.label();
        program.jump_if(1, Jump::Below, 1 << (shift + CALL_TIME_BITS), less);
        program
            .push([Instruction::shift_right(1, shift as i32), Instruction::add(2, (shift as i32) << CALL_TIME_BITS)]);
        program.place(less);
    }
    program.push([Instruction::add_to(2, 1), Instruction::store(STACK, at::BUCKET, 2)]);
    let count_in = |program: &mut Assembly, map, key_at, fails| {
        let known = program.label();
        look_up(program, map, key_at);
        program.jump_if(RESULT, Jump::NotEqual, 0, known);
        program.push([Instruction::store_wide(STACK, at::VALUE, 1)]);
        update(program, map, key_at, at::VALUE);
        program.jump_if(RESULT, Jump::NotEqual, 0, fails);
        program.jump(counted);
        program.place(known);
        // A sum is of one thread, so nobody else writes it.
        program.push([Instruction::load(1, RESULT, 0), Instruction::add(1, 1), Instruction::store(RESULT, 0, 1)]);
        program.jump(counted);
    };
    count_in(program, maps.times, at::KEY, full);
    program.place(full);
    for (to, from) in [(0, at::KEY), (8, at::BUCKET)] {
        program.push([Instruction::load(1, STACK, from), Instruction::store(STACK, at::REST_KEY + to, 1)]);
    }
    count_in(program, maps.rest_times, at::REST_KEY, counted);
    program.place(counted);
}

/// Writes the key, the sum in register 7, what the call returned, its duration, its descriptor, and its path if it has one.
fn write_record(program: &mut Assembly, maps: &Maps<'_>, end: Label) {
    program.push([Instruction::store_number(STACK, at::INDEX, 0)]);
    look_up(program, maps.scratch, at::INDEX);
    program.jump_if(RESULT, Jump::Equal, 0, end);
    program.push([Instruction::copy(8, RESULT)]);
    let words = |words: usize| words as i16 * 8;
    for word in 0..Sum::KEY_WORDS as i16 {
        program.push([Instruction::load(1, STACK, at::KEY + 8 * word), Instruction::store(8, 8 * word, 1)]);
    }
    let value = words(Sum::KEY_WORDS);
    for word in 0..Sum::VALUE_WORDS as i16 {
        program.push([Instruction::load(1, 7, 8 * word), Instruction::store(8, value + 8 * word, 1)]);
    }
    // The record's own time is that of the call. The sum's says when the call before ended.
    program.push([Instruction::load(1, STACK, at::PREVIOUS), Instruction::store(8, value + Sum::LAST, 1)]);
    let own = value + words(Sum::VALUE_WORDS);
    for (word, from) in [at::RETURNED, at::DURATION, at::DESCRIPTOR].into_iter().enumerate() {
        program.push([Instruction::load(1, STACK, from), Instruction::store(8, own + words(word), 1)]);
    }
    let path = own + words(4);
    let [second, read, write, has_path] = [(); 4].map(|()| program.label());
    program.push([Instruction::store_wide(8, own + words(3), 0), Instruction::load(9, STACK, at::KIND)]);
    program.push([Instruction::load(3, STACK, at::REGISTERS + DI)]);
    program.jump_if(9, Jump::AnyBit, kind::PATH_SECOND as i32, second);
    program.jump_if(9, Jump::AnyBit, kind::PATH_FIRST as i32, read);
    program.push([Instruction::set(9, 0)]);
    program.jump(write);
    program.place(second);
    program.push([Instruction::load(3, STACK, at::REGISTERS + SI)]);
    program.place(read);
    program.push([
        Instruction::copy(1, 8),
        Instruction::add(1, path.into()),
        Instruction::set(2, BYTES as i32 - i32::from(path)),
        Instruction::call(Function::ProbeReadUserText),
        Instruction::store(8, own + words(3), RESULT),
        Instruction::copy(9, RESULT),
    ]);
    // The length of the path, or an error.
    program.jump_if(9, Jump::Below, BYTES as i32 - i32::from(path) + 1, has_path);
    program.push([Instruction::set(9, 0)]);
    program.place(has_path);
    program.place(write);
    let [plain, out] = [(); 2].map(|()| program.label());
    program.push([Instruction::copy(1, CONTEXT), Instruction::load(3, STACK, at::IS_PLAIN)]);
    program.jump_if(3, Jump::NotEqual, 0, plain);
    program.push(Instruction::map(2, maps.events));
    program.jump(out);
    program.place(plain);
    program.push(Instruction::map(2, maps.plain_events));
    program.place(out);
    const CURRENT_CPU: u32 = u32::MAX;
    program.push([
        Instruction::set_u32(3, CURRENT_CPU),
        Instruction::copy(4, 8),
        Instruction::copy(5, 9),
        Instruction::add(5, path.into()),
        Instruction::call(Function::PerfEventOutput),
    ]);
}

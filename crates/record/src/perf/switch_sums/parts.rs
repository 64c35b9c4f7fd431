//! What both programs do: look up, find the thread, write.

use std::os::fd::BorrowedFd;

use stepscope_assemble::written_switch as written;

use super::layout::{SLOTS, Tables, at, thread};
use crate::perf::assembly::{Assembly, Label};
use crate::perf::bpf::{CONTEXT, Function, Instruction, Jump, RESULT, Register, STACK};

pub(super) fn to_stack(register: Register, at: i16) -> [Instruction; 2] {
    [Instruction::copy(register, STACK), Instruction::add(register, at.into())]
}

/// Looks up the key on the stack.
pub(super) fn look_up(program: &mut Assembly, map: BorrowedFd<'_>, key_at: i16) {
    program.push(Instruction::map(1, map));
    program.push(to_stack(2, key_at));
    program.push([Instruction::call(Function::MapLookup)]);
}

/// Looks up the only element of a map.
pub(super) fn look_up_only(program: &mut Assembly, map: BorrowedFd<'_>) {
    program.push([Instruction::store_number(STACK, at::INDEX, 0)]);
    look_up(program, map, at::INDEX);
}

/// Reads the ids of the task that is this argument, to this place on the stack.
pub(super) fn read_ids(program: &mut Assembly, argument: i16, ids_at: i16, to: i16) {
    program.push([
        Instruction::load(1, CONTEXT, argument * 8),
        Instruction::load_u32(2, 1, ids_at),
        Instruction::load_u32(1, 1, ids_at + 4),
        Instruction::shift_left(1, 32),
        Instruction::or(1, 2),
        Instruction::store(STACK, to, 1),
    ]);
}

/// Looks up the slot of the thread whose ids are at `ids_at`, and puts it into `register`.
fn look_up_slot(program: &mut Assembly, tables: &Tables<'_>, ids_at: i16, register: Register) {
    program.push([
        Instruction::load_u32(1, STACK, ids_at),
        Instruction::and_number(1, SLOTS as i32 - 1),
        Instruction::store_u32(STACK, at::INDEX, 1),
    ]);
    look_up(program, tables.slots, at::INDEX);
    program.push([Instruction::copy(register, RESULT)]);
}

/// Looks up the state of the thread whose ids are at `ids_at`, and puts it into `register`. Jumps to `no_member` if its process is none,
/// and to `known` if it has a state. Else the register has its slot.
pub(super) fn look_up_thread(
    program: &mut Assembly,
    tables: &Tables<'_>,
    ids_at: i16,
    register: Register,
    [known, no_member]: [Label; 2],
) {
    look_up_slot(program, tables, ids_at, register);
    program.jump_if(register, Jump::Equal, 0, no_member);
    program.push([Instruction::load(1, register, thread::IDS), Instruction::load(2, STACK, ids_at)]);
    program.jump_if_to(1, Jump::Equal, 2, known);
    unless_member(program, tables, ids_at, no_member);
    program.push([Instruction::load_u32(1, STACK, ids_at), Instruction::store_u32(STACK, at::TID, 1)]);
    look_up(program, tables.others, at::TID);
    let in_slot = program.label();
    program.jump_if(RESULT, Jump::Equal, 0, in_slot);
    program.push([Instruction::copy(register, RESULT)]);
    program.jump(known);
    program.place(in_slot);
}

/// Jumps unless the process, whose id is the upper half of the ids at `ids_at`, is a member.
pub(super) fn unless_member(program: &mut Assembly, tables: &Tables<'_>, ids_at: i16, label: Label) {
    program.push([Instruction::load_u32(1, STACK, ids_at + 4), Instruction::store_u32(STACK, at::INDEX, 1)]);
    look_up(program, tables.members, at::INDEX);
    program.jump_if(RESULT, Jump::Equal, 0, label);
}

/// Finds the state of the thread whose ids are at `ids_at`, and puts it into `register`. A new one is added. Jumps if its process
/// is no member.
pub(super) fn find_thread(
    program: &mut Assembly,
    tables: &Tables<'_>,
    ids_at: i16,
    register: Register,
    not_found: Label,
) {
    let [known, taken, new] = [(); 3].map(|()| program.label());
    program.push([Instruction::load_u32(1, STACK, ids_at)]);
    program.jump_if(1, Jump::Equal, 0, not_found);
    look_up_thread(program, tables, ids_at, register, [known, not_found]);
    program.push([
        Instruction::set(RESULT, 0),
        Instruction::load(1, STACK, ids_at),
        Instruction::compare_and_set(register, thread::IDS, 1),
    ]);
    program.jump_if(RESULT, Jump::NotEqual, 0, taken);
    program.jump(new);
    program.place(taken);
    look_up_only(program, tables.empty);
    program.jump_if(RESULT, Jump::Equal, 0, not_found);
    program.push([Instruction::copy(3, RESULT)]);
    program.push(Instruction::map(1, tables.others));
    program.push(to_stack(2, at::TID));
    program.push([Instruction::set(4, 0), Instruction::call(Function::MapUpdate)]);
    look_up(program, tables.others, at::TID);
    program.push([Instruction::copy(register, RESULT)]);
    program.jump_if(register, Jump::Equal, 0, not_found);
    program.push([Instruction::load(1, STACK, ids_at), Instruction::store(register, thread::IDS, 1)]);
    program.place(new);
    program.push([Instruction::load(1, STACK, at::NOW), Instruction::store(register, thread::WINDOW, 1)]);
    program.place(known);
}

/// Forgets the current thread, which ends.
pub(super) fn forget_thread(program: &mut Assembly, tables: &Tables<'_>, end: Label) {
    let other = program.label();
    look_up_slot(program, tables, at::CURRENT, 7);
    program.jump_if(7, Jump::Equal, 0, end);
    program.push([Instruction::load(1, 7, thread::IDS), Instruction::load(2, STACK, at::CURRENT)]);
    program.jump_if_to(1, Jump::NotEqual, 2, other);
    let words = (0..thread::BYTES).step_by(8).filter(|&word| word != thread::IDS);
    program.push(words.map(|word| Instruction::store_wide(7, word, 0)));
    // The slot is free from here on.
    program.push([Instruction::store_wide(7, thread::IDS, 0)]);
    program.jump(end);
    program.place(other);
    program.push([Instruction::load_u32(1, STACK, at::CURRENT), Instruction::store_u32(STACK, at::TID, 1)]);
    program.push(Instruction::map(1, tables.others));
    program.push(to_stack(2, at::TID));
    program.push([Instruction::call(Function::MapDelete)]);
}

/// Writes this number of bytes from the address in register 4.
pub(super) fn output(program: &mut Assembly, events: BorrowedFd<'_>, bytes: i32) {
    const CURRENT_CPU: u32 = u32::MAX;
    program.push([Instruction::copy(1, CONTEXT)]);
    program.push(Instruction::map(2, events));
    program.push([
        Instruction::set_u32(3, CURRENT_CPU),
        Instruction::set(5, bytes),
        Instruction::call(Function::PerfEventOutput),
    ]);
}

/// Writes the record on the stack, with the user's stack if that was decided.
pub(super) fn output_record(program: &mut Assembly, tables: &Tables<'_>) {
    let [with, written] = [(); 2].map(|()| program.label());
    program.push([Instruction::load(1, STACK, at::WITH_STACK)]);
    program.jump_if(1, Jump::NotEqual, 0, with);
    program.push(to_stack(4, at::RECORD));
    output(program, tables.without_stack, written::RECORD_BYTES);
    program.jump(written);
    program.place(with);
    program.push(to_stack(4, at::RECORD));
    output(program, tables.with_stack, written::RECORD_BYTES);
    program.place(written);
}

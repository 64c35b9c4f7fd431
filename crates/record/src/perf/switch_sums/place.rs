//! The place of the current thread, and whether it needs a stack.

use super::layout::{AGAIN_NS, STACKS_OF_ANY, STACKS_WITHOUT_PLACE, Tables, WORDS, at, registers, setting, thread};
use super::parts::{look_up, look_up_only, to_stack};
use crate::perf::assembly::{Assembly, Label};
use crate::perf::bpf::{Function, Instruction, Jump, RESULT, STACK};

/// Puts the place of the current thread, whose state is in register 7 and whose task is in register 1, into register 9. Registers 6 and 7
/// are kept.
pub(super) fn find_place(program: &mut Assembly, tables: &Tables<'_>) {
    let no_code = program.label();
    program.push([
        Instruction::call(Function::RegistersOfTask),
        Instruction::load(1, RESULT, registers::INSTRUCTION),
        Instruction::store(STACK, at::INSTRUCTION, 1),
        Instruction::load(1, RESULT, registers::STACK_POINTER),
        Instruction::store(STACK, at::POINTER, 1),
        Instruction::set(9, 0),
    ]);
    find_code(program, tables);
    look_up_only(program, tables.scratch);
    program.jump_if(RESULT, Jump::Equal, 0, no_code);
    program.push([
        Instruction::store(STACK, at::AWAY, RESULT),
        Instruction::copy(1, RESULT),
        Instruction::set(2, i32::from(WORDS) * 8),
        Instruction::load(3, STACK, at::POINTER),
        Instruction::call(Function::ProbeReadUser),
        Instruction::load(RESULT, STACK, at::AWAY),
        Instruction::load(3, 7, thread::CODE),
        Instruction::load(4, 7, thread::CODE + 8),
        Instruction::load(5, 7, thread::CODE + 16),
        Instruction::load(8, 7, thread::CODE + 24),
    ]);
    for word in 0..WORDS {
        let [mix, next] = [(); 2].map(|()| program.label());
        program.push([Instruction::load(1, RESULT, word * 8), Instruction::copy(2, 1), Instruction::subtract(2, 3)]);
        program.jump_if_to(2, Jump::Below, 4, mix);
        program.push([Instruction::copy(2, 1), Instruction::subtract(2, 5)]);
        program.jump_if_to(2, Jump::NotBelow, 8, next);
        program.place(mix);
        program.push([Instruction::xor(9, 1), Instruction::multiply_by(9, 0x4f6c_dd1d)]);
        program.place(next);
    }
    program.place(no_code);
    // Instruction and stack pointer above, the words below; never one of the reserved keys.
    program.push([
        Instruction::load(1, STACK, at::INSTRUCTION),
        Instruction::multiply_by(1, 0x2c1b_3c6d),
        Instruction::load(2, STACK, at::POINTER),
        Instruction::xor(1, 2),
        Instruction::multiply_by(1, 0x297a_2d39),
        Instruction::shift_right(1, 16),
        Instruction::shift_left(1, 32),
        Instruction::copy(2, 9),
        Instruction::shift_right(2, 29),
        Instruction::xor(9, 2),
        Instruction::shift_left(9, 32),
        Instruction::shift_right(9, 32),
        Instruction::or(9, 1),
        Instruction::set(1, 2),
        Instruction::or(9, 1),
    ]);
}

/// Gives the record a stack and no place (register 9), if the thread in register 7 had few stacks in this second. Else jumps.
pub(super) fn take_without_place(program: &mut Assembly, tables: &Tables<'_>, needs_place: Label) {
    program.push([Instruction::load(1, 7, thread::SLICE)]);
    program.jump_if(1, Jump::NotEqual, 0, needs_place);
    look_up_only(program, tables.settings);
    program.jump_if(RESULT, Jump::Equal, 0, needs_place);
    program.push([Instruction::load_u32(1, 7, thread::STACKS), Instruction::load(2, RESULT, setting::STACKS)]);
    program.jump_if_to(1, Jump::NotBelow, 2, needs_place);
    program.jump_if(1, Jump::Above, STACKS_WITHOUT_PLACE, needs_place);
    program.push([
        Instruction::add(1, 1),
        Instruction::store_u32(7, thread::STACKS, 1),
        Instruction::store_wide(STACK, at::WITH_STACK, 1),
        Instruction::set(9, 0),
    ]);
}

/// Brings the state in register 7 up to date about where code is. While waits are added up, what it has stays: that lasts for a
/// second at most.
fn find_code(program: &mut Assembly, tables: &Tables<'_>) {
    let [known, look] = [(); 2].map(|()| program.label());
    program.push([Instruction::load(1, 7, thread::CODE + 8), Instruction::load(2, 7, thread::SLICE)]);
    program.jump_if(1, Jump::Equal, 0, look);
    program.jump_if(2, Jump::NotEqual, 0, known);
    program.place(look);
    program.push([Instruction::load_u32(1, STACK, at::CURRENT + 4), Instruction::store_u32(STACK, at::INDEX, 1)]);
    look_up(program, tables.code, at::INDEX);
    program.jump_if(RESULT, Jump::Equal, 0, known);
    for word in 0..4 {
        program.push([Instruction::load(1, RESULT, 8 * word), Instruction::store(7, thread::CODE + 8 * word, 1)]);
    }
    program.place(known);
}

/// Sets [`at::WITH_STACK`] if the place in register 9 of the thread in register 7 needs a stack, and the thread may have one.
///
/// Copying a stack costs as much as several switches. So the first stacks of a second are for any wait, and the others only for places
/// whose last one is old.
pub(super) fn decide_stack(program: &mut Assembly, tables: &Tables<'_>, end: Label) {
    let [places_only, take, unknown] = [(); 3].map(|()| program.label());
    look_up_only(program, tables.settings);
    program.jump_if(RESULT, Jump::Equal, 0, end);
    program.push([Instruction::copy(8, RESULT)]);
    program.push([
        Instruction::load_u32(1, STACK, at::CURRENT),
        Instruction::store(STACK, at::PLACE, 1),
        Instruction::store(STACK, at::PLACE + 8, 9),
        Instruction::load_u32(1, 7, thread::STACKS),
        Instruction::load(2, 8, setting::STACKS),
    ]);
    program.jump_if_to(1, Jump::NotBelow, 2, places_only);
    program.jump_if(1, Jump::Below, STACKS_OF_ANY, take);
    program.place(places_only);
    look_up(program, tables.places, at::PLACE);
    program.jump_if(RESULT, Jump::Equal, 0, unknown);
    // There are only as many forgotten places as had a stack before.
    program.push([Instruction::load(1, RESULT, 0), Instruction::load(2, 8, setting::FORGOTTEN)]);
    program.jump_if_to(1, Jump::Below, 2, take);
    program.push([Instruction::load(2, STACK, at::NOW), Instruction::subtract(2, 1)]);
    program.jump_if(2, Jump::Below, AGAIN_NS, end);
    program.place(unknown);
    program.push([
        Instruction::load_u32(1, 7, thread::STACKS),
        Instruction::load(2, 8, setting::STACKS),
        Instruction::add_to(2, 2),
    ]);
    program.jump_if_to(1, Jump::NotBelow, 2, end);
    program.place(take);
    program.push([Instruction::store_wide(STACK, at::WITH_STACK, 1)]);
    remember_place(program, tables);
}

/// Notes that the place on the stack has a stack of now, and that the thread in register 7 had one more.
pub(super) fn remember_place(program: &mut Assembly, tables: &Tables<'_>) {
    program.push([
        Instruction::load_u32(1, 7, thread::STACKS),
        Instruction::add(1, 1),
        Instruction::store_u32(7, thread::STACKS, 1),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(STACK, at::SAMPLED, 1),
    ]);
    program.push(Instruction::map(1, tables.places));
    program.push(to_stack(2, at::PLACE));
    program.push(to_stack(3, at::SAMPLED));
    program.push([Instruction::set(4, 0), Instruction::call(Function::MapUpdate)]);
}

//! The program at wake-ups.

use stepscope_assemble::written_switch as written;

use super::layout::{Tables, at, registers, thread};
use super::parts::{look_up_only, look_up_thread, output_record, read_ids};
use super::place::{decide_stack, find_place, take_without_place};
use crate::perf::assembly::{Assembly, Label};
use crate::perf::bpf::{CONTEXT, Function, Instruction, Jump, RESULT, STACK};

/// Bytes of a thread's stack in the kernel.
const KERNEL_STACK: i32 = 16 << 10;
/// Tells places of wakers from those of waits.
const WAKER: i32 = 0x5bd1_e995;

/// Jumps unless the current thread is in a system call. An interrupt that comes while the thread is in the kernel has a stack of
/// its own, on which the program's arguments are then. One that comes to user code has a negative number of a call.
fn unless_system_call(program: &mut Assembly, tables: &Tables<'_>, kernel_stack_at: i16, label: Label) {
    look_up_only(program, tables.scratch);
    program.jump_if(RESULT, Jump::Equal, 0, label);
    program.push([
        Instruction::store(RESULT, 0, CONTEXT),
        Instruction::load(8, RESULT, 0),
        Instruction::call(Function::CurrentTaskTyped),
        Instruction::load(1, RESULT, kernel_stack_at),
        Instruction::subtract(8, 1),
    ]);
    program.jump_if(8, Jump::NotBelow, KERNEL_STACK, label);
    program.push([
        Instruction::copy(1, RESULT),
        Instruction::call(Function::RegistersOfTask),
        Instruction::load(1, RESULT, registers::SYSTEM_CALL),
        Instruction::shift_left(1, registers::BITS_ABOVE),
        Instruction::shift_right(1, 63),
    ]);
    program.jump_if(1, Jump::NotEqual, 0, label);
}

/// For `sched_waking(woken)`, in the waker or in an interrupt.
pub(super) fn at_waking(tables: &Tables<'_>, kernel_stack_at: i16) -> Vec<Instruction> {
    let mut program = Assembly::default();
    let [end, single, running, no_waker, write] = [(); 5].map(|()| program.label());
    program.push([Instruction::copy(CONTEXT, 1)]);
    read_ids(&mut program, 0, tables.ids_at, at::OTHER);
    let known = program.label();
    look_up_thread(&mut program, tables, at::OTHER, 7, [known, end]);
    program.jump(single);
    program.place(known);
    program.push([Instruction::load(1, 7, thread::SLICE)]);
    program.jump_if(1, Jump::Equal, 0, single);
    program.push([Instruction::load(1, 7, thread::SINCE)]);
    program.jump_if(1, Jump::Equal, 0, running);
    program.push([Instruction::load(1, 7, thread::WOKEN)]);
    program.jump_if(1, Jump::NotEqual, 0, end);
    program.place(running);
    program.push([Instruction::call(Function::KtimeNs), Instruction::store(7, thread::WOKEN, RESULT)]);
    program.jump(end);

    program.place(single);
    program.push([
        Instruction::call(Function::KtimeNs),
        Instruction::store(STACK, at::NOW, RESULT),
        Instruction::store(STACK, at::TIME, RESULT),
        Instruction::load(1, STACK, at::OTHER),
        Instruction::store(STACK, at::FIRST, 1),
        Instruction::store_wide(STACK, at::FLAGS, written::WAKE_UP as i32),
        Instruction::store_wide(STACK, at::SECOND, 0),
        Instruction::store_wide(STACK, at::KEY, 0),
        Instruction::store_wide(STACK, at::WITH_STACK, 0),
    ]);
    unless_system_call(&mut program, tables, kernel_stack_at, no_waker);
    program.push([
        Instruction::call(Function::CurrentPidTgid),
        Instruction::store(STACK, at::CURRENT, RESULT),
        Instruction::store(STACK, at::SECOND, RESULT),
    ]);
    let waker = program.label();
    look_up_thread(&mut program, tables, at::CURRENT, 7, [waker, write]);
    program.jump(write);
    program.place(waker);
    let needs_place = program.label();
    take_without_place(&mut program, tables, needs_place);
    program.jump(write);
    program.place(needs_place);
    program.push([Instruction::call(Function::CurrentTaskTyped), Instruction::copy(1, RESULT)]);
    find_place(&mut program, tables);
    program.push([Instruction::set(1, WAKER), Instruction::xor(9, 1), Instruction::store(STACK, at::KEY, 9)]);
    decide_stack(&mut program, tables, write);
    program.place(no_waker);
    program.place(write);
    output_record(&mut program, tables);
    program.place(end);
    program.push([Instruction::set(RESULT, 0), Instruction::exit()]);
    program.finish()
}

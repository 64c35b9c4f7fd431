//! The program at context switches.

use stepscope_assemble::written_switch as written;

use super::layout::{AGAIN_NS, SLICE_NS, Tables, at, setting, thread};
use super::parts::{find_thread, forget_thread, look_up_only, output, output_record, read_ids, to_stack};
use super::place::{decide_stack, find_place, take_without_place};
use crate::perf::assembly::{Assembly, Label};
use crate::perf::bpf::{CONTEXT, Function, Instruction, Jump, RESULT, Register, STACK};

/// The budget of a thread is for this time.
const WINDOW_NS: i32 = 1_000_000_000;
/// A wake-up may come this long before the switch of the wait that it ends.
const EARLY_NS: i32 = 50_000;
/// State of a thread that ends (`TASK_DEAD`).
const DEAD: i32 = 0x80;

/// Writes the sums of the thread in `register`, with these flags, and starts the next ones.
fn output_sums(program: &mut Assembly, tables: &Tables<'_>, register: Register, flags: i32) {
    program.push([
        Instruction::store_wide(register, thread::FLAGS, flags),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(register, thread::NOW, 1),
        Instruction::copy(4, register),
    ]);
    output(program, tables.without_stack, thread::SUMS_END.into());
    for sum in 0..written::SUMS as i16 {
        let at = thread::SUMS + sum * thread::SUM_BYTES;
        program.push([8, 16, 24].map(|word| Instruction::store_wide(register, at + word, 0)));
    }
    // Without a sum for the last place, there are too many: others get theirs.
    let keep = program.label();
    program.push([Instruction::load(1, register, thread::SUM_AT)]);
    program.jump_if(1, Jump::NotEqual, 0, keep);
    for sum in 0..written::SUMS as i16 {
        program.push([Instruction::store_wide(register, thread::SUMS + sum * thread::SUM_BYTES, 0)]);
    }
    program.place(keep);
    program.push([
        Instruction::store_wide(register, thread::SINCE, 0),
        Instruction::store_wide(register, thread::WOKEN, 0),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(register, thread::SLICE, 1),
    ]);
}

/// For `sched_switch(preempted, leaves, comes, state)`, in the thread that leaves.
pub(super) fn at_switch(tables: &Tables<'_>) -> Vec<Instruction> {
    let mut program = Assembly::default();
    let [left, came, end] = [(); 3].map(|()| program.label());
    program.push([
        Instruction::copy(CONTEXT, 1),
        Instruction::call(Function::KtimeNs),
        Instruction::store(STACK, at::NOW, RESULT),
        Instruction::store(STACK, at::TIME, RESULT),
        Instruction::store_wide(STACK, at::FLAGS, written::SWITCH as i32),
        Instruction::store_wide(STACK, at::FIRST, 0),
        Instruction::store_wide(STACK, at::SECOND, 0),
        Instruction::store_wide(STACK, at::KEY, 0),
        Instruction::store_wide(STACK, at::WITH_STACK, 0),
        Instruction::store_wide(STACK, at::ENDS, 0),
    ]);
    read_ids(&mut program, 1, tables.ids_at, at::CURRENT);
    find_thread(&mut program, tables, at::CURRENT, 7, left);
    leave(&mut program, tables, left);
    program.place(left);
    read_ids(&mut program, 2, tables.ids_at, at::OTHER);
    find_thread(&mut program, tables, at::OTHER, 8, came);
    come(&mut program, tables, came);
    program.place(came);

    // A record of what is not summed.
    let write = program.label();
    program.push([Instruction::load(1, STACK, at::FIRST)]);
    program.jump_if(1, Jump::NotEqual, 0, write);
    program.push([Instruction::load(1, STACK, at::SECOND)]);
    program.jump_if(1, Jump::Equal, 0, end);
    program.place(write);
    output_record(&mut program, tables);
    program.push([Instruction::load(1, STACK, at::ENDS)]);
    program.jump_if(1, Jump::Equal, 0, end);
    forget_thread(&mut program, tables, end);
    program.place(end);
    program.push([Instruction::set(RESULT, 0), Instruction::exit()]);
    program.finish()
}

/// The thread in register 7 leaves the CPU.
fn leave(program: &mut Assembly, tables: &Tables<'_>, left: Label) {
    let [preempted, placed, single, not_early] = [(); 4].map(|()| program.label());
    // A thread that is preempted while it goes to sleep can still run, whatever its state says.
    program.push([
        Instruction::set(9, written::PREEMPTED as i32),
        Instruction::load(1, CONTEXT, 0),
        Instruction::shift_left(1, 56),
    ]);
    program.jump_if(1, Jump::NotEqual, 0, preempted);
    program.push([Instruction::load(1, CONTEXT, 24), Instruction::shift_left(1, 32), Instruction::shift_right(1, 32)]);
    program.jump_if(1, Jump::Equal, 0, preempted);
    let lives = program.label();
    program.push([Instruction::copy(2, 1), Instruction::set(3, DEAD), Instruction::and(2, 3)]);
    program.jump_if(2, Jump::Equal, 0, lives);
    program.push([
        Instruction::store_wide(STACK, at::ENDS, 1),
        Instruction::store_wide(STACK, at::FLAGS, (written::SWITCH | written::DEAD) as i32),
        Instruction::set(9, 0),
    ]);
    // Its last sums, and its end.
    program.push([Instruction::store_wide(7, thread::SINCE, 0), Instruction::load(1, 7, thread::SLICE)]);
    program.jump_if(1, Jump::Equal, 0, single);
    output_sums(program, tables, 7, (written::SUMS_OF_THREAD | written::ENDS) as i32);
    program.jump(single);
    program.place(lives);
    let [needs_place, has_place] = [(); 2].map(|()| program.label());
    take_without_place(program, tables, needs_place);
    program.jump(has_place);
    program.place(needs_place);
    program.push([Instruction::load(1, CONTEXT, 8)]);
    find_place(program, tables);
    program.place(has_place);
    program.push([Instruction::load(1, 7, thread::WOKEN)]);
    program.jump_if(1, Jump::Equal, 0, placed);
    program.push([Instruction::load(2, STACK, at::NOW), Instruction::copy(3, 2), Instruction::subtract(3, 1)]);
    program.jump_if(3, Jump::Above, EARLY_NS, not_early);
    program.push([Instruction::store(7, thread::WOKEN, 2)]);
    program.jump(placed);
    program.place(preempted);
    program.place(not_early);
    program.push([Instruction::store_wide(7, thread::WOKEN, 0)]);
    program.place(placed);
    program.push([
        Instruction::store(7, thread::KEY, 9),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(7, thread::SINCE, 1),
        Instruction::load(1, 7, thread::SLICE),
    ]);
    program.jump_if(1, Jump::Equal, 0, single);
    find_sum(program, tables, left);
    program.jump(left);

    program.place(single);
    let [decided, no_place] = [(); 2].map(|()| program.label());
    program.push([
        Instruction::load_u32(1, 7, thread::SINGLES),
        Instruction::add(1, 1),
        Instruction::store_u32(7, thread::SINGLES, 1),
        Instruction::load(1, STACK, at::CURRENT),
        Instruction::store(STACK, at::FIRST, 1),
        Instruction::store(STACK, at::KEY, 9),
    ]);
    program.push([Instruction::load(1, STACK, at::ENDS), Instruction::load(2, STACK, at::WITH_STACK)]);
    program.jump_if(1, Jump::NotEqual, 0, no_place);
    program.jump_if(2, Jump::NotEqual, 0, no_place);
    decide_stack(program, tables, decided);
    program.place(no_place);
    program.place(decided);
}

/// Finds or starts the sum of the place in register 9 of the thread in register 7, and writes a stack if it is time.
fn find_sum(program: &mut Assembly, tables: &Tables<'_>, left: Label) {
    let found = program.label();
    let sums: Vec<_> = (0..written::SUMS as i16).map(|sum| (sum, program.label(), program.label())).collect();
    program.push([Instruction::store_wide(7, thread::SUM_AT, 0)]);
    for &(sum, same, new) in &sums {
        program.push([Instruction::load(1, 7, thread::SUMS + sum * thread::SUM_BYTES)]);
        program.jump_if_to(1, Jump::Equal, 9, same);
        program.jump_if(1, Jump::Equal, 0, new);
    }
    program.jump(left);
    for (sum, same, new) in sums {
        program.place(new);
        program.push([
            Instruction::store(7, thread::SUMS + sum * thread::SUM_BYTES, 9),
            Instruction::store_wide(7, thread::SAMPLED + sum * 8, 0),
        ]);
        program.place(same);
        program.push([
            Instruction::store_wide(7, thread::SUM_AT, i32::from(thread::SUMS + sum * thread::SUM_BYTES)),
            Instruction::copy(8, 7),
            Instruction::add(8, i32::from(thread::SAMPLED + sum * 8)),
        ]);
        program.jump(found);
    }
    program.place(found);
    program.jump_if(9, Jump::Equal, written::PREEMPTED as i32, left);
    let [ask, take] = [(); 2].map(|()| program.label());
    program.push([Instruction::load(1, 8, 0), Instruction::store(STACK, at::AWAY, 8)]);
    program.jump_if(1, Jump::Equal, 0, ask);
    // Most have one that is not old.
    program.push([Instruction::load(2, STACK, at::NOW), Instruction::subtract(2, 1)]);
    let old = program.label();
    program.jump_if(2, Jump::Above, AGAIN_NS, old);
    look_up_only(program, tables.settings);
    program.jump_if(RESULT, Jump::Equal, 0, left);
    program.push([Instruction::load(1, 8, 0), Instruction::load(2, RESULT, setting::FORGOTTEN)]);
    program.jump_if_to(1, Jump::NotBelow, 2, left);
    program.place(old);
    program.place(ask);
    decide_stack(program, tables, left);
    program.place(take);
    program.push([
        Instruction::load(8, STACK, at::AWAY),
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(8, 0, 1),
        Instruction::store_wide(STACK, at::WITH_STACK, 0),
        Instruction::store_wide(STACK, at::FLAGS, written::PLACE as i32),
        Instruction::load(1, STACK, at::CURRENT),
        Instruction::store(STACK, at::FIRST, 1),
        Instruction::store(STACK, at::KEY, 9),
    ]);
    program.push(to_stack(4, at::RECORD));
    output(program, tables.with_stack, written::RECORD_BYTES);
    program.push([
        Instruction::store_wide(STACK, at::FLAGS, written::SWITCH as i32),
        Instruction::store_wide(STACK, at::FIRST, 0),
        Instruction::store_wide(STACK, at::KEY, 0),
    ]);
}

/// The thread in register 8 comes to the CPU.
fn come(program: &mut Assembly, tables: &Tables<'_>, came: Label) {
    let [single, summed, flush, window_over, goes_on, on_record] = [(); 6].map(|()| program.label());
    program.push([Instruction::load(1, 8, thread::SLICE)]);
    program.jump_if(1, Jump::Equal, 0, single);
    program.push([Instruction::load(3, 8, thread::SINCE)]);
    program.jump_if(3, Jump::Equal, 0, came);
    program.push([Instruction::load(2, STACK, at::NOW), Instruction::copy(4, 2), Instruction::subtract(4, 1)]);
    program.jump_if(4, Jump::Above, SLICE_NS, flush);
    program.push([Instruction::load(5, 8, thread::SUM_AT)]);
    program.jump_if(5, Jump::Equal, 0, flush);
    program.jump_if(5, Jump::Above, i32::from(thread::SUMS_END - thread::SUM_BYTES), flush);
    // Register 2: the time off the CPU; 4: the part of it that the thread was runnable.
    let [woken, add] = [(); 2].map(|()| program.label());
    program.push([Instruction::subtract(2, 3), Instruction::set(4, 0), Instruction::load(1, 8, thread::WOKEN)]);
    program.jump_if(1, Jump::NotEqual, 0, woken);
    program.push([Instruction::load(1, 8, thread::KEY)]);
    program.jump_if(1, Jump::NotEqual, written::PREEMPTED as i32, add);
    program.push([Instruction::copy(4, 2)]);
    program.jump(add);
    program.place(woken);
    program.push([Instruction::load(4, STACK, at::NOW), Instruction::subtract(4, 1)]);
    let fits = program.label();
    program.jump_if_to(4, Jump::NotAbove, 2, fits);
    program.push([Instruction::copy(4, 2)]);
    program.place(fits);
    program.place(add);
    program.push([Instruction::subtract(2, 4), Instruction::add_to(5, 8)]);
    for (word, value) in [(16, 2), (24, 4)] {
        program.push([Instruction::load(1, 5, word), Instruction::add_to(1, value), Instruction::store(5, word, 1)]);
    }
    program.push([
        Instruction::load(1, 5, 8),
        Instruction::add(1, 1),
        Instruction::store(5, 8, 1),
        Instruction::store_wide(8, thread::SINCE, 0),
        Instruction::store_wide(8, thread::WOKEN, 0),
    ]);
    program.jump(came);

    program.place(flush);
    program.push([Instruction::load(1, 8, thread::WINDOW), Instruction::load(2, STACK, at::NOW)]);
    program.push([Instruction::subtract(2, 1)]);
    program.jump_if(2, Jump::Above, WINDOW_NS, window_over);
    output_sums(program, tables, 8, written::SUMS_OF_THREAD as i32);
    program.jump(came);
    program.place(window_over);
    output_sums(program, tables, 8, (written::SUMS_OF_THREAD | written::ENDS) as i32);
    program.push([Instruction::store_wide(8, thread::SLICE, 0)]);
    new_window(program);
    program.jump(on_record);

    program.place(single);
    program.push([
        Instruction::store_wide(8, thread::SINCE, 0),
        Instruction::store_wide(8, thread::WOKEN, 0),
        Instruction::load(1, 8, thread::WINDOW),
        Instruction::load(2, STACK, at::NOW),
        Instruction::subtract(2, 1),
    ]);
    program.jump_if(2, Jump::NotAbove, WINDOW_NS, goes_on);
    new_window(program);
    program.place(goes_on);
    look_up_only(program, tables.settings);
    program.jump_if(RESULT, Jump::Equal, 0, on_record);
    program.push([Instruction::load(2, RESULT, setting::SINGLES), Instruction::load_u32(1, 8, thread::SINGLES)]);
    program.jump_if_to(1, Jump::NotBelow, 2, summed);
    program.jump(on_record);
    program.place(summed);
    program.push([
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(8, thread::SLICE, 1),
        Instruction::load(1, STACK, at::FLAGS),
        Instruction::set(2, written::SUMMED as i32),
        Instruction::or(1, 2),
        Instruction::store(STACK, at::FLAGS, 1),
    ]);
    program.place(on_record);
    program.push([Instruction::load(1, STACK, at::OTHER), Instruction::store(STACK, at::SECOND, 1)]);
}

fn new_window(program: &mut Assembly) {
    program.push([
        Instruction::load(1, STACK, at::NOW),
        Instruction::store(8, thread::WINDOW, 1),
        Instruction::store_number(8, thread::SINGLES, 0),
        Instruction::store_number(8, thread::STACKS, 0),
    ]);
}

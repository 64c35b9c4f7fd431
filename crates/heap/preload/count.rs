//! What allocations and releases change in the table.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

use crate::bursts;
use crate::layout::{Record, SIZES};
use crate::live::{Block, Inserted};
use crate::link::thread_slot;
use crate::process::Process;
use crate::sample::{FILTER, Sampler, Since};
use crate::sys;
use crate::thread::{Thread, enter};
use crate::walk::State;

/// Adds to a number that only this thread writes, unless it shares its records.
///
/// # Safety
/// The number is mapped.
#[inline]
unsafe fn add(number: *mut u64, by: u64, is_shared: bool) {
    // SAFETY: the caller's.
    let number = unsafe { AtomicU64::from_ptr(number) };
    if is_shared {
        number.fetch_add(by, Relaxed);
    } else {
        number.store(number.load(Relaxed).wrapping_add(by), Relaxed);
    }
}

/// # Safety
/// The number is mapped.
#[inline]
unsafe fn add_small(number: *mut u32, by: u64, is_shared: bool) {
    // SAFETY: the caller's.
    let number = unsafe { AtomicU32::from_ptr(number) };
    if is_shared {
        number.fetch_add(by as u32, Relaxed);
    } else {
        number.store(number.load(Relaxed).wrapping_add(by as u32), Relaxed);
    }
}

/// Keeps what the record contributed to the peak, if that was reached since its last change.
///
/// # Safety
/// The record is mapped.
#[inline]
unsafe fn keep_peak(process: &Process, record: *mut Record) {
    // SAFETY: the caller's; the header stays mapped.
    unsafe {
        let epoch = AtomicU64::from_ptr(&raw mut (*process.header()).epoch).load(Relaxed);
        if (*record).peak_epoch != epoch {
            (*record).peak_bytes = (*record).live_bytes();
            (*record).peak_epoch = epoch;
        }
    }
}

/// Changes the live bytes of the process.
#[inline]
fn add_live(process: &Process, bytes: i64, ticks: u64) {
    // SAFETY: the header stays mapped.
    unsafe {
        let header = process.header();
        let live = AtomicI64::from_ptr(&raw mut (*header).live_bytes).fetch_add(bytes, Relaxed) + bytes;
        let peak = AtomicI64::from_ptr(&raw mut (*header).peak_bytes);
        if bytes > 0 && live > peak.load(Relaxed) {
            peak.fetch_max(live, Relaxed);
            AtomicU64::from_ptr(&raw mut (*header).epoch).fetch_add(1, Relaxed);
            (*header).peak_ticks = ticks;
        }
    }
}

#[inline]
fn size_class(size: u64) -> usize {
    const POWERS: usize = 7;
    // The first classes are powers of two, from 16 on.
    let power = (64 - size.saturating_sub(1).leading_zeros() as usize).saturating_sub(4);
    if power < POWERS { power } else { SIZES.iter().position(|most| size <= *most).unwrap_or(SIZES.len()) }
}

/// The stack at which a hook was called: its return address lies at the stack pointer.
#[inline]
pub fn caller(stack_pointer: *const u64, frame_pointer: u64) -> State {
    // SAFETY: the hook's own return address.
    let address = unsafe { *stack_pointer };
    State { address, stack_pointer: stack_pointer as u64 + 8, frame_pointer, interrupted: false }
}

/// The record of the stack that starts here.
#[inline]
fn record_at(process: &Process, thread: &mut Thread, start: State) -> Option<u32> {
    let found = thread.walker.walk(start, &process.rules, &process.table);
    if process.verifies {
        process.table.add(|header| unsafe { &raw mut (*header).verified }, 1);
        if !thread.walker.is_verified(start, &process.rules) {
            process.table.add(|header| unsafe { &raw mut (*header).mismatches }, 1);
        }
    }
    if !(found.is_same && thread.has_record) {
        // Without room for another record, the last one would be wrong.
        thread.has_record = false;
        thread.record = thread.records.of(found.node, thread.number, process)?;
        thread.has_record = true;
    }
    Some(thread.record)
}

/// Counts a new block.
#[inline]
pub fn allocated(process: &Process, address: u64, size: u64, start: State) {
    let Some(entered) = enter(process) else { return };
    let thread = &mut *entered.thread;
    let (mut weight, mut since) = (1, Since { calls: 1, bytes: size });
    if process.sample_bytes > 0 {
        // SAFETY: the slot is this thread's.
        let slot = unsafe { &mut *thread_slot() };
        if !Sampler::is_due(slot, size) {
            return;
        }
        since = thread.sampler.since(slot, size, process.sample_bytes);
        weight = thread.sampler.weight(size, process.sample_bytes);
        thread.last_calls = slot.calls;
    }
    // SAFETY: the thread's place is mapped.
    unsafe {
        let counts = process.table.thread_at(thread.number);
        add(&raw mut (*counts).calls, since.calls, thread.is_shared);
        add(&raw mut (*counts).bytes, since.bytes, thread.is_shared);
    }
    let Some(id) = record_at(process, thread, start) else {
        process.table.add(|header| unsafe { &raw mut (*header).missed }, 1);
        return;
    };
    let ticks = sys::ticks();
    match process.live.insert(Block::new(address, size, id, ticks, weight)) {
        Inserted::New => {}
        Inserted::Replaced(block) => {
            process.table.add(|header| unsafe { &raw mut (*header).unseen_frees }, 1);
            count_release(process, thread, block, ticks, false);
        }
        Inserted::NoMemory => {
            process.table.add(|header| unsafe { &raw mut (*header).missed }, 1);
            return;
        }
    }
    if process.sample_bytes > 0 {
        FILTER.add(address);
    }
    let is_shared = thread.is_shared;
    // SAFETY: the record is mapped.
    unsafe {
        let record = process.table.record_at(id);
        keep_peak(process, record);
        bursts::allocates(process, id, record, ticks);
        add(&raw mut (*record).calls, weight, is_shared);
        add(&raw mut (*record).bytes, size * weight, is_shared);
        add_small((&raw mut (*record).sizes).cast::<u32>().add(size_class(size)), weight, is_shared);
    }
    add_live(process, (size * weight) as i64, ticks);
    thread.last = address;
}

/// Adds what the thread that ends the program allocated since its last sample.
pub fn add_tail(process: &Process) {
    let Some(entered) = enter(process).filter(|_| process.sample_bytes > 0) else { return };
    let thread = &mut *entered.thread;
    // SAFETY: the slot is this thread's, and its place is mapped.
    unsafe {
        let since = thread.sampler.tail(&*thread_slot());
        let counts = process.table.thread_at(thread.number);
        add(&raw mut (*counts).calls, since.calls, thread.is_shared);
        add(&raw mut (*counts).bytes, since.bytes, thread.is_shared);
    }
}

/// A block whose release was counted, and may have to be taken back.
pub struct Released(Option<Block>);

/// Counts the release of a block, before it is released: afterwards its address may be given out again.
#[inline]
pub fn released(process: &Process, address: u64) -> Released {
    if process.sample_bytes > 0 && !FILTER.may_have(address) {
        return Released(None);
    }
    let Some(entered) = enter(process) else { return Released(None) };
    let thread = &mut *entered.thread;
    let Some(block) = process.live.remove(address) else {
        if process.sample_bytes == 0 {
            process.table.add(|header| unsafe { &raw mut (*header).unknown_frees }, 1);
        }
        return Released(None);
    };
    if process.sample_bytes > 0 {
        FILTER.remove(address);
    }
    // Allocations that are not sampled only count.
    // SAFETY: the slot is this thread's.
    let is_latest = process.sample_bytes == 0 || unsafe { (*thread_slot()).calls } == thread.last_calls;
    let is_last = thread.last == address && is_latest;
    count_release(process, thread, block, sys::ticks(), is_last);
    thread.last = if is_last { 0 } else { thread.last };
    Released(Some(block))
}

#[inline]
fn count_release(process: &Process, thread: &mut Thread, block: Block, ticks: u64, is_last: bool) {
    let (size, weight) = (block.size() * block.weight(), block.weight());
    let mut record = process.table.record_at(block.record());
    let is_shared = thread.is_shared;
    // SAFETY: records of blocks are mapped.
    unsafe {
        let is_own = (*record).thread == thread.number;
        if !is_own {
            let node = (*record).node;
            let Some(own) = thread.records.of(node, thread.number, process) else {
                process.table.add(|header| &raw mut (*header).missed, 1);
                add_live(process, -(size as i64), ticks);
                return;
            };
            record = process.table.record_at(own);
        }
        keep_peak(process, record);
        if is_own {
            add(&raw mut (*record).frees, weight, is_shared);
            add(&raw mut (*record).freed_bytes, size, is_shared);
            if is_last {
                add(&raw mut (*record).temporary, weight, is_shared);
            }
        } else {
            add(&raw mut (*record).foreign_frees, weight, is_shared);
            add(&raw mut (*record).foreign_freed_bytes, size, is_shared);
        }
        let age = block.age_ticks(ticks);
        let class = process.lifetimes.iter().position(|most| age <= *most).unwrap_or(process.lifetimes.len());
        add_small((&raw mut (*record).lifetimes).cast::<u32>().add(class), weight, is_shared);
    }
    add_live(process, -(size as i64), ticks);
}

/// Takes a release back: `realloc` failed, and the block lives on.
#[cold]
pub fn take_back(process: &Process, released: Released) {
    let Released(Some(block)) = released else { return };
    let Some(entered) = enter(process) else { return };
    let thread = &mut *entered.thread;
    // The counts of a block that was freed and allocated again by `realloc` itself.
    let record = process.table.record_at(block.record());
    // SAFETY: records of blocks are mapped.
    unsafe {
        keep_peak(process, record);
        add(&raw mut (*record).frees, block.weight().wrapping_neg(), thread.is_shared);
        add(&raw mut (*record).freed_bytes, (block.size() * block.weight()).wrapping_neg(), thread.is_shared);
    }
    add_live(process, (block.size() * block.weight()) as i64, sys::ticks());
    process.live.insert(block);
}

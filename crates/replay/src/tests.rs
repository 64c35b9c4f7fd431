//! Calls of this process are replayed on copies of its own memory, and compared with what the CPU does.

use std::arch::{asm, naked_asm};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::native::{RAX, RDI, RSI, RSP};
use crate::{Calls, Change, Done, Function, Interpreter, Limit, Memory, Ranges, Registers, Replays, Source, Stop, Vectors};

/// This process.
struct Own;

impl Source for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the local part is a buffer that we hold; the kernel checks the other one.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        read == into.len() as isize
    }
}

fn writable() -> Ranges {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let range = |line: &str| {
        let (range, access) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        access.starts_with("rw").then(|| Some(address(start)?..address(end)?)).flatten()
    };
    Ranges::of(maps.lines().filter_map(range))
}

fn library() -> FxHashMap<u64, Function> {
    let functions = [
        (libc::malloc as *const () as u64, Function::Allocate),
        (libc::calloc as *const () as u64, Function::AllocateZeroed),
        (libc::realloc as *const () as u64, Function::Reallocate),
        (libc::posix_memalign as *const () as u64, Function::AllocateInto),
        (libc::free as *const () as u64, Function::Free),
        (libc::clock_gettime as *const () as u64, Function::Clock),
    ];
    functions.into_iter().collect()
}

/// Where the code of the mathematics library is.
fn mathematics() -> Vec<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        (line.contains(" r-xp ") && line.contains("/libm")).then(|| Some(address(start)?..address(end)?)).flatten()
    };
    maps.lines().filter_map(range).collect()
}

/// A stack, and registers at the start of a call.
fn begin(function: u64, arguments: [u64; 2], stack: &mut [u64]) -> Registers {
    let fs: u64;
    // SAFETY: the C library keeps the address of the thread's own data at its start.
    unsafe { asm!("mov {}, fs:0", out(reg) fs) };
    let mut general = [0; 16];
    let top = stack.len() - 8 - stack.len() % 2;
    let address = &raw mut stack[top] as u64;
    // A function begins 8 bytes off a multiple of 16.
    general[RSP] = if address % 16 == 8 { address } else { address - 8 };
    (general[RDI], general[RSI]) = (arguments[0], arguments[1]);
    let vectors = Vectors::from_bytes(&[0; 2048]).expect("no part is present");
    Registers { general, flags: 0, ip: function, fs, gs: 0, vectors }
}

struct Replay {
    interpreter: Interpreter,
    stack: &'static mut [u64],
}

/// Memory for a stack, above a page that nobody can touch, as threads have it.
fn stack() -> &'static mut [u64] {
    const BYTES: usize = 1 << 19;
    const GUARD: usize = 4096;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, which is never given back.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), GUARD + BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(start, GUARD, libc::PROT_NONE), 0);
        std::slice::from_raw_parts_mut(start.cast::<u8>().add(GUARD).cast(), BYTES / 8)
    }
}

impl Replay {
    fn new() -> Self {
        let interpreter = Interpreter::new(library()).unwrap().with_mathematics(mathematics());
        Self { interpreter, stack: stack() }
    }

    fn run(&mut self, function: u64, arguments: [u64; 2]) -> Result<(Registers, Done), Stop> {
        let ranges = writable();
        let mut registers = begin(function, arguments, self.stack);
        let mut memory = Memory::new(&Own, &ranges, registers.general[RSP]);
        let done = self.interpreter.run(&mut registers, &mut memory, &limit())?;
        Ok((registers, done))
    }

    /// What several calls are to [`Calls`], with `between` before each.
    fn calls(&mut self, function: extern "C" fn(u64, u64) -> u64, each: &[[u64; 2]], mut between: impl FnMut(usize)) -> Replays {
        let mut calls = Calls::new(false);
        for (index, arguments) in each.iter().enumerate() {
            between(index);
            let ranges = writable();
            let mut registers = begin(function as *const () as u64, *arguments, self.stack);
            if !calls.wants(&registers.general, &ranges) {
                continue;
            }
            let mut memory = Memory::new(&Own, &ranges, registers.general[RSP]);
            let done = self.interpreter.run(&mut registers, &mut memory, &limit()).unwrap();
            let Some(trial) = calls.add(done, memory) else { continue };
            for change in trial.changes() {
                let mut registers = begin(function as *const () as u64, *arguments, self.stack);
                let mut memory = Memory::new(&Own, &ranges, registers.general[RSP]).with(change);
                let limit = Limit { instructions: trial.most_instructions(), ..limit() };
                let run = self.interpreter.run(&mut registers, &mut memory, &limit);
                calls.tried(run.map_or(true, |done| trial.differs(&done, memory)));
            }
        }
        calls.finish()
    }
}

fn limit() -> Limit<'static> {
    Limit { instructions: 20_000_000, until: Instant::now() + Duration::from_secs(60), inlined: &[] }
}

#[inline(never)]
extern "C" fn numbers(one: u64, other: u64) -> u64 {
    let (mut a, mut b) = (one | 1, other | 1);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let wide = u128::from(one) * u128::from(other) / u128::from(a + 1);
    let signed = (one as i64).wrapping_mul(-7) / (other as i64 | 1);
    let bits = one.rotate_left(13) ^ other.leading_zeros() as u64 ^ u64::from(one.count_ones()) ^ other.swap_bytes();
    wide as u64 ^ signed as u64 ^ bits ^ ((one as u8 as i8 as i64) as u64) ^ (other as u16 as u64) << 3
}

#[inline(never)]
extern "C" fn floats(one: u64, other: u64) -> u64 {
    let (x, n) = (one as f64 / 1e3, other % 200 + 3);
    let mut sum = 0.0;
    for step in 1..n {
        let y = x + step as f64 * 0.37;
        sum += y.sin() * y.abs().sqrt() + (y * 0.01).exp() - y.powf(1.3).ln_1p() + (y as f32).cos() as f64 + y.floor();
    }
    sum.to_bits()
}

#[inline(never)]
extern "C" fn containers(one: u64, other: u64) -> u64 {
    let mut values: Vec<u64> = (0..one % 500 + 40).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other).collect();
    values.sort_unstable();
    let tree: BTreeMap<u64, String> = values.iter().map(|value| (value % 97, format!("value {value:x}"))).collect();
    let map: HashMap<&str, u64> = tree.iter().map(|(key, text)| (text.as_str(), *key)).collect();
    let long: Vec<u8> = tree.values().flat_map(|text| text.bytes()).cycle().take(5000).collect();
    let copy = long.clone();
    let same = copy == long;
    let joined = tree.values().cloned().collect::<Vec<_>>().join(",");
    let found = joined.find("value f").unwrap_or(7) + joined.parse::<u64>().map_or(3, |number| number as usize);
    map.values().sum::<u64>() ^ copy.iter().map(|byte| u64::from(*byte)).sum::<u64>() << 20 ^ found as u64 ^ u64::from(same)
}

#[test]
fn a_replay_computes_what_the_cpu_does() {
    let mut replay = Replay::new();
    let functions: [extern "C" fn(u64, u64) -> u64; 3] = [numbers, floats, containers];
    for (number, function) in functions.into_iter().enumerate() {
        for arguments in [[3, 4], [1_000_003, 77], [0xdead_beef_1234, 0x8000_0000_0000_0001], [0, 0]] {
            let expected = function(arguments[0], arguments[1]);
            let (registers, done) = replay.run(function as *const () as u64, arguments).unwrap();
            assert_eq!(registers.general[RAX], expected, "function {number} of {arguments:x?}");
            assert!(done.instructions > 10);
        }
    }
}

/// A world of which calls read a part.
struct World {
    sources: [u64; 300],
    others: [u64; 8],
    counter: u64,
    sums: [u64; 100],
}

fn world() -> Box<World> {
    let sources = std::array::from_fn(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    Box::new(World { sources, others: [5; 8], counter: 0, sums: [0; 100] })
}

/// Makes `sums` of `sources`, and counts.
#[inline(never)]
extern "C" fn rebuild(world: u64, _: u64) -> u64 {
    // SAFETY: tests pass a world.
    let world = unsafe { &mut *(world as *mut World) };
    world.counter += 1;
    for at in 0..world.sums.len() {
        let mut sum = 0_u64;
        for source in &world.sources[at..at + 150] {
            sum = black_box(sum.rotate_left(5) ^ *source);
        }
        world.sums[at] = sum;
    }
    0
}

#[inline(never)]
extern "C" fn clear(world: u64, value: u64) -> u64 {
    // SAFETY: as above.
    let world = unsafe { &mut *(world as *mut World) };
    world.sums.fill(value);
    0
}

#[inline(never)]
extern "C" fn series(x: u64, n: u64) -> u64 {
    floats(x, n)
}

/// Sines and powers of numbers, of which `different` are not the same.
#[inline(never)]
extern "C" fn tones(calls: u64, different: u64) -> u64 {
    let sum = (0..calls).map(|at| black_box((at % different) as f64 + 0.3)).map(|x| x.sin() + x.powf(black_box(0.7)));
    sum.sum::<f64>().to_bits()
}

#[test]
fn sines_of_the_same_numbers_are_distinguished_from_those_of_others() {
    let mut replay = Replay::new();
    let same = replay.calls(tones, &[[200, 10]; 2], |_| {}).mathematics;
    assert_eq!((same.calls, same.different), (800, 20), "{same:?}");
    assert!(same.part > 0.9, "{same:?}");
    let others = replay.calls(tones, &[[200, 1000]], |_| {}).mathematics;
    assert_eq!((others.calls, others.different, others.part), (400, 400, 0.0), "{others:?}");
}

#[test]
fn a_replay_changes_nothing() {
    let mut world = world();
    let address = &raw mut *world as u64;
    Replay::new().run(rebuild as *const () as u64, [address, 0]).unwrap();
    let world = black_box(world);
    assert_eq!((world.counter, world.sums[3]), (0, 0));
}

#[test]
fn a_call_that_reads_what_an_earlier_one_read_repeats_it() {
    let mut world = world();
    let address = &raw mut *world as u64;
    let place = &raw mut *world;
    let mut replay = Replay::new();
    // Changes of what the function does not read do not matter; nor does its own counter.
    let unchanged = replay.calls(rebuild, &[[address, 0]; 5], |index| {
        // SAFETY: the box lives, and nobody else uses it now.
        unsafe { ((*place).others[1], (*place).counter) = (index as u64, index as u64) };
    });
    assert_eq!((unchanged.followed, unchanged.repeated), (5, 4), "{unchanged:?}");
    assert!(unchanged.part > 0.79 && unchanged.input_bytes > 8 * 200 && unchanged.output_bytes >= 800, "{unchanged:?}");
    let changed = replay.calls(rebuild, &[[address, 0]; 5], |index| {
        // SAFETY: as above.
        unsafe { (0..8).for_each(|at| (*place).sources[at] = index as u64 * 3 + 1) };
    });
    assert_eq!((changed.followed, changed.repeated), (5, 0), "{changed:?}");
}

#[test]
fn a_copy_of_an_object_is_the_same_input() {
    let mut worlds: Vec<Box<World>> = (0..4).map(|_| world()).collect();
    let calls: Vec<[u64; 2]> = worlds.iter_mut().map(|one| [&raw mut **one as u64, 0]).collect();
    let found = Replay::new().calls(rebuild, &calls, |_| {});
    assert_eq!(found.repeated, 3, "{found:?}");
}

#[test]
fn a_function_of_its_arguments_alone_repeats_a_call_with_the_same_ones() {
    let mut replay = Replay::new();
    let same = replay.calls(series, &[[9, 50]; 6], |_| {});
    assert_eq!(same.repeated, 5, "{same:?}");
    let others = replay.calls(series, &[[9, 50], [10, 50], [9, 51], [11, 50]], |_| {});
    assert_eq!(others.repeated, 0, "{others:?}");
}

#[test]
fn to_clear_memory_again_is_no_repeated_work() {
    let mut world = world();
    let address = &raw mut *world as u64;
    let found = Replay::new().calls(clear, &[[address, 0]; 6], |_| {});
    assert_eq!(found.repeated, 0, "{found:?}");
}

/// Moves `sums` towards a value at which they stay.
#[inline(never)]
extern "C" fn settle(world: u64, _: u64) -> u64 {
    // SAFETY: as above.
    let world = unsafe { &mut *(world as *mut World) };
    for round in 0..20 {
        for sum in &mut world.sums {
            *sum = black_box(*sum - (*sum / 2).min(round));
        }
    }
    0
}

/// The number of the source that is nearest to `place`.
#[inline(never)]
extern "C" fn nearest(world: u64, place: u64) -> u64 {
    // SAFETY: as above.
    let world = unsafe { &*(world as *const World) };
    let mut found = (u64::MAX, 0);
    for (at, source) in world.sources.iter().enumerate() {
        let distance = source.abs_diff(place);
        let is_nearer = u64::from(distance < found.0).wrapping_neg();
        found = (distance & is_nearer | found.0 & !is_nearer, at as u64 & is_nearer | found.1 & !is_nearer);
    }
    found.1
}

#[test]
fn a_state_that_stays_as_it_is_is_no_repeated_work() {
    let mut world = world();
    world.sums.fill(1);
    let address = &raw mut *world as u64;
    let found = Replay::new().calls(settle, &[[address, 0]; 6], |_| {});
    assert_eq!((found.followed, found.repeated), (6, 0), "{found:?}");
}

#[test]
fn rounds_that_change_nothing_any_more_are_distinguished_from_a_state_at_rest() {
    let mut world = world();
    let address = &raw mut *world as u64;
    // SAFETY: nobody else uses it meanwhile.
    let fill = |value: u64| unsafe { (&mut *(address as *mut World)).sums.fill(value) };
    // At 1 it stays; from 1000 it falls.
    let converges = Replay::new().calls(settle, &[[address, 0]; 10], |number| fill(if number < 4 { 1000 } else { 1 }));
    assert_eq!(converges.effects.kept, 6, "{converges:?}");
    assert!(converges.effects.kept_part > 0.4 && converges.effects.kept_part < 0.7, "{converges:?}");
    assert!(converges.effects.kept_bytes >= 64, "{converges:?}");
    let rests = Replay::new().calls(settle, &[[address, 0]; 10], |_| fill(1));
    assert_eq!((rests.effects.kept, rests.effects.kept_part), (0, 0.0), "{rests:?}");
}

#[test]
fn calls_that_leave_nothing_behind_are_counted_with_their_answers() {
    let mut world = world();
    let address = &raw mut *world as u64;
    let mut replay = Replay::new();
    let same = replay.calls(nearest, &[[address, 5]; 6], |_| {}).effects;
    assert_eq!((same.silent, same.answers <= 1), (6, true), "{same:?}");
    let changes = replay.calls(settle, &[[address, 0]; 6], |number| {
        // SAFETY: nobody else uses it meanwhile.
        unsafe { (&mut *(address as *mut World)).sums.fill(1000 + number as u64) }
    });
    assert_eq!(changes.effects.silent, 0, "{changes:?}");
}

#[test]
fn a_question_with_another_argument_is_another_one() {
    let mut world = world();
    let address = &raw mut *world as u64;
    let mut replay = Replay::new();
    let others = replay.calls(nearest, &[[address, 5], [address, 6], [address, 700], [address, 8000]], |_| {});
    assert_eq!((others.followed, others.repeated), (4, 0), "{others:?}");
    let same = replay.calls(nearest, &[[address, 5]; 4], |_| {});
    assert_eq!(same.repeated, 3, "{same:?}");
}

/// The sum of all sources, each times something of `factor`.
#[inline(never)]
extern "C" fn sum(world: u64, factor: u64) -> u64 {
    // SAFETY: as above.
    let world = unsafe { &*(world as *const World) };
    let mut sum = 0_u64;
    for source in &world.sources {
        sum = black_box(sum.wrapping_add(source.wrapping_mul(factor | 1)));
    }
    sum
}

/// The nearest of 100 sources from `first` on.
#[inline(never)]
extern "C" fn of_a_part(world: u64, first: u64) -> u64 {
    // SAFETY: as above.
    let world = unsafe { &*(world as *const World) };
    let part = &world.sources[first as usize..first as usize + 100];
    part.iter().map(|source| black_box(source.abs_diff(first))).min().unwrap_or(0)
}

#[test]
fn what_a_search_reads_does_not_matter_to_its_result_and_what_a_sum_reads_does() {
    let mut world = world();
    let address = &raw mut *world as u64;
    let mut replay = Replay::new();
    let arguments: Vec<[u64; 2]> = (0..8).map(|number| [address, number << 60 | 2]).collect();
    let search = replay.calls(nearest, &arguments, |_| {}).scans;
    assert_eq!((search.read_bytes, search.shared, search.arguments), (2400, 1.0, 8), "{search:?}");
    assert!(search.changed >= 40 && search.mattered * 10 <= search.changed, "{search:?}");
    let sum = replay.calls(sum, &arguments, |_| {}).scans;
    assert_eq!((sum.read_bytes, sum.shared), (2400, 1.0), "{sum:?}");
    assert!(sum.changed >= 40 && sum.mattered == sum.changed, "{sum:?}");
    // SAFETY: nobody else uses it meanwhile.
    let moves = |number: usize| unsafe { (&mut *(address as *mut World)).sources[..200].fill(number as u64 | 1 << 40) };
    let moved = replay.calls(nearest, &arguments, moves).scans;
    assert!(moved.shared < 0.5 && moved.changed == 0, "what it searches is other at each call: {moved:?}");
    assert!(replay.calls(settle, &[[address, 0]; 4], |_| {}).scans.changed == 0, "it writes as much as it reads");
    let mut others = self::world();
    let other = &raw mut *others as u64;
    let in_turns: Vec<[u64; 2]> = (0..12).map(|number| [[address, other][number % 2], number as u64 * 77]).collect();
    let of_each = replay.calls(nearest, &in_turns, |_| {}).scans;
    assert_eq!(of_each.shared, 1.0, "each object has its own data: {of_each:?}");
    let parts: Vec<[u64; 2]> = (0..40).map(|number| [address, number * 5]).collect();
    let part = replay.calls(of_a_part, &parts, |_| {}).scans;
    assert!(part.shared < 0.5, "neighbours read nearly the same part, others do not: {part:?}");
}

#[test]
fn a_change_is_only_in_the_copy() {
    let mut world = world();
    let address = world.sources.as_mut_ptr() as u64;
    let ranges = writable();
    let mut memory = Memory::new(&Own, &ranges, 0).with(Change { address: address + 3, bits: 0x0100 });
    assert_eq!(memory.word(address).unwrap(), world.sources[0] ^ 1 << 32);
    assert_eq!(memory.word(address + 8).unwrap(), world.sources[1]);
}

#[inline(never)]
extern "C" fn asks_the_kernel(_: u64, _: u64) -> u64 {
    // SAFETY: the call has no arguments.
    unsafe { libc::syscall(libc::SYS_getppid) as u64 }
}

#[inline(never)]
extern "C" fn never_ends(start: u64, _: u64) -> u64 {
    let mut at = start;
    loop {
        at = black_box(at + 1);
        if at == 0 {
            return at;
        }
    }
}

#[inline(never)]
extern "C" fn reads(address: u64, _: u64) -> u64 {
    // SAFETY: it is only replayed.
    unsafe { (address as *const u64).read_volatile() }
}

/// Adds up an array. The addition is code of an inlined function; counting is the loop around it.
#[unsafe(naked)]
extern "C" fn sums(array: *const u64, length: u64) -> u64 {
    naked_asm!("xor eax, eax", "2:", "add rax, [rdi]", "add rdi, 8", "dec rsi", "jnz 2b", "ret")
}

#[test]
fn the_next_round_of_a_loop_is_the_next_call_of_what_is_inlined_into_it() {
    const ADDITION: std::ops::Range<u64> = 2..5;
    let (numbers, start) = ([3_u64; 20], sums as *const () as u64);
    let mut replay = Replay::new();
    let mut run = |inlined: &[std::ops::Range<u64>], from: u64| {
        let ranges = writable();
        let mut registers = begin(from, [numbers.as_ptr() as u64, numbers.len() as u64], replay.stack);
        let mut memory = Memory::new(&Own, &ranges, registers.general[RSP]);
        replay.interpreter.run(&mut registers, &mut memory, &Limit { inlined, ..limit() }).map(|done| done.instructions)
    };
    assert!(run(&[], start).unwrap() > 4 * 20);
    let addition = start + ADDITION.start..start + ADDITION.end;
    assert_eq!(run(std::slice::from_ref(&addition), addition.start).unwrap(), 1);
}

#[test]
fn what_cannot_be_replayed_stops_with_a_reason() {
    let mut replay = Replay::new();
    let mut stop = |function: extern "C" fn(u64, u64) -> u64, argument| {
        replay.run(function as *const () as u64, [argument, 0]).err().expect("it stops").to_string()
    };
    assert_eq!(stop(asks_the_kernel, 0), "it calls the kernel");
    assert_eq!(stop(never_ends, 1), "a call has too many instructions");
    assert_eq!(stop(reads, 0x10), "memory at 0x0 cannot be read or written");
}

//! The library that is preloaded into programs to record their heap.
//!
//! It stands before the program's allocator: each call goes on to the allocator that the program would have used, and is
//! counted at its stack in a table in shared memory (`layout`), which the recorder reads. Modules:
//!
//! - `hooks`: `malloc` and its family, as the program calls them
//! - `process`: what the library keeps for a process; a child of `fork` has its own
//! - `thread`: what it keeps for a thread
//! - `count`: what an allocation and a release change in the table; `bursts`: when
//! - `walk`, `rules`, `cfi`: stacks
//! - `live`: live blocks; `table`: the shared table
//! - `sample`: recording by samples
//! - `sys`, `link`, `symbols`, `lock`: system calls, the dynamic linker, a lock
//!
//! The library uses neither `std` nor an allocator, because it runs inside of the allocator: before constructors, in signal
//! handlers, and while threads start and end.

#![no_std]

mod bursts;
mod cfi;
mod count;
mod hooks;
#[path = "../src/layout.rs"]
#[allow(dead_code)]
mod layout;
mod link;
mod live;
mod lock;
mod process;
mod rules;
mod sample;
mod symbols;
#[allow(dead_code)]
mod sys;
mod table;
mod thread;
mod verify;
mod walk;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

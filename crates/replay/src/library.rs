//! Functions of libraries that a replay does itself: the allocator, whose state would be an input of each call, and clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Stop;
use crate::memory::Memory;
use crate::native::{RAX, RDI, RDX, RSI, Registers};

/// A function that is done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `malloc`, `operator new`
    Allocate,
    /// `calloc`
    AllocateZeroed,
    /// `realloc`
    Reallocate,
    /// `operator new` of a size and an alignment.
    AllocateAligned,
    /// `aligned_alloc`: an alignment and a size.
    AllocateWithAlignment,
    /// `posix_memalign`
    AllocateInto,
    /// `free`, `operator delete`
    Free,
    /// `malloc_usable_size`
    Size,
    /// `clock_gettime`
    Clock,
    /// `gettimeofday`
    TimeOfDay,
    /// `time`
    Seconds,
}

impl Function {
    /// The function of a symbol.
    pub fn named(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "malloc" | "_Znwm" | "_Znam" | "_ZnwmRKSt9nothrow_t" | "_ZnamRKSt9nothrow_t" => Self::Allocate,
            "calloc" => Self::AllocateZeroed,
            "realloc" => Self::Reallocate,
            "_ZnwmSt11align_val_t" | "_ZnamSt11align_val_t" => Self::AllocateAligned,
            "aligned_alloc" | "memalign" => Self::AllocateWithAlignment,
            "posix_memalign" => Self::AllocateInto,
            "free" | "cfree" | "_ZdlPv" | "_ZdlPvm" | "_ZdaPv" | "_ZdaPvm" | "_ZdlPvSt11align_val_t"
            | "_ZdlPvmSt11align_val_t" | "_ZdaPvSt11align_val_t" | "_ZdaPvmSt11align_val_t" => Self::Free,
            "malloc_usable_size" => Self::Size,
            "clock_gettime" | "__vdso_clock_gettime" => Self::Clock,
            "gettimeofday" | "__vdso_gettimeofday" => Self::TimeOfDay,
            "time" | "__vdso_time" => Self::Seconds,
            _ => return None,
        })
    }
}

/// Does what the function would do.
pub(crate) fn call(function: Function, registers: &mut Registers, memory: &mut Memory<'_>) -> Result<(), Stop> {
    let [first, second] = [registers.general[RDI], registers.general[RSI]];
    registers.general[RAX] = match function {
        Function::Allocate => memory.allocate(first, 0),
        Function::AllocateZeroed => memory.allocate(first.saturating_mul(second), 0),
        Function::Reallocate => reallocate(first, second, memory)?,
        Function::AllocateAligned => memory.allocate(first, second),
        Function::AllocateWithAlignment => memory.allocate(second, first),
        Function::AllocateInto => {
            let place = memory.allocate(registers.general[RDX], second);
            memory.write(first, &place.to_le_bytes())?;
            0
        }
        Function::Free => {
            memory.free(first);
            0
        }
        Function::Size => memory.allocated_bytes(first)?,
        Function::Clock => write_time(second, u64::from(now().subsec_nanos()), memory)?,
        Function::TimeOfDay => write_time(first, u64::from(now().subsec_micros()), memory)?,
        Function::Seconds => {
            if first != 0 {
                memory.write(first, &now().as_secs().to_le_bytes())?;
            }
            now().as_secs()
        }
    };
    Ok(())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Writes seconds and a part of a second. Returns what the functions return that do.
fn write_time(place: u64, part: u64, memory: &mut Memory<'_>) -> Result<u64, Stop> {
    if place != 0 {
        memory.write(place, &now().as_secs().to_le_bytes())?;
        memory.write(place.wrapping_add(8), &part.to_le_bytes())?;
    }
    Ok(0)
}

fn reallocate(old: u64, bytes: u64, memory: &mut Memory<'_>) -> Result<u64, Stop> {
    /// Bytes that are moved at a time.
    const PIECE: u64 = 4096;
    let new = memory.allocate(bytes, 0);
    if old == 0 || new == 0 {
        return Ok(new);
    }
    let kept = memory.allocated_bytes(old)?.min(bytes);
    let mut piece = [0; PIECE as usize];
    let mut at = 0;
    while at < kept {
        let part = &mut piece[..PIECE.min(kept - at) as usize];
        memory.read(old + at, part)?;
        memory.write(new + at, part)?;
        at += part.len() as u64;
    }
    memory.free(old);
    Ok(new)
}

//! What the library keeps for a process.
//!
//! It lies in memory that the kernel wipes in children of `fork`. So a child finds nothing, and starts a table of its own;
//! blocks of its parent are unknown to it. A child of `vfork` shares its parent's memory and is counted with it.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use crate::bursts::Bursts;
use crate::layout::{Header, LIFETIMES_NS, MAGIC, VARIABLE, VERSION, flag};
use crate::link::{self, address};
use crate::live::Live;
use crate::rules::Rules;
use crate::sys;
use crate::table::Table;
use crate::thread::Thread;

const NEW: u32 = 0;
const STARTING: u32 = 1;
const ON: u32 = 2;
const OFF: u32 = 3;
/// Threads at a time. More are not counted.
const MAX_STATES: usize = 1 << 14;
const PATH_BYTES: usize = 256;

pub struct Process {
    phase: AtomicU32,
    pub pid: u32,
    pub table: Table,
    pub live: Live,
    pub rules: Rules,
    /// Mean bytes between samples, or 0.
    pub sample_bytes: u64,
    pub bursts: Bursts,
    /// Upper ends of the classes of lifetimes.
    pub lifetimes: [u64; LIFETIMES_NS.len()],
    pub verifies: bool,
    states: [AtomicPtr<Thread>; MAX_STATES],
    states_len: AtomicUsize,
    next_look: AtomicUsize,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());

/// What the recorder asked for. It stays the same in children.
struct Asked {
    path: [u8; PATH_BYTES],
    path_len: usize,
    sample_bytes: u64,
    ticks_per_us: u64,
    verifies: bool,
}

impl Process {
    /// The process, if it is recorded.
    #[inline]
    pub fn get() -> Option<&'static Self> {
        let process = PROCESS.load(Acquire);
        // SAFETY: never unmapped. A wiped one is new.
        match unsafe { process.as_ref() } {
            Some(process) if process.phase.load(Acquire) == ON => Some(process),
            process => Self::start(process),
        }
    }

    #[cold]
    fn start(process: Option<&'static Self>) -> Option<&'static Self> {
        let process = match process {
            Some(process) => process,
            None => Self::map()?,
        };
        if process.phase.compare_exchange(NEW, STARTING, AcqRel, Acquire).is_err() {
            // Another thread starts it, or it stays off.
            return (process.phase.load(Acquire) == ON).then_some(process);
        }
        let at = core::ptr::from_ref(process).cast_mut();
        // SAFETY: other threads use nothing but the phase until it is on.
        let is_on = unsafe { (*at).init() };
        process.phase.store(if is_on { ON } else { OFF }, Release);
        is_on.then_some(process)
    }

    fn map() -> Option<&'static Self> {
        let new = sys::map_private(size_of::<Self>()).cast::<Self>();
        if new.is_null() {
            return None;
        }
        match PROCESS.compare_exchange(null_mut(), new, AcqRel, Acquire) {
            // SAFETY: zeroed memory is a process that has not started.
            Ok(_) => Some(unsafe { &*new }),
            Err(first) => unsafe {
                sys::unmap(new.cast(), size_of::<Self>());
                first.as_ref()
            },
        }
    }

    /// # Safety
    /// Only once for zeroed memory.
    unsafe fn init(&mut self) -> bool {
        let Some(asked) = asked() else { return false };
        self.pid = sys::pid();
        let file = create_table(&asked, self.pid);
        if file < 0 {
            return false;
        }
        // SAFETY: the table is zeroed memory.
        let is_mapped = unsafe { self.table.init(file) };
        sys::close(file);
        if !is_mapped || !self.rules.init() {
            return false;
        }
        self.sample_bytes = asked.sample_bytes;
        self.verifies = asked.verifies;
        self.bursts.init(asked.ticks_per_us, sys::ticks());
        if asked.sample_bytes > 0 {
            crate::hooks::let_free_pass();
        }
        for (limit, ns) in self.lifetimes.iter_mut().zip(LIFETIMES_NS) {
            *limit = ns.saturating_mul(asked.ticks_per_us) / 1000;
        }
        // SAFETY: the header is mapped, and nobody reads it before it has its first bytes.
        unsafe {
            let header = &mut *self.table.header();
            header.version = VERSION;
            header.pid = self.pid;
            header.start_ns = sys::now_ns();
            header.start_ticks = sys::ticks();
            header.epoch = 1;
            header.sample_bytes = asked.sample_bytes;
            header.flags |= if asked.sample_bytes > 0 { flag::SAMPLED } else { 0 };
            AtomicU64::from_ptr(&raw mut header.magic).store(MAGIC, Release);
        }
        true
    }

    pub fn header(&self) -> *mut Header {
        self.table.header()
    }

    /// Memory for a thread that starts: that of one that has ended, or new.
    pub fn claim_thread(&self) -> Option<&'static mut Thread> {
        const LOOKS: usize = 4;
        let tid = sys::tid();
        let len = self.states_len.load(Acquire).min(MAX_STATES);
        for _ in 0..LOOKS.min(len) {
            let index = self.next_look.fetch_add(1, Relaxed) % len;
            let state = self.states[index].load(Acquire);
            // SAFETY: states stay mapped.
            if let Some(owner) = unsafe { state.as_ref() }.map(|state| &state.owner) {
                let of = owner.load(Acquire);
                // A thread that has our id is gone: its slot would be ours.
                let is_free = of != 0 && (of == tid || sys::is_gone(self.pid, of));
                if is_free && owner.compare_exchange(of, tid, AcqRel, Acquire).is_ok() {
                    // SAFETY: its thread is gone, and we claimed it.
                    return Some(unsafe { &mut *state });
                }
            }
        }
        let index = self.states_len.fetch_add(1, AcqRel);
        if index >= MAX_STATES {
            self.states_len.store(MAX_STATES, Release);
            return None;
        }
        let state = sys::map_private(size_of::<Thread>()).cast::<Thread>();
        // SAFETY: zeroed memory is a thread that has not started.
        let thread = unsafe { state.as_mut()? };
        thread.owner.store(tid, Release);
        self.states[index].store(state, Release);
        Some(thread)
    }

    /// Says whose allocator the program uses.
    pub fn note_allocators(&self, ours: usize) {
        let malloc = link::first(c"malloc");
        if malloc != 0 && malloc != ours {
            self.table.set_flag(flag::OTHER_ALLOCATOR);
        }
    }
}

/// Creates the file of a new table.
fn create_table(asked: &Asked, pid: u32) -> i32 {
    const MOST: u32 = 10_000;
    const EXISTS: i32 = -17;
    for number in 0..MOST {
        let mut path = [0_u8; PATH_BYTES + 32];
        path[..asked.path_len].copy_from_slice(&asked.path[..asked.path_len]);
        let len = append(&mut path, asked.path_len, pid);
        path[len] = b'-';
        append(&mut path, len + 1, number);
        match sys::create(&path) {
            EXISTS => {}
            file => return file,
        }
    }
    EXISTS
}

fn append(text: &mut [u8], mut len: usize, number: u32) -> usize {
    let mut divisor = 1_000_000_000;
    while divisor > 1 && number / divisor == 0 {
        divisor /= 10;
    }
    while divisor > 0 {
        text[len] = b'0' + (number / divisor % 10) as u8;
        len += 1;
        divisor /= 10;
    }
    len
}

/// The variable's value: `PREFIX;key=number;...`
fn parse(value: &[u8]) -> Option<Asked> {
    let mut asked = Asked { path: [0; PATH_BYTES], path_len: 0, sample_bytes: 0, ticks_per_us: 1000, verifies: false };
    let mut parts = value.split(|byte| *byte == b';');
    let path = parts.next()?;
    asked.path.get_mut(..path.len())?.copy_from_slice(path);
    asked.path_len = path.len();
    for part in parts {
        let mut sides = part.splitn(2, |byte| *byte == b'=');
        let (key, text) = (sides.next()?, sides.next().unwrap_or(b""));
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_u64, |number, byte| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')));
        match key {
            b"every" => asked.sample_bytes = number,
            b"ticks" => asked.ticks_per_us = number.max(1),
            b"verify" => asked.verifies = number > 0,
            _ => {}
        }
    }
    (!path.is_empty()).then_some(asked)
}

fn asked() -> Option<Asked> {
    from_environment().or_else(from_file)
}

/// From libc's list, which libc fills before constructors run.
fn from_environment() -> Option<Asked> {
    let variables = address!("__environ") as *const *const *const u8;
    // SAFETY: a list that ends with null, of texts that end with NUL.
    unsafe {
        let mut next = *variables.as_ref()?;
        while !next.is_null() && !(*next).is_null() {
            let text = core::ffi::CStr::from_ptr((*next).cast()).to_bytes();
            if let Some(value) = text.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
                return parse(value);
            }
            next = next.add(1);
        }
    }
    None
}

/// From the kernel, as the program started: some programs clear their environment.
fn from_file() -> Option<Asked> {
    const BYTES: usize = 256 << 10;
    let file = sys::open(b"/proc/self/environ\0");
    let buffer = sys::map_private(BYTES);
    if file < 0 || buffer.is_null() {
        return None;
    }
    // SAFETY: new memory of this size.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer, BYTES) };
    let mut len = 0;
    while let Some(rest) = bytes.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match sys::read(file, rest) {
            more if more > 0 => len += more as usize,
            _ => break,
        }
    }
    sys::close(file);
    let mut texts = bytes[..len].split(|byte| *byte == 0);
    let found = texts.find_map(|text| text.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    let asked = found.and_then(parse);
    // SAFETY: nothing refers to it any more.
    unsafe { sys::unmap(buffer, BYTES) };
    asked
}

/// A function of another library, by its address.
pub fn function<T: Copy>(address: usize) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    // SAFETY: callers name the function's type.
    (address != 0).then(|| unsafe { core::mem::transmute_copy::<usize, T>(&address) })
}

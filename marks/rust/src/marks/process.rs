//! The segment of this process, from the first mark to the end, through forks.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::layout::*;
use super::names::Names;
use super::segment::{Rings, Segment};
use super::thread::{THREAD, Thread};
use super::{clock, system};

/// A recorder without a sign of life for this long is dead.
const BEAT_NS: u64 = 10_000_000_000;
const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "stepscope-marks-";

/// 1 before the first mark, so that the first mark opens the segment.
static UNOPENED: AtomicU32 = AtomicU32::new(1);
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// Whether a recorder records.
static RECORDING: AtomicPtr<AtomicU32> = AtomicPtr::new(&raw const UNOPENED as *mut AtomicU32);
static OPEN: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State { segment: None, inherited: None, names: None, refused: false });
/// The file to remove at the end of the program, when no lock can be taken.
static TO_REMOVE: AtomicPtr<libc::c_char> = AtomicPtr::new(std::ptr::null_mut());
static HEADER: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());

/// The segment of this process, for one thread at a time.
pub struct State {
    pub segment: Option<Segment>,
    /// The parent's segment, in a child of fork without marks so far.
    inherited: Option<Segment>,
    pub names: Option<Names>,
    refused: bool,
}

/// Locks the state.
pub fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a recorder records, or that is unknown.
#[inline]
pub fn is_recording() -> bool {
    // SAFETY: points to a static, or into a segment that stays mapped while it is pointed to.
    unsafe { (*RECORDING.load(Ordering::Relaxed)).load(Ordering::Relaxed) != 0 }
}

/// Creates the segment if there is none. Returns whether a recorder records.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed) || open()
}

/// The number of a name, equal for equal names; 0 if there are too many. `None` while not recording.
#[cold]
pub fn intern(name: &str) -> Option<u32> {
    if !is_open() {
        return None;
    }
    let mut state = state();
    let State { segment, names, .. } = &mut *state;
    Some(names.as_mut()?.number(name, segment.as_ref()?))
}

#[cold]
fn open() -> bool {
    let mut state = state();
    if state.segment.is_none() && !state.refused {
        match make(&mut state) {
            Ok(()) => OPEN.store(true, Ordering::Release),
            Err(_) => {
                state.refused = true;
                RECORDING.store(&raw const CLOSED as *mut AtomicU32, Ordering::Release);
            }
        }
    }
    state.segment.as_ref().is_some_and(|segment| segment.header().recording.load(Ordering::Relaxed) != 0)
}

fn make(state: &mut State) -> io::Result<()> {
    if std::env::var_os("STEPSCOPE_MARKS").is_some_and(|wanted| wanted == "0") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    sweep();
    let pid = std::process::id();
    let nonce = clock::monotonic_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (&raw const STATE) as u64;
    let path = Path::new(FOLDER).join(format!("{PREFIX}{pid}-{nonce:016x}"));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    let made = map_header(&file, state.names.as_ref().map_or(NAMES_STEP, |names| names.committed));
    let memory = made.inspect_err(|_| drop(fs::remove_file(&path)))?;
    let segment = Segment { memory, path, rings: Rings::default() };
    write_header(memory.cast(), pid);
    inherit(state, &segment);
    // The magic is written last: it completes the segment.
    std::sync::atomic::fence(Ordering::Release);
    // SAFETY: only this thread writes the header's first line.
    unsafe { (*memory.cast::<Header>()).magic = *b"STEPMARK" };
    TO_REMOVE.store(
        system::path_to_remove(&segment.path).map_or(std::ptr::null_mut(), CString::into_raw),
        Ordering::Release,
    );
    HEADER.store(memory.cast(), Ordering::Release);
    RECORDING.store((&raw const segment.header().recording) as *mut AtomicU32, Ordering::Release);
    state.segment = Some(segment);
    static HOOKS: Once = Once::new();
    // SAFETY: the functions live as long as the program, or until they are removed with their library.
    HOOKS.call_once(|| unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
    });
    Ok(())
}

fn map_header(file: &File, names_committed: usize) -> io::Result<*mut u8> {
    system::commit(file, 0, (HEADER_BYTES + names_committed) as u64)?;
    file.set_len(RINGS_AT as u64)?;
    system::map(file, 0, RINGS_AT)
}

fn write_header(header: *mut Header, pid: u32) {
    let greeting = greeting();
    // SAFETY: the memory is not shared before the magic is written.
    unsafe {
        (*header).version = 1;
        (*header).header_bytes = HEADER_BYTES as u32;
        (*header).pid = pid;
        (*header).clock = clock::choose();
        (*header).process_start_ticks = system::start_ticks(pid).unwrap_or(0);
        (*header).pid_namespace = system::pid_namespace();
        (*header).created_ns = clock::monotonic_ns();
        (*header).created_ticks = clock::now();
        (*header).names_at = HEADER_BYTES as u64;
        (*header).names_bytes = NAMES_BYTES as u64;
        (*header).directory_at = DIRECTORY_AT as u64;
        (*header).rings_max = RINGS_MAX as u64;
        (*header).rings_at = RINGS_AT as u64;
        (*header).ring_stride = RING_BYTES as u64;
        (*header).ring_records = RING_RECORDS;
        if let Some((recorder_pid, start_ticks, token)) = greeting {
            (*header).recorder_pid = recorder_pid;
            (*header).recorder_start_ticks = start_ticks;
            (*header).recorder_token = token;
            (*header).beat_ns = AtomicU64::new(clock::monotonic_ns());
            (*header).recording = AtomicU32::new(1);
        }
    }
}

/// The recorder that launched this program, from the environment. It loses no marks before it finds the segment.
fn greeting() -> Option<(u32, u64, u64)> {
    let text = std::env::var("STEPSCOPE_RECORDER").ok()?;
    let mut parts = text.split(':');
    let (pid, start_ticks) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let token = u64::from_str_radix(parts.next()?, 16).ok()?;
    (system::start_ticks(pid) == Some(start_ticks)).then_some((pid, start_ticks, token))
}

/// Copies the parent's names to a child of fork with the same numbers, which call sites have stored.
fn inherit(state: &mut State, heir: &Segment) {
    let Some(parent) = state.inherited.take() else {
        state.names.get_or_insert_with(Names::default);
        return;
    };
    let used = state.names.as_ref().map_or(0, |names| names.used);
    // SAFETY: both have names of this length and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(parent.names(), heir.names(), used) };
    heir.header().names_end.store(used as u64, Ordering::Release);
    parent.rings.unmap();
    // SAFETY: the child has one thread, and it is not writing to the parent's rings.
    unsafe { libc::munmap(parent.memory.cast(), RINGS_AT) };
}

/// The locked state during a fork, so that the child finds it consistent.
struct Forking(UnsafeCell<Option<MutexGuard<'static, State>>>);

// SAFETY: only the thread that holds the lock accesses it.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

extern "C" fn before_fork() {
    let state = state();
    // SAFETY: this thread holds the lock.
    unsafe { *FORKING.0.get() = Some(state) };
}

extern "C" fn in_parent() {
    // SAFETY: this thread still holds the lock.
    drop(unsafe { (*FORKING.0.get()).take() });
}

extern "C" fn in_child() {
    // SAFETY: this thread still holds the lock, because it called fork.
    let Some(mut state) = (unsafe { (*FORKING.0.get()).take() }) else { return };
    let parents = state.segment.take();
    state.inherited = parents.or(state.inherited.take());
    THREAD.with(Thread::forget);
    OPEN.store(false, Ordering::Relaxed);
    TO_REMOVE.store(std::ptr::null_mut(), Ordering::Relaxed);
    HEADER.store(std::ptr::null_mut(), Ordering::Relaxed);
    if RECORDING.load(Ordering::Relaxed).cast_const() != &raw const CLOSED {
        RECORDING.store(&raw const UNOPENED as *mut AtomicU32, Ordering::Release);
    }
}

/// Runs when the program ends or the library with this copy is unloaded. Other threads may still mark, so their memory
/// stays mapped.
extern "C" fn at_exit() {
    RECORDING.store(&raw const CLOSED as *mut AtomicU32, Ordering::Release);
    let (header, path) = (HEADER.load(Ordering::Acquire), TO_REMOVE.load(Ordering::Acquire));
    if header.is_null() || path.is_null() {
        return;
    }
    // SAFETY: both are set once, together, and never freed.
    unsafe {
        (*header).ended.store(1, Ordering::Relaxed);
        if (*header).recording.load(Ordering::Relaxed) == 0 {
            libc::unlink(path);
        }
    }
}

/// Clears the flag of a killed recorder.
pub fn look_for_recorder(header: &Header) {
    let silent_ns = clock::monotonic_ns().saturating_sub(header.beat_ns.load(Ordering::Relaxed));
    if silent_ns > BEAT_NS {
        header.recording.store(0, Ordering::Relaxed);
    }
}

/// Removes segments of dead processes without a recorder.
fn sweep() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok());
        if pid.is_some_and(system::is_dead) && is_abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) else {
        return false;
    };
    let mut header = [0; size_of::<Header>()];
    if file.read_exact_at(&mut header, 0).is_err() {
        return false;
    }
    let number = |at: usize, bytes: usize| {
        let bytes = &header[at..at + bytes];
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let recorder = (number(64, 4) != 0).then(|| number(68, 4) as u32);
    number(32, 8) == system::pid_namespace() && recorder.is_none_or(system::is_dead) && system::lock(&file)
}

//! Runs `look.py` when `stepscope diagnose --deepen` says so: in the thread that calls a Python function next. So the program has no thread
//! more, and the interpreter is ready, whatever options or program started it.
//!
//! The variable `STEPSCOPE_PYTHON_LOOK` names a folder. Its file `go` has a byte that changes when it is time. It changes again if the functions
//! are not there yet.

use core::ffi::{CStr, c_char};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::*};

use crate::api::Api;
use crate::symbols::first;
use crate::sys;

/// The byte. Null if nothing was asked for. Never unmapped: a child of `fork` has it at the same place.
static GO: AtomicPtr<AtomicU8> = AtomicPtr::new(null_mut());
/// The byte when the file ran last.
static DONE: AtomicU8 = AtomicU8::new(0);
/// Longest path of the file.
const PATH: usize = 1024;

const VARIABLE: &CStr = c"STEPSCOPE_PYTHON_LOOK";
const RUN: &CStr = c"\
with open(__import__('posix').environ[b'STEPSCOPE_PYTHON_LOOK'] + b'/look.py', 'rb') as file:
    exec(compile(file.read(), '<stepscope look>', 'exec', dont_inherit=True), {})
";

/// Finds the byte.
pub fn prepare() {
    let environment = first(c"getenv");
    if environment == 0 {
        return;
    }
    // SAFETY: the symbol's type. The value ends with NUL.
    let folder = unsafe {
        let get: extern "C" fn(*const c_char) -> *const c_char = core::mem::transmute(environment);
        let folder = get(VARIABLE.as_ptr());
        if folder.is_null() {
            return;
        }
        CStr::from_ptr(folder).to_bytes()
    };
    let mut path = [0_u8; PATH];
    let parts = folder.iter().chain(b"/go\0");
    let mut len = 0;
    for (place, byte) in path.iter_mut().zip(parts) {
        *place = *byte;
        len += 1;
    }
    if len != folder.len() + 4 {
        return;
    }
    let file = sys::open(&path);
    if file >= 0 {
        GO.store(sys::map_file_to_read(file).cast_mut().cast(), Release);
        sys::close(file);
    }
}

/// Whether the file should run now.
#[inline]
pub fn is_due() -> bool {
    // SAFETY: never unmapped.
    unsafe { GO.load(Relaxed).as_ref() }.is_some_and(|go| go.load(Relaxed) != DONE.load(Relaxed))
}

/// Runs the file, once for each value of the byte.
#[cold]
#[inline(never)]
pub fn run(api: &Api) {
    // SAFETY: never unmapped.
    let Some(go) = (unsafe { GO.load(Relaxed).as_ref() }) else { return };
    let now = go.load(Relaxed);
    if DONE.swap(now, AcqRel) != now {
        // SAFETY: a frame without an exception is about to run, so the interpreter's lock is held.
        unsafe { api.run_statements(RUN) };
    }
}

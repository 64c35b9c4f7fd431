//! `/tmp/stepscope-python-PID.map`: the names of stubs, and the lines of their code objects.
//!
//! A line is `START SIZE py::NAME:FILE:LINE`, as in maps for `perf`. Before it may stand a line `lines FORM BYTES`: the table of
//! lines, with the form of 3.9 (a), 3.10 (b) or later versions (c), in hexadecimal.
//!
//! Each name is added with the file opened for it: a program may close all its files. A child of `fork` copies what its parent had,
//! because it has the parent's stubs.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};

use crate::api::{Api, Object};
use crate::{stubs, sys};

/// The process whose map has all names so far. In children, it is still the parent.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Memory that is zero in children of `fork`: that is how they know.
static STARTED: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
/// Whether the map was made. The recorder removes it at its end; then it is not made again, because nobody would remove it.
static IS_MADE: AtomicBool = AtomicBool::new(false);
/// Longest path of a map.
const PATH: usize = 48;
/// Longest line. Longer names are cut off.
const LINE: usize = 1024;
/// Longest table of lines. Longer ones are left out.
const TABLE: usize = 1 << 20;

/// Prepares the map. `false` without memory.
pub fn start() -> bool {
    if !STARTED.load(Acquire).is_null() {
        return true;
    }
    let started = sys::map_private(size_of::<AtomicU32>()).cast::<AtomicU32>();
    // SAFETY: new memory, zeroed.
    let Some(is_started) = (unsafe { started.as_ref() }) else { return false };
    is_started.store(1, Release);
    OWNER.store(sys::pid(), Release);
    STARTED.store(started, Release);
    true
}

/// Copies the parent's map, once in a child of `fork`.
#[inline]
pub fn follow_fork() {
    // SAFETY: never unmapped.
    if let Some(started) = unsafe { STARTED.load(Acquire).as_ref() }
        && started.load(Relaxed) == 0
    {
        started.store(1, Release);
        copy_parents();
    }
}

#[cold]
fn copy_parents() {
    let (parent, own) = (OWNER.load(Acquire), sys::pid());
    OWNER.store(own, Release);
    if parent == own {
        return;
    }
    let from = sys::open(&path(parent));
    if from < 0 {
        return;
    }
    let to = sys::open_end(&path(own));
    let mut bytes = [0_u8; 4096];
    while to >= 0 {
        match sys::read(from, &mut bytes) {
            len @ 1.. if sys::write(to, &bytes[..len as usize]) == len => {}
            _ => break,
        }
    }
    for file in [from, to] {
        if file >= 0 {
            sys::close(file);
        }
    }
}

/// Adds the name of a code object's stub.
///
/// # Safety
/// The interpreter's lock must be held, and no exception be set.
pub unsafe fn name(api: &Api, code: *mut Object, stub: *const u8) {
    let mut line = Line { bytes: [0; LINE], len: 0 };
    line.number(stub as u64, 16);
    line.push(b" ");
    line.number(stubs::BYTES as u64, 16);
    line.push(b" py::");
    // SAFETY: the caller's.
    unsafe {
        // Python 3.9 and 3.10 have no qualified names.
        if !line.text(api, code, c"co_qualname") && !line.text(api, code, c"co_name") {
            line.push(b"?");
        }
        line.push(b":");
        if !line.text(api, code, c"co_filename") {
            line.push(b"?");
        }
        let first = (api.attribute)(code, c"co_firstlineno".as_ptr());
        if !first.is_null() {
            line.push(b":");
            line.number((api.number)(first).max(0) as u64, 10);
            api.release(first);
        }
        (api.clear_error)();
    }
    line.push(b"\n");
    let path = path(OWNER.load(Acquire));
    let file = if IS_MADE.swap(true, AcqRel) { sys::open_end_of_existing(&path) } else { sys::open_end(&path) };
    if file >= 0 {
        // SAFETY: the caller's.
        unsafe { api.bytes_of(code, api.lines.attribute, |table| write_table(file, api.lines.form, table)) };
        sys::write(file, &line.bytes[..line.len]);
        sys::close(file);
    }
}

/// Writes a table of lines, in pieces: the interpreter's lock keeps others from the file.
fn write_table(file: i32, form: u8, table: &[u8]) {
    if table.len() > TABLE {
        return;
    }
    let mut line = Line { bytes: [0; LINE], len: 0 };
    line.push(b"lines ");
    line.push(&[form, b' ']);
    for byte in table {
        if line.len + 3 > LINE {
            sys::write(file, &line.bytes[..line.len]);
            line.len = 0;
        }
        line.push(&[HEXADECIMAL[usize::from(byte >> 4)], HEXADECIMAL[usize::from(byte & 15)]]);
    }
    line.push(b"\n");
    sys::write(file, &line.bytes[..line.len]);
}

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = *byte;
                self.len += 1;
            }
        }
    }

    fn number(&mut self, mut number: u64, base: u64) {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = HEXADECIMAL[(number % base) as usize];
            number /= base;
            if number == 0 || at == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }

    /// Adds a text of the code object, in one line. `false` if there is none.
    unsafe fn text(&mut self, api: &Api, code: *mut Object, attribute: &CStr) -> bool {
        /// Room for the second text, and for numbers.
        const LONGEST: usize = (LINE - 96) / 2;
        // SAFETY: the caller's.
        unsafe {
            let object = (api.attribute)(code, attribute.as_ptr());
            if object.is_null() {
                (api.clear_error)();
                return false;
            }
            let text = (api.text)(object);
            if text.is_null() {
                (api.clear_error)();
            } else {
                let bytes = CStr::from_ptr(text).to_bytes();
                for byte in &bytes[..bytes.len().min(LONGEST)] {
                    self.push(&[if byte.is_ascii_control() { b'_' } else { *byte }]);
                }
            }
            api.release(object);
            !text.is_null()
        }
    }
}

/// The path of a process's map, which ends with NUL.
fn path(pid: u32) -> [u8; PATH] {
    let mut line = Line { bytes: [0; LINE], len: 0 };
    line.push(b"/tmp/stepscope-python-");
    line.number(u64::from(pid), 10);
    line.push(b".map");
    let mut path = [0; PATH];
    path.copy_from_slice(&line.bytes[..PATH]);
    path
}

//! The library that is preloaded into programs to see their Python functions.
//!
//! 1. When it is loaded, it adds an audit hook to CPython, if there is one.
//! 2. The first `import` of an interpreter installs a frame evaluator (PEP 523).
//! 3. The evaluator runs each frame through the stub of its code object: machine code that keeps a frame pointer and calls
//!    CPython's own evaluator. So each Python function has a native frame of its own.
//! 4. `/tmp/stepscope-python-PID.map` names the stubs, and has the table of lines of each code object.
//! 5. If `stepscope diagnose --deepen` asks for it, the evaluator runs a file that looks at calls (`../look/look.py`), once.
//!
//! Modules: `api`: CPython's functions; `depth`: how much stack is used; `stubs`: machine code; `map`: names; `look`: the file. The rest is shared with `stepscope-heap`.

#![no_std]

mod api;
mod depth;
#[path = "../../heap/preload/lock.rs"]
mod lock;
mod look;
mod map;
mod stubs;
#[path = "../../heap/preload/symbols.rs"]
#[allow(dead_code, unused_imports, unused_macros)]
mod symbols;
#[path = "../../heap/preload/sys.rs"]
#[allow(dead_code)]
mod sys;

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicIsize, AtomicPtr, Ordering::*};

use api::{Api, Object};

/// CPython's functions, once the audit hook is there. Never unmapped.
static API: AtomicPtr<Api> = AtomicPtr::new(null_mut());
/// Where code objects keep their stub: the same in all interpreters that have the evaluator.
static EXTRA: AtomicIsize = AtomicIsize::new(NO_EXTRA);
const NO_EXTRA: isize = -1;
/// The interpreter that was looked at last.
static LOOKED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

#[inline]
fn api() -> Option<&'static Api> {
    // SAFETY: never unmapped.
    unsafe { API.load(Acquire).as_ref() }
}

/// Runs when the library is loaded, before Python starts.
extern "C" fn load() {
    let Some(api) = Api::find() else { return };
    let at = sys::map_private(size_of::<Api>()).cast::<Api>();
    if at.is_null() {
        return;
    }
    depth::start(api.minor_version);
    look::prepare();
    // SAFETY: new memory of this size. It must survive `fork`.
    unsafe {
        at.write(api);
        sys::keep_on_fork(at.cast(), size_of::<Api>());
    }
    API.store(at, Release);
    // SAFETY: CPython allows it before it is initialized.
    unsafe { ((*at).add_audit_hook)(audit, null_mut()) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn audit(event: *const c_char, _arguments: *mut Object, _data: *mut c_void) -> c_int {
    // SAFETY: the event's name ends with NUL.
    let is_import = unsafe { core::ffi::CStr::from_ptr(event) } == c"import";
    if let (true, Some(api)) = (is_import, api()) {
        install(api);
    }
    0
}

/// Installs the evaluator in the interpreter that runs, once, unless it has another one.
fn install(api: &Api) {
    // SAFETY: the hook runs with the interpreter's lock.
    unsafe {
        let interpreter = (api.interpreter)();
        if interpreter.is_null() || LOOKED.swap(interpreter, AcqRel) == interpreter {
            return;
        }
        if (api.evaluator)(interpreter) as usize != api.evaluate as usize || api.names_for_perf() {
            return;
        }
        let extra = (api.request_extra)(None);
        // An interpreter that counts otherwise keeps its functions to itself.
        let is_first = extra >= 0 && EXTRA.compare_exchange(NO_EXTRA, extra, AcqRel, Acquire).is_ok();
        if (is_first || extra >= 0 && EXTRA.load(Acquire) == extra) && map::start() {
            (api.set_evaluator)(interpreter, evaluate);
        }
    }
}

/// Runs a frame through the stub of its code object. The last call is a jump, so that stacks do not have this function.
extern "C" fn evaluate(thread: *mut c_void, frame: *mut c_void, throws: c_int) -> *mut Object {
    let Some(api) = api() else { return null_mut() };
    // A frame that starts with an exception is for another time.
    if throws == 0 && look::is_due() {
        look::run(api);
    }
    if api.inlines_calls && depth::is_deep() {
        return evaluate_with_inlined_calls(api, thread, frame, throws);
    }
    // SAFETY: CPython calls this with a frame, and holds the interpreter's lock.
    match unsafe { stub(api, frame) } {
        Some(stub) => stub(thread, frame, throws, api.evaluate),
        None => (api.evaluate)(thread, frame, throws),
    }
}

/// Runs a frame without the evaluator for all that it calls, in all threads: so further calls take no native stack, as without
/// this library.
#[cold]
#[inline(never)]
fn evaluate_with_inlined_calls(api: &Api, thread: *mut c_void, frame: *mut c_void, throws: c_int) -> *mut Object {
    // SAFETY: as in `evaluate`.
    unsafe {
        let interpreter = (api.interpreter)();
        (api.set_evaluator)(interpreter, api.evaluate);
        let result = match stub(api, frame) {
            Some(stub) => stub(thread, frame, throws, api.evaluate),
            None => (api.evaluate)(thread, frame, throws),
        };
        // Another one may have been installed meanwhile.
        if (api.evaluator)(interpreter) as usize == api.evaluate as usize {
            (api.set_evaluator)(interpreter, evaluate);
        }
        result
    }
}

/// The stub of a frame's code object. `None` without memory.
#[inline(never)]
unsafe fn stub(api: &Api, frame: *mut c_void) -> Option<stubs::Stub> {
    map::follow_fork();
    // SAFETY: as in `evaluate`. Stubs are code of this type.
    unsafe {
        let code = api.code(frame);
        let mut stub: *mut c_void = null_mut();
        if (api.extra)(code, EXTRA.load(Relaxed), &raw mut stub) != 0 || stub.is_null() {
            stub = add_stub(api, code).cast_mut().cast();
        }
        core::mem::transmute::<*mut c_void, Option<stubs::Stub>>(stub)
    }
}

/// Gives a code object a stub, and names it. Null without memory.
#[cold]
unsafe fn add_stub(api: &Api, code: *mut Object) -> *const u8 {
    let stub = stubs::next();
    if stub.is_null() {
        return stub;
    }
    // SAFETY: as in `evaluate`. A frame may start with an exception, which stays.
    unsafe {
        let mut error = [null_mut(); 3];
        let [kind, value, trace] = &mut error;
        (api.fetch_error)(kind, value, trace);
        let (start, bytes) = api.bytecode(code);
        stubs::set_bytecode(stub, start, bytes);
        if (api.set_extra)(code, EXTRA.load(Relaxed), stub.cast_mut().cast()) == 0 {
            map::name(api, code, stub);
        }
        // It replaces what failed here, if anything did.
        let [kind, value, trace] = error;
        (api.restore_error)(kind, value, trace);
    }
    stub
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

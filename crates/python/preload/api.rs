//! CPython's functions, by their names: no header is needed, and the library loads into every program.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute_copy;

use crate::symbols::first;

/// `PyObject`
#[repr(C)]
pub struct Object {
    _opaque: [u8; 0],
}

/// `_PyFrameEvalFunction`
pub type Evaluate = extern "C" fn(*mut c_void, *mut c_void, c_int) -> *mut Object;
/// `Py_AuditHookFunction`
type Audit = extern "C" fn(*const c_char, *mut Object, *mut c_void) -> c_int;

/// How a frame leads to its code object.
enum Frame {
    /// A function returns a new reference: `PyFrame_GetCode`, `PyUnstable_InterpreterFrame_GetCode`.
    Function(unsafe extern "C" fn(*mut c_void) -> *mut Object),
    /// The code object lies at this place in the frame.
    Offset(usize),
}

/// Where a code object keeps the bytecode that runs.
enum Bytecode {
    /// In a `bytes` object, its attribute `co_code`.
    Object,
    /// In itself, at this place: behind all that has a fixed size.
    Inside(usize),
}

/// How the lines of a code object are stored.
#[derive(Clone, Copy)]
pub struct Lines {
    pub attribute: &'static CStr,
    /// Marks the form in maps.
    pub form: u8,
}

pub struct Api {
    frame: Frame,
    bytecode: Bytecode,
    /// Whether calls of Python functions take no native stack without an evaluator.
    pub inlines_calls: bool,
    pub minor_version: u8,
    pub lines: Lines,
    bytes: unsafe extern "C" fn(*mut Object) -> *const u8,
    bytes_len: unsafe extern "C" fn(*mut Object) -> isize,
    pub add_audit_hook: unsafe extern "C" fn(Audit, *mut c_void) -> c_int,
    pub interpreter: unsafe extern "C" fn() -> *mut c_void,
    pub evaluator: unsafe extern "C" fn(*mut c_void) -> Evaluate,
    pub set_evaluator: unsafe extern "C" fn(*mut c_void, Evaluate),
    pub evaluate: Evaluate,
    pub request_extra: unsafe extern "C" fn(Option<extern "C" fn(*mut c_void)>) -> isize,
    pub extra: unsafe extern "C" fn(*mut Object, isize, *mut *mut c_void) -> c_int,
    pub set_extra: unsafe extern "C" fn(*mut Object, isize, *mut c_void) -> c_int,
    pub fetch_error: unsafe extern "C" fn(*mut *mut Object, *mut *mut Object, *mut *mut Object),
    pub restore_error: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    pub clear_error: unsafe extern "C" fn(),
    pub attribute: unsafe extern "C" fn(*mut Object, *const c_char) -> *mut Object,
    pub text: unsafe extern "C" fn(*mut Object) -> *const c_char,
    pub number: unsafe extern "C" fn(*mut Object) -> c_long,
    release: unsafe extern "C" fn(*mut Object),
    options: unsafe extern "C" fn() -> *mut Object,
    item: unsafe extern "C" fn(*mut Object, *const c_char) -> *mut Object,
    new_dict: unsafe extern "C" fn() -> *mut Object,
    run: unsafe extern "C" fn(*const c_char, c_int, *mut Object, *mut Object) -> *mut Object,
}

impl Api {
    /// The functions of CPython 3.9 to 3.13 in this program. `None` in other programs.
    pub fn find() -> Option<Self> {
        let add_audit_hook = function(c"PySys_AddAuditHook")?;
        let minor = minor_version()?;
        Some(Self {
            frame: Frame::find(minor)?,
            bytecode: Bytecode::find(minor)?,
            inlines_calls: minor >= 11,
            minor_version: minor,
            lines: Lines::of(minor),
            bytes: function(c"PyBytes_AsString")?,
            bytes_len: function(c"PyBytes_Size")?,
            add_audit_hook,
            interpreter: function(c"PyInterpreterState_Get")?,
            evaluator: function(c"_PyInterpreterState_GetEvalFrameFunc")?,
            set_evaluator: function(c"_PyInterpreterState_SetEvalFrameFunc")?,
            evaluate: function(c"_PyEval_EvalFrameDefault")?,
            request_extra: function(c"PyUnstable_Eval_RequestCodeExtraIndex")
                .or_else(|| function(c"_PyEval_RequestCodeExtraIndex"))?,
            extra: function(c"PyUnstable_Code_GetExtra").or_else(|| function(c"_PyCode_GetExtra"))?,
            set_extra: function(c"PyUnstable_Code_SetExtra").or_else(|| function(c"_PyCode_SetExtra"))?,
            fetch_error: function(c"PyErr_Fetch")?,
            restore_error: function(c"PyErr_Restore")?,
            clear_error: function(c"PyErr_Clear")?,
            attribute: function(c"PyObject_GetAttrString")?,
            text: function(c"PyUnicode_AsUTF8")?,
            number: function(c"PyLong_AsLong")?,
            release: function(c"Py_DecRef")?,
            options: function(c"PySys_GetXOptions")?,
            item: function(c"PyDict_GetItemString")?,
            new_dict: function(c"PyDict_New")?,
            run: function(c"PyRun_String")?,
        })
    }

    /// Whether the program names its functions for perf, with an evaluator that is installed later: it does not start where
    /// there is another one.
    ///
    /// # Safety
    /// The calling thread must have the interpreter's lock.
    pub unsafe fn names_for_perf(&self) -> bool {
        if self.minor_version < 12 {
            return false;
        }
        let is_set = |name: &CStr| {
            function::<extern "C" fn(*const c_char) -> *const c_char>(c"getenv")
                .map(|get| get(name.as_ptr()))
                // SAFETY: a value ends with NUL.
                .is_some_and(|value| !value.is_null() && !matches!(unsafe { CStr::from_ptr(value) }.to_bytes(), b"" | b"0"))
        };
        // SAFETY: borrowed references of the interpreter that runs.
        let has = |name: &CStr| unsafe {
            let options = (self.options)();
            !options.is_null() && !(self.item)(options, name.as_ptr()).is_null()
        };
        let by_jitdump = || has(c"perf_jit") || is_set(c"PYTHON_PERF_JIT_SUPPORT");
        has(c"perf") || is_set(c"PYTHONPERFSUPPORT") || self.minor_version >= 13 && by_jitdump()
    }

    /// The code object of a frame, which lives as long as the frame.
    ///
    /// # Safety
    /// The frame must be one that CPython evaluates.
    #[inline]
    pub unsafe fn code(&self, frame: *mut c_void) -> *mut Object {
        // SAFETY: the caller's.
        unsafe {
            match self.frame {
                Frame::Offset(offset) => frame.byte_add(offset).cast::<*mut Object>().read(),
                Frame::Function(code) => {
                    let code = code(frame);
                    self.release(code);
                    code
                }
            }
        }
    }

    /// The bytecode of a code object that runs, and its length in bytes.
    ///
    /// # Safety
    /// It must be a code object. The interpreter's lock must be held.
    pub unsafe fn bytecode(&self, code: *mut Object) -> (*const u8, usize) {
        // SAFETY: the caller's.
        unsafe {
            match self.bytecode {
                // The object lives as long as the code object.
                Bytecode::Object => self.bytes_of(code, c"co_code", |bytes| (bytes.as_ptr(), bytes.len())),
                Bytecode::Inside(offset) => {
                    /// `ob_size` of a variable-sized object: instructions of 2 bytes here.
                    const SIZE: usize = 16;
                    let instructions = code.byte_add(SIZE).cast::<usize>().read();
                    Some((code.byte_add(offset).cast::<u8>().cast_const(), 2 * instructions))
                }
            }
        }
        .unwrap_or((core::ptr::null(), 0))
    }

    /// Passes on the bytes of an attribute.
    ///
    /// # Safety
    /// As for [`bytecode`](Self::bytecode).
    pub unsafe fn bytes_of<T>(&self, code: *mut Object, attribute: &CStr, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        // SAFETY: the caller's.
        unsafe {
            let object = (self.attribute)(code, attribute.as_ptr());
            if object.is_null() {
                (self.clear_error)();
                return None;
            }
            let (start, length) = ((self.bytes)(object), (self.bytes_len)(object));
            let taken = match (start.is_null(), usize::try_from(length)) {
                (false, Ok(length)) => Some(take(core::slice::from_raw_parts(start, length))),
                _ => {
                    (self.clear_error)();
                    None
                }
            };
            self.release(object);
            taken
        }
    }

    /// Runs statements with names of their own. Errors are dropped.
    ///
    /// # Safety
    /// The interpreter's lock must be held, and no exception be set.
    pub unsafe fn run_statements(&self, source: &CStr) {
        /// `Py_file_input`
        const STATEMENTS: c_int = 257;
        // SAFETY: the caller's.
        unsafe {
            let names = (self.new_dict)();
            if !names.is_null() {
                let result = (self.run)(source.as_ptr(), STATEMENTS, names, names);
                if !result.is_null() {
                    self.release(result);
                }
                self.release(names);
            }
            (self.clear_error)();
        }
    }

    /// # Safety
    /// The caller gives up its reference.
    pub unsafe fn release(&self, object: *mut Object) {
        // SAFETY: the caller's.
        unsafe { (self.release)(object) };
    }
}

impl Frame {
    /// By the version: the layout of 3.11 has no function.
    fn find(minor: u8) -> Option<Self> {
        /// `f_func`, `f_globals`, `f_builtins` and `f_locals` stand before `f_code`.
        const OF_3_11: usize = 32;
        match minor {
            9 | 10 => function(c"PyFrame_GetCode").map(Self::Function),
            11 => Some(Self::Offset(OF_3_11)),
            12 | 13 => function(c"PyUnstable_InterpreterFrame_GetCode").map(Self::Function),
            _ => None,
        }
    }
}

impl Bytecode {
    fn find(minor: u8) -> Option<Self> {
        /// `tp_basicsize` in a type object.
        const BASIC_SIZE: usize = 32;
        if minor < 11 {
            return Some(Self::Object);
        }
        let code_type = first(c"PyCode_Type");
        // SAFETY: a type object, which is initialized statically.
        (code_type != 0).then(|| Self::Inside(unsafe { ((code_type + BASIC_SIZE) as *const usize).read() }))
    }
}

impl Lines {
    fn of(minor: u8) -> Self {
        match minor {
            9 => Self { attribute: c"co_lnotab", form: b'a' },
            10 => Self { attribute: c"co_linetable", form: b'b' },
            _ => Self { attribute: c"co_linetable", form: b'c' },
        }
    }
}

/// The 12 of Python 3.12. `None` of other versions than 3, and of builds without the interpreter's lock: nothing here was tried
/// with them.
fn minor_version() -> Option<u8> {
    let version: extern "C" fn() -> *const c_char = function(c"Py_GetVersion")?;
    // SAFETY: a text that ends with NUL.
    let version = unsafe { CStr::from_ptr(version()) }.to_bytes();
    if version.windows(b"free-threading".len()).any(|part| part == b"free-threading") {
        return None;
    }
    let minor = version.strip_prefix(b"3.")?;
    let digits = minor.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0_u8, |number, digit| number.saturating_mul(10).saturating_add(digit - b'0')))
}

/// A function of the program, by its name.
fn function<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    let address = first(name);
    // SAFETY: callers name the function's type.
    (address != 0).then(|| unsafe { transmute_copy::<usize, T>(&address) })
}

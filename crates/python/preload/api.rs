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

pub struct Api {
    frame: Frame,
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
}

impl Api {
    /// The functions of CPython 3.9 to 3.13 in this program. `None` in other programs.
    pub fn find() -> Option<Self> {
        let add_audit_hook = function(c"PySys_AddAuditHook")?;
        Some(Self {
            frame: Frame::find()?,
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
        })
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

    /// # Safety
    /// The caller gives up its reference.
    pub unsafe fn release(&self, object: *mut Object) {
        // SAFETY: the caller's.
        unsafe { (self.release)(object) };
    }
}

impl Frame {
    /// By the version: the layout of 3.11 has no function.
    fn find() -> Option<Self> {
        /// `f_func`, `f_globals`, `f_builtins` and `f_locals` stand before `f_code`.
        const OF_3_11: usize = 32;
        let version: extern "C" fn() -> *const c_char = function(c"Py_GetVersion")?;
        // SAFETY: a text that ends with NUL.
        let version = unsafe { CStr::from_ptr(version()) }.to_bytes();
        // Without the interpreter's lock, nothing here was tried.
        if version.windows(b"free-threading".len()).any(|part| part == b"free-threading") {
            return None;
        }
        let minor = version.strip_prefix(b"3.")?;
        match minor.split(|byte| !byte.is_ascii_digit()).next()? {
            b"9" | b"10" => function(c"PyFrame_GetCode").map(Self::Function),
            b"11" => Some(Self::Offset(OF_3_11)),
            b"12" | b"13" => function(c"PyUnstable_InterpreterFrame_GetCode").map(Self::Function),
            _ => None,
        }
    }
}

/// A function of the program, by its name.
fn function<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    let address = first(name);
    // SAFETY: callers name the function's type.
    (address != 0).then(|| unsafe { transmute_copy::<usize, T>(&address) })
}

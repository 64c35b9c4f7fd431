//! Python systems: loads the machine's own interpreter at run time.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Mutex;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};

use crate::account;

/// Minor versions of Python 3 to look for, the newest first.
const MINOR_VERSIONS: std::ops::RangeInclusive<u32> = 8..=15;
/// The imports of typical simulator bindings.
const PRELUDE: &str = "import asyncio, ctypes, dataclasses, json, logging, math, typing, unittest";

/// Why a system written in Python cannot be run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PythonError {
    /// There is no interpreter that can be loaded.
    #[error(
        "no Python interpreter found (libpython3.{}.so.1.0 to libpython3.{}.so.1.0); install one, such as Debian's \
         libpython3.11",
        MINOR_VERSIONS.start(),
        MINOR_VERSIONS.end()
    )]
    Absent,
    /// The library lacks a function of Python's stable interface.
    #[error("{library} lacks a function of Python: {message}; reinstall it")]
    Foreign {
        /// Its file.
        library: String,
        /// The error of the loader.
        message: String,
    },
    /// A script ended in an exception, which the interpreter printed to standard error.
    #[error("a Python script ended in the exception above: {0}")]
    Script(String),
}

/// The process's only interpreter. It starts on first use and stays.
static INTERPRETER: Mutex<Option<Interpreter>> = Mutex::new(None);

struct Interpreter {
    run_simple_string: Symbol<unsafe extern "C" fn(*const c_char) -> c_int>,
    take_lock: Symbol<unsafe extern "C" fn() -> c_int>,
    give_lock_back: Symbol<unsafe extern "C" fn(c_int)>,
    _library: Library,
}

/// Starts the interpreter and imports the modules that systems use, if it has not started yet.
///
/// # Errors
/// If there is none.
#[inline(never)]
pub fn initialize_interpreter() -> Result<(), PythonError> {
    let _timed = account::scope("ground::python::initialize_interpreter");
    let mut interpreter = INTERPRETER.lock().expect("nothing panics while it is held");
    if interpreter.is_none() {
        let started = Interpreter::start()?;
        started.run(PRELUDE)?;
        *interpreter = Some(started);
    }
    Ok(())
}

/// Runs a script, and starts the interpreter if necessary.
///
/// # Errors
/// If there is no interpreter, or the script ends in an exception.
pub fn run(script: &str) -> Result<(), PythonError> {
    initialize_interpreter()?;
    let interpreter = INTERPRETER.lock().expect("nothing panics while it is held");
    interpreter.as_ref().map_or(Err(PythonError::Absent), |interpreter| interpreter.run(script))
}

impl Interpreter {
    fn start() -> Result<Self, PythonError> {
        let (library, name) = MINOR_VERSIONS.rev().find_map(open).ok_or(PythonError::Absent)?;
        let foreign =
            |error: libloading::Error| PythonError::Foreign { library: name.clone(), message: error.to_string() };
        // SAFETY: these are the types in Python's stable interface.
        let (initialize, save_thread, interpreter) = unsafe {
            let initialize: Symbol<unsafe extern "C" fn(c_int)> = library.get(b"Py_InitializeEx\0").map_err(foreign)?;
            let save_thread: Symbol<unsafe extern "C" fn() -> *mut c_void> =
                library.get(b"PyEval_SaveThread\0").map_err(foreign)?;
            let run_simple_string = library.get(b"PyRun_SimpleString\0").map_err(foreign)?;
            let take_lock = library.get(b"PyGILState_Ensure\0").map_err(foreign)?;
            let give_lock_back = library.get(b"PyGILState_Release\0").map_err(foreign)?;
            let interpreter = Self { run_simple_string, take_lock, give_lock_back, _library: library };
            (initialize, save_thread, interpreter)
        };
        // SAFETY: 0 leaves the program's signal handlers alone; the lock that comes with it is given away at once, so
        // that any thread can take it.
        unsafe {
            initialize(0);
            save_thread();
        }
        Ok(interpreter)
    }

    fn run(&self, script: &str) -> Result<(), PythonError> {
        let text = CString::new(script).map_err(|_| PythonError::Script("it holds a NUL".into()))?;
        // SAFETY: the interpreter is ready, its lock is taken for the call, and the text lives through it.
        let failed = unsafe {
            let lock = (self.take_lock)();
            let failed = (self.run_simple_string)(text.as_ptr());
            (self.give_lock_back)(lock);
            failed
        };
        if failed == 0 { Ok(()) } else { Err(PythonError::Script(script.to_owned())) }
    }
}

/// The library of a minor version, loaded globally because extension modules use its functions.
fn open(minor: u32) -> Option<(Library, String)> {
    let name = format!("libpython3.{minor}.so.1.0");
    // SAFETY: it is the system's own, and what its initialisers do is what any Python program does.
    unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) }.ok().map(|library| (library, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_runs_in_the_interpreter_and_its_exception_is_an_error() {
        if let Err(error @ PythonError::Absent) = initialize_interpreter() {
            println!("skipped: a_script_runs_in_the_interpreter_and_its_exception_is_an_error: {error}");
            return;
        }
        run("answer = 6 * 7").unwrap();
        std::thread::spawn(|| run("assert answer == 42").unwrap()).join().unwrap();
        let error = run("assert answer == 43").unwrap_err().to_string();
        assert_eq!(error, "a Python script ended in the exception above: assert answer == 43");
    }
}

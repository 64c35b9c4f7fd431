//! [`python`]: what functions of CPython cost, for kinds of findings about one group of them.
//!
//! CPython's own functions show what a Python program does where Python functions have no names, as in Python 3.11.

use stepscope_model::StackId;

use super::finding::{Confidence, Found, percent};
use super::seen::{Seen, parts};
use crate::Function;
use crate::query::functions::{FunctionId, is_of_cpython};
use crate::query::qualified_name::{own_name, python_function};

/// Whether a function is of CPython or its standard library, and not owned.
fn is_of_python(function: &Function) -> bool {
    !function.owned && is_of_cpython(function)
}

/// A finding that names no function of CPython: nobody changes that one. Python functions without names are all "Python code".
pub(super) fn without_interpreter(seen: &Seen<'_, '_>, found: Found) -> Found {
    match found.function.filter(|function| is_of_python(seen.functions().get(*function))) {
        Some(function) => {
            let title = found.title.replace(&format!("`{}`", seen.name(function)), "Python code");
            Found { function: None, title, ..found }
        }
        None => found,
    }
}

/// Whether it is the interpreter that runs Python functions, or calls what they call.
pub(super) fn is_interpreter(seen: &Seen<'_, '_>, function: FunctionId) -> bool {
    is_of_python(seen.functions().get(function))
}

/// One flag per stack: whether one of these functions of CPython is on it.
pub(super) fn below(seen: &Seen<'_, '_>, names: &[&str]) -> Vec<bool> {
    seen.paths_through(|function| is_of_python(function) && names.contains(&&*own_name(&function.name)))
}

/// One flag per stack: whether a Python function of a file of Python's library is on it.
pub(super) fn below_files(seen: &Seen<'_, '_>, ends: &[&str]) -> Vec<bool> {
    seen.paths_through(|function| {
        let file = python_function(&function.name).map(|(_, file)| file);
        !function.owned && file.is_some_and(|file| ends.iter().any(|end| file.ends_with(end)))
    })
}

/// One flag per stack: whether a thread takes the interpreter's global lock there.
pub(super) fn takes_lock(seen: &Seen<'_, '_>) -> Vec<bool> {
    const TAKES: [&str; 5] =
        ["take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "PyEval_AcquireLock", "eval_frame_handle_pending"];
    seen.paths_through(|function| !function.owned && TAKES.contains(&&*own_name(&function.name)))
}

/// One flag per stack: whether a thread takes the interpreter's global lock there, or lets another one have it.
pub(super) fn hands_lock_over(seen: &Seen<'_, '_>) -> Vec<bool> {
    const DROPS: [&str; 3] = ["drop_gil", "PyEval_SaveThread", "PyEval_ReleaseThread"];
    let drops = seen.paths_through(|function| !function.owned && DROPS.contains(&&*own_name(&function.name)));
    takes_lock(seen).into_iter().zip(drops).map(|(takes, drops)| takes || drops).collect()
}

/// What costs, at the start of a sentence.
pub(super) const IN_CPYTHON: &str = "CPython's functions for it take";

/// A finding about these stacks, if they take a share of the steps all the time. The function that most of them are
/// attributed to is named, if there is one. `subject` is what costs.
pub(super) fn found(seen: &Seen<'_, '_>, at: &[bool], least: f64, does: &str, subject: &str) -> Option<Found> {
    recurring(seen, at, (least, f64::INFINITY), does, subject)
}

/// The same, with the least share in a part of a run without steps.
pub(super) fn recurring(
    seen: &Seen<'_, '_>,
    at: &[bool],
    (least, least_in_part): (f64, f64),
    does: &str,
    subject: &str,
) -> Option<Found> {
    let at_stack = |stack: StackId| at[stack.index()];
    let share = seen.share(seen.sum(at_stack));
    let in_part = || share >= least_in_part && seen.is_in_pieces(at_stack);
    if seen.is_loading() || share < least || !(seen.is_steady(at_stack) || in_part()) {
        return None;
    }
    let by_function = seen.by_function(|stack| seen.functions().attributed(stack).filter(|_| at_stack(stack)));
    let function = by_function.first().map(|(function, _)| *function);
    let who = function.map_or("Python code".to_owned(), |function| format!("`{}`", seen.name(function)));
    let without = parts(at.iter().copied());
    let gain = seen.gain(&without);
    let found = Found::of_program(format!("{who} {does}"), Some(gain)).about(function).sure(Confidence::Fair);
    let text = format!("{subject} {} of the CPU time{}.", percent(share), seen.of_steps());
    Some(Found { without, ..found.because(text, "show --view hotspots --sort inclusive") })
}

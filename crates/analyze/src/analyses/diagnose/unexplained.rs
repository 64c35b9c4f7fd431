//! [`note`]: the function that costs most, where no finding is about it.

use stepscope_model::{Note, NoteValue, note};

use super::Finding;
use super::finding::explain;
use super::python;
use super::seen::Seen;

/// Least share of the CPU time of steps, or of the phase where no steps are known.
const LEAST: f64 = 25.0;

/// Names the owned function with the most CPU time. None if a finding is about it, or about half as much.
pub(super) fn note(seen: &Seen<'_, '_>, findings: &[Finding]) -> Option<Note> {
    if seen.is_loading() {
        return None;
    }
    let (function, amount) = seen.by_owner(|_| true).into_iter().next()?;
    let share = seen.share(amount);
    let identity = seen.functions().get(function).identity();
    let is_about = |one: &Finding| one.function.as_ref() == Some(&identity) || one.share() >= share / 2.0;
    if share < LEAST || python::is_interpreter(seen, function) || findings.iter().any(is_about) {
        return None;
    }
    let (name, share, command) = (seen.name(function), NoteValue::percent(share), explain(seen, function));
    let note = if seen.loops.is_some() {
        note!(
            Hint,
            "`{}` takes {} of the CPU time of steps, and no finding says why. Is all of that work needed in each step? See \
             `stepscope {} RUN`.",
            name,
            share,
            command
        )
    } else {
        note!(
            Hint,
            "`{}` takes {} of the CPU time, and no finding says why. Is all of that work needed? See `stepscope {} RUN`.",
            name,
            share,
            command
        )
    };
    Some(note.about(seen.capture().info.name()))
}

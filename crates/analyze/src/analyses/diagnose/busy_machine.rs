//! [`note`]: a doubt about findings where other programs had the CPUs.

use stepscope_model::{Note, NoteValue, note};

use super::seen::Seen;
use crate::analyses::summary;

/// Least share of the steps' time in percent.
const LEAST: f64 = 25.0;

/// Says that steps waited for CPUs that other programs had, and what that hides: threads that wait for a CPU do not wait for each
/// other.
pub(super) fn note(seen: &Seen<'_, '_>) -> Option<Note> {
    let (path, (_, mean)) = (seen.path.as_ref()?, seen.steps()?);
    let share = 100.0 * path.background_ns as f64 / path.steps as f64 / mean;
    let note = note!(
        Limit,
        "The machine was busy: other programs had the CPUs for {} of the steps' time. Gains are shares of the rest. Waits for \
         locks, barriers and threads may be missing: record again on a quieter machine.",
        NoteValue::percent(share)
    );
    (share >= LEAST).then(|| note.about(summary::label(seen.capture())))
}

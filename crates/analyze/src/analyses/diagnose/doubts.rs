//! [`notes`]: what makes findings doubtful.

use stepscope_model::{Note, NoteValue, note};

use super::seen::Seen;
use crate::analyses::hotspots::Hotspots;

/// Least share of the steps' time, in percent, in which other programs had the CPUs.
const LEAST_BUSY: f64 = 25.0;

/// Says that the machine was busy, that the samples are few, and that code has no names.
pub(super) fn notes(seen: &Seen<'_, '_>) -> Vec<Note> {
    let hotspots = Hotspots::of_weights(seen.selection, &seen.cpu);
    let notes = [busy_machine(seen), hotspots.few_samples_note(seen.selection), hotspots.unnamed_note(seen.selection)];
    notes.into_iter().flatten().map(|note| note.about(seen.capture().info.name())).collect()
}

/// Says that steps waited for CPUs that other programs had, and what that hides: threads that wait for a CPU do not wait for each
/// other.
fn busy_machine(seen: &Seen<'_, '_>) -> Option<Note> {
    let (path, (_, mean)) = (seen.path.as_ref()?, seen.steps()?);
    let share = 100.0 * path.background_ns as f64 / path.steps as f64 / mean;
    let note = note!(
        Limit,
        "The machine was busy: other programs had the CPUs for {} of the steps' time. Gains are shares of the rest. Waits for \
         locks, barriers and threads may be missing: record again on a quieter machine.",
        NoteValue::percent(share)
    );
    (share >= LEAST_BUSY).then_some(note)
}

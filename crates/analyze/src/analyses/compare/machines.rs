//! The machines of the runs, as [strata](stepscope_stats::strata) of a comparison.

use std::collections::BTreeSet;

use stepscope_model::{Note, NoteValue, note};
use stepscope_stats::strata::Strata;

use super::options::Options;
use super::side::Side;
use crate::analyses::comparable;

/// The machine of each run; `None` if one is unknown, or if the machines cannot be taken out.
pub(super) fn strata(before: &Side, after: &Side) -> Option<Strata> {
    Strata::new(&names(before)?, &names(after)?)
}

/// What became of the differences between machines; `None` for one machine. `least_p` is the smallest p of a test within machines, if
/// they are taken out.
pub(super) fn note(before: &Side, after: &Side, least_p: Option<f64>, options: &Options) -> Option<Note> {
    let (names_before, names_after) = (names(before)?, names(after)?);
    let all: BTreeSet<&String> = names_before.iter().chain(&names_after).collect();
    if all.len() < 2 {
        return None;
    }
    let machines = NoteValue::plural(all.len(), "machine");
    Some(match least_p {
        None => note!(
            Limit,
            "Recorded on {}. Differences between them may look like changes: they are not taken out, because a machine lacks one side \
             or the runs are too few.",
            machines
        ),
        Some(least_p) if least_p >= options.alpha => note!(
            Limit,
            "Recorded on {}, each with both sides. Runs are compared within machines; these are too few for p below {}, so \
             nothing can be `changed`. More runs on each machine are needed.",
            machines,
            options.alpha.to_string()
        ),
        Some(_) => note!(
            Fact,
            "Recorded on {}, each with both sides. Differences between machines are taken out: values are those of the mean machine.",
            machines
        ),
    })
}

fn names(side: &Side) -> Option<Vec<String>> {
    side.runs.iter().map(|run| run.info.machine.as_ref().map(comparable::machine)).collect()
}

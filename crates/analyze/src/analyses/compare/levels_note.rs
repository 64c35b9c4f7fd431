//! The note on runs that lie on two levels, so that their mean describes none of them.

use stepscope_model::{Note, NoteValue, Value, note};
use stepscope_stats::Levels;

use super::Comparison;
use super::rows::MetricRow;
use crate::analyses::metrics;
use crate::query::basis::Basis;

/// Of the first headline figure whose runs have two levels: they are the same in others.
pub(super) fn of(comparison: &Comparison) -> Option<Note> {
    let has_steps = comparison.basis == Basis::PerStep;
    let headlines = comparison.metrics.iter().filter(|row| metrics::is_headline(&row.name, has_steps));
    let row = headlines.into_iter().find(|row| row.assessment.levels.iter().any(Option::is_some))?;
    let sides = [(&comparison.before, row.runs.0), (&comparison.after, row.runs.1)];
    let found = sides.into_iter().zip(row.assessment.levels);
    let found = found.filter_map(|((name, runs), levels)| Some(side(name, runs, levels?, row)));
    Some(note!(
        Limit,
        "The runs lie on two levels of {}, which their mean does not describe: {}.{} Find out what differs between the runs, such \
         as the CPUs that they ran on.",
        row.name.to_string(),
        found.collect::<Vec<_>>().join("; "),
        level_by_level(row.assessment.levels)
    ))
}

fn side(name: &str, runs: usize, levels: Levels, row: &MetricRow) -> String {
    let value = |value: f64| NoteValue::of(Value::from(value), &row.unit).to_string();
    let upper = (levels.upper_share * runs as f64).round();
    format!("{upper} of {runs} runs of {name} are at {}, the others at {}", value(levels.upper), value(levels.lower))
}

/// The ratios of the levels, if both sides have two.
fn level_by_level(levels: [Option<Levels>; 2]) -> String {
    let [Some(before), Some(after)] = levels else { return String::new() };
    let (lower, upper) = (after.lower / before.lower, after.upper / before.upper);
    format!(" Level by level, the ratio is {lower:.2} (lower) and {upper:.2} (upper).")
}

//! How long steps took over the recording: what a reader sees grow, jump or stall.
//!
//! Steps are gathered into stretches of equally many, so that a long recording has no more rows than a picture has
//! places; each has its shortest, median and longest step. A stretch in which a step is a
//! [stall](crate::analyses::step_times#stalls) names the longest of these by its number and its time.

use stepscope_model::{Table, Value};
use stepscope_stats::Distribution;

use crate::analyses::step_times::stalls;
use crate::columns;
use crate::query::select::Selection;
use crate::query::steps::Loops;

/// Stretches of a table, at most.
const STRETCHES: usize = 240;

/// The table `steps_over_time` of the loop with most steps, its first step left out: `at, shortest, median, longest,
/// stall, stalled_step`. `None` where no steps are known.
pub fn table(selection: &Selection<'_>) -> Option<Table> {
    let loops = Loops::of(selection)?;
    let steps = loops.main();
    let start = selection.window().map_or(steps.span.start, |window| window.start);
    let times: Vec<u64> = (0..steps.count()).map(|position| steps.duration(position)).collect();
    let stalled = stalls(&times);
    let mut table = Table::new(
        "steps_over_time",
        "Step time over the recording",
        vec![
            columns::duration("at", "Start of the stretch's first step, since the recording began.").essential(),
            columns::duration("shortest", "Shortest step of the stretch."),
            columns::duration("median", "Median step of the stretch.").essential(),
            columns::duration("longest", "Longest step of the stretch."),
            columns::duration("stall", "Longest step that is a stall: more than twice the median of those around it."),
            columns::count("stalled_step", "", "Number of that step."),
        ],
    );
    let kept: Vec<usize> = steps.after_first().collect();
    for stretch in kept.chunks(kept.len().div_ceil(STRETCHES).max(1)) {
        let of_stretch: Distribution = stretch.iter().map(|&position| times[position]).collect();
        let stall = stretch.iter().filter(|&&position| stalled[position]).max_by_key(|&&position| times[position]);
        table.push(vec![
            steps.rows()[stretch[0]].start_ns.saturating_sub(start).into(),
            of_stretch.min().into(),
            of_stretch.median().into(),
            of_stretch.max().into(),
            stall.map(|&position| times[position]).into(),
            stall.map_or(Value::Missing, |&position| steps.rows()[position].index.into()),
        ]);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    #[test]
    fn steps_are_gathered_into_stretches_with_their_longest_stall() {
        let mut drawing = Drawing::new().window(0..10_000_000).steps("main", 1_000, 1_000, 1_000, 1);
        let steps = &mut drawing.capture.steps;
        // One step takes ten times as long, at the cost of those after it.
        steps[500].end_ns += 9_000;
        for index in 501..1_000 {
            let start_ns = steps[index - 1].end_ns;
            (steps[index].start_ns, steps[index].end_ns) = (start_ns, start_ns + 1_000);
        }
        let table = drawn::selected(&drawing.capture, &[], table).unwrap();
        assert_eq!(table.rows.len(), 200, "999 steps, 5 in each");
        let rows = cells(&table, &["at", "shortest", "median", "longest", "stall", "stalled_step"]);
        assert_eq!(rows[0], "2000 | 1000 | 1000 | 1000 | - | -");
        let stalls: Vec<&String> = rows.iter().filter(|row| !row.ends_with("- | -")).collect();
        assert_eq!(stalls, ["497000 | 1000 | 1000 | 10000 | 10000 | 500"]);
    }

    #[test]
    fn without_steps_there_is_nothing() {
        assert!(drawn::selected(&drawn::folded("main;a 1"), &[], table).is_none());
    }
}

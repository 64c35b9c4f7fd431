//! The table `steps_over_time`: how step time develops over the recording.
//!
//! Consecutive steps are grouped into stretches of equal number, few enough for a chart. Each stretch has its shortest,
//! median and longest step. If one of its steps is a [stall](crate::analyses::step_times#stalls), the row names the longest
//! one.

use stepscope_model::{Columns, Step, Table};
use stepscope_stats::Distribution;

use crate::analyses::step_times::stalls;
use crate::query::select::Selection;
use crate::query::steps::Loops;

/// The largest number of stretches.
const STRETCHES: usize = 240;

/// Consecutive steps.
struct Stretch<'a> {
    first: &'a Step,
    times: Distribution,
    /// Time and step of the longest stall.
    stall: Option<(u64, &'a Step)>,
}

/// The table of the main loop, without its first step. `None` if no steps are known.
pub fn table(selection: &Selection<'_>) -> Option<Table> {
    let loops = Loops::of(selection)?;
    let steps = loops.main();
    let start = selection.window().map_or(steps.span.start, |window| window.start);
    let times: Vec<u64> = (0..steps.count()).map(|position| steps.duration(position)).collect();
    let stalled = stalls(&times);
    let kept: Vec<usize> = steps.after_first().collect();
    let stretches = kept.chunks(kept.len().div_ceil(STRETCHES).max(1)).map(|positions| {
        let stall = positions.iter().filter(|&&position| stalled[position]).max_by_key(|&&position| times[position]);
        Stretch {
            first: &steps.rows()[positions[0]],
            times: positions.iter().map(|&position| times[position]).collect(),
            stall: stall.map(|&position| (times[position], &steps.rows()[position])),
        }
    });
    let stall = "Longest step that is a stall: more than twice the median of its neighbours.";
    let columns = Columns::<Stretch<'_>>::new()
        .duration("at", "Start of the stretch, since the start of the recording.", |stretch| {
            stretch.first.start_ns.saturating_sub(start)
        })
        .duration("shortest", "Shortest step of the stretch.", |stretch| stretch.times.min())
        .duration("median", "Median step of the stretch.", |stretch| stretch.times.median())
        .duration("longest", "Longest step of the stretch.", |stretch| stretch.times.max())
        .duration("stall", stall, |stretch| stretch.stall.map(|(ns, _)| ns))
        .count("stalled_step", "", "Number of that step.", |stretch| stretch.stall.map(|(_, step)| step.index))
        .essential("at median");
    Some(columns.table("steps_over_time", "Step time over the recording", stretches))
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

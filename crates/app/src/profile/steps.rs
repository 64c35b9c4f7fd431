//! The table `steps`.
//!
//! A program may take millions of steps of a microsecond. Of too many, the longest have rows of their own, and some of the
//! others stand for their neighbours: so stalls and the number of steps stay exact.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use stepscope_analyze::step_classes::{Level, Set, StepClass};
use stepscope_model::Step;
use stepscope_model::quantity::grouped;

use super::{Profile, row};
use crate::parquet_table::ParquetTable;

/// Which steps have a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// In order: the place of a step, and how many steps it stands for.
    rows: Vec<(usize, u32)>,
    /// Number of steps.
    all: usize,
    /// How many steps have a row because they are long.
    longest: usize,
}

impl Shown {
    /// At most about `most` of these steps.
    pub(super) fn of(steps: &[(Step, StepClass)], most: usize) -> Self {
        let all = steps.len();
        if all <= most {
            return Self { rows: (0..all).map(|place| (place, 1)).collect(), all, longest: all };
        }
        let mut order: Vec<usize> = (0..all).collect();
        order.sort_by_key(|place| {
            let (step, class) = &steps[*place];
            Reverse((class.is_first, class.is_stall, step.end_ns.saturating_sub(step.start_ns)))
        });
        let (longest, others) = order.split_at_mut(most / 2);
        others.sort_unstable();
        let each = others.len().div_ceil((most / 2).max(1)) as u32;
        let mut rows: Vec<(usize, u32)> = longest.iter().map(|place| (*place, 1)).collect();
        // By loop: the last step that has no row yet, and how many there are.
        let mut waiting: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
        for place in others {
            let of_loop = waiting.entry(steps[*place].1.of_loop).or_default();
            *of_loop = (*place, of_loop.1 + 1);
            if of_loop.1 == each {
                rows.push(std::mem::take(of_loop));
            }
        }
        rows.extend(waiting.into_values().filter(|(_, count)| *count > 0));
        rows.sort_unstable();
        Self { rows, all, longest: longest.len() }
    }

    /// What the table does not hold.
    pub(super) fn left_out(&self) -> Option<String> {
        let [all, longest] = [self.all, self.longest].map(|count| grouped(count as i128));
        (self.longest < self.all).then(|| {
            format!(
                "Of {all} steps, the {longest} longest are shown, and some of the others, which stand for all of them."
            )
        })
    }
}

/// The steps of all loops by start, each with its classes.
pub(super) fn table(profile: &Profile<'_>) -> ParquetTable {
    let (steps, shown) = (profile.steps(), profile.shown_steps());
    let shown = || shown.rows.iter().map(|(place, count)| (&steps[*place], *count));
    let time = |of: &dyn Fn(&Step) -> f64| shown().map(|((step, _), _)| of(step)).collect::<Vec<f64>>();
    let class = |of: &dyn Fn(&StepClass) -> i32| shown().map(|((_, class), _)| of(class)).collect::<Vec<i32>>();
    // Of a recording that goes on, the first steps may be forgotten by now.
    let is_first = |(step, class): &(Step, StepClass)| class.is_first && (profile.names.is_none() || step.index == 0);
    ParquetTable::new()
        .numbers("index", time(&|step| step.index as f64))
        .numbers("start", time(&|step| profile.since_start(step.start_ns)))
        .numbers("end", time(&|step| profile.since_start(step.end_ns)))
        .numbers("sim", time(&|step| step.sim_time_ns.map_or(f64::NAN, |sim| sim as f64)))
        .integers("thread", shown().map(|((step, _), _)| row(Some(step.thread.index()))).collect())
        .integers("loop", class(&|class| row(Some(class.of_loop as usize))))
        .numbers("pacing", shown().map(|((_, class), _)| class.pacing_ns as f64).collect())
        .integers("first", shown().map(|(step, _)| is_first(step).into()).collect())
        .integers("stall", class(&|class| class.is_stall.into()))
        .integers("level", class(&|class| class.level.map_or(-1, |level| (level == Level::Upper).into())))
        .integers("set", class(&|class| class.set.map_or(-1, |set| (set == Set::Slow).into())))
        .integers("count", shown().map(|(_, count)| row(Some(count as usize))).collect())
}

#[cfg(test)]
mod tests {
    use stepscope_model::ThreadId;

    use super::*;

    /// Steps of two loops in turn. Each hundredth takes ten times as long, and one of the short ones is a stall.
    fn steps() -> Vec<(Step, StepClass)> {
        let step = |place: u32| {
            let length = if place.is_multiple_of(100) { 10 } else { 1 };
            let start_ns = u64::from(place) * 10;
            let step = Step {
                index: u64::from(place),
                start_ns,
                end_ns: start_ns + length,
                thread: ThreadId(place % 2),
                sim_time_ns: None,
            };
            let class = StepClass {
                of_loop: place % 2,
                pacing_ns: 0,
                is_first: place < 2,
                is_stall: place == 777,
                level: None,
                set: None,
            };
            (step, class)
        };
        (0..10_000).map(step).collect()
    }

    #[test]
    fn few_steps_have_a_row_each() {
        let shown = Shown::of(&steps(), 10_000);
        assert_eq!(shown.rows, (0..10_000).map(|place| (place, 1)).collect::<Vec<_>>());
        assert_eq!(shown.left_out(), None);
    }

    #[test]
    fn of_many_steps_the_longest_stay_and_others_stand_for_the_rest() {
        let (steps, most) = (steps(), 1_000);
        let shown = Shown::of(&steps, most);
        assert!((most - 2..=most + 2).contains(&shown.rows.len()), "{}", shown.rows.len());
        for place in (0..10_000).step_by(100).chain([1, 777]) {
            assert!(shown.rows.contains(&(place, 1)), "step {place} has its own row");
        }
        for of_loop in [0, 1] {
            let of_loop = shown.rows.iter().filter(|(place, _)| steps[*place].1.of_loop == of_loop);
            assert_eq!(of_loop.map(|(_, count)| *count).sum::<u32>(), 5_000);
        }
        assert!(shown.left_out().unwrap().starts_with("Of 10,000 steps, the 500 longest"));
    }
}

//! The classes of each step: its loop, whether it is a stall, its level, and whether it is slow or typical.
//!
//! For pictures that mark single steps. The definitions are those of the tables: [loops](crate::query::steps),
//! [stalls and levels](super::step_times), [slow and typical steps](super::slow_steps).
//!
//! Stalls and levels are found in each loop by itself. Slow and typical steps are those of the main loop: other loops have
//! none.

use stepscope_model::Step;
use stepscope_stats::Levels;

use super::slow_steps::{self, Sets};
use super::step_times::{StepParts, levels, stalls_after_first};
use crate::query::select::Selection;
use crate::query::steps::{Loops, Steps};

/// One of two [levels](super::step_times#levels).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The shorter time.
    Lower,
    /// The longer time.
    Upper,
}

/// One of the sets that [slow steps](super::slow_steps) compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// The step is slow.
    Slow,
    /// The step is typical.
    Typical,
}

/// Facts on a step by comparison with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepClass {
    /// Place of its loop in [`Loops::all`]: 0 is the main loop.
    pub of_loop: u32,
    /// Pacing of the loop's thread in the step, in ns.
    pub pacing_ns: u64,
    /// Whether it is the loop's first step, which loads data for later steps and is in no class.
    pub is_first: bool,
    /// Whether it is a stall.
    pub is_stall: bool,
    /// `None` if the loop's steps have one level.
    pub level: Option<Level>,
    /// `None` if it is neither slow nor typical.
    pub set: Option<Set>,
}

/// The classes of the loops' steps, each with the step that it is of, in order of the steps' starts.
pub fn of(selection: &Selection<'_>) -> Vec<(Step, StepClass)> {
    let Some(loops) = Loops::of(selection) else { return Vec::new() };
    let off_cpu = selection.off_cpu();
    let sets = slow_steps::sets(selection);
    let mut all: Vec<(Step, StepClass)> = Vec::new();
    for (number, steps) in loops.all().enumerate() {
        let parts = StepParts::of(selection, &loops, steps, &off_cpu);
        let mut classes = of_loop(steps, &parts, number as u32);
        if let Some(sets) = sets.as_ref().filter(|_| number == 0) {
            mark_sets(&mut classes, sets);
        }
        all.extend(steps.rows().iter().copied().zip(classes));
    }
    all.sort_by_key(|(step, _)| (step.start_ns, step.end_ns, step.index, step.thread));
    all
}

fn of_loop(steps: &Steps, parts: &StepParts, number: u32) -> Vec<StepClass> {
    let unpaced = parts.unpaced();
    let levels: Option<Levels> = levels(steps, &unpaced);
    let kept = steps.after_first();
    let stalls = stalls_after_first(steps, &unpaced);
    let class = |position: usize| {
        let is_upper = |levels: Levels| levels.is_upper(unpaced[position] as f64);
        let level = |levels: Levels| if is_upper(levels) { Level::Upper } else { Level::Lower };
        let counts = kept.contains(&position);
        StepClass {
            of_loop: number,
            pacing_ns: parts.pacing[position],
            is_first: !counts,
            is_stall: counts && stalls[position - kept.start],
            level: levels.map(level).filter(|_| counts),
            set: None,
        }
    };
    (0..steps.count()).map(class).collect()
}

fn mark_sets(classes: &mut [StepClass], sets: &Sets) {
    for (positions, set) in [(&sets.slow, Set::Slow), (&sets.typical, Set::Typical)] {
        positions.iter().for_each(|position| classes[*position].set = Some(set));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};

    /// Steps of these lengths in ns, one after the other.
    fn of_lengths(lengths: impl Iterator<Item = u64>) -> Vec<StepClass> {
        let lengths: Vec<u64> = lengths.collect();
        let mut drawing = Drawing::new().window(0..1_000_000_000).steps("main", 0, 1, lengths.len() as u64, 1);
        let mut time = 0;
        for (step, length) in drawing.capture.steps.iter_mut().zip(lengths) {
            (step.start_ns, step.end_ns) = (time, time + length);
            time += length;
        }
        drawn::selected(&drawing.capture, &[], of).into_iter().map(|(_, class)| class).collect()
    }

    #[test]
    fn alternating_steps_have_levels_and_the_upper_one_is_slow() {
        let classes = of_lengths((0..400).map(|index| (if index % 2 == 0 { 3_000 } else { 5_000 }) + index * 37 % 10));
        let found: Vec<_> = classes[1..4].iter().map(|class| (class.level, class.set, class.is_stall)).collect();
        let upper = (Some(Level::Upper), Some(Set::Slow), false);
        assert_eq!([found[0], found[2]], [upper, upper]);
        assert_eq!((found[1].0, found[1].2), (Some(Level::Lower), false));
        assert_eq!((classes[0].is_first, classes[0].level, classes[0].set), (true, None, None));
        assert!(classes.iter().any(|class| class.set == Some(Set::Typical)));
    }

    #[test]
    fn rare_long_steps_are_stalls_and_not_a_level() {
        let classes = of_lengths((0..400).map(|index| if index % 40 == 20 { 30_000 } else { 3_000 + index % 7 }));
        let stalls: Vec<usize> = (0..400).filter(|step| classes[*step].is_stall).collect();
        assert_eq!(stalls, (0..10).map(|number| 20 + 40 * number).collect::<Vec<usize>>());
        assert!(classes.iter().all(|class| class.level.is_none()));
        let slow: Vec<usize> = (0..400).filter(|step| classes[*step].set == Some(Set::Slow)).collect();
        assert_eq!(slow, stalls);
    }

    #[test]
    fn each_loop_has_its_number_and_steps_come_in_order_of_time() {
        let capture = Drawing::new()
            .window(0..1_000)
            .process(1, "sim")
            .steps("physics", 0, 10, 50, 1)
            .steps("render", 5, 100, 5, 1)
            .capture;
        let classes = drawn::selected(&capture, &[], of);
        assert_eq!(classes.len(), 55);
        assert!(classes.is_sorted_by_key(|(step, _)| step.start_ns));
        let of_render: Vec<u64> =
            classes.iter().filter(|(_, class)| class.of_loop == 1).map(|(step, _)| step.start_ns).collect();
        assert_eq!(of_render, [5, 105, 205, 305, 405]);
    }

    #[test]
    fn without_steps_there_are_no_classes() {
        assert!(drawn::selected(&drawn::folded("main;a 1"), &[], of).is_empty());
    }
}

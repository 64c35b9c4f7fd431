//! A few steps take much longer, because they do work that others do not.
//!
//! Evidence: in a few steps, which are several times as long as the median step, a function is most of the time; other steps
//! do not have it. The deepest such function is named. Steps must be long enough to be sampled several times, so
//! delays of short steps are not taken for work. Shorter steps count together: those whose thread runs several times as long as in the median
//! step, however long it waits, and only if nearly all samples of the function are in these. Look-alikes: a job that is due every n steps by
//! design.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::steps::Steps;
use std::collections::BTreeMap;
use stepscope_model::{NoteValue, StackId};
use stepscope_stats::Distribution;

/// How many times as long as the median step.
const LIFT: f64 = 4.0;

/// Least share of CPU time.
const LEAST: f64 = 2.0;

/// Most of the steps that may have the work.
const RARE: f64 = 0.2;

/// Most of the time that they may take.
const MOST_OF_TIME: f64 = 0.8;

/// Fewest such steps.
const FEWEST_STEPS: usize = 3;

/// Fewest samples of the function in such a step, on average.
const SAMPLES: f64 = 3.0;

/// Least part of a function's samples that are in long steps, where each has only a few.
const NEARLY_ALL: f64 = 0.9;

/// Fewest of these samples.
const FEWEST: usize = 20;

pub(super) struct Stalls;

/// Steps whose thread runs several times as long as in the median step.
struct LongSteps {
    is_long: Vec<bool>,
    number: usize,
    /// Time that their threads run.
    running_ns: u64,
    /// How long they take.
    duration_ns: u64,
}

impl LongSteps {
    /// None where it is not known how long threads run, or where these steps are not rare.
    fn of(seen: &Seen<'_, '_>, steps: &Steps) -> Option<Self> {
        if !seen.selection.has_switches() {
            return None;
        }
        let kept = steps.after_first();
        let running: Option<Vec<u64>> = steps
            .rows()
            .iter()
            .map(|step| Some(seen.off_cpu.spent(step.thread, step.start_ns..step.end_ns)?.running))
            .collect();
        let running = running?;
        let median = running[kept.clone()].iter().copied().collect::<Distribution>().median()?.max(1);
        let is_long: Vec<bool> =
            (0..running.len()).map(|at| kept.contains(&at) && running[at] as f64 >= LIFT * median as f64).collect();
        let of_long = || (0..is_long.len()).filter(|at| is_long[*at]);
        let number = of_long().count();
        let running_ns = of_long().map(|at| running[at]).sum();
        let duration_ns = of_long().map(|at| steps.duration(at)).sum();
        let is_rare = number >= FEWEST_STEPS && number as f64 <= RARE * kept.len() as f64;
        is_rare.then_some(Self { is_long, number, running_ns, duration_ns })
    }

    /// Whether a function, in samples of these steps with these weights, is their work and not that of others.
    fn is_work(&self, samples: &[(usize, u64)]) -> bool {
        let inside: Vec<u64> =
            samples.iter().filter(|(position, _)| self.is_long[*position]).map(|(_, weight)| *weight).collect();
        let is_theirs = inside.len() >= FEWEST && inside.len() as f64 >= NEARLY_ALL * samples.len() as f64;
        is_theirs && inside.iter().sum::<u64>() * 2 >= self.running_ns
    }
}

impl Kind for Stalls {
    fn name(&self) -> &'static str {
        "rare-long-steps"
    }

    fn advice(&self) -> &'static str {
        "Do this work while loading, on a thread that no step waits for, or a part of it in each step."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view slow-steps`: the function leads what slow steps have more of."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(loops) = &seen.loops else { return Vec::new() };
        let steps = loops.main();
        let (Some(median), kept) = (steps.times.median(), steps.after_first()) else { return Vec::new() };
        let samples: Vec<(StackId, usize, u64)> = seen
            .selection
            .samples()
            .filter_map(|sample| Some((sample.stack?, loops.main_step_of(sample)?, sample.weight)))
            .filter(|(_, position, _)| kept.contains(position))
            .collect();
        let most = (RARE * kept.len() as f64) as usize;
        let all_ns: u64 = kept.clone().map(|position| steps.duration(position)).sum();
        let long = LongSteps::of(seen, steps);
        let mut found: Vec<(Found, Vec<bool>)> = Vec::new();
        for (function, amount) in seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST) {
            let under = seen.under(function);
            // Samples and weight in each step that has any.
            let mut with: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
            let mut of_function: Vec<(usize, u64)> = Vec::new();
            for (_, position, weight) in samples.iter().filter(|(stack, ..)| under[stack.index()]) {
                of_function.push((*position, *weight));
                let (count, sum) = with.entry(*position).or_default();
                *count += 1;
                *sum += weight;
                if with.len() > most && long.is_none() {
                    break; // Most functions are in many steps, which a few of the samples show.
                }
            }
            let number = with.len() as f64;
            let sum = with.keys().map(|position| steps.duration(*position)).sum::<u64>() as f64;
            let sampled = with.values().map(|(count, _)| count).sum::<u64>() as f64;
            let weight = with.values().map(|(_, weight)| weight).sum::<u64>() as f64;
            let lift = sum / number / median.max(1) as f64;
            let is_each_sampled = (FEWEST_STEPS..=most).contains(&with.len())
                && lift >= LIFT
                && sampled >= SAMPLES * number
                && weight * 2.0 >= sum;
            let together = long.as_ref().filter(|long| !is_each_sampled && long.is_work(&of_function));
            let (number, mean) = match together {
                Some(long) => (long.number, long.duration_ns as f64 / long.number as f64),
                None if is_each_sampled => (with.len(), sum / number),
                None => continue,
            };
            // Most of the time is what the program does, and what is short was no step.
            if number as f64 * mean > MOST_OF_TIME * all_ns as f64 {
                continue;
            }
            // Callers of a function that has most of their cost say the same, less precisely.
            let same = |outer: &[bool]| {
                let both = seen.sum(|stack| outer[stack.index()] && under[stack.index()]);
                both.weight * 10 >= seen.sum(|stack| outer[stack.index()]).weight * 8
            };
            found.retain(|(_, outer)| !same(outer));
            let (number, all) = (NoteValue::number(number as u64), NoteValue::number(kept.len() as u64));
            let title = format!("{number} of {all} steps take {} because of `{}`", ns(mean), seen.name(function));
            let without = parts(under.iter().copied());
            let one = Found::of(seen, function, title, without).sure(Confidence::Strong).because(
                format!(
                    "The median step takes {}; the function is {} of the CPU time.",
                    ns(median as f64),
                    percent(seen.share(amount))
                ),
                "show --view slow-steps",
            );
            found.push((one, under));
        }
        found.into_iter().map(|(found, _)| found).collect()
    }
}

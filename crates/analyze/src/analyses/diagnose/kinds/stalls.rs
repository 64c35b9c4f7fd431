//! A few steps take much longer, because they do work that others do not.
//!
//! Evidence: in a few steps, which are several times as long as the median step, a function is most of the time; other steps
//! do not have it. The deepest such function is named. Steps must be long enough to be sampled several times, so
//! delays of short steps are not taken for work. Look-alikes: a job that is due every n steps by design.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use std::collections::BTreeMap;
use stepscope_model::StackId;

/// How many times as long as the median step.
const LIFT: f64 = 4.0;

/// Least share of CPU time.
const LEAST: f64 = 2.0;

/// Most of the steps that may have the work.
const RARE: f64 = 0.2;

/// Fewest samples of the function in such a step, on average.
const SAMPLES: f64 = 3.0;

pub(super) struct Stalls;

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
        let mut found: Vec<(Found, Vec<bool>)> = Vec::new();
        for (function, amount) in seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST) {
            let under = seen.under(function);
            // Samples and weight in each step that has any.
            let mut with: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
            for (_, position, weight) in samples.iter().filter(|(stack, ..)| under[stack.index()]) {
                let (count, sum) = with.entry(*position).or_default();
                *count += 1;
                *sum += weight;
                if with.len() > most {
                    break; // Most functions are in many steps, which a few of the samples show.
                }
            }
            let number = with.len() as f64;
            let sum = with.keys().map(|position| steps.duration(*position)).sum::<u64>() as f64;
            let sampled = with.values().map(|(count, _)| count).sum::<u64>() as f64;
            let weight = with.values().map(|(_, weight)| weight).sum::<u64>() as f64;
            let lift = sum / number / median.max(1) as f64;
            if with.len() < 3 || with.len() > most || lift < LIFT || sampled < SAMPLES * number || weight * 2.0 < sum {
                continue;
            }
            // Callers of a function that has most of their cost say the same, less precisely.
            let same = |outer: &[bool]| {
                let both = seen.sum(|stack| outer[stack.index()] && under[stack.index()]);
                both.weight * 10 >= seen.sum(|stack| outer[stack.index()]).weight * 8
            };
            found.retain(|(_, outer)| !same(outer));
            let title = format!(
                "{} steps in {} take {} because of `{}`",
                with.len(),
                kept.len(),
                ns(sum / number),
                seen.name(function)
            );
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

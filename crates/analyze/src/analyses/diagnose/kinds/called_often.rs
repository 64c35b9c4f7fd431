//! A small function is called very often: an accessor, a filter, a clock.
//!
//! Evidence: its calls, counted per step, together with the CPU time of a call. Look-alikes: the
//! samples of a function next to it, if calls are so short that a sample hits the wrong one. Half of its time is taken as the gain: some
//! of the work has to be done in its caller.
//!
//! Without counts: machine code of a few instructions that only load and compare, without loops, calls, writes and arithmetic, costs all the
//! time. Each call of it takes some nanoseconds. Its time is the gain, and that of loops which only ask it: what it answers is known before, or
//! can be asked at once. Look-alikes: comparisons that a library's sort calls.

use stepscope_model::{LoopShape, StackId};

use super::full_scan::asks_pairs;
use crate::analyses::diagnose::code::HotLoop;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};

/// Least share of CPU time.
const LEAST: f64 = 3.0;

/// The same of questions.
const LEAST_OF_QUESTIONS: f64 = 8.0;

/// Least calls per step, or per second.
const LEAST_CALLS: f64 = 1_000.0;
const LEAST_CALLS_PER_SECOND: f64 = 1e6;

/// Most CPU time of a call, in ns.
const SHORT_NS: f64 = 50.0;

pub(super) struct CalledOften;

impl Kind for CalledOften {
    fn name(&self) -> &'static str {
        "called-very-often"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Call it once and keep the result, let the compiler inline it, or filter before the call."
    }

    fn confirm(&self) -> &'static str {
        "`perf annotate` of its caller: time at the call and at the function's first instructions."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let mut found = counted(seen);
        let questions = questions(seen).into_iter();
        let is_new = |one: &Found| !found.iter().any(|counted| counted.function == one.function);
        let new: Vec<Found> = questions.filter(is_new).collect();
        found.extend(new);
        found
    }
}

/// Functions whose calls were counted.
fn counted(seen: &Seen<'_, '_>) -> Vec<Found> {
    let Some((_, step_ns)) = seen.steps() else { return Vec::new() };
    let inclusive = seen.inclusive();
    let often = seen.calls.iter().filter(|rate| {
        let calls = rate.per_step >= LEAST_CALLS || rate.per_step / step_ns * 1e9 >= LEAST_CALLS_PER_SECOND;
        calls && rate.call_ns <= SHORT_NS
    });
    let found = often.filter_map(|rate| {
        let (_, amount) = inclusive.iter().find(|(function, _)| *function == rate.function)?;
        let share = seen.share(*amount);
        let title = format!("`{}` is called {} in each step", seen.name(rate.function), rate.times());
        let half = seen.under(rate.function).into_iter().map(|under| if under { 0.5 } else { 0.0 }).collect();
        let found = Found::of(seen, rate.function, title, half).sure(Confidence::Fair);
        (share >= LEAST).then(|| {
            found.because(format!("All calls together are {} of the CPU time.", percent(share)), "rank --inclusive")
        })
    });
    found.collect()
}

/// Functions whose machine code only loads and compares. What a scan asks belongs to the scan.
fn questions(seen: &Seen<'_, '_>) -> Vec<Found> {
    if seen.questions.is_empty() {
        return Vec::new();
    }
    let is_of_scan = |one: &&HotLoop| matches!(one.shape, LoopShape::Scan | LoopShape::Visit) && !asks_pairs(one);
    let scans: Vec<_> = seen.hot_loops.iter().filter(is_of_scan).collect();
    let pairs: Vec<&HotLoop> = seen.hot_loops.iter().filter(|one| asks_pairs(one)).collect();
    let asked = |stack: StackId| {
        let index = stack.index();
        let is_one = seen.questions[index] && !scans.iter().any(|scan| scan.inside[index]);
        is_one.then(|| seen.functions().attributed(stack)).flatten()
    };
    let large = seen.by_function(asked).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST_OF_QUESTIONS);
    let lasting = large.filter(|(function, _)| seen.recurs(|stack: StackId| asked(stack) == Some(*function)));
    let found = lasting.map(|(function, amount)| {
        let title = format!("`{}` is asked again and again, and only loads and compares", seen.name(function));
        // A loop that only asks is for nothing else.
        let asks_it = |one: &&&HotLoop| {
            let asked_there = seen.sum(|stack| one.inside[stack.index()] && asked(stack) == Some(function));
            asked_there.weight * 2 > one.asked.weight
        };
        let loops: Vec<&HotLoop> = pairs.iter().filter(asks_it).copied().collect();
        let without = parts((0..seen.questions.len()).map(|index| {
            asked(StackId::from_index(index)) == Some(function) || loops.iter().any(|one| one.inside[index])
        }));
        let share = percent(seen.share(amount));
        let found = Found::of(seen, function, title, without).sure(Confidence::Fair).because(
            format!("It is a few instructions, and all of its calls are {share} of the CPU time."),
            explain(seen, function),
        );
        match seen.common_owner_above(function, &seen.under(function)) {
            Some(caller) => found.because(format!("`{}` calls it.", seen.name(caller)), explain(seen, caller)),
            None => found,
        }
    });
    found.collect()
}

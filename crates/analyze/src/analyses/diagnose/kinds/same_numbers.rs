//! Sines, powers and the like are computed of the same numbers again.
//!
//! Evidence: calls of an owned function were replayed, and nearly all that it asked functions of the mathematics library, with all that it calls, was
//! about numbers that an earlier call was about: the angles of a sensor's beams, a power of a constant. Their results depend on nothing else.
//! Look-alikes: bodies that are all in the same state, or at rest.

use stepscope_model::NoteValue;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::calls::{FunctionMathematics, FunctionRepeats};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, innermost, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::family::Family;
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;

/// Least gain in percent of the CPU time. What a table costs is not taken off.
const LEAST: f64 = 8.0;

/// Fewest calls of the mathematics library.
const FEWEST: u64 = 200;

/// Each number has to come this many times, about.
const TIMES: u64 = 4;

/// Least part of their work that is for known numbers. A window that slides over numbers repeats most of them, too.
const LEAST_PART: f64 = 0.9;

/// A function that is called is named instead of its caller if its gain is nearly as large.
const NEARLY: f64 = 0.75;

pub(super) struct SameNumbers;

impl Kind for SameNumbers {
    fn name(&self) -> &'static str {
        "same-numbers-again"
    }

    fn advice(&self) -> &'static str {
        "Compute them once: before the loop, in the constructor, or in a table by the index or the number."
    }

    fn confirm(&self) -> &'static str {
        "Print the arguments of the calls, and count the different ones."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let computes = seen.paths_through(|function| {
            Family::built_in(&function.name, &function.module, function.kind) == Some(Family::Mathematics)
        });
        let candidate = |(function, _, calls): &(FunctionId, Amount, FunctionRepeats)| {
            let asked = &calls.mathematics;
            let under = seen.under(*function);
            let inside: Vec<bool> = under.iter().zip(&computes).map(|(under, computes)| *under && *computes).collect();
            let gain = seen.share(seen.sum(|stack| inside[stack.index()])) * asked.part;
            let is_one =
                asked.calls >= FEWEST.max(asked.different * TIMES) && asked.part >= LEAST_PART && gain >= LEAST;
            let stacks = under.iter().filter(|one| **one).count();
            is_one.then(|| Candidate { function: *function, stacks, inside, gain, asked: asked.clone() })
        };
        let mut candidates: Vec<Candidate> = seen.repeats.iter().filter_map(candidate).collect();
        // A caller has more stacks below it.
        candidates.sort_by_key(|one| one.stacks);
        let size = |one: &Candidate| seen.sum(|stack| one.inside[stack.index()]).weight;
        let shares = |one: &Candidate, other: &Candidate| {
            seen.sum(|stack| one.inside[stack.index()] && other.inside[stack.index()]).weight * 2 > size(other)
        };
        innermost(candidates, NEARLY, |one| one.gain, shares).iter().map(|one| one.found(seen)).collect()
    }
}

/// A function that asks the same again.
struct Candidate {
    function: FunctionId,
    /// Number of stacks through the function.
    stacks: usize,
    /// One flag per stack: whether it is in the mathematics library below the function.
    inside: Vec<bool>,
    /// In percent of the CPU time.
    gain: f64,
    asked: FunctionMathematics,
}

impl Candidate {
    fn found(&self, seen: &Seen<'_, '_>) -> Found {
        let Self { function, inside, asked, .. } = self;
        let title = format!(
            "`{}` computes sines, powers or the like of the same numbers again and again",
            seen.name(*function)
        );
        let part = asked.part as f32;
        let without = parts(inside.iter().copied()).into_iter().map(|one| one * part).collect();
        let cost = seen.sum(|stack| inside[stack.index()]);
        let found = Found::of(seen, *function, title, without).sure(Confidence::Fair).because_of_calls(format!(
            "Its replayed calls called mathematical functions {} times, with {}; {} of their work was for the numbers of an \
             earlier call.",
            NoteValue::number(asked.calls),
            NoteValue::plural(asked.different as usize, "different argument"),
            percent(asked.part * 100.0),
        ));
        found.because(
            format!("These functions cost {} of the CPU time there.", percent(seen.share(cost))),
            explain(seen, *function),
        )
    }
}

//! Calls that leave behind what was there before.
//!
//! Evidence: calls of an owned function were replayed, and what they wrote was compared with what was there. [`ResultsUnchanged`]: most of their work
//! writes what is there already, such as the sweeps of a solver that has converged. [`NoEffect`]: no call changes anything, and all answers that
//! are used are the same, such as a check of everything that never fails. Look-alikes: a program at rest; a question whose answer is often
//! the same, and once in a while another.

use stepscope_model::NoteValue;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::calls::FunctionRepeats;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, innermost, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;

/// Least gain in percent of the CPU time.
const LEAST: f64 = 5.0;

/// Fewest calls that write what is there already, and fewest that leave nothing behind: these may be long, and then few are replayed.
const FEWEST: u64 = 5;
const FEWEST_SILENT: u64 = 3;

/// Least part of a function's work that changes nothing.
const LEAST_PART: f64 = 0.3;

/// Instructions of a call from which on it is more than a question about one thing.
const LONG: u64 = 5_000;

/// A function that is called is named instead of its caller if its gain is nearly as large.
const NEARLY: f64 = 0.9;

/// Of two functions that share this part of the inner one's stacks, one is named.
const SHARED: f64 = 0.5;

pub(super) struct ResultsUnchanged;

impl Kind for ResultsUnchanged {
    fn name(&self) -> &'static str {
        "results-unchanged"
    }

    fn advice(&self) -> &'static str {
        "Stop when nothing changes any more: compare the largest change of a round with a tolerance. Skip what is at rest, or keep a flag for what has \
         changed."
    }

    fn confirm(&self) -> &'static str {
        "Print the largest change that each call makes."
    }

    fn outranked_by(&self) -> &'static [&'static str] {
        &["same-work-again"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let part = |calls: &FunctionRepeats| {
            let effects = &calls.effects;
            (effects.kept >= FEWEST && effects.kept_part >= LEAST_PART).then_some(effects.kept_part)
        };
        let found = |one: &Candidate<'_>| {
            let effects = &one.calls.effects;
            let title = format!("`{}` often writes what is there already", seen.name(one.function));
            one.found(seen, title).sure(Confidence::Fair).because_of_calls(format!(
                "Of {} calls that were replayed, {} wrote ({}) what was there before them, but for the last digits of numbers. They are {} of its work.",
                NoteValue::number(one.calls.followed),
                NoteValue::number(effects.kept),
                NoteValue::of(effects.kept_bytes, "bytes"),
                percent(effects.kept_part * 100.0),
            ))
        };
        apart(candidates(seen, part)).iter().map(found).collect()
    }
}

pub(super) struct NoEffect;

impl Kind for NoEffect {
    fn name(&self) -> &'static str {
        "no-effect-each-call"
    }

    fn advice(&self) -> &'static str {
        "If it is a check, make it of what has changed, or only in a build for tests. If nobody needs the answer, leave the call out."
    }

    fn confirm(&self) -> &'static str {
        "Count the calls that give another answer."
    }

    fn outranked_by(&self) -> &'static [&'static str] {
        &["same-work-again", "same-data-each-call", "busy-wait"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let part = |calls: &FunctionRepeats| {
            let effects = &calls.effects;
            let is_one = effects.silent == calls.followed
                && calls.followed >= FEWEST_SILENT
                && effects.answers <= 1
                && calls.instructions >= LONG;
            is_one.then_some(1.0)
        };
        let found = |one: &Candidate<'_>| {
            let name = seen.name(one.function);
            let (title, answers, confidence) = match one.calls.effects.answers {
                0 => (
                    format!("`{name}` changes nothing, and nobody uses its answer"),
                    "and its caller used no result",
                    Confidence::Fair,
                ),
                _ => (
                    format!("`{name}` changes nothing, and gives the same answer each time"),
                    "and all gave the same answer",
                    Confidence::Weak,
                ),
            };
            one.found(seen, title).sure(confidence).because_of_calls(format!(
                "{} calls were replayed: each left all memory as it was, {answers}. A call has {} instructions.",
                NoteValue::number(one.calls.followed),
                NoteValue::number(one.calls.instructions),
            ))
        };
        apart(candidates(seen, part)).iter().map(found).collect()
    }
}

/// A function whose calls leave behind what was there before.
struct Candidate<'c> {
    function: FunctionId,
    /// All its calls.
    amount: Amount,
    under: Vec<bool>,
    /// The part of its work that does so.
    part: f64,
    /// In percent of the CPU time.
    gain: f64,
    calls: &'c FunctionRepeats,
}

fn candidates<'c>(seen: &'c Seen<'_, '_>, part: impl Fn(&FunctionRepeats) -> Option<f64>) -> Vec<Candidate<'c>> {
    let candidate = |(function, amount, calls): &'c (FunctionId, Amount, FunctionRepeats)| {
        let part = part(calls).filter(|_| calls.python.is_none())?;
        let gain = seen.share(*amount) * part;
        let under = seen.under(*function);
        (gain >= LEAST).then_some(Candidate { function: *function, amount: *amount, under, part, gain, calls })
    };
    seen.repeats.iter().filter_map(candidate).collect()
}

/// One candidate of those that share their stacks.
fn apart(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let stacks = |one: &Candidate<'_>| one.under.iter().filter(|under| **under).count();
    // A caller has more stacks below it.
    candidates.sort_by_key(stacks);
    let shares = |one: &Candidate<'_>, other: &Candidate<'_>| {
        let both = one.under.iter().zip(&other.under).filter(|(one, other)| **one && **other).count();
        both as f64 >= SHARED * stacks(other) as f64
    };
    innermost(candidates, NEARLY, |one| one.gain, shares)
}

impl Candidate<'_> {
    fn found(&self, seen: &Seen<'_, '_>, title: String) -> Found {
        let without = self.under.iter().map(|under| if *under { self.part as f32 } else { 0.0 }).collect();
        Found::of(seen, self.function, title, without).because(
            format!("All its calls cost {} of the CPU time.", percent(seen.share(self.amount))),
            explain(seen, self.function),
        )
    }
}

//! A function does the same work again although nothing has changed.
//!
//! Evidence: its calls were replayed, or, of a Python function, compared by value. Many of them read the same as an earlier call, take the same path and write the same. Look-alikes: a
//! program at rest, where nothing changes for now; work for others that they change afterwards.

use stepscope_model::NoteValue;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::calls::{FunctionRepeats, PythonRepeats};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;

/// Least gain in percent of the CPU time.
const LEAST: f64 = 3.0;

/// Fewest repeated calls.
const FEWEST: u64 = 3;

/// Least part of the function's work.
const LEAST_PART: f64 = 0.25;

/// A caller is named instead of what it calls if its gain is as large, or nearly.
const NEARLY: f64 = 0.9;

/// Of two functions that share this part of the smaller one's time, one is named.
const SHARED: f64 = 0.5;

/// What to do in Python.
const PYTHON_ADVICE: &str = "Keep the result until what it reads changes: a table by the arguments, such as `functools.lru_cache`, that is cleared when an \
     attribute or global changes; or the last result beside a version number.";

pub(super) struct RepeatedWork;

impl Kind for RepeatedWork {
    fn name(&self) -> &'static str {
        "same-work-again"
    }

    fn advice(&self) -> &'static str {
        "Keep the result, and do it again only when its inputs change: a version number or a dirty flag beside them, or a table by the arguments."
    }

    fn confirm(&self) -> &'static str {
        "Keep the last inputs beside the result, compare them at the next call, and count how often they differ."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let candidate = |(function, amount, calls): &(FunctionId, Amount, FunctionRepeats)| {
            let gain = seen.share(*amount) * calls.part;
            let is_one = calls.repeated >= FEWEST && calls.part >= LEAST_PART && gain >= LEAST;
            is_one.then(|| Candidate {
                under: seen.under(*function),
                function: *function,
                amount: *amount,
                gain,
                calls: calls.clone(),
            })
        };
        let mut candidates: Vec<Candidate> = seen.repeats.iter().filter_map(candidate).collect();
        candidates.sort_by(|one, other| other.gain.total_cmp(&one.gain));
        let mut chosen: Vec<&Candidate> = Vec::new();
        for one in &candidates {
            let is_shared = |other: &Candidate| {
                let both = seen.sum(|stack| one.under[stack.index()] && other.under[stack.index()]).weight as f64;
                both >= one.amount.weight.min(other.amount.weight) as f64 * SHARED
            };
            if chosen.iter().any(|other| is_shared(other)) {
                continue;
            }
            let callers = candidates.iter().filter(|other| other.gain >= one.gain * NEARLY && is_shared(other));
            chosen.extend(callers.max_by_key(|other| other.amount.weight));
        }
        chosen.into_iter().map(|one| one.found(seen)).collect()
    }
}

/// A function with repeated calls.
struct Candidate {
    function: FunctionId,
    /// All its calls.
    amount: Amount,
    under: Vec<bool>,
    /// In percent of the CPU time.
    gain: f64,
    calls: FunctionRepeats,
}

impl Candidate {
    fn found(&self, seen: &Seen<'_, '_>) -> Found {
        let Self { function, amount, under, calls, .. } = self;
        let without = under.iter().map(|under| if *under { calls.part as f32 } else { 0.0 }).collect();
        let title = format!(
            "`{}` does the same work again and again, though nothing that it reads has changed",
            seen.name(*function)
        );
        let found = Found::of(seen, *function, title, without).sure(Confidence::Strong);
        let found = match &calls.python {
            Some(python) => of_python(found, calls, python),
            None => found.because_of_calls(of_native(calls)),
        };
        found.because(
            format!("All its calls cost {} of the CPU time.", percent(seen.share(*amount))),
            explain(seen, *function),
        )
    }
}

/// The evidence of native calls.
fn of_native(calls: &FunctionRepeats) -> String {
    format!(
        "Of {} calls that were replayed, {} read the same as an earlier one, but for two words at most ({}), and write the same ({}). \
         They are {} of its work: a call has {} instructions.",
        NoteValue::number(calls.followed),
        NoteValue::number(calls.repeated),
        NoteValue::of(calls.input_bytes, "bytes"),
        NoteValue::of(calls.output_bytes, "bytes"),
        percent(calls.part * 100.0),
        NoteValue::number(calls.instructions),
    )
}

/// The evidence of calls of a Python function.
fn of_python(found: Found, calls: &FunctionRepeats, python: &PythonRepeats) -> Found {
    /// A longer list does not help to choose what a kept result depends on.
    const MOST_READS: usize = 8;
    let found = found.advising(PYTHON_ADVICE).because_of_calls(format!(
        "Of {} calls that were compared, {} had the same arguments, attributes and globals as an earlier one, and the same result. \
         They are {} of its time: a call takes {}.",
        NoteValue::number(calls.followed),
        NoteValue::number(calls.repeated),
        percent(calls.part * 100.0),
        NoteValue::ns(python.call_ns as f64),
    ));
    if python.reads.is_empty() || python.reads.len() > MOST_READS {
        return found;
    }
    let names: Vec<String> = python.reads.iter().map(|name| format!("`{name}`")).collect();
    let text = format!("What it reads, and a kept result depends on: {}.", names.join(", "));
    found.because_of_calls(text)
}

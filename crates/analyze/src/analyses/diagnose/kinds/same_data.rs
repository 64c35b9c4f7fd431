//! A function goes through the same data in each call, for results that hardly any of it matters to: a search of everything.
//!
//! Evidence: replayed calls read the same large memory as an earlier call, with the same values, for other arguments, and write little. Words of
//! it were changed, one at a time, and the call run again: nearly all of them change nothing. So what is read is compared and dropped. This tells it
//! from sums and matrices, all of which is in the result. Sorting and path searches write much; look-ups in hash tables and trees read little, or other
//! parts each time. Look-alikes: a sensor that sees everything once a step, where steps are not known.

use stepscope_model::NoteValue;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::calls::{FunctionRepeats, FunctionScans};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;

/// Least gain in percent of the CPU time.
const LEAST: f64 = 3.0;

/// Least bytes that a call reads. Less is searched as fast as an index would find it.
const LEAST_BYTES: u64 = 1024;

/// Least part of them that an earlier call has read, too.
const SHARED: f64 = 0.85;

/// Most that it writes, as a part of what it reads.
const WRITTEN: f64 = 0.25;

/// Fewest words that were changed, and the largest part of them that may matter.
const FEWEST_CHANGED: u64 = 16;
const MATTERS: f64 = 0.25;

/// Fewest calls per step; where they were not counted, the fewest different arguments.
const FEWEST_PER_STEP: f64 = 4.0;
const FEWEST_ARGUMENTS: u64 = 8;

/// Without counts: instructions of a call for each percent of the time, at most, for it to be more than one in a step: some thousand calls a second.
const OFTEN: f64 = 6_000.0;

/// A function that is called is named instead of its caller if its gain is nearly as large.
const NEARLY: f64 = 0.75;

/// Part of the smaller one's cost that two candidates about the same share.
const COMMON: f64 = 0.5;

pub(super) struct SameData;

impl Kind for SameData {
    fn name(&self) -> &'static str {
        "same-data-each-call"
    }

    fn advice(&self) -> &'static str {
        "Look up what matters instead of going through everything: a hash map by the key; a grid or a tree for positions; a sorted array for ranges. \
         Build it once for all calls."
    }

    fn confirm(&self) -> &'static str {
        "Record several sizes with `stepscope sweep`: a cost that grows with the square of the size confirms it."
    }

    fn outranked_by(&self) -> &'static [&'static str] {
        &["list-search", "text-compared-each-step", "full-scan-each-step", "superlinear-lookup", "same-work-again"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let mut candidates: Vec<Candidate> = candidates(seen);
        if candidates.is_empty() {
            return Vec::new();
        }
        // Callers have all of it, too, and more.
        candidates.sort_by_key(|one| one.amount.weight);
        let mut chosen: Vec<&Candidate> = Vec::new();
        for one in &candidates {
            let shares = |other: &&Candidate| {
                let both = seen.sum(|stack| one.under[stack.index()] && other.under[stack.index()]).weight as f64;
                both >= one.amount.weight.min(other.amount.weight) as f64 * COMMON
            };
            match chosen.iter().position(shares) {
                Some(inner) if chosen[inner].gain >= one.gain * NEARLY => {}
                Some(inner) => chosen[inner] = one,
                None => chosen.push(one),
            }
        }
        chosen.into_iter().map(|one| one.found(seen)).collect()
    }
}

/// A function that goes through the same data in each call.
struct Candidate {
    function: FunctionId,
    /// All its calls.
    amount: Amount,
    under: Vec<bool>,
    /// The part of what it reads that does not matter to its result.
    unused: f64,
    /// In percent of the CPU time.
    gain: f64,
    /// Whether the calls in each step were counted.
    is_counted: bool,
    /// Of a call.
    instructions: u64,
    followed: u64,
    scans: FunctionScans,
}

fn candidates(seen: &Seen<'_, '_>) -> Vec<Candidate> {
    let candidate = |(function, amount, calls): &(FunctionId, Amount, FunctionRepeats)| {
        let scans = &calls.scans;
        let rate = seen.calls.iter().find(|rate| rate.function == *function);
        let is_often = match rate {
            Some(rate) => rate.per_step >= FEWEST_PER_STEP,
            None => scans.arguments >= FEWEST_ARGUMENTS,
        };
        let unused = 1.0 - scans.mattered as f64 / scans.changed.max(1) as f64;
        let gain = seen.share(*amount) * unused;
        let is_one = is_often
            && scans.read_bytes >= LEAST_BYTES
            && scans.written_bytes as f64 <= WRITTEN * scans.read_bytes as f64
            && scans.shared >= SHARED
            && scans.changed >= FEWEST_CHANGED
            && unused >= 1.0 - MATTERS
            && gain >= LEAST;
        is_one.then(|| Candidate {
            function: *function,
            amount: *amount,
            under: seen.under(*function),
            unused,
            gain,
            is_counted: rate.is_some(),
            instructions: calls.instructions,
            followed: calls.followed,
            scans: scans.clone(),
        })
    };
    seen.repeats.iter().filter_map(candidate).collect()
}

impl Candidate {
    fn found(&self, seen: &Seen<'_, '_>) -> Found {
        let Self { function, amount, under, unused, followed, scans, .. } = self;
        let without = under.iter().map(|under| if *under { *unused as f32 } else { 0.0 }).collect();
        let title = format!(
            "`{}` goes through the same {} in each call, and hardly any of it matters to the result",
            seen.name(*function),
            NoteValue::of(scans.read_bytes, "bytes")
        );
        let is_often = self.is_counted || self.instructions as f64 <= OFTEN * seen.share(*amount);
        let confidence = if is_often { Confidence::Fair } else { Confidence::Weak };
        let found = Found::of(seen, *function, title, without).sure(confidence).because_of_calls(format!(
            "Of {} calls that were replayed, each read {} of it as an earlier call did, and wrote {}. Of {} words of it that were changed, one at a \
             time, {} changed what a call writes or returns.",
            NoteValue::number(*followed),
            percent(scans.shared * 100.0),
            NoteValue::of(scans.written_bytes, "bytes"),
            NoteValue::number(scans.changed),
            NoteValue::number(scans.mattered),
        ));
        found.because(
            format!(
                "All its calls cost {} of the CPU time. What an index costs is not taken off.",
                percent(seen.share(*amount))
            ),
            explain(seen, *function),
        )
    }
}

//! Which functions look like steps: called at a steady rate from one loop.
//!
//! A step function runs once per iteration of the simulation loop. So its calls come from one thread, at intervals that vary
//! little, over the whole recording. Helpers are called in bursts and have a large coefficient of variation; start-up
//! code covers only a part of the recording. Functions that are called once per iteration all have the same rate: the one
//! that is called first in an iteration is the outermost, and is suggested first.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

/// Fewer calls show no rate.
const LEAST_CALLS: usize = 10;

/// Calls at random times have a coefficient of variation of 1.
const MOST_VARIATION: f64 = 1.0;

/// The least share of the recording between the first and the last call.
const LEAST_COVERAGE: f64 = 0.5;

/// The least share of the calls on one thread.
const LEAST_ON_ONE_THREAD: f64 = 0.95;

/// One call of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// When it was called.
    pub time_ns: u64,
    /// Id of the thread that called it.
    pub tid: u32,
}

/// The calls of one function in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    /// The function's name.
    pub function: String,
    /// Its calls, in any order.
    pub calls: Vec<Call>,
}

/// A function that looks like a step, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCandidate {
    /// The function's name.
    pub function: String,
    /// The thread that calls it.
    pub tid: u32,
    /// Number of calls on that thread.
    pub calls: usize,
    /// Calls per second.
    pub rate: f64,
    /// Coefficient of variation of the intervals between calls: 0 is perfectly regular.
    pub variation: f64,
    /// Share of the recording between the first and the last call, 0 to 1.
    pub coverage: f64,
    first_ns: u64,
}

impl StepCandidate {
    /// How much it looks like a step, 0 to 1: regular calls over all of the recording.
    pub fn score(&self) -> f64 {
        self.coverage / (1.0 + self.variation)
    }

    fn of(function: &Calls, window: &Range<u64>) -> Option<Self> {
        let mut by_thread: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for call in &function.calls {
            by_thread.entry(call.tid).or_default().push(call.time_ns);
        }
        let (tid, mut times) = by_thread.into_iter().max_by_key(|(_, times)| times.len())?;
        if times.len() < LEAST_CALLS || (times.len() as f64) < LEAST_ON_ONE_THREAD * function.calls.len() as f64 {
            return None;
        }
        times.sort_unstable();
        let (first_ns, span) = (times[0], times[times.len() - 1] - times[0]);
        let mean = span as f64 / (times.len() - 1) as f64;
        if mean <= 0.0 {
            return None;
        }
        let squares: f64 = times.windows(2).map(|pair| ((pair[1] - pair[0]) as f64 - mean).powi(2)).sum();
        let length = window.end.saturating_sub(window.start).max(1);
        let candidate = Self {
            function: function.function.clone(),
            tid,
            calls: times.len(),
            rate: 1e9 / mean,
            variation: (squares / (times.len() - 1) as f64).sqrt() / mean,
            coverage: (span as f64 / length as f64).min(1.0),
            first_ns,
        };
        (candidate.variation < MOST_VARIATION && candidate.coverage >= LEAST_COVERAGE).then_some(candidate)
    }

    /// Best first. Scores that differ by less than a twentieth are equal; then the lower rate, then the earlier first call.
    fn compare(&self, other: &Self) -> Ordering {
        let score = |one: &Self| (one.score() * 20.0).round() as i64;
        // Rates within 5 % are those of one loop.
        let rate = |one: &Self| (one.rate.ln() * 20.0).round() as i64;
        score(other)
            .cmp(&score(self))
            .then(rate(self).cmp(&rate(other)))
            .then(self.first_ns.cmp(&other.first_ns))
            .then_with(|| self.function.cmp(&other.function))
    }
}

/// The functions that look like steps of a recording with this window, best first.
pub fn rank(functions: &[Calls], window: &Range<u64>) -> Vec<StepCandidate> {
    let mut candidates: Vec<StepCandidate> =
        functions.iter().filter_map(|function| StepCandidate::of(function, window)).collect();
    candidates.sort_by(StepCandidate::compare);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Range<u64> = 0..10_000_000;

    fn calls(function: &str, tid: u32, times: impl IntoIterator<Item = u64>) -> Calls {
        let calls = times.into_iter().map(|time_ns| Call { time_ns, tid }).collect();
        Calls { function: function.to_owned(), calls }
    }

    fn names(functions: &[Calls]) -> Vec<String> {
        rank(functions, &WINDOW).into_iter().map(|candidate| candidate.function).collect()
    }

    #[test]
    fn regular_calls_over_the_whole_recording_look_like_steps() {
        let step = calls("World::Step", 1, (0..100).map(|step| step * 100_000 + step % 3 * 2_000));
        let candidates = rank(&[step], &WINDOW);
        assert_eq!((candidates[0].tid, candidates[0].calls), (1, 100));
        assert!((candidates[0].rate - 10_000.0).abs() < 10.0, "{candidates:?}");
        assert!(candidates[0].variation < 0.05 && candidates[0].coverage > 0.98, "{candidates:?}");
    }

    #[test]
    fn bursts_start_up_code_and_functions_of_many_threads_do_not() {
        let burst = calls("Collide", 1, (0..100).flat_map(|step| (0..50).map(move |call| step * 100_000 + call * 10)));
        let start_up = calls("Load", 1, (0..100).map(|call| call * 1_000));
        let mut pool = calls("Solve", 2, (0..50).map(|call| call * 200_000));
        pool.calls.extend((0..50).map(|call| Call { time_ns: call * 200_000 + 100_000, tid: 3 }));
        let rare = calls("Save", 1, (0..5).map(|call| call * 2_000_000));
        assert!(names(&[burst, start_up, pool, rare]).is_empty());
    }

    #[test]
    fn of_functions_called_once_per_step_the_outermost_comes_first() {
        let at = |offset: u64| (0..100).map(move |step| step * 100_000 + offset);
        let functions = [calls("Integrate", 1, at(500)), calls("World::Step", 1, at(0)), calls("Sense", 1, at(900))];
        assert_eq!(names(&functions), ["World::Step", "Integrate", "Sense"]);
    }

    #[test]
    fn a_slower_loop_comes_before_a_faster_one_that_is_as_regular() {
        let outer = calls("Frame", 1, (0..100).map(|step| step * 100_000));
        let inner = calls("SubStep", 1, (0..400).map(|step| step * 25_000));
        assert_eq!(names(&[inner, outer]), ["Frame", "SubStep"]);
    }

    #[test]
    fn calls_at_one_moment_have_no_rate() {
        assert!(names(&[calls("Step", 1, [7; 20]), calls("None", 1, [])]).is_empty());
    }
}

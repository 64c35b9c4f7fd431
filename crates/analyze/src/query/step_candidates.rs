//! Which functions look like steps: called at a steady rate from one loop.
//!
//! A step function runs once per iteration of the simulation loop, and most of the loop's time is spent in it. So its calls
//! come from one thread, at intervals that vary little, over the whole recording, and it is on many stacks. Helpers are
//! called in bursts; start-up code covers only a part of the recording.
//!
//! *Regularity* is the share of the time between the first and the last call that lies in intervals of half to twice the median:
//! 1 for a clock, 0.36 for calls at random times, near 0 for bursts. It is that of wall time or that of the thread's CPU time,
//! whichever is larger. A paced loop is regular by the clock, and a loop that is often preempted by its CPU time. A coefficient
//! of variation would not do: a few preempted steps double it.
//!
//! Functions that are called once per iteration all have the same rate. The outermost of them, which the largest share of
//! the time is spent in, is suggested first.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

/// Fewer calls show no rate.
pub const LEAST_CALLS: usize = 10;

/// Bursts are below it, calls at random times have 0.36.
const LEAST_REGULARITY: f64 = 0.2;

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
    /// CPU time that the thread had used by then, since any moment.
    pub cpu_ns: u64,
}

/// The calls of one function in a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// The function's name.
    pub function: String,
    /// How much of the recorded time is spent in it with its callees, 0 to 1.
    pub share: f64,
    /// Its calls, in any order.
    pub calls: Vec<Call>,
}

/// A function that looks like a step, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCandidate {
    /// The function's name.
    pub function: String,
    /// How much of the recorded time is spent in it with its callees, 0 to 1.
    pub share: f64,
    /// The thread that calls it.
    pub tid: u32,
    /// Number of calls on that thread.
    pub calls: usize,
    /// Calls per second.
    pub rate: f64,
    /// Share of the time in intervals of half to twice the median, 0 to 1.
    pub regularity: f64,
    /// Share of the recording between the first and the last call, 0 to 1.
    pub coverage: f64,
}

/// Why a function does not look like a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlikely {
    /// It was not called: it contains the loop, or runs seldom.
    NotCalled,
    /// It was called so few times that its rate is unknown.
    FewCalls(usize),
    /// Several threads call it.
    SeveralThreads,
    /// It is called in bursts.
    Bursts,
    /// It was called only in a part of the time.
    PartOfTime,
}

impl StepCandidate {
    /// How much it looks like a step, 0 to 1: regular calls over all of the recording, and much time in it.
    pub fn score(&self) -> f64 {
        self.coverage * self.regularity * self.share.sqrt()
    }

    /// Whether both are called by one loop, once per iteration: rates within 5 %.
    pub fn has_rate_of(&self, other: &Self) -> bool {
        (self.rate / other.rate).ln().abs() < 0.05
    }

    /// Whether one thread's loop calls both, once per iteration.
    pub fn is_called_with(&self, other: &Self) -> bool {
        self.tid == other.tid && self.has_rate_of(other)
    }

    /// The function as a candidate in a recording with this window.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of(function: &Calls, window: &Range<u64>) -> Result<Self, Unlikely> {
        let mut by_thread: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for call in &function.calls {
            by_thread.entry(call.tid).or_default().push(*call);
        }
        let busiest = by_thread.into_iter().max_by_key(|(_, calls)| calls.len());
        let (tid, mut calls) = busiest.ok_or(Unlikely::NotCalled)?;
        if calls.len() < LEAST_CALLS {
            return Err(Unlikely::FewCalls(function.calls.len()));
        }
        if (calls.len() as f64) < LEAST_ON_ONE_THREAD * function.calls.len() as f64 {
            return Err(Unlikely::SeveralThreads);
        }
        calls.sort_unstable();
        let times = |time: fn(&Call) -> u64| calls.iter().map(time).collect::<Vec<u64>>();
        let (span, intervals) = (calls[calls.len() - 1].time_ns - calls[0].time_ns, calls.len() - 1);
        let regularity = regularity(&times(|call| call.time_ns)).max(regularity(&times(|call| call.cpu_ns)));
        if span == 0 || regularity < LEAST_REGULARITY {
            return Err(Unlikely::Bursts);
        }
        let length = window.end.saturating_sub(window.start).max(1);
        let coverage = (span as f64 / length as f64).min(1.0);
        if coverage < LEAST_COVERAGE {
            return Err(Unlikely::PartOfTime);
        }
        let rate = 1e9 * intervals as f64 / span as f64;
        let (name, share) = (function.function.clone(), function.share);
        Ok(Self { function: name, share, tid, calls: calls.len(), rate, regularity, coverage })
    }

    /// Best first. Scores that differ by less than a twentieth are equal; then the lower rate, then the larger share.
    pub fn compare(&self, other: &Self) -> Ordering {
        let score = |one: &Self| (one.score() * 20.0).round() as i64;
        // Rates within 5 % are those of one loop.
        let rate = |one: &Self| (one.rate.ln() * 20.0).round() as i64;
        score(other)
            .cmp(&score(self))
            .then(rate(self).cmp(&rate(other)))
            .then(other.share.total_cmp(&self.share))
            .then_with(|| self.function.cmp(&other.function))
    }
}

/// The share of the time of calls (ascending) that lies in intervals of half to twice the median.
fn regularity(times: &[u64]) -> f64 {
    let mut intervals: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    intervals.sort_unstable();
    let total: u64 = intervals.iter().sum();
    let Some(&median) = intervals.get(intervals.len() / 2).filter(|_| total > 0) else { return 0.0 };
    let alike = |interval: &&u64| median <= 2 * **interval && **interval <= 2 * median;
    intervals.iter().filter(alike).sum::<u64>() as f64 / total as f64
}

/// The functions that look like steps of a recording with this window, best first.
pub fn rank(functions: &[Calls], window: &Range<u64>) -> Vec<StepCandidate> {
    let mut candidates: Vec<StepCandidate> =
        functions.iter().filter_map(|function| StepCandidate::of(function, window).ok()).collect();
    candidates.sort_by(StepCandidate::compare);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Range<u64> = 0..10_000_000;

    fn calls(function: &str, tid: u32, times: impl IntoIterator<Item = u64>) -> Calls {
        let calls = times.into_iter().map(|time_ns| Call { time_ns, tid, cpu_ns: time_ns }).collect();
        Calls { function: function.to_owned(), share: 0.5, calls }
    }

    fn unlikely(function: &Calls) -> Unlikely {
        StepCandidate::of(function, &WINDOW).unwrap_err()
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
        assert!(candidates[0].regularity == 1.0 && candidates[0].coverage > 0.98, "{candidates:?}");
    }

    #[test]
    fn bursts_start_up_code_and_functions_of_many_threads_do_not() {
        let burst = calls("Collide", 1, (0..100).flat_map(|step| (0..50).map(move |call| step * 100_000 + call * 10)));
        let start_up = calls("Load", 1, (0..100).map(|call| call * 1_000));
        let mut pool = calls("Solve", 2, (0..50).map(|call| call * 200_000));
        pool.calls.extend((0..50).map(|call| Call { time_ns: call * 200_000 + 100_000, tid: 3, cpu_ns: call }));
        let rare = calls("Save", 1, (0..5).map(|call| call * 2_000_000));
        assert_eq!(unlikely(&burst), Unlikely::Bursts);
        assert_eq!(unlikely(&start_up), Unlikely::PartOfTime);
        assert_eq!(unlikely(&pool), Unlikely::SeveralThreads);
        assert_eq!(unlikely(&rare), Unlikely::FewCalls(5));
        assert_eq!(unlikely(&calls("Run", 1, [])), Unlikely::NotCalled);
        assert!(names(&[burst, start_up, pool, rare]).is_empty());
    }

    #[test]
    fn a_few_preempted_steps_do_not_hide_the_rate() {
        let mut late = 0;
        let times: Vec<u64> = (0..90)
            .map(|step| {
                late += if step % 30 == 29 { 400_000 } else { 0 };
                step * 90_000 + late
            })
            .collect();
        let candidates = rank(&[calls("World::Step", 1, times)], &WINDOW);
        assert!(candidates[0].regularity > 0.8, "{candidates:?}");
    }

    #[test]
    fn a_loop_that_is_mostly_preempted_is_regular_by_its_cpu_time() {
        // Three steps, then nothing for ten times as long.
        let step =
            |number: u64| Call { time_ns: number / 3 * 330_000 + number % 3 * 10_000, tid: 1, cpu_ns: number * 10_000 };
        let calls = Calls { function: "Step".to_owned(), share: 0.9, calls: (0..90).map(step).collect() };
        assert_eq!(StepCandidate::of(&calls, &WINDOW).unwrap().regularity, 1.0);
    }

    #[test]
    fn the_outermost_of_functions_called_once_per_step_comes_first() {
        let at = |function: &str, offset: u64, share: f64| Calls {
            share,
            ..calls(function, 1, (0..100).map(move |step| step * 100_000 + offset))
        };
        // The count may begin in the middle of a step.
        let functions = [at("Integrate", 500, 0.4), at("World::Step", 900, 0.9), at("Sense", 0, 0.3)];
        assert_eq!(names(&functions), ["World::Step", "Integrate", "Sense"]);
    }

    #[test]
    fn a_regular_function_that_takes_little_time_comes_after_the_step() {
        let step = Calls { share: 0.9, ..calls("World::Step", 1, (0..100).map(|step| step * 100_000)) };
        let log = Calls { share: 0.01, ..calls("Log", 2, (0..20).map(|call| call * 500_000)) };
        assert_eq!(names(&[log, step]), ["World::Step", "Log"]);
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

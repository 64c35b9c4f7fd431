//! [`ThinnedStacks`]: stacks for waits whose own stack was left out, from similar waits of the same thread.
//!
//! Threads that switch often have the stacks of some of their waits only. Which ones is random, so the waits with a stack are a
//! sample of all waits, and all times are known. Each wait without a stack therefore counts at the stack of a *donor*:
//! a wait of the same thread, with the same state and about the same length (within a factor of two), and woken by the
//! same thread, if there is one. Lengths tell places apart: a lock is held for microseconds, a sleep lasts milliseconds.
//!
//! Donors are taken from the time just before, in turn, so that a busy time with few stacks counts as much as a quiet one
//! with many. Nothing is added or lost: a thread's blocked time is exact, only its places are estimated. A wait that no
//! donor is similar to keeps no stack.
//!
//! # Standard error
//! Within a stratum (waits that are similar in the sense above) a place has the share p of the donors' weights w, where the
//! weight of a donor is the time that it stands for. Stacks of one slice of time are not independent of each other, so weights
//! are added up by slice k first. The variance of the time estimated for a place is then, with W for those sums,
//!
//! > Σ over strata: n / (n − 1) · Σ over k: (W_k at the place − p W_k)²
//!
//! for n slices, which is the usual estimate for a ratio from clusters (Cochran, Sampling Techniques, section 9A.2).

use std::hash::Hash;
use std::num::NonZeroU32;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, StackId, ThreadId, Wait, WaitState};

use crate::query::waits::blocked_ns;

/// Stacks of the same 50 ms may have been recorded together.
const SLICE_NS: u64 = 50_000_000;

/// Waits that are up to four times as long or as short may be donors if none of the same length is.
const FARTHEST_LENGTH: u32 = 2;

/// The donor of each wait whose stack was left out.
#[derive(Debug)]
pub(crate) struct ThinnedStacks {
    /// By row of `waits`: one more than the row of its donor.
    donors: Vec<Option<NonZeroU32>>,
}

/// Waits that are similar to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stratum {
    thread: ThreadId,
    state: WaitState,
    /// Binary logarithm of its length.
    length: u32,
    /// `None` for all wakers.
    waker: Option<Option<ThreadId>>,
}

impl Stratum {
    fn of(wait: &Wait) -> Self {
        let length = wait.end_ns.saturating_sub(wait.start_ns).max(1).ilog2();
        Self { thread: wait.thread, state: wait.state, length, waker: Some(wait.waker) }
    }

    /// This one, then wider ones.
    fn widened(self) -> impl Iterator<Item = Self> {
        let near = (1..=FARTHEST_LENGTH).flat_map(move |far| [self.length.checked_sub(far), Some(self.length + far)]);
        let of_length = move |length| Self { length, waker: None, ..self };
        [self, of_length(self.length)].into_iter().chain(near.flatten().map(of_length))
    }
}

/// The donors of one slice of time.
#[derive(Debug, Default)]
struct Donors {
    slice: u64,
    rows: Vec<u32>,
    next: usize,
}

impl Donors {
    fn add(&mut self, slice: u64, row: u32) {
        if self.slice != slice {
            (self.slice, self.next) = (slice, 0);
            self.rows.clear();
        }
        self.rows.push(row);
    }

    fn take(&mut self) -> Option<u32> {
        let row = self.rows.get(self.next % self.rows.len().max(1)).copied();
        self.next += 1;
        row
    }
}

impl ThinnedStacks {
    /// The donors in a capture; `None` if no stacks were left out.
    pub fn of(capture: &Capture) -> Option<Self> {
        capture.info.losses.offcpu_stack_period.filter(|&period| period > 1)?;
        let mut thinned = Self { donors: vec![None; capture.waits.len()] };
        let rows = || capture.waits.iter().enumerate();
        // A thread that slept when the recording began was not switched out while stacks were recorded.
        let began = capture.info.start_ns.unwrap_or(0);
        thinned.fill(rows().filter(|(_, wait)| wait.start_ns > began));
        // The first waits of a thread come before its first donor: for them, time runs backwards.
        thinned.fill(rows().filter(|(_, wait)| wait.start_ns > began).rev());
        Some(thinned)
    }

    fn fill(&mut self, waits: impl Iterator<Item = (usize, Wait)>) {
        let mut strata: FxHashMap<Stratum, Donors> = FxHashMap::default();
        for (row, wait) in waits {
            let stratum = Stratum::of(&wait);
            if wait.stack.is_some() {
                for stratum in [stratum, Stratum { waker: None, ..stratum }] {
                    strata.entry(stratum).or_default().add(wait.start_ns / SLICE_NS, row as u32);
                }
            } else if self.donors[row].is_none() {
                let donor = stratum.widened().find_map(|stratum| strata.get_mut(&stratum)?.take());
                self.donors[row] = donor.and_then(|donor| NonZeroU32::new(donor + 1));
            }
        }
    }

    /// The row of the wait whose stack stands for that of this one.
    fn donor(&self, row: usize) -> Option<usize> {
        self.donors[row].map(|donor| donor.get() as usize - 1)
    }

    /// The wait with its donor's stack, if it has one.
    pub fn completed(&self, capture: &Capture, row: usize, wait: Wait) -> Wait {
        match self.donor(row) {
            Some(donor) => Wait { stack: capture.waits.at(donor).stack, ..wait },
            None => wait,
        }
    }

    /// Blocked time of these rows that counts at a donor's stack.
    pub(crate) fn estimated_ns(&self, rows: impl Iterator<Item = (usize, Wait)>) -> u128 {
        let estimated = rows.filter(|(row, _)| self.donor(*row).is_some());
        estimated.map(|(_, wait)| u128::from(blocked_ns(&wait))).sum()
    }

    /// The standard error of these rows' blocked time by group of stacks, in ns. Groups without one are known exactly.
    pub(crate) fn standard_errors<G: Eq + Hash + Copy>(
        &self,
        capture: &Capture,
        rows: impl Iterator<Item = (usize, Wait)>,
        mut group: impl FnMut(StackId) -> Option<G>,
    ) -> FxHashMap<G, f64> {
        /// A slice of time in a stratum.
        type Slice = (Stratum, u64);
        let waits = &capture.waits;
        let mut of_slice: FxHashMap<Slice, f64> = FxHashMap::default();
        let mut of_group: FxHashMap<(G, Slice), f64> = FxHashMap::default();
        for (row, wait) in rows {
            let Some(donor) = self.donor(row).map(|donor| waits.at(donor)) else { continue };
            let (Some(stack), blocked) = (donor.stack, blocked_ns(&wait) as f64) else { continue };
            if blocked == 0.0 {
                continue;
            }
            let slice = (Stratum::of(&donor), donor.start_ns / SLICE_NS);
            *of_slice.entry(slice).or_default() += blocked;
            if let Some(group) = group(stack) {
                *of_group.entry((group, slice)).or_default() += blocked;
            }
        }
        let mut strata: FxHashMap<Stratum, Weights> = FxHashMap::default();
        for (&(stratum, _), &weight) in &of_slice {
            let of = strata.entry(stratum).or_default();
            of.slices += 1.0;
            of.sum += weight;
            of.squares += weight * weight;
        }
        let mut groups: FxHashMap<(G, Stratum), Weights> = FxHashMap::default();
        for (&(group, slice), &weight) in &of_group {
            let of = groups.entry((group, slice.0)).or_default();
            of.sum += weight;
            of.squares += weight * weight;
            of.products += weight * of_slice[&slice];
        }
        let mut errors: FxHashMap<G, f64> = FxHashMap::default();
        for ((group, stratum), of) in groups {
            let all = strata[&stratum];
            let share = of.sum / all.sum;
            let variance = of.squares - 2.0 * share * of.products + share * share * all.squares;
            *errors.entry(group).or_default() += variance.max(0.0) * all.slices / (all.slices - 1.0).max(1.0);
        }
        errors.values_mut().for_each(|variance| *variance = variance.sqrt());
        errors
    }
}

/// Sums over the slices of a stratum.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    slices: f64,
    sum: f64,
    squares: f64,
    /// Of the weight of a group and that of all, by slice.
    products: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};
    use crate::query::select::Selection;
    use crate::query::weights::StackWeights;

    const MS: u64 = 1_000_000;

    /// 400 rounds of one thread, which waits 1 ms for `lock` and sleeps 8 ms at `pace`, or at `idle` in every 4th round.
    /// Every `period`-th wait has a stack.
    fn rounds(period: u64) -> Capture {
        let mut drawing = Drawing::new().window(0..4_000 * MS).lived("main", 0..4_000 * MS, None);
        for round in 0..400 {
            let start = 10 * MS * round + 1;
            // 5 does not divide the number of waits in a round, so all places are sampled alike.
            let kept = |index: u64, stack| if (2 * round + index).is_multiple_of(period) { stack } else { "" };
            let sleep = if round % 4 == 0 { "main;idle" } else { "main;pace" };
            drawing = drawing.blocked("main", start..start + MS, kept(0, "main;lock")).blocked(
                "main",
                start + MS..start + 9 * MS,
                kept(1, sleep),
            );
        }
        drawing.capture.info.losses.offcpu_stack_period = Some(period);
        drawing.capture
    }

    fn blocked_ms(capture: &Capture) -> Vec<(String, u128)> {
        drawn::selected(capture, &[], |selection| {
            let weights = StackWeights::of_blocked(selection);
            let sums = weights.self_by_function(capture, selection.functions());
            let named = |(id, of): (_, &crate::query::functions::Function)| {
                let sum: &crate::query::weights::Amount = &sums[crate::query::functions::FunctionId::index(id)];
                (of.name.to_string(), sum.weight / u128::from(MS))
            };
            let mut rows: Vec<_> = selection.functions().all().map(named).filter(|(_, ms)| *ms > 0).collect();
            rows.sort();
            rows.push(("(no stack)".to_owned(), weights.no_stack.weight / u128::from(MS)));
            rows
        })
    }

    #[test]
    fn waits_without_a_stack_count_at_the_stacks_of_similar_waits() {
        let rows = |period| blocked_ms(&rounds(period)).into_iter().map(|(name, ms)| format!("{name} {ms}"));
        let exact = ["idle 800", "lock 400", "pace 2400", "(no stack) 0"];
        assert_eq!(rows(1).collect::<Vec<_>>(), exact);
        // A fifth of the waits has a stack.
        assert_eq!(rows(5).collect::<Vec<_>>(), exact);
    }

    #[test]
    fn the_standard_error_of_a_place_is_that_of_its_share_among_similar_waits() {
        drawn::selected(&rounds(5), &[], |selection| {
            let functions = selection.functions();
            let name = |stack| functions.get(functions.of_node(selection.capture(), stack)).name.to_string();
            let errors = standard_errors_by_name(selection, name);
            assert_eq!(errors["lock"], 0.0, "no other place has waits of this length");
            // 80 donors stand for 32 ms each, 20 of them at `idle`: 32 ms * sqrt(80 * 0.25 * 0.75).
            assert!((errors["idle"] / 1e6 - 124.0).abs() < 3.0, "{errors:?}");
            assert!((errors["idle"] - errors["pace"]).abs() < 1e3, "the two share one sum: {errors:?}");
        });
    }

    fn standard_errors_by_name(
        selection: &Selection<'_>,
        name: impl Fn(StackId) -> String,
    ) -> std::collections::BTreeMap<String, f64> {
        let mut names: Vec<String> = Vec::new();
        let thinned = selection.thinned_stacks().unwrap();
        let errors = thinned.standard_errors(selection.capture(), selection.thread_wait_rows(), |stack| {
            let name = name(stack);
            names.iter().position(|known| *known == name).or_else(|| {
                names.push(name);
                Some(names.len() - 1)
            })
        });
        errors.into_iter().map(|(index, error)| (names[index].clone(), error)).collect()
    }

    #[test]
    fn a_wait_that_no_donor_is_similar_to_keeps_no_stack() {
        let mut capture = Drawing::new()
            .window(0..1_000 * MS)
            .blocked("main", MS..2 * MS, "main;lock")
            .blocked("main", 100 * MS..900 * MS, "")
            .blocked("other", MS..2 * MS, "")
            .capture;
        capture.info.losses.offcpu_stack_period = Some(2);
        let rows: Vec<_> = blocked_ms(&capture).into_iter().map(|(name, ms)| format!("{name} {ms}")).collect();
        assert_eq!(rows, ["lock 1", "(no stack) 801"]);
    }

    #[test]
    fn without_thinning_nothing_is_estimated() {
        let mut capture = rounds(5);
        capture.info.losses.offcpu_stack_period = None;
        assert!(ThinnedStacks::of(&capture).is_none());
    }
}

//! Every step visits all elements, and little comes of it.
//!
//! Evidence: over a sweep, the cost of a function grows with the size, while the work that it leads to does not: either what it
//! calls, or all other work of the step. Each element costs little. Look-alikes: a sensor that has to see everything, which
//! costs more per element, and a container that is built for all, which has a kind of its own.
//!
//! Without a sweep: a [loop](super::super::code) of machine code loads something of each element, compares it and passes over nearly all, which
//! takes much more than what it does with the others. Or it calls a function of each, nearly all of which only load and compare. Look-alikes: neighbours that are tested with arithmetic, and walks of a graph,
//! whose elements are loaded by index.
//!
//! A [query](super::table_scans) that reads a whole table is a scan, too.
//!
//! The size has to be the number of elements: if `n` stands for ten each, a visit seems to cost ten times as much.

use stepscope_model::LoopShape;
use stepscope_stats::growth::Growth;

use crate::analyses::diagnose::code::HotLoop;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, ns, percent, power};
use crate::analyses::diagnose::laws::{FunctionLaw, Laws};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::weights::Amount;
use crate::query::work::Work;

/// Least share of CPU time at the largest size, and most: something else has to be the use of the step.
const SHARES: std::ops::RangeInclusive<f64> = 3.0..=98.0;

/// The exponent of a scan: caches make the last elements cost more than the first.
const EXPONENTS: std::ops::Range<f64> = 0.6..1.5;

/// The interval of the exponent of the work that comes of it ends below this.
const MOST_OF_USE: f64 = 0.7;

/// Most cost of a visit, in ns.
const MOST_PER_ELEMENT: f64 = 1_000.0;

/// Least share of CPU time of a loop that passes over elements, because asking all for a flag may be the mended form; and least part of the loop.
const LEAST_OF_LOOP: f64 = 20.0;
const PASSES: f64 = 0.8;

pub(super) struct FullScan;

/// What does not grow while the scan does.
struct Use {
    growth: Growth,
    /// Whether it is what the function calls, else all other work.
    of_callees: bool,
}

impl Kind for FullScan {
    fn name(&self) -> &'static str {
        "full-scan-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Keep a list of the elements that need work, and update it when they change; ask an index first."
    }

    fn confirm(&self) -> &'static str {
        "Change how many elements are active, with the same number of all: the cost stays the same."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (Some(laws), false, Some(_), true) = (&seen.laws, seen.is_loading(), &seen.loops, seen.is_timed()) else {
            let mut found = passing_loops(seen);
            found.extend(super::table_scans::found(seen));
            return found;
        };
        let mut found: Vec<(Found, Vec<bool>, Amount)> = Vec::new();
        // Callers first: the deepest function with most of their cost takes their place.
        for (function, _) in seen.inclusive() {
            let Some(law) = laws.of_function(seen.name(function)) else { continue };
            let Some(of_it) = use_of(laws, law) else { continue };
            let scan = if of_it.of_callees { law.own.as_ref().unwrap_or(&law.inclusive) } else { &law.inclusive };
            let stacks = stacks_of(seen, function, of_it.of_callees);
            let amount = seen.sum(|stack| stacks[stack.index()]);
            let builds = seen.sum(|stack| {
                stacks[stack.index()]
                    && matches!(seen.work[stack.index()], Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory)
            });
            let per_element = laws.per_unit(scan).filter(|ns| *ns > 0.0 && *ns <= MOST_PER_ELEMENT);
            let Some(per_element) = per_element.filter(|_| SHARES.contains(&seen.share(amount))) else { continue };
            if builds.weight * 2 > amount.weight || !seen.is_steady(|stack| stacks[stack.index()]) {
                continue;
            }
            found.retain(|(_, outer, all)| {
                let both = seen.sum(|stack| outer[stack.index()] && stacks[stack.index()]);
                both.weight * 10 < all.weight * 8
            });
            let (axis, (_, largest)) = (&laws.axis, laws.extent());
            let what = if of_it.of_callees { "what it calls" } else { "all other work" };
            let title = format!(
                "`{}` visits all {largest} of `{axis}` in every step; {what} does not grow with them",
                seen.name(function)
            );
            let mut one = Found::of(seen, function, title, parts(stacks.iter().copied()))
                .because(
                    format!(
                        "It grows as {}, {what} as {}: {} for each of `{axis}`.",
                        power(axis, scan.exponent),
                        power(axis, of_it.growth.exponent),
                        ns(per_element)
                    ),
                    "growth",
                )
                .because(
                    format!("It is {} of the CPU time, in all parts of the recording.", percent(seen.share(amount))),
                    explain(seen, function),
                )
                .sure(Confidence::Fair);
            if let Some((now, twice)) = scan.predict(largest).zip(scan.predict(2.0 * largest)) {
                one = one.at_twice(now, twice);
            }
            found.push((one, stacks, amount));
        }
        found.into_iter().map(|(found, ..)| found).collect()
    }
}

/// Loops that pass over nearly all elements.
fn passing_loops(seen: &Seen<'_, '_>) -> Vec<Found> {
    if seen.is_loading() {
        return Vec::new();
    }
    let loops: Vec<HotLoop> = seen.hot_loops.iter().filter(|one| !asks_pairs(one)).cloned().collect();
    let scans = HotLoop::of_shape(&loops, LoopShape::Scan).into_iter();
    // Without a decision of its own, the function that it calls has to do nothing.
    let visits = HotLoop::of_shape(&loops, LoopShape::Visit).into_iter().filter(|visit| {
        let (asked, all) = (visit.asked.weight as f64, (visit.asked.weight + visit.uses.weight) as f64);
        asked > 0.0 && asked >= PASSES * all
    });
    let passes = scans.chain(visits).filter(|scan| {
        let (inside, uses) = (scan.amount.weight as f64, scan.uses.weight as f64);
        let at = |stack: stepscope_model::StackId| scan.inside[stack.index()];
        seen.share(scan.amount) >= LEAST_OF_LOOP && inside >= PASSES * (inside + uses) && seen.recurs(at)
    });
    let found = passes.map(|scan| {
        let title = format!(
            "`{}` visits all elements {}, and {} passes over nearly all of them",
            seen.name(scan.function),
            seen.repeatedly(),
            scan.place()
        );
        let text = format!(
            "Loading and comparing one thing of each element takes {} of the CPU time{}; what is done with those that fit, {}.",
            percent(seen.share(scan.amount)),
            seen.of_steps(),
            percent(seen.share(scan.uses))
        );
        let without = parts(scan.inside.iter().copied());
        Found::of(seen, scan.function, title, without).sure(Confidence::Fair).because(text, explain(seen, scan.function))
    });
    found.collect()
}

/// Whether a loop within another one asks each element by a call: `called-very-often` has the function that it calls.
pub(super) fn asks_pairs(scan: &HotLoop) -> bool {
    scan.is_nested && scan.asked.weight > 0
}

/// The work that a function's visits lead to, if it does not grow as they do.
fn use_of(laws: &Laws, law: &FunctionLaw) -> Option<Use> {
    let is_scan = |growth: &Growth| growth.exponent.low > EXPONENTS.start && growth.exponent.value < EXPONENTS.end;
    let grows_less =
        |one: &Growth, scan: &Growth| one.exponent.high < MOST_OF_USE && one.exponent.high < scan.exponent.low;
    let callees = || {
        let own = law.own.as_ref().filter(|own| is_scan(own))?;
        let growth = laws.callees(law).filter(|one| grows_less(one, own))?;
        Some(Use { growth, of_callees: true })
    };
    let others = || {
        let growth = laws.without(law).filter(|one| is_scan(&law.inclusive) && grows_less(one, &law.inclusive))?;
        Some(Use { growth, of_callees: false })
    };
    callees().or_else(others)
}

/// One flag per stack: whether it is of the scan.
fn stacks_of(seen: &Seen<'_, '_>, function: FunctionId, own_only: bool) -> Vec<bool> {
    let is_own =
        |index: usize| seen.functions().attributed(stepscope_model::StackId::from_index(index)) == Some(function);
    let under = seen.under(function).into_iter().enumerate();
    under.map(|(index, under)| under && (!own_only || is_own(index))).collect()
}

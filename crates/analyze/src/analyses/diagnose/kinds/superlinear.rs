//! A function's cost grows faster than the size, and other work does not: a search in a list for each element.
//!
//! Evidence: the [law](crate::analyses::growth) of its attributed cost over a sweep. The interval of the exponent lies above
//! 1 and above that of all other work. Look-alikes: contacts or messages between all pairs, which are that many.
//!
//! The gain is what the function would cost less if each unit of the size cost as little as at the smallest one.

use stepscope_model::StackId;
use stepscope_stats::growth::Growth;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent, power};
use crate::analyses::diagnose::laws::{FunctionLaw, Laws};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;

/// Least share of CPU time at the largest size.
const LEAST: f64 = 3.0;

/// The interval of the exponent lies above this. That of n log n is near 1.15; work that outgrows the caches has more.
const LEAST_EXPONENT: f64 = 1.4;

/// The interval is at most this wide: an exponent that could be any shows nothing.
const WIDEST: f64 = 1.0;

/// The part of a caller's cost that its growing callees have, at least.
const MOSTLY: f64 = 0.4;

/// How far the intervals are apart if little else looks like it.
const FAR: f64 = 0.4;

pub(super) struct Superlinear;

impl Kind for Superlinear {
    fn name(&self) -> &'static str {
        "superlinear-lookup"
    }

    fn advice(&self) -> &'static str {
        "Look up by a map or an index instead of searching a list; limit pairs to those that can meet."
    }

    fn confirm(&self) -> &'static str {
        "Sweep a larger size: `stepscope sweep --next` proposes it. Calls that cost more at a larger size show a search."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(laws) = &seen.laws else { return Vec::new() };
        let own_low = |one: &FunctionLaw| one.own.as_ref().map_or(0.0, |own| own.exponent.low);
        let is_known =
            |one: &FunctionLaw| one.own.as_ref().is_some_and(|own| own.exponent.high - own.exponent.low <= WIDEST);
        let is_steep = |one: &&FunctionLaw| own_low(one) > LEAST_EXPONENT && is_known(one);
        let steep: Vec<&FunctionLaw> = laws.functions.iter().filter(is_steep).collect();
        let Some(rest) = laws.without_own(&steep).filter(|_| !steep.is_empty()) else { return Vec::new() };
        let is_of_steep = |stack: StackId| {
            let name = seen.functions().attributed(stack).map(|owner| seen.name(owner));
            name.is_some_and(|name| steep.iter().any(|one| one.name == name))
        };
        let steep_stacks: Vec<bool> =
            (0..seen.capture().stacks.len()).map(|index| is_of_steep(StackId::from_index(index))).collect();
        // Callers first: what they call for each element is part of their search.
        let mut alone: Vec<Steep<'_>> = Vec::new();
        for (function, _) in seen.inclusive() {
            let Some(law) = steep.iter().find(|one| one.name == seen.name(function)) else { continue };
            if own_low(law) <= rest.exponent.high {
                continue;
            }
            let goes: Vec<bool> =
                seen.under(function).into_iter().zip(&steep_stacks).map(|(under, steep)| under && *steep).collect();
            let amount = seen.sum(|stack| goes[stack.index()]);
            if seen.share(amount) >= LEAST && !alone.iter().any(|outer| is_mostly_in(seen, &goes, &outer.goes)) {
                alone.push(Steep { function, law, below: Vec::new(), goes });
            }
        }
        let found = below_common_callers(seen, laws, alone);
        found.iter().map(|one| one.found(seen, laws, &rest)).collect()
    }
}

/// A function whose cost grows faster than the rest, or one that calls several such.
struct Steep<'a> {
    function: FunctionId,
    law: &'a FunctionLaw,
    /// Names of the functions that grow, if they are not `function` itself.
    below: Vec<&'a str>,
    /// The stacks whose cost grows.
    goes: Vec<bool>,
}

/// Joins functions below one caller that does little else, and whose inclusive cost grows as fast: one defect, one finding.
fn below_common_callers<'a>(seen: &Seen<'_, 'a>, laws: &'a Laws, mut alone: Vec<Steep<'a>>) -> Vec<Steep<'a>> {
    let mut joined: Vec<Steep<'a>> = Vec::new();
    // The nearest common caller comes first.
    for (caller, inclusive) in seen.inclusive().into_iter().rev() {
        let Some(law) = laws.of_function(seen.name(caller)) else { continue };
        // What is left without the whole step has no law. It is fitted last, because that takes time.
        if alone.len() < 2 || law.inclusive.exponent.low <= LEAST_EXPONENT || laws.without(law).is_none() {
            continue;
        }
        let under = seen.under(caller);
        let (inside, outside): (Vec<_>, Vec<_>) =
            alone.into_iter().partition(|one| is_mostly_in(seen, &one.goes, &under));
        let goes: Vec<bool> = (0..under.len()).map(|at| under[at] && inside.iter().any(|one| one.goes[at])).collect();
        let amount = seen.sum(|stack| goes[stack.index()]);
        if inside.len() < 2 || (amount.weight as f64) < MOSTLY * inclusive.weight as f64 {
            alone = inside.into_iter().chain(outside).collect();
            continue;
        }
        let below = inside.iter().map(|one| one.law.name.as_str()).collect();
        joined.push(Steep { function: caller, law, below, goes });
        alone = outside;
    }
    joined.into_iter().chain(alone).collect()
}

/// Whether most of a cost lies in another.
fn is_mostly_in(seen: &Seen<'_, '_>, cost: &[bool], other: &[bool]) -> bool {
    let both = seen.sum(|stack| other[stack.index()] && cost[stack.index()]);
    both.weight * 2 >= seen.sum(|stack| cost[stack.index()]).weight
}

impl Steep<'_> {
    fn found(&self, seen: &Seen<'_, '_>, laws: &Laws, rest: &Growth) -> Found {
        let (_, largest) = laws.extent();
        let (inclusive, axis) = (&self.law.inclusive, &laws.axis);
        let removed = |n: f64| Some(inclusive.predict(n)?.times(1.0 - laws.linear_part(inclusive, n)?));
        let part = 1.0 - laws.linear_part(inclusive, largest).unwrap_or(0.0);
        let without = parts(self.goes.iter().copied()).into_iter().map(|goes| goes * part as f32).collect();
        let own = self.law.own.as_ref().filter(|_| self.below.is_empty()).map(|own| own.exponent);
        let exponent = own.unwrap_or(inclusive.exponent);
        let name = seen.name(self.function);
        let title = format!("The cost of `{name}` grows as {axis}^{:.1}; all other work grows slower", exponent.value);
        let far = exponent.low > rest.exponent.high + FAR;
        let share = percent(seen.share(seen.sum(|stack| self.goes[stack.index()])));
        let mut found = Found::of(seen, self.function, title, without)
            .sure(if far { Confidence::Strong } else { Confidence::Fair })
            .because(
                format!("It grows as {}, all other work as {}.", power(axis, exponent), power(axis, rest.exponent)),
                "growth",
            )
            .because(format!("At {axis} = {largest} it is {share} of the CPU time."), explain(seen, self.function));
        if !self.below.is_empty() {
            let names: Vec<String> = self.below.iter().map(|name| format!("`{name}`")).collect();
            let sentence = format!("What grows is in {} functions below it: {}.", names.len(), names.join(", "));
            found = found.because(sentence, "show --view cost-tree");
        }
        match removed(largest).zip(removed(2.0 * largest)) {
            Some((now, twice)) => found.at_twice(now, twice),
            None => found,
        }
    }
}

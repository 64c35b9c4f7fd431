//! A function's cost grows faster than the size, and other work does not: a search in a list for each element.
//!
//! Evidence: the [law](crate::analyses::growth) of its attributed cost over a sweep. The interval of the exponent lies above
//! 1 and above that of all other work. Look-alikes: contacts or messages between all pairs, which are that many.
//!
//! The gain is what the function would cost less if each unit of the size cost as little as at the smallest one.

use stepscope_model::StackId;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent, power};
use crate::analyses::diagnose::laws::FunctionLaw;
use crate::analyses::diagnose::seen::{Seen, parts};

/// Least share of CPU time at the largest size.
const LEAST: f64 = 3.0;

/// The interval of the exponent lies above this. That of n log n is near 1.15; work that outgrows the caches has more.
const LEAST_EXPONENT: f64 = 1.4;

/// The interval is at most this wide: an exponent that could be any shows nothing.
const WIDEST: f64 = 1.0;

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
        let (_, largest) = laws.extent();
        let is_of_steep = |stack: StackId| {
            let name = seen.functions().attributed(stack).map(|owner| seen.name(owner));
            name.is_some_and(|name| steep.iter().any(|one| one.name == name))
        };
        let steep_stacks: Vec<bool> =
            (0..seen.capture().stacks.len()).map(|index| is_of_steep(StackId::from_index(index))).collect();
        let mut found: Vec<(Found, Vec<bool>)> = Vec::new();
        // Callers first: what they call for each element is part of their search.
        for (function, _) in seen.inclusive() {
            let Some(law) = steep.iter().find(|one| one.name == seen.name(function)) else { continue };
            if own_low(law) <= rest.exponent.high {
                continue;
            }
            let goes: Vec<bool> =
                seen.under(function).into_iter().zip(&steep_stacks).map(|(under, steep)| under && *steep).collect();
            let amount = seen.sum(|stack| goes[stack.index()]);
            let inside = |outer: &[bool]| {
                let both = seen.sum(|stack| outer[stack.index()] && goes[stack.index()]);
                both.weight * 10 >= amount.weight * 8
            };
            if seen.share(amount) < LEAST || found.iter().any(|(_, outer)| inside(outer)) {
                continue;
            }
            let removed = |n: f64| Some(law.inclusive.predict(n)?.times(1.0 - laws.linear_part(&law.inclusive, n)?));
            let part = 1.0 - laws.linear_part(&law.inclusive, largest).unwrap_or(0.0);
            let without = parts(goes.iter().copied()).into_iter().map(|goes| goes * part as f32).collect();
            let own = law.own.as_ref().map_or(law.inclusive.exponent, |own| own.exponent);
            let axis = &laws.axis;
            let title = format!(
                "The cost of `{}` grows as {axis}^{:.1}; all other work grows slower",
                seen.name(function),
                own.value
            );
            let far = own.low > rest.exponent.high + FAR;
            let mut one = Found::of(seen, function, title, without)
                .sure(if far { Confidence::Strong } else { Confidence::Fair })
                .because(
                    format!("It grows as {}, all other work as {}.", power(axis, own), power(axis, rest.exponent)),
                    "growth",
                )
                .because(
                    format!("At {axis} = {largest} it is {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, function),
                );
            if let Some((now, twice)) = removed(largest).zip(removed(2.0 * largest)) {
                one = one.at_twice(now, twice);
            }
            found.push((one, goes));
        }
        found.into_iter().map(|(found, _)| found).collect()
    }
}

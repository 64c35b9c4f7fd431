//! Memory is allocated and released in every step.
//!
//! Evidence: below one owned function, allocation and the growth of containers cost in all parts of the steady phase. With
//! far more look-ups beside them, the allocations are temporaries, such as the string that a key is made of.
//! Look-alikes: two buffers that are swapped; allocations that live on.
//!
//! The gain includes their part of what releasing memory costs in other functions.
//!
//! A recorded heap decides: without an allocation in most steps there is no finding, and with many temporary ones a smaller
//! cost is enough.

use std::collections::BTreeMap;

use super::{copies, python_containers, releases, thrown_away};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use crate::query::work::Work;
use stepscope_model::StackId;

/// Least share of CPU time.
const LEAST: f64 = 3.0;

/// The same of temporaries for look-ups.
const LEAST_FOR_LOOK_UPS: f64 = 1.5;

/// Least part of a function's cost with all it calls that allocations are, if they are what the function is for.
const MOSTLY: f64 = 0.8;

/// Least part of it that taking and releasing memory is: elements that are put into a container with room for them need none.
const MEMORY: f64 = 0.1;

/// Share of CPU time of a function that is all of the program.
const WHOLE: f64 = 98.0;

/// Fewest allocations per step of a recorded heap.
const FEWEST: f64 = 0.5;

/// Fewest temporary allocations per step that are a finding of their own, and their least part of a function's allocations
/// in percent.
const FEWEST_TEMPORARY: f64 = 10.0;
const MOSTLY_TEMPORARY: f64 = 80.0;

/// Least share of CPU time that these take.
const LEAST_OF_TEMPORARY: f64 = 1.0;

/// The largest mean size of a key that is made for a look-up, in bytes.
const KEY_BYTES: f64 = 256.0;

/// Share from which little memory is enough: a container that is built at its full size takes memory once. One that keeps its
/// memory takes none.
const MUCH: f64 = 10.0;
const SOME_MEMORY: f64 = 0.01;

pub(super) struct Allocations;

impl Kind for Allocations {
    fn name(&self) -> &'static str {
        "allocations-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Keep the container or buffer between steps, reserve its size, and change it in place; look up by a borrowed key."
    }

    fn confirm(&self) -> &'static str {
        "Record the heap (`record --with heap`): many allocations per step, most of them temporary, confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let mut found = python_containers::found(seen);
        // `copies-each-step` has these.
        let mut covered = copies::stacks(seen);
        let of_copies = copies::of_objects(seen);
        for (function, under) in builders(seen).into_iter().filter(|(function, _)| !of_copies.contains(function)) {
            let is_new = |stack: StackId| under[stack.index()] && !covered[stack.index()];
            let amount = seen.sum(|stack| is_new(stack) && allocates(seen.work[stack.index()]));
            let at = |stack: StackId| is_new(stack) && allocates(seen.work[stack.index()]);
            let lasts = || seen.is_steady(at) || is_made_again(seen, amount, &under, &at);
            if seen.share(amount) < LEAST || !lasts() || !is_rebuilt(seen, amount, &at) {
                continue;
            }
            let one = of_function(seen, function, amount, &at);
            covered.iter_mut().zip(&under).for_each(|(covered, under)| *covered |= under);
            found.extend(with_heap(seen, one, function, &|stack: StackId| under[stack.index()]));
        }
        for (owner, _) in seen.by_owner(allocates).into_iter().filter(|(owner, _)| !of_copies.contains(owner)) {
            let of_owner = seen.is_at(owner, allocates);
            let at = |stack: StackId| of_owner(stack) && !covered[stack.index()];
            let amount = seen.sum(at);
            let least = match () {
                () if makes_temporaries(seen, owner) => LEAST_OF_TEMPORARY,
                () if is_for_look_ups(seen, owner, amount) => LEAST_FOR_LOOK_UPS,
                () => LEAST,
            };
            let lasts = || seen.is_steady(at) || is_made_again(seen, amount, &seen.under(owner), &at);
            if seen.share(amount) >= least && lasts() && is_rebuilt(seen, amount, &at) {
                let is_at = |stack: StackId| seen.functions().attributed(stack) == Some(owner);
                found.extend(with_heap(seen, of_function(seen, owner, amount, &at), owner, &is_at));
            }
        }
        found
    }
}

/// Least part of the cost of taking memory that releasing it is, if it is taken for a moment, and that growing is, if a container is built again.
const RELEASED: f64 = 0.2;
const GROWN: f64 = 0.5;

/// Whether a function without steps takes memory for each item in a part of the run, and throws it away: it is called again and again, its
/// memory is used again, and either releasing takes turns with taking, or most of it is growing, which what stays does less and less.
fn is_made_again(seen: &Seen<'_, '_>, amount: Amount, under: &[bool], at: &dyn Fn(StackId) -> bool) -> bool {
    let is_called_again = seen.share(amount) >= MUCH && seen.is_in_pieces(|stack| under[stack.index()]);
    if !is_called_again || !thrown_away::is_used_again(seen, at) {
        return false;
    }
    let releasing = releases::stacks(seen);
    let released = seen.sum(|stack| releasing[stack.index()]).weight as f64 >= RELEASED * amount.weight as f64;
    let grown = seen.sum(|stack| at(stack) && seen.work[stack.index()] != Work::Allocation);
    let takes_turns = || seen.take_turns(at, |stack| releasing[stack.index()]);
    (released && takes_turns()) || grown.weight as f64 >= GROWN * amount.weight as f64
}

/// Whether a function makes many temporary allocations, and few others.
fn makes_temporaries(seen: &Seen<'_, '_>, owner: FunctionId) -> bool {
    let made = seen.recorded.allocations(|stack| seen.functions().attributed(stack) == Some(owner));
    made.temporary >= FEWEST_TEMPORARY && made.temporary_percent() >= MOSTLY_TEMPORARY
}

/// A finding with what the recorded heap says of the allocations at its stacks; `None` if there are hardly any.
fn with_heap(seen: &Seen<'_, '_>, found: Found, function: FunctionId, at: &dyn Fn(StackId) -> bool) -> Option<Found> {
    if !seen.recorded.has_heap() {
        return Some(found);
    }
    let made = seen.recorded.allocations(at);
    if made.calls < FEWEST {
        return None;
    }
    let detail = format!("It makes {}.", seen.recorded.allocations_text(&made));
    let found = found.confirmed(detail, "show --view heap --sort temporary");
    if made.temporary_percent() < MOSTLY_TEMPORARY || made.temporary < FEWEST_TEMPORARY {
        return Some(found);
    }
    let looks_up = seen.at_owner(function, |work| work == Work::LookUp);
    let name = seen.name(function);
    let title = match made.mean_bytes() <= KEY_BYTES && seen.share(looks_up) >= LEAST_OF_TEMPORARY {
        true => format!("`{name}` makes a temporary for each look-up"),
        false => format!("`{name}` makes many temporary allocations {}", seen.repeatedly()),
    };
    Some(Found { title, ..found })
}

fn allocates(work: Work) -> bool {
    matches!(work, Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory)
}

/// Owned functions that do little else with all they call than allocate, where several allocate: callers first. One cause is
/// one finding, at the deepest function that all of it is for.
fn builders(seen: &Seen<'_, '_>) -> Vec<(FunctionId, Vec<bool>)> {
    let mut found: Vec<(FunctionId, Vec<bool>, u128)> = Vec::new();
    for (function, all) in seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST) {
        let under = seen.under(function);
        let mut by_owner: BTreeMap<FunctionId, u128> = BTreeMap::new();
        for (stack, amount) in seen.cpu.occupied().filter(|(stack, _)| under[stack.index()]) {
            let owner = seen.functions().attributed(stack).filter(|_| allocates(seen.work[stack.index()]));
            *by_owner.entry(owner.unwrap_or(function)).or_default() += if owner.is_some() { amount.weight } else { 0 };
        }
        let (of_it, most) = (by_owner.values().sum::<u128>(), by_owner.values().max().copied().unwrap_or(0));
        // What is below the whole of a program without steps is its `main`.
        let is_whole = seen.pieces.is_some() && seen.share(all) >= WHOLE;
        if is_whole || (of_it as f64) < MOSTLY * all.weight as f64 || most * 10 >= of_it * 9 {
            continue;
        }
        found.retain(|(_, outer, of_outer)| {
            let is_inside = outer.iter().zip(&under).all(|(outer, inner)| *outer || !*inner);
            !is_inside || of_it * 10 < of_outer * 9
        });
        found.push((function, under, of_it));
    }
    found.into_iter().map(|(function, under, _)| (function, under)).collect()
}

/// Whether a function makes the keys that it looks up.
pub(super) fn makes_keys(seen: &Seen<'_, '_>, owner: FunctionId) -> bool {
    let amount = seen.at_owner(owner, allocates);
    seen.share(amount) >= LEAST_FOR_LOOK_UPS && is_for_look_ups(seen, owner, amount)
}

/// Whether the allocations of a function are made for look-ups: a key that costs little beside them, and is for nothing.
fn is_for_look_ups(seen: &Seen<'_, '_>, owner: FunctionId, amount: Amount) -> bool {
    seen.at_owner(owner, |work| work == Work::LookUp).weight > 2 * amount.weight
}

/// Whether it is more than elements that are put into a container that stays.
fn is_rebuilt(seen: &Seen<'_, '_>, amount: Amount, at: &dyn Fn(StackId) -> bool) -> bool {
    let memory = |stack: StackId| matches!(seen.work[stack.index()], Work::Allocation | Work::GrowthMemory);
    let memory = seen.sum(|stack| at(stack) && memory(stack));
    let least = if seen.share(amount) >= MUCH { SOME_MEMORY } else { MEMORY };
    memory.weight as f64 >= least * amount.weight as f64
}

/// The finding about a function that allocates at these stacks.
fn of_function(seen: &Seen<'_, '_>, function: FunctionId, amount: Amount, at: &dyn Fn(StackId) -> bool) -> Found {
    let growth = seen.sum(|stack| at(stack) && seen.work[stack.index()] != Work::Allocation);
    let name = seen.name(function);
    let title = match () {
        () if is_for_look_ups(seen, function, amount) => format!("`{name}` makes a temporary for each look-up"),
        () if own_name(name).rsplit("::").next().is_some_and(|last| last.starts_with('~')) => {
            format!("`{name}` releases memory {}", seen.repeatedly())
        }
        () if growth.weight * 3 > amount.weight => format!("`{name}` builds a container {}", seen.repeatedly()),
        () => format!("`{name}` allocates memory {}", seen.repeatedly()),
    };
    let share = seen.share(amount);
    let confidence = if share >= MUCH { Confidence::Strong } else { Confidence::Fair };
    let without = releases::with_their_part(seen, at, &releases::stacks(seen));
    Found::of(seen, function, title, without).sure(confidence).because(
        format!("Allocation and growing containers take {} of the CPU time, all the time.", percent(share)),
        explain(seen, function),
    )
}

//! A text is parsed again and again by a parser of the program's own.
//!
//! Evidence: below one owned function numbers are made from text, strings and containers are built, and both go on all the
//! time. The function that does this for nearly all of the numbers is named, or a caller that does little more than keep and release what
//! was parsed. Look-alikes: messages from outside, which are new each time.

use stepscope_model::StackId;

use super::library_calls;
use super::text_conversion;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::work::Work;

/// Least share of CPU time of all of it, and of making numbers from text.
const LEAST: f64 = 10.0;
const LEAST_NUMBERS: f64 = 1.0;

/// Least part of the parser's time in which strings and containers are built and released.
const BUILDS: f64 = 0.3;

/// Least part of what a caller does itself that is keeping and releasing.
const KEEPS: f64 = 0.5;

pub(super) struct OwnParser;

impl Kind for OwnParser {
    fn name(&self) -> &'static str {
        "text-parsed-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        library_calls::PARSERS.advice()
    }

    fn confirm(&self) -> &'static str {
        library_calls::PARSERS.confirm()
    }

    fn effects(&self) -> &'static [&'static str] {
        &["values-through-text", "allocations-each-step", "text-compared-each-step", "text-keys-each-step"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        parser(seen).into_iter().collect()
    }
}

fn parser(seen: &Seen<'_, '_>) -> Option<Found> {
    let from_text = text_conversion::from_text(seen);
    let makes_number = |stack: StackId| from_text[stack.index()];
    let numbers = seen.sum(makes_number);
    if seen.share(numbers) < LEAST_NUMBERS || !seen.is_steady(makes_number) {
        return None;
    }
    let mut parser = seen.common_owner(makes_number)?;
    let mut under = seen.under(parser);
    // What exceptions take and release is nothing that is parsed.
    let throwing = library_calls::EXCEPTIONS.stacks(seen);
    let parsing = |stack: StackId| under[stack.index()] && !throwing[stack.index()];
    let all = seen.sum(parsing).weight as f64;
    let building = seen.sum(|stack| parsing(stack) && builds(seen.work[stack.index()])).weight as f64;
    if building < BUILDS * all {
        return None;
    }
    // Callers that do nothing themselves are passed on the way to one that keeps.
    let (mut outer, mut above) = (parser, under.clone());
    while let Some(caller) = Caller::of(seen, outer, &above, &under).filter(|caller| caller.keeps >= KEEPS * caller.own)
    {
        (outer, above) = (caller.function, caller.under);
        if caller.own > 0.0 {
            (parser, under) = (outer, above.clone());
        }
    }
    let at = |stack: StackId| under[stack.index()] && !throwing[stack.index()];
    let amount = seen.sum(at);
    if seen.share(amount) < LEAST || !seen.is_steady(at) {
        return None;
    }
    let title = format!("`{}` parses text {}", seen.name(parser), seen.repeatedly());
    let without = parts((0..under.len()).map(|index| at(StackId::from_index(index))));
    let text = format!(
        "Making numbers, strings and containers from text takes {} of the CPU time{}, with what keeps and releases them.",
        percent(seen.share(amount)),
        seen.of_steps()
    );
    Some(Found::of(seen, parser, title, without).sure(Confidence::Fair).because(text, explain(seen, parser)))
}

/// Strings and containers that are made and released.
fn builds(work: Work) -> bool {
    matches!(
        work,
        Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory | Work::Text | Work::Formatting | Work::Copy
    )
}

/// The nearest owned function that a function's calls come from.
struct Caller {
    function: FunctionId,
    /// One flag per stack: whether it is on it.
    under: Vec<bool>,
    /// Its cost without the parser, and the part of it that is keeping and releasing.
    own: f64,
    keeps: f64,
}

impl Caller {
    fn of(seen: &Seen<'_, '_>, function: FunctionId, above: &[bool], parser: &[bool]) -> Option<Self> {
        let function = seen.common_owner_above(function, above)?;
        let under = seen.under(function);
        let sum = |counts: &dyn Fn(Work) -> bool| {
            let is_own =
                |stack: StackId| under[stack.index()] && !parser[stack.index()] && counts(seen.work[stack.index()]);
            seen.sum(is_own).weight as f64
        };
        // Who formats text does more than that.
        let keeps = |work: Work| {
            (builds(work) && work != Work::Formatting)
                || matches!(work, Work::Container | Work::LookUp | Work::Comparison)
        };
        let (own, keeps) = (sum(&|_| true), sum(&keeps));
        Some(Self { function, under, own, keeps })
    }
}

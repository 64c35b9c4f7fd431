//! Containers that Python code builds and releases again, all the time.
//!
//! Evidence: CPython's functions that release lists, dictionaries and sets, with all of their elements, below one Python function. That much is only
//! released where much is built. The function whose comprehensions cost most below it is named, if there is one, and they are part of the gain.
//! Look-alikes: data that is new in every step.

use stepscope_model::StackId;

use crate::analyses::diagnose::code::{is_nameless, named_owner};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;

/// Least share of CPU time of releasing them.
const LEAST: f64 = 10.0;

/// CPython's functions that release a container.
const RELEASES: [&str; 4] = ["list_dealloc", "dict_dealloc", "set_dealloc", "deque_dealloc"];

/// Functions that release containers with many elements.
pub(super) fn found(seen: &Seen<'_, '_>) -> Vec<Found> {
    let releases = python::below(seen, &RELEASES);
    if !releases.contains(&true) {
        return Vec::new();
    }
    let owner = |stack: StackId| named_owner(seen.capture(), seen.functions(), stack);
    let releaser = |stack: StackId| releases[stack.index()].then(|| owner(stack)).flatten();
    let comprehends = seen.paths_through(|function| is_nameless(&function.name) && function.name.contains("comp>"));
    let lasting = seen.lasting_by(LEAST, releaser);
    let found = lasting.map(|(function, amount)| {
        let under = seen.under(function);
        let builds = |stack: StackId| under[stack.index()] && comprehends[stack.index()];
        let builder = |stack: StackId| builds(stack).then(|| owner(stack)).flatten();
        let most: Option<FunctionId> = seen.by_function(builder).first().map(|(builder, _)| *builder);
        let named = most.unwrap_or(function);
        let stacks = (0..releases.len()).map(StackId::from_index);
        let without = parts(stacks.map(|stack| releaser(stack) == Some(function) || builds(stack)));
        let title = format!("`{}` builds a container {}, which is thrown away", seen.name(named), seen.repeatedly());
        let text = format!(
            "Releasing containers with their elements takes {} of the CPU time{} in `{}`.",
            percent(seen.share(amount)),
            seen.of_steps(),
            seen.name(function)
        );
        Found::of(seen, named, title, without).sure(Confidence::Fair).because(text, explain(seen, named))
    });
    found.collect()
}

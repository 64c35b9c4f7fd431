//! A text is copied as a whole to append a piece to it, for `copies-each-step`.
//!
//! Evidence: copying memory below functions of the language's strings (`std::operator+`, `format!`) costs much more than all else that these do
//! below one owned function. Short texts cost more for their memory and their format than for their bytes, so these texts are long. It comes
//! back, and what is copied is not kept. Look-alikes: a large text that is read or appended to in large pieces; it stays.

use stepscope_model::StackId;

use super::thrown_away;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};
use crate::query::frame_kind::undecorated;
use crate::query::qualified_name::own_name;

/// Least share of CPU time of copying.
const LEAST: f64 = 10.0;

/// Least cost of copying, as a multiple of all else that is done for the texts.
const COPIED: u128 = 2;

/// Parts of the names of functions of strings.
const TEXTS: [&str; 7] = [
    "std::basic_string",
    "std::__cxx11::basic_string",
    "std::operator+",
    "alloc::string::",
    "alloc::fmt::",
    "alloc::str::",
    "core::fmt::",
];

pub(super) fn found(seen: &Seen<'_, '_>) -> Vec<Found> {
    let of_text = seen.paths_through(|function| is_one_of(function, &TEXTS));
    let moves = seen.paths_through(|function| {
        let own = own_name(&function.name);
        !function.owned && ["memmove", "memcpy"].iter().any(|one| undecorated(&own).starts_with(one))
    });
    let owner = |stack: StackId| seen.functions().attributed(stack).filter(|_| of_text[stack.index()]);
    let copier = |stack: StackId| owner(stack).filter(|_| moves[stack.index()]);
    let large = seen.by_function(copier).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
    let copies = large.filter(|(function, amount)| {
        let others = seen.sum(|stack| owner(stack) == Some(*function) && !moves[stack.index()]);
        let at = |stack: StackId| copier(stack) == Some(*function);
        amount.weight >= COPIED * others.weight && seen.is_repeated(at) && thrown_away::is_used_again(seen, at)
    });
    let found = copies.map(|(function, amount)| {
        let title = format!("`{}` copies a long text to append to it {}", seen.name(function), seen.repeatedly());
        let text = format!(
            "Moving its bytes takes {} of the CPU time{}, far more than what is appended.",
            percent(seen.share(amount)),
            seen.of_steps()
        );
        let without = parts((0..moves.len()).map(|index| owner(StackId::from_index(index)) == Some(function)));
        Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, explain(seen, function)).because(
            "Append in place: `+=` and `append`, `push_str` or `write!`, and keep one text for all.",
            explain(seen, function),
        )
    });
    found.collect()
}

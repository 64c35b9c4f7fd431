//! A list is searched from its start again and again.
//!
//! Evidence: search functions of the standard library (`std::find`, `Iterator::any`, `slice::contains`) cost below one owned
//! function: in all parts of the steady phase, or in loading. A search that costs this much meets many elements. A function
//! that does nothing but go from element to element and compare is a search, too. So is a [loop](super::super::code) of machine code
//! that only moves on, compares what it loads with what stays the same, and ends at an element that fits.
//! Going to an element by its position (`std::next`, `std::advance`, `Iterator::nth`) is a search, too, if it costs much: lists and trees have
//! no positions, so it walks there from the start. Look-alikes: a pass that has to meet all elements, such as a test whether any body moves.
//!
//! A loop that looks for the least or the greatest element, and computes no keys, is a search in a list that should be a heap. Where the keys are new for
//! each search, making them costs more than comparing them, so that the loop takes little.
//!
//! CPython's searches have names, and the lines that ask for them, too. A search that costs many times as much as the rest of its line meets many
//! elements. One in a list of a few does not: going to the line and putting its operands together costs as much.

use std::collections::BTreeMap;

use stepscope_model::{LoopShape, NoteValue, StackId};

use crate::analyses::diagnose::code::{HotLoop, python_line};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::frame_kind::undecorated;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;

/// Least share of CPU time. Short lists are searched, too, and rightly so.
const LEAST: f64 = 20.0;

/// The same of a loop that its instructions show to be a search.
const LEAST_OF_LOOP: f64 = 8.0;

/// The same of a loop that looks for the least element.
const LEAST_OF_LEAST: f64 = 12.0;

/// Least share of comparisons in a search that is written out.
const COMPARED: f64 = 3.0;

/// CPython's searches.
const OF_PYTHON: [&str; 7] =
    ["list_contains", "list_index", "list_remove", "tuplecontains", "tupleindex", "deque_contains", "deque_index"];

pub(super) struct ListSearch;

impl Kind for ListSearch {
    fn name(&self) -> &'static str {
        "list-search"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Look up by a map, a set or an index instead of searching the list; keep an array beside a tree or a list whose positions matter, \
         and the length beside a text."
    }

    fn confirm(&self) -> &'static str {
        "Record several sizes with `stepscope sweep`: a cost that grows with the square of the size confirms it."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["text-compared-each-step", "chain-climbed-each-time"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let loops = loops(seen);
        let is_known = |owner: FunctionId| loops.iter().any(|one| one.function == Some(owner));
        let owners = seen.by_owner(|work| is_search(work) || is_loop(work)).into_iter();
        let at = python::below(seen, &OF_PYTHON);
        let does = "searches a list from its start";
        let by_lines = by_lines(seen, &at);
        let in_python = python::recurring(seen, &at, (LEAST, LEAST), does, python::IN_CPYTHON);
        let in_python = in_python.filter(|_| by_lines.is_empty());
        owners
            .filter(|(owner, amount)| seen.share(*amount) >= LEAST && !is_known(*owner))
            .filter_map(|(owner, _)| {
                let searches = if is_written_out(seen, owner) { is_loop } else { is_search };
                let amount = seen.at_owner(owner, searches);
                let lasts = || seen.is_loading() || seen.is_repeated(seen.is_at(owner, searches));
                if seen.share(amount) < LEAST || !lasts() {
                    return None;
                }
                let title = format!("`{}` searches a list from its start", seen.name(owner));
                let text = format!(
                    "Going through the list and comparing takes {} of the CPU time.",
                    percent(seen.share(amount))
                );
                let found = Found::of(seen, owner, title, seen.without(owner, searches)).sure(Confidence::Fair);
                Some(found.because(text, explain(seen, owner)))
            })
            .chain(in_python)
            .chain(by_lines)
            .chain(walks(seen))
            .chain(ends_of_texts(seen))
            .chain(least_elements(seen))
            .chain(loops.iter().cloned())
            .collect()
    }
}

/// Least share of CPU time of CPython's searches at lines of one function.
const LEAST_AT_LINES: f64 = 3.0;

/// A search of a long list costs this many times as much as the rest of its line.
const TIMES_OF_LINE: u128 = 5;

/// Python functions with lines that search long lists. `at`: the stacks in CPython's searches.
fn by_lines(seen: &Seen<'_, '_>, at: &[bool]) -> Vec<Found> {
    if !at.contains(&true) {
        return Vec::new();
    }
    let (capture, functions) = (seen.capture(), seen.functions());
    // Comparisons of elements can be Python functions of their own: the line that asks is above the search.
    let asks = |stack: StackId| {
        let searches = capture.nodes_of(Some(stack)).take_while(|node| at[node.index()]).last()?;
        python_line(capture, functions, capture.stacks[searches.index()].parent?)
    };
    let mut lines: BTreeMap<(FunctionId, u32), [u128; 2]> = BTreeMap::new();
    for (stack, amount) in seen.cpu.occupied() {
        let (line, part) = match at[stack.index()] {
            true => (asks(stack), 0),
            false => (python_line(capture, functions, stack), 1),
        };
        if let Some((function, _, line)) = line {
            lines.entry((function, line)).or_default()[part] += amount.weight;
        }
    }
    let is_long = |[search, rest]: &[u128; 2]| *search >= (*rest).max(1) * TIMES_OF_LINE;
    let long = |stack: StackId| {
        let (function, _, line) = asks(stack).filter(|_| at[stack.index()])?;
        lines.get(&(function, line)).is_some_and(is_long).then_some(function)
    };
    let of_stack: Vec<Option<FunctionId>> = (0..at.len()).map(|index| long(StackId::from_index(index))).collect();
    let owner = |stack: StackId| of_stack[stack.index()];
    let large = seen.by_function(owner).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST_AT_LINES);
    let found = large.filter_map(|(function, amount)| {
        let inside = |stack: StackId| owner(stack) == Some(function);
        let in_part = || seen.share(amount) >= LEAST && seen.is_in_pieces(inside);
        if seen.is_loading() || !(seen.recurs(inside) || in_part()) {
            return None;
        }
        let of_function = lines.iter().filter(|((of, _), costs)| *of == function && is_long(costs));
        let sums = of_function.clone().fold([0, 0], |sums, (_, costs)| [sums[0] + costs[0], sums[1] + costs[1]]);
        let ((_, line), _) = of_function.max_by_key(|(_, costs)| costs[0])?;
        let times = NoteValue::number(u64::try_from(sums[0] / sums[1].max(1)).unwrap_or(u64::MAX));
        let rest = match sums[1] {
            0 => "and the rest of the line nothing that was sampled".to_owned(),
            _ => format!("{times} times as much as the rest of the line"),
        };
        let title = format!("`{}` searches a list from its start, at line {line}", seen.name(function));
        let text = format!(
            "CPython's functions for it take {} of the CPU time{}, {rest}: the list is long.",
            percent(seen.share(amount)),
            seen.of_steps()
        );
        let without = parts((0..at.len()).map(|index| inside(StackId::from_index(index))));
        Some(Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, explain(seen, function)))
    });
    found.collect()
}

/// Least share of CPU time of looking for the ends of texts.
const LEAST_OF_ENDS: f64 = 10.0;

/// Functions that look for the end of a text again and again: with each piece that `strcat` appends, and with each `strlen`, from its start.
fn ends_of_texts(seen: &Seen<'_, '_>) -> Vec<Found> {
    const ENDS: [&str; 4] = ["strcat", "strncat", "strlen", "wcslen"];
    let looks = seen.paths_through(|function| {
        let own = own_name(&function.name);
        let plain = undecorated(&own);
        // With the variant for the CPU behind it: `strcat_evex`.
        let is_one = |end: &&str| plain.strip_prefix(*end).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        !function.owned && ENDS.iter().any(is_one)
    });
    let user = |stack: StackId| seen.functions().attributed(stack).filter(|_| looks[stack.index()]);
    let lasting = seen.lasting_by(LEAST_OF_ENDS, user);
    let found = lasting.map(|(function, amount)| {
        let title = format!("`{}` goes through texts from their start to find their end", seen.name(function));
        let text = format!(
            "`strlen` and `strcat` take {} of the CPU time{}: the texts are long, or it asks often.",
            percent(seen.share(amount)),
            seen.of_steps()
        );
        let stacks = (0..looks.len()).map(StackId::from_index);
        let without = parts(stacks.map(|stack| user(stack) == Some(function)));
        Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, explain(seen, function))
    });
    found.collect()
}

/// Functions that go to an element by its position. In an array they cost next to nothing.
const POSITIONS: [&str; 8] = [
    "std::advance",
    "std::__advance",
    "std::next",
    "std::prev",
    "std::distance",
    "std::__distance",
    "core::iter::traits::iterator::Iterator::nth",
    "core::iter::traits::iterator::Iterator::advance_by",
];

/// Functions that go to an element of a list or a tree by its position.
fn walks(seen: &Seen<'_, '_>) -> Vec<Found> {
    let walking = seen.paths_through(|function| {
        let own = own_name(&function.name);
        let own = own.split('<').next().unwrap_or_default();
        !function.owned && POSITIONS.contains(&own)
    });
    // Below the library alone: an iterator of the program's own may do work for each element.
    let owner = |stack: StackId| seen.functions().attributed(stack);
    let walker = |stack: StackId| {
        let is_own = seen.functions().is_owner(seen.functions().of_node(seen.capture(), stack));
        owner(stack).filter(|_| walking[stack.index()] && !is_own)
    };
    let lasting = seen.lasting_by(LEAST, walker);
    let found = lasting.map(|(function, amount)| {
        let title =
            format!("`{}` goes to an element by its position, and walks there from the start", seen.name(function));
        let text = format!(
            "Walking over other elements takes {} of the CPU time{}: a list or a tree has no positions.",
            percent(seen.share(amount)),
            seen.of_steps()
        );
        let stacks = (0..walking.len()).map(StackId::from_index);
        // Samples of the loop that walks, which is inlined, may stand at the function itself.
        let is_walk = |one: &&HotLoop| {
            let walked = seen.sum(|stack| one.inside[stack.index()] && walker(stack) == Some(function));
            walked.weight * 2 > one.amount.weight
        };
        let loops: Vec<&HotLoop> = seen.hot_loops.iter().filter(is_walk).collect();
        let without = parts(
            stacks.map(|stack| walker(stack) == Some(function) || loops.iter().any(|one| one.inside[stack.index()])),
        );
        Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, explain(seen, function))
    });
    found.collect()
}

/// Searches that their instructions show, by function.
fn loops(seen: &Seen<'_, '_>) -> Vec<Found> {
    let searches = HotLoop::of_shape(&seen.hot_loops, LoopShape::Search).into_iter();
    let found = searches.filter_map(|search| {
        let owner = search.function;
        // A loop that calls for comparisons, or that a library's search is inlined into, has them all.
        let named = if is_written_out(seen, owner) { is_loop } else { is_search };
        let mut inside = search.inside.clone();
        if !is_written_out(seen, owner) {
            let at = seen.is_at(owner, named);
            inside.iter_mut().enumerate().for_each(|(index, one)| *one |= at(StackId::from_index(index)));
        }
        let at = |stack: StackId| inside[stack.index()];
        let amount = seen.sum(at);
        // Fields of a line are searched, too, in the part of a run that reads text.
        let in_part = || seen.share(amount) >= LEAST && seen.is_in_pieces(at);
        if seen.share(amount) < LEAST_OF_LOOP || !(seen.is_loading() || seen.recurs(at) || in_part()) {
            return None;
        }
        let title = format!(
            "`{}` searches a list from its start: {} compares one element after the other",
            seen.name(owner),
            search.place()
        );
        let text = format!("The loop takes {} of the CPU time{}.", percent(seen.share(amount)), seen.of_steps());
        let found = Found::of(seen, owner, title, parts(inside.iter().copied())).sure(Confidence::Fair);
        Some(found.because(text, explain(seen, owner)).because(
            "Its instructions only load, compare with what stays the same, and move on; it ends at an element that fits.",
            explain(seen, owner),
        ))
    });
    found.collect()
}

/// Loops that look for the least or the greatest element, by function.
fn least_elements(seen: &Seen<'_, '_>) -> Vec<Found> {
    let loops = HotLoop::of_shape(&seen.hot_loops, LoopShape::Least).into_iter();
    let large = loops.filter(|one| seen.share(one.amount) >= LEAST_OF_LEAST);
    let found = large.filter(|one| seen.recurs(|stack| one.inside[stack.index()])).map(|one| {
        let owner = one.function;
        let title = format!(
            "`{}` looks through a list for its least or greatest element: {} compares one after the other",
            seen.name(owner),
            one.place()
        );
        let text = format!(
            "The loop takes {} of the CPU time{}. A heap (`std::priority_queue`) has that element at hand.",
            percent(seen.share(one.amount)),
            seen.of_steps()
        );
        let found = Found::of(seen, owner, title, parts(one.inside.iter().copied())).sure(Confidence::Fair);
        found.because(text, explain(seen, owner)).because(
            "Its instructions only load, compare with the least so far, and move on: it computes no keys, so it costs much only if it looks \
             through the same ones again.",
            explain(seen, owner),
        )
    });
    found.collect()
}

fn is_search(work: Work) -> bool {
    work == Work::Search
}

fn is_loop(work: Work) -> bool {
    matches!(work, Work::Own | Work::Container | Work::Comparison)
}

/// Whether a function is a search that is written out as a loop: it takes the next element more than it compares, compares a
/// good deal, and does nothing else.
pub(super) fn is_written_out(seen: &Seen<'_, '_>, owner: FunctionId) -> bool {
    let [all, searched, next, compared] = [
        seen.at_owner(owner, |_| true),
        seen.at_owner(owner, is_loop),
        seen.at_owner(owner, |work| work == Work::Container),
        seen.at_owner(owner, |work| work == Work::Comparison),
    ];
    seen.share(compared) >= COMPARED && next.weight >= 2 * compared.weight && searched.weight * 10 >= all.weight * 9
}

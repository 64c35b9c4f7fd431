//! All elements of an array are moved to insert or remove one at its front.
//!
//! Evidence: moving memory below a function of the language's library that inserts or removes one element of an array
//! (`std::vector::erase`, `Vec::remove`, `list.pop(0)`), in all parts of the steady phase. It takes much only if many elements stand
//! behind the one. Look-alikes: few elements that are large.

use stepscope_model::StackId;

use crate::Function;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::is_of_cpython;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 5.0;

/// Functions that insert or remove one element before others.
const OF_LIBRARIES: [&str; 10] = [
    "std::vector::erase",
    "std::vector::_M_erase",
    "std::vector::_M_insert_aux",
    "std::basic_string::erase",
    "std::__cxx11::basic_string::erase",
    "alloc::vec::Vec<T,A>::remove",
    "alloc::vec::Vec<T,A>::insert",
    "alloc::vec::Vec::remove",
    "alloc::vec::Vec::insert",
    "alloc::vec::Vec::drain",
];

/// Functions that insert elements, perhaps at the end: they move others with one of [`MOVES_BACK`].
const INSERTS: [&str; 2] = ["std::vector::insert", "std::vector::emplace"];

/// The start of functions that move elements to make room.
const MOVES_BACK: [&str; 2] = ["std::move_backward", "std::__copy_move_backward"];

/// CPython's functions that do, and move what is behind.
const OF_PYTHON: [&str; 6] = ["list_pop", "list_pop_impl", "list_insert", "list_insert_impl", "ins1", "list_ass_slice"];

pub(super) struct MovedElements;

impl Kind for MovedElements {
    fn name(&self) -> &'static str {
        "elements-moved-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Use a queue for what is taken from the front (`std::deque`, `VecDeque`, `collections.deque`). Where the order does not matter, \
         swap the element with the last one and remove that."
    }

    fn confirm(&self) -> &'static str {
        "See the length of the array there: the cost grows with it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let mut changes = seen.paths_through(changes_one);
        let inserts = seen.paths_through(|function| is_of_library(function, |own| INSERTS.contains(&own)));
        let moves_back = |own: &str| MOVES_BACK.iter().any(|start| own.starts_with(start));
        let moves_back = seen.paths_through(|function| is_of_library(function, moves_back));
        for (change, (insert, move_back)) in changes.iter_mut().zip(inserts.into_iter().zip(moves_back)) {
            *change |= insert && move_back;
        }
        let moves = |stack: StackId| {
            changes[stack.index()] && matches!(seen.work[stack.index()], Work::Copy | Work::ContainerGrowth)
        };
        let mover = |stack: StackId| seen.functions().attributed(stack).filter(|_| moves(stack));
        let steady = seen.lasting_by(LEAST, mover);
        let found = steady.map(|(owner, amount)| {
            let name = seen.name(owner);
            let title = format!("`{name}` inserts or removes near the front of an array {}", seen.repeatedly());
            let stacks = (0..changes.len()).map(StackId::from_index);
            let without = parts(stacks.map(|stack| mover(stack) == Some(owner)));
            let share = percent(seen.share(amount));
            let text = format!("Moving the elements behind takes {share} of the CPU time{}.", seen.of_steps());
            Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner))
        });
        found.collect()
    }
}

/// Whether a library's function inserts or removes one element of an array, before others.
fn changes_one(function: &Function) -> bool {
    let of_python = is_of_cpython(function) && OF_PYTHON.contains(&&*own_name(&function.name));
    is_of_library(function, |own| OF_LIBRARIES.contains(&own)) || (of_python && !function.owned)
}

/// Whether a function that is not owned has such a name, without template arguments.
fn is_of_library(function: &Function, is_one: impl Fn(&str) -> bool) -> bool {
    !function.owned && is_one(&own_name(&function.name))
}

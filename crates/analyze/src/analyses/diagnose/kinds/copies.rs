//! A container is copied in every step.
//!
//! Evidence: memory is copied where a new container is made from another one, in all parts of the steady phase. The owned
//! function that is named is the nearest that is no constructor. Look-alikes: a copy that another thread works on. Containers
//! that grow copy their elements, too; `allocations-each-step` has those.
//!
//! The gain is that of all that making the copies costs: memory for them, its page faults, the strings in it. Of what releasing memory
//! costs, they have the part that they have of taking memory.

use stepscope_model::StackId;

use super::releases;
use crate::Function;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::{own_name, python_function};
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 4.0;

/// Last parts of functions that make a container's elements from those of another.
const MAKES: [&str; 6] =
    ["uninitialized_copy", "__uninit_copy", "_M_range_initialize", "_M_allocate_and_copy", "to_vec", "clone"];

/// Parts of functions that make room in a container.
const GROWS: [&str; 5] = ["_M_realloc", "reserve", "_M_default_append", "_M_fill_insert", "_M_range_insert"];

pub(super) struct Copies;

impl Kind for Copies {
    fn name(&self) -> &'static str {
        "copies-each-step"
    }

    fn advice(&self) -> &'static str {
        "Pass it by reference, move it, or share it (`std::shared_ptr<const T>`, `Arc`); copy what is changed."
    }

    fn confirm(&self) -> &'static str {
        "Record the heap (`record --with heap`): large temporary allocations at the function confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let makes =
            seen.paths_through(|function| !function.owned && MAKES.contains(&last_part(&function.name).as_str()));
        let grows = seen.paths_through(|function| {
            !function.owned && GROWS.iter().any(|part| own_name(&function.name).contains(part))
        });
        let copies = |stack: StackId| {
            let index = stack.index();
            seen.work[index] == Work::Copy && makes[index] && !grows[index]
        };
        let in_python = seen.paths_through(copies_in_python);
        let is_copy = |stack: StackId| copies(stack) || in_python[stack.index()];
        let user = |stack: StackId| is_copy(stack).then(|| user_of(seen, stack)).flatten();
        let (making, releasing) = (makes_copies(seen, is_copy), releases::stacks(seen));
        let large = seen.by_function(user).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        large
            .filter(|(owner, _)| seen.is_steady(|stack| user(stack) == Some(*owner)))
            .map(|(owner, amount)| {
                let title = format!("`{}` copies a container {}", seen.name(owner), seen.repeatedly());
                let is_of_it = |stack: StackId| {
                    let is_made = making[stack.index()] && is_of_copy(seen.work[stack.index()]);
                    user(stack) == Some(owner) || (is_made && user_of(seen, stack) == Some(owner))
                };
                let without = releases::with_their_part(seen, is_of_it, &releasing);
                Found::of(seen, owner, title, without).sure(Confidence::Fair).because(
                    format!(
                        "Copying its elements takes {} of the CPU time, all the time.",
                        percent(seen.share(amount))
                    ),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}

/// What making a copy does.
fn is_of_copy(work: Work) -> bool {
    let takes = matches!(work, Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory | Work::PageFault);
    takes || matches!(work, Work::Copy | Work::Text | Work::Container)
}

/// One flag per stack: whether it is in a constructor, or a function of a container, that makes copies for the function below it.
fn makes_copies(seen: &Seen<'_, '_>, is_copy: impl Fn(StackId) -> bool) -> Vec<bool> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let is_constructor: Vec<bool> =
        functions.all().map(|(_, function)| is_constructor(&own_name(&function.name))).collect();
    let is_user = |id: FunctionId| functions.is_owner(id) && !is_constructor[id.index()];
    let of = |node: StackId| functions.of_node(capture, node);
    let mut makes = vec![false; functions.len()];
    for (stack, _) in seen.cpu.occupied().filter(|(stack, _)| is_copy(*stack)) {
        let makers = capture.nodes_of(Some(stack)).map(of).take_while(|id| !is_user(*id));
        makers.for_each(|id| makes[id.index()] = true);
    }
    let mut flags: Vec<bool> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let id = of(StackId::from_index(index));
        let is_maker =
            makes[id.index()] && (is_constructor[id.index()] || MAKES.contains(&&*last_part(&functions.get(id).name)));
        let above = node.parent.is_some_and(|parent| flags[parent.index()]);
        flags.push(!is_user(id) && (is_maker || above));
    }
    flags
}

fn last_part(name: &str) -> String {
    own_name(name).rsplit("::").next().unwrap_or_default().to_owned()
}

/// Whether a function of Python's `copy` or of NumPy makes a copy of what it gets.
fn copies_in_python(function: &Function) -> bool {
    const OF_NUMPY: [&str; 4] = ["array_concatenate", "PyArray_Concatenate", "PyArray_NewCopy", "array_deepcopy"];
    let by_module = python_function(&function.name).is_some_and(|(_, file)| file.ends_with("/copy.py"));
    let own = own_name(&function.name);
    by_module || (function.module.contains("_multiarray_umath") && OF_NUMPY.iter().any(|start| own.starts_with(start)))
}

/// The nearest owned function that is no constructor.
fn user_of(seen: &Seen<'_, '_>, stack: StackId) -> Option<FunctionId> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let ids = capture.nodes_of(Some(stack)).map(|node| functions.of_node(capture, node));
    let mut owners = ids.filter(|id| functions.is_owner(*id));
    owners.find(|id| !is_constructor(&own_name(seen.name(*id))))
}

/// Whether the last two parts of a name are the same: `sim::Cloud::Cloud`.
fn is_constructor(own: &str) -> bool {
    let mut parts = own.rsplit("::");
    let (last, class) = (parts.next(), parts.next());
    last.is_some() && last == class
}

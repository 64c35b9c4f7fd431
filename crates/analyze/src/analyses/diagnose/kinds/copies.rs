//! A container is copied in every step.
//!
//! Evidence: memory is copied where a new container is made from another one, in all parts of the steady phase. The owned
//! function that is named is the nearest that is no constructor. Look-alikes: a copy that another thread works on. Containers
//! that grow copy their elements, too; `allocations-each-step` has those.
//!
//! An object whose constructor does little else than to copy containers is copied with all that is in it. The constructor is named where several
//! functions copy such objects.
//!
//! The gain is that of all that making the copies costs: memory for them, its page faults, the strings in it. Of what releasing memory
//! costs, they have the part that they have of taking memory.

use stepscope_model::StackId;

use super::{copied_texts, releases, thrown_away};
use crate::Function;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
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

/// How much a change may gain, as a multiple of what the copies cost.
const COLD: f64 = 1.3;
const COLD_WHY: &str = "The gain may be a third larger: code that works on a fresh copy waits for memory, which the original has in the caches.";

pub(super) struct Copies;

impl Kind for Copies {
    fn name(&self) -> &'static str {
        "copies-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
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
        let mut found = copies(seen);
        let is_known = |one: &Found, found: &[Found]| found.iter().any(|other| other.function == one.function);
        let texts: Vec<Found> = copied_texts::found(seen).into_iter().filter(|one| !is_known(one, &found)).collect();
        found.extend(texts);
        found
    }
}

/// Containers and objects that are copied all the time.
fn copies(seen: &Seen<'_, '_>) -> Vec<Found> {
    let copies = copies_elements(seen);
    let in_python = seen.paths_through(copies_in_python);
    let of_nodes = seen.paths_through(copies_nodes);
    let objects = copied_objects(seen, &copies);
    let is_copy = |stack: StackId| {
        let index = stack.index();
        copies[index] || in_python[index] || of_nodes[index] || objects[index].is_some()
    };
    let has_one_user: Vec<(FunctionId, bool)> = users_of_objects(seen, &objects);
    // An object that several functions copy is one finding.
    let object = |stack: StackId| objects[stack.index()].filter(|one| has_one_user.contains(&(*one, false)));
    let user_of = |stack: StackId| object(stack).or_else(|| user_of(seen, stack));
    let user = |stack: StackId| is_copy(stack).then(|| user_of(stack)).flatten();
    let (making, releasing) = (makes_copies(seen, is_copy), releases::stacks(seen));
    let large = seen.by_function(user).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
    let is_of = |owner: FunctionId| {
        let (user, user_of, making) = (&user, &user_of, &making);
        move |stack: StackId| {
            let is_made = making[stack.index()] && is_of_copy(seen.work[stack.index()]);
            user(stack) == Some(owner) || (is_made && user_of(stack) == Some(owner))
        }
    };
    // What is copied for each item of a batch, and not kept.
    let is_copied_again =
        |owner: FunctionId| seen.is_in_pieces(is_of(owner)) && thrown_away::is_used_again(seen, is_of(owner));
    large
        .filter(|(owner, _)| seen.is_steady(|stack| user(stack) == Some(*owner)) || is_copied_again(*owner))
        .map(|(owner, amount)| {
            let title = match has_one_user.contains(&(owner, false)) {
                true => {
                    format!("`{}` copies objects with all that is in them {}", seen.name(owner), seen.repeatedly())
                }
                false => format!("`{}` copies a container {}", seen.name(owner), seen.repeatedly()),
            };
            let without = releases::with_their_part(seen, is_of(owner), &releasing);
            let text =
                format!("Making the copies takes {} of the CPU time, all the time.", percent(seen.share(amount)));
            let found = Found::of(seen, owner, title, without).sure(Confidence::Fair);
            found.because(text, explain(seen, owner)).up_to(COLD, COLD_WHY, explain(seen, owner))
        })
        .collect()
}

/// One flag per stack: whether a finding of this kind takes it away. What is copied is no allocation of its own.
pub(super) fn stacks(seen: &Seen<'_, '_>) -> Vec<bool> {
    let found = if seen.is_loading() { Vec::new() } else { copies(seen) };
    (0..seen.capture().stacks.len()).map(|index| found.iter().any(|one| one.without[index] == 1.0)).collect()
}

/// Least part of a constructor's cost for copying elements, and for all that copies take.
const COPIES_ELEMENTS: f64 = 0.03;
const IS_COPY: f64 = 0.85;

/// Of each stack the outermost owned constructor on it that does little else than to copy containers: it copies an object with all that is
/// in it.
fn copied_objects(seen: &Seen<'_, '_>, copies: &[bool]) -> Vec<Option<FunctionId>> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let large = seen.inclusive().into_iter().filter(|(_, all)| seen.share(*all) >= LEAST);
    let constructors = large.filter(|(id, _)| is_constructor(&own_name(seen.name(*id))));
    let copy = constructors.filter(|(constructor, all)| {
        let under = seen.under(*constructor);
        let of_copy = seen.sum(|stack| under[stack.index()] && is_of_copy(seen.work[stack.index()]));
        let of_elements = seen.sum(|stack| under[stack.index()] && copies[stack.index()]);
        let is_copy = of_copy.weight as f64 >= IS_COPY * all.weight as f64;
        is_copy && of_elements.weight as f64 >= COPIES_ELEMENTS * all.weight as f64
    });
    let copy: Vec<FunctionId> = copy.map(|(id, _)| id).collect();
    let mut outermost: Vec<Option<FunctionId>> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let own = Some(functions.of_node(capture, StackId::from_index(index))).filter(|id| copy.contains(id));
        outermost.push(node.parent.and_then(|parent| outermost[parent.index()]).or(own));
    }
    outermost
}

/// Constructors that copy objects, and the destructors of these: what they take and release is the cost of copies.
pub(super) fn of_objects(seen: &Seen<'_, '_>) -> Vec<FunctionId> {
    let objects = copied_objects(seen, &copies_elements(seen));
    let mut constructors: Vec<FunctionId> = objects.into_iter().flatten().collect();
    constructors.sort_unstable();
    constructors.dedup();
    let classes: Vec<String> = constructors.iter().filter_map(|one| class_of(&own_name(seen.name(*one)))).collect();
    let is_of_class = |function: &Function| {
        let own = own_name(&function.name);
        classes.iter().any(|class| {
            own.strip_prefix(class.as_str())
                .is_some_and(|rest| rest.strip_prefix("::~").is_some_and(|name| class.ends_with(name)))
        })
    };
    let destructors =
        seen.functions().all().filter(|(id, function)| seen.functions().is_owner(*id) && is_of_class(function));
    constructors.extend(destructors.map(|(id, _)| id));
    constructors
}

/// The class of a constructor.
fn class_of(own: &str) -> Option<String> {
    own.rsplit_once("::").map(|(class, _)| class.to_owned())
}

/// One flag per stack: whether elements of a container are copied there, to make a container of them.
fn copies_elements(seen: &Seen<'_, '_>) -> Vec<bool> {
    let makes = seen.paths_through(|function| !function.owned && MAKES.contains(&last_part(&function.name).as_str()));
    let grows = seen
        .paths_through(|function| !function.owned && GROWS.iter().any(|part| own_name(&function.name).contains(part)));
    let copies = |(index, (makes, grows)): (usize, (&bool, &bool))| seen.work[index] == Work::Copy && *makes && !*grows;
    makes.iter().zip(&grows).enumerate().map(copies).collect()
}

/// Whether a function copies a map or a set, node by node.
fn copies_nodes(function: &Function) -> bool {
    let own = own_name(&function.name);
    let last = last_part(&own);
    let of_tree = own.contains("_Rb_tree") && last == "_M_copy";
    !function.owned && own.starts_with("std::") && (of_tree || (own.contains("_Hashtable") && last == "_M_assign"))
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

/// Least part of an object's copies that one function makes, if it is the one to change.
const OF_USER: f64 = 0.8;

/// The constructors that copy objects, and whether nearly all of it is for one function.
fn users_of_objects(seen: &Seen<'_, '_>, objects: &[Option<FunctionId>]) -> Vec<(FunctionId, bool)> {
    let mut constructors: Vec<FunctionId> = objects.iter().flatten().copied().collect();
    constructors.sort_unstable();
    constructors.dedup();
    let has_one = |constructor: FunctionId| {
        let users = seen.by_function(|stack| {
            objects[stack.index()].filter(|one| *one == constructor).and_then(|_| user_of(seen, stack))
        });
        let all: u128 = users.iter().map(|(_, amount)| amount.weight).sum();
        users.first().is_some_and(|(_, most)| most.weight as f64 >= OF_USER * all as f64)
    };
    constructors.into_iter().map(|one| (one, has_one(one))).collect()
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

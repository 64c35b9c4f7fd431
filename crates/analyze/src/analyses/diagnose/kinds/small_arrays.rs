//! NumPy is called for arrays of a few numbers, again and again; and long lists are made into arrays, again and again.
//!
//! Evidence: NumPy's code below one Python function takes much, and hardly any of that is arithmetic: it looks for types,
//! checks arguments and makes arrays. With large arrays, nearly all of it is arithmetic or copying. Look-alikes: few calls.
//!
//! To make an array of a list, NumPy looks at each element twice: for its type, and to convert it. Of a list of a few numbers, a good part of the
//! time is spent around that; of a long one, next to none. `tolist` is the way back, and as costly.

use stepscope_model::StackId;

use crate::Function;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;

/// Least share of CPU time.
const LEAST: f64 = 10.0;

/// Most of it that may be arithmetic.
const ARITHMETIC: f64 = 0.15;

/// Beginnings of NumPy's functions that work on the elements, by their type.
const OF_TYPES: [&str; 22] = [
    "BOOL_",
    "BYTE_",
    "UBYTE_",
    "SHORT_",
    "USHORT_",
    "INT_",
    "UINT_",
    "LONG_",
    "ULONG_",
    "LONGLONG_",
    "ULONGLONG_",
    "HALF_",
    "FLOAT_",
    "DOUBLE_",
    "LONGDOUBLE_",
    "CFLOAT_",
    "CDOUBLE_",
    "OBJECT_",
    "_aligned_",
    "_contig_",
    "simd_",
    "npy_",
];

pub(super) struct SmallArrays;

impl Kind for SmallArrays {
    fn name(&self) -> &'static str {
        "small-arrays-each-step"
    }

    fn advice(&self) -> &'static str {
        "Put the numbers of all objects into one array and compute them with one call; for two or three numbers, use plain floats \
         (`math.hypot`, tuples)."
    }

    fn confirm(&self) -> &'static str {
        "Print the shape of the arrays there: a call costs a microsecond, as much as a thousand elements."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let in_numpy = seen.paths_through(is_numpy);
        if !in_numpy.contains(&true) {
            return Vec::new();
        }
        let (capture, functions) = (seen.capture(), seen.functions());
        let computes = |stack: StackId| {
            let leaf = functions.get(functions.of_node(capture, stack));
            let own = own_name(&leaf.name);
            let is_of_types = is_numpy(leaf) && OF_TYPES.iter().any(|start| own.starts_with(start));
            let is_of_others =
                ["libm.", "libmvec", "openblas", "libblas", "libmkl"].iter().any(|one| leaf.module.contains(one));
            is_of_types || is_of_others || own.starts_with("__mem") || own.starts_with("mem")
        };
        let converts = long_lists(seen);
        let is_call = |stack: StackId| in_numpy[stack.index()] && !converts[stack.index()];
        let caller = |stack: StackId| functions.attributed(stack).filter(|_| is_call(stack));
        let mut found = Vec::new();
        for (owner, amount) in seen.lasting_by(LEAST, caller) {
            let arithmetic = seen.sum(|stack| caller(stack) == Some(owner) && computes(stack));
            let part = arithmetic.weight as f64 / amount.weight.max(1) as f64;
            if part > ARITHMETIC {
                continue;
            }
            let title = format!("`{}` calls NumPy for arrays of a few numbers {}", seen.name(owner), seen.repeatedly());
            let stacks = (0..in_numpy.len()).map(StackId::from_index);
            let without = parts(stacks.map(|stack| caller(stack) == Some(owner)));
            let text = format!(
                "NumPy takes {} of the CPU time{}, and only {} of that is arithmetic: the rest are its calls.",
                percent(seen.share(amount)),
                seen.of_steps(),
                percent(100.0 * part)
            );
            let one = Found::of(seen, owner, title, without).sure(Confidence::Fair);
            found.push(one.because(text, explain(seen, owner)));
        }
        found
    }
}

pub(super) struct ListsToArrays;

/// Least share of CPU time of conversions.
const LEAST_OF_LISTS: f64 = 5.0;

/// Least part of the time of making an array that its elements take if the list is long: about 50 numbers.
const OF_ELEMENTS: f64 = 0.9;

/// NumPy's functions that Python calls for an array of something, or a list of an array.
const CONVERSIONS: [&str; 7] = [
    "array_array",
    "array_asarray",
    "array_asanyarray",
    "array_ascontiguousarray",
    "array_fromiter",
    "PyArray_FromAny",
    "array_tolist",
];

/// Those that go from element to element.
const ELEMENTS: [&str; 7] = [
    "PyArray_DiscoverDTypeAndShape_Recursive",
    "PyArray_AssignFromCache_Recursive",
    // Before NumPy 1.20.
    "discover_dimensions",
    "setArrayFromSequence",
    "PyArray_DTypeFromObjectHelper",
    "PyArray_FromIter",
    "recursive_tolist",
];

impl Kind for ListsToArrays {
    fn name(&self) -> &'static str {
        "lists-to-arrays-each-step"
    }

    fn advice(&self) -> &'static str {
        "Keep the numbers in an array and write into it, or keep the result, such as a sum, and add what is new."
    }

    fn confirm(&self) -> &'static str {
        "Print the length of the list there, and how much of it is new since the last time."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let converts = long_lists(seen);
        if seen.is_loading() || !converts.contains(&true) {
            return Vec::new();
        }
        let back = seen.paths_through(|function| is_numpy(function) && own_name(&function.name) == "array_tolist");
        let caller = |stack: StackId| seen.functions().attributed(stack).filter(|_| converts[stack.index()]);
        let lasting = seen.lasting_by(LEAST_OF_LISTS, caller);
        let found = lasting.map(|(owner, amount)| {
            let to_list = seen.sum(|stack| caller(stack) == Some(owner) && back[stack.index()]);
            let does = match to_list.weight * 2 > amount.weight {
                true => "makes lists of long arrays",
                false => "makes arrays of long lists",
            };
            let title = format!("`{}` {does} {}", seen.name(owner), seen.repeatedly());
            let text = format!(
                "Converting their elements takes {} of the CPU time{}.",
                percent(seen.share(amount)),
                seen.of_steps()
            );
            let without = parts((0..converts.len()).map(|index| caller(StackId::from_index(index)) == Some(owner)));
            Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner))
        });
        found.collect()
    }
}

/// One flag per stack: whether a function makes arrays of long lists there, or the other way round.
fn long_lists(seen: &Seen<'_, '_>) -> Vec<bool> {
    let through = |names: &'static [&str]| {
        seen.paths_through(|function| is_numpy(function) && names.contains(&&*own_name(&function.name)))
    };
    let (conversions, elements) = (through(&CONVERSIONS), through(&ELEMENTS));
    let converter = |stack: StackId| seen.functions().attributed(stack).filter(|_| conversions[stack.index()]);
    let is_long = |(owner, amount): &(FunctionId, Amount)| {
        let of_elements = seen.sum(|stack| converter(stack) == Some(*owner) && elements[stack.index()]);
        of_elements.weight as f64 >= OF_ELEMENTS * amount.weight as f64
    };
    let owners: Vec<FunctionId> =
        seen.by_function(converter).into_iter().filter(is_long).map(|(owner, _)| owner).collect();
    let is_one = |stack: StackId| converter(stack).is_some_and(|owner| owners.contains(&owner));
    (0..conversions.len()).map(|index| is_one(StackId::from_index(index))).collect()
}

/// Whether a function is in NumPy's compiled code.
fn is_numpy(function: &Function) -> bool {
    !function.owned && function.module.contains("_multiarray_umath")
}

//! NumPy is called for arrays of a few numbers, again and again.
//!
//! Evidence: NumPy's code below one Python function takes much, and hardly any of that is arithmetic: it looks for types,
//! checks arguments and makes arrays. With large arrays, nearly all of it is arithmetic or copying. Look-alikes: few calls.

use stepscope_model::StackId;

use crate::Function;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::qualified_name::own_name;

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
        let caller = |stack: StackId| functions.attributed(stack).filter(|_| in_numpy[stack.index()]);
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

/// Whether a function is in NumPy's compiled code.
fn is_numpy(function: &Function) -> bool {
    !function.owned && function.module.contains("_multiarray_umath")
}

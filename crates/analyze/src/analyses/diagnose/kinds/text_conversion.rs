//! Values go through text: streams, `printf` and parsers of numbers take a large part of the time.
//!
//! Evidence: code of the standard library that formats and parses text, directly below an owned function. Look-alikes: a log
//! or a file that must be text. Text that is only written looks like one, so such findings are weak and have no gain.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::Seen;
use crate::query::frame_kind::undecorated;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use crate::query::work::Work;
use stepscope_model::StackId;

/// Least share below one function.
const LEAST: f64 = 5.0;

pub(super) struct TextConversion;

impl Kind for TextConversion {
    fn name(&self) -> &'static str {
        "values-through-text"
    }

    fn advice(&self) -> &'static str {
        "Copy values in their binary form, and convert once, where text is read or written. `std::from_chars` and \
         `std::to_chars` are cheaper than streams."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls against the values that are read or written: more calls than values confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let converts = |work: Work| work == Work::Formatting;
        let (there_and_back, writers) = (there_and_back(seen), writers(seen));
        let mut found = Vec::new();
        for (owner, amount) in seen.lasting(LEAST, converts) {
            let is_at = seen.is_at(owner, converts);
            let both = seen.sum(|stack| there_and_back[stack.index()] && is_at(stack));
            let phase = if seen.is_loading() { "while loading" } else { "all the time" };
            let text = format!("Streams, formatting and parsing take {} of the CPU time.", percent(seen.share(amount)));
            let one = if both.weight * 10 >= amount.weight {
                let title = format!("`{}` converts values to text or from text {phase}", seen.name(owner));
                Found::of(seen, owner, title, seen.without(owner, goes)).sure(Confidence::Fair)
            } else {
                let outside = seen.sum(|stack| is_at(stack) && !writers.iter().any(|one| one.under[stack.index()]));
                if seen.share(outside) < LEAST {
                    continue;
                }
                let title = format!("`{}` writes text {phase}; who reads it is not recorded", seen.name(owner));
                // A log has to be text.
                Found::of_program(title, None).about(Some(owner)).sure(Confidence::Weak)
            };
            found.push(one.because(text, explain(seen, owner)));
        }
        for Writer { function, amount, .. } in writers {
            let title = format!("`{}` writes text while loading; who reads it is not recorded", seen.name(function));
            let text = format!(
                "It takes {} of the CPU time with all it calls, most of it for text.",
                percent(seen.share(amount))
            );
            let one = Found::of_program(title, None).about(Some(function)).sure(Confidence::Weak);
            found.push(one.because(text, explain(seen, function)));
        }
        found.extend(in_python(seen));
        found
    }
}

/// Values that Python code writes as JSON, and reads back.
fn in_python(seen: &Seen<'_, '_>) -> Option<Found> {
    const WRITES: [&str; 2] = ["encoder_call", "encoder_listencode_obj"];
    const READS: [&str; 2] = ["scanner_call", "py_scanstring"];
    let (writes, reads) = (python::below(seen, &WRITES), python::below(seen, &READS));
    let [written, read] = [&writes, &reads].map(|at| seen.sum(|stack| at[stack.index()]).weight);
    let both: Vec<bool> = writes.iter().zip(&reads).map(|(writes, reads)| *writes || *reads).collect();
    let comes_back = written.min(read) * 10 >= written.max(read);
    python::found(seen, &both, LEAST, "converts values to text and back all the time", python::IN_CPYTHON)
        .filter(|_| comes_back)
}

/// Streams are created, filled and released: their memory and strings go with them.
fn goes(work: Work) -> bool {
    matches!(work, Work::Formatting | Work::Text | Work::Allocation | Work::Copy)
}

/// One flag per stack: whether values come back from text, or a stream is made for one.
fn there_and_back(seen: &Seen<'_, '_>) -> Vec<bool> {
    const PARTS: [&str; 9] = [
        "std::basic_istream",
        "std::istream",
        "std::basic_istringstream",
        "std::basic_stringstream",
        "std::basic_ostringstream",
        "std::basic_stringbuf",
        "std::basic_ios",
        "std::locale",
        "std::num_get",
    ];
    let streams = below_owner(seen, |name| PARTS.iter().any(|part| name.starts_with(part)));
    from_text(seen).into_iter().zip(streams).map(|(from_text, stream)| from_text || stream).collect()
}

/// One flag per stack: whether a number is made from text.
pub(super) fn from_text(seen: &Seen<'_, '_>) -> Vec<bool> {
    const PARTS: [&str; 8] =
        ["std::num_get", "std::sto", "strto", "sscanf", "vsscanf", "vfscanf", "core::str::parse", "std::from_chars"];
    below_owner(seen, |name| PARTS.iter().any(|part| name.starts_with(part)) || parses_in_rust(name))
}

/// Whether a function of Rust's library makes a number from text. Without optimisation, `core::num` also has calls of arithmetic.
fn parses_in_rust(name: &str) -> bool {
    name.starts_with("core::num::") && ["dec2flt", "from_str", "from_ascii"].iter().any(|part| name.contains(part))
}

/// One flag per stack: whether such a function is between its leaf and its nearest owned function.
fn below_owner(seen: &Seen<'_, '_>, is_such: impl Fn(&str) -> bool) -> Vec<bool> {
    let functions = seen.functions();
    let is_part = |own: &str| {
        let own = own.replacen("std::__cxx11::", "std::", 1);
        let plain = undecorated(&own);
        is_such(&own) || is_such(plain)
    };
    let of_function: Vec<bool> = functions.all().map(|(_, function)| is_part(&own_name(&function.name))).collect();
    let mut flags: Vec<bool> = Vec::with_capacity(seen.capture().stacks.len());
    for (index, node) in seen.capture().stacks.iter().enumerate() {
        let id = functions.of_node(seen.capture(), StackId::from_index(index));
        let above = node.parent.is_some_and(|parent| flags[parent.index()]);
        flags.push(!functions.is_owner(id) && (above || of_function[id.index()]));
    }
    flags
}

/// Least part of a function's cost with all it calls that text is, if the function is for text, and that formatting is.
const MOSTLY: f64 = 0.5;
const FORMATTED: f64 = 0.15;

/// An owned function that is for writing text.
struct Writer {
    function: FunctionId,
    amount: Amount,
    /// One flag per stack: whether the function is on it.
    under: Vec<bool>,
}

/// In loading, the outermost owned functions that are for writing text.
fn writers(seen: &Seen<'_, '_>) -> Vec<Writer> {
    let mut found: Vec<Writer> = Vec::new();
    let costly = seen.inclusive().into_iter().filter(|(_, amount)| seen.is_loading() && seen.share(*amount) >= LEAST);
    for (function, amount) in costly {
        let under = seen.under(function);
        let part = |counts: &dyn Fn(Work) -> bool| {
            let part = seen.sum(|stack| under[stack.index()] && counts(seen.work[stack.index()]));
            part.weight as f64 / amount.weight as f64
        };
        let is_text = |work: Work| goes(work) || matches!(work, Work::ContainerGrowth | Work::GrowthMemory);
        let is_for_text = part(&|work| work == Work::Formatting) >= FORMATTED && part(&is_text) >= MOSTLY;
        if is_for_text && !found.iter().any(|outer| is_inside(&under, &outer.under)) {
            found.push(Writer { function, amount, under });
        }
    }
    found
}

fn is_inside(inner: &[bool], outer: &[bool]) -> bool {
    inner.iter().zip(outer).all(|(inner, outer)| !*inner || *outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rusts_functions_of_arithmetic_make_no_number_from_text() {
        let parses = |name: &str| parses_in_rust(&own_name(name));
        assert!(parses("core::num::dec2flt::dec2flt::<f64>"));
        assert!(parses("core::num::<impl core::str::traits::FromStr for i64>::from_str"));
        assert!(parses("core::num::<impl u32>::from_ascii_radix"));
        assert!(!parses("core::num::<impl usize>::checked_add"));
        assert!(!parses("core::num::<impl u16>::to_ne_bytes"));
    }
}

//! Values go through text: streams, `printf` and parsers of numbers take a large part of the time.
//!
//! Evidence: code of the standard library that formats and parses text, directly below an owned function. Look-alikes: a log
//! or a file that must be text. Text that is only written looks like one, so such findings are weak and have no gain. A program that writes
//! nothing, though it puts text together all the time, throws the text away.

use super::{file_reopened, library_calls};
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, is_one_of, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::frame_kind::undecorated;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use crate::query::work::Work;
use rustc_hash::FxHashMap;
use stepscope_model::{FrameKind, StackId};

/// Least share below one function, and that of Python code.
const LEAST: f64 = 5.0;
const LEAST_OF_PYTHON: f64 = 10.0;

/// Least share of a function that is for text, and least part of it that text is.
const LEAST_OF_FORMATTER: f64 = 1.0;
const IS_FORMATTER: f64 = 0.8;

/// Least text of the caller itself, as a part of what the function makes for it.
const OF_CALLER: f64 = 0.1;

pub(super) struct TextConversion;

impl Kind for TextConversion {
    fn name(&self) -> &'static str {
        "values-through-text"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Copy values in their binary form, and convert once, where text is read or written. In C++, `std::from_chars` and \
         `std::to_chars` are cheaper than streams."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls against the values that are read or written: more calls than values confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (there_and_back, writers) = (there_and_back(seen), writers(seen));
        let formatters = formatters(seen);
        let streams = seen.pieces.is_some().then(|| makes_streams(seen));
        let for_streams = streams.as_ref().and_then(|streams| for_streams(seen, streams));
        let user = |stack: StackId| {
            let within = for_streams.as_ref().filter(|(_, under)| under[stack.index()]).map(|(function, _)| *function);
            within.or_else(|| seen.owner(stack).map(|owner| user_of(&formatters, owner)))
        };
        // A parser of numbers that throws is another kind.
        let throwing = library_calls::EXCEPTIONS.stacks(seen);
        let opening = file_reopened::file_streams(seen);
        let is_text = |stack: StackId| {
            seen.work[stack.index()] == Work::Formatting && !throwing[stack.index()] && !opening[stack.index()]
        };
        let converter = |stack: StackId| user(stack).filter(|_| is_text(stack));
        let is_unwritten = is_unwritten(seen, seen.sum(|stack| converter(stack).is_some()));
        let mut found = Vec::new();
        let large = seen.by_function(converter).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        for (owner, amount) in large {
            let is_at = |stack: StackId| converter(stack) == Some(owner);
            // A batch may have to parse each text once; no value needs a stream of its own.
            let has_streams = |streams: &Vec<bool>| {
                let made = seen.sum(|stack| is_at(stack) && streams[stack.index()]);
                made.weight as f64 >= FOR_EACH * amount.weight as f64
                    && seen.is_in_pieces(is_at)
                    && !reads_lines(seen, owner, amount)
            };
            if !seen.is_loading() && !seen.is_steady(is_at) && !streams.as_ref().is_some_and(has_streams) {
                continue;
            }
            let of_owner = |index: usize| {
                let stack = StackId::from_index(index);
                user(stack) == Some(owner) && goes(seen.work[index]) && !throwing[index] && !opening[index]
            };
            let without = || parts((0..seen.work.len()).map(of_owner));
            let both = seen.sum(|stack| there_and_back[stack.index()] && is_at(stack));
            let phase = if seen.is_loading() { "while loading" } else { "all the time" };
            let text = format!("Streams, formatting and parsing take {} of the CPU time.", percent(seen.share(amount)));
            let one = if both.weight * 10 >= amount.weight {
                let title = format!("`{}` converts values to text or from text {phase}", seen.name(owner));
                Found::of(seen, owner, title, without()).sure(Confidence::Fair)
            } else if is_unwritten && !seen.is_loading() {
                let title =
                    format!("`{}` puts text together {phase}, and the program writes none of it", seen.name(owner));
                Found::of(seen, owner, title, without()).sure(Confidence::Fair)
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
        found.extend(unwritten_in_python(seen));
        found
    }
}

/// Least part of converting values that making and releasing streams is, if there is one for each value.
const FOR_EACH: f64 = 0.1;

/// Least part of converting values that reading lines is, if the values come from them.
const READ: f64 = 0.01;

/// Whether a function or its caller also reads lines or files: the text is new for each value.
fn reads_lines(seen: &Seen<'_, '_>, owner: FunctionId, amount: Amount) -> bool {
    const LINES: [&str; 4] =
        ["std::getline", "std::istream::getline", "std::basic_istream::getline", "std::basic_filebuf"];
    let lines = seen.paths_through(|function| is_one_of(function, &LINES));
    let of_owner = seen.under(owner);
    let under = seen.common_owner_above(owner, &of_owner).map_or(of_owner, |caller| seen.under(caller));
    let reads = |stack: StackId| lines[stack.index()] || seen.work[stack.index()] == Work::ReadFile;
    let reading = seen.sum(|stack| under[stack.index()] && reads(stack));
    reading.weight as f64 >= READ * amount.weight as f64
}

/// One flag per stack: whether a stream is made or released there.
fn makes_streams(seen: &Seen<'_, '_>) -> Vec<bool> {
    const STREAMS: [&str; 3] = ["std::basic_istringstream", "std::basic_ostringstream", "std::basic_stringstream"];
    const WITHIN: [&str; 5] = [
        "std::basic_ios::init",
        "std::basic_ios::imbue",
        "std::ios_base::ios_base",
        "std::ios_base::~ios_base",
        "std::locale::",
    ];
    below_owner(seen, |name| {
        STREAMS.iter().any(|class| {
            let Some(rest) = name.strip_prefix(class) else { return false };
            let function = rest.rsplit("::").next().unwrap_or_default();
            function.trim_start_matches('~') == &class["std::".len()..]
        }) || WITHIN.iter().any(|start| name.starts_with(start))
    })
}

/// The owned function that streams are made for, if a class or a function around streams makes them for several of its callees, and it does
/// little else than text with all it calls.
fn for_streams(seen: &Seen<'_, '_>, streams: &[bool]) -> Option<(FunctionId, Vec<bool>)> {
    let part = |under: &[bool], counts: &dyn Fn(Work) -> bool| {
        let all = seen.sum(|stack| under[stack.index()]).weight.max(1) as f64;
        seen.sum(|stack| under[stack.index()] && counts(seen.work[stack.index()])).weight as f64 / all
    };
    let maker = seen.common_owner(|stack| streams[stack.index()])?;
    let made = seen.under(maker);
    if part(&made, &goes) < IS_FORMATTER || seen.common_owner_above(maker, &made).is_some() {
        return None;
    }
    let user = seen.common_caller(maker, &made)?;
    let under = seen.under(user);
    let is_for_text = part(&under, &|work| work == Work::Formatting) >= FORMATTED && part(&under, &goes) >= MOSTLY;
    is_for_text.then_some((user, under))
}

/// Fewest samples of text that is put together, and the least part of their cost that writing it would take: a system call for each buffer.
const FEWEST: u64 = 100;
const WRITTEN: f64 = 0.01;

/// Whether text that costs this much leaves the program nowhere: nothing is written to files, pipes or sockets. A log at a level that is off
/// puts text together so.
fn is_unwritten(seen: &Seen<'_, '_>, formatted: Amount) -> bool {
    let has_kernel = || seen.functions().all().any(|(_, function)| function.kind == FrameKind::Kernel);
    let written = seen.sum(|stack| matches!(seen.work[stack.index()], Work::WriteFile | Work::Send));
    formatted.count >= FEWEST && (written.weight as f64) < WRITTEN * formatted.weight as f64 && has_kernel()
}

/// Text that Python code puts together and nobody writes.
fn unwritten_in_python(seen: &Seen<'_, '_>) -> Option<Found> {
    const FORMATS: [&str; 8] = [
        "PyObject_Format",
        "PyUnicode_Format",
        "unicode_format",
        "do_string_format",
        "float___format__",
        "long___format__",
        "_PyUnicode_JoinArray",
        "PyUnicode_Join",
    ];
    let at = python::below(seen, &FORMATS);
    let formatted = seen.sum(|stack| at[stack.index()]);
    let does = "puts text together all the time, and the program writes none of it";
    python::found(seen, &at, LEAST_OF_PYTHON, does, python::IN_CPYTHON).filter(|_| is_unwritten(seen, formatted))
}

/// Owned functions that are for text alone, such as an `operator<<`, each with the one function that calls it and makes text of it.
fn formatters(seen: &Seen<'_, '_>) -> Vec<(FunctionId, FunctionId)> {
    let text_of: FxHashMap<FunctionId, Amount> = seen.by_owner(goes).into_iter().collect();
    let costly = seen.inclusive().into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST_OF_FORMATTER);
    let for_one = costly.filter_map(|(function, all)| {
        let text = text_of.get(&function).filter(|text| text.weight as f64 >= IS_FORMATTER * all.weight as f64)?;
        let caller = seen.common_owner_above(function, &seen.under(function))?;
        let of_caller = text_of.get(&caller).copied().unwrap_or_default();
        (of_caller.weight as f64 >= OF_CALLER * text.weight as f64).then_some((function, caller))
    });
    for_one.collect()
}

/// The function that a formatter works for; any other function itself.
fn user_of(formatters: &[(FunctionId, FunctionId)], function: FunctionId) -> FunctionId {
    let mut user = function;
    // Formatters may call each other.
    for _ in 0..formatters.len() {
        let Some((_, caller)) = formatters.iter().find(|(formatter, _)| *formatter == user) else { break };
        user = *caller;
    }
    user
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
        .or_else(|| parsed_in_python(seen, &reads))
}

/// Values that Python code reads from JSON in steps that also open files: a file that is parsed again.
fn parsed_in_python(seen: &Seen<'_, '_>, reads: &[bool]) -> Option<Found> {
    seen.loops.as_ref()?;
    let in_module = python::below_files(seen, &["/json/__init__.py", "/json/decoder.py"]);
    let at: Vec<bool> = reads.iter().zip(&in_module).map(|(reads, in_module)| *reads || *in_module).collect();
    let opening = python::below(seen, &["_io_open", "_io_open_impl"]);
    let opens = seen.is_steady(|stack| opening[stack.index()]);
    let does = "reads values from JSON all the time, and opens a file for them";
    python::found(seen, &at, LEAST_OF_PYTHON, does, python::IN_CPYTHON).filter(|_| opens)
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

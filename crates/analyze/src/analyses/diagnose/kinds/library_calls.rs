//! Library functions that cost much below one owned function in every step: sorting, heaps, exceptions, dynamic
//! casts, clocks, patterns that are compiled, generators that are seeded.
//!
//! Evidence: the part of the steps' CPU time below such a function, all the time, with the owned function that calls it. Without steps, a larger part
//! in many [pieces](super::super::pieces) is enough.
//! Each has its own look-alikes.

use stepscope_model::StackId;

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, YIELDING_FUNCTIONS, is_one_of, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::{Function, FunctionId};
use crate::query::weights::Amount;

/// A group of library functions.
pub(super) struct LibraryCalls {
    name: &'static str,
    in_library: InLibrary,
    /// What the owned function does, after its name.
    does: &'static str,
    /// What costs, at the start of a sentence.
    subject: &'static str,
    advice: &'static str,
    confirm: &'static str,
    /// Least share of the CPU time of steps.
    least: f64,
    /// The same of a part of a run without steps.
    least_in_part: f64,
    /// Least time per step in ns: a clock that is read once a step is no defect, however short the step.
    least_ns: f64,
    /// Whether it is of this kind with this share of the CPU time in percent, which is this part of the caller's time; `None` where
    /// that does not matter.
    applies: Option<fn(f64, f64) -> bool>,
    /// Beginnings of the functions' names.
    functions: &'static [&'static str],
    /// Beginnings of the names of functions between two of these calls, which count, too, where these calls are at least a small part.
    between: &'static [&'static str],
    /// Functions of CPython that do the same.
    of_python: &'static [&'static str],
    /// Ends of the names of files of Python's library that do.
    python_files: &'static [&'static str],
    effects: &'static [&'static str],
}

/// A sequence is sorted again in every step. Looks alike: data that is new in every step. Samples do not show which, so only sorting that is
/// [most of the work](MOSTLY_SORTS) has a gain.
pub(super) static SORT: LibraryCalls = LibraryCalls {
    name: "sort-each-step",
    in_library: InLibrary::InItsCode,
    does: "sorts",
    subject: "Sorting takes",
    advice: "Keep it sorted and insert in place, use a heap, or select the few that are needed without sorting all (`nth_element`, `heapq.nsmallest`).",
    confirm: "Count what changes its place from step to step.",
    least: 5.0,
    least_in_part: 10.0,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "std::sort",
        "std::stable_sort",
        "std::partial_sort",
        "std::ranges::sort",
        "std::ranges::__sort_fn",
        "std::__sort",
        "std::__introsort",
        "std::__stable_sort",
        "std::__merge_sort",
        "std::__inplace_stable_sort",
        "std::__final_insertion_sort",
        "std::list::sort",
        "qsort",
        "__qsort",
        "msort_with_tmp",
        "core::slice::sort::",
        "alloc::slice::stable_sort",
        "core::slice::<impl [T]>::sort",
        "alloc::slice::<impl [T]>::sort",
    ],
    between: &[],
    of_python: &["list_sort", "list_sort_impl"],
    python_files: &[],
    effects: &["text-compared-each-step"],
};

/// Least share of sorting in the CPU time of steps, in percent, from which less of it is the likely change.
const MOSTLY_SORTS: f64 = 40.0;
const MAY_BE_NEW: &str = "What changes its place is not known: data that is new in each step has to be sorted. `diagnose --deepen` shows calls that change nothing.";

/// A heap of all elements is made again, for few that have changed. Looks alike: a heap of data that is new, of which few elements are taken.
pub(super) static HEAPS: LibraryCalls = LibraryCalls {
    name: "heap-made-again",
    in_library: InLibrary::InItsCode,
    does: "makes a heap of all elements again",
    subject: "Making heaps takes",
    advice: "Add the element with its new key, and drop the old one when it is taken (its key is no longer the element's); \
             or keep each element's position in the heap, and move that one alone (`std::set`, an indexed heap).",
    confirm: "Count how many keys have changed since the heap was made before.",
    least: 8.0,
    least_in_part: 12.0,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "std::make_heap",
        "std::__make_heap",
        "std::ranges::make_heap",
        "std::ranges::__make_heap_fn",
        "alloc::collections::binary_heap::BinaryHeap<T>::rebuild",
        "alloc::collections::binary_heap::BinaryHeap<T,A>::rebuild",
    ],
    between: &[],
    of_python: &["heapify_internal", "_heapq_heapify", "_heapq_heapify_impl"],
    python_files: &[],
    effects: &["list-search"],
};

/// Exceptions are part of the usual way. Looks alike: errors that are real.
pub(super) static EXCEPTIONS: LibraryCalls = LibraryCalls {
    name: "exceptions-each-step",
    in_library: InLibrary::InItsCode,
    does: "throws exceptions",
    subject: "Throwing and catching take",
    advice: "Return what is missing as a value (`std::optional`, `None`, a code), and ask before you look it up (`find`, `dict.get`).",
    confirm: "Count them: a breakpoint on `__cxa_throw`; in Python, a counter where they are caught.",
    least: 3.0,
    least_in_part: 5.0,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "__cxa_allocate_exception",
        "_Unwind_Resume",
        "_Unwind_RaiseException",
    ],
    between: &[],
    of_python: &[
        "PyTraceBack_Here",
        "tb_dealloc",
        "do_raise",
        "_PyErr_SetObject",
        "PyErr_SetObject",
        "PyErr_Format",
        "_PyErr_Format",
        "_PyErr_FormatV",
        "_PyErr_SetKeyError",
        "_PyErr_NormalizeException",
        "PyErr_GivenExceptionMatches",
        "BaseException_new",
        "BaseException_dealloc",
    ],
    python_files: &[],
    effects: &["allocations-each-step", "text-compared-each-step"],
};

/// Functions of the C++ library that cast to find how a stream writes and reads numbers.
const FACETS: [&str; 4] = ["std::use_facet", "std::has_facet", "std::__try_use_facet", "std::locale"];

/// Types are asked for at run time. Looks alike: nothing; the cost is that of the casts.
pub(super) static CASTS: LibraryCalls = LibraryCalls {
    name: "dynamic-casts-each-step",
    in_library: InLibrary::InItsCode,
    does: "casts dynamically",
    subject: "`dynamic_cast` takes",
    advice: "Keep the objects of each type apart, ask a virtual function or a number for the type, or cast once and keep the pointer.",
    confirm: "Count the casts of one step: `diagnose --deepen` counts the calls of the function.",
    least: 5.0,
    least_in_part: 5.0,
    least_ns: 0.0,
    applies: None,
    functions: &["__dynamic_cast"],
    between: &[],
    of_python: &[],
    python_files: &[],
    effects: &["text-compared-each-step"],
};

/// Least part of a wait for a time that is reading the clock; the rest is giving the CPU to others.
const LEAST_OF_CLOCK: f64 = 0.04;

/// Functions that read the clock.
const CLOCK_FUNCTIONS: &[&str] = &[
    "__vdso_clock_gettime",
    "__vdso_gettimeofday",
    "__kernel_clock_gettime",
    "clock_gettime",
    "__clock_gettime",
    "gettimeofday",
    "std::chrono::_V2::steady_clock::now",
    "std::chrono::_V2::system_clock::now",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
];

/// How much reading the clock may gain, as a multiple of its own time.
const SLOWS: f64 = 1.5;
const SLOWS_WHY: &str = "The gain may be half as large again: the CPU finishes all earlier work before it reads the clock, which other code pays for.";

/// Whether a function that reads the clock waits for a time: it takes much, and does little else.
fn awaits_time(share: f64, part: f64) -> bool {
    share >= 30.0 && part >= 0.8
}

/// The clock is read for each item. Looks alike: a loop that waits for a time.
pub(super) static CLOCKS: LibraryCalls = LibraryCalls {
    name: "clock-read-often",
    in_library: InLibrary::Alike,
    does: "reads the clock again and again",
    subject: "Reading the clock takes",
    advice: "Read it once a step and pass the time on.",
    confirm: "Count the reads: `diagnose --deepen` counts the calls of the function.",
    least: 5.0,
    least_in_part: 5.0,
    least_ns: 2_000.0,
    applies: Some(|share, part| !awaits_time(share, part)),
    functions: CLOCK_FUNCTIONS,
    between: &[],
    of_python: &[],
    python_files: &[],
    effects: &[],
};

/// A function reads the clock until it is time. Looks alike: a function that only takes times, for each of many items.
pub(super) static TIME_AWAITED: LibraryCalls = LibraryCalls {
    name: "busy-wait-for-time",
    in_library: InLibrary::Alike,
    does: "waits in a loop that reads the clock, again and again",
    subject: "Reading the clock, and giving the CPU to others until the next look, take",
    advice: "If the loop keeps a pace, sleep until the time (`clock_nanosleep`, `std::this_thread::sleep_until`): the CPU is free \
             for others. For simulation as fast as possible, leave the wait out.",
    confirm: "See its source: a loop around a clock. Without it, the step takes its work alone.",
    least: 30.0,
    least_in_part: 30.0,
    least_ns: 2_000.0,
    applies: Some(awaits_time),
    functions: CLOCK_FUNCTIONS,
    between: YIELDING_FUNCTIONS,
    of_python: &[],
    python_files: &[],
    effects: &["clock-read-often", "busy-wait"],
};

/// A regular expression is compiled for each use. Looks alike: patterns that come from outside.
pub(super) static PATTERNS: LibraryCalls = LibraryCalls {
    name: "pattern-compiled-each-step",
    in_library: InLibrary::AskedFor,
    does: "compiles a regular expression",
    subject: "Compiling and releasing it take",
    advice: "Compile it once and keep it: a member, a constant, a `static`; or compare texts without a pattern.",
    confirm: "Count the compilations of one step: `diagnose --deepen` counts the calls of the function.",
    least: 3.0,
    least_in_part: 5.0,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "std::__detail::_Compiler",
        "std::__detail::_Scanner",
        "std::__cxx11::basic_regex",
        "std::basic_regex",
        "boost::basic_regex::assign",
        "boost::re_detail",
        "regcomp",
        "__regcomp",
        "re_compile_internal",
        "pcre_compile",
        "pcre2_compile",
        "re2::RE2::Init",
        "re2::RE2::RE2",
        "regex::builders::",
        "regex::regex::string::Regex::new",
        "regex::regex::bytes::Regex::new",
        "regex_automata::meta::regex::Builder::build",
    ],
    between: &[],
    of_python: &["_sre_compile_impl", "_sre_compile"],
    python_files: &["/re/_compiler.py", "/re/_parser.py", "/sre_compile.py", "/sre_parse.py"],
    effects: &["allocations-each-step", "text-compared-each-step", "dynamic-casts-each-step", "copies-each-step"],
};

/// A random generator is made for each use. Looks alike: streams that have to be independent.
pub(super) static GENERATORS: LibraryCalls = LibraryCalls {
    name: "generator-seeded-each-step",
    in_library: InLibrary::Alike,
    does: "seeds a random generator",
    subject: "Seeding takes",
    advice: "Keep one generator for each thread. If each item needs its own stream, use one with a small state.",
    confirm: "Count the seeds of one step: `diagnose --deepen` counts the calls of the function.",
    least: 5.0,
    least_in_part: 5.0,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "std::mersenne_twister_engine::seed",
        "std::mersenne_twister_engine::mersenne_twister_engine",
        "std::subtract_with_carry_engine::seed",
        "std::random_device::random_device",
        "std::random_device::_M_init",
        "std::seed_seq::generate",
        "srand",
        "srandom",
        "__srandom",
        "__srandom_r",
        "rand_core::SeedableRng::",
        "rand_core::seedable_rng::SeedableRng::",
    ],
    between: &[],
    of_python: &["random_seed", "init_by_array", "_random_Random_seed"],
    python_files: &[],
    effects: &[],
};

/// Text such as XML, JSON or YAML is parsed for each use. Looks alike: messages from outside.
pub(super) static PARSERS: LibraryCalls = LibraryCalls {
    name: "parsed-each-step",
    in_library: InLibrary::AskedFor,
    does: "parses XML, JSON or YAML",
    subject: "Parsing and what it builds take",
    advice: "Parse it once, keep what comes of it, and copy or reset that.",
    confirm: "Count the texts and how many differ: the same text again and again confirms it.",
    least: 5.0,
    least_in_part: NEVER,
    least_ns: 0.0,
    applies: None,
    functions: &[
        "tinyxml2::XMLDocument::Parse",
        "tinyxml2::XMLDocument::LoadFile",
        "TiXmlDocument::Parse",
        "TiXmlDocument::LoadFile",
        "pugi::xml_document::load",
        "rapidxml::xml_document",
        "xmlParse",
        "xmlReadMemory",
        "xmlReadFile",
        "xmlReadDoc",
        "xmlCtxtRead",
        "XML_Parse",
        "YAML::Load",
        "YAML::Parser",
        "yaml_parser_load",
        "rapidjson::GenericDocument::Parse",
        "rapidjson::GenericReader::Parse",
        "nlohmann::json_abi_v3_11_2::detail::parser",
        "nlohmann::json_abi_v3_11_3::detail::parser",
        "nlohmann::json_abi_v3_12_0::detail::parser",
        "nlohmann::detail::parser",
        "nlohmann::basic_json::parse",
        "simdjson::",
        "Json::Reader",
        "Json::CharReader",
        "serde_json::de::",
        "serde_json::from_",
        "serde_yaml::from_",
        "toml::from_str",
        "quick_xml::",
        "roxmltree::",
        "mj_loadXML",
        "mj_parseXML",
        "mj_compile",
        "urdf::parse",
        "sdf::readFile",
        "sdf::readString",
        "sdf::Root::Load",
        "pybullet_loadURDF",
        "pybullet_loadSDF",
        "pybullet_loadMJCF",
    ],
    between: &[],
    of_python: &["pyexpat_xmlparser_Parse"],
    python_files: &[],
    effects: &[
        "values-through-text",
        "text-parsed-each-step",
        "allocations-each-step",
        "text-compared-each-step",
        "text-keys-each-step",
    ],
};

/// Each text of a batch may be another one: that parsing comes back shows nothing.
const NEVER: f64 = f64::INFINITY;

impl Kind for LibraryCalls {
    fn name(&self) -> &'static str {
        self.name
    }

    fn in_library(&self) -> InLibrary {
        self.in_library
    }

    fn advice(&self) -> &'static str {
        self.advice
    }

    fn confirm(&self) -> &'static str {
        self.confirm
    }

    fn effects(&self) -> &'static [&'static str] {
        self.effects
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let steps = seen.steps().map(|(steps, _)| steps as f64);
        let callers = self.callers(seen);
        let large = seen.by_function(|stack| callers[stack.index()]).into_iter().filter(|(_, amount)| {
            let is_long = |steps: f64| amount.weight as f64 / steps >= self.least_ns || !seen.is_timed();
            seen.share(*amount) >= self.least && steps.is_none_or(is_long)
        });
        let of_kind = large.filter(|(caller, amount)| {
            self.reads_clock(seen, *caller, *amount)
                && self
                    .applies
                    .is_none_or(|applies| applies(seen.share(*amount), part_of_its_work(seen, *caller, *amount)))
        });
        let is_at = |caller: FunctionId| {
            let callers = &callers;
            move |stack: StackId| callers[stack.index()] == Some(caller)
        };
        let in_part = |caller: FunctionId, amount: Amount| {
            seen.share(amount) >= self.least_in_part && seen.is_in_pieces(is_at(caller))
        };
        let lasting = of_kind.filter(|(caller, amount)| seen.is_steady(is_at(*caller)) || in_part(*caller, *amount));
        let at = self.in_python(seen);
        let in_python = python::recurring(seen, &at, (self.least, self.least_in_part), &self.does(seen), self.subject)
            .map(|found| {
                let share = seen.share(seen.sum(|stack| at[stack.index()]));
                self.with_doubt(found, share, "show --view hotspots --sort inclusive")
            });
        lasting
            .map(|(caller, amount)| {
                let title = format!("`{}` {}", seen.name(caller), self.does(seen));
                let without = parts(callers.iter().map(|one| *one == Some(caller)));
                let found = Found::of(seen, caller, title, without).sure(Confidence::Fair).because(
                    format!("{} {} of the CPU time{}.", self.subject, percent(seen.share(amount)), seen.of_steps()),
                    explain(seen, caller),
                );
                let found = with_caller_of_wrapper(seen, found, caller, amount);
                let found = self.with_doubt(found, seen.share(amount), &explain(seen, caller));
                if self.name == CLOCKS.name { found.up_to(SLOWS, SLOWS_WHY, explain(seen, caller)) } else { found }
            })
            .chain(in_python)
            .collect()
    }
}

/// The part of a function's time that these calls are. A wrapper does nothing else, but waits for nothing: if its machine code shows that
/// neither it nor its caller calls again and again alone, it is the part of its caller's time. Several callers of a wrapper without
/// a loop each have work of their own.
fn part_of_its_work(seen: &Seen<'_, '_>, caller: FunctionId, amount: Amount) -> f64 {
    let under = seen.under(caller);
    let part_of = |all: Amount| amount.weight as f64 / all.weight.max(1) as f64;
    let part = part_of(seen.sum(|stack| under[stack.index()]));
    match seen.common_owner_above(caller, &under).filter(|above| part >= WRAPPER && !may_wait(seen, &[caller, *above]))
    {
        Some(above) => {
            let under = seen.under(above);
            part_of(seen.sum(|stack| under[stack.index()]))
        }
        None if part >= WRAPPER && has_several_callers(seen, caller, &under) && !may_wait(seen, &[caller]) => 0.0,
        None => part,
    }
}

/// Least part of a wrapper's time below each of two callers.
const OF_CALLER: f64 = 0.1;

/// Whether two owned functions or more call a function, each for a good part of its time.
fn has_several_callers(seen: &Seen<'_, '_>, function: FunctionId, under: &[bool]) -> bool {
    let (capture, functions) = (seen.capture(), seen.functions());
    let caller_of = |stack: StackId| {
        let mut outer = capture.nodes_of(Some(stack)).filter(|node| !under[node.index()]);
        outer.find_map(|node| functions.attributed(node))
    };
    let callers = seen.by_function(|stack| if under[stack.index()] { caller_of(stack) } else { None });
    let all: u128 = callers.iter().map(|(_, amount)| amount.weight).sum();
    let large = callers
        .iter()
        .filter(|(caller, amount)| *caller != function && amount.weight as f64 >= OF_CALLER * all.max(1) as f64);
    large.count() >= 2
}

/// Whether one of these functions may wait where it calls the other, or the library. Without machine code it may.
fn may_wait(seen: &Seen<'_, '_>, functions: &[FunctionId]) -> bool {
    let capture = seen.capture();
    let waits = |stack: StackId| {
        let mut nodes = capture.nodes_of(Some(stack)).skip(1);
        nodes.any(|node| {
            let frame = capture.stacks[node.index()].frame;
            let is_one = functions.contains(&seen.functions().of_node(capture, node));
            is_one && !seen.no_waits.get(frame.index()).is_some_and(|no_wait| *no_wait)
        })
    };
    let under = seen.under(functions[0]);
    let (all, waiting) = (
        seen.sum(|stack| under[stack.index()]),
        seen.sum(|stack| under[stack.index()] && is_called(seen, stack, functions[0]) && waits(stack)),
    );
    waiting.weight * 10 > all.weight
}

/// Whether a stack ends in what a function calls.
fn is_called(seen: &Seen<'_, '_>, stack: StackId, function: FunctionId) -> bool {
    seen.functions().of_node(seen.capture(), stack) != function
}

/// Least part of the time of a function that does nothing but call the library.
const WRAPPER: f64 = 0.9;

/// A finding about a function that does little else, with the one function that calls it: that is where to change it.
fn with_caller_of_wrapper(seen: &Seen<'_, '_>, found: Found, wrapper: FunctionId, amount: Amount) -> Found {
    let under = seen.under(wrapper);
    let all = seen.sum(|stack| under[stack.index()]);
    let is_wrapper = amount.weight as f64 >= WRAPPER * all.weight as f64;
    match seen.common_owner_above(wrapper, &under).filter(|_| is_wrapper) {
        Some(caller) => {
            let text = format!("It does nothing else, and `{}` calls it.", seen.name(caller));
            found.because(text, explain(seen, caller))
        }
        None => found,
    }
}

impl LibraryCalls {
    /// Whether a function that gives its CPU to others waits for a time, and not for another thread.
    fn reads_clock(&self, seen: &Seen<'_, '_>, caller: FunctionId, amount: Amount) -> bool {
        if self.between.is_empty() {
            return true;
        }
        let reads = seen.paths_through(|function| is_one_of(function, self.functions));
        let under = seen.under(caller);
        let reading = seen.sum(|stack| under[stack.index()] && reads[stack.index()]);
        reading.weight as f64 >= LEAST_OF_CLOCK * amount.weight as f64
    }

    /// One flag per stack: whether CPython does it there. Lines that raise and catch exceptions do nothing else: they make a message, and release
    /// what the exception keeps.
    fn in_python(&self, seen: &Seen<'_, '_>) -> Vec<bool> {
        let mut at = python::below(seen, self.of_python);
        let of_files = python::below_files(seen, self.python_files);
        at.iter_mut().zip(&of_files).for_each(|(at, of_files)| *at |= of_files);
        if self.name == EXCEPTIONS.name {
            at.iter_mut().zip(&seen.raises).for_each(|(at, raises)| *at |= raises);
        }
        at
    }

    /// A finding of sorting that may be of new data, without a gain.
    fn with_doubt(&self, found: Found, share: f64, command: &str) -> Found {
        if self.name == SORT.name && share < MOSTLY_SORTS {
            found.because(MAY_BE_NEW, command).without_gain()
        } else {
            found
        }
    }

    /// What the owned function does, and when.
    fn does(&self, seen: &Seen<'_, '_>) -> String {
        match self.does {
            often if often.ends_with("again") => often.to_owned(),
            does => format!("{does} {}", seen.repeatedly()),
        }
    }

    /// One flag per stack: whether it is below such a function.
    pub fn stacks(&self, seen: &Seen<'_, '_>) -> Vec<bool> {
        self.callers(seen).into_iter().map(|caller| caller.is_some()).collect()
    }

    /// Of each node below such a function the owned function that calls it. An owned comparison within is part of the sort.
    fn callers(&self, seen: &Seen<'_, '_>) -> Vec<Option<FunctionId>> {
        let (capture, functions) = (seen.capture(), seen.functions());
        let is_one = |function: &Function| is_one_of(function, self.functions) || is_one_of(function, self.between);
        let flags: Vec<bool> = functions.all().map(|(_, function)| is_one(function)).collect();
        let mut callers: Vec<Option<FunctionId>> = Vec::with_capacity(capture.stacks.len());
        for (index, node) in capture.stacks.iter().enumerate() {
            let above = node.parent.and_then(|parent| callers[parent.index()]);
            let is_one = flags[functions.of_node(capture, StackId::from_index(index)).index()];
            let begins = || {
                let parent = node.parent.filter(|_| is_one)?;
                // A stream of the C++ library casts for itself.
                let is_of_stream = is_one_of(functions.get(functions.of_node(capture, parent)), &FACETS);
                functions.attributed(parent).filter(|_| !is_of_stream)
            };
            callers.push(above.or_else(begins));
        }
        callers
    }
}

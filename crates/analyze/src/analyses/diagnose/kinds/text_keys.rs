//! Something is looked up by its name in a map, in every step.
//!
//! Evidence: look-ups in maps and sets with texts as keys cost below one owned function in all parts of the steady phase. The
//! key is a text if the container's first template parameter is one, or if the look-ups compare texts. Look-alikes: names
//! that come from outside with each message, and have to be looked up once. Where the key is made for each look-up,
//! `allocations-each-step` has it, unless the look-ups themselves take 10 %, or the look-ups and a function of the program which makes the texts for them: then the
//! gain is that of both.

use stepscope_model::StackId;

use super::allocations;
use crate::Function;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 4.0;

/// The same where the text is made for the look-up.
const LEAST_WITH_KEYS: f64 = 10.0;

/// Least part of a function's look-ups that show a text.
const SHOWN: f64 = 0.3;

/// Beginnings of text types.
const TEXTS: [&str; 5] = [
    "std::__cxx11::basic_string<",
    "std::__1::basic_string<",
    "std::basic_string<",
    "std::string,",
    "std::basic_string_view<",
];

/// Beginnings of functions that compare texts, or make a hash of one.
const COMPARISONS: [&str; 13] = [
    "core::hash::Hasher::write_str",
    "core::slice::cmp::",
    "std::_Hash_bytes",
    "std::basic_string",
    "std::__cxx11::basic_string",
    "std::char_traits",
    "memcmp",
    "__memcmp",
    "strcmp",
    "__strcmp",
    "bcmp",
    "core::str::",
    "alloc::string::",
];

/// How much a change may gain, as a multiple of what the look-ups cost.
const COLD: f64 = 1.5;
const COLD_WHY: &str = "The gain may be half as large again: look-ups of texts leave caches and the branch predictor cold for the code after them.";

pub(super) struct TextKeys;

impl Kind for TextKeys {
    fn name(&self) -> &'static str {
        "text-keys-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Look each name up once and keep a pointer, an index or a number; give names numbers while loading."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls with `diagnose --deepen`: as many calls as there are names, in each step, confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let shows_text = below_owner(seen, |function| has_text_key(&function.name) || is_of_text(&function.name));
        let looks_up = |work: Work| work == Work::LookUp;
        let found = seen.lasting(LEAST, looks_up).filter_map(|(owner, amount)| {
            let at = seen.is_at(owner, looks_up);
            let shown = seen.sum(|stack| at(stack) && shows_text[stack.index()]);
            let helpers = helpers(seen, owner);
            let has_helper = helpers.contains(&true);
            let makes_keys = allocations::makes_keys(seen, owner) || has_helper;
            let of_owner = seen.is_at(owner, goes_with_keys);
            let goes = |stack: StackId| of_owner(stack) || helpers[stack.index()];
            let all = seen.sum(goes);
            // What the function itself allocates is another finding.
            let counts = if has_helper { all } else { amount };
            let is_large = !makes_keys || seen.share(counts) >= LEAST_WITH_KEYS;
            if (shown.weight as f64) < SHOWN * amount.weight as f64 || !is_large {
                return None;
            }
            let (name, when) = (seen.name(owner), seen.repeatedly());
            let share = percent(seen.share(amount));
            let detail = format!("Look-ups by text keys take {share} of the CPU time, all the time.");
            let found = if makes_keys {
                let title = format!("`{name}` looks up texts in a map {when}, and makes each text for it");
                let without = parts((0..helpers.len()).map(|index| goes(StackId::from_index(index))));
                Found::of(seen, owner, title, without).because(
                    format!("{detail} With the texts that are made for them it is {}.", percent(seen.share(all))),
                    explain(seen, owner),
                )
            } else {
                let title = format!("`{name}` looks up texts in a map {when}");
                Found::of(seen, owner, title, seen.without(owner, looks_up)).because(detail, explain(seen, owner))
            };
            Some(found.sure(Confidence::Fair).up_to(COLD, COLD_WHY, explain(seen, owner)))
        });
        found.collect()
    }
}

/// Least part of a helper's cost that is for the function, and that making texts is.
const FOR_OWNER: f64 = 0.9;
const MAKES_TEXTS: f64 = 0.8;

/// One flag per stack: whether it is in an owned function that makes texts for `owner`, and does nothing else.
fn helpers(seen: &Seen<'_, '_>, owner: FunctionId) -> Vec<bool> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let under_owner = seen.under(owner);
    let mut flags = vec![false; capture.stacks.len()];
    let large = seen.inclusive().into_iter().filter(|(one, all)| *one != owner && seen.share(*all) >= LEAST_OF_HELPER);
    for (helper, all) in large {
        let under = seen.under(helper);
        let calls_owner = capture
            .stacks
            .iter()
            .enumerate()
            .any(|(index, _)| under[index] && functions.of_node(capture, StackId::from_index(index)) == owner);
        let part = |at: &dyn Fn(StackId) -> bool| seen.sum(at).weight as f64 / all.weight.max(1) as f64;
        let of_owner = part(&|stack| under[stack.index()] && under_owner[stack.index()]);
        let of_texts = part(&|stack| under[stack.index()] && makes_text(seen.work[stack.index()]));
        if !calls_owner && of_owner >= FOR_OWNER && of_texts >= MAKES_TEXTS {
            flags.iter_mut().zip(&under).for_each(|(flag, under)| *flag |= under);
        }
    }
    flags
}

/// Least share of CPU time of such a function.
const LEAST_OF_HELPER: f64 = 2.0;

/// What making a text does.
fn makes_text(work: Work) -> bool {
    goes_with_keys(work) && work != Work::LookUp
}

/// Look-ups, and the texts that are made for them.
fn goes_with_keys(work: Work) -> bool {
    matches!(
        work,
        Work::LookUp
            | Work::Allocation
            | Work::ContainerGrowth
            | Work::GrowthMemory
            | Work::Text
            | Work::Formatting
            | Work::Copy
            | Work::Comparison
    )
}

/// One flag per stack: whether such a function is between its leaf and its nearest owned function.
fn below_owner(seen: &Seen<'_, '_>, is_one: impl Fn(&Function) -> bool) -> Vec<bool> {
    let (capture, functions) = (seen.capture(), seen.functions());
    let of_function: Vec<bool> = functions.all().map(|(_, function)| is_one(function)).collect();
    let mut flags: Vec<bool> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let id = functions.of_node(capture, StackId::from_index(index));
        let above = node.parent.is_some_and(|parent| flags[parent.index()]);
        flags.push(!functions.is_owner(id) && (above || of_function[id.index()]));
    }
    flags
}

/// Whether the first template parameter of a container is a text: `std::map<std::__cxx11::basic_string<char, ...>, int>`.
fn has_text_key(name: &str) -> bool {
    name.starts_with("std::")
        && name.split_once('<').is_some_and(|(_, parameters)| TEXTS.iter().any(|text| parameters.starts_with(text)))
}

fn is_of_text(name: &str) -> bool {
    let own = own_name(name);
    // Rust's `<DefaultHasher as Hasher>::write_str` and `<impl Hash for str>::hash`.
    let is_hash_of_text = name.ends_with("::write_str") || name.contains("Hash for str>");
    is_hash_of_text || COMPARISONS.iter().any(|start| own.starts_with(start))
}

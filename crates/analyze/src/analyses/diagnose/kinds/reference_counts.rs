//! References to shared objects are counted in every step.
//!
//! Evidence: samples within the functions of the standard libraries that count references (`std::shared_ptr`, `Arc`), below one
//! owned function, in all parts of the steady phase. The counter is an atomic number: threads that count references to one object take
//! its cache line from each other. What the last reference releases is not counted. Look-alikes: threads with objects of their own.

use std::collections::BTreeSet;

use stepscope_model::{StackId, ThreadId};

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::qualified_name::own_name;

/// Least share of CPU time.
const LEAST: f64 = 8.0;

/// Beginnings of names of functions that count.
const COUNTS: [&str; 13] = [
    "__gnu_cxx::__exchange_and_add",
    "__gnu_cxx::__atomic_add",
    "__gnu_cxx::__is_single_threaded",
    "std::_Sp_counted_base",
    "std::__shared_count",
    "std::__weak_count",
    "std::__shared_ptr::__shared_ptr",
    "std::__shared_ptr::~__shared_ptr",
    "std::shared_ptr::shared_ptr",
    "std::shared_ptr::~shared_ptr",
    "boost::detail::sp_counted_base",
    "boost::intrusive_ptr",
    "alloc::sync::Arc",
];

pub(super) struct ReferenceCounts;

impl Kind for ReferenceCounts {
    fn name(&self) -> &'static str {
        "references-counted-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Pass a reference or a plain pointer to what is only looked at, move what is handed on, and copy the pointer once outside of \
         the loop."
    }

    fn confirm(&self) -> &'static str {
        "Record `--with sharing`: the cache line of the counter is used and written by several threads."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let functions = seen.functions();
        let counts = |own: &str| COUNTS.iter().any(|start| own.starts_with(start));
        let flags: Vec<bool> =
            functions.all().map(|(_, function)| !function.owned && counts(&own_name(&function.name))).collect();
        let at = |stack: StackId| flags[functions.of_node(seen.capture(), stack).index()];
        let user = |stack: StackId| functions.attributed(stack).filter(|_| at(stack));
        let lasting = seen.lasting_by(LEAST, user);
        let found = lasting.map(|(owner, amount)| {
            let is_at = |stack: StackId| user(stack) == Some(owner);
            let without = parts((0..seen.capture().stacks.len()).map(|index| is_at(StackId::from_index(index))));
            let samples = seen.selection.samples().filter(|sample| sample.stack.is_some_and(is_at));
            let threads: BTreeSet<ThreadId> = samples.map(|sample| sample.thread).collect();
            let title = format!("`{}` counts references to shared objects again and again", seen.name(owner));
            let in_threads = if threads.len() > 1 { format!(", in {} threads", threads.len()) } else { String::new() };
            let text =
                format!("Counting takes {} of the CPU time, all the time{in_threads}.", percent(seen.share(amount)));
            Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner))
        });
        found.collect()
    }
}

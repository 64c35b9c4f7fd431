//! A stream is flushed for each line: many small writes.
//!
//! Evidence: streams that are flushed (`std::endl`, `fflush`, `flush`) write to files below one owned function in all parts of
//! the steady phase. Recorded system calls decide: many small writes per step are a finding with or without a flush, and
//! few or large ones are none. Look-alikes: a log that has to be whole after a crash.

use stepscope_model::{NoteValue, StackId};

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 5.0;

/// Fewest recorded writes per step, and their largest mean size in bytes.
const FEWEST: f64 = 10.0;
const SMALL: u64 = 512;

/// Calls that write.
const WRITES: [&str; 3] = ["write", "writev", "pwrite64"];

/// Beginnings of functions that flush a stream.
const FLUSHES: [&str; 8] = [
    "std::endl",
    "std::flush",
    "std::ostream::flush",
    "std::basic_ostream::flush",
    "std::basic_filebuf::sync",
    "fflush",
    "_IO_fflush",
    "std::io::Write::flush",
];

pub(super) struct SmallWrites;

impl Kind for SmallWrites {
    fn name(&self) -> &'static str {
        "small-writes-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Let the stream's buffer fill: `'\\n'` instead of `std::endl`, and flush at the end of a step or every second."
    }

    fn confirm(&self) -> &'static str {
        "Record the system calls (`record --with syscalls`): many writes of few bytes confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let flushes = seen.paths_through(|function| {
            let own = own_name(&function.name);
            !function.owned && FLUSHES.iter().any(|start| own.starts_with(start))
        });
        let writes = |stack: StackId| {
            let is_write = seen.work[stack.index()] == Work::WriteFile;
            is_write && (flushes[stack.index()] || seen.recorded.has_calls())
        };
        let goes = |stack: StackId| flushes[stack.index()] || writes(stack);
        let owners = seen.by_function(|stack| seen.functions().attributed(stack).filter(|_| writes(stack)));
        let all = owners.into_iter().filter_map(|(owner, _)| {
            let at = |stack: StackId| seen.functions().attributed(stack) == Some(owner) && goes(stack);
            let amount = seen.sum(at);
            let is_large = seen.share(amount) >= LEAST && seen.is_repeated(at);
            is_large.then(|| found(seen, owner, amount, &at)).flatten()
        });
        all.collect()
    }
}

fn found(seen: &Seen<'_, '_>, owner: FunctionId, amount: Amount, at: &dyn Fn(StackId) -> bool) -> Option<Found> {
    let name = seen.name(owner);
    let without = parts((0..seen.capture().stacks.len()).map(|index| at(StackId::from_index(index))));
    let title = format!("`{name}` writes little pieces to a file {}", seen.repeatedly());
    let text = format!("Flushing and writing take {} of the CPU time, all the time.", percent(seen.share(amount)));
    let one = Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner));
    if !seen.recorded.has_calls() {
        return Some(one);
    }
    let rows = seen.recorded.calls(|stack| seen.functions().attributed(stack) == Some(owner));
    let writes = rows.filter(|row| WRITES.contains(&&*row.call));
    let (count, bytes) = writes.fold((0, 0), |(count, bytes), row| (count + row.count, bytes + row.bytes));
    let mean = bytes / count.max(1);
    (seen.recorded.per_step(count) >= FEWEST && mean <= SMALL).then(|| {
        let detail =
            format!("It makes {} of {} each.", seen.recorded.count_text(count, "writes"), NoteValue::of(mean, "bytes"));
        one.confirmed(detail, "show --view syscalls")
    })
}

//! Cache lines that threads take from each other: they write different data on one line, or change the same data at once.
//!
//! Evidence for *different data*: sampled addresses. Owned code of several threads that live at the same time uses different bytes of a line, at least one of
//! them writes, and the line has a part of all sampled accesses that matters. Lines of one variable, or of one set of functions, are one
//! finding. A CPU waits behind a load or an atomic operation until the line is its own, and is sampled there: three quarters of this
//! time are the gain, because the access would take some cycles alone. Plain stores show no wait; a line with such alone has no gain,
//! nor has one of which the CPU sampled the accesses. Look-alikes: threads that share the data
//! itself; a line that one thread after the other uses, such as the stack of an ended thread; a block of the heap that one thread
//! frees and another allocates, whose findings are therefore weak without a gain and without the CPU's samples.
//!
//! Evidence for *the same data*: owned code changes it in place (an atomic operation, not a load and a store), which is seen only where
//! addresses come from the code at CPU samples. The gain is as above. Locks of libraries are the business of other kinds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{DataAccess, NoteValue, StackId, ThreadId};

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::sharing::{Line, Verdict, functions, objects, offsets, samples};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;

/// Least part of all sampled accesses that are to a line.
const LEAST: f64 = 0.01;

/// The same of lines whose cost is unknown.
const LEAST_UNKNOWN: f64 = 0.1;

/// Least share of the CPU time that sharing costs, in percent, for a gain.
const LEAST_WAITING: f64 = 1.0;

/// The part of the waits for a line that goes with the sharing. An atomic operation takes some 20 cycles alone, and 80 to 400 if another core has the line.
const OF_SHARING: f32 = 0.75;

pub(super) struct FalseSharing;

/// Lines that are one finding.
#[derive(Default)]
struct Group<'a> {
    lines: Vec<Line<'a>>,
    object: Option<String>,
}

impl Kind for FalseSharing {
    fn name(&self) -> &'static str {
        "false-sharing"
    }

    fn advice(&self) -> &'static str {
        "Give the data of each thread its own cache line (`alignas(64)`, `#[repr(align(64))]`), or add up in a local variable and write it once."
    }

    fn confirm(&self) -> &'static str {
        "HITM in `show --view sharing`, on a machine whose CPU samples memory accesses; or time it with the data 64 bytes apart."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let found = Group::all(seen, |line| line.verdict() == Some(Verdict::False)).into_iter();
        found.filter_map(|group| group.found(seen, "write different data on one cache line")).collect()
    }
}

/// Least share of the CPU time that changes of the same data cost, in percent.
const LEAST_CONTENDED: f64 = 3.0;

pub(super) struct ContendedData;

impl Kind for ContendedData {
    fn name(&self) -> &'static str {
        "contended-data"
    }

    fn advice(&self) -> &'static str {
        "Let each thread count or add up in a variable of its own, and put these together once a step; or take a number of items at once."
    }

    fn confirm(&self) -> &'static str {
        "HITM in `show --view sharing`, on a machine whose CPU samples memory accesses; or time it with a variable for each thread."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let mut groups = Group::all(seen, |line| matches!(line.verdict(), Some(Verdict::True | Verdict::Both)));
        let changes = |access: &DataAccess| {
            access.awaited.is_some()
                && access.reads > 0
                && access.writes > 0
                && access.stack.is_some_and(|stack| is_own(seen, stack))
        };
        for line in groups.iter_mut().flat_map(|group| &mut group.lines) {
            line.accesses.retain(|access| changes(access));
        }
        groups.retain(|group| group.lines.iter().any(|line| line.threads().len() > 1));
        let found = groups.into_iter().filter_map(|group| group.found(seen, "change the same data at once"));
        found.filter(|found| waiting(seen, &found.without) >= LEAST_CONTENDED).collect()
    }
}

/// Whether a stack ends in owned code, or in an atomic operation that it has inlined.
fn is_own(seen: &Seen<'_, '_>, stack: StackId) -> bool {
    const ATOMICS: [&str; 4] = ["std::atomic", "std::__atomic", "core::sync::atomic", "__gnu_cxx::__exchange_and_add"];
    let functions = seen.functions();
    let leaf = functions.of_node(seen.capture(), stack);
    let is_atomic = |name: &str| ATOMICS.iter().any(|start| name.starts_with(start));
    functions.is_owner(leaf) || is_atomic(&own_name(&functions.get(leaf).name))
}

/// Percent of the CPU time that these parts of the stacks are; of no stacks if there are none.
fn waiting(seen: &Seen<'_, '_>, without: &[f32]) -> f64 {
    let parts = seen.cpu.occupied().map(|(stack, amount)| (without.get(stack.index()), amount.weight));
    let ns: f64 = parts.map(|(part, weight)| f64::from(part.copied().unwrap_or(0.0)) * weight as f64).sum();
    100.0 * ns / seen.total.max(1) as f64
}

/// The number of sampled accesses, to lines of one thread, too.
fn all_accesses(seen: &Seen<'_, '_>) -> u64 {
    let shared: u64 = seen.capture().data_accesses.iter().map(samples).fold(0, u64::saturating_add);
    shared.saturating_add(seen.capture().info.losses.private_accesses.unwrap_or(0)).max(1)
}

/// Whether a thread that writes to the line lives while another one that uses it does.
fn are_at_once(seen: &Seen<'_, '_>, line: &Line<'_>) -> bool {
    let life = |thread: ThreadId| {
        let row = &seen.capture().threads[thread.index()];
        (row.start_ns.unwrap_or(0), row.end_ns.unwrap_or(u64::MAX))
    };
    let writes = |thread: ThreadId| line.accesses.iter().any(|access| access.thread == thread && access.writes > 0);
    let threads = line.threads();
    threads.iter().filter(|writer| writes(**writer)).any(|writer| {
        let (start, end) = life(*writer);
        threads.iter().any(|other| other != writer && life(*other).0 < end && start < life(*other).1)
    })
}

impl<'a> Group<'a> {
    /// The lines of programs that threads use at the same time, as far as they matter.
    fn all(seen: &Seen<'_, 'a>, is_asked: impl Fn(&Line<'a>) -> bool) -> Vec<Self> {
        let all = all_accesses(seen) as f64;
        let mut groups: BTreeMap<String, Self> = BTreeMap::new();
        for line in Line::all(seen.selection) {
            let is_cold = (line.shared as f64) < LEAST * all;
            if is_cold || line.process.is_none() || !is_asked(&line) || !are_at_once(seen, &line) {
                continue;
            }
            let object = objects(&line);
            let key = object.clone().unwrap_or_else(|| functions(seen.selection, &line));
            let group = groups.entry(format!("{:?} {key}", line.process)).or_default();
            group.object = object;
            group.lines.push(line);
        }
        groups.into_values().collect()
    }

    fn accesses(&self) -> impl Iterator<Item = &'a DataAccess> {
        self.lines.iter().flat_map(|line| line.accesses.iter().copied())
    }

    /// The owned function that waits most for these lines; most of its accesses are to them, where waiting is not known.
    fn owner(&self, seen: &Seen<'_, '_>) -> Option<FunctionId> {
        let mut by_owner: BTreeMap<FunctionId, u64> = BTreeMap::new();
        for access in self.accesses() {
            if let Some(owner) = access.stack.and_then(|stack| seen.functions().attributed(stack)) {
                *by_owner.entry(owner).or_default() += access.awaited.unwrap_or(samples(access));
            }
        }
        by_owner.into_iter().max_by_key(|(owner, count)| (*count, Reverse(*owner))).map(|(owner, _)| owner)
    }

    /// The part of each stack's samples that came right behind an access to these lines; `None` if that is not known.
    fn waiting(&self, seen: &Seen<'_, '_>) -> Option<Vec<f32>> {
        let mut behind: FxHashMap<StackId, u64> = FxHashMap::default();
        // A thread can load what it has just stored at once, also without the line.
        let stores = |access: &DataAccess| access.writes > 0;
        let stored: FxHashSet<(ThreadId, u64)> =
            self.accesses().filter(|access| stores(access)).map(|access| (access.thread, access.address)).collect();
        for access in self.accesses() {
            let count = access.awaited?;
            let is_of_others = stores(access) || !stored.contains(&(access.thread, access.address));
            if let Some(stack) = access.stack.filter(|_| is_of_others) {
                *behind.entry(stack).or_default() += count;
            }
        }
        // Accesses have no times, so they are compared with all samples.
        let of_event = seen.capture().samples.iter().filter(|sample| Some(sample.event) == seen.selection.event_id());
        let mut samples: FxHashMap<StackId, u64> = FxHashMap::default();
        for stack in of_event.filter_map(|sample| sample.stack) {
            *samples.entry(stack).or_default() += 1;
        }
        let mut parts = vec![0.0; seen.capture().stacks.len()];
        for (stack, behind) in behind {
            let all = samples.get(&stack).copied().unwrap_or(0).max(behind).max(1);
            parts[stack.index()] = OF_SHARING * (behind as f64 / all as f64) as f32;
        }
        Some(parts)
    }

    /// `what` completes "Threads ...". None without owned code: then there is nothing to change here.
    fn found(self, seen: &Seen<'_, '_>, what: &str) -> Option<Found> {
        let owner = self.owner(seen)?;
        let first = self.lines.first()?;
        let title = match &self.object {
            Some(object) => format!("Threads {what}, of `{object}`"),
            None => format!("Threads {what}, in `{}`", seen.name(owner)),
        };
        let part = self.accesses().map(samples).sum::<u64>() as f64 / all_accesses(seen) as f64;
        let layout = format!(
            "{} with {} of the sampled accesses; the first: {}, by {}.",
            NoteValue::plural(self.lines.len(), "cache line"),
            percent(100.0 * part),
            offsets(seen.selection, first),
            functions(seen.selection, first),
        );
        let without = self.waiting(seen);
        let waiting = without.as_ref().map_or(0.0, |without| waiting(seen, without));
        let found = match without {
            Some(without) if waiting >= LEAST_WAITING => Found::of(seen, owner, title, without),
            Some(_) if part < LEAST_UNKNOWN => return None,
            _ => Found::of_program(title, None).about(Some(owner)),
        };
        let found = found.because(layout, "show --view sharing");
        let hitm = self.lines.iter().filter_map(Line::hitm).reduce(u64::saturating_add);
        Some(match hitm.filter(|hitm| *hitm > 0) {
            Some(hitm) => {
                let loads = NoteValue::plural(usize::try_from(hitm).unwrap_or(usize::MAX), "sampled load");
                let detail = format!("{loads} found the line modified in another core's cache.");
                found.confirmed(detail, "show --view sharing")
            }
            None if found.gain.is_some() => {
                let detail = format!(
                    "{} of the CPU time{} is spent right behind these accesses: a CPU waits there until the line is its own.",
                    percent(waiting / f64::from(OF_SHARING)),
                    seen.of_steps()
                );
                let why = "Three quarters of it are taken as the gain: the rest is what such accesses cost alone, but for cores that are far from each other.";
                found.because(detail, explain(seen, owner)).up_to(
                    1.0 / f64::from(OF_SHARING),
                    why,
                    "show --view sharing",
                )
            }
            None => {
                let confidence = if self.object.is_some() { Confidence::Fair } else { Confidence::Weak };
                let detail = "The addresses come from the code at CPU samples, so the cost, and the gain, is unknown.";
                found.because(detail, "show --view sharing").sure(confidence)
            }
        })
    }
}

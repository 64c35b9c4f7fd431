//! Threads write different data on one cache line.
//!
//! Evidence: sampled addresses. Owned code of several threads that live at the same time uses different bytes of a line, at least one of
//! them writes, and the line has a part of all sampled accesses that matters. Lines of one variable, or of one set of functions, are one
//! finding. Without samples of the CPU nothing says what the sharing costs, so there is no gain. Look-alikes: threads that share the data
//! itself; a line that one thread after the other uses, such as the stack of an ended thread; a block of the heap that one thread
//! frees and another allocates, whose findings are therefore weak without the CPU's samples.

use std::collections::BTreeMap;

use stepscope_model::{NoteValue, ThreadId};

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::sharing::{Line, Verdict, functions, objects, offsets, samples};
use crate::query::functions::FunctionId;

/// Least part of all sampled accesses that are to a line.
const LEAST: f64 = 0.01;

pub(super) struct FalseSharing;

/// Lines that are one finding.
#[derive(Default)]
struct Group<'a> {
    lines: Vec<Line<'a>>,
    object: Option<String>,
    accesses: u64,
    by_function: BTreeMap<usize, (u64, Option<FunctionId>)>,
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
        let lines = Line::all(seen.selection);
        let shared: u64 = seen.capture().data_accesses.iter().map(samples).fold(0, u64::saturating_add);
        let all = shared.saturating_add(seen.capture().info.losses.private_accesses.unwrap_or(0)).max(1);
        let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
        for line in lines {
            let is_false = line.process.is_some() && line.verdict() == Some(Verdict::False);
            if !is_false || !are_at_once(seen, &line) || (line.shared as f64) < LEAST * all as f64 {
                continue;
            }
            let object = objects(&line);
            let key = object.clone().unwrap_or_else(|| functions(seen.selection, &line));
            let group = groups.entry(format!("{:?} {key}", line.process)).or_default();
            group.object = object;
            group.add(seen, line);
        }
        groups.into_values().filter_map(|group| group.found(seen, all)).collect()
    }
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
    fn add(&mut self, seen: &Seen<'_, '_>, line: Line<'a>) {
        self.accesses = self.accesses.saturating_add(line.sum(samples));
        for access in &line.accesses {
            let owner = access.stack.and_then(|stack| seen.functions().attributed(stack));
            let key = owner.map_or(usize::MAX, |owner| owner.index());
            self.by_function.entry(key).or_insert((0, owner)).0 += samples(access);
        }
        self.lines.push(line);
    }

    fn found(self, seen: &Seen<'_, '_>, all: u64) -> Option<Found> {
        // Without owned code there is nothing to change here.
        let owners = self.by_function.values().filter_map(|(count, owner)| Some((*count, (*owner)?)));
        let (_, owner) = owners.max_by_key(|(count, owner)| (*count, std::cmp::Reverse(owner.index())))?;
        let first = self.lines.first()?;
        let title = match &self.object {
            Some(object) => format!("Threads write different data on one cache line, of `{object}`"),
            None => format!("Threads write different data on one cache line, in `{}`", seen.name(owner)),
        };
        let layout = format!(
            "{} with {} of the sampled accesses; the first: {}, by {}.",
            NoteValue::plural(self.lines.len(), "cache line"),
            percent(100.0 * self.accesses as f64 / all as f64),
            offsets(seen.selection, first),
            functions(seen.selection, first),
        );
        let found = Found::of_program(title, None).about(Some(owner)).because(layout, "show --view sharing");
        let hitm = self.lines.iter().filter_map(Line::hitm).reduce(u64::saturating_add);
        Some(match hitm.filter(|hitm| *hitm > 0) {
            Some(hitm) => {
                let loads = NoteValue::plural(usize::try_from(hitm).unwrap_or(usize::MAX), "sampled load");
                let told = format!("{loads} found the line modified in another core's cache.");
                found.confirmed(told, "show --view sharing")
            }
            None => {
                let confidence = if self.object.is_some() { Confidence::Fair } else { Confidence::Weak };
                let told = "The addresses come from the code at CPU samples, so the cost, and the gain, is unknown.";
                found.because(told, "show --view sharing").sure(confidence)
            }
        })
    }
}

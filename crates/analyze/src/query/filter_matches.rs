//! The threads, stacks and times of a capture that a [`Filter`] matches.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use stepscope_model::{Capture, EventId, StackId, Thread};

use crate::query::filter::{Filter, TimeRange, Under};
use crate::query::functions::{FunctionId, Functions};
use crate::query::pattern::Pattern;
use crate::query::qualified_name::own_name;
use crate::query::select_error::SelectError;

/// When the capture was recorded: as it says, else from its first to its last time.
pub(super) fn recording(capture: &Capture) -> Option<Range<u64>> {
    if let (Some(start), Some(end)) = (capture.info.start_ns, capture.info.end_ns) {
        return Some(start..end.max(start));
    }
    let samples = capture.samples.iter().filter_map(|sample| sample.time_ns).map(|time| (time, time));
    let waits = capture.waits.iter().map(|wait| (wait.start_ns, wait.end_ns));
    let times = samples.chain(waits).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    times.map(|(first, last)| first..last.saturating_add(1))
}

/// A range of time on the capture's clock.
pub(super) fn absolute(capture: &Capture, range: TimeRange) -> Result<Range<u64>, SelectError> {
    let recorded = recording(capture).ok_or(SelectError::NoTimes)?;
    let end = range.to_ns.map_or(recorded.end, |to| recorded.start.saturating_add(to));
    let start = recorded.start.saturating_add(range.from_ns);
    if start >= end || start >= recorded.end {
        return Err(SelectError::OutsideRecording {
            from_ns: range.from_ns,
            to_ns: range.to_ns.unwrap_or(recorded.end - recorded.start),
            length_ns: recorded.end - recorded.start,
        });
    }
    Ok(start..end)
}

/// One flag per thread. `None` without filters on threads.
pub(super) fn chosen_threads(
    capture: &Capture,
    labels: &[String],
    filter: &Filter,
) -> Result<Option<Arc<[bool]>>, SelectError> {
    if filter.threads.is_empty() && filter.processes.is_empty() {
        return Ok(None);
    }
    let known = || distinct(capture.threads.iter().map(|thread| thread.name.clone()));
    for pattern in &filter.threads {
        if !capture.threads.iter().any(|thread| pattern.matches(thread)) {
            return Err(SelectError::NoMatch {
                what: "thread",
                pattern: pattern.to_string(),
                would_match: None,
                known: known(),
            });
        }
    }
    let processes = || distinct(labels.iter().cloned());
    let labelled = || capture.processes.iter().zip(labels);
    for pattern in &filter.processes {
        if !labelled().any(|(process, label)| pattern.matches(process, label)) {
            return Err(SelectError::NoMatch {
                what: "process",
                pattern: pattern.to_string(),
                would_match: None,
                known: processes(),
            });
        }
    }
    let any_thread = |thread: &Thread| filter.threads.iter().any(|pattern| pattern.matches(thread));
    let any_process = |thread: &Thread| {
        let process = thread.process.map(|id| (&capture.processes[id.index()], &labels[id.index()]));
        process.is_some_and(|(process, label)| filter.processes.iter().any(|pattern| pattern.matches(process, label)))
    };
    let chosen = capture.threads.iter().map(|thread| {
        (filter.threads.is_empty() || any_thread(thread)) && (filter.processes.is_empty() || any_process(thread))
    });
    Ok(Some(chosen.collect()))
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// One flag per node of the call tree, and a last one for no stack. `None` without filters on stacks.
pub(super) fn chosen_stacks(
    capture: &Capture,
    functions: &Functions,
    filter: &Filter,
) -> Result<Option<Arc<[bool]>>, SelectError> {
    if filter.functions.is_empty() && filter.modules.is_empty() && filter.ownership.is_none() {
        return Ok(None);
    }
    if filter.ownership.is_some() && !functions.ownership_known() {
        return Err(SelectError::NothingOwned);
    }
    let by_function = matching(functions, "function", &filter.functions, |pattern, id| {
        let name = &functions.get(id).name;
        pattern.matches(name) || pattern.matches(&own_name(name))
    })?;
    let by_module = matching(functions, "module", &filter.modules, |pattern, id| {
        let module = &functions.get(id).module;
        !module.is_empty() && pattern.matches(module)
    })?;
    let passes = |flags: &Option<Vec<bool>>| flags.as_ref().map(|flags| functions.paths_through(capture, flags));
    let (by_function, by_module) = (passes(&by_function), passes(&by_module));
    let on_side = |owned: bool| match filter.ownership {
        None => true,
        Some(Under::Owned) => owned,
        Some(Under::NotOwned) => !owned,
    };
    let node_passes = |index: usize| {
        by_function.as_ref().is_none_or(|flags| flags[index])
            && by_module.as_ref().is_none_or(|flags| flags[index])
            && on_side(functions.nearest_owned(StackId::from_index(index)).is_some())
    };
    let no_stack = by_function.is_none() && by_module.is_none() && on_side(false);
    Ok(Some((0..capture.stacks.len()).map(node_passes).chain([no_stack]).collect()))
}

/// One flag per function: whether any of the patterns matches it. `None` if there are no patterns.
fn matching(
    functions: &Functions,
    what: &'static str,
    patterns: &[Pattern],
    matches: impl Fn(&Pattern, FunctionId) -> bool,
) -> Result<Option<Vec<bool>>, SelectError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut flags = vec![false; functions.len()];
    for pattern in patterns {
        let mut found = false;
        for (id, _) in functions.all() {
            if matches(pattern, id) {
                flags[id.index()] = true;
                found = true;
            }
        }
        if !found {
            return Err(SelectError::NoMatch {
                what,
                pattern: pattern.to_string(),
                would_match: wider(pattern, |wider| functions.all().any(|(id, _)| matches(wider, id))),
                known: known_for(what, functions, pattern),
            });
        }
    }
    Ok(Some(flags))
}

/// The pattern with a wildcard before it, after it or both, if that matches anything.
fn wider(pattern: &Pattern, matches: impl Fn(&Pattern) -> bool) -> Option<String> {
    let text = pattern.as_str();
    if text.starts_with('/') {
        return None;
    }
    let text = text.trim_matches('*');
    let candidates = [format!("*{text}"), format!("{text}*"), format!("*{text}*")];
    candidates.into_iter().find(|candidate| candidate.parse().is_ok_and(|pattern| matches(&pattern)))
}

/// Names to suggest: all modules, or the functions that contain the pattern's text.
fn known_for(what: &str, functions: &Functions, pattern: &Pattern) -> Vec<String> {
    if what == "module" {
        return distinct(functions.all().map(|(_, one)| one.module.to_string()).filter(|name| !name.is_empty()));
    }
    let text = pattern.as_str().trim_matches(['*', '/']).to_lowercase();
    let similar = distinct(
        functions.all().map(|(_, one)| one.name.to_string()).filter(|name| name.to_lowercase().contains(&text)),
    );
    if similar.is_empty() { distinct(functions.all().map(|(_, one)| one.name.to_string())) } else { similar }
}

/// The event of this name.
pub(super) fn find_event(capture: &Capture, name: &str) -> Result<EventId, SelectError> {
    let found = capture.info.events.iter().position(|event| event.name == name).map(EventId::from_index);
    found.ok_or_else(|| SelectError::NoMatch {
        what: "event",
        pattern: name.to_owned(),
        would_match: None,
        known: capture.info.events.iter().map(|event| event.name.clone()).collect(),
    })
}

//! Scopes, counters and the critical path.

use std::borrow::Cow;
use std::sync::Arc;

use stepscope_analyze::query::loops::Loops;
use stepscope_analyze::step_paths::{Paths, State};
use stepscope_analyze::{Selection, resources};
use stepscope_model::quantity::grouped;
use stepscope_model::{Counter, Scope};

use super::evidence::States;
use super::names::{Numbered, Series};
use super::{Profile, clipped, row};
use crate::parquet_table::ParquetTable;

/// The steps whose critical path the page has, in order: the longest if all have too many parts.
fn steps_with_path(profile: &Profile<'_>) -> Vec<usize> {
    let (Some(paths), Some(loops)) = (Paths::of(profile.selection()), Loops::of(profile.selection())) else {
        return Vec::new();
    };
    let mut steps: Vec<usize> = (0..loops.main().count()).collect();
    let parts = |step: &usize| paths.of_step(*step).count();
    if steps.iter().map(parts).sum::<usize>() > profile.limits().marks {
        steps.sort_by_key(|step| std::cmp::Reverse(loops.main().duration(*step)));
        let mut room = profile.limits().marks;
        let mut fits = |step: &usize| {
            let left = room.checked_sub(parts(step));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let count = steps.iter().take_while(|step| fits(step)).count();
        steps.truncate(count);
        steps.sort_unstable();
    }
    steps
}

/// Whether the table `path` has rows. To count them, each step's path would have to be walked.
pub(super) fn has_path(profile: &Profile<'_>) -> bool {
    Paths::are_known(profile.selection())
}

pub(super) fn path(profile: &Profile<'_>) -> ParquetTable {
    let mut states = States::of(profile);
    let (mut threads, mut starts, mut ends, mut numbers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let steps = steps_with_path(profile);
    let paths = Paths::of(profile.selection());
    let in_time = |paths: &Paths<'_>, step: usize| paths.of_step(step).collect::<Vec<_>>().into_iter().rev();
    for part in paths.iter().flat_map(|paths| steps.iter().flat_map(|step| in_time(paths, *step))) {
        threads.push(row(Some(part.thread.index())));
        starts.push(profile.since_start(part.range.start));
        ends.push(profile.since_start(part.range.end));
        numbers.push(match part.state {
            State::Running => -1,
            State::Runnable => 0,
            State::Blocked(stack) => states.blocked_at(stack),
        });
    }
    ParquetTable::new()
        .integers("thread", threads)
        .numbers("start", starts)
        .numbers("end", ends)
        .integers("state", numbers)
}

fn all_selected_scopes<'s, 'a>(selection: &'s Selection<'a>) -> impl Iterator<Item = &'a Scope> + use<'s, 'a> {
    let window = selection.window();
    let meets = move |scope: &&Scope| {
        window.as_ref().is_none_or(|window| scope.start_ns < window.end && scope.end_ns >= window.start)
    };
    let selected = |scope: &&Scope| selection.has_thread(scope.thread);
    selection.capture().scopes.iter().filter(selected).filter(meets)
}

/// Rows of the table `scopes`.
pub(super) fn scope_rows(profile: &Profile<'_>) -> usize {
    all_selected_scopes(profile.selection()).count().min(profile.limits().marks)
}

/// The selected scopes by start, enclosing ones first; the longest if there are too many.
fn selected_scopes<'a>(profile: &Profile<'a>) -> Vec<&'a Scope> {
    let selection = profile.selection();
    let mut scopes: Vec<&Scope> = all_selected_scopes(selection).collect();
    if scopes.len() > profile.limits().marks {
        scopes.sort_by_key(|scope| std::cmp::Reverse(scope.end_ns.saturating_sub(scope.start_ns)));
        scopes.truncate(profile.limits().marks);
    }
    scopes.sort_by_key(|scope| (scope.start_ns, scope.thread, scope.depth));
    scopes
}

/// Distinct names: those of a growing capture, else in the order of the capture's scopes.
fn names<'p>(profile: &'p Profile<'_>) -> Cow<'p, Numbered<Arc<str>>> {
    match &profile.names {
        Some(names) => Cow::Borrowed(&names.scopes),
        None => Cow::Owned(profile.capture().scopes.iter().map(|scope| &scope.name).collect()),
    }
}

pub(super) fn scope_names(profile: &Profile<'_>) -> ParquetTable {
    ParquetTable::new().texts("name", names(profile).all().iter().map(|name| clipped(name)).collect())
}

pub(super) fn scopes(profile: &Profile<'_>) -> ParquetTable {
    let scopes = selected_scopes(profile);
    let names = names(profile);
    let integers = |of: &dyn Fn(&Scope) -> usize| scopes.iter().map(|scope| row(Some(of(scope)))).collect::<Vec<i32>>();
    let times = |of: &dyn Fn(&Scope) -> u64| scopes.iter().map(|scope| profile.since_start(of(scope))).collect();
    ParquetTable::new()
        .integers("thread", integers(&|scope| scope.thread.index()))
        .integers("name", integers(&|scope| names.number(&scope.name)))
        .numbers("start", times(&|scope| scope.start_ns))
        .numbers("end", times(&|scope| scope.end_ns))
        .integers("depth", integers(&|scope| scope.depth as usize))
}

/// Whether a reading is of a selected thread or its process.
pub(super) fn selects_counters<'p>(profile: &'p Profile<'_>) -> impl Fn(&Counter) -> bool + 'p {
    let selection = profile.selection();
    let mut processes = vec![!selection.filters_threads(); profile.capture().processes.len()];
    let of_threads = selection.threads().filter_map(|(_, thread)| thread.process);
    of_threads.for_each(|process| processes[process.index()] = true);
    move |counter| {
        selection.has_time(Some(counter.time_ns))
            && counter.thread.is_none_or(|thread| selection.has_thread(thread))
            && counter.process.is_none_or(|process| processes[process.index()])
    }
}

fn selected_counters<'p, 'a>(profile: &'p Profile<'a>) -> impl Iterator<Item = &'a Counter> + use<'p, 'a> {
    let is_selected = selects_counters(profile);
    profile.capture().counters.iter().filter(move |counter| is_selected(counter))
}

/// All series: those of a growing capture, else in the order of their first readings.
fn all_series<'p>(profile: &'p Profile<'_>) -> Cow<'p, Numbered<Series>> {
    match &profile.names {
        Some(names) => Cow::Borrowed(&names.series),
        None => {
            let mut all = Numbered::default();
            selected_counters(profile).for_each(|counter| all.add(&Series::of(counter)));
            Cow::Owned(all)
        }
    }
}

pub(super) fn counter_names(profile: &Profile<'_>) -> ParquetTable {
    let series = all_series(profile);
    let all = series.all();
    ParquetTable::new()
        .texts("name", all.iter().map(|one| clipped(&one.name)).collect())
        .texts("unit", all.iter().map(|one| resources::unit_of(&one.name).into()).collect())
        .integers("process", all.iter().map(|one| row(one.process.map(|id| id.index()))).collect())
        .integers("thread", all.iter().map(|one| row(one.thread.map(|id| id.index()))).collect())
        .integers("total", all.iter().map(|one| resources::is_total(&one.name).into()).collect())
}

pub(super) fn counters(profile: &Profile<'_>) -> ParquetTable {
    let series = all_series(profile);
    let every = every_reading(profile);
    let mut seen = vec![0_usize; series.all().len()];
    let is_kept = |counter: &&Counter| {
        let seen = &mut seen[series.number(&Series::of(counter))];
        *seen += 1;
        (*seen - 1).is_multiple_of(every)
    };
    let mut readings: Vec<&Counter> = selected_counters(profile).filter(is_kept).collect();
    readings.sort_by_key(|counter| counter.time_ns);
    let number = |counter: &&Counter| row(Some(series.number(&Series::of(counter))));
    ParquetTable::new()
        .integers("series", readings.iter().map(number).collect())
        .numbers("time", readings.iter().map(|counter| profile.since_start(counter.time_ns)).collect())
        .numbers("value", readings.iter().map(|counter| counter.value as f64).collect())
}

pub(super) fn left_out(profile: &Profile<'_>) -> Vec<String> {
    let most = profile.limits().marks;
    let has_all_steps = profile.capture().steps.len() <= profile.most_steps();
    let of_steps = if has_all_steps { None } else { profile.shown_steps().left_out() };
    let mut sentences: Vec<String> = of_steps.into_iter().collect();
    let scopes = profile.capture().scopes.len();
    if scopes > most {
        sentences.push(format!(
            "Of {} scopes, the {} longest are shown.",
            grouped(scopes as i128),
            grouped(most as i128)
        ));
    }
    let every = every_reading(profile);
    if every > 1 {
        sentences.push(format!("One of {every} readings of counters is shown."));
    }
    let steps = Loops::of(profile.selection()).map_or(0, |loops| loops.main().count());
    // A path has a part for each wait that it crosses, twice at most, and for what runs between. So a short recording fits
    // without a look at its paths, which take long to walk.
    let fits = steps + 4 * profile.capture().waits.len() <= most;
    let of_path = if fits || !has_path(profile) { steps } else { steps_with_path(profile).len() };
    if of_path < steps {
        let [of_path, steps] = [of_path, steps].map(|count| grouped(count as i128));
        sentences.push(format!("The critical path is shown for the {of_path} longest of {steps} steps."));
    }
    sentences
}

/// One of how many readings the page has.
fn every_reading(profile: &Profile<'_>) -> usize {
    profile.capture().counters.len().div_ceil(profile.limits().marks.max(1)).max(1)
}

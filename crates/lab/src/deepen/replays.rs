//! Runs a scenario to see which calls of its functions repeat earlier ones.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use stepscope_analyze::Selection;
use stepscope_analyze::diagnose::{FunctionEffects, FunctionMathematics, FunctionRepeats, FunctionScans};
use stepscope_model::Phase;
use stepscope_record::replay::{ReplaySite, Replays, longest, replay_calls};

use super::beside::run_until_done;
use super::{Repeats, RunningThread, Watched, threads_below};
use crate::execution::Context;
use crate::lab_file::Trial;

/// Functions whose calls are replayed, at most.
const MOST_FUNCTIONS: usize = 16;

/// Runs of a program that ends before all functions were looked at, at most.
const MOST_RUNS: usize = 3;

/// Time that the scenario's steady phase may last longer than all replays.
pub(super) const SPARE: Duration = Duration::from_secs(2);

/// The results, and what could not be replayed, in sentences.
pub(super) fn of_trial(
    trial: &Trial,
    selection: &Selection<'_>,
    functions: &[Watched],
    folder: &Path,
    context: &mut Context<'_>,
) -> Repeats {
    let functions = &functions[..functions.len().min(MOST_FUNCTIONS)];
    if functions.is_empty() {
        return Err("no code of an owned function is in a file".to_owned());
    }
    let mut trial = trial.clone();
    trial.scenario.record.phases = vec![Phase::Steady];
    trial.scenario.record.steps = None;
    // A probe at the step function would be an unknown instruction.
    trial.scenario.step = None;
    trial.scenario.record.duration = longest(functions.len()) + SPARE;
    let mut replayed: Vec<(usize, Replays)> = Vec::new();
    let mut left: Vec<usize> = (0..functions.len()).collect();
    for run in 0..MOST_RUNS {
        let found = replay(&trial, functions, &left, folder, context);
        let found = match found {
            Err(reason) if run == 0 => return Err(reason),
            found => found.unwrap_or_default(),
        };
        left.retain(|index| !found.iter().any(|(known, _)| known == index));
        let is_over = found.is_empty() || left.is_empty() || context.interrupt.load(Ordering::Relaxed);
        replayed.extend(found);
        if is_over {
            break;
        }
        // The program ended before the others were looked at: it runs again for these.
        let _ = std::fs::remove_dir_all(folder);
    }
    let info = &selection.capture().info;
    let mut notes = Vec::new();
    let found = replayed.into_iter().filter_map(|(index, replays)| {
        let function = &functions[index].function;
        if let (0, Some(reason)) = (replays.followed, &replays.stopped) {
            notes.push(format!("calls of `{function}` were not replayed: {reason}"));
        }
        (replays.followed > 0).then(|| FunctionRepeats {
            scenario: info.scenario.clone(),
            variant: info.variant.clone(),
            function: function.clone(),
            followed: replays.followed as u64,
            repeated: replays.repeated as u64,
            part: replays.part,
            instructions: replays.instructions,
            input_bytes: replays.input_bytes,
            output_bytes: replays.output_bytes,
            python: None,
            scans: FunctionScans {
                read_bytes: replays.scans.read_bytes,
                written_bytes: replays.scans.written_bytes,
                shared: replays.scans.shared,
                arguments: replays.scans.arguments as u64,
                changed: replays.scans.changed as u64,
                mattered: replays.scans.mattered as u64,
            },
            mathematics: FunctionMathematics {
                calls: replays.mathematics.calls as u64,
                different: replays.mathematics.different as u64,
                part: replays.mathematics.part,
            },
            effects: FunctionEffects {
                kept: replays.effects.kept as u64,
                kept_part: replays.effects.kept_part,
                kept_bytes: replays.effects.kept_bytes,
                silent: replays.effects.silent as u64,
                answers: replays.effects.answers as u64,
            },
        })
    });
    let found = found.collect();
    Ok((found, notes))
}

/// Runs the trial, and replays calls of the functions with these indexes, until the program ends.
fn replay(
    trial: &Trial,
    functions: &[Watched],
    indexes: &[usize],
    folder: &Path,
    context: &mut Context<'_>,
) -> Result<Vec<(usize, Replays)>, String> {
    run_until_done(trial, folder, context, |pid, stop| {
        let groups = by_process(functions, indexes, &threads_below(pid));
        thread::spawn(move || {
            let (mut replayed, mut refused) = (Vec::new(), None);
            for (pid, sites) in groups {
                let only: Vec<ReplaySite> = sites.iter().map(|(_, site)| site.clone()).collect();
                match replay_calls(pid, &only, &stop) {
                    Ok(found) => replayed.extend(sites.into_iter().map(|(function, _)| function).zip(found)),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                Some(error) if replayed.is_empty() => Err(error),
                _ => Ok(replayed),
            }
        })
    })
}

/// Indexes and places of functions by the process that runs them: the first with a thread of the name.
fn by_process(
    functions: &[Watched],
    indexes: &[usize],
    threads: &[RunningThread],
) -> Vec<(u32, Vec<(usize, ReplaySite)>)> {
    let mut groups: Vec<(u32, Vec<(usize, ReplaySite)>)> = Vec::new();
    for (index, one) in indexes.iter().map(|index| (*index, &functions[*index])) {
        let Some(thread) = threads.iter().find(|thread| one.threads.contains(&thread.name)) else { continue };
        let site = (index, ReplaySite { module: one.module.clone(), offset: one.offset, inlined: one.inlined.clone() });
        match groups.iter_mut().find(|(pid, _)| *pid == thread.pid) {
            Some((_, sites)) => sites.push(site),
            None => groups.push((thread.pid, vec![site])),
        }
    }
    groups
}

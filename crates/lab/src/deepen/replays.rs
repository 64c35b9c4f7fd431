//! Runs a scenario to see which calls of its functions repeat earlier ones.

use std::path::Path;
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
    let replayed = run_until_done(&trial, folder, context, |pid, stop| {
        let groups = by_process(functions, &threads_below(pid));
        thread::spawn(move || {
            let replayed = groups.into_iter().map(|(pid, sites)| {
                let only: Vec<ReplaySite> = sites.iter().map(|(_, site)| site.clone()).collect();
                let found = replay_calls(pid, &only, &stop)?;
                Ok(sites.into_iter().map(|(function, _)| function).zip(found).collect())
            });
            replayed.collect::<std::io::Result<Vec<Vec<(usize, Replays)>>>>()
        })
    })?;
    let info = &selection.capture().info;
    let mut notes = Vec::new();
    let found = replayed.into_iter().flatten().filter_map(|(index, replays)| {
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

/// Indexes and places of functions by the process that runs them: the first with a thread of the name.
fn by_process(functions: &[Watched], threads: &[RunningThread]) -> Vec<(u32, Vec<(usize, ReplaySite)>)> {
    let mut groups: Vec<(u32, Vec<(usize, ReplaySite)>)> = Vec::new();
    for (index, one) in functions.iter().enumerate() {
        let Some(thread) = threads.iter().find(|thread| one.threads.contains(&thread.name)) else { continue };
        let site = (index, ReplaySite { module: one.module.clone(), offset: one.offset, inlined: one.inlined.clone() });
        match groups.iter_mut().find(|(pid, _)| *pid == thread.pid) {
            Some((_, sites)) => sites.push(site),
            None => groups.push((thread.pid, vec![site])),
        }
    }
    groups
}

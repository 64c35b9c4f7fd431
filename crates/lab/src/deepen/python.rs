//! Runs a scenario to see which calls of its Python functions repeat earlier ones.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use stepscope_analyze::Selection;
use stepscope_analyze::diagnose::{
    FunctionEffects, FunctionMathematics, FunctionRepeats, FunctionScans, PythonRepeats,
};
use stepscope_analyze::qualified_name::python_function;
use stepscope_analyze::step_stacks;
use stepscope_model::{FrameId, Phase};
use stepscope_record::python_look::{LONGEST, PythonFunction, PythonLook};

use super::beside::run_until_done;
use super::{MOST_FUNCTIONS, Repeats, replays};
use crate::execution::Context;
use crate::lab_file::Trial;

/// A Python function to look at.
pub(super) struct PythonWatched {
    /// Its name in the capture.
    function: String,
    place: PythonFunction,
}

/// The owned Python functions with much time, the most expensive first.
pub(super) fn functions(selection: &Selection<'_>) -> Vec<PythonWatched> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let mut places: Vec<Option<PythonFunction>> = vec![None; functions.len()];
    for (index, frame) in capture.frames.iter().enumerate() {
        let Some((name, file)) = python_function(&frame.function) else { continue };
        let place = PythonFunction { name: name.to_owned(), file: file.to_owned() };
        places[functions.of_frame(FrameId::from_index(index)).index()].get_or_insert(place);
    }
    let mut seen = BTreeSet::new();
    let found = step_stacks::functions(selection).into_iter().filter_map(|one| {
        let id = one.function;
        let place = places[id.index()].take()?;
        // Parts of functions have code of their own, which no call can be replaced by.
        let is_whole = !place.name.ends_with('>');
        let is_one = is_whole && functions.is_owner(id) && !functions.is_installed(id) && seen.insert(place.clone());
        is_one.then(|| PythonWatched { function: functions.get(id).name.to_string(), place })
    });
    found.take(MOST_FUNCTIONS).collect()
}

/// The results, and what could not be compared, in sentences.
pub(super) fn of_trial(
    trial: &Trial,
    selection: &Selection<'_>,
    functions: &[PythonWatched],
    folder: &Path,
    context: &mut Context<'_>,
) -> Repeats {
    let places = functions.iter().map(|one| one.place.clone()).collect();
    let look = Arc::new(PythonLook::prepare(places).map_err(|error| error.to_string())?);
    let mut trial = trial.clone();
    let record = &mut trial.scenario.record;
    record.phases = vec![Phase::Steady];
    record.steps = None;
    record.duration = LONGEST + replays::SPARE;
    // The look gets in by the library that names Python functions.
    record.python = Some(true);
    let (name, value) = look.variable();
    let value = value.to_str().ok_or("the folder of temporary files has no plain name")?;
    trial.scenario.env.insert(name.to_owned(), value.to_owned());
    let found = run_until_done(&trial, folder, context, |_, stop| {
        let look = look.clone();
        thread::spawn(move || look.run(&stop))
    })?;
    if found.iter().all(Option::is_none) {
        return Err("no process with CPython 3.9 to 3.13 called Python code in that time, or none has these functions"
            .to_owned());
    }
    let mut notes = Vec::new();
    let info = &selection.capture().info;
    let repeats = functions.iter().zip(found).filter_map(|(watched, calls)| {
        let calls = calls?;
        if let (0, Some(reason)) = (calls.repeated, &calls.incomparable) {
            notes.push(format!("calls of `{}` were not compared: {reason}", watched.place.name));
        }
        (calls.compared > 0).then(|| FunctionRepeats {
            scenario: info.scenario.clone(),
            variant: info.variant.clone(),
            function: watched.function.clone(),
            followed: calls.compared,
            repeated: calls.repeated,
            part: calls.part,
            instructions: 0,
            input_bytes: 0,
            output_bytes: 0,
            scans: FunctionScans::default(),
            mathematics: FunctionMathematics::default(),
            effects: FunctionEffects::default(),
            python: Some(PythonRepeats { call_ns: calls.call_ns, reads: calls.reads }),
        })
    });
    let repeats = repeats.collect();
    Ok((repeats, notes))
}

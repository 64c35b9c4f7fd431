//! Notes that several analyses share.

use std::collections::BTreeMap;

use stepscope_model::command_line::{program_name, runs_others};
use stepscope_model::{Capture, Note, NoteValue, note};

use crate::query::functions::namespace_of;
use crate::query::process_label::process_name;
use crate::query::qualified_name::python_function;
use crate::query::select::Selection;
use crate::query::step_loop::what_steps_are;
use crate::query::steps::has_enough;
use crate::query::weights::StackWeights;

/// Names the step function of the captures, if the recorder found it by itself.
pub(crate) fn found_step_note(selections: &[Selection<'_>]) -> Option<Note> {
    let mut found = selections.iter().filter_map(|one| Some((one.capture().info.found_step.as_deref()?, one)));
    let (function, capture) = found.next().map(|(function, selection)| (function, selection.capture()))?;
    if !has_enough(capture) {
        let late = note!(
            Limit,
            "`record` found {} as steps, but late: {} of them were recorded, which is too few. Costs are not divided by steps. \
             Record for longer, or name the step: `record --step NAME`.",
            what_steps_are(function),
            NoteValue::number(capture.steps.len() as u64)
        );
        return Some(late.about(capture.info.name()));
    }
    Some(note!(
        Fact,
        "Steps are {}: `record` found them by their steady rate. To choose another function: `record --step NAME`.",
        what_steps_are(function)
    ))
}

/// Names the owned patterns that match nothing in any of the captures, and the namespaces that the captures have instead.
pub(crate) fn ownership_note(selections: &[Selection<'_>]) -> Option<Note> {
    let first = selections.first()?;
    let in_none = |pattern: &&String| selections.iter().all(|one| one.functions().owning_nothing().contains(pattern));
    let nothing: Vec<&str> = first.functions().owning_nothing().iter().filter(in_none).map(String::as_str).collect();
    if nothing.is_empty() {
        return None;
    }
    let namespaces = first.functions().largest_namespaces(first.capture(), SHOWN);
    let (nothing, namespaces) = (
        NoteValue::names(nothing.iter().copied(), usize::MAX),
        NoteValue::names(namespaces.iter().map(String::as_str), SHOWN),
    );
    Some(match first.functions().largest_namespaces(first.capture(), 1).is_empty() {
        true => note!(Limit, "No function matches the owned pattern {}.", nothing),
        false => {
            note!(Limit, "No function matches the owned pattern {}. Largest namespaces here: {}.", nothing, namespaces)
        }
    })
}

/// The option that most likely names the user's own code: the namespace or Python file with most of the cost, or the program's file.
pub(crate) fn ownership_option(selection: &Selection<'_>) -> String {
    let functions = selection.functions();
    let weights = StackWeights::of_samples(selection);
    let all = weights.total().weight;
    let mut costs = BTreeMap::<String, u128>::new();
    let by_function = functions.all().zip(weights.attributed_by_function(functions));
    let own = by_function.filter(|((id, _), amount)| !amount.is_zero() && !functions.is_installed(*id));
    for ((_, function), amount) in own {
        if let Some(pattern) = own_code(&function.name) {
            *costs.entry(pattern).or_default() += amount.weight;
        }
    }
    let most = costs.into_iter().max_by_key(|(_, cost)| *cost).filter(|(_, cost)| 2 * cost >= all && all > 0);
    let capture = selection.capture();
    let launched = program_name(&capture.info.command).filter(|name| !name.is_empty());
    // The program of an interpreter is its script.
    let script = launched.filter(|name| name.ends_with(".py")).map(|file| format!("{file}:*"));
    let program = busiest_program(capture).or(launched);
    match (most.map(|(pattern, _)| pattern).or(script), program) {
        (Some(pattern), _) => format!("--owned '{pattern}'"),
        (None, Some(program)) => format!("--owned-module {program}"),
        (None, None) => "--owned 'sim::*'".to_owned(),
    }
}

/// The file name of the executable whose processes have most CPU time. Interpreters are not the user's code.
fn busiest_program(capture: &Capture) -> Option<&str> {
    let mut cpu_ns = BTreeMap::<&str, u64>::new();
    for thread in &capture.threads {
        let process = thread.process.map(|id| &capture.processes[id.index()]);
        let name = process.map(process_name).filter(|name| !name.is_empty() && !runs_others(name));
        name.into_iter().for_each(|name| *cpu_ns.entry(name).or_default() += thread.cpu_ns.unwrap_or(0));
    }
    cpu_ns.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns).map(|(name, _)| name)
}

/// A pattern for the code that a function belongs to: its namespace, or the file of a Python function.
fn own_code(name: &str) -> Option<String> {
    const LIBRARIES: [&str; 5] = ["std", "__gnu_cxx", "boost", "core", "alloc"];
    if let Some((_, file)) = python_function(name) {
        return file.rsplit('/').next().map(|file| format!("{file}:*"));
    }
    let namespace = namespace_of(name).filter(|namespace| !LIBRARIES.contains(&namespace.as_str()))?;
    Some(format!("{namespace}::*"))
}

/// How many namespaces the note offers.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;
    use crate::query::functions::Functions;
    use stepscope_model::{Process, Thread};

    #[test]
    fn a_pattern_that_owns_nothing_in_any_capture_is_noted() {
        let (one, other) = (drawn::folded("main;gz::Run 1"), drawn::folded("main;dart::step 1"));
        let note = |namespaces: &[&str]| {
            let owned = drawn::owned_by(namespaces);
            let both = [Functions::of(&one, &owned), Functions::of(&other, &owned)];
            ownership_note(&[Selection::all(&one, &both[0]), Selection::all(&other, &both[1])])
        };
        assert_eq!(note(&["gz::*", "dart::*"]), None);
        assert_eq!(
            note(&["gz::*", "nope::*"]).unwrap(),
            "No function matches the owned pattern `nope::*`. Largest namespaces here: `gz::*`."
        );
    }

    #[test]
    fn the_option_for_owned_code_has_the_main_namespace_or_the_program() {
        let option_of = |text: &str, command: &[&str]| {
            let mut capture = drawn::folded(text);
            capture.info.command = command.iter().copied().map(str::to_owned).collect();
            let functions = Functions::of(&capture, &drawn::owned_by(&[]));
            ownership_option(&Selection::all(&capture, &functions))
        };
        let option = |text| option_of(text, &["/usr/bin/sim", "world.py"]);
        assert_eq!(option("main;lib::A;std::sort<int> 3\nmain;poll;net::Loop 2"), "--owned 'lib::*'");
        assert_eq!(option("main;run;solve 2\nmain;Body::Move 1"), "--owned-module sim");
        let python = "main;py::step:/srv/arm.py;py::dumps:/usr/lib/python3.11/json/__init__.py 2\nmain;Body::Move 1";
        assert_eq!(option(python), "--owned 'arm.py:*'");
        let mut graph = drawn::folded("main;run;solve 2");
        graph.info.command = vec!["run.sh".to_owned()];
        for (pid, executable, cpu_ns) in [(1, "/bin/python3.11", 9), (2, "/ws/planner", 5), (3, "/bin/sleep", 1)] {
            let process = graph.add_process(Process { pid, executable: executable.to_owned(), ..Process::default() });
            let (process, cpu_ns) = (Some(process), Some(cpu_ns));
            graph.add_thread(Thread { tid: pid, process, cpu_ns, ..Thread::default() });
        }
        let functions = Functions::of(&graph, &drawn::owned_by(&[]));
        assert_eq!(ownership_option(&Selection::all(&graph, &functions)), "--owned-module planner");
        let none = option_of("main;run;solve 2\nmain;Body::Move 1", &["python3", "-u", "/srv/sim.py"]);
        assert_eq!(none, "--owned 'sim.py:*'");
    }
}

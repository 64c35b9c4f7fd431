//! Loops of Python sources, and what they cost: a frame of a Python function has the line that runs.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Capture, FileLoops, Frame, FrameKind, StackId};

use super::{Costs, HotLoop, Sums};
use crate::query::functions::{FunctionId, Functions};
use crate::query::qualified_name::python_function;
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The Python function, its file and line, of a stack's nearest owned function.
pub(in crate::analyses::diagnose) fn python_line<'a>(
    capture: &'a Capture,
    functions: &Functions,
    stack: StackId,
) -> Option<(FunctionId, &'a str, u32)> {
    let mut nodes = capture.nodes_of(Some(stack));
    let owned = nodes.find(|node| functions.is_owner(functions.of_node(capture, *node)))?;
    let function = functions.of_node(capture, owned);
    let (file, line) = of_frame(&capture.frames[capture.stacks[owned.index()].frame.index()])?;
    (functions.get(function).kind == FrameKind::Python).then_some((function, file, line))
}

/// The file and the line of a frame of a Python function.
fn of_frame(frame: &Frame) -> Option<(&str, u32)> {
    let (_, of_name) = python_function(&frame.function)?;
    Some((frame.file.as_deref().unwrap_or(of_name), frame.line?))
}

/// Files of owned Python functions with at least this percent of CPU time.
pub(super) fn hot_files(selection: &Selection<'_>, least: f64) -> BTreeSet<String> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let weights = StackWeights::of_samples(selection);
    let mut of_function: BTreeMap<(FunctionId, &str), u128> = BTreeMap::new();
    for (stack, amount) in weights.occupied() {
        if let Some((function, file, _)) = python_line(capture, functions, stack) {
            *of_function.entry((function, file)).or_default() += amount.weight;
        }
    }
    let enough = weights.total().weight as f64 * least / 100.0;
    let hot = of_function.into_iter().filter(|(_, weight)| *weight as f64 >= enough);
    hot.map(|((_, file), _)| file.to_owned()).filter(|file| file.starts_with('/')).collect()
}

/// Whether a generator or a comprehension has this name.
pub(in crate::analyses::diagnose) fn is_nameless(name: &str) -> bool {
    python_function(name).is_some_and(|(name, _)| name.ends_with('>'))
}

/// The owned function that a stack counts for: a generator counts for the function around it.
pub(in crate::analyses::diagnose) fn named_owner(
    capture: &Capture,
    functions: &Functions,
    stack: StackId,
) -> Option<FunctionId> {
    let nearest = functions.attributed(stack)?;
    if !is_nameless(&functions.get(nearest).name) {
        return Some(nearest);
    }
    let mut owners = capture.nodes_of(Some(stack)).map(|node| functions.of_node(capture, node));
    owners.find(|id| functions.is_owner(*id) && !is_nameless(&functions.get(*id).name)).or(Some(nearest))
}

/// The hot loops of Python sources that go round often.
pub(super) fn hot_loops(costs: &Costs<'_, '_>, files: &[FileLoops]) -> Vec<HotLoop> {
    let (capture, functions) = (costs.capture, costs.functions);
    let mut sums: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
    for (stack, amount) in costs.cpu.occupied() {
        let Some((_, path, line)) = python_line(capture, functions, stack) else { continue };
        let Some(file) = files.iter().position(|one| one.path == path) else { continue };
        let loops = &files[file].loops;
        // A generator runs in a frame of its own, at lines of the function around it.
        let innermost =
            (0..loops.len()).filter(|at| loops[*at].inside.contains(&line)).min_by_key(|at| loops[*at].inside.len());
        if let Some(index) = innermost {
            let sum = sums.entry((file, index)).or_default();
            sum.stacks.push(stack);
            sum.inside += amount;
        }
        for (index, one) in loops.iter().enumerate() {
            if one.edges.contains(&line) && innermost != Some(index) {
                sums.entry((file, index)).or_default().edges += amount;
            }
        }
        add_uses(capture, files, stack, amount, &mut sums);
    }
    let made = sums.into_iter().filter_map(|((file, index), sum)| sum.into_loop(costs, files[file].loops[index].shape));
    made.collect()
}

/// Adds a stack to the loops whose work with elements that fit is on it.
fn add_uses(
    capture: &Capture,
    files: &[FileLoops],
    stack: StackId,
    amount: Amount,
    sums: &mut BTreeMap<(usize, usize), Sums>,
) {
    let mut met = BTreeSet::new();
    for node in capture.nodes_of(Some(stack)) {
        let Some((path, line)) = of_frame(&capture.frames[capture.stacks[node.index()].frame.index()]) else {
            continue;
        };
        let Some(file) = files.iter().position(|one| one.path == path) else { continue };
        for (index, one) in files[file].loops.iter().enumerate() {
            if one.uses.contains(&line) && met.insert((file, index)) {
                sums.entry((file, index)).or_default().uses += amount;
            }
        }
    }
}

/// Whether a frame is a call of a Python function without loops.
pub(super) fn is_straight(frame: &Frame, files: &[FileLoops]) -> bool {
    let Some((path, line)) = of_frame(frame) else { return false };
    files.iter().any(|one| one.path == path && one.straight.binary_search(&line).is_ok())
}

/// One flag per stack: whether a line that raises or catches an exception is on it.
pub(super) fn raises(capture: &Capture, files: &[FileLoops]) -> Vec<bool> {
    let is_one = |frame: &Frame| {
        let place = of_frame(frame);
        place.is_some_and(|(path, line)| files.iter().any(|one| one.path == path && one.raises.contains(&line)))
    };
    let frames: Vec<bool> = capture.frames.iter().map(is_one).collect();
    let mut flags: Vec<bool> = Vec::with_capacity(capture.stacks.len());
    for node in &capture.stacks {
        flags.push(frames[node.frame.index()] || node.parent.is_some_and(|parent| flags[parent.index()]));
    }
    flags
}

//! Where evidence at a stack is: the function that it is attributed to, and its line there.

use stepscope_model::StackId;

use super::functions::{Caller, NO_STACK};
use super::select::Selection;

/// The function that a stack is attributed to: the nearest owned one, and without configured ownership the nearest one of the program.
pub(crate) fn function(selection: &Selection<'_>, stack: Option<StackId>) -> String {
    let functions = selection.functions();
    match functions.caller(stack) {
        Caller::Function(id) => functions.get(id).name.to_string(),
        Caller::NotOwned => functions.no_owner().to_owned(),
        Caller::NoStack => NO_STACK.to_owned(),
    }
}

/// `FILE:LINE` in the function that a stack is attributed to.
pub(crate) fn place(selection: &Selection<'_>, stack: Option<StackId>) -> Option<String> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let attributed = functions.attributed(stack?);
    let is_wanted = |node: &StackId| attributed.is_none_or(|id| functions.of_node(capture, *node) == id);
    let node = capture.nodes_of(stack).find(is_wanted)?;
    let frame = &capture.frames[capture.stacks[node.index()].frame.index()];
    let file = frame.file.as_ref()?;
    Some(frame.line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")))
}

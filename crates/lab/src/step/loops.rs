//! Loops as steps: their names, and the loops that a program spends its time in.

#[cfg(feature = "record")]
use std::collections::BTreeSet;
use std::path::Path;

use stepscope_analyze::qualified_name::own_name;
use stepscope_analyze::step_loop;
#[cfg(feature = "record")]
use stepscope_analyze::{Selection, functions::FunctionId};
#[cfg(feature = "record")]
use stepscope_model::FrameId;
#[cfg(feature = "record")]
use stepscope_symbolize::loops_around;
use stepscope_symbolize::{Code, Entry, LoopHead, Options, Symbolizer, loop_at};

/// The loop whose rounds begin at this address of a file.
pub(super) fn entry(module: &Path, address: u64) -> Option<Entry> {
    let head = loop_at(module, address).ok().flatten()?;
    let name = name(module, head);
    Some(Entry { symbol: name.clone(), name, offset: head.offset })
}

/// The loops of a function, each with the frames that are in it; the outermost first.
#[cfg(feature = "record")]
pub(super) fn of_function(
    selection: &Selection<'_>,
    function: FunctionId,
    module: &Path,
) -> Vec<(LoopHead, BTreeSet<FrameId>)> {
    let (frames, functions) = (&selection.capture().frames, selection.functions());
    let is_own = |id: &FrameId| !frames[id.index()].inlined && functions.of_frame(*id) == function;
    let own = (0..frames.len()).map(FrameId::from_index).filter(is_own);
    let (own, addresses): (Vec<FrameId>, Vec<u64>) =
        own.filter_map(|id| Some((id, frames[id.index()].address?))).unzip();
    let mut found: Vec<(LoopHead, BTreeSet<FrameId>)> = Vec::new();
    for (id, heads) in own.into_iter().zip(loops_around(module, &addresses).unwrap_or_default()) {
        for head in heads {
            match found.iter_mut().find(|(known, _)| *known == head) {
                Some((_, ids)) => drop(ids.insert(id)),
                None => found.push((head, BTreeSet::from([id]))),
            }
        }
    }
    // What is in an inner loop is in the outer one, too.
    found.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    found
}

/// The name of a loop, with the line of the function that has it.
pub(super) fn name(module: &Path, head: LoopHead) -> String {
    let mut symbolizer = Symbolizer::new(Options { debuginfod: false, ..Options::default() });
    let names = symbolizer.name(&Code::file(module), &[head.offset]);
    let function = names.places.first().and_then(|place| place.frames.first());
    let place = function.and_then(|function| Some((function.file.as_deref()?, function.line?)));
    step_loop::name(&function.map_or("?".into(), |function| own_name(&function.function)), place, module, head.address)
}

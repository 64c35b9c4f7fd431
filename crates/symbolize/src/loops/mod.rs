//! What the loops of machine code do: search, scan or wait.
//!
//! Compilers inline a search and a wait, so that no name is left of them; their instructions stay. A function is decoded
//! from its start, divided into [blocks and natural loops](graph), and each loop is [classified](shape) by what its
//! instructions read, write and compare. Only x86-64 is decoded: other code has no loops here.

mod columns;
mod graph;
mod heads;
mod indices;
mod instruction;
mod least;
mod shape;
#[cfg(test)]
mod tests;

use std::ops::Range;

use iced_x86::FlowControl;
use object::{Architecture, Object, ObjectSection};
use stepscope_model::{CodeLoop, Module, ModuleLoops};

use crate::Symbolizer;
use crate::function_starts::FunctionStarts;
use crate::instructions::{MOST_CODE, extent};
use graph::{Graph, Natural};
pub use heads::{LoopHead, loop_at, loops_around};
use instruction::{Effect, Operation};

impl Symbolizer {
    /// The loops of the functions of a module that hold these addresses, in the recorded build. None if that build is not here.
    pub fn loops(&self, module: &Module, addresses: &[u64]) -> ModuleLoops {
        let mut sorted = addresses.to_vec();
        sorted.sort_unstable();
        let mut found =
            ModuleLoops { path: module.path.clone(), build_id: module.build_id.clone(), ..ModuleLoops::default() };
        let Ok(image) = self.recorded_image(module) else { return found };
        let elf = image.elf();
        if elf.architecture() != Architecture::X86_64 {
            return found;
        }
        let (starts, mut done) = (FunctionStarts::of(&elf), 0);
        for address in sorted {
            if address < done {
                continue;
            }
            let Some(extent) = extent(&elf, starts.as_ref(), address) else { continue };
            done = extent.end;
            let Some(bytes) = bytes(&elf, &extent) else { continue };
            let graph = Graph::of(bytes, extent.start);
            let loops = graph.loops();
            found.loops.extend(loops.iter().filter_map(|one| classify(&graph, &loops, one)));
            found.no_waits.extend(no_waits(&graph, &loops));
            if loops.is_empty() {
                found.straight_calls.extend(returns(&graph, 0..graph.blocks.len()));
            }
            found.looped_calls.extend(looped_calls(&graph));
            if is_question(&graph, &loops) {
                found.questions.push(extent);
            }
        }
        found.no_waits.sort_unstable();
        found.straight_calls.sort_unstable();
        found.looped_calls.sort_unstable();
        found
    }
}

/// One of a function's loops, if its shape is a known one.
fn classify(graph: &Graph, loops: &[Natural], natural: &Natural) -> Option<CodeLoop> {
    let found = least::least(graph, loops, natural)
        .or_else(|| shape::classify(graph, loops, natural))
        .or_else(|| indices::chain(graph, natural))
        .or_else(|| columns::columns(graph, loops, natural))?;
    let is_nested = loops.iter().any(|one| natural.is_within(one));
    Some(CodeLoop { is_nested, ..found })
}

/// The bytes between two addresses.
fn bytes<'data>(elf: &object::File<'data>, extent: &Range<u64>) -> Option<&'data [u8]> {
    let length = extent.end.checked_sub(extent.start)?;
    elf.sections().find_map(|section| section.data_range(extent.start, length).ok().flatten())
}

/// Most instructions of a function that only answers a question.
const MOST_OF_QUESTION: usize = 32;

/// Whether a function only loads, compares and returns: it has no loop, calls nothing, writes nothing and computes no numbers.
fn is_question(graph: &Graph, loops: &[Natural]) -> bool {
    let mut operations = graph.blocks.iter().flat_map(|block| &block.operations).peekable();
    let is_plain = |one: &Operation| match one.effect {
        Effect::Work => one.flow == FlowControl::Return,
        Effect::Call => false,
        _ => matches!(one.flow, FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch),
    };
    operations.peek().is_some() && loops.is_empty() && {
        let all: Vec<&Operation> = operations.collect();
        all.len() <= MOST_OF_QUESTION && all.into_iter().all(is_plain)
    }
}

/// Return addresses of the calls in these blocks.
fn returns(graph: &Graph, blocks: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let operations = blocks.into_iter().flat_map(|block| &graph.blocks[block].operations);
    operations.filter(|one| one.effect == Effect::Call).map(|one| one.end).collect()
}

/// Return addresses of the calls in loops.
fn looped_calls(graph: &Graph) -> Vec<u64> {
    let calls = |block: &usize| graph.blocks[*block].operations.iter().any(|one| one.effect == Effect::Call);
    returns(graph, (0..graph.blocks.len()).filter(calls).filter(|block| graph.is_in_cycle(*block)))
}

/// Return addresses of the calls that are in no loop, or whose innermost loop has other calls.
fn no_waits(graph: &Graph, loops: &[Natural]) -> Vec<u64> {
    let of_block = |block: usize| {
        let own = returns(graph, [block]);
        if own.is_empty() {
            return own;
        }
        let around = loops.iter().filter(|one| one.blocks.contains(&block)).min_by_key(|one| one.blocks.len());
        let is_alone = around.is_some_and(|one| returns(graph, one.blocks.iter().copied()).len() == 1);
        if is_alone { Vec::new() } else { own }
    };
    (0..graph.blocks.len()).flat_map(of_block).collect()
}

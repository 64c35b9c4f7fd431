//! A chain of indices: `while at != none { ...; at = above[at]; }`.
//!
//! Rust programs and arenas follow indices instead of pointers: the next index is loaded from the element that the last one names.
//! All rounds take one path. What leaves it is the end of the chain, and checks of an index against the length of a
//! list. No other register that is carried from round to round makes an address: lists of neighbours are passed element by
//! element, and each loaded index is used once.

use std::collections::BTreeSet;

use iced_x86::{FlowControl, Mnemonic};
use stepscope_model::{CodeLoop, LoopShape};

use super::graph::{Graph, Natural};
use super::instruction::{Effect, Operation, Registers};
use super::shape::{MOST, carried, changed, is_exchange, made};

/// What a register holds: made of these registers of the round before, and whether it was loaded from where they lead.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    of: Registers,
    is_loaded: bool,
}

impl Held {
    fn with(self, other: Self) -> Self {
        Self { of: self.of | other.of, is_loaded: self.is_loaded || other.is_loaded }
    }
}

/// A loop that follows one chain of indices to its end, and writes nothing.
pub(super) fn chain(graph: &Graph, natural: &Natural) -> Option<CodeLoop> {
    let path = path(graph, natural)?;
    let operations: Vec<&Operation> = path.iter().flat_map(|block| &graph.blocks[*block].operations).collect();
    let is_plain = |one: &&Operation| {
        let flows =
            matches!(one.flow, FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        flows && !is_exchange(one) && one.memory.is_none_or(|memory| !memory.is_written)
    };
    if operations.len() > MOST || !operations.iter().all(is_plain) || ends(graph, &path) != 1 {
        return None;
    }
    let round =
        carried(graph, natural.head, &natural.blocks) & operations.iter().fold(0, |all, one| all | changed(one));
    let mut held: [Held; 64] = std::array::from_fn(|at| Held { of: round & (1 << at), is_loaded: false });
    let mut of_addresses = 0;
    for one in &operations {
        let of_memory = one.memory.map(|memory| of(&held, memory.registers));
        of_addresses |= of_memory.map_or(0, |memory| if memory.is_loaded { 0 } else { memory.of });
        let loaded = of_memory.map(|memory| Held { is_loaded: memory.of != 0, ..memory });
        let of_registers = of(&held, one.reads & !one.memory.map_or(0, |memory| memory.registers));
        let value = match one.effect {
            Effect::Constant => Held::default(),
            Effect::Load => loaded.unwrap_or_default(),
            _ => of_registers.with(loaded.unwrap_or_default()),
        };
        registers(one.writes).for_each(|at| held[at] = value);
    }
    // The next index is loaded from where the last one leads, and no arithmetic is done with it.
    let is_followed = |at: &usize| {
        let itself = 1 << at;
        round & itself != 0 && held[*at].of & itself != 0 && held[*at].is_loaded && of_addresses & itself != 0
    };
    let chains: Registers = registers(round).filter(is_followed).fold(0, |all, at| all | 1 << at);
    let is_chain = chains.count_ones() == 1 && of_addresses & !chains == 0;
    is_chain.then(|| made(graph, natural, LoopShape::Chain, &natural.blocks, false))
}

/// The blocks of a loop in order, if all rounds take the same path.
fn path(graph: &Graph, natural: &Natural) -> Option<Vec<usize>> {
    let (mut path, mut at, mut seen) = (Vec::new(), natural.head, BTreeSet::new());
    loop {
        path.push(at);
        seen.insert(at);
        let mut next = graph.blocks[at].successors.iter().copied().filter(|one| natural.blocks.contains(one));
        match (next.next(), next.next()) {
            (Some(one), None) if one == natural.head => break,
            (Some(one), None) if !seen.contains(&one) => at = one,
            _ => return None,
        }
    }
    (path.len() == natural.blocks.len()).then_some(path)
}

/// How often a path may end, but for checks of an index against a length: unsigned comparisons with what stays the same.
fn ends(graph: &Graph, path: &[usize]) -> usize {
    let written = path.iter().flat_map(|block| &graph.blocks[*block].operations).fold(0, |all, one| all | changed(one));
    let is_end = |block: &&usize| {
        let operations = &graph.blocks[**block].operations;
        let Some(branch) = operations.last().filter(|one| one.flow == FlowControl::ConditionalBranch) else {
            return false;
        };
        let is_unsigned = matches!(branch.mnemonic, Mnemonic::Jae | Mnemonic::Jb | Mnemonic::Ja | Mnemonic::Jbe);
        let compared = operations.iter().rev().find(|one| one.sets_flags);
        let is_checked = compared.is_some_and(|one| {
            let stays = one.memory.map_or(one.reads & !written != 0, |memory| memory.registers & written == 0);
            one.mnemonic == Mnemonic::Cmp && !one.has_constant && stays
        });
        !(is_unsigned && is_checked)
    };
    path.iter().filter(is_end).count()
}

fn of(held: &[Held; 64], of: Registers) -> Held {
    registers(of).fold(Held::default(), |all, at| all.with(held[at]))
}

fn registers(of: Registers) -> impl Iterator<Item = usize> {
    (0..64).filter(move |at| of & (1 << at) != 0)
}

//! A loop that looks for the least or the greatest element: `for i in 1..n { if key[i] < key[best] { best = i; } }`.
//!
//! It passes elements by a constant stride or along a chain, and *keeps* the place of one of them: registers that are carried from round to round,
//! and only get the place, or what is loaded from there. What is loaded at the place is compared with what is kept, by order. Nothing else is
//! carried, computed or written: keys that are made in the loop, such as distances, have to be made.

use iced_x86::{FlowControl, Mnemonic};
use stepscope_model::{CodeLoop, LoopShape};

use super::graph::{Graph, Natural};
use super::instruction::{Effect, Memory, Operation, Registers};
use super::shape::{MOST, carried, made};

/// A loop that keeps the place of the least element.
pub(super) fn least(graph: &Graph, loops: &[Natural], natural: &Natural) -> Option<CodeLoop> {
    let operations = || natural.blocks.iter().flat_map(|block| &graph.blocks[*block].operations);
    let has_loop = loops.iter().any(|one| one.is_within(natural));
    if has_loop || operations().count() > MOST || !operations().all(is_plain) {
        return None;
    }
    let written = operations().fold(0, |all, one| all | one.writes);
    let round = carried(graph, natural.head, &natural.blocks) & written;
    let (cursors, kept): (Vec<Registers>, Vec<Registers>) =
        each(round).partition(|register| operations().filter(|one| one.writes & register != 0).all(moves_on));
    let (cursors, kept) = (cursors.into_iter().sum(), kept.into_iter().sum());
    let mut round = Round { cursors, kept, held: std::array::from_fn(|at| Held::at_head((1 << at) & round)) };
    let (mut keeps_place, mut compares) = (false, false);
    for block in &natural.blocks {
        let block = &graph.blocks[*block].operations;
        for (at, one) in block.iter().enumerate() {
            compares |= one.effect == Effect::Compare && is_by_order(&block[at + 1..]) && round.compares(one);
            let value = round.value(one);
            if one.writes & kept != 0 {
                if !round.may_be_kept(one, value) {
                    return None;
                }
                keeps_place |= !value.is_loaded && value.of & cursors != 0;
            }
            each(one.writes).for_each(|register| round.held[register.trailing_zeros() as usize] = value);
        }
    }
    (keeps_place && compares).then(|| made(graph, natural, LoopShape::Least, &natural.blocks, false))
}

/// What a register holds: made of these registers of the round before, and whether it was loaded from where they lead.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    of: Registers,
    is_loaded: bool,
}

impl Held {
    fn at_head(of: Registers) -> Self {
        Self { of, is_loaded: false }
    }

    fn with(self, other: Self) -> Self {
        Self { of: self.of | other.of, is_loaded: self.is_loaded || other.is_loaded }
    }
}

/// A round of the loop.
struct Round {
    /// Registers that lead from element to element.
    cursors: Registers,
    /// What else is carried.
    kept: Registers,
    held: [Held; 64],
}

impl Round {
    fn of(&self, registers: Registers) -> Held {
        each(registers).fold(Held::default(), |all, one| all.with(self.held[one.trailing_zeros() as usize]))
    }

    fn loaded(&self, memory: &Memory) -> Held {
        let of = self.of(memory.registers).of;
        Held { of, is_loaded: of != 0 }
    }

    /// What an instruction makes.
    fn value(&self, one: &Operation) -> Held {
        let plain = self.of(one.reads & !one.memory.map_or(0, |memory| memory.registers));
        match (one.effect, &one.memory) {
            (Effect::Constant, _) => Held::default(),
            (Effect::Load, Some(memory)) => self.loaded(memory),
            (_, Some(memory)) => plain.with(self.loaded(memory)),
            _ => plain,
        }
    }

    /// Whether an instruction compares what is loaded at the cursors with what is kept.
    fn compares(&self, one: &Operation) -> bool {
        let address = one.memory.map_or(0, |memory| memory.registers);
        let mut sides: Vec<Held> = each(one.reads & !address).map(|register| self.of(register)).collect();
        sides.extend(one.memory.map(|memory| self.loaded(&memory)));
        let [first, second] = sides[..] else { return false };
        let is_element = |side: Held| side.is_loaded && side.of & !self.cursors == 0;
        let is_kept = |side: Held| side.of != 0 && side.of & !self.kept == 0;
        is_element(first) && is_kept(second) || is_element(second) && is_kept(first)
    }

    /// Whether a register that is kept gets the place of an element, or what is loaded from there, or stays as it is.
    fn may_be_kept(&self, one: &Operation, value: Held) -> bool {
        let is_copy = is_conditional_move(one) || matches!(one.effect, Effect::Place | Effect::Load) || is_least(one);
        let is_of_itself = one.effect == Effect::Place && one.stride.is_some() && value.of & self.kept != 0;
        is_copy && !is_of_itself && value.of != 0
    }
}

/// Each register of a set, as a set.
fn each(registers: Registers) -> impl Iterator<Item = Registers> {
    (0..64).map(|at| 1 << at).filter(move |one| registers & one != 0)
}

/// Whether an instruction moves a register on: by a constant, or along a chain.
fn moves_on(one: &Operation) -> bool {
    let along_chain = one.effect == Effect::Load && one.memory.is_some_and(|memory| memory.registers == one.writes);
    one.moves().is_some() || along_chain && one.reads == one.writes
}

/// Whether an instruction is one of those that only move on, load, compare and choose.
fn is_plain(one: &Operation) -> bool {
    let flows =
        matches!(one.flow, FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
    flows
        && one.memory.is_none_or(|memory| !memory.is_written)
        && match one.effect {
            Effect::Work => is_least(one),
            Effect::Logic => is_conditional_move(one),
            Effect::Call => false,
            _ => true,
        }
}

/// The lesser or the greater of two numbers.
fn is_least(one: &Operation) -> bool {
    use Mnemonic as M;
    matches!(one.mnemonic, M::Minss | M::Minsd | M::Maxss | M::Maxsd | M::Vminss | M::Vminsd | M::Vmaxss | M::Vmaxsd)
}

fn is_conditional_move(one: &Operation) -> bool {
    use Mnemonic as M;
    is_ordered_move(one.mnemonic) || matches!(one.mnemonic, M::Cmove | M::Cmovne | M::Cmovs | M::Cmovns)
}

fn is_ordered_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Cmova | M::Cmovae | M::Cmovb | M::Cmovbe | M::Cmovg | M::Cmovge | M::Cmovl | M::Cmovle)
}

/// Whether what follows a comparison asks which of the two is greater.
fn is_by_order(after: &[Operation]) -> bool {
    use Mnemonic as M;
    let is_ordered = |mnemonic: Mnemonic| {
        let jumps = matches!(mnemonic, M::Ja | M::Jae | M::Jb | M::Jbe | M::Jg | M::Jge | M::Jl | M::Jle);
        jumps || is_ordered_move(mnemonic)
    };
    after.iter().take_while(|one| !one.sets_flags).any(|one| is_ordered(one.mnemonic))
}

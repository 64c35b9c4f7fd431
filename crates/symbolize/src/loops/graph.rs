//! [`Graph`]: the blocks of a function and its natural loops.
//!
//! A *natural loop* has one head, which dominates all of its blocks (Aho, Lam, Sethi, Ullman: *Compilers*, 9.6). Jumps through a
//! register lead nowhere here: loops around a `switch` with a table are not found.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic};

use super::instruction::Operation;

/// Instructions that are entered at the first only.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub operations: Vec<Operation>,
    /// Blocks of the function that follow.
    pub successors: Vec<usize>,
    pub predecessors: Vec<usize>,
    /// Whether it also leads out of the function.
    pub leaves: bool,
}

/// The code of a function.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub blocks: Vec<Block>,
}

/// A natural loop.
#[derive(Debug)]
pub(super) struct Natural {
    pub head: usize,
    pub blocks: BTreeSet<usize>,
}

impl Natural {
    /// Whether another loop is around it. Two loops of the same blocks are two ways through one.
    pub fn is_within(&self, other: &Self) -> bool {
        other.blocks.len() > self.blocks.len() && other.blocks.contains(&self.head)
    }
}

/// More blocks than this are of generated code, whose loops are not looked at.
const MOST_BLOCKS: usize = 8_000;

impl Graph {
    /// The graph of a function's code, which starts at `start`.
    pub fn of(code: &[u8], start: u64) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let operations: Vec<Operation> =
            decoder.into_iter().filter(|one| !one.is_invalid()).map(|one| Operation::of(&one, &mut factory)).collect();
        let end = start + code.len() as u64;
        let mut leaders: BTreeSet<u64> = operations.iter().take(1).map(|one| one.start).collect();
        for one in &operations {
            leaders.extend(one.target.filter(|target| (start..end).contains(target)));
            if !matches!(one.flow, FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall) {
                leaders.insert(one.end);
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of: BTreeMap<u64, usize> = BTreeMap::new();
        for one in operations {
            if leaders.contains(&one.start) || blocks.is_empty() {
                block_of.insert(one.start, blocks.len());
                blocks.push(Block::default());
            }
            blocks.last_mut().expect("one was added").operations.push(one);
        }
        for index in 0..blocks.len() {
            let last = blocks[index].operations.last().expect("a block has an instruction");
            let falls = matches!(
                last.flow,
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall | FlowControl::ConditionalBranch
            );
            let next = falls.then_some(last.end);
            let followers: Vec<u64> = next.into_iter().chain(last.target).collect();
            let is_last = followers.is_empty();
            let inside: Vec<usize> = followers.iter().filter_map(|at| block_of.get(at).copied()).collect();
            blocks[index].leaves = is_last || inside.len() < followers.len();
            for successor in &inside {
                blocks[*successor].predecessors.push(index);
            }
            blocks[index].successors = inside;
        }
        // Padding before the target of a jump leads there, but is never executed.
        for index in 1..blocks.len() {
            let is_padding = blocks[index].predecessors.is_empty()
                && blocks[index].operations.iter().all(|one| one.mnemonic == Mnemonic::Nop);
            if is_padding {
                for successor in std::mem::take(&mut blocks[index].successors) {
                    blocks[successor].predecessors.retain(|one| *one != index);
                }
            }
        }
        if blocks.len() > MOST_BLOCKS {
            blocks.clear();
        }
        Self { blocks }
    }

    /// Whether a way leads from a block back to it: also around loops that are no natural ones.
    pub fn is_in_cycle(&self, block: usize) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut wanted = self.blocks[block].successors.clone();
        while let Some(one) = wanted.pop() {
            if one == block {
                return true;
            }
            if !std::mem::replace(&mut seen[one], true) {
                wanted.extend(&self.blocks[one].successors);
            }
        }
        false
    }

    /// Its natural loops. Loops with the same head are one.
    pub fn loops(&self) -> Vec<Natural> {
        let is_root = |block: &usize| *block == 0 || self.blocks[*block].predecessors.is_empty();
        self.loops_from((0..self.blocks.len()).filter(is_root).collect())
    }

    /// The natural loops of the code that is reached from the function's start. Jumps through a register may lead to any block that
    /// nothing else leads to. Code that handles exceptions has its loops, too, but does not enter those of others.
    pub fn likely_loops(&mut self) -> Vec<Natural> {
        let jumps =
            |block: &Block| block.operations.last().is_some_and(|last| last.flow == FlowControl::IndirectBranch);
        let jumping: Vec<usize> = (0..self.blocks.len()).filter(|block| jumps(&self.blocks[*block])).collect();
        let alone: Vec<usize> = (1..self.blocks.len()).filter(|at| self.blocks[*at].predecessors.is_empty()).collect();
        for jump in jumping {
            self.blocks[jump].successors.extend(&alone);
            alone.iter().for_each(|block| self.blocks[*block].predecessors.push(jump));
        }
        self.loops_from(vec![0])
    }

    fn loops_from(&self, roots: Vec<usize>) -> Vec<Natural> {
        let dominators = Dominators::of(self, roots);
        let mut loops: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (block, successor) in
            (0..self.blocks.len()).flat_map(|at| self.blocks[at].successors.iter().map(move |to| (at, *to)))
        {
            if !dominators.is_reached(block) || !dominators.dominates(successor, block) {
                continue;
            }
            let body = loops.entry(successor).or_insert_with(|| BTreeSet::from([successor]));
            let mut wanted = vec![block];
            while let Some(one) = wanted.pop() {
                if body.insert(one) {
                    wanted.extend(&self.blocks[one].predecessors);
                }
            }
        }
        loops.into_iter().map(|(head, blocks)| Natural { head, blocks }).collect()
    }
}

/// The immediate dominator of each block (Cooper, Harvey, Kennedy: *A Simple, Fast Dominance Algorithm*).
struct Dominators {
    immediate: Vec<Option<usize>>,
    /// Place of each block in reverse postorder.
    place: Vec<usize>,
}

impl Dominators {
    fn of(graph: &Graph, mut roots: Vec<usize>) -> Self {
        let number = graph.blocks.len();
        roots.retain(|block| *block < number);
        // One root stands before all others.
        let root = number;
        let mut order = Vec::with_capacity(number + 1);
        let mut seen = vec![false; number];
        for start in roots.iter().copied() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut path = vec![(start, 0)];
            while let Some((block, next)) = path.last_mut() {
                match graph.blocks[*block].successors.get(*next) {
                    Some(successor) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[*successor], true) {
                            path.push((*successor, 0));
                        }
                    }
                    None => {
                        order.push(*block);
                        path.pop();
                    }
                }
            }
        }
        order.push(root);
        order.reverse();
        let mut place = vec![usize::MAX; number + 1];
        order.iter().enumerate().for_each(|(at, block)| place[*block] = at);
        let mut immediate: Vec<Option<usize>> = vec![None; number + 1];
        immediate[root] = Some(root);
        let is_root: BTreeSet<usize> = roots.into_iter().collect();
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().skip(1) {
                let before = graph.blocks[block].predecessors.iter().copied().filter(|one| immediate[*one].is_some());
                let before = before.chain(is_root.contains(&block).then_some(root));
                let common = before.reduce(|mut one, mut other| {
                    while one != other {
                        while place[one] > place[other] {
                            one = immediate[one].expect("it was reached");
                        }
                        while place[other] > place[one] {
                            other = immediate[other].expect("it was reached");
                        }
                    }
                    one
                });
                if common.is_some() && immediate[block] != common {
                    immediate[block] = common;
                    changed = true;
                }
            }
        }
        Self { immediate, place }
    }

    fn is_reached(&self, block: usize) -> bool {
        self.immediate[block].is_some()
    }

    fn dominates(&self, one: usize, other: usize) -> bool {
        let mut at = other;
        while self.place[at] > self.place[one] && self.place[at] != usize::MAX {
            let Some(next) = self.immediate[at] else { return false };
            at = next;
        }
        at == one
    }
}

//! The shape of a natural loop.
//!
//! The *pass* of a loop is the cycle through its head that only moves on, loads and compares: what an element takes that nothing is done
//! with. In it,
//!
//! - a *place* is a register that addresses are made of. It moves on by a constant, or is loaded from memory at itself (a chain). Two
//!   chains, or a place made by logic, are a walk through a tree or a table of hashes;
//! - *data* is loaded from a place; what is compared with it stays the same;
//! - no other register is carried from one round to the next, but counters: a sum or a minimum needs all elements.
//!
//! A comparison of data that leads out of the loop makes it a search, one that leads to other blocks of the loop makes it a scan.
//! Texts that are scanned byte by byte are neither, and a run of equal elements is no search.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{FlowControl, Mnemonic};
use stepscope_model::{CodeLoop, LoopShape};

use super::graph::{Graph, Natural};
use super::instruction::{CHANGED_BY_CALLS, Effect, Memory, Operation, RESULT, Registers};

/// Most instructions of a pass.
pub(super) const MOST: usize = 64;

/// Most instructions of a loop with all that it does. Larger ones are the main loops of programs, and take long to look at.
const MOST_OF_LOOP: usize = 2_000;

/// Instructions beside a loop that count as its edges.
const EDGE: usize = 8;

/// The shape of one of a function's loops, if it is a known one.
pub(super) fn classify(graph: &Graph, loops: &[Natural], natural: &Natural) -> Option<CodeLoop> {
    if is_large(graph, natural) {
        return None;
    }
    if let Some(spin) = spin(graph, natural) {
        return Some(spin);
    }
    if goes_through_tree(graph, loops, natural) {
        return None;
    }
    [false, true].into_iter().find_map(|calls| pass_of(graph, natural, calls)).or_else(|| chain(graph, natural))
}

fn is_large(graph: &Graph, natural: &Natural) -> bool {
    natural.blocks.iter().map(|block| graph.blocks[*block].operations.len()).sum::<usize>() > MOST_OF_LOOP
}

/// Whether a loop around it follows other pointers of the same elements: one loop goes to the right, the other to the left.
fn goes_through_tree(graph: &Graph, loops: &[Natural], natural: &Natural) -> bool {
    if Facts::of(graph, natural.head, &natural.blocks).chains == 0 {
        return false;
    }
    let mut around = loops.iter().filter(|one| one.head != natural.head && one.blocks.contains(&natural.head));
    around.any(|one| !is_large(graph, one) && Facts::of(graph, one.head, &one.blocks).chains > 1)
}

/// A loop that reads the same memory, with nothing carried from one round to the next.
fn spin(graph: &Graph, natural: &Natural) -> Option<CodeLoop> {
    let blocks = &natural.blocks;
    let operations = || blocks.iter().flat_map(|block| &graph.blocks[*block].operations);
    let is_allowed = |one: &Operation| match one.effect {
        Effect::Work => one.mnemonic == Mnemonic::Rdtsc || (is_exchange(one) && one.memory.is_some()),
        Effect::Call => false,
        _ => true,
    };
    if operations().count() > MOST || !operations().all(is_allowed) {
        return None;
    }
    let facts = Facts::of(graph, natural.head, blocks);
    let pauses = operations().any(|one| one.mnemonic == Mnemonic::Pause);
    let stays = |memory: &Memory| memory.registers & facts.written == 0 || facts.is_same(memory.registers);
    let mut reads = operations().filter_map(|one| one.memory.as_ref()).peekable();
    // `cmpxchg` leaves what it read in `rax`, from one round to the next.
    let exchanges = operations().any(|one| one.mnemonic == Mnemonic::Cmpxchg);
    let carried = facts.carried & !(if exchanges { RESULT } else { 0 });
    let is_same =
        reads.peek().is_some() && reads.all(stays) && (carried == 0 || (pauses && facts.are_counters(carried)));
    is_same.then(|| made(graph, natural, LoopShape::Spin, blocks, false))
}

/// A loop that follows one chain of pointers to its end. An index is no pointer: lists of neighbours are made of these.
fn chain(graph: &Graph, natural: &Natural) -> Option<CodeLoop> {
    let operations = || natural.blocks.iter().flat_map(|block| &graph.blocks[*block].operations);
    let decisions = operations().filter(|one| one.flow == FlowControl::ConditionalBranch).count();
    let stays = |one: &Operation| {
        let is_plain =
            matches!(one.flow, FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        is_plain && !is_exchange(one) && one.memory.is_none_or(|memory| !memory.is_written && memory.index.is_none())
    };
    if decisions != 1 || operations().count() > MOST || !operations().all(stays) {
        return None;
    }
    let facts = Facts::of(graph, natural.head, &natural.blocks);
    let moves_by_stride = facts.strides.iter().any(|(of, _)| of & facts.places & facts.carried != 0);
    let is_chain = facts.chains == 1 && !facts.is_walk && !moves_by_stride;
    is_chain.then(|| made(graph, natural, LoopShape::Chain, &natural.blocks, false))
}

/// An exchange with memory: a lock that is tried, a flag that is asked for.
pub(super) fn is_exchange(one: &Operation) -> bool {
    matches!(one.mnemonic, Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Bts | Mnemonic::Btr)
}

/// A search or a scan.
fn pass_of(graph: &Graph, natural: &Natural, may_call: bool) -> Option<CodeLoop> {
    let is_clean = |block: &usize| {
        graph.blocks[*block].operations.iter().all(|one| match one.effect {
            Effect::Work => false,
            Effect::Call => may_call,
            _ => true,
        })
    };
    let pass = cycle(graph, natural, is_clean);
    let operations = || pass.iter().flat_map(|block| &graph.blocks[*block].operations);
    let calls = operations().filter(|one| one.effect == Effect::Call).count();
    // A virtual function that the compiler expects is called in two ways.
    let is_called = if may_call { (1..=2).contains(&calls) } else { calls == 0 };
    if pass.is_empty() || operations().count() > MOST || !is_called {
        return None;
    }
    let facts = Facts::of(graph, natural.head, &pass);
    if !facts.moves_on(may_call) {
        return None;
    }
    let is_nested = has_inner(graph, natural, &pass);
    let (mut leaves, mut picks) = (false, false);
    for block in &pass {
        let decides = facts.decides(graph, &pass, *block, is_nested, Data::OnlyData);
        // A pointer of an element that is none may be the end of a chain, so it ends no search.
        if !decides && !facts.decides(graph, &pass, *block, is_nested, Data::LoadedInBlock) {
            continue;
        }
        let block_leaves = graph.blocks[*block].leaves
            || graph.blocks[*block].successors.iter().any(|one| !natural.blocks.contains(one));
        leaves |= decides && block_leaves && (is_nested || !goes_on_while_equal(graph, natural, *block));
        picks |= graph.blocks[*block].successors.iter().any(|one| natural.blocks.contains(one) && !pass.contains(one));
    }
    let shape = match (leaves, picks) {
        (true, _) => LoopShape::Search,
        (false, true) if !facts.gathers => LoopShape::Scan,
        (false, false) if may_call && pass == natural.blocks && !facts.gathers => LoopShape::Visit,
        _ => return None,
    };
    Some(made(graph, natural, shape, &pass, calls > 0))
}

/// Whether a block leaves the loop where two values are no longer equal: it measures a run of equal elements, or compares two lists. Where it goes on
/// while elements are a constant, it looks for one that is not.
fn goes_on_while_equal(graph: &Graph, natural: &Natural, block: usize) -> bool {
    let operations = &graph.blocks[block].operations;
    let Some(last) = operations.last() else { return false };
    let Some(setter) = operations.iter().rev().find(|one| one.sets_flags) else { return false };
    if setter.mnemonic != Mnemonic::Cmp || setter.has_constant {
        return false;
    }
    let starts_at = |block: &usize| graph.blocks[*block].operations.first().map(|one| one.start);
    let jumps_within = natural.blocks.iter().any(|block| starts_at(block) == last.target);
    match last.mnemonic {
        Mnemonic::Je => jumps_within,
        Mnemonic::Jne => !jumps_within,
        _ => false,
    }
}

/// Blocks on cycles through the head, all of which are clean.
fn cycle(graph: &Graph, natural: &Natural, is_clean: impl Fn(&usize) -> bool) -> BTreeSet<usize> {
    let reach = |next: &dyn Fn(usize) -> Vec<usize>| {
        let mut reached = BTreeSet::new();
        let mut wanted = vec![natural.head];
        while let Some(block) = wanted.pop() {
            for one in next(block) {
                if natural.blocks.contains(&one) && is_clean(&one) && reached.insert(one) && one != natural.head {
                    wanted.push(one);
                }
            }
        }
        reached
    };
    if !is_clean(&natural.head) {
        return BTreeSet::new();
    }
    let forward = reach(&|block| graph.blocks[block].successors.clone());
    let backward = reach(&|block| graph.blocks[block].predecessors.clone());
    forward.intersection(&backward).copied().collect()
}

/// Whether the pass has a loop of its own, apart from its head's.
fn has_inner(graph: &Graph, natural: &Natural, pass: &BTreeSet<usize>) -> bool {
    // Without the head, a block that leads to itself is in a loop.
    pass.iter().filter(|block| **block != natural.head).any(|start| {
        let (mut seen, mut wanted) = (BTreeSet::new(), vec![*start]);
        while let Some(block) = wanted.pop() {
            for one in &graph.blocks[block].successors {
                if one == start {
                    return true;
                }
                if *one != natural.head && pass.contains(one) && seen.insert(*one) {
                    wanted.push(*one);
                }
            }
        }
        false
    })
}

pub(super) fn made(
    graph: &Graph,
    natural: &Natural,
    shape: LoopShape,
    inside: &BTreeSet<usize>,
    calls: bool,
) -> CodeLoop {
    let range =
        |operations: &[Operation]| -> Option<Range<u64>> { Some(operations.first()?.start..operations.last()?.end) };
    let block_range = |block: &usize| range(&graph.blocks[*block].operations);
    let before = graph.blocks[natural.head].predecessors.iter().filter(|one| !natural.blocks.contains(one));
    let before = before.filter_map(|one| {
        let operations = &graph.blocks[*one].operations;
        range(&operations[operations.len().saturating_sub(EDGE)..])
    });
    let exits = natural.blocks.iter().flat_map(|block| &graph.blocks[*block].successors);
    let after: BTreeSet<usize> = exits.filter(|one| !natural.blocks.contains(one)).copied().collect();
    let after = after.iter().filter_map(|one| {
        let operations = &graph.blocks[*one].operations;
        range(&operations[..operations.len().min(EDGE)])
    });
    CodeLoop {
        shape,
        inside: inside.iter().filter_map(block_range).collect(),
        edges: before.chain(after).collect(),
        uses: natural.blocks.difference(inside).filter_map(block_range).collect(),
        calls,
        is_nested: false,
    }
}

/// Which registers count as data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// Those that no address is made of.
    OnlyData,
    /// Also those that the block itself loads: a register may have been a place before.
    LoadedInBlock,
}

/// What the registers of a cycle are.
struct Facts {
    written: Registers,
    /// Read before they are written, and written: from the round before.
    carried: Registers,
    /// Addresses are made of them.
    places: Registers,
    /// Made of places alone: the end of a part.
    ends: Registers,
    /// Loaded from places, and made of that.
    data: Registers,
    /// The same in each round, though written.
    same: Registers,
    /// Whether an address has an index that was loaded.
    gathers: bool,
    /// Places that are made by logic, or chains of two kinds.
    is_walk: bool,
    /// Whether a carried place moves on by a constant, or along a chain.
    advances: bool,
    /// Chains that are followed.
    chains: usize,
    /// Whether it calls a function.
    calls: bool,
    /// Carried registers that only count.
    counters: Registers,
    /// Bytes that a carried place moves on by, and that are read there.
    strides: Vec<(Registers, i64)>,
}

impl Facts {
    fn of(graph: &Graph, head: usize, blocks: &BTreeSet<usize>) -> Self {
        let operations: Vec<&Operation> = blocks.iter().flat_map(|block| &graph.blocks[*block].operations).collect();
        let written = operations.iter().fold(0, |all, one| all | changed(one));
        let carried = carried(graph, head, blocks) & written;
        // Copies of each other, each other's next.
        let kin = Kin::of(&operations);
        let mut places = operations.iter().filter_map(|one| one.memory).fold(0, |all, memory| all | memory.registers);
        places &= written;
        loop {
            let copied = operations
                .iter()
                .filter(|one| one.writes & places != 0)
                .filter(|one| matches!(one.effect, Effect::Place | Effect::Advance | Effect::Scale));
            let more = copied.fold(places, |all, one| all | (one.reads & written));
            if more == places {
                break;
            }
            places = more;
        }
        let mut ends = 0;
        loop {
            let of_places = |one: &&Operation| {
                matches!(one.effect, Effect::Place | Effect::Advance) && one.reads & written & !places & !ends == 0
            };
            let (made, other): (Vec<&Operation>, Vec<&Operation>) = operations.iter().copied().partition(of_places);
            let made = made.iter().fold(0, |all, one| all | one.writes) & !places;
            let more = made & !other.iter().fold(0, |all, one| all | changed(one));
            if more == ends {
                break;
            }
            ends = more;
        }
        let is_same_address = |memory: &Memory, same: Registers| memory.registers & written & !same == 0;
        let mut same = written & !carried;
        loop {
            let left = operations.iter().filter(|one| {
                let from = one.reads & written & !same & !one.memory.map_or(0, |memory| memory.registers);
                let loads_other = one.memory.is_some_and(|memory| !is_same_address(&memory, same));
                from != 0 || loads_other || one.effect == Effect::Call
            });
            let fewer = left.fold(same, |all, one| all & !changed(one));
            if fewer == same {
                break;
            }
            same = fewer;
        }
        let mut data = operations.iter().fold(0, |all, one| match one.effect {
            Effect::Call => all | RESULT,
            _ if one.memory.is_some_and(|memory| !is_same_address(&memory, same)) => all | one.writes,
            _ => all,
        });
        loop {
            let more =
                operations.iter().filter(|one| one.reads & data & !places != 0).fold(data, |all, one| all | one.writes);
            if more == data {
                break;
            }
            data = more;
        }
        let mut strides = Vec::new();
        let mut chains = BTreeSet::new();
        let (mut is_walk, mut gathers, mut counters, mut not_counters) = (false, false, 0, 0);
        for one in &operations {
            let of_place = one.writes & places;
            match one.effect {
                Effect::Advance | Effect::Place => {
                    let to_itself = one.writes & one.reads != 0 || kin.are(one.writes, one.reads);
                    if to_itself && let Some(stride) = one.stride {
                        strides.push((one.writes, stride));
                    }
                    let is_count = one.effect == Effect::Advance && one.stride.is_some();
                    if is_count { counters |= one.writes } else { not_counters |= one.writes }
                }
                Effect::Load => {
                    not_counters |= one.writes;
                    let Some(memory) = one.memory.filter(|_| of_place != 0) else { continue };
                    let is_chain = carried & kin.all(one.writes) != 0 && kin.are(one.writes, memory.registers);
                    if is_chain {
                        chains.insert(memory.displacement);
                    }
                }
                Effect::Constant => not_counters |= one.writes,
                // Twice the place is a child in a heap.
                Effect::Scale => {
                    not_counters |= one.writes;
                    is_walk |= of_place & carried != 0;
                }
                Effect::Logic => {
                    not_counters |= one.writes;
                    is_walk |= of_place != 0;
                }
                Effect::Call => is_walk |= places & carried & CHANGED_BY_CALLS != 0,
                _ => not_counters |= one.writes,
            }
        }
        for index in operations.iter().map(|one| one.scaled).filter(|index| *index != 0) {
            let is_loaded = operations.iter().any(|one| one.effect == Effect::Load && one.writes & index != 0);
            gathers |= is_loaded && carried & index == 0;
        }
        is_walk |= chains.len() > 1;
        let chains = chains.len();
        let advances = chains > 0 || strides.iter().any(|(of, _)| kin.all(*of) & places & kin.all(carried) != 0);
        Self {
            written,
            carried,
            places,
            ends,
            data,
            same,
            gathers,
            is_walk,
            advances,
            chains,
            calls: operations.iter().any(|one| one.effect == Effect::Call),
            counters: counters & !not_counters,
            strides,
        }
    }

    fn is_same(&self, registers: Registers) -> bool {
        registers & self.written & !self.same == 0
    }

    fn are_counters(&self, registers: Registers) -> bool {
        registers & !self.counters == 0
    }

    /// Whether it goes from element to element, and carries nothing else along. A function that it calls may get the number of the element.
    fn moves_on(&self, calls: bool) -> bool {
        let others = self.carried & !self.places & !self.ends & !self.counters;
        let advances = self.advances || (calls && self.carried & self.counters != 0);
        advances && !self.is_walk && others == 0
    }

    /// Whether a block ends by comparing data with what stays the same.
    fn decides(&self, graph: &Graph, pass: &BTreeSet<usize>, block: usize, is_nested: bool, which: Data) -> bool {
        let ends = graph.blocks[block].operations.last();
        if ends.is_none_or(|one| one.flow != FlowControl::ConditionalBranch) {
            return false;
        }
        let setter = |block: usize| graph.blocks[block].operations.iter().rev().find(|one| one.sets_flags);
        let before = || {
            let mut before = graph.blocks[block].predecessors.iter().filter(|one| pass.contains(one));
            before.next().filter(|_| before.next().is_none()).copied().and_then(setter)
        };
        let Some(one) = setter(block).or_else(before) else { return false };
        let varying = one.memory.filter(|memory| !self.is_same(memory.registers));
        let address = one.memory.map_or(0, |memory| memory.registers);
        let plain = one.reads & !address;
        let also = if which == Data::LoadedInBlock { self.loaded_in(graph, block, plain) } else { 0 };
        let data = plain & self.data & (!self.places | also);
        // A truth value that a call gives, also where the register held an address before.
        let is_truth = one.mnemonic == Mnemonic::Test && one.is_of_byte && plain == RESULT && self.calls;
        // What else is compared: registers that change are places, such as an end that is met.
        let others = if is_truth { 0 } else { plain & self.written & !self.same & !data };
        let is_text = varying.is_some_and(|memory| memory.bytes == 1 && self.strides_by_byte(&memory));
        let loads = || self.loads_of(graph, pass, data);
        let of_text = !is_nested
            && (is_text
                || (varying.is_none() && loads().any(|memory| memory.bytes == 1 && self.strides_by_byte(&memory))));
        let of_call = is_truth || (data & RESULT != 0 && loads().next().is_none());
        let has_data = varying.is_some() || data != 0 || of_call;
        // A number that is compared with itself: every element is checked for being one.
        let with_itself = one.is_of_floats() && one.memory.is_none() && plain.count_ones() == 1;
        // Two loaded values that are compared: an element is compared with its neighbour, unless texts are.
        let both = varying.is_some() && data != 0 || data.count_ones() > 1;
        has_data && others == 0 && !of_text && !with_itself && (!both || is_nested)
    }

    /// Those of these registers that the block itself loads last, and that no later round reads: data, also where an address was in them before.
    fn loaded_in(&self, graph: &Graph, block: usize, registers: Registers) -> Registers {
        let mut left = registers & !self.carried;
        let mut loaded = 0;
        for one in graph.blocks[block].operations.iter().rev() {
            loaded |= if one.effect == Effect::Load { one.writes & left } else { 0 };
            left &= !changed(one);
        }
        loaded
    }

    /// The loads from places that make these registers.
    fn loads_of<'g>(
        &self,
        graph: &'g Graph,
        pass: &'g BTreeSet<usize>,
        data: Registers,
    ) -> impl Iterator<Item = Memory> {
        let same = self.same;
        let written = self.written;
        pass.iter().flat_map(move |block| &graph.blocks[*block].operations).filter_map(move |one| {
            one.memory.filter(|memory| one.writes & data != 0 && memory.registers & written & !same != 0)
        })
    }

    fn strides_by_byte(&self, memory: &Memory) -> bool {
        let is_byte = |of: Registers, stride: i64| (stride * i64::from(memory.scale(of))).abs() == 1;
        self.strides.iter().any(|(of, stride)| memory.registers & of != 0 && is_byte(*of, *stride))
    }
}

/// What an instruction may change.
pub(super) fn changed(one: &Operation) -> Registers {
    match one.effect {
        Effect::Call => one.writes | CHANGED_BY_CALLS,
        _ => one.writes,
    }
}

/// Registers that are read at the head before they are written: from the round before.
pub(super) fn carried(graph: &Graph, head: usize, blocks: &BTreeSet<usize>) -> Registers {
    let mut live: BTreeMap<usize, Registers> = BTreeMap::new();
    let mut changes = true;
    while changes {
        changes = false;
        for block in blocks.iter().rev() {
            // What is live around the loop counts at its head only.
            let after = graph.blocks[*block].successors.iter().filter(|one| blocks.contains(one) && **one != head);
            let mut at = after.fold(0, |all, one| all | live.get(one).copied().unwrap_or(0));
            for one in graph.blocks[*block].operations.iter().rev() {
                at = (at & !changed(one)) | one.reads;
            }
            changes |= live.insert(*block, at) != Some(at);
        }
    }
    live.get(&head).copied().unwrap_or(0)
}

/// Which registers are copies of each other, or one further.
struct Kin([Registers; 64]);

impl Kin {
    fn of(operations: &[&Operation]) -> Self {
        let mut kin = Self(std::array::from_fn(|at| 1 << at));
        for one in operations {
            if one.effect == Effect::Place && one.writes.count_ones() == 1 && one.reads.count_ones() == 1 {
                let all = kin.all(one.writes) | kin.all(one.reads);
                (0..64).filter(|at| all & (1 << at) != 0).for_each(|at| kin.0[at] = all);
            }
        }
        kin
    }

    /// All that are kin of these.
    fn all(&self, of: Registers) -> Registers {
        (0..64).filter(|at| of & (1 << at) != 0).fold(of, |all, at| all | self.0[at])
    }

    fn are(&self, one: Registers, other: Registers) -> bool {
        self.all(one) & other != 0
    }
}

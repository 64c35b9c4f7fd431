//! Loops that go along a column of a matrix, row by row, while the loop around them goes from element to element of a row.
//!
//! The inner loop moves a place on by the length of a row. The loop around it sets that place again in each round, and moves what it is set from on
//! by one element. So the memory is passed in another order than it stands. A loop over large objects also moves on by much, but what is around it
//! does not move on by an element. A matrix whose size is known to be small does not count: the caches hold it.

use std::collections::BTreeSet;

use stepscope_model::{CodeLoop, LoopShape};

use super::graph::{Graph, Natural};
use super::instruction::{Effect, Memory, Operation, Registers};
use super::shape::{MOST, carried, changed, made};

/// Least bytes from one row to the next: eight cache lines. Rows of smaller matrices stay in the first-level cache.
const LEAST_STRIDE: u64 = 512;

/// Matrices of fewer bytes stay in the second-level cache: the line of an element is still there when the next column needs it.
const LEAST_BYTES: u64 = 512 << 10;

/// One of a function's innermost loops, if it goes along columns.
pub(super) fn columns(graph: &Graph, loops: &[Natural], natural: &Natural) -> Option<CodeLoop> {
    let of = |blocks: &BTreeSet<usize>| -> Vec<&Operation> {
        blocks.iter().flat_map(|block| &graph.blocks[*block].operations).collect()
    };
    let inside = of(&natural.blocks);
    let has_loop =
        loops.iter().any(|one| one.blocks.len() < natural.blocks.len() && one.blocks.is_subset(&natural.blocks));
    if has_loop || inside.len() > MOST || inside.iter().any(|one| one.effect == Effect::Call) {
        return None;
    }
    let around = loops.iter().filter(|one| natural.is_within(one)).min_by_key(|one| one.blocks.len())?;
    let outside = of(&around.blocks.difference(&natural.blocks).copied().collect());
    // What each round makes again, such as the index of a cell from coordinates, moves by no constant, though one is added to it.
    let round = carried(graph, natural.head, &natural.blocks);
    let is_column = |memory: &Memory| {
        let places = memory.registers & round;
        let moved = inside.iter().filter(|one| one.writes & places != 0).filter_map(|one| one.moves());
        let far: Registers = moved
            .filter(|(place, stride)| {
                stride.unsigned_abs().saturating_mul(u64::from(memory.scale(*place))) >= LEAST_STRIDE
            })
            .fold(0, |all, (place, _)| all | place);
        let is_small = extent(&inside, &outside, far).is_some_and(|bytes| bytes < LEAST_BYTES);
        far != 0 && is_set_again(&outside, far) && moves_by_element(&outside, memory) && !is_small
    };
    inside
        .iter()
        .filter_map(|one| one.memory.as_ref())
        .any(is_column)
        .then(|| made(graph, natural, LoopShape::Columns, &natural.blocks, false))
}

/// Bytes of a column with the rows between: from where the loop around lets the place start to where it ends, if they differ by a constant.
fn extent(inside: &[&Operation], outside: &[&Operation], place: Registers) -> Option<u64> {
    let compares = |one: &&&Operation| one.effect == Effect::Compare && one.memory.is_none();
    let ends = |one: &&&Operation| one.reads & place == place && (one.reads & !place).count_ones() == 1;
    let end = inside.iter().filter(compares).find(ends)?.reads & !place;
    let (start, end) = (set_from(outside, place)?, set_from(outside, end)?);
    (start.0 == end.0).then(|| start.1.abs_diff(end.1))
}

/// The register that a register is set from in each round, and the constant that is added; itself if it only moves on from round to round. `None`
/// if it is not as simple.
fn set_from(outside: &[&Operation], register: Registers) -> Option<(Registers, i64)> {
    let sets: Vec<_> = outside.iter().filter(|one| one.writes & register != 0).collect();
    match sets[..] {
        _ if sets.iter().all(|one| one.moves().is_some()) => Some((register, 0)),
        [one] if one.effect == Effect::Place && one.memory.is_none() && one.reads.count_ones() == 1 => {
            Some((one.reads, one.stride.unwrap_or(0)))
        }
        _ => None,
    }
}

impl Operation {
    /// The register that it moves on by a constant, and by how much.
    pub(super) fn moves(&self) -> Option<(Registers, i64)> {
        let is_move = matches!(self.effect, Effect::Advance | Effect::Place) && self.reads == self.writes;
        Some((self.writes, self.stride.filter(|_| is_move)?))
    }
}

/// Whether each round of the loop around sets these registers from others.
fn is_set_again(outside: &[&Operation], registers: Registers) -> bool {
    outside.iter().any(|one| one.writes & registers != 0 && one.reads & registers == 0)
}

/// Whether the loop around moves the address on by the bytes that are read or written there: in its registers, or in those that they are set from.
fn moves_by_element(outside: &[&Operation], memory: &Memory) -> bool {
    let mut from = memory.registers;
    loop {
        let sets = outside.iter().filter(|one| changed(one) & from != 0);
        let more = sets
            .filter(|one| matches!(one.effect, Effect::Place | Effect::Advance | Effect::Scale))
            .fold(from, |all, one| all | one.reads);
        if more == from {
            break;
        }
        from = more;
    }
    let element = memory.bytes as u64;
    outside.iter().filter_map(|one| one.moves()).filter(|(place, _)| place & from != 0).any(|(place, stride)| {
        let stride = stride.unsigned_abs();
        // A number that an address is made of counts elements.
        stride * u64::from(memory.scale(place)) == element || (stride == 1 && place & memory.registers == 0)
    })
}

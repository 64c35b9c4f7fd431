//! [`HotLoop`]: loops of machine code of a known shape, and what they cost.
//!
//! A sample's address shows the loop that it is in. Compilers inline a search or a wait into its caller, so that no name is left; the
//! instructions stay. [`wanted`] lists the code to look at; the caller reads it and makes
//! [`ModuleLoops`] of them. Code of other CPUs than x86-64 has none.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Capture, CodeLoop, FrameKind, LoopShape, Module, ModuleId, ModuleLoops, StackId};

use crate::query::functions::{FunctionId, Functions};
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};
use crate::query::work::Work;

/// Least percent of CPU time of an owned function whose code is looked at.
const LEAST: f64 = 2.0;

/// A loop has to cost this many times as much as the few instructions around it: it goes round often.
const GOES_ROUND: u128 = 8;

/// Least part of a loop's cost that is in the comparisons that it calls.
const COMPARES: f64 = 0.3;

/// Code of a module to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCode {
    /// The module.
    pub module: Module,
    /// Sampled addresses.
    pub addresses: Vec<u64>,
}

/// The code that findings need: where owned functions are sampled.
pub fn wanted(selections: &[Selection<'_>]) -> Vec<WantedCode> {
    let mut wanted: Vec<WantedCode> = Vec::new();
    for selection in selections {
        let capture = selection.capture();
        for (module, addresses) in hot_code(selection) {
            let module = &capture.modules[module.index()];
            match wanted.iter_mut().find(|one| one.module == *module) {
                Some(one) => one.addresses.extend(addresses),
                None => wanted.push(WantedCode { module: module.clone(), addresses }),
            }
        }
    }
    for one in &mut wanted {
        one.addresses.sort_unstable();
        one.addresses.dedup();
    }
    wanted
}

fn hot_code(selection: &Selection<'_>) -> BTreeMap<ModuleId, Vec<u64>> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let weights = StackWeights::of_samples(selection);
    let mut of_owner = vec![0_u128; functions.len()];
    let mut places: BTreeSet<(usize, ModuleId, u64)> = BTreeSet::new();
    for (stack, amount) in weights.occupied() {
        let Some(owner) = functions.attributed(stack) else { continue };
        of_owner[owner.index()] += amount.weight;
        if let Some(place) = Place::of(capture, functions, stack) {
            places.insert((owner.index(), place.module, place.address));
        }
    }
    let least = weights.total().weight as f64 * LEAST / 100.0;
    let mut code: BTreeMap<ModuleId, Vec<u64>> = BTreeMap::new();
    for (owner, module, address) in places {
        if of_owner[owner] as f64 >= least {
            code.entry(module).or_default().push(address);
        }
    }
    code
}

/// Where the code of an owned function is on a stack.
struct Place {
    module: ModuleId,
    address: u64,
    /// Whether the stack ends there, and not in what it calls.
    is_leaf: bool,
}

impl Place {
    /// The innermost code of the module of the stack's nearest owned function.
    fn of(capture: &Capture, functions: &Functions, stack: StackId) -> Option<Self> {
        let mut nodes = capture.nodes_of(Some(stack));
        let owned = nodes.find(|node| functions.is_owner(functions.of_node(capture, *node)))?;
        let module = capture.frames[capture.stacks[owned.index()].frame.index()].module?;
        let mut leaf_address = None;
        for (depth, node) in capture.nodes_of(Some(stack)).enumerate() {
            let frame = &capture.frames[capture.stacks[node.index()].frame.index()];
            if depth == 0 {
                leaf_address = frame.address;
            }
            let is_kernel = functions.get(functions.of_node(capture, node)).kind == FrameKind::Kernel;
            if frame.module == Some(module)
                && !is_kernel
                && let Some(address) = frame.address
            {
                // What is inlined has the address of the code that it is inlined into.
                return Some(Self { module, address, is_leaf: depth == 0 || leaf_address == Some(address) });
            }
        }
        None
    }
}

/// A loop of a known shape, and what it costs.
#[derive(Debug, Clone)]
pub(super) struct HotLoop {
    pub shape: LoopShape,
    /// The owned function that has it.
    pub function: FunctionId,
    /// One flag per stack: whether it is in the loop, or in a comparison that the loop calls.
    pub inside: Vec<bool>,
    pub amount: Amount,
    /// The few instructions around it.
    pub edges: Amount,
    /// What it does with elements that fit, with what that calls.
    pub uses: Amount,
    /// The line with most of its samples.
    pub line: Option<(String, u32)>,
}

/// What the stacks of a capture cost.
pub(super) struct Costs<'c, 'a> {
    pub capture: &'a Capture,
    pub functions: &'a Functions,
    pub cpu: &'c StackWeights,
    /// What each stack does for its nearest owned function.
    pub work: &'c [Work],
}

/// The hot loops of a capture that go round often.
pub(super) fn hot_loops(costs: &Costs<'_, '_>, modules: &[ModuleLoops]) -> Vec<HotLoop> {
    let (capture, functions) = (costs.capture, costs.functions);
    let of_module: Vec<&[CodeLoop]> = capture
        .modules
        .iter()
        .map(|module| modules.iter().find(|one| one.is_of(module)).map_or(&[][..], |one| &one.loops))
        .collect();
    if of_module.iter().all(|loops| loops.is_empty()) {
        return Vec::new();
    }
    let mut sums: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
    for (stack, amount) in costs.cpu.occupied() {
        let Some(place) = Place::of(capture, functions, stack) else { continue };
        let loops = of_module[place.module.index()];
        // A call returns to the instruction after it.
        let address = if place.is_leaf { place.address } else { place.address.saturating_sub(1) };
        let innermost = |ranges: &dyn Fn(&CodeLoop) -> bool| {
            (0..loops.len()).filter(|index| ranges(&loops[*index])).min_by_key(|index| loops[*index].length())
        };
        let is_compared = matches!(costs.work[stack.index()], Work::Comparison | Work::Text | Work::Search);
        let inside =
            innermost(&|one| CodeLoop::holds(&one.inside, address) && (place.is_leaf || (one.calls && is_compared)));
        if let Some(index) = inside {
            let sum = sums.entry((place.module.index(), index)).or_default();
            sum.stacks.push(stack);
            sum.inside += amount;
            if !place.is_leaf {
                sum.compared += amount;
            }
        }
        for (index, one) in loops.iter().enumerate() {
            let key = (place.module.index(), index);
            if CodeLoop::holds(&one.edges, address) && place.is_leaf {
                sums.entry(key).or_default().edges += amount;
            }
            let other_call = !place.is_leaf && CodeLoop::holds(&one.inside, address) && !(one.calls && is_compared);
            if CodeLoop::holds(&one.uses, address) || other_call {
                sums.entry(key).or_default().uses += amount;
            }
        }
    }
    let made = sums.into_iter().filter_map(|((module, index), sum)| {
        let one = &of_module[module][index];
        let goes_round = one.shape == LoopShape::Spin || sum.inside.weight >= GOES_ROUND * sum.edges.weight;
        let compares = !one.calls || sum.compared.weight as f64 >= COMPARES * sum.inside.weight as f64;
        if sum.stacks.is_empty() || !goes_round || !compares {
            return None;
        }
        let (function, line) = heaviest(costs, &sum.stacks)?;
        let mut inside = vec![false; capture.stacks.len()];
        sum.stacks.iter().for_each(|stack| inside[stack.index()] = true);
        Some(HotLoop { shape: one.shape, function, inside, amount: sum.inside, edges: sum.edges, uses: sum.uses, line })
    });
    let mut made: Vec<HotLoop> = made.collect();
    made.sort_by_key(|one| std::cmp::Reverse(one.amount.weight));
    made
}

/// One flag per frame: whether it is a call that is no wait.
pub(super) fn no_waits(costs: &Costs<'_, '_>, modules: &[ModuleLoops]) -> Vec<bool> {
    let capture = costs.capture;
    let of_module: Vec<Option<&ModuleLoops>> =
        capture.modules.iter().map(|module| modules.iter().find(|one| one.is_of(module))).collect();
    let holds = |no_waits: &[u64], address: u64| {
        // Some sources have the return address, some the one before it.
        [address, address.wrapping_add(1)].iter().any(|one| no_waits.binary_search(one).is_ok())
    };
    let is_one = |frame: &stepscope_model::Frame| {
        let (Some(module), Some(address)) = (frame.module, frame.address) else { return false };
        of_module[module.index()].is_some_and(|one| holds(&one.no_waits, address))
    };
    capture.frames.iter().map(is_one).collect()
}

#[derive(Default)]
struct Sums {
    stacks: Vec<StackId>,
    inside: Amount,
    compared: Amount,
    edges: Amount,
    uses: Amount,
}

/// The owned function and the line with most of the cost.
fn heaviest(costs: &Costs<'_, '_>, stacks: &[StackId]) -> Option<(FunctionId, Option<(String, u32)>)> {
    let capture = costs.capture;
    let mut by_function: BTreeMap<usize, (u128, FunctionId)> = BTreeMap::new();
    let mut by_line: BTreeMap<(&str, u32), u128> = BTreeMap::new();
    for stack in stacks {
        let weight = costs.cpu.own[stack.index()].weight;
        let Some(owner) = costs.functions.attributed(*stack) else { continue };
        by_function.entry(owner.index()).or_insert((0, owner)).0 += weight;
        // The line in the owned code: that of what is inlined into it says little.
        let owned = capture.nodes_of(Some(*stack)).find(|node| costs.functions.of_node(capture, *node) == owner);
        let frame = owned.map(|node| &capture.frames[capture.stacks[node.index()].frame.index()]);
        if let Some((file, line)) = frame.and_then(|frame| frame.file.as_deref().zip(frame.line)) {
            *by_line.entry((file, line)).or_default() += weight;
        }
    }
    let (_, function) = by_function.into_values().max_by_key(|(weight, _)| *weight)?;
    let line = by_line.into_iter().max_by_key(|(_, weight)| *weight);
    Some((function, line.map(|((file, line), _)| (file.rsplit('/').next().unwrap_or(file).to_owned(), line))))
}

impl HotLoop {
    /// Where it is, as text: `the loop at file.cpp:42`.
    pub fn place(&self) -> String {
        match &self.line {
            Some((file, line)) => format!("the loop at {file}:{line}"),
            None => "a loop".to_owned(),
        }
    }

    /// Hot loops of a shape, by the owned function that has them: all of a function's together.
    pub fn of_shape(loops: &[Self], shape: LoopShape) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for one in loops.iter().filter(|one| one.shape == shape) {
            match merged.iter_mut().find(|of| of.function == one.function) {
                Some(of) => {
                    of.inside.iter_mut().zip(&one.inside).for_each(|(all, one)| *all |= one);
                    of.amount += one.amount;
                    of.edges += one.edges;
                    of.uses += one.uses;
                }
                None => merged.push(one.clone()),
            }
        }
        merged
    }
}

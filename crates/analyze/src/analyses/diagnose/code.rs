//! [`HotLoop`]: loops of machine code of a known shape, and what they cost.
//!
//! A sample's address shows the loop that it is in. Compilers inline a search or a wait into its caller, so that no name is left; the
//! instructions stay. [`wanted`] lists the code to look at; the caller reads it and makes
//! [`ModuleLoops`] of them. Code of other CPUs than x86-64 has none. Of Python functions, the [lines] that run show it.

mod lines;

pub(super) use self::lines::{is_nameless, named_owner, python_line};

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Capture, CodeLoop, FileLoops, FrameKind, LoopShape, Module, ModuleId, ModuleLoops, StackId};

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

/// The loops of the code that findings need.
#[derive(Debug, Clone, Default)]
pub struct ReadCode {
    /// Of machine code.
    pub modules: Vec<ModuleLoops>,
    /// Of Python sources.
    pub files: Vec<FileLoops>,
}

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

/// The Python sources that findings need, and the captures that need them: those of owned functions that are sampled.
pub fn wanted_files(selections: &[Selection<'_>]) -> Vec<WantedFile> {
    let mut wanted: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, selection) in selections.iter().enumerate() {
        for path in lines::hot_files(selection, LEAST) {
            wanted.entry(path).or_default().push(index);
        }
    }
    wanted.into_iter().map(|(path, selections)| WantedFile { path, selections }).collect()
}

/// A source file to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFile {
    /// Its path.
    pub path: String,
    /// Positions of the captures that need it.
    pub selections: Vec<usize>,
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
    // A function that calls itself has little time of its own, perhaps, and much below it.
    for (node, subtree) in capture.stacks.iter().zip(weights.subtrees(capture)) {
        let (function, Some(caller)) = (functions.of_frame(node.frame), node.parent) else { continue };
        if !functions.is_owner(function) || functions.of_node(capture, caller) != function {
            continue;
        }
        let caller = &capture.frames[capture.stacks[caller.index()].frame.index()];
        if let (Some(module), Some(address)) = (caller.module, caller.address) {
            of_owner[function.index()] += subtree.weight;
            places.insert((function.index(), module, address));
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
    /// What it costs in questions that it asks of functions which only load and compare.
    pub asked: Amount,
    /// Whether another loop of its function is around it.
    pub is_nested: bool,
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
pub(super) fn hot_loops(costs: &Costs<'_, '_>, code: &ReadCode, questions: &[bool]) -> Vec<HotLoop> {
    let mut found = hot_loops_of_modules(costs, &code.modules, questions);
    found.extend(lines::hot_loops(costs, &code.files));
    found.sort_by_key(|one| std::cmp::Reverse(one.amount.weight));
    found
}

fn hot_loops_of_modules(costs: &Costs<'_, '_>, modules: &[ModuleLoops], questions: &[bool]) -> Vec<HotLoop> {
    let (capture, functions) = (costs.capture, costs.functions);
    let of_module: Vec<&[CodeLoop]> =
        by_module(capture, modules).map(|code| code.map_or(&[][..], |code| &code.loops)).collect();
    if of_module.iter().all(|loops| loops.is_empty()) {
        return Vec::new();
    }
    let mut sums: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
    let short = short_loops(costs, &of_module);
    for (stack, amount) in costs.cpu.occupied() {
        if questions[stack.index()] {
            add_question(costs, &of_module, stack, amount, &mut sums);
            continue;
        }
        let Some(place) = Place::of(capture, functions, stack) else { continue };
        let loops = of_module[place.module.index()];
        // A call returns to the instruction after it.
        let address = if place.is_leaf { place.address } else { place.address.saturating_sub(1) };
        let innermost = |ranges: &dyn Fn(&CodeLoop) -> bool| {
            let is_long = |index: &usize| !short.contains(&(place.module.index(), *index));
            let holding = (0..loops.len()).filter(|index| ranges(&loops[*index]) && is_long(index));
            holding.min_by_key(|index| loops[*index].length())
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
            if CodeLoop::holds(&one.edges, address) && place.is_leaf {
                sums.entry((place.module.index(), index)).or_default().edges += amount;
            }
        }
    }
    add_uses(costs, &of_module, &mut sums);
    let made = sums.into_iter().filter_map(|((module, index), sum)| {
        let one = &of_module[module][index];
        let compares = !one.calls || sum.compared.weight as f64 >= COMPARES * sum.inside.weight as f64;
        let found = sum.into_loop(costs, one.shape).filter(|_| compares)?;
        Some(HotLoop { is_nested: one.is_nested, ..found })
    });
    made.collect()
}

/// Loops without calls that are entered again and again and go round a few times only: a loop around them has what they cost.
fn short_loops(costs: &Costs<'_, '_>, of_module: &[&[CodeLoop]]) -> BTreeSet<(usize, usize)> {
    let mut sums: BTreeMap<(usize, usize), (u128, u128)> = BTreeMap::new();
    for (stack, amount) in costs.cpu.occupied() {
        let Some(place) = Place::of(costs.capture, costs.functions, stack).filter(|place| place.is_leaf) else {
            continue;
        };
        let nested = of_module[place.module.index()].iter().enumerate().filter(|(_, one)| one.is_nested && !one.calls);
        for (index, one) in nested.filter(|(_, one)| one.shape != LoopShape::Spin) {
            let (inside, edges) = sums.entry((place.module.index(), index)).or_default();
            *inside += if CodeLoop::holds(&one.inside, place.address) { amount.weight } else { 0 };
            *edges += if CodeLoop::holds(&one.edges, place.address) { amount.weight } else { 0 };
        }
    }
    let is_short = |(inside, edges): &(u128, u128)| *inside < GOES_ROUND * *edges;
    sums.into_iter().filter(|(_, sum)| is_short(sum)).map(|(key, _)| key).collect()
}

/// Adds a stack that ends in a question to the loop that asks it.
fn add_question(
    costs: &Costs<'_, '_>,
    of_module: &[&[CodeLoop]],
    stack: StackId,
    amount: Amount,
    sums: &mut BTreeMap<(usize, usize), Sums>,
) {
    let Some(caller) = caller_of(costs.capture, stack) else { return };
    let frame = &costs.capture.frames[costs.capture.stacks[caller.index()].frame.index()];
    let (Some(module), Some(address)) = (frame.module, frame.address) else { return };
    let loops = of_module[module.index()];
    let asks = |one: &CodeLoop| one.calls && CodeLoop::holds(&one.inside, address.saturating_sub(1));
    let innermost = (0..loops.len()).filter(|index| asks(&loops[*index])).min_by_key(|index| loops[*index].length());
    if let Some(index) = innermost {
        let sum = sums.entry((module.index(), index)).or_default();
        sum.asking.push(stack);
        sum.inside += amount;
        sum.compared += amount;
        sum.asked += amount;
    }
}

/// Adds what loops do with elements that fit: their other instructions, and all that they call but comparisons.
fn add_uses(costs: &Costs<'_, '_>, of_module: &[&[CodeLoop]], sums: &mut BTreeMap<(usize, usize), Sums>) {
    let capture = costs.capture;
    let is_inside: BTreeSet<((usize, usize), StackId)> =
        sums.iter().flat_map(|(key, sum)| sum.stacks.iter().chain(&sum.asking).map(|stack| (*key, *stack))).collect();
    for (stack, amount) in costs.cpu.occupied() {
        let leaf_address = capture.frames[capture.stacks[stack.index()].frame.index()].address;
        let mut met = BTreeSet::new();
        for node in capture.nodes_of(Some(stack)) {
            let frame = &capture.frames[capture.stacks[node.index()].frame.index()];
            let (Some(module), Some(address)) = (frame.module, frame.address) else { continue };
            let is_leaf = leaf_address == Some(address);
            let at = if is_leaf { address } else { address.saturating_sub(1) };
            for (index, one) in of_module[module.index()].iter().enumerate() {
                let key = (module.index(), index);
                let is_use = CodeLoop::holds(&one.uses, at) || (!is_leaf && CodeLoop::holds(&one.inside, at));
                if is_use && !is_inside.contains(&(key, stack)) && met.insert(key) {
                    sums.entry(key).or_default().uses += amount;
                }
            }
        }
    }
}

/// The node that calls the code at a stack's leaf: what is inlined has the address of the function that it is inlined into.
fn caller_of(capture: &Capture, stack: StackId) -> Option<StackId> {
    let address = |node: StackId| capture.frames[capture.stacks[node.index()].frame.index()].address;
    capture.nodes_of(Some(stack)).find(|node| address(*node) != address(stack))
}

/// One flag per frame: whether it is a call of a function that has no loop.
pub(super) fn straight_calls(capture: &Capture, code: &ReadCode) -> Vec<bool> {
    let of_module: Vec<Option<&ModuleLoops>> = by_module(capture, &code.modules).collect();
    let is_one = |frame: &stepscope_model::Frame| match place_in(frame, &of_module) {
        Some((code, address)) => returns_to(&code.straight_calls, address),
        None => lines::is_straight(frame, &code.files),
    };
    capture.frames.iter().map(is_one).collect()
}

/// One flag per frame: whether it is a call in a loop.
pub(super) fn looped_calls(capture: &Capture, modules: &[ModuleLoops]) -> Vec<bool> {
    calls_of(capture, modules, |code| &code.looped_calls)
}

/// One flag per stack: whether a line of Python code that raises or catches an exception is on it.
pub(super) fn raises(capture: &Capture, code: &ReadCode) -> Vec<bool> {
    lines::raises(capture, &code.files)
}

/// One flag per stack: whether it ends in an owned function that only loads and compares, and that owned code calls.
pub(super) fn questions(costs: &Costs<'_, '_>, modules: &[ModuleLoops]) -> Vec<bool> {
    let (capture, functions) = (costs.capture, costs.functions);
    let of_module: Vec<Option<&ModuleLoops>> = by_module(capture, modules).collect();
    let is_one = |index: usize| {
        let stack = StackId::from_index(index);
        let frame = &capture.frames[capture.stacks[index].frame.index()];
        let Some((code, address)) = place_in(frame, &of_module) else { return false };
        if !CodeLoop::holds(&code.questions, address) || !functions.is_owner(functions.of_node(capture, stack)) {
            return false;
        }
        caller_of(capture, stack).is_some_and(|caller| functions.is_owner(functions.of_node(capture, caller)))
    };
    (0..capture.stacks.len()).map(is_one).collect()
}

/// The code that was read of each module of a capture.
fn by_module<'c>(capture: &Capture, read: &'c [ModuleLoops]) -> impl Iterator<Item = Option<&'c ModuleLoops>> {
    capture.modules.iter().map(|module| read.iter().find(|one| one.is_of(module)))
}

/// The read code that a frame is in, and its address there.
fn place_in<'c>(
    frame: &stepscope_model::Frame,
    of_module: &[Option<&'c ModuleLoops>],
) -> Option<(&'c ModuleLoops, u64)> {
    Some((of_module[frame.module?.index()]?, frame.address?))
}

/// Whether an address is one of these return addresses. Some sources have the return address, some the one before it.
fn returns_to(addresses: &[u64], address: u64) -> bool {
    [address, address.wrapping_add(1)].iter().any(|one| addresses.binary_search(one).is_ok())
}

/// One flag per frame: whether it is a call that is no wait.
pub(super) fn no_waits(capture: &Capture, modules: &[ModuleLoops]) -> Vec<bool> {
    calls_of(capture, modules, |code| &code.no_waits)
}

/// One flag per frame: whether it is one of these calls of its module.
fn calls_of(capture: &Capture, modules: &[ModuleLoops], calls: impl Fn(&ModuleLoops) -> &[u64]) -> Vec<bool> {
    let of_module: Vec<Option<&ModuleLoops>> = by_module(capture, modules).collect();
    let is_one = |frame: &stepscope_model::Frame| {
        place_in(frame, &of_module).is_some_and(|(code, address)| returns_to(calls(code), address))
    };
    capture.frames.iter().map(is_one).collect()
}

#[derive(Default)]
struct Sums {
    stacks: Vec<StackId>,
    /// Stacks of the questions that it asks.
    asking: Vec<StackId>,
    inside: Amount,
    compared: Amount,
    edges: Amount,
    uses: Amount,
    asked: Amount,
}

impl Sums {
    /// The loop, if it goes round often.
    fn into_loop(self, costs: &Costs<'_, '_>, shape: LoopShape) -> Option<HotLoop> {
        let goes_round = shape == LoopShape::Spin || self.inside.weight >= GOES_ROUND * self.edges.weight;
        if self.stacks.is_empty() || !goes_round {
            return None;
        }
        let (function, line) = heaviest(costs, &self.stacks)?;
        let mut inside = vec![false; costs.capture.stacks.len()];
        self.stacks.iter().chain(&self.asking).for_each(|stack| inside[stack.index()] = true);
        let Self { inside: amount, edges, uses, asked, .. } = self;
        Some(HotLoop { shape, function, inside, amount, edges, uses, asked, is_nested: false, line })
    }
}

/// The owned function and the line with most of the cost.
fn heaviest(costs: &Costs<'_, '_>, stacks: &[StackId]) -> Option<(FunctionId, Option<(String, u32)>)> {
    let capture = costs.capture;
    let mut by_function: BTreeMap<usize, (u128, FunctionId)> = BTreeMap::new();
    let mut by_line: BTreeMap<(&str, u32), u128> = BTreeMap::new();
    for stack in stacks {
        let weight = costs.cpu.own[stack.index()].weight;
        let Some(owner) = named_owner(capture, costs.functions, *stack) else { continue };
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
                    of.asked += one.asked;
                    of.is_nested &= one.is_nested;
                }
                None => merged.push(one.clone()),
            }
        }
        merged
    }
}

//! Call trees for flame graphs: what ran, blocked or faulted, by call path.
//!
//! A node is a function called by its parent node. Lines and addresses of one function are merged; recursive calls are
//! not. The total of a node is its own weight plus the totals of its children. Node 0 is the whole selection. Samples
//! without a stack are a node `(no stack)`, so that nothing is lost.
//!
//! An inverted tree has the leaves directly below node 0, and their callers below them. The total of a node directly below
//! node 0 is the self weight of its function.
//!
//! Children are sorted by name, so that two recordings can be compared by eye; in inverted trees the heaviest comes first.

mod build;
mod callers_first;
#[cfg(test)]
mod tests;

use stepscope_model::{CallTree, Sample, StackId, ThreadId, Wait, WaitState};

use crate::query::basis::Basis;
use crate::query::events::{self, Role};
use crate::query::heap::{self, Measure};
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::waits::blocked_ns;

use build::build;

/// How to build a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Which end of the stacks is at the root.
    pub order: Order,
    /// The first level below node 0.
    pub grouping: Grouping,
}

/// The time that a tree shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Time on a CPU.
    #[default]
    OnCpu,
    /// Blocked time.
    Blocked,
}

/// Which end of the stacks is at the root of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Callers at the root.
    #[default]
    CallersFirst,
    /// Leaves at the root.
    LeavesFirst,
}

/// The first level below node 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The stacks' own roots.
    #[default]
    None,
    /// One group per thread, within one per process if there are several processes.
    Thread,
    /// One group per thread name.
    ThreadName,
    /// One group per scope, nested as the scopes are. Stacks outside all scopes are beside them.
    Scope,
}

/// A stack, and what it weighs.
pub(crate) struct WeightedStack {
    thread: ThreadId,
    time_ns: Option<u64>,
    stack: Option<StackId>,
    weight: u64,
}

impl WeightedStack {
    pub(crate) fn of_sample(sample: &Sample) -> Self {
        let Sample { thread, time_ns, stack, weight, .. } = *sample;
        Self { thread, time_ns, stack, weight }
    }

    pub(crate) fn of_wait(wait: &Wait, ns: u64) -> Self {
        Self { thread: wait.thread, time_ns: Some(wait.start_ns), stack: wait.stack, weight: ns }
    }
}

/// The tree of the selected samples' weights.
pub fn of_samples(selection: &Selection<'_>, options: &Options) -> CallTree {
    let (title, unit) = title(selection);
    let stacks = selection.samples().map(WeightedStack::of_sample);
    build(selection, options, title, unit, stacks)
}

/// What the samples of the selected event are samples of, and their unit.
pub(crate) fn title<'a>(selection: &Selection<'a>) -> (&'a str, &'a str) {
    match selection.event() {
        Some(event) if events::is_cpu_time(event) => ("On-CPU time", "ns"),
        Some(event) => (event.name.as_str(), event.unit.as_str()),
        None => ("No samples", ""),
    }
}

/// The tree of the selected waits' blocked time in ns, by the stack blocked at.
pub fn off_cpu(selection: &Selection<'_>, options: &Options) -> CallTree {
    let blocked = selection.waits().filter(|wait| wait.state == WaitState::Blocked);
    let stacks = blocked.map(|wait| WeightedStack::of_wait(&wait, blocked_ns(&wait)));
    build(selection, options, "Blocked time", "ns", stacks)
}

/// The tree of the selected page faults, minor and major ones together.
pub fn faults(selection: &Selection<'_>, options: &Options) -> CallTree {
    let capture = selection.capture();
    let kinds = [Role::MinorFaults, Role::MajorFaults];
    let mut found: Vec<_> = kinds.iter().flat_map(|role| events::of_role(capture, *role)).collect();
    if found.is_empty() {
        found.extend(events::of_role(capture, Role::Faults));
    }
    let selections: Vec<Selection<'_>> = found.into_iter().map(|event| selection.of_event(event)).collect();
    let stacks = selections.iter().flat_map(Selection::samples);
    let stacks = stacks.map(WeightedStack::of_sample);
    build(selection, options, "Page faults", "faults", stacks)
}

/// The tree of the selected heap allocations.
pub fn heap(selection: &Selection<'_>, options: &Options, measure: Measure) -> CallTree {
    let (title, unit) = measure.title();
    let weights = heap::weights(selection, measure).into_iter();
    let stacks =
        weights.map(|of| WeightedStack { thread: of.thread, time_ns: None, stack: of.stack, weight: of.weight });
    build(selection, options, title, unit, stacks)
}

/// The tree of the costs of this [basis](crate::query::basis), before their division. For [`Basis::PerStep`], it has the main
/// loop's steps only.
pub(crate) fn of_basis(selection: &Selection<'_>, options: &Options, basis: Basis, evidence: Evidence) -> CallTree {
    let loops = if basis == Basis::PerStep { Loops::of(selection) } else { None };
    match (evidence, loops) {
        (Evidence::OnCpu, None) => of_samples(selection, options),
        (Evidence::Blocked, None) => off_cpu(selection, options),
        (Evidence::OnCpu, Some(loops)) => {
            let inside = selection.samples().filter(|sample| loops.main_step_of(sample).is_some());
            let stacks = inside.map(WeightedStack::of_sample);
            let (title, unit) = title(selection);
            build(selection, options, title, unit, stacks)
        }
        (Evidence::Blocked, Some(loops)) => {
            build(selection, options, "Blocked time", "ns", blocked_in_steps(selection, &loops))
        }
    }
}

/// The tree of one step's on-CPU time: [`of_samples`] within steps, divided by their number. `None` without steps.
pub fn of_samples_per_step(selection: &Selection<'_>, options: &Options) -> Option<CallTree> {
    let loops = Loops::of(selection)?;
    let (title, unit) = title(selection);
    let title = format!("{title} per step");
    let inside = selection.samples().filter(|sample| loops.main_step_of(sample).is_some());
    let stacks = inside.map(WeightedStack::of_sample);
    Some(per_step(selection, options, &title, unit, loops.main().count() as u64, stacks))
}

/// The tree of one step's blocked time: [`off_cpu`] within steps, divided by their number. `None` without steps.
pub fn off_cpu_per_step(selection: &Selection<'_>, options: &Options) -> Option<CallTree> {
    let loops = Loops::of(selection)?;
    let blocked = blocked_in_steps(selection, &loops);
    Some(per_step(selection, options, "Blocked time per step", "ns", loops.main().count() as u64, blocked))
}

/// The blocked time of the main loop's threads that lies in its steps.
fn blocked_in_steps<'s>(selection: &'s Selection<'_>, loops: &'s Loops) -> impl Iterator<Item = WeightedStack> + 's {
    selection.waits().filter(|wait| loops.in_main(wait.thread)).map(|wait| {
        let inside = loops.main().time_within(&(wait.start_ns..wait.start_ns + blocked_ns(&wait)));
        WeightedStack::of_wait(&wait, inside)
    })
}

/// A tree of weights divided by a number of steps.
///
/// The own weight of each node is divided and rounded before totals are added up, so that a total is still the sum of its
/// children. Weights in coarse units, such as samples, are per 1000 steps.
pub(crate) fn per_step(
    selection: &Selection<'_>,
    options: &Options,
    title: &str,
    unit: &str,
    steps: u64,
    weights: impl Iterator<Item = WeightedStack>,
) -> CallTree {
    let (times, unit) = match unit {
        "ns" | "bytes" | "cycles" => (1, unit.to_owned()),
        unit => (1_000, format!("{unit} in 1000 steps")),
    };
    let mut tree = build(selection, options, title, &unit, weights);
    let steps = u128::from(steps.max(1));
    for node in &mut tree.nodes {
        let divided = (u128::from(node.own) * times + steps / 2) / steps;
        node.own = u64::try_from(divided).unwrap_or(u64::MAX);
        node.total = node.own;
    }
    for index in (1..tree.nodes.len()).rev() {
        let (parent, total) = (tree.nodes[index].parent, tree.nodes[index].total);
        if let Some(parent) = parent {
            let parent = &mut tree.nodes[parent as usize];
            parent.total = parent.total.saturating_add(total);
        }
    }
    tree
}

//! [`StackWeights`]: the own weight of each node of the call tree.
//!
//! It is the first step of every analysis of stacks. Samples are many and stacks repeat, so samples are added up by node
//! once. All further steps visit nodes only.

use std::cmp::Reverse;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Counts, Event, StackId, WaitState};

use crate::query::functions::{FunctionId, Functions, NO_STACK};
use crate::query::select::Selection;
use crate::query::waits::blocked_ns;

/// The weight of samples and their number, which are never mixed (erratum 1 of the Gazebo study).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// Their weight, in the event's unit.
    pub weight: u128,
    /// Number of samples; 0 if unknown.
    pub count: u64,
}

impl Amount {
    /// A sample of this event.
    pub fn of(event: &Event, weight: u64) -> Self {
        Self { weight: weight.into(), count: event.count_of(weight).unwrap_or(0) }
    }

    /// Whether there is nothing.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// This weight in percent of `whole`; `None` of nothing.
    pub fn percent_of(self, whole: Amount) -> Option<f64> {
        percent(self.weight, whole.weight)
    }
}

/// The weight of samples by function; `None` is that of samples without a stack.
#[derive(Debug, Clone, Default)]
pub struct WeightByFunction(FxHashMap<Option<FunctionId>, u128>);

impl WeightByFunction {
    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the weight of one or more samples.
    pub fn add(&mut self, function: Option<FunctionId>, weight: u128) {
        *self.0.entry(function).or_default() += weight;
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (function, weight) in &other.0 {
            self.add(*function, *weight);
        }
    }

    /// Name and weight of the function with the most; ties by name.
    pub fn top<'f>(&self, functions: &'f Functions) -> Option<(&'f str, u128)> {
        let name = |id: Option<FunctionId>| id.map_or(NO_STACK, |id| &*functions.get(id).name);
        let (function, weight) = self.0.iter().min_by_key(|(id, weight)| (Reverse(**weight), name(**id)))?;
        Some((name(*function), *weight))
    }
}

/// `part` in percent of `whole`; `None` of nothing.
pub fn percent(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, count: self.count.saturating_add(other.count) }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

/// The own weight of each node of a capture's call tree.
#[derive(Debug, Clone)]
pub struct StackWeights {
    /// By node.
    pub own: Vec<Amount>,
    /// Weight without a stack.
    pub no_stack: Amount,
    /// Whether the numbers of samples are known.
    pub counts_known: bool,
}

impl StackWeights {
    /// The selected samples.
    pub fn of_samples(selection: &Selection<'_>) -> Self {
        let mut weights = Self::none(selection.capture());
        let Some(event) = selection.event() else { return weights };
        weights.counts_known = event.counts != Counts::Unknown;
        for sample in selection.samples() {
            *weights.at(sample.stack) += Amount::of(event, sample.weight);
        }
        weights
    }

    /// The blocked time of the selected waits in ns, and how many there are.
    pub fn of_blocked(selection: &Selection<'_>) -> Self {
        let mut weights = Self::none(selection.capture());
        weights.counts_known = true;
        for wait in selection.waits().filter(|wait| wait.state == WaitState::Blocked) {
            *weights.at(wait.stack) += Amount { weight: u128::from(blocked_ns(&wait)), count: wait.count.into() };
        }
        weights
    }

    pub(crate) fn none(capture: &Capture) -> Self {
        Self { own: vec![Amount::default(); capture.stacks.len()], no_stack: Amount::default(), counts_known: false }
    }

    pub(crate) fn at(&mut self, stack: Option<StackId>) -> &mut Amount {
        match stack {
            Some(stack) => &mut self.own[stack.index()],
            None => &mut self.no_stack,
        }
    }

    /// These and others of the same capture.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.own.iter_mut().zip(others.own).for_each(|(sum, other)| *sum += other);
        self.no_stack += others.no_stack;
        self
    }

    /// All of it.
    pub fn total(&self) -> Amount {
        self.own.iter().copied().sum::<Amount>() + self.no_stack
    }

    /// The weight of each node and all nodes below it.
    pub fn subtrees(&self, capture: &Capture) -> Vec<Amount> {
        let mut subtrees = self.own.clone();
        // A parent comes before its children, so in reverse order each subtree is complete when it is added.
        for (index, node) in capture.stacks.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                let below = subtrees[index];
                subtrees[parent.index()] += below;
            }
        }
        subtrees
    }

    /// Self weight of each function.
    pub fn self_by_function(&self, capture: &Capture, functions: &Functions) -> Vec<Amount> {
        self.by_function(functions, |node| Some(functions.of_node(capture, node)))
    }

    /// How much ends at stacks whose nearest owned function each one is; nothing if no code is owned.
    pub fn nearest_owned_by_function(&self, functions: &Functions) -> Vec<Amount> {
        self.by_function(functions, |node| functions.nearest_owned(node))
    }

    /// How much is attributed to each function: [`Functions::attributed`].
    pub fn attributed_by_function(&self, functions: &Functions) -> Vec<Amount> {
        self.by_function(functions, |node| functions.attributed(node))
    }

    /// How much ends at stacks that hold each function, recursion counted once.
    pub fn inclusive_by_function(&self, capture: &Capture, functions: &Functions) -> Vec<Amount> {
        let mut sums = vec![Amount::default(); functions.len()];
        for (index, amount) in self.subtrees(capture).into_iter().enumerate() {
            let node = StackId::from_index(index);
            if functions.is_outermost(node) {
                sums[functions.of_node(capture, node).index()] += amount;
            }
        }
        sums
    }

    fn by_function(&self, functions: &Functions, of: impl Fn(StackId) -> Option<FunctionId>) -> Vec<Amount> {
        let mut sums = vec![Amount::default(); functions.len()];
        for (node, amount) in self.occupied() {
            if let Some(function) = of(node) {
                sums[function.index()] += amount;
            }
        }
        sums
    }

    /// The nodes at which something ends.
    pub fn occupied(&self) -> impl Iterator<Item = (StackId, Amount)> + '_ {
        let nodes = self.own.iter().enumerate().filter(|(_, amount)| !amount.is_zero());
        nodes.map(|(index, &amount)| (StackId::from_index(index), amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;

    #[test]
    fn recursion_counts_once_and_a_function_at_two_places_adds_up() {
        let capture = drawn::folded("main;a;b;a;c 10\nmain;a;b 5\nmain;d;a 2");
        drawn::selected(&capture, &[], |selection| {
            let weights = StackWeights::of_samples(selection);
            let inclusive = weights.inclusive_by_function(&capture, selection.functions());
            let of = |name: &str| {
                let (id, _) = selection.functions().all().find(|(_, one)| &*one.name == name).unwrap();
                inclusive[id.index()]
            };
            assert_eq!(of("a"), Amount { weight: 17, count: 3 });
            assert_eq!(of("b"), Amount { weight: 15, count: 2 });
            assert_eq!(weights.total(), Amount { weight: 17, count: 3 });
        });
    }

    #[test]
    fn sums_beyond_64_bits_are_exact() {
        let capture = drawn::folded(&format!("main;a {max}\nmain;a {max}", max = u64::MAX));
        let total = drawn::selected(&capture, &[], |selection| StackWeights::of_samples(selection).total());
        assert_eq!(total.weight, 2 * u128::from(u64::MAX));
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(1, 8), Some(12.5));
    }
}

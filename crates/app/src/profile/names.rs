//! [`Names`]: rows of stacks, scope names and series that stay the same while a capture grows.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_analyze::Functions;
use stepscope_model::{Capture, Counter, ProcessId, ThreadId};

use super::places::GrowingPlaces;

/// What rows of a growing capture refer to. Each keeps its number, so that rows can be appended to those that a page has.
///
/// The capture holds only the rows that are new. Its other tables have all that was ever seen.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub(super) stacks: GrowingPlaces,
    pub(super) scopes: Numbered<Arc<str>>,
    pub(super) series: Numbered<Series>,
}

impl Names {
    /// Adds what the capture has got since the last call.
    pub fn grow(&mut self, capture: &Capture, functions: &Functions) {
        self.stacks.grow(capture, functions);
        capture.scopes.iter().for_each(|scope| self.scopes.add(&scope.name));
        capture.counters.iter().for_each(|counter| self.series.add(&Series::of(counter)));
    }
}

/// What makes readings a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub name: Arc<str>,
    pub process: Option<ProcessId>,
    pub thread: Option<ThreadId>,
}

impl Series {
    pub fn of(counter: &Counter) -> Self {
        Self { name: counter.name.clone(), process: counter.process, thread: counter.thread }
    }
}

/// Distinct values in the order in which they were added first.
#[derive(Debug, Clone)]
pub(super) struct Numbered<T> {
    all: Vec<T>,
    numbers: FxHashMap<T, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    pub fn add(&mut self, value: &T) {
        if !self.numbers.contains_key(value) {
            self.numbers.insert(value.clone(), self.all.len());
            self.all.push(value.clone());
        }
    }

    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// The number of a value that was added.
    pub fn number(&self, value: &T) -> usize {
        self.numbers[value]
    }
}

impl<'v, T: Clone + Eq + Hash + 'v> FromIterator<&'v T> for Numbered<T> {
    fn from_iter<I: IntoIterator<Item = &'v T>>(values: I) -> Self {
        let mut numbered = Self::default();
        values.into_iter().for_each(|value| numbered.add(value));
        numbered
    }
}

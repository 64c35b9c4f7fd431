//! A side of a comparison: the recordings of one variant, selected and reduced.

use super::evidence::Evidence;
use crate::parallel;
use crate::query::basis::Basis;
use crate::query::select::Selection;

/// Recordings of one variant, reduced.
#[derive(Debug, Clone)]
pub struct Side {
    /// The variant's name, else that of the capture.
    pub name: String,
    /// The evidence of each run. Never empty; all have one basis.
    pub runs: Vec<Evidence>,
}

impl Side {
    /// The number of blocks of each run, as the hierarchical bootstrap takes it: 0 where a run has only one.
    pub(super) fn blocks(&self) -> Vec<usize> {
        self.runs.iter().map(|run| if run.exposure.len() > 1 { run.exposure.len() } else { 0 }).collect()
    }
}

/// Recordings of one variant, with a filter.
#[derive(Debug, Clone)]
pub struct SelectedSide<'a> {
    /// The variant's name, else that of the capture.
    pub name: String,
    /// One selection per run. Never empty.
    pub runs: Vec<Selection<'a>>,
}

/// Reduces every recording of every side, on the basis that all of them have in common.
pub fn reduce(sides: &[SelectedSide<'_>]) -> Vec<Side> {
    let runs: Vec<&Selection<'_>> = sides.iter().flat_map(|side| &side.runs).collect();
    let basis = Basis::common(runs.iter().copied());
    let mut evidence = parallel::map(&runs, |run| Evidence::of(run, basis)).into_iter();
    let side = |side: &SelectedSide<'_>| Side {
        name: side.name.clone(),
        runs: evidence.by_ref().take(side.runs.len()).collect(),
    };
    sides.iter().map(side).collect()
}

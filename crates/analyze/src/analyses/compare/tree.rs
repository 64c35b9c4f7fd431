//! The differential flame graph: two sides as one tree, each path with its cost before and after and a verdict.
//!
//! A path's cost is its inclusive cost per step or second, the mean of the side's runs; so widths of both sides are
//! comparable. *Absolute* compares costs as everywhere else. *Normalised* scales the side before to the total of the side
//! after, to show how the composition changed. It is the only form for shares, and has no verdicts: when one path
//! shrinks, all others grow.
//!
//! # Verdicts
//! As for any [row](super), with two differences because there are thousands of paths: intervals are those of Student's t
//! over the runs' means, without resampling, and p is their tail. Paths with few samples are not tested; they are
//! inconclusive.

use stepscope_model::{BaseWeight, CallNode, CallTree, TreeDifference, TreeUnion, Verdict, quantity};
use stepscope_stats::hierarchical::Run;

use super::judge::{self, Counted, Judge, Noise, Untested};
use super::options::Options;
use super::side::SelectedSide;
use crate::analyses::calltree::{self, Evidence};
use crate::query::basis::Basis;
use crate::query::select::Selection;

/// How the widths of two sides are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// Costs as they are.
    #[default]
    Absolute,
    /// Shares of each side's total.
    Normalised,
}

/// How to build the difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawing {
    /// How trees are built.
    pub tree: calltree::Options,
    /// Which evidence they show.
    pub evidence: Evidence,
    /// How widths are compared.
    pub scale: Scale,
}

/// Both sides as one tree: the side after, with the weight of each path in the side before.
///
/// # Panics
/// If a side has no runs.
pub fn difference(
    before: &SelectedSide<'_>,
    after: &SelectedSide<'_>,
    drawing: Drawing,
    options: &Options,
) -> TreeDifference {
    let all = || before.runs.iter().chain(&after.runs);
    let basis = Basis::common(all());
    let trees: Vec<CallTree> =
        all().map(|run| calltree::of_basis(run, &drawing.tree, basis, drawing.evidence)).collect();
    let union = TreeUnion::of(&trees.iter().collect::<Vec<_>>());
    let exposures: Vec<f64> = all().zip(&trees).map(|(run, tree)| exposure(run, tree, basis)).collect();
    let paths = Paths { union: &union, trees: &trees, exposures: &exposures, before: before.runs.len() };
    let scale = if basis == Basis::Share { Scale::Normalised } else { drawing.scale };
    let (times, unit) = unit_of(&trees[0].unit, basis);
    let mut costs = [paths.own(0..before.runs.len(), times), paths.own(before.runs.len()..trees.len(), times)];
    if scale == Scale::Normalised {
        let [whole_before, whole_after] = [0, 1].map(|side| costs[side].iter().sum::<f64>());
        let stretch = if whole_before > 0.0 { whole_after / whole_before } else { 1.0 };
        costs[0].iter_mut().for_each(|cost| *cost *= stretch);
    }
    let [old, new] = costs.map(|own| with_totals(&union.nodes, &own));
    let nodes = union.nodes.iter().zip(&new).map(|(node, weight)| CallNode {
        own: weight.own,
        total: weight.total,
        ..node.clone()
    });
    let verdicts = (scale == Scale::Absolute).then(|| paths.verdicts(all().next(), drawing.evidence, options));
    TreeDifference {
        tree: CallTree {
            title: title(&trees[0].title, basis, (&before.name, &after.name)),
            subtitle: subtitle(scale, basis, (&before.runs, &after.runs)),
            unit,
            nodes: nodes.collect(),
            inverted: trees[0].inverted,
        },
        base: old,
        name: after.name.clone(),
        base_name: before.name.clone(),
        verdicts,
    }
}

/// Steps, seconds, builds or shares that a run's cost is divided by.
fn exposure(run: &Selection<'_>, tree: &CallTree, basis: Basis) -> f64 {
    match basis {
        Basis::PerStep => crate::query::steps::Steps::of(run).map_or(0.0, |steps| steps.count() as f64),
        Basis::PerBuild => 1.0,
        Basis::PerSecond => run.wall_ns().unwrap_or(0) as f64 / 1e9,
        Basis::Share => tree.nodes[0].total as f64 / SHARES,
    }
}

/// Number of parts that make a whole in shares.
const SHARES: f64 = 1e6;

/// The factor that makes whole numbers fine enough, and the unit with it.
fn unit_of(unit: &str, basis: Basis) -> (f64, String) {
    match (basis, unit) {
        (Basis::Share, _) => (1.0, "millionths of all".to_owned()),
        (Basis::PerBuild, _) | (_, "ns" | "bytes" | "cycles") => (1.0, unit.to_owned()),
        (Basis::PerStep, unit) => (1_000.0, format!("{unit} in 1000 steps")),
        (Basis::PerSecond, unit) => (1_000.0, format!("{unit} in 1000 s")),
    }
}

fn title(title: &str, basis: Basis, (before, after): (&str, &str)) -> String {
    let per = match basis {
        Basis::PerStep => " per step",
        Basis::PerBuild => " per build",
        Basis::PerSecond => " per second of wall time",
        Basis::Share => ", shares",
    };
    format!("{title}{per}: {after} against {before}")
}

fn subtitle(scale: Scale, basis: Basis, runs: (&[Selection<'_>], &[Selection<'_>])) -> String {
    let scale = match (scale, basis) {
        (Scale::Absolute, _) => "absolute",
        (Scale::Normalised, Basis::Share) => "normalised: durations are unknown, and shares are not tested",
        (Scale::Normalised, _) => "normalised to equal totals: shares, which are not tested",
    };
    let count = |runs: &[Selection<'_>]| quantity::plural(runs.len(), "run");
    let filter = runs.0.first().map(Selection::description).filter(|filter| !filter.is_empty());
    let counts = format!("{} before, {} after", count(runs.0), count(runs.1));
    [Some(scale.to_owned()), Some(counts), filter].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The paths of all runs, those before first.
struct Paths<'t> {
    union: &'t TreeUnion,
    trees: &'t [CallTree],
    exposures: &'t [f64],
    before: usize,
}

impl Paths<'_> {
    /// The mean self cost of each path over some runs.
    fn own(&self, runs: std::ops::Range<usize>, times: f64) -> Vec<f64> {
        let count = runs.len() as f64;
        let mut costs = vec![0.0; self.union.nodes.len()];
        for run in runs.filter(|run| self.exposures[*run] > 0.0) {
            for (node, place) in self.trees[run].nodes.iter().zip(&self.union.places[run]) {
                costs[*place as usize] += node.own as f64 * times / self.exposures[run] / count;
            }
        }
        costs
    }

    /// The inclusive cost of each path in each run, by path, then run.
    fn totals(&self) -> Vec<f64> {
        let runs = self.trees.len();
        let mut totals = vec![0.0; self.union.nodes.len() * runs];
        for (run, tree) in self.trees.iter().enumerate().filter(|(run, _)| self.exposures[*run] > 0.0) {
            for (node, place) in tree.nodes.iter().zip(&self.union.places[run]) {
                totals[*place as usize * runs + run] += node.total as f64 / self.exposures[run];
            }
        }
        totals
    }

    fn verdicts(&self, first: Option<&Selection<'_>>, evidence: Evidence, options: &Options) -> Vec<Verdict> {
        let runs = self.trees.len();
        let noise = match (self.before.min(runs - self.before), evidence) {
            (2.., _) => Noise::Runs,
            (_, Evidence::OnCpu) => Noise::Sampling,
            (_, Evidence::Blocked) => Noise::Unknown(Untested::Waits),
        };
        let whole: f64 = self.exposures[..self.before].iter().sum();
        let exposures = (whole, self.exposures[self.before..].iter().sum());
        let judge = Judge::of_paths((self.before, runs - self.before), exposures, noise, options);
        // Paths have weights. Samples weigh nearly the same, so counts follow from them.
        let weight = first.and_then(weight_of_a_sample).filter(|_| evidence == Evidence::OnCpu);
        let totals = self.totals();
        let count = |costs: &[f64], exposures: &[f64]| -> u64 {
            let all: f64 = costs.iter().zip(exposures).map(|(cost, exposure)| cost * exposure).sum();
            weight.map_or(u64::MAX / 4, |weight| (all / weight).round() as u64)
        };
        let run = |mean: &f64| Run { mean: *mean, residuals: Vec::new() };
        let mut rows: Vec<_> = totals
            .chunks_exact(runs)
            .map(|costs| {
                let (old, new) = costs.split_at(self.before);
                let counted = Counted {
                    before: count(old, &self.exposures[..self.before]),
                    after: count(new, &self.exposures[self.before..]),
                    sampled: weight.is_some(),
                };
                let of = |costs: &[f64]| costs.iter().map(run).collect::<Vec<Run>>();
                judge.path(&of(old), &of(new), counted)
            })
            .collect();
        judge::decide(rows.iter_mut(), options);
        rows.iter().map(|row| row.verdict).collect()
    }
}

/// The mean weight of a sample; `None` if the number of samples is unknown.
fn weight_of_a_sample(selection: &Selection<'_>) -> Option<f64> {
    let event = selection.event()?;
    let (mut weight, mut count) = (0.0, 0.0);
    for sample in selection.samples() {
        weight += sample.weight as f64;
        count += event.count_of(sample.weight)? as f64;
    }
    (count > 0.0).then(|| weight / count)
}

/// Rounded costs whose totals hold their children.
fn with_totals(nodes: &[CallNode], own: &[f64]) -> Vec<BaseWeight> {
    let rounded = own.iter().map(|cost| cost.round() as u64);
    let mut weights: Vec<BaseWeight> = rounded.map(|own| BaseWeight { own, total: own }).collect();
    for index in (1..nodes.len()).rev() {
        if let Some(parent) = nodes[index].parent {
            let total = weights[index].total;
            weights[parent as usize].total += total;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Capture, Counts, Event};

    use super::*;
    use crate::drawn;
    use crate::query::functions::Functions;
    use crate::query::ownership::Owned;

    fn counted(text: &str) -> Capture {
        let event = Event { counts: Counts::Weight, ..Event::sampled("cpu-clock", "samples") };
        drawn::Drawing::new().window(0..10_000_000_000).folded(event, text).capture
    }

    type Shown = (String, u64, u64, Option<Verdict>);

    fn shown(before: &[Capture], after: &[Capture], scale: Scale) -> (Vec<Shown>, TreeDifference) {
        let owned = Owned::nothing();
        let functions = |captures: &[Capture]| -> Vec<Functions> {
            captures.iter().map(|capture| Functions::of(capture, &owned)).collect()
        };
        let (old, new) = (functions(before), functions(after));
        fn selections<'a>(captures: &'a [Capture], functions: &'a [Functions]) -> Vec<Selection<'a>> {
            captures.iter().zip(functions).map(|(capture, functions)| Selection::all(capture, functions)).collect()
        }
        let (old, new) = (selections(before, &old), selections(after, &new));
        let drawing = Drawing { scale, ..Drawing::default() };
        let side = |name: &str, runs| SelectedSide { name: name.to_owned(), runs };
        let difference = difference(&side("before", old), &side("after", new), drawing, &Options::default());
        let rows = difference.tree.nodes.iter().zip(&difference.base).enumerate().map(|(index, (node, base))| {
            let verdict = difference.verdicts.as_ref().map(|verdicts| verdicts[index]);
            (node.name.to_string(), base.total, node.total, verdict)
        });
        (rows.collect(), difference)
    }

    #[test]
    fn both_sides_are_drawn_with_what_vanished_and_what_is_new() {
        let before = counted("main;run;f 4000\nmain;run;old 400\nmain;run;g 50000");
        let after = counted("main;run;f 1000\nmain;run;new 5\nmain;run;g 50100");
        let (rows, difference) = shown(&[before], &[after], Scale::Absolute);
        // Samples in 1000 s, from ten seconds.
        let row = |name: &str, before, after, verdict| (name.to_owned(), before, after, Some(verdict));
        assert_eq!(
            rows[1..],
            [
                row("run", 5_440_000, 5_110_500, Verdict::Changed),
                row("f", 400_000, 100_000, Verdict::Changed),
                row("g", 5_000_000, 5_010_000, Verdict::Equivalent),
                row("new", 0, 500, Verdict::Inconclusive),
                row("old", 40_000, 0, Verdict::Changed),
            ]
        );
        assert_eq!(difference.tree.title, "cpu-clock per second of wall time: after against before");
        assert_eq!(difference.tree.subtitle, "absolute · 1 run before, 1 run after");
    }

    #[test]
    fn normalised_sides_have_equal_wholes_and_no_verdicts() {
        let (rows, difference) =
            shown(&[counted("main;f 300\nmain;g 100")], &[counted("main;f 100\nmain;g 100")], Scale::Normalised);
        let widths: Vec<(u64, u64)> = rows.iter().map(|(_, before, after, _)| (*before, *after)).collect();
        assert_eq!(widths[0], (20_000, 20_000));
        assert_eq!(difference.verdicts, None);
        assert!(difference.tree.subtitle.starts_with("normalised to equal totals"));
    }

    #[test]
    fn several_runs_are_averaged_and_tested_by_how_they_differ() {
        let runs = |base: u64| {
            (0..6).map(|run| counted(&format!("main;f {}\nmain;g 40000", base + run * 7))).collect::<Vec<_>>()
        };
        let (rows, _) = shown(&runs(9_000), &runs(3_000), Scale::Absolute);
        let of = |name: &str| rows.iter().find(|row| row.0 == name).unwrap().clone();
        assert_eq!(of("f").3, Some(Verdict::Changed));
        assert_eq!(of("g"), ("g".to_owned(), 4_000_000, 4_000_000, Some(Verdict::Equivalent)));
        let (rows, _) = shown(&runs(9_000)[..3], &runs(3_000)[..3], Scale::Absolute);
        assert!(rows.iter().all(|row| row.3 != Some(Verdict::Changed)), "three runs per side never show a change");
    }
}

//! Rows of a comparison: functions, threads and others of both sides, matched and assessed.

use std::borrow::Cow;
use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_stats::covariance::Direction;
use stepscope_stats::hierarchical::Run;

use super::evidence::{Course, Evidence, Family, Nature};
use super::judge::{Assessment, Counted, Judge, Noise};
use super::options::Options;
use super::renames;
use super::side::Side;
use super::speed;
use crate::analyses::metrics::{self, Better, Metric};
use crate::query::functions::Identity;

/// A function, thread or category of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its identity before; `None` if it is new.
    pub before: Option<Identity>,
    /// Its identity after; `None` if it has vanished.
    pub after: Option<Identity>,
    /// Kind and ownership of a function; `None` for threads and categories.
    pub nature: Option<Nature>,
    /// How it was matched, if its name differs.
    pub matched: Option<String>,
    /// Its change.
    pub assessment: Assessment,
}

impl Row {
    /// Its name after, else before.
    pub fn identity(&self) -> &Identity {
        self.after.as_ref().or(self.before.as_ref()).expect("a row is on one side at least")
    }

    /// Changed rows first, then by the size of the difference, then by name.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let rank = |row: &Self| (!row.assessment.is_changed(), row.assessment.difference.value.abs());
        let ((a, a_size), (b, b_size)) = (rank(self), rank(other));
        a.cmp(&b).then(b_size.total_cmp(&a_size)).then_with(|| self.identity().cmp(other.identity()))
    }

    /// `both`, `new` or `vanished`.
    pub fn presence(&self) -> &'static str {
        match (&self.before, &self.after) {
            (Some(_), Some(_)) => "both",
            (None, _) => "new",
            (_, None) => "vanished",
        }
    }
}

/// A metric of the whole run on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRow {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its unit.
    pub unit: String,
    /// Which way it should go.
    pub better: Better,
    /// Runs before and after that have it.
    pub runs: (usize, usize),
    /// Its change.
    pub assessment: Assessment,
}

/// The rows of a family, not yet [decided](super::judge::decide), in the order of names.
pub(super) fn of_family(before: &Side, after: &Side, family: Family, judge: &Judge, options: &Options) -> Vec<Row> {
    let known = |side: &Side| -> FxHashSet<Identity> {
        side.runs.iter().flat_map(|run| run.rows(family).keys().cloned()).collect()
    };
    joined(&known(before), &known(after), options)
        .into_iter()
        .map(|(old, new, matched)| {
            let courses = |side: &Side, identity: &Option<Identity>| -> Vec<Run> {
                let course = |run: &Evidence| run_of(run, identity.as_ref().and_then(|one| run.rows(family).get(one)));
                side.runs.iter().map(course).collect()
            };
            let count = |side: &Side, identity: &Option<Identity>| -> u64 {
                let of =
                    |run: &Evidence| identity.as_ref().and_then(|one| run.rows(family).get(one)).map(|one| one.count);
                side.runs.iter().filter_map(of).sum()
            };
            let counted =
                Counted { before: count(before, &old), after: count(after, &new), sampled: !family.is_exact() };
            let assessment =
                judge.row(&courses(before, &old), &courses(after, &new), Some(counted), Some(Direction::Same));
            let nature = nature(before, after, &old, &new);
            Row { before: old, after: new, nature, matched, assessment }
        })
        .collect()
}

/// Identities on both sides and on one side alone, in the order of names.
fn joined(
    before: &FxHashSet<Identity>,
    after: &FxHashSet<Identity>,
    options: &Options,
) -> Vec<(Option<Identity>, Option<Identity>, Option<String>)> {
    let vanished: Vec<&Identity> = before.difference(after).collect();
    let new: Vec<&Identity> = after.difference(before).collect();
    let matches = renames::matches(&vanished, &new, &options.renames);
    let renamed: FxHashMap<&Identity, &renames::Match> = matches.iter().map(|one| (&one.after, one)).collect();
    let gone: FxHashSet<&Identity> = matches.iter().map(|one| &one.before).collect();
    let both = before.intersection(after).map(|one| (Some(one.clone()), Some(one.clone()), None));
    let new = new.iter().map(|one| match renamed.get(one) {
        Some(found) => (Some(found.before.clone()), Some((*one).clone()), Some(found.how.clone())),
        None => (None, Some((*one).clone()), None),
    });
    let vanished = vanished.iter().filter(|one| !gone.contains(**one)).map(|one| (Some((*one).clone()), None, None));
    let mut all: Vec<_> = both.chain(new).chain(vanished).collect();
    all.sort();
    all
}

fn nature(before: &Side, after: &Side, old: &Option<Identity>, new: &Option<Identity>) -> Option<Nature> {
    let of = |side: &Side, identity: &Option<Identity>| {
        let identity = identity.as_ref()?;
        side.runs.iter().find_map(|run| run.natures.get(identity).copied())
    };
    of(after, new).or_else(|| of(before, old))
}

/// Cost of one run per step, second or percent, with the deviations of its blocks.
fn run_of(run: &Evidence, course: Option<&Course>) -> Run {
    let (exposure, blocks) = (run.whole_exposure(), run.exposure.len());
    let Some(course) = course.filter(|course| !course.blocks.is_empty() && exposure > 0.0) else {
        return Run { mean: 0.0, residuals: vec![0.0; if blocks > 1 { blocks } else { 0 }] };
    };
    let mean = course.total() / exposure;
    if blocks < 2 {
        return Run { mean, residuals: Vec::new() };
    }
    let usual = exposure / blocks as f64;
    let residual = |(weight, exposure): (&f64, &f64)| (weight - mean * exposure) / usual;
    Run { mean, residuals: course.blocks.iter().zip(&run.exposure).map(residual).collect() }
}

/// The metrics that both sides have, in their order.
pub(super) fn of_metrics(before: &Side, after: &Side, judge: &Judge, options: &Options) -> Vec<MetricRow> {
    let known = [before, after].into_iter().flat_map(|side| &side.runs).flat_map(|run| &run.metrics);
    metrics::names(known).into_iter().filter_map(|name| metric(before, after, name, judge, options)).collect()
}

fn metric(before: &Side, after: &Side, name: Cow<'static, str>, judge: &Judge, options: &Options) -> Option<MetricRow> {
    let known = |side: &Side| -> Vec<Metric> {
        side.runs.iter().filter_map(|run| run.metrics.iter().find(|one| one.name == name)).cloned().collect()
    };
    let (old, new) = (known(before), known(after));
    new.first()?;
    let Metric { unit, better, .. } = old.first()?.clone();
    if new.iter().chain(&old).any(|one| one.unit != unit) {
        return None;
    }
    let runs = |metrics: &[Metric]| -> Vec<Run> {
        metrics.iter().map(|one| Run { mean: one.value, residuals: Vec::new() }).collect()
    };
    let all_have_it = (old.len(), new.len()) == (before.runs.len(), after.runs.len());
    // Metrics are no shares, so several runs say how much one differs, also where costs are shares.
    let as_rows = all_have_it && !matches!(judge.noise(), Noise::Unknown(_));
    let assessment = match as_rows {
        true => judge.row(&runs(&old), &runs(&new), None, speed::direction(&name, &unit)),
        // Where some runs lack it, resamples of another shape are needed.
        false => {
            let judge = Judge::of_shape(&vec![0; old.len()], &vec![0; new.len()], options);
            judge.row(&runs(&old), &runs(&new), None, None)
        }
    };
    Some(MetricRow { name, unit, better, runs: (old.len(), new.len()), assessment })
}

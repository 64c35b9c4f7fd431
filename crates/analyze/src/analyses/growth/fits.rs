//! The laws of everything that was measured of a sweep, each fitted once.

use stepscope_stats::Estimate;
use stepscope_stats::growth::Growth;

use super::measure::{Measure, Measured, Series, series};
use crate::parallel;
use crate::query::select::Selection;

/// Which rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Only metrics of whole recordings and counters.
    pub whole_runs_alone: bool,
}

/// Sizes of predictions, over the largest size.
pub(super) const BEYOND: [f64; 2] = [2.0, 10.0];

/// A row: what grows.
#[derive(Debug)]
pub(super) struct Grown {
    pub series: String,
    pub phase: String,
    pub axis: String,
    pub measure: Measure,
    pub growth: Growth,
    /// Of one run at these [factors](BEYOND) of the largest size.
    pub predicted: [Option<Estimate>; BEYOND.len()],
    pub share: Option<f64>,
    pub runs: usize,
}

/// The series of a sweep with their laws. Each law is fitted once: the table and the pictures show the same fits.
pub struct Fits<'s, 'a>(pub(super) Vec<Fitted<'s, 'a>>);

/// A series and the laws of everything that was measured of it.
pub(super) struct Fitted<'s, 'a> {
    pub series: Series<'s, 'a>,
    pub rows: Vec<Grown>,
}

impl<'s, 'a> Fits<'s, 'a> {
    /// Fits the laws of each series, by number of CPUs.
    pub fn of(selections: &'s [Selection<'a>], options: &Options) -> Self {
        let all = series(selections).into_iter().flat_map(Series::by_cores);
        Self(all.map(|series| Fitted { rows: of_series(&series, options), series }).collect())
    }

    /// All rows, series by series.
    pub(super) fn into_rows(self) -> impl Iterator<Item = Grown> {
        self.0.into_iter().flat_map(|one| one.rows)
    }
}

fn of_series(one: &Series<'_, '_>, options: &Options) -> Vec<Grown> {
    if one.sizes().len() < 2 {
        return Vec::new();
    }
    let sizes = || one.runs.iter().map(|run| run.n);
    let largest = one.sizes().last().copied().unwrap_or(1.0);
    let mut measures = one.measures();
    measures.retain(|measure| !options.whole_runs_alone || measure.kind <= Measured::Counter);
    let fits = parallel::map(&measures, |measure| {
        let growth = measure.growth(sizes())?;
        Some((BEYOND.map(|factor| growth.predict(factor * growth.sizes.1)), growth))
    });
    let grown = measures.into_iter().zip(fits).filter_map(|(measure, fit)| {
        let (predicted, growth) = fit?;
        Some(Grown {
            series: one.label.clone(),
            phase: one.phase.map(|phase| phase.to_string()).unwrap_or_default(),
            axis: one.axis.clone(),
            share: measure.share_at(largest, sizes()),
            growth,
            predicted,
            runs: one.runs.len(),
            measure,
        })
    });
    let mut grown: Vec<Grown> = grown.collect();
    let place = |row: &Grown| crate::analyses::metrics::place(&row.measure.name);
    grown.sort_by(|a, b| {
        let kind = a.measure.kind.cmp(&b.measure.kind);
        let share = b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0));
        kind.then(place(a).cmp(&place(b))).then(share).then(a.measure.name.cmp(&b.measure.name))
    });
    grown
}

//! [`Growth`]: the law by which a cost grows with the size, from repeated runs at several sizes.
//!
//! # Model
//! ```text
//! ln cost = ln c + ln(a + f(n)) + point + run
//! ```
//! f is the growing part of a [`Law`], a >= 0 a fixed part, or none. `run` is the scatter of runs of one size, `point`
//! that of sizes; both are normal, so noise is a factor. Where a cost is a number of samples, runs also scatter by
//! 1 / samples.
//!
//! # Evidence
//! The laws are equally probable beforehand, a free exponent twice as much. The probability of a law given the data is its likelihood, averaged over the
//! fixed part, the free exponent, the level and both variances (Bayes factors: Kass and Raftery, JASA 90, 1995). The level
//! and the variance within points are integrated exactly, the others on grids that follow the likelihood, so equal data
//! give equal results. A law that needs a fine-tuned fixed part or exponent has less probability than one that fits
//! without. A law is named if its probability is at least [`NAMED_FROM`] and there are [`MIN_SIZES`] sizes. Otherwise the
//! data are inconclusive.
//!
//! # Exponent
//! That of a + n^k, over all k, whatever law is named. For a law with a logarithm it is the nearest power over the measured
//! sizes, as 1.14 for n log n. Of a constant cost it is that of n^k alone, 0.
//!
//! # Prediction
//! The average over all laws, by their probabilities (Hoeting et al., *Bayesian Model Averaging*, Statistical Science 14,
//! 1999), for one new run. Never beyond [`FARTHEST`] times the largest size.

mod law;
mod posterior;
mod table;

pub use law::Law;

use crate::interval::Estimate;
use posterior::Posterior;
pub(crate) use posterior::quantiles;
pub(crate) use table::Table;

/// The probability from which a law is named.
pub const NAMED_FROM: f64 = 0.8;

/// Number of sizes that a law needs.
pub const MIN_SIZES: usize = 3;

/// Largest size of a prediction, over the largest that was measured.
pub const FARTHEST: f64 = 10.0;

/// The costs of repeated runs at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The size, positive.
    pub n: f64,
    /// The cost of each run, positive.
    pub values: Vec<f64>,
    /// How many samples a run's cost is on average; `None` if the cost has no sampling noise.
    pub events: Option<f64>,
}

impl Point {
    /// A point of exact costs.
    pub fn new(n: f64, values: impl Into<Vec<f64>>) -> Self {
        Self { n, values: values.into(), events: None }
    }

    fn is_usable(&self) -> bool {
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        positive(&self.n) && !self.values.is_empty() && self.values.iter().all(positive)
    }

    fn join(&mut self, other: &Self) {
        let (a, b) = (self.values.len() as f64, other.values.len() as f64);
        self.events = self.events.zip(other.events).map(|(own, more)| (own * a + more * b) / (a + b));
        self.values.extend_from_slice(&other.values);
    }
}

/// How a cost grows.
#[derive(Debug, Clone)]
pub struct Growth {
    /// The probability of each law, the most probable first.
    pub laws: Vec<(Law, f64)>,
    /// The exponent, with a 95 % interval.
    pub exponent: Estimate,
    /// Smallest and largest size.
    pub sizes: (f64, f64),
    /// Number of sizes.
    pub points: usize,
    posterior: Posterior,
}

impl Growth {
    /// Fits all laws. Points without positive costs are ignored. `None` without two sizes.
    pub fn of(points: &[Point]) -> Option<Self> {
        let table = Table::of(points)?;
        let (laws, posterior, exponents) = posterior::of(&table);
        let exponent = if laws[0].0 == Law::Constant { exponents.without_offset } else { exponents.with_offset };
        let sizes = (table.sizes[0], table.sizes[table.sizes.len() - 1]);
        Some(Self { laws, exponent, sizes, points: table.sizes.len(), posterior })
    }

    /// The most probable law.
    pub fn most_probable(&self) -> Law {
        self.laws[0].0
    }

    /// The law, if the data tell. `None`: inconclusive.
    pub fn law(&self) -> Option<Law> {
        let (law, probability) = self.laws[0];
        (probability >= NAMED_FROM && self.points >= MIN_SIZES).then_some(law)
    }

    /// The cost of one new run at size `n`, with a 95 % prediction interval.
    ///
    /// `None` outside of the smallest size to [`FARTHEST`] times the largest.
    pub fn predict(&self, n: f64) -> Option<Estimate> {
        self.covers(n).then(|| self.posterior.predict(n))
    }

    /// The expected cost at size `n`, with a 95 % confidence interval: the band of a picture.
    ///
    /// `None` outside of the smallest size to [`FARTHEST`] times the largest.
    pub fn expect(&self, n: f64) -> Option<Estimate> {
        self.covers(n).then(|| self.posterior.expect(n))
    }

    /// The size at which the expected cost reaches `cost`, with a 95 % interval.
    ///
    /// An end is infinite if the cost is not reached up to [`FARTHEST`] times the largest size, and 0 if it is exceeded at
    /// the smallest.
    pub fn reach(&self, cost: f64) -> Estimate {
        self.posterior.reach(cost, self.sizes.0, self.sizes.1 * FARTHEST)
    }

    /// How much one more run at size `n` would tell about the law and its parameters, in bits.
    ///
    /// It is the mutual information of a normal distribution: half the logarithm of the variance that the candidates'
    /// predictions have, over that of a run's noise, plus 1 (MacKay, *Information-Based Objective Functions for Active
    /// Data Selection*, 1992).
    pub fn information(&self, n: f64) -> f64 {
        self.posterior.information(n)
    }

    fn covers(&self, n: f64) -> bool {
        (self.sizes.0 * 0.999..=self.sizes.1 * FARTHEST * 1.001).contains(&n)
    }
}

#[cfg(test)]
mod tests;

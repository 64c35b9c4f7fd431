//! [`Table`]: what repeated runs at several sizes measured, reduced to what the likelihood of a shape needs.

use super::Point;

/// Ratios of the variance between points to that within, with the prior probability of each.
const BETWEEN: [(f64, f64); 5] = [(0.0, 0.3), (0.1, 0.2), (0.3, 0.2), (1.0, 0.2), (3.0, 0.1)];

/// The prior of the variance within points, an inverse gamma distribution: its degrees of freedom, and the standard
/// deviation that they stand for.
const PRIOR_DEGREES: f64 = 1.0;
const PRIOR_DEVIATION: f64 = 0.03;

/// Logarithms of repeated costs, by size.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// Sizes, ascending.
    pub sizes: Vec<f64>,
    /// Mean logarithm at each size.
    pub means: Vec<f64>,
    /// Degrees of freedom of the variance, prior and data together.
    pub degrees: f64,
    sum_within: f64,
    between: Vec<Between>,
}

/// A ratio of the variance between points to that within.
#[derive(Debug, Clone)]
struct Between {
    ratio: f64,
    ln_prior: f64,
    weights: Vec<f64>,
    weight: f64,
}

/// The likelihood of a shape, over all variances, and what it says about the level and the spread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likelihood {
    pub ln: f64,
    /// Mean of ln cost - ln shape.
    pub level: f64,
    /// Variance of the level.
    pub level_variance: f64,
    /// Variance of a new run at a new size.
    pub run_variance: f64,
}

impl Table {
    /// Points of the same size are joined. `None` without two sizes of positive costs.
    pub fn of(points: &[Point]) -> Option<Self> {
        let mut points: Vec<Point> = points.iter().filter(|point| point.is_usable()).cloned().collect();
        points.sort_by(|a, b| a.n.total_cmp(&b.n));
        points.dedup_by(|later, first| {
            let same = later.n == first.n;
            if same {
                first.join(later);
            }
            same
        });
        if points.len() < 2 {
            return None;
        }
        let logs: Vec<Vec<f64>> =
            points.iter().map(|point| point.values.iter().map(|value| value.ln()).collect()).collect();
        let means: Vec<f64> = logs.iter().map(|logs| logs.iter().sum::<f64>() / logs.len() as f64).collect();
        let squares = |index: usize| logs[index].iter().map(|log| (log - means[index]).powi(2)).sum::<f64>();
        let degrees_within: f64 = logs.iter().map(|logs| logs.len() as f64 - 1.0).sum();
        let factors = variance_factors(&points, (0..points.len()).map(squares).sum::<f64>(), degrees_within);
        let sum_within = (0..points.len()).map(|index| squares(index) / factors[index]).sum();
        let between = BETWEEN.iter().map(|&(ratio, prior)| {
            let variance = |(point, factor): (&Point, &f64)| ratio + factor / point.values.len() as f64;
            let weights: Vec<f64> = points.iter().zip(&factors).map(|pair| 1.0 / variance(pair)).collect();
            let weight: f64 = weights.iter().sum();
            let ln_prior = prior.ln() + 0.5 * (weights.iter().map(|weight| weight.ln()).sum::<f64>() - weight.ln());
            Between { ratio, ln_prior, weights, weight }
        });
        Some(Self {
            sizes: points.iter().map(|point| point.n).collect(),
            degrees: PRIOR_DEGREES + degrees_within + points.len() as f64 - 1.0,
            between: between.collect(),
            means,
            sum_within,
        })
    }

    /// The likelihood of a shape, given its logarithm at each size. The level has a flat prior.
    pub fn likelihood(&self, ln_shape: &[f64]) -> Likelihood {
        let differences: Vec<f64> = self.means.iter().zip(ln_shape).map(|(mean, shape)| mean - shape).collect();
        let mut of = [(0.0, 0.0, 0.0, 0.0); BETWEEN.len()];
        for (between, of) in self.between.iter().zip(&mut of) {
            let weighted = || between.weights.iter().zip(&differences);
            let level = weighted().map(|(weight, difference)| weight * difference).sum::<f64>() / between.weight;
            let scatter: f64 = weighted().map(|(weight, difference)| weight * (difference - level).powi(2)).sum();
            let sum = PRIOR_DEGREES * PRIOR_DEVIATION.powi(2) + self.sum_within + scatter;
            let ln = between.ln_prior - 0.5 * self.degrees * sum.ln();
            let variance = sum / self.degrees;
            *of = (ln, level, variance / between.weight, variance * (1.0 + between.ratio));
        }
        let most = of.iter().map(|of| of.0).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = of.iter().map(|of| (of.0 - most).exp()).sum();
        let mean = |value: fn(&(f64, f64, f64, f64)) -> f64| {
            of.iter().map(|of| (of.0 - most).exp() * value(of)).sum::<f64>() / total
        };
        let level = mean(|of| of.1);
        let moved = of.iter().map(|of| (of.0 - most).exp() * (of.1 - level).powi(2)).sum::<f64>() / total;
        Likelihood {
            ln: most + total.ln(),
            level,
            level_variance: mean(|of| of.2) + moved,
            run_variance: mean(|of| of.3),
        }
    }
}

/// How much larger the variance of a run is at each point than that of a cost that is counted without error.
///
/// A cost of c samples has the relative variance 1/c beside that between runs.
fn variance_factors(points: &[Point], squares: f64, degrees: f64) -> Vec<f64> {
    let counting = |point: &Point| point.events.map_or(0.0, |events| 1.0 / events.max(1.0));
    let total: f64 = points.iter().map(|point| (point.values.len() as f64 - 1.0) * counting(point)).sum();
    let prior = PRIOR_DEVIATION.powi(2);
    let own = ((squares - total + PRIOR_DEGREES * prior) / (degrees + PRIOR_DEGREES)).max(prior / 9.0);
    points.iter().map(|point| 1.0 + counting(point) / own).collect()
}

//! BCa intervals (bias-corrected and accelerated; Efron, *Better Bootstrap Confidence Intervals*, JASA 82, 1987).
//!
//! The ends are percentiles of resampled values, shifted by the bias `z0` and the acceleration `a`: `Φ(z0 + (z0 + z) /
//! (1 - a (z0 + z)))` with `z = Φ⁻¹((1 ± confidence) / 2)`. This corrects for the skew of costs.

use statrs::distribution::{ContinuousCDF, Normal};

/// The interval of `confidence` from sorted resampled values. `None` if there are none or all are equal.
pub fn interval(resampled: &[f64], value: f64, acceleration: f64, confidence: f64) -> Option<(f64, f64)> {
    let (first, last) = (resampled.first()?, resampled.last()?);
    if first == last {
        return None;
    }
    let normal = Normal::standard();
    let below = resampled.partition_point(|one| *one < value) as f64;
    let up_to = resampled.partition_point(|one| *one <= value) as f64;
    // Ties count half. The share is never 0 or 1, where the quantile is infinite.
    let of = resampled.len() as f64;
    let bias = normal.inverse_cdf((f64::midpoint(below, up_to) / of).clamp(0.5 / of, 1.0 - 0.5 / of));
    let end = |probability: f64| {
        let z = bias + normal.inverse_cdf(probability);
        let shifted = normal.cdf(bias + z / (1.0 - acceleration * z).max(f64::MIN_POSITIVE));
        resampled[((shifted * of) as usize).min(resampled.len() - 1)]
    };
    let (low, high) = (end(0.5 - confidence / 2.0), end(0.5 + confidence / 2.0));
    Some((low.min(value), high.max(value)))
}

/// The acceleration of several samples, from their jackknife values `x`.
///
/// `a = Σ d^3 / (6 (Σ d^2)^(3/2))` with `d = mean(x) - x`, where each sample has its own mean.
pub fn acceleration(left_out: &[&[f64]]) -> f64 {
    let (mut squares, mut cubes) = (0.0, 0.0);
    for group in left_out {
        let mean = group.iter().sum::<f64>() / group.len().max(1) as f64;
        squares += group.iter().map(|value| (mean - value).powi(2)).sum::<f64>();
        cubes += group.iter().map(|value| (mean - value).powi(3)).sum::<f64>();
    }
    let spread = squares.powf(1.5);
    if spread > 0.0 && cubes.is_finite() { cubes / (6.0 * spread) } else { 0.0 }
}

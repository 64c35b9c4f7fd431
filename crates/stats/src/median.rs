//! [`median`] of a few values and its standard error, robust against outliers.
//!
//! The standard error is that of the median of normal values, `sqrt(π/2) σ / sqrt(n)`. σ comes from the median absolute
//! deviation (Hampel, *The Influence Curve and Its Role in Robust Estimation*, JASA 69, 1974), corrected for few values
//! (Croux and Rousseeuw, *Time-Efficient Algorithms for Two Highly Robust Estimators of Scale*, COMPSTAT 1992).

use std::f64::consts::FRAC_PI_2;

/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_FACTOR: f64 = 1.4826;

/// Corrections of the deviation of 2, 3, ... 9 values, which is too small on average.
const FEW: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/// The median of `values`; for an even number, the mean of the middle two. `None` if empty.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| of_sorted(&sorted))
}

/// The standard error of the [`median`] of `values`, in their unit. `None` for fewer than two values.
pub fn standard_error_of_median(values: &[f64]) -> Option<f64> {
    let count = values.len();
    let middle = median(values).filter(|_| count >= 2)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let few = FEW.get(count - 2).copied().unwrap_or(count as f64 / (count as f64 - 0.8));
    Some(FRAC_PI_2.sqrt() * NORMAL_FACTOR * few * median(&deviations)? / (count as f64).sqrt())
}

/// The median of sorted values, of which there is at least one.
pub(crate) fn of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0, 40.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 200.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_value_has_no_standard_error() {
        assert_eq!(standard_error_of_median(&[7.0]), None);
        assert_eq!(standard_error_of_median(&[7.0, 7.0]), Some(0.0));
    }

    #[test]
    fn an_outlier_however_far_does_not_change_the_error() {
        let of = |last: f64| standard_error_of_median(&[1.0, 2.0, 3.0, 4.0, last]).unwrap();
        assert_eq!(of(50.0), of(5e9));
    }

    /// The sum of twelve uniform numbers minus six is nearly normal with σ = 1.
    #[test]
    fn the_error_equals_the_scatter_of_resampled_medians() {
        let mut random = SplitMix64::new(3);
        let mut normal = || (0..12).map(|_| random.below(1 << 40) as f64 / (1_u64 << 40) as f64).sum::<f64>() - 6.0;
        for count in [3_usize, 9, 21] {
            let draws: Vec<Vec<f64>> = (0..4_000).map(|_| (0..count).map(|_| normal()).collect()).collect();
            let estimated = draws.iter().map(|draw| standard_error_of_median(draw).unwrap()).sum::<f64>() / 4_000.0;
            let square = draws.iter().map(|draw| median(draw).unwrap().powi(2)).sum::<f64>() / 4_000.0;
            let ratio = estimated / square.sqrt();
            assert!((0.93..1.11).contains(&ratio), "{count} values: {ratio}");
        }
    }
}

//! [`theil_sen`]: the slope of a series, robust against outliers.
//!
//! The slope is the median of the slopes between all pairs of points (Theil, 1950; Sen, *Estimates of the Regression
//! Coefficient Based on Kendall's Tau*, JASA 63, 1968). Up to 29 % of the points may be arbitrarily wrong without much
//! effect; least squares follow a single outlier. Sen's interval needs no distribution: it uses the sorted n(n-1)/2
//! slopes at ranks `z sqrt(n(n-1)(2n+5)/18) / 2` from the middle.
//!
//! The interval assumes independent points. Neighbouring steps are dependent, and long series have too many pairs. So a
//! long series is divided into at most [`BLOCKS`] blocks of consecutive points. The median of each block, at its
//! middle, is one point.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::Estimate;
use crate::median::of_sorted;

/// Number of points after a series is divided into blocks, at most.
pub const BLOCKS: usize = 200;

/// Number of points that a slope needs.
pub const MIN_POINTS: usize = 8;

/// The slope of `points`, (position, value) ordered by position, with an interval of `confidence` (e.g. 0.95).
///
/// `None` for fewer than [`MIN_POINTS`] points, or if all have the same position.
pub fn theil_sen(points: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    let points = in_blocks(points);
    if points.len() < MIN_POINTS {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (index, (x, y)) in points.iter().enumerate() {
        let later = points[index + 1..].iter().filter(|(later, _)| later > x);
        slopes.extend(later.map(|(later, value)| (value - y) / (later - x)));
    }
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let n = points.len() as f64;
    let z = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
    let spread = z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let of = slopes.len() as f64;
    let last = slopes.len() - 1;
    let low = ((of - spread) / 2.0).floor().max(0.0) as usize;
    let high = ((of + spread) / 2.0).ceil() as usize;
    Some(Estimate { value: of_sorted(&slopes), low: slopes[low.min(last)], high: slopes[high.min(last)] })
}

fn in_blocks(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= BLOCKS {
        return points.to_vec();
    }
    let edge = |block: usize| block * points.len() / BLOCKS;
    let block = |block: usize| {
        let points = &points[edge(block)..edge(block + 1)];
        let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let position = points.iter().map(|(position, _)| position).sum::<f64>() / points.len() as f64;
        (position, of_sorted(&values))
    };
    (0..BLOCKS).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn the_slope_is_exact_despite_outliers_in_a_fifth_of_the_points() {
        let point = |index: u32| (f64::from(index), if index % 5 == 3 { 1e6 } else { 2.0 * f64::from(index) + 7.0 });
        let points: Vec<(f64, f64)> = (0..40).map(point).collect();
        assert_eq!(theil_sen(&points, 0.95).unwrap().value, 2.0);
    }

    /// Nine points: 36 slopes; z sqrt(9·8·23/18) = 1.96·9.59 = 18.8 ranks between the ends.
    #[test]
    fn the_interval_is_sens() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 90.0];
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
        let slope = theil_sen(&points, 0.95).unwrap();
        // 28 slopes are 1, and the eight with the outlier are larger: the interval has ranks 8 and 28 of 0 to 35.
        assert_eq!((slope.value, slope.low), (1.0, 1.0));
        assert_eq!(slope.high, 89.0 / 8.0);
    }

    #[test]
    fn intervals_of_noise_mostly_include_zero() {
        let mut random = SplitMix64::new(7);
        let covered = |random: &mut SplitMix64| {
            let points: Vec<(f64, f64)> =
                (0..60_u32).map(|index| (f64::from(index), random.below(1_000) as f64)).collect();
            !theil_sen(&points, 0.95).unwrap().excludes_zero()
        };
        let hits = (0..400).filter(|_| covered(&mut random)).count();
        assert!((365..=395).contains(&hits), "{hits} of 400");
    }

    #[test]
    fn a_long_series_is_divided_into_blocks_and_keeps_its_slope() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|index| (f64::from(index), 0.5 * f64::from(index))).collect();
        let slope = theil_sen(&points, 0.95).unwrap();
        assert!((slope.value - 0.5).abs() < 1e-9, "{slope:?}");
    }

    #[test]
    fn few_points_and_equal_positions_have_no_slope() {
        assert_eq!(theil_sen(&[(0.0, 1.0); 7], 0.95), None);
        assert_eq!(theil_sen(&[(1.0, 1.0); 20], 0.95), None);
    }
}

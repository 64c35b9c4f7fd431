//! [`Distribution`]: the sorted values of one quantity.

use crate::discrete::Binomial;

/// All measured values of one quantity, sorted.
///
/// Statistics of an empty distribution are `None`: no data is not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    sorted: Vec<u64>,
    sum: u128,
}

impl Distribution {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The values, smallest first.
    pub fn values(&self) -> &[u64] {
        &self.sorted
    }

    /// Sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest value.
    pub fn min(&self) -> Option<u64> {
        self.sorted.first().copied()
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.len() as f64)
    }

    /// The 50th [percentile](Self::percentile): a measured value, the lower of the middle two.
    pub fn median(&self) -> Option<u64> {
        self.percentile(50.0)
    }

    /// The smallest value that at least `percent` % of the values do not exceed.
    ///
    /// This is the nearest rank (definition 1 of Hyndman and Fan, *Sample Quantiles in Statistical Packages*, 1996),
    /// and always a measured value. For delays that matters: an interpolated p99 between 1 ms and 4 s would never have
    /// occurred.
    ///
    /// # Panics
    /// If `percent` is not within 0 to 100.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        assert!((0.0..=100.0).contains(&percent), "a percentile is within 0 to 100, not {percent}");
        let last = self.len().checked_sub(1)?;
        let rank = (percent / 100.0 * self.len() as f64).ceil() as usize;
        Some(self.sorted[rank.saturating_sub(1).min(last)])
    }

    /// The bounds of a [percentile](Self::percentile) of the population, of which these values are independent draws.
    ///
    /// The interval of order statistics, which assumes no distribution (David and Nagaraja, *Order Statistics*, 2003,
    /// section 7.1): the number of values below the percentile is binomial. Its coverage is at least `confidence`. A bound
    /// is `None` if there are too few values for it.
    ///
    /// # Panics
    /// If `percent` is not between 0 and 100, or `confidence` not between 0 and 1.
    pub fn percentile_interval(&self, percent: f64, confidence: f64) -> [Option<u64>; 2] {
        assert!(percent > 0.0 && percent < 100.0, "a percentile has bounds between 0 and 100, not at {percent}");
        assert!(confidence > 0.0 && confidence < 1.0, "a confidence is between 0 and 1, not {confidence}");
        let tail = (1.0 - confidence) / 2.0;
        let below = Binomial::with_log_odds(self.len() as u64, (percent / (100.0 - percent)).ln());
        // The largest rank with P(X < rank) <= tail, and the smallest with P(X >= rank) <= tail, from 1.
        let low = first_where(self.len(), |rank| below.at_most(rank as u64) > tail);
        let high = first_where(self.len() + 1, |rank| below.at_least(rank as u64) <= tail);
        [low, high].map(|rank| self.sorted.get(rank.checked_sub(1)?).copied())
    }
}

impl FromIterator<u64> for Distribution {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        let sum = sorted.iter().map(|&value| u128::from(value)).sum();
        Self { sorted, sum }
    }
}

/// The first number up to `end` for which a condition holds that holds for all later ones; `end` if there is none.
fn first_where(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let mut range = 0..end;
    while range.start < range.end {
        let middle = range.start + (range.end - range.start) / 2;
        range = if holds(middle) { range.start..middle } else { middle + 1..range.end };
    }
    range.start
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        values.into_iter().collect()
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        // The example of the definition: five values, each covers 20 %.
        let distribution = of([50, 15, 40, 20, 35]);
        let at = |percent| distribution.percentile(percent).unwrap();
        assert_eq!([at(5.0), at(20.0), at(30.0), at(40.0), at(50.0), at(100.0)], [15, 15, 20, 20, 35, 50]);
        assert_eq!(at(0.0), 15);
    }

    #[test]
    fn the_99th_percentile_of_a_hundred_values_is_the_second_largest() {
        assert_eq!(of(1..=100).percentile(99.0), Some(99));
        assert_eq!(of(1..=99).percentile(99.0), Some(99));
    }

    #[test]
    fn bounds_of_a_percentile_are_order_statistics() {
        // Ten values: ranks 2 and 9 for the median (table of David and Nagaraja).
        assert_eq!(of(1..=10).percentile_interval(50.0, 0.95), [Some(2), Some(9)]);
        assert_eq!(of(1..=5).percentile_interval(50.0, 0.95), [None, None]);
        assert_eq!(of(1..=100).percentile_interval(99.0, 0.95), [Some(97), None]);
        assert_eq!(of([]).percentile_interval(50.0, 0.95), [None, None]);
        assert_eq!(of(std::iter::repeat_n(7, 1_000_000)).percentile_interval(99.0, 0.95), [Some(7), Some(7)]);
    }

    #[test]
    fn an_empty_distribution_has_no_statistics() {
        let empty = of([]);
        assert_eq!((empty.min(), empty.max(), empty.mean(), empty.median(), empty.sum()), (None, None, None, None, 0));
    }

    #[test]
    fn a_sum_beyond_64_bits_is_exact() {
        let distribution = of([u64::MAX, u64::MAX]);
        assert_eq!(distribution.sum(), 2 * u128::from(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "a percentile is within 0 to 100, not NaN")]
    fn a_percentile_that_is_not_a_number_is_refused() {
        of([1]).percentile(f64::NAN);
    }

    proptest! {
        #[test]
        fn at_least_the_given_share_of_values_does_not_exceed_a_percentile(
            values in prop::collection::vec(0_u64..50, 1..40),
            percent in 0.0..=100.0_f64,
        ) {
            let distribution = of(values);
            let found = distribution.percentile(percent).unwrap();
            let up_to = distribution.values().iter().filter(|&&value| value <= found).count() as f64;
            let below = distribution.values().iter().filter(|&&value| value < found).count() as f64;
            let asked = percent / 100.0 * distribution.len() as f64;
            prop_assert!(up_to >= asked);
            prop_assert!(below < asked || found == distribution.min().unwrap());
        }
    }
}

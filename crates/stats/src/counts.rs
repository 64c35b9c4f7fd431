//! [`rate_change`]: the change between two sample counts, one run each.
//!
//! A count k over an exposure E (steps or seconds) is taken as Poisson with mean `rate · E`. This covers sampling noise
//! only, not differences between runs. Results must say so.
//!
//! # p
//! Let `n = k_1 + k_2`. If the rates are equal, `k_2` is binomial with `π = E_2 / (E_1 + E_2)` (Przyborowski and
//! Wilenski, 1940). The two-sided p is twice the smaller tail, each including the observed count, at most 1. It agrees
//! with the interval: p <= 0.05 exactly if the 95 % interval of the ratio excludes 1.
//!
//! # Interval of the ratio
//! The Clopper-Pearson interval of π (1934) gives that of the ratio of rates, `π / (1 - π) · E_1 / E_2`. Its coverage
//! is at least nominal.
//!
//! # Interval of the difference
//! MOVER (Zou and Donner, 2008) from the exact interval of each rate (Garwood, 1936): `[d - sqrt((r_2 - l_2)^2 + (u_1 -
//! r_1)^2), d + sqrt((u_2 - r_2)^2 + (r_1 - l_1)^2)]`.
//!
//! Tails come from [`crate::discrete`].

use crate::discrete::{Binomial, Poisson};
use crate::interval::Estimate;

/// A sample count and its exposure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    /// Number of samples.
    pub samples: u64,
    /// Steps or seconds; positive.
    pub exposure: f64,
}

impl Count {
    fn rate(self) -> f64 {
        self.samples as f64 / self.exposure
    }
}

/// The change between two counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// Samples per exposure before.
    pub before: f64,
    /// Samples per exposure after.
    pub after: f64,
    /// `after - before`.
    pub difference: Estimate,
    /// `after / before`. Value and upper end are infinite if `before` is 0; `None` if both are 0.
    pub ratio: Option<Estimate>,
    /// Two-sided p-value of equal rates.
    pub p: f64,
}

/// The change of a rate with intervals of `confidence`. `None` unless both exposures are positive and finite.
pub fn rate_change(before: Count, after: Count, confidence: f64) -> Option<RateChange> {
    let positive = |count: Count| count.exposure > 0.0 && count.exposure.is_finite();
    if !positive(before) || !positive(after) {
        return None;
    }
    let all = before.samples.saturating_add(after.samples);
    let equal = Binomial::with_log_odds(all, (after.exposure / before.exposure).ln());
    let p = 2.0 * equal.at_most(after.samples).min(equal.at_least(after.samples));
    Some(RateChange {
        before: before.rate(),
        after: after.rate(),
        difference: difference(before, after, confidence),
        ratio: (all > 0).then(|| ratio(before, after, confidence)),
        p: p.min(1.0),
    })
}

fn ratio(before: Count, after: Count, confidence: f64) -> Estimate {
    let all = before.samples.saturating_add(after.samples);
    let tail = f64::midpoint(1.0, -confidence);
    let scale = before.exposure / after.exposure;
    // Log odds keep the digits of shares near 0 and 1. The search starts at the observed ones, at least half a sample.
    let (of_before, of_after) = (before.samples.max(1) as f64, after.samples.max(1) as f64);
    let (observed, error) = ((of_after / of_before).ln(), (1.0 / of_before + 1.0 / of_after).sqrt());
    let low = || {
        root(|odds| Binomial::with_log_odds(all, odds).at_least(after.samples) - tail, observed, error).exp() * scale
    };
    let high =
        || root(|odds| tail - Binomial::with_log_odds(all, odds).at_most(after.samples), observed, error).exp() * scale;
    Estimate {
        value: after.rate() / before.rate(),
        low: if after.samples == 0 { 0.0 } else { low() },
        high: if before.samples == 0 { f64::INFINITY } else { high() },
    }
}

fn difference(before: Count, after: Count, confidence: f64) -> Estimate {
    let value = after.rate() - before.rate();
    let ends = |count: Count| {
        let (low, high) = garwood(count.samples, confidence);
        (count.rate() - low / count.exposure, high / count.exposure - count.rate())
    };
    let (below_before, above_before) = ends(before);
    let (below_after, above_after) = ends(after);
    Estimate { value, low: value - below_after.hypot(above_before), high: value + above_after.hypot(below_before) }
}

/// The exact interval of a Poisson mean (Garwood, 1936).
fn garwood(samples: u64, confidence: f64) -> (f64, f64) {
    let tail = f64::midpoint(1.0, -confidence);
    let counted = samples.max(1) as f64;
    let (observed, error) = (counted.ln(), 1.0 / counted.sqrt());
    let low = || root(|log| Poisson { mean: log.exp() }.at_least(samples) - tail, observed, error).exp();
    let high = root(|log| tail - Poisson { mean: log.exp() }.at_most(samples), observed, error).exp();
    (if samples == 0 { 0.0 } else { low() }, high)
}

/// The root of an increasing function near `start`, searched in steps of `step`.
fn root(function: impl Fn(f64) -> f64, start: f64, step: f64) -> f64 {
    let (mut low, mut high) = (start - step, start + step);
    for _ in 0..60 {
        let width = high - low;
        match (function(low) < 0.0, function(high) < 0.0) {
            (true, false) => break,
            (true, true) => (low, high) = (high, high + 2.0 * width),
            _ => (low, high) = (low - 2.0 * width, low),
        }
    }
    // Bisects to 12 digits of the step.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: u64, after: u64) -> RateChange {
        let of = |samples| Count { samples, exposure: 1.0 };
        rate_change(of(before), of(after), 0.95).unwrap()
    }

    #[test]
    fn small_differences_of_hundreds_of_samples_are_inconclusive_and_large_ones_significant() {
        for (before, after) in [(401, 380), (714, 675)] {
            let found = change(before, after);
            assert!(found.p > 0.05, "{before} -> {after}: {}", found.p);
            let ratio = found.ratio.unwrap();
            assert!(ratio.low < 1.0 && 1.0 < ratio.high, "{ratio:?}");
        }
        for (before, after) in [(675, 300), (29, 120)] {
            let found = change(before, after);
            assert!(found.p < 1e-6, "{before} -> {after}: {}", found.p);
            assert!(found.difference.excludes_zero());
        }
    }

    /// 5 samples, all before: the tails are 1/32 and 1.
    #[test]
    fn p_is_twice_the_smaller_tail() {
        assert!((change(5, 0).p - 2.0 / 32.0).abs() < 1e-14);
        assert_eq!(change(3, 3).p, 1.0);
        assert_eq!(change(0, 0).p, 1.0);
    }

    fn close(found: f64, expected: f64, relative: f64) -> bool {
        found == expected || (found - expected).abs() <= relative * expected.abs()
    }

    /// p and the interval of the ratio, computed with scipy 1.17 (`binom.cdf`, `binom.sf`, `beta.ppf`).
    #[test]
    fn p_and_interval_equal_those_of_scipy() {
        for ((before, after), (exposure_before, exposure_after), p, low, high) in [
            ((401, 380), (1.0, 1.0), 0.474_226_716_530_127_3, 0.821_391_443_834_603_4, 1.093_118_851_371_455),
            ((714, 675), (1.0, 1.0), 0.307_914_134_137_335_26, 0.849_694_816_566_534_8, 1.051_751_202_821_855),
            ((675, 300), (1.0, 1.0), 7.167_656_395_235_021e-34, 0.386_628_948_806_747_9, 0.509_945_952_374_502_2),
            ((29, 120), (1.0, 1.0), 2.364_123_350_384_584_8e-14, 2.739_545_754_428_022_4, 6.440_937_990_320_655),
            ((5, 0), (1.0, 1.0), 0.0625, 0.0, 1.091_279_105_182_546),
            ((0, 7), (1.0, 1.0), 0.015_625, 1.441_308_518_835_239, f64::INFINITY),
            ((10, 25), (3.0, 5.0), 0.360_821_543_707_985, 0.695_771_384_155_343_6, 3.499_627_920_201_429),
            ((1_000, 1_100), (1.0, 1.0), 0.030_720_707_864_242_49, 1.008_798_832_314_548, 1.199_554_226_269_603_3),
            ((1_500, 1_600), (1.0, 1.0), 0.075_371_697_075_327_81, 0.993_491_987_194_904_6, 1.145_277_833_590_744_5),
            (
                (100_000, 101_000),
                (1.0, 1.0),
                0.025_862_392_439_732_95,
                1.001_197_638_578_087_9,
                1.018_879_846_293_649_7,
            ),
            (
                (1_000_000, 2_003_000),
                (1.0, 2.0),
                0.221_120_248_396_716_5,
                0.999_098_913_561_124_5,
                1.003_907_333_596_668_2,
            ),
            ((3, 9_000), (1.0, 2_000.0), 0.684_718_416_994_691_8, 0.513_108_056_080_247_5, 7.275_009_081_216_059_5),
            ((12, 500_000), (1.0, 1e5), 0.010_906_843_210_198_747, 0.238_529_442_356_891_44, 0.806_382_296_696_967_4),
        ] {
            let count = |samples, exposure| Count { samples, exposure };
            let found = rate_change(count(before, exposure_before), count(after, exposure_after), 0.95).unwrap();
            let ratio = found.ratio.unwrap();
            assert!(close(found.p, p, 1e-6), "{before} -> {after}: p {} not {p}", found.p);
            assert!(close(ratio.low, low, 1e-7), "{before} -> {after}: low {} not {low}", ratio.low);
            assert!(close(ratio.high, high, 1e-7), "{before} -> {after}: high {} not {high}", ratio.high);
        }
    }
}

//! [`rate_change`]: what changed between two counts of samples, one run each.
//!
//! A count k of samples over an exposure E (steps, or seconds) is taken for a draw of a Poisson distribution with the
//! mean `rate · E`. That knows the noise of sampling alone: what the next run would show is not in it, and whatever is said of
//! it must be labelled "sampling noise only".
//!
//! # p
//! Given `n = k_1 + k_2`, `k_2` is binomial with `π = E_2 / (E_1 + E_2)` if the rates are equal (Przyborowski and Wilenski,
//! 1940). Two-sided p is twice the smaller of the two tails, each with the observed count, at most 1: that one agrees
//! with the interval (p <= 0.05 exactly if the 95 % interval of the ratio excludes 1).
//!
//! # Interval of the ratio
//! The Clopper-Pearson interval (1934) of π, and of the ratio of rates `π / (1 - π) · E_1 / E_2`. It covers the truth
//! at least as often as it says.
//!
//! # Interval of the difference
//! MOVER (Zou and Donner, 2008) from the exact interval of each rate (Garwood, 1936), `[d - sqrt((r_2 - l_2)^2 + (u_1 - r_1)^2),
//! d + sqrt((u_2 - r_2)^2 + (r_1 - l_1)^2)]`.
//!
//! # Large counts
//! Tails of up to [`EXACT`] samples are incomplete beta and gamma functions (`statrs`); beyond, where those lose digits and
//! take long, they are the saddlepoint approximation of Lugannani and Rice with Daniels' second continuity correction
//! (*Tail Probability Approximations*, International Statistical Review 55, 1987), whose relative error is below 1e-6 there.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use statrs::function::{beta::beta_reg, gamma::gamma_lr};

use crate::interval::Estimate;

/// Tails of counts up to this are computed exactly.
pub const EXACT: u64 = 2_000;

/// A count of samples, and what it was counted over.
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

/// What changed between two counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// Samples per exposure before.
    pub before: f64,
    /// Samples per exposure after.
    pub after: f64,
    /// `after - before`.
    pub difference: Estimate,
    /// `after / before`; its upper end is infinite and its value too if there was nothing before. `None` if both are 0.
    pub ratio: Option<Estimate>,
    /// Two-sided p of equal rates.
    pub p: f64,
}

/// The change of a rate with intervals of `confidence`; `None` if an exposure is not positive and finite.
pub fn rate_change(before: Count, after: Count, confidence: f64) -> Option<RateChange> {
    let positive = |count: Count| count.exposure > 0.0 && count.exposure.is_finite();
    if !positive(before) || !positive(after) {
        return None;
    }
    let all = before.samples.saturating_add(after.samples);
    let part = after.exposure / (before.exposure + after.exposure);
    let p = if all == 0 { 1.0 } else { 2.0 * up_to(after.samples, all, part).min(from(after.samples, all, part)) };
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
    // As log odds, so that parts close to 0 and 1 keep their digits.
    let low = root(|odds| from(after.samples, all, logistic(odds)) - tail);
    let high = root(|odds| tail - up_to(after.samples, all, logistic(odds)));
    Estimate {
        value: after.rate() / before.rate(),
        low: if after.samples == 0 { 0.0 } else { low.exp() * scale },
        high: if before.samples == 0 { f64::INFINITY } else { high.exp() * scale },
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

/// The exact interval of a Poisson mean.
fn garwood(samples: u64, confidence: f64) -> (f64, f64) {
    let tail = f64::midpoint(1.0, -confidence);
    let low = if samples == 0 { 0.0 } else { root(|log| poisson_from(samples, log.exp()) - tail).exp() };
    (low, root(|log| tail - poisson_up_to(samples, log.exp())).exp())
}

fn logistic(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

/// Where an increasing function passes 0, between -60 and 60.
fn root(function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-60.0, 60.0);
    // Halving 120 so often reaches the distance of neighbouring numbers.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// P(X >= k) of X binomial with n and p.
fn from(k: u64, n: u64, p: f64) -> f64 {
    match k {
        0 => 1.0,
        _ if n <= EXACT => beta_reg(k as f64, (n - k + 1) as f64, p),
        _ => binomial_tail(k as f64 - 0.5, n as f64, p, 1.0),
    }
}

/// P(X <= k) of X binomial with n and p.
fn up_to(k: u64, n: u64, p: f64) -> f64 {
    match k {
        _ if k >= n => 1.0,
        _ if n <= EXACT => beta_reg((n - k) as f64, (k + 1) as f64, 1.0 - p),
        _ => binomial_tail(k as f64 + 0.5, n as f64, p, -1.0),
    }
}

fn poisson_from(k: u64, mean: f64) -> f64 {
    match k {
        0 => 1.0,
        _ if k <= EXACT => gamma_lr(k as f64, mean),
        _ => poisson_tail(k as f64 - 0.5, mean, 1.0),
    }
}

fn poisson_up_to(k: u64, mean: f64) -> f64 {
    if k <= EXACT { 1.0 - gamma_lr(k as f64 + 1.0, mean) } else { poisson_tail(k as f64 + 0.5, mean, -1.0) }
}

/// The tail of a binomial above (`side` 1) or below (-1) `x`, half a sample from the next count.
fn binomial_tail(x: f64, n: f64, p: f64, side: f64) -> f64 {
    let (rest, q) = (n - x, 1.0 - p);
    if p <= 0.0 || q <= 0.0 {
        return f64::from((side > 0.0) == (p > 0.0));
    }
    let deviance = 2.0 * (deviance_part(x, n * p) + deviance_part(rest.max(0.0), n * q));
    let tilt = (x / (n * p)).ln() - (rest / (n * q)).ln();
    tail(tilt, deviance, x * rest / n, side * (1.0 - 2.0 * x / n) / (x * rest / n).sqrt(), side)
}

/// As [`binomial_tail`], of a Poisson distribution.
fn poisson_tail(x: f64, mean: f64, side: f64) -> f64 {
    if mean <= 0.0 {
        return f64::from(side < 0.0);
    }
    tail((x / mean).ln(), 2.0 * deviance_part(x, mean), x, side / x.sqrt(), side)
}

/// Lugannani and Rice's tail: from the saddlepoint, the deviance, the variance and the skewness at it.
fn tail(tilt: f64, deviance: f64, variance: f64, skewness: f64, side: f64) -> f64 {
    let normal = Normal::standard();
    let w = side * tilt.signum() * deviance.max(0.0).sqrt();
    let u = side * 2.0 * (tilt / 2.0).sinh() * variance.sqrt();
    // Both quotients grow without limit where their difference does not.
    let correction = if w.abs() < 1e-3 { -skewness / 6.0 } else { 1.0 / u - 1.0 / w };
    (normal.sf(w) + normal.pdf(w) * correction).clamp(0.0, 1.0)
}

/// `x ln(x / m) + m - x`, without cancellation near m (Loader, *Fast and Accurate Computation of Binomial Probabilities*, 2000).
fn deviance_part(x: f64, m: f64) -> f64 {
    if x == 0.0 {
        return m;
    }
    let ratio = (x - m) / (x + m);
    if ratio.abs() > 0.1 {
        return x * (x / m).ln() + m - x;
    }
    // ln(x / m) = 2 atanh(ratio).
    let square = ratio * ratio;
    let mut sum = (x - m) * ratio;
    let mut term = 2.0 * x * ratio;
    for odd in (3..).step_by(2) {
        term *= square;
        let next = sum + term / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: u64, after: u64) -> RateChange {
        let of = |samples| Count { samples, exposure: 1.0 };
        rate_change(of(before), of(after), 0.95).unwrap()
    }

    #[test]
    fn small_differences_of_hundreds_of_samples_cannot_tell_and_large_ones_can() {
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

    /// Of 5 samples all before: each tail is 1 / 32 or 1.
    #[test]
    fn p_is_twice_the_smaller_tail() {
        assert!((change(5, 0).p - 2.0 / 32.0).abs() < 1e-14);
        assert_eq!(change(3, 3).p, 1.0);
        assert_eq!(change(0, 0).p, 1.0);
    }
}

//! Tails of the binomial and Poisson distributions, for counts of any size.
//!
//! Up to a variance of [`SUMMED`] a tail is summed from the count outward. Each probability is computed as by Loader
//! (*Fast and Accurate Computation of Binomial Probabilities*, 2000), which is accurate at any size. Incomplete beta
//! functions of libraries lose digits from some ten thousand on, and all of them at 10^12. Above that variance a tail
//! is the saddlepoint approximation of Lugannani and Rice with Daniels' second continuity correction (*Tail Probability
//! Approximations*, International Statistical Review 55, 1987), accurate to seven digits there.

use std::f64::consts::TAU;

use statrs::distribution::{Continuous, ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

/// Variance up to which tails are summed, in at most some thousand terms.
pub const SUMMED: f64 = 10_000.0;

/// The number of successes of independent trials.
#[derive(Debug, Clone, Copy)]
pub struct Binomial {
    trials: u64,
    success: f64,
    failure: f64,
}

impl Binomial {
    /// `trials` with a probability of success p, given as log odds `ln(p / (1 - p))`. Log odds keep the digits of p
    /// near 1.
    pub fn with_log_odds(trials: u64, odds: f64) -> Self {
        Self { trials, success: 1.0 / (1.0 + (-odds).exp()), failure: 1.0 / (1.0 + odds.exp()) }
    }

    /// P(X <= `count`).
    pub fn at_most(self, count: u64) -> f64 {
        let failures = Self { success: self.failure, failure: self.success, ..self };
        self.trials.checked_sub(count).map_or(1.0, |rest| failures.at_least(rest))
    }

    /// P(X >= `count`).
    pub fn at_least(self, count: u64) -> f64 {
        if count == 0 || count > self.trials {
            return if count == 0 { 1.0 } else { 0.0 };
        }
        if self.success == 0.0 || self.failure == 0.0 {
            return self.success;
        }
        let trials = self.trials as f64;
        let mean = trials * self.success;
        if mean * self.failure > SUMMED {
            return self.saddlepoint(count as f64 - 0.5);
        }
        let odds = self.success / self.failure;
        if count as f64 >= mean {
            let above = (count..self.trials).map(|count| count as f64);
            return sum(self.probability(count), above.map(|count| (trials - count) / (count + 1.0) * odds));
        }
        let below = (1..count).rev().map(|count| count as f64);
        1.0 - sum(self.probability(count - 1), below.map(|count| count / (trials - count + 1.0) / odds))
    }

    fn probability(self, count: u64) -> f64 {
        let (trials, successes, failures) = (self.trials as f64, count as f64, (self.trials - count) as f64);
        if count == 0 || count == self.trials {
            let (other, power) = if count == 0 { (self.success, failures) } else { (self.failure, successes) };
            return ((-other).ln_1p() * power).exp();
        }
        let correction = stirling_error(trials) - stirling_error(successes) - stirling_error(failures);
        let deviance = deviance(successes, trials * self.success) + deviance(failures, trials * self.failure);
        (correction - deviance).exp() * (trials / (TAU * successes * failures)).sqrt()
    }

    /// P(X > `x`), where `x` is half-way between two counts.
    fn saddlepoint(self, x: f64) -> f64 {
        let (trials, rest) = (self.trials as f64, self.trials as f64 - x);
        let (successes, failures) = (trials * self.success, trials * self.failure);
        let variance = x * rest / trials;
        tail(Saddlepoint {
            tilt: (x / successes).ln() - (rest / failures).ln(),
            deviance: deviance(x, successes) + deviance(rest, failures),
            variance,
            skewness: (1.0 - 2.0 * x / trials) / variance.sqrt(),
        })
    }
}

/// The number of independent events.
#[derive(Debug, Clone, Copy)]
pub struct Poisson {
    /// Expected number, 0 or more.
    pub mean: f64,
}

impl Poisson {
    /// P(X >= `count`).
    pub fn at_least(self, count: u64) -> f64 {
        match count {
            0 => 1.0,
            _ if self.mean > SUMMED => tail(self.saddlepoint(count as f64 - 0.5)),
            _ if count as f64 >= self.mean => self.upward(count),
            _ => 1.0 - self.downward(count - 1),
        }
    }

    /// P(X <= `count`).
    pub fn at_most(self, count: u64) -> f64 {
        match count {
            _ if self.mean > SUMMED => 1.0 - tail(self.saddlepoint(count as f64 + 0.5)),
            _ if (count as f64) < self.mean => self.downward(count),
            _ => 1.0 - self.upward(count + 1),
        }
    }

    fn upward(self, count: u64) -> f64 {
        sum(self.probability(count), (count + 1..).map(|count| self.mean / count as f64))
    }

    fn downward(self, count: u64) -> f64 {
        sum(self.probability(count), (1..=count).rev().map(|count| count as f64 / self.mean))
    }

    fn probability(self, count: u64) -> f64 {
        let count = count as f64;
        if count == 0.0 {
            return (-self.mean).exp();
        }
        (-stirling_error(count) - deviance(count, self.mean)).exp() / (TAU * count).sqrt()
    }

    fn saddlepoint(self, x: f64) -> Saddlepoint {
        Saddlepoint {
            tilt: (x / self.mean).ln(),
            deviance: deviance(x, self.mean),
            variance: x,
            skewness: 1.0 / x.sqrt(),
        }
    }
}

/// Sums a first term and its successors, each given as a ratio to its predecessor, until they are negligible.
fn sum(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut term, mut sum) = (first, first);
    for ratio in ratios {
        term *= ratio;
        if sum + term == sum {
            break;
        }
        sum += term;
    }
    sum
}

/// The distribution tilted so that its mean is at the count.
struct Saddlepoint {
    tilt: f64,
    deviance: f64,
    variance: f64,
    skewness: f64,
}

/// The upper tail of Lugannani and Rice.
fn tail(at: Saddlepoint) -> f64 {
    let normal = Normal::standard();
    let w = at.tilt.signum() * (2.0 * at.deviance).sqrt();
    let u = 2.0 * (at.tilt / 2.0).sinh() * at.variance.sqrt();
    // Near the mean both quotients diverge; this is the limit of their difference.
    let correction = if w.abs() < 1e-3 { -at.skewness / 6.0 } else { 1.0 / u - 1.0 / w };
    (normal.sf(w) + normal.pdf(w) * correction).clamp(0.0, 1.0)
}

/// `ln n! - ln(sqrt(2 pi n) (n / e)^n)` for n > 0.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return ln_gamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / n
}

/// `x ln(x / mean) + mean - x` for positive numbers, without cancellation near the mean.
fn deviance(x: f64, mean: f64) -> f64 {
    let ratio = (x - mean) / (x + mean);
    if ratio.abs() > 0.1 {
        return x * (x / mean).ln() + mean - x;
    }
    // ln(x / mean) = 2 (ratio + ratio^3 / 3 + ratio^5 / 5 + ...).
    let square = ratio * ratio;
    let (mut sum, mut term) = ((x - mean) * ratio, 2.0 * x * ratio);
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

    fn close(found: f64, expected: f64, relative: f64) -> bool {
        (found - expected).abs() <= relative * expected.abs()
    }

    /// Four coin tosses.
    #[test]
    fn small_tails_equal_those_counted_by_hand() {
        let coin = Binomial::with_log_odds(4, 0.0);
        for (count, at_least) in [(0, 16.0), (1, 15.0), (2, 11.0), (3, 5.0), (4, 1.0), (5, 0.0)] {
            assert!((coin.at_least(count) - at_least / 16.0).abs() < 1e-14, "{count}: {}", coin.at_least(count));
            assert!((coin.at_most(4 - count.min(4)) - at_least.max(1.0) / 16.0).abs() < 1e-14);
        }
        let two = Poisson { mean: 2.0 };
        assert!((two.at_most(0) - (-2.0_f64).exp()).abs() < 1e-15);
        assert!((two.at_least(2) - (1.0 - 3.0 * (-2.0_f64).exp())).abs() < 1e-14);
    }

    /// Computed with 60 digits (mpmath's regularised incomplete beta and gamma functions).
    #[test]
    fn tails_equal_those_of_mpmath() {
        for (count, trials, odds, expected) in [
            (3, 20, 0.0, 0.999_798_774_719_238_3),
            (120, 149, 0.0, 1.182_061_675_192_292_8e-14),
            (9_000, 9_003, 7.5, 0.268_239_260_710_879_82),
            (1_100, 2_100, 0.0, 0.015_360_353_932_121_148),
            (50, 1_000_000, -10.0, 0.266_172_030_766_844_53),
        ] {
            let found = Binomial::with_log_odds(trials, odds).at_least(count);
            assert!(close(found, expected, 1e-11), "{count} of {trials}: {found}");
        }
        for (count, mean, expected) in [
            (3, 0.5, 0.014_387_677_966_970_687),
            (150, 100.0, 1.884_210_466_038_67e-6),
            (9_900, 10_050.0, 0.933_626_278_885_994_6),
        ] {
            let found = Poisson { mean }.at_least(count);
            assert!(close(found, expected, 1e-8), "{count} at {mean}: {found}");
        }
    }

    /// 2 · 10^12 coin tosses: the normal distribution is exact to twelve digits.
    #[test]
    fn enormous_counts_keep_their_digits() {
        let found = Binomial::with_log_odds(2_000_003_000_000, 0.0).at_least(1_000_003_000_000);
        let expected = Normal::standard().sf((1.5e6 - 0.5) / (2_000_003_000_000_f64 / 4.0).sqrt());
        assert!(close(found, expected, 1e-9), "{found} {expected}");
    }

    #[test]
    fn sum_and_saddlepoint_agree_at_the_limit() {
        // Variance 10,000 · (1 ± 0.0001): once summed, once by the saddlepoint.
        for count in [19_500, 19_900, 20_000, 20_010, 20_300] {
            let of = |trials| Binomial::with_log_odds(trials, 0.0);
            let (summed, approximated) = (of(40_000), of(40_000));
            let near = approximated.saddlepoint(count as f64 - 0.5);
            assert!(close(near, summed.at_least(count), 1e-6), "{count}: {near} {}", summed.at_least(count));
            let poisson = Poisson { mean: 9_999.0 };
            let near = tail(poisson.saddlepoint(count as f64 / 2.0 - 0.5));
            assert!(close(near, poisson.at_least(count / 2), 1e-6), "{count}: {near} {}", poisson.at_least(count / 2));
        }
    }
}

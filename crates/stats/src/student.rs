//! Student's t distribution; the normal one is its limit.
//!
//! Tails and quantiles come from `statrs`. It loses digits at millions of degrees of freedom, where the normal
//! distribution agrees to seven digits.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which the normal distribution is used.
const NORMAL_FROM: f64 = 1e6;

/// The t with P(T <= t) = `probability` at `degrees` of freedom (positive, may be infinite).
///
/// # Panics
/// If `probability` is not within 0 to 1, or `degrees` not positive.
pub fn quantile(probability: f64, degrees: f64) -> f64 {
    assert!((0.0..=1.0).contains(&probability), "a probability is within 0 to 1, not {probability}");
    if probability == 0.5 {
        return 0.0;
    }
    match of(degrees) {
        Some(student) => student.inverse_cdf(probability),
        None => Normal::standard().inverse_cdf(probability),
    }
}

/// P(|T| >= |`t`|) at `degrees` of freedom (positive, may be infinite).
///
/// # Panics
/// If `degrees` is not positive.
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    let tail = match of(degrees) {
        Some(student) if t.is_finite() => student.sf(t.abs()),
        _ => Normal::standard().sf(t.abs()),
    };
    (2.0 * tail).min(1.0)
}

/// P(T <= `t`) at `degrees` of freedom (positive, may be infinite).
///
/// # Panics
/// If `degrees` is not positive.
pub fn cumulative(t: f64, degrees: f64) -> f64 {
    match of(degrees) {
        Some(student) if t.is_finite() => student.cdf(t),
        _ => Normal::standard().cdf(t),
    }
}

fn of(degrees: f64) -> Option<StudentsT> {
    assert!(degrees > 0.0, "degrees of freedom are positive, not {degrees}");
    (degrees < NORMAL_FROM).then(|| StudentsT::new(0.0, 1.0, degrees).expect("scale 1 and positive degrees"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed tables of the distribution, and scipy 1.17's `stats.t`.
    #[test]
    fn quantiles_equal_printed_tables() {
        for (probability, degrees, t) in [
            (0.975, 1.0, 12.706_204_736_174_7),
            (0.975, 6.0, 2.446_911_851_144_97),
            (0.025, 6.0, -2.446_911_851_144_97),
            (0.975, f64::INFINITY, 1.959_963_984_540_054),
        ] {
            let found = quantile(probability, degrees);
            assert!((found - t).abs() < 1e-9, "{probability} at {degrees}: {found}");
        }
        assert_eq!(quantile(0.5, 3.0), 0.0);
    }

    /// At one degree of freedom (Cauchy) P(|T| >= 1) is a half.
    #[test]
    fn tails_are_two_sided() {
        assert!((two_sided(-1.0, 1.0) - 0.5).abs() < 1e-12);
        assert!((two_sided(1.959_963_984_540_054, f64::INFINITY) - 0.05).abs() < 1e-10);
        assert!((cumulative(-1.0, 1.0) - 0.25).abs() < 1e-12 && cumulative(f64::INFINITY, 3.0) == 1.0);
        assert_eq!((two_sided(0.0, 4.0), two_sided(f64::INFINITY, 4.0)), (1.0, 0.0));
    }
}

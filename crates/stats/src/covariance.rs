//! [`Covariance`]: the difference of two sides in y, at equal x where x explains y (analysis of covariance).
//!
//! `y_i = m_s + b x_i + e_i` for run i of side s, with one slope for both sides (Fisher, *Statistical Methods for Research
//! Workers*, 1932). [`crate::control_variate`] says when x is used and what for; [`crate::permutation`] fits every split again.

/// Largest error of prediction with x, as a share of that without.
pub const MOST_ERROR: f64 = 0.7;

/// Largest slope. A cost is hardly more sensitive to the machine's speed than a loop that does nothing else.
pub const LARGEST_SLOPE: f64 = 3.0;

/// Which way y goes with x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It rises if x rises.
    Same,
    /// It falls.
    Opposite,
}

/// y and candidates for x, of the runs before and then of those after, as deviations from the means of all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Covariance {
    runs_before: usize,
    y: Vec<f64>,
    yy: f64,
    candidates: Vec<Candidate>,
    direction: Direction,
}

#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    /// Its place among those given.
    index: usize,
    x: Vec<f64>,
    xx: f64,
    xy: f64,
}

/// The fit of one x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Which x.
    pub candidate: usize,
    /// The slope.
    pub slope: f64,
    /// Error of prediction, as a share of that without x: generalised cross-validation.
    pub error_share: f64,
    /// Variance of the difference at equal x, as a multiple of that of sides whose x is known to be equal and whose slope is
    /// known.
    pub variance_factor: f64,
    /// Sum of squared residuals.
    rest: f64,
    /// x of the side after minus that before.
    apart: f64,
}

impl Covariance {
    /// `None` if there are fewer than two runs on a side, a value of y is not finite, or all are equal. An x that is not finite,
    /// or that does not vary, is left out.
    ///
    /// # Panics
    /// If an x has another length than y.
    pub fn new(runs_before: usize, y: &[f64], x: &[Vec<f64>], direction: Direction) -> Option<Self> {
        let (y, yy) = centred(y)?;
        if runs_before.min(y.len() - runs_before) < 2 || yy < 1e-18 {
            return None;
        }
        let candidate = |(index, x): (usize, &Vec<f64>)| {
            assert_eq!(x.len(), y.len(), "each run has one x");
            let (x, xx) = centred(x).filter(|(_, xx)| *xx > 1e-12)?;
            let xy = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            Some(Candidate { index, x, xx, xy })
        };
        let candidates = x.iter().enumerate().filter_map(candidate).collect();
        Some(Self { runs_before, yy, candidates, direction, y })
    }

    /// The numbers of runs before and after.
    pub fn runs(&self) -> (usize, usize) {
        (self.runs_before, self.y.len() - self.runs_before)
    }

    /// The x that is used; `None` if none explains enough.
    pub fn slope(&self) -> Option<Slope> {
        self.split(0..self.runs_before as u32).1
    }

    /// The squared t of a split into sides, with its x: `d^2` over its variance.
    pub(crate) fn squared_t(&self, before: impl Iterator<Item = u32> + Clone) -> f64 {
        let ((apart, within), slope) = self.split(before);
        let (count, between) = (self.y.len() as f64, self.between());
        match slope {
            None => apart * apart * between * (count - 2.0) / within.max(1e-15 * self.yy),
            Some(Slope { slope, rest, apart: x, variance_factor, .. }) => {
                (apart - slope * x).powi(2) * between * (count - 2.0) / (rest.max(1e-15 * self.yy) * variance_factor)
            }
        }
    }

    /// The difference of the sides in y with the sum of squares within them, and the x that is used.
    fn split(&self, before: impl Iterator<Item = u32> + Clone) -> ((f64, f64), Option<Slope>) {
        let (count, between) = (self.y.len() as f64, self.between());
        // Deviations from the means of all runs: the sums of both sides cancel.
        let apart = |values: &[f64]| -before.clone().map(|run| values[run as usize]).sum::<f64>() / between;
        let y = apart(&self.y);
        let within = self.yy - between * y * y;
        let slopes = self.candidates.iter().filter_map(|candidate| {
            let x = apart(&candidate.x);
            let xx = candidate.xx - between * x * x;
            let slope = (candidate.xy - between * x * y) / xx;
            let expected = if self.direction == Direction::Same { slope } else { -slope };
            if xx <= 1e-9 * candidate.xx || expected <= 0.0 || expected > LARGEST_SLOPE {
                return None;
            }
            let rest = (within - slope * slope * xx).max(0.0);
            let degrees = (count - 2.0) / (count - 3.0);
            let error_share = rest / within * degrees * degrees;
            let variance_factor = degrees * (1.0 + x * x / xx * between);
            Some(Slope { candidate: candidate.index, slope, error_share, variance_factor, rest, apart: x })
        });
        let best = slopes.min_by(|a, b| a.error_share.total_cmp(&b.error_share));
        ((y, within), best.filter(|best| best.error_share <= MOST_ERROR))
    }

    /// `n_1 n_2 / n`: over it, a sum of squares becomes the variance of a difference of means.
    fn between(&self) -> f64 {
        let (before, after) = self.runs();
        before as f64 * after as f64 / self.y.len() as f64
    }
}

/// Deviations from the mean, and the sum of their squares. `None` if a value is not finite.
fn centred(values: &[f64]) -> Option<(Vec<f64>, f64)> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let deviations: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
    squares.is_finite().then_some((deviations, squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y = x + 1 (after), with residuals of 0.1 that are unrelated to x. By hand: within the sides, sum u^2 = 4, sum u v = 4.
    #[test]
    fn the_difference_is_that_at_equal_x() {
        let x = vec![vec![0.0, 1.0, 0.0, 1.0, 3.0, 4.0, 3.0, 4.0]];
        let e = [0.1, 0.1, -0.1, -0.1, 0.1, 0.1, -0.1, -0.1];
        let y: Vec<f64> = (0..8).map(|run| x[0][run] + e[run] + if run < 4 { 0.0 } else { 1.0 }).collect();
        let data = Covariance::new(4, &y, &x, Direction::Same).unwrap();
        let slope = data.slope().unwrap();
        assert_eq!((slope.candidate, data.runs()), (0, (4, 4)));
        assert!((slope.slope - 1.0).abs() < 1e-9, "{slope:?}");
        // 0.08 of 2.08 remains; (8 - 2) / (8 - 3) = 1.2.
        assert!((slope.error_share - 0.08 / 2.08 * 1.44).abs() < 1e-9, "{slope:?}");
        // 1 + 3^2 / (2 (1/4 + 1/4)) = 10.
        assert!((slope.variance_factor - 1.2 * 10.0).abs() < 1e-9, "{slope:?}");
        // d = 1; its variance is 0.08 / 5 * (1/2 + 9/2).
        let t = data.squared_t(0..4);
        assert!((t - 1.0 / (0.08 / 5.0 * 5.0)).abs() < 1e-6, "{t}");
    }

    #[test]
    fn an_x_of_the_wrong_direction_or_without_relation_is_not_used() {
        let y = [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0];
        let x = [4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0].to_vec();
        let slope = |x: Vec<f64>, direction| Covariance::new(4, &y, &[x], direction).unwrap().slope();
        assert_eq!(slope(x.clone(), Direction::Same), None);
        assert_eq!(slope(x, Direction::Opposite).map(|found| found.slope), Some(-1.0));
        assert_eq!(slope(vec![0.5, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 0.5], Direction::Same), None, "unrelated");
        assert_eq!(slope(vec![7.0; 8], Direction::Same), None, "constant");
        assert_eq!(slope(vec![f64::NAN; 8], Direction::Same), None, "unknown");
    }

    #[test]
    fn numbers_that_never_vary_have_no_covariance() {
        assert_eq!(Covariance::new(2, &[1.0; 4], &[], Direction::Same), None);
        assert_eq!(Covariance::new(2, &[f64::NEG_INFINITY, 1.0, 2.0, 3.0], &[], Direction::Same), None);
        assert_eq!(Covariance::new(1, &[0.0, 1.0, 2.0], &[], Direction::Same), None);
    }
}

//! Adjusted p-values (q) for many comparisons.
//!
//! Of 1,000 functions that did not change, 50 have p <= 0.05. [`benjamini_hochberg`] limits the expected share of false
//! ones among the comparisons that are *called* changed: the false discovery rate (Benjamini and Hochberg, *Controlling
//! the False Discovery Rate*, JRSS B 57, 1995). With m p-values in ascending order, `q(i) = min over j >= i of (m p(j)
//! / j)`, at most 1. Calling everything with `q <= 0.05` changed keeps the rate at 5 %, for independent tests and for
//! tests with positive regression dependency (Benjamini and Yekutieli, 2001). Costs that share the noise of a run have
//! such a dependency.
//!
//! # Families
//! m is the number of tests in a *family*: the rows that a reader scans as one list. Comparisons have one family each
//! for whole-run metrics, attributed cost, self cost and inclusive cost of functions, threads, categories, and waits.
//! Untested rows (too few samples, p refused) are not counted.

/// The q-values of `p`, in the same order: see the [module](self). Equal p have equal q.
///
/// NaN counts as p = 1: no evidence.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let of = |index: usize| if p[index].is_nan() { 1.0 } else { p[index].clamp(0.0, 1.0) };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|a, b| of(*a).total_cmp(&of(*b)));
    let mut q = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, index) in order.iter().enumerate().rev() {
        // Among equal p the last one is visited first. It has the smallest quotient, which the others take over.
        least = least.min(of(*index) * p.len() as f64 / (rank + 1) as f64);
        q[*index] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(q: &[f64]) -> Vec<f64> {
        q.iter().map(|q| (q * 1e6).round() / 1e6).collect()
    }

    /// The example of Benjamini and Hochberg (1995), section 3.2: of 15 p values the first four are discoveries.
    #[test]
    fn the_example_of_the_paper_has_four_discoveries() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.000,
        ];
        let q = benjamini_hochberg(&p);
        assert_eq!(q.iter().filter(|q| **q <= 0.05).count(), 4);
        // 0.0001 · 15 / 1, 0.0004 · 15 / 2, 0.0019 · 15 / 3, 0.0095 · 15 / 4; 0.0278 and 0.0298 take that of 0.0298 · 15 / 7.
        assert_eq!(rounded(&q[..4]), [0.0015, 0.003, 0.0095, 0.035_625]);
        assert_eq!(q[5], q[6]);
    }

    #[test]
    fn the_order_is_that_of_the_input_and_ties_are_equal() {
        assert_eq!(rounded(&benjamini_hochberg(&[0.5, 0.01, 0.5, 0.01])), [0.5, 0.02, 0.5, 0.02]);
        assert_eq!(benjamini_hochberg(&[0.04]), [0.04]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn nan_is_no_evidence() {
        assert_eq!(benjamini_hochberg(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }

    #[test]
    fn a_larger_p_never_has_a_smaller_q() {
        let mut random = crate::SplitMix64::new(5);
        let p: Vec<f64> = (0..500).map(|_| random.below(200) as f64 / 200.0).collect();
        let q = benjamini_hochberg(&p);
        let mut pairs: Vec<(f64, f64)> = p.into_iter().zip(q).collect();
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        assert!(pairs.windows(2).all(|two| two[0].1 <= two[1].1));
        assert!(pairs.iter().all(|(p, q)| p <= q));
    }
}

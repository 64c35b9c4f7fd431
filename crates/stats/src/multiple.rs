//! Many comparisons at once: adjusted p values (q values).
//!
//! Of 1,000 functions that did not change 50 have p <= 0.05. [`benjamini_hochberg`] bounds the expected part of false
//! ones among those that are *called* changed (the false discovery rate; Benjamini and Hochberg, *Controlling the False
//! Discovery Rate*, JRSS B 57, 1995): with p values ordered from the smallest, `q(i) = min over j >= i of (m p(j) / j)`, at
//! most 1. Calling changed what has `q <= 0.05` keeps that part at 5 %, for independent tests and for those with positive
//! regression dependency (Benjamini and Yekutieli, 2001), which costs that share the noise of a run have.
//!
//! # Families
//! m is the number of tests of one *family*: the rows that a reader reads as one list and picks the striking ones from.
//! Comparisons here have one family for each of: whole-run metrics; functions by attributed cost; by self cost; by
//! inclusive cost; threads; categories; waits. Rows that were not tested (too few samples, p refused) are not in it.

/// The q values of `p` values, in their order: see the [module](self). Equal p have equal q.
///
/// A p that is not a number is taken for 1: it is no evidence.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let of = |index: usize| if p[index].is_nan() { 1.0 } else { p[index].clamp(0.0, 1.0) };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|a, b| of(*a).total_cmp(&of(*b)));
    let mut q = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, index) in order.iter().enumerate().rev() {
        // Of equal p the last one comes first and has the smallest quotient, so that the others take over its q.
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
    fn what_is_not_a_number_is_no_evidence() {
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

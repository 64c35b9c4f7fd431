//! [`Options`]: how sides are compared.

use stepscope_stats::hierarchical;

use super::renames::Rename;

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Resamples of the bootstrap.
    pub replicates: usize,
    /// Confidence level of intervals, e.g. 0.95.
    pub confidence: f64,
    /// Largest adjusted p (q) of a significant difference.
    pub alpha: f64,
    /// Largest relative difference that counts as no change, e.g. 0.05.
    pub tolerance: f64,
    /// Rows with fewer samples on both sides together are not tested.
    pub least_count: u64,
    /// Whether costs are adjusted for the machine's speed where it was measured.
    pub adjust_for_speed: bool,
    /// The user's renames of functions.
    pub renames: Vec<Rename>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            replicates: hierarchical::REPLICATES,
            confidence: 0.95,
            alpha: 0.05,
            tolerance: 0.05,
            least_count: 30,
            adjust_for_speed: true,
            renames: Vec::new(),
        }
    }
}

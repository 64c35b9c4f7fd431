//! Statistics as types that own their operations; no knowledge of profiles.
//!
//! ```
//! use stepscope_stats::Distribution;
//!
//! let delays: Distribution = [3, 1, 2, 40].into_iter().collect();
//! assert_eq!(delays.percentile(50.0), Some(2));
//! assert_eq!(delays.max(), Some(40));
//! assert_eq!(delays.mean(), Some(11.5));
//! ```
//!
//! The means of four runs before and four after:
//!
//! ```
//! use stepscope_stats::{HierarchicalBootstrap, Permutations, Run, power::Goal};
//!
//! let runs = |means: [f64; 4]| means.map(|mean| Run { mean, residuals: Vec::new() });
//! let (before, after) = ([10.2, 9.9, 10.1, 9.8], [8.1, 7.9, 8.0, 8.2]);
//! let change = HierarchicalBootstrap::new(&[0; 4], &[0; 4], 2_000, 1).change(&runs(before), &runs(after), 0.95).unwrap();
//! let ratio = change.ratio.unwrap();
//! assert!((ratio.value - 0.805).abs() < 1e-9 && ratio.high < 0.85);
//!
//! let test = Permutations::new(4, 4, 1).test(&before, &after).unwrap();
//! assert!(test.at_floor && test.p == 2.0 / 70.0);
//! assert_eq!(Goal::default().runs_needed(&change), Some(4));
//! ```
//!
//! | module | knows |
//! |---|---|
//! | [`distribution`] | values of one quantity: percentiles, mean |
//! | [`hierarchical`] | the change between two sets of runs, by resampling runs, then blocks of steps |
//! | [`control_variate`] | the same change with less scatter, from a quantity that was measured beside |
//! | [`strata`] | runs on several machines: their differences are taken out |
//! | [`covariance`] | the difference of two sides at equal values of a covariate |
//! | [`permutation`] | p-value of the difference between two sets of runs |
//! | [`counts`] | the change between two sample counts, one run each |
//! | [`multiple`] | adjusted p (q) of many comparisons |
//! | [`power`] | the smallest detectable change, and the runs needed |
//! | [`change_points`] | lasting changes in a series of runs |
//! | [`bootstrap`] | the difference of two sets of steps, by resampling blocks of consecutive steps |
//! | [`bca`] | confidence intervals from resampled values, corrected for bias and skew |
//! | [`median`](mod@median) | median and its standard error |
//! | [`growth`] | the law by which a cost grows with the size |
//! | [`levels`] | whether values lie on two levels |
//! | [`scaling`] | how a time falls with the number of CPUs |
//! | [`trend`] | slope of a series, robust against outliers |
//! | [`interval`] | an estimate with a confidence interval |
//! | [`student`] | Student's t distribution; the normal one is its limit |
//! | [`discrete`] | tails of the binomial and Poisson distributions, for counts of any size |
//! | [`random`] | a seeded generator |

pub mod bca;
pub mod bootstrap;
pub mod change_points;
pub mod control_variate;
pub mod counts;
pub mod covariance;
pub mod discrete;
pub mod distribution;
pub mod growth;
pub mod hierarchical;
pub mod interval;
pub mod levels;
pub mod median;
pub mod multiple;
pub mod permutation;
pub mod power;
pub mod random;
pub mod scaling;
pub mod strata;
pub mod student;
pub mod trend;

pub use bootstrap::BlockBootstrap;
pub use change_points::ChangeSearch;
pub use distribution::Distribution;
pub use growth::{Growth, Law};
pub use hierarchical::{Change, HierarchicalBootstrap, Run};
pub use interval::Estimate;
pub use levels::{Levels, two_levels, two_levels_of_runs};
pub use median::{median, standard_error_of_median};
pub use multiple::benjamini_hochberg;
pub use permutation::Permutations;
pub use random::SplitMix64;

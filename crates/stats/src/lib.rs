//! Statistics as types that own their operations. Knows no profile.
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
//! | module | knows |
//! |---|---|
//! | [`distribution`] | the values of one quantity: percentiles, mean |
//! | [`bootstrap`] | how well a difference of two sets of steps is known, resampling blocks of consecutive ones |
//! | [`trend`] | the slope of a series, whatever a few outliers do |
//! | [`interval`] | a number with a confidence interval |
//! | [`normal`] | the standard normal distribution |
//! | [`random`] | a seeded generator |

pub mod bootstrap;
pub mod distribution;
pub mod interval;
pub mod normal;
pub mod random;
pub mod trend;

pub use bootstrap::BlockBootstrap;
pub use distribution::Distribution;
pub use interval::Estimate;
pub use random::SplitMix64;

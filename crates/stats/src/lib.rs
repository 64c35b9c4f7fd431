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

pub mod distribution;

pub use distribution::Distribution;

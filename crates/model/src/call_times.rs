//! Times of system calls, by bucket.
//!
//! Buckets are exact below 64 ns. Above, each power of two has 32 buckets of the same width, so that a bucket is at most 1/32 (3.1 %) as wide
//! as the times in it are long, and its middle is within 1.6 % of each of them. Times above 137 s are in buckets of 2.1 s.

use std::ops::Range;
use std::sync::Arc;

use crate::ids::{StackId, ThreadId};

/// Buckets of each power of two: 2 to the power of this.
pub const CALL_TIME_BITS: u32 = 5;

/// The most by which times are shifted to find their bucket.
const MOST_SHIFT: u64 = 31;

/// System calls of one thread from one place to one file, whose times are in one bucket. They are of the whole recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTimes {
    /// Their thread.
    pub thread: ThreadId,
    /// The name of the call.
    pub call: Arc<str>,
    /// Where the last call of this sum was made.
    pub stack: Option<StackId>,
    /// Their file, as in [`SystemCalls`](crate::SystemCalls).
    pub file: Option<Arc<str>>,
    /// The shortest time of the bucket.
    pub from_ns: u64,
    /// The end of the bucket: all times are below it.
    pub until_ns: u64,
    /// Number of calls.
    pub count: u64,
}

/// The times of a bucket. A time of `t` ns is in bucket `32 s + (t >> s)`, with the least `s` such that `t >> s` is below 64, at most 31.
pub fn call_time_bucket(bucket: u64) -> Range<u64> {
    let of_power = 1 << CALL_TIME_BITS;
    let shift = (bucket / of_power).saturating_sub(1).min(MOST_SHIFT);
    let from = (bucket - shift * of_power).saturating_mul(1 << shift);
    from..from.saturating_add(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket of a time, by the definition.
    fn bucket_of(time_ns: u64) -> u64 {
        let shift = (0..=MOST_SHIFT).find(|shift| time_ns >> shift < 64).unwrap_or(MOST_SHIFT);
        (shift << CALL_TIME_BITS) + (time_ns >> shift)
    }

    #[test]
    fn a_time_is_in_its_bucket_and_a_bucket_is_narrow() {
        for power in 0..64 {
            for near in [0, 1, 7, 1 << power >> 1] {
                let time_ns = (1_u64 << power).saturating_add(near);
                let bucket = call_time_bucket(bucket_of(time_ns));
                assert!(bucket.contains(&time_ns) || bucket.end == u64::MAX, "{time_ns}: {bucket:?}");
                let width = bucket.end - bucket.start;
                assert!(width == 1 || width <= time_ns / 32, "{time_ns}: {bucket:?}");
            }
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let ends = (0..2_000).map(|bucket| call_time_bucket(bucket).end);
        let starts = (1..2_001).map(|bucket| call_time_bucket(bucket).start);
        assert!(ends.eq(starts));
        assert_eq!(call_time_bucket(u64::MAX).end, u64::MAX);
    }
}

//! [`Latencies`]: statistics of many durations in little memory.

/// Buckets per octave: a bucket is at most 1.6 % wide, so its middle is at most 0.8 % off.
const PER_OCTAVE: u64 = 64;

/// Number, exact mean and standard deviation of durations, and percentiles from a histogram of logarithmic buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    mean_ns: f64,
    squares: f64,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    /// Adds a duration.
    pub fn add(&mut self, duration_ns: u64) {
        let bucket = bucket(duration_ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.min_ns = if self.count == 0 { duration_ns } else { self.min_ns.min(duration_ns) };
        self.max_ns = self.max_ns.max(duration_ns);
        self.count += 1;
        self.sum_ns += u128::from(duration_ns);
        // Welford's method, because sums of squares lose precision.
        let from_last = duration_ns as f64 - self.mean_ns;
        self.mean_ns += from_last / self.count as f64;
        self.squares += from_last * (duration_ns as f64 - self.mean_ns);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean, us. This and the following are `None` if there is no duration.
    pub fn mean_us(&self) -> Option<f64> {
        self.some(self.sum_ns as f64 / self.count as f64)
    }

    /// Standard deviation, us. Divides by the number of durations, like the framework.
    pub fn sd_us(&self) -> Option<f64> {
        self.some((self.squares / self.count as f64).sqrt())
    }

    /// The shortest, us.
    pub fn min_us(&self) -> Option<f64> {
        self.some(self.min_ns as f64)
    }

    /// The longest, us.
    pub fn max_us(&self) -> Option<f64> {
        self.some(self.max_ns as f64)
    }

    /// A percentile, us, within 0.8 %.
    pub fn percentile_us(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut counted = 0;
        let found = self.buckets.iter().position(|count| {
            counted += count;
            counted >= rank
        })?;
        self.some(middle_ns(found).clamp(self.min_ns as f64, self.max_ns as f64))
    }

    /// Adds the durations of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        let (here, there) = (self.count as f64, other.count as f64);
        let apart = other.mean_ns - self.mean_ns;
        self.squares += other.squares + apart * apart * here * there / (here + there);
        self.mean_ns += apart * there / (here + there);
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    fn some(&self, ns: f64) -> Option<f64> {
        (self.count > 0).then_some(ns / 1e3)
    }
}

/// Durations below 128 ns have a bucket each. Above, each octave has 64 buckets.
fn bucket(duration_ns: u64) -> usize {
    if duration_ns < 2 * PER_OCTAVE {
        return duration_ns as usize;
    }
    let octave = u64::from(duration_ns.ilog2() - PER_OCTAVE.ilog2());
    (octave * PER_OCTAVE + (duration_ns >> octave)) as usize
}

/// The middle of a bucket, ns.
fn middle_ns(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * PER_OCTAVE {
        return bucket as f64;
    }
    let octave = bucket / PER_OCTAVE - 1;
    let first = (bucket - octave * PER_OCTAVE) << octave;
    first as f64 + ((1_u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut last = 0;
        for duration in (0..100_000).chain([1 << 30, 3 << 40, u64::MAX]) {
            let found = bucket(duration);
            assert!(found == last || found == last + 1 || duration >= 1 << 30, "{duration}: {found} after {last}");
            assert!((middle_ns(found) - duration as f64).abs() <= duration as f64 / 128.0, "{duration}");
            last = found;
        }
        assert!(bucket(u64::MAX) < 64 * 60);
    }

    #[test]
    fn mean_deviation_and_extremes_are_exact_and_percentiles_close() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.mean_us(), latencies.sd_us(), latencies.percentile_us(0.5)), (None, None, None));
        // 2, 4, 4, 4, 5, 5, 7, 9 have the mean 5 and the standard deviation 2.
        for us in [2, 4, 4, 4, 5, 5, 7, 9] {
            latencies.add(us * 1000);
        }
        assert_eq!(latencies.count(), 8);
        assert_eq!((latencies.mean_us(), latencies.sd_us()), (Some(5.0), Some(2.0)));
        assert_eq!((latencies.min_us(), latencies.max_us()), (Some(2.0), Some(9.0)));
        let near = |share: f64, expected: f64| (latencies.percentile_us(share).unwrap() / expected - 1.0).abs() < 0.008;
        assert!(near(0.5, 4.0) && near(0.51, 5.0) && near(0.99, 9.0));
        assert_eq!(latencies.percentile_us(1.0), Some(9.0));
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let (mut whole, mut one, mut other) = (Latencies::default(), Latencies::default(), Latencies::default());
        for number in 0..1000_u64 {
            let duration = number * number % 7919;
            whole.add(duration);
            if number % 3 == 0 { one.add(duration) } else { other.add(duration) }
        }
        let mut both = Latencies::default();
        both.merge(&one);
        both.merge(&other);
        both.merge(&Latencies::default());
        assert_eq!((both.count(), both.sum_ns, &both.buckets), (1000, whole.sum_ns, &whole.buckets));
        assert_eq!((both.min_us(), both.max_us()), (whole.min_us(), whole.max_us()));
        assert!((both.sd_us().unwrap() / whole.sd_us().unwrap() - 1.0).abs() < 1e-12);
    }
}

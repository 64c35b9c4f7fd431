//! [`ClockMap`]: times of one clock as times of another.

/// A map between two clocks: linear between its knots, and beyond them as in the first and the last piece. Times keep their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockMap {
    /// Times of the first clock and what the second one is ahead then, in ns and by time. At least one.
    knots: Vec<(i128, i128)>,
}

impl ClockMap {
    /// A clock that is always ahead by this.
    pub fn shift(offset_ns: i128) -> Self {
        Self { knots: vec![(0, offset_ns)] }
    }

    /// The map through these knots: times, and offsets then. Of several at one time, the first counts.
    ///
    /// # Panics
    /// If there are none.
    pub(super) fn through(mut knots: Vec<(i128, i128)>) -> Self {
        assert!(!knots.is_empty(), "a map has knots");
        knots.sort_by_key(|knot| knot.0);
        knots.dedup_by_key(|knot| knot.0);
        Self { knots }
    }

    /// By how much the second clock is ahead at this time of the first.
    pub fn offset_at(&self, time_ns: i128) -> i128 {
        let [(x0, y0), (x1, y1)] = match self.knots.as_slice() {
            &[(_, offset)] => return offset,
            knots => {
                let after = knots.partition_point(|&(at, _)| at <= time_ns).clamp(1, knots.len() - 1);
                [knots[after - 1], knots[after]]
            }
        };
        // Rounded down, so that times keep their order.
        y0 + (y1 - y0).saturating_mul(time_ns - x0).div_euclid(x1 - x0)
    }

    /// The time of the second clock at a time of the first.
    pub fn to(&self, time_ns: i128) -> i128 {
        time_ns + self.offset_at(time_ns)
    }

    /// The map from the second clock to the first.
    pub fn inverse(&self) -> Self {
        Self::through(self.knots.iter().map(|&(at, offset)| (at + offset, -offset)).collect())
    }

    /// The map from the first clock of this to the second of `next`.
    pub fn then(&self, next: &Self) -> Self {
        let inverse = self.inverse();
        let times = self.knots.iter().map(|knot| knot.0).chain(next.knots.iter().map(|knot| inverse.to(knot.0)));
        Self::through(times.map(|at| (at, self.offset_at(at) + next.offset_at(self.to(at)))).collect())
    }

    /// How much faster the second clock is over this time of the first, in parts per million.
    pub fn drift_ppm(&self, start_ns: i128, end_ns: i128) -> f64 {
        if end_ns <= start_ns {
            return 0.0;
        }
        (self.offset_at(end_ns) - self.offset_at(start_ns)) as f64 / (end_ns - start_ns) as f64 * 1e6
    }
}

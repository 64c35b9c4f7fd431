//! Converts ticks of the CPU's counter to the recording's clock.

use crate::clock;

/// Pairs of readings of both clocks, taken during the recording; time is linear between two pairs.
///
/// A pair is never replaced, so a tick always converts to the same time: a scope and its inner scopes are converted in
/// different rounds, and rounding must not reorder them. Ticks before the first pair (a scope that was open when the
/// recording started) continue the line of the first two.
#[derive(Debug)]
pub struct Ticks {
    pairs: Vec<Pair>,
    /// Half the duration of the slowest reading of a pair.
    error_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    ticks: u64,
    ns: u64,
}

/// The CPU's counter, as marks read it; the recording's clock if there is none.
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register that every CPU of this architecture has.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a register that the kernel lets everybody read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        return ticks;
    }
    #[allow(unreachable_code)]
    clock::now_ns()
}

impl Ticks {
    /// Starts with a pair of the current time.
    pub fn new() -> Self {
        let mut ticks = Self { pairs: Vec::new(), error_ns: 0 };
        ticks.take_pair();
        ticks
    }

    /// Takes a pair: the best of three, so that a preemption between the two readings does not count.
    pub fn take_pair(&mut self) {
        let read = |_| {
            let before = clock::now_ns();
            let ticks = counter();
            let after = clock::now_ns();
            (after.saturating_sub(before), Pair { ticks, ns: before + after.saturating_sub(before) / 2 })
        };
        if let Some((took_ns, pair)) = (0..3).map(read).min_by_key(|(took_ns, _)| *took_ns) {
            self.add(pair, took_ns.div_ceil(2));
        }
    }

    fn add(&mut self, pair: Pair, error_ns: u64) {
        // Two pairs may be too close to order them; the second is then useless.
        if self.pairs.last().is_none_or(|last| pair.ticks > last.ticks && pair.ns > last.ns) {
            self.pairs.push(pair);
            self.error_ns = self.error_ns.max(error_ns);
        }
    }

    /// The largest error of a time.
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// The time of a tick.
    pub fn ns(&self, ticks: u64) -> u64 {
        let at = self.pairs.partition_point(|pair| pair.ticks <= ticks);
        let (from, to) = match self.pairs.as_slice() {
            [] => return ticks,
            [only] => return only.ns,
            pairs => {
                let second = at.clamp(1, pairs.len() - 1);
                (pairs[second - 1], pairs[second])
            }
        };
        let slope = |distance: u64| {
            let scaled = u128::from(distance) * u128::from(to.ns - from.ns) / u128::from(to.ticks - from.ticks);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        match ticks.checked_sub(from.ticks) {
            Some(after) => from.ns.saturating_add(slope(after)),
            None => from.ns.saturating_sub(slope(from.ticks - ticks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(pairs: &[(u64, u64)]) -> Ticks {
        let mut ticks = Ticks { pairs: Vec::new(), error_ns: 0 };
        pairs.iter().for_each(|&(at, ns)| ticks.add(Pair { ticks: at, ns }, 20));
        ticks
    }

    #[test]
    fn time_is_linear_between_two_pairs_and_continues_outside() {
        let ticks = drawn(&[(1_000, 50_000), (3_000, 51_000), (5_000, 51_500)]);
        let times = [(1_000, 50_000), (2_000, 50_500), (3_000, 51_000), (4_000, 51_250), (5_000, 51_500)];
        times.iter().for_each(|&(at, ns)| assert_eq!(ticks.ns(at), ns));
        assert_eq!(ticks.ns(0), 49_500);
        assert_eq!(ticks.ns(7_000), 52_000);
        assert_eq!(ticks.error_ns(), 20);
    }

    #[test]
    fn a_pair_that_does_not_advance_both_clocks_is_dropped() {
        let ticks = drawn(&[(1_000, 50_000), (900, 50_500), (2_000, 50_000), (2_000, 50_500)]);
        assert_eq!(ticks.pairs, [Pair { ticks: 1_000, ns: 50_000 }, Pair { ticks: 2_000, ns: 50_500 }]);
    }

    #[test]
    fn now_is_now() {
        let mut ticks = Ticks::new();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let (before, at, after) = (clock::now_ns(), counter(), clock::now_ns());
        ticks.take_pair();
        let error_ns = ticks.error_ns() + 1;
        assert!((before - error_ns..=after + error_ns).contains(&ticks.ns(at)));
    }

    proptest! {
        /// A recorder takes pairs of a counter of any rate, each wrong by a little; whatever is converted after
        /// however many pairs stays where it was, in order, and close to the truth.
        #[test]
        fn a_tick_keeps_its_time_and_its_order(
            rate in 1.0e-2..10.0f64,
            steps in prop::collection::vec((1_000_000u64..50_000_000, 0u64..40), 2..20),
            asked in prop::collection::vec(0.0..1.0f64, 1..50),
        ) {
            let tick_of = |ns: u64| (ns as f64 * rate) as u64;
            let mut ticks = drawn(&[(tick_of(1_000_000_000), 1_000_000_020)]);
            let (mut now, mut earlier) = (1_000_000_000, Vec::<(u64, u64)>::new());
            for (step, error) in steps {
                let from = now;
                now += step;
                ticks.add(Pair { ticks: tick_of(now), ns: now + error }, 20);
                for share in &asked {
                    let truth = from + (step as f64 * share) as u64;
                    let given = ticks.ns(tick_of(truth));
                    prop_assert!(given.abs_diff(truth) <= 40 + (1.0 / rate) as u64 + 2, "{given} for {truth}");
                    earlier.push((tick_of(truth), given));
                }
            }
            earlier.sort_unstable();
            prop_assert!(earlier.is_sorted_by_key(|&(_, ns)| ns));
            for (at, given) in earlier {
                prop_assert_eq!(ticks.ns(at), given);
            }
        }
    }
}

//! Times of packets on the trace's clock, which is the boot clock.

use rustc_hash::FxHashMap;

use super::proto::ClockSnapshot;

const MONOTONIC: u32 = 3;
pub const BOOT: u32 = 6;

/// Clocks from here on belong to a sequence of packets.
const OF_SEQUENCES: u32 = 64;

/// What is added to the times of each clock.
#[derive(Default)]
pub struct Clocks {
    shared: FxHashMap<u32, i64>,
    of_sequences: FxHashMap<(u32, u32), Clock>,
}

#[derive(Debug, Clone, Copy)]
struct Clock {
    offset_ns: i64,
    unit_ns: u64,
    is_incremental: bool,
    /// The latest time of an incremental clock.
    now_ns: u64,
}

impl Clocks {
    /// Takes the same moment on several clocks.
    pub fn snapshot(&mut self, sequence: u32, snapshot: &ClockSnapshot) {
        let on = |id: u32| snapshot.clocks.iter().find(|clock| clock.id == id).map(|clock| clock.timestamp);
        let primary = snapshot.primary.filter(|&id| id != BOOT).and_then(|id| Some((id, on(id)?)));
        let reference = on(BOOT).map(|ns| (BOOT, ns)).or(primary).or_else(|| Some((MONOTONIC, on(MONOTONIC)?)));
        let Some((reference, reference_ns)) = reference else { return };
        let boot_ns = shifted(reference_ns, self.shared.get(&reference).copied().unwrap_or(0));
        for clock in &snapshot.clocks {
            let unit_ns = clock.unit_ns.unwrap_or(1).max(1);
            let now_ns = clock.timestamp.saturating_mul(unit_ns);
            let offset_ns = boot_ns.wrapping_sub(now_ns) as i64;
            if clock.id >= OF_SEQUENCES {
                let clock_now = Clock { offset_ns, unit_ns, is_incremental: clock.is_incremental, now_ns };
                self.of_sequences.insert((sequence, clock.id), clock_now);
            } else if clock.id != BOOT {
                self.shared.insert(clock.id, offset_ns);
            }
        }
    }

    /// A packet's time. A clock that no snapshot has is taken for the boot clock.
    pub fn ns(&mut self, sequence: u32, clock: u32, timestamp: u64) -> u64 {
        if clock < OF_SEQUENCES {
            return shifted(timestamp, self.shared.get(&clock).copied().unwrap_or(0));
        }
        let Some(clock) = self.of_sequences.get_mut(&(sequence, clock)) else { return timestamp };
        let ns = timestamp.saturating_mul(clock.unit_ns);
        clock.now_ns = if clock.is_incremental { clock.now_ns.saturating_add(ns) } else { ns };
        shifted(clock.now_ns, clock.offset_ns)
    }
}

fn shifted(ns: u64, offset_ns: i64) -> u64 {
    ns.saturating_add_signed(offset_ns)
}

#[cfg(test)]
mod tests {
    use super::super::proto::Clock;
    use super::*;

    fn clock(id: u32, timestamp: u64) -> Clock {
        Clock { id, timestamp, ..Clock::default() }
    }

    #[test]
    fn times_of_all_clocks_become_those_of_the_boot_clock() {
        let mut clocks = Clocks::default();
        let snapshot = |clocks| ClockSnapshot { clocks, primary: None };
        clocks.snapshot(1, &snapshot(vec![clock(BOOT, 1000), clock(MONOTONIC, 400)]));
        assert_eq!((clocks.ns(1, MONOTONIC, 410), clocks.ns(1, BOOT, 7), clocks.ns(1, 5, 7)), (1010, 7, 7));
        // A clock of one sequence, in us since the packet before.
        let own = Clock { is_incremental: true, unit_ns: Some(1000), ..clock(64, 2) };
        clocks.snapshot(1, &snapshot(vec![own, clock(MONOTONIC, 500)]));
        assert_eq!((clocks.ns(1, 64, 3), clocks.ns(1, 64, 4), clocks.ns(2, 64, 5)), (1100 + 3000, 1100 + 7000, 5));
    }
}

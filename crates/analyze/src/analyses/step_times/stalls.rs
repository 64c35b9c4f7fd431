//! Which steps are stalls.

/// A stall takes more than this many times the median of its neighbours.
pub const STALL: f64 = 2.0;

/// Neighbours on either side.
pub const NEIGHBOURS: usize = 15;

/// Which steps are [stalls](super#stalls), by their times.
pub fn stalls(times: &[u64]) -> Vec<bool> {
    (0..times.len()).map(|position| times_the_neighbours(times, position).is_some_and(|ratio| ratio > STALL)).collect()
}

/// A step's time divided by the median of its neighbours; `None` if there are none or their median is 0.
pub(super) fn times_the_neighbours(times: &[u64], position: usize) -> Option<f64> {
    let (before, after) = (position.saturating_sub(NEIGHBOURS), (position + NEIGHBOURS + 1).min(times.len()));
    let mut around = [0_u64; 2 * NEIGHBOURS];
    let neighbours = times[before..position].iter().chain(&times[position + 1..after]);
    let count = around.iter_mut().zip(neighbours).map(|(slot, time)| *slot = *time).count();
    let around = &mut around[..count];
    let middle = count.checked_sub(1)? / 2;
    let (_, median, _) = around.select_nth_unstable(middle);
    (*median > 0).then(|| times[position] as f64 / *median as f64)
}

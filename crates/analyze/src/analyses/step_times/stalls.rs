//! Which steps are stalls.

/// A stall takes more than this many times the median of its neighbours.
pub const STALL: f64 = 2.0;

/// Neighbours on either side.
pub const NEIGHBOURS: usize = 15;

/// Which steps are [stalls](super#stalls), by their times.
pub fn stalls(times: &[u64]) -> Vec<bool> {
    const BLOCK: usize = 2 * NEIGHBOURS;
    let is_stall = |position| times_the_neighbours(times, position).is_some_and(|ratio| ratio > STALL);
    let mut found = Vec::with_capacity(times.len());
    for (number, block) in times.chunks(BLOCK).enumerate() {
        let first = number * BLOCK;
        let around = first.saturating_sub(NEIGHBOURS)..(first + block.len() + NEIGHBOURS).min(times.len());
        // No median is below the least of its values, so few steps need theirs.
        let least = times[around].iter().min().map_or(0.0, |least| *least as f64);
        let stalls =
            block.iter().enumerate().map(|(place, time)| *time as f64 > STALL * least && is_stall(first + place));
        found.extend(stalls);
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_stalls_that_each_step_has() {
        for (seed, count) in [(1_u64, 0), (2, 1), (3, 29), (4, 31), (5, 1_000)] {
            let noise = |place: u64| (place.wrapping_add(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
            let times: Vec<u64> =
                (0..count).map(|place| noise(place) + if place % 40 == 7 { 90 } else { 20 }).collect();
            let each = (0..times.len()).map(|place| times_the_neighbours(&times, place).is_some_and(|one| one > STALL));
            assert_eq!(stalls(&times), each.collect::<Vec<bool>>(), "{count} steps");
        }
        assert_eq!(stalls(&[0; 40]), [false; 40]);
    }
}

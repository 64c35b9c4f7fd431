//! [`Slowness`]: how slow the machine was during a recording, and in each of its blocks.

use stepscope_model::{MACHINE_SPEED, ThreadId};
use stepscope_stats::control_variate::Reading;

use crate::query::machine_speed;
use crate::query::select::Selection;

/// The logarithm of the time of each loop of [`MACHINE_SPEED`] in a recording and in its blocks; `None` if it was not measured.
pub type Slowness = [Option<Reading>; MACHINE_SPEED.len()];

/// Reduces the readings of a recording. `block_at` says in which of `blocks` blocks a moment of a thread lies.
pub(super) fn of(
    selection: &Selection<'_>,
    blocks: usize,
    block_at: impl Fn(ThreadId, u64) -> Option<usize>,
) -> Slowness {
    let mut sums = vec![vec![(0.0, 0.0); blocks]; MACHINE_SPEED.len()];
    for reading in machine_speed::readings(selection) {
        let Some(thread) = reading.counter.thread else { continue };
        if let Some(block) = block_at(thread, reading.counter.time_ns) {
            let (sum, count) = &mut sums[reading.kind][block];
            *sum += reading.slowness;
            *count += 1.0;
        }
    }
    std::array::from_fn(|kind| reading(&sums[kind]))
}

/// Means of the blocks, from sums and counts. A block without a reading has the mean of the whole.
fn reading(blocks: &[(f64, f64)]) -> Option<Reading> {
    let (sum, count) = blocks.iter().fold((0.0, 0.0), |(sum, count), block| (sum + block.0, count + block.1));
    let whole = (count > 0.0).then(|| sum / count)?;
    let mean = |&(sum, count): &(f64, f64)| if count > 0.0 { sum / count } else { whole };
    Some(Reading { whole, blocks: blocks.iter().map(mean).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_a_reading_has_the_mean_of_the_whole() {
        assert_eq!(reading(&[(0.0, 0.0); 2]), None);
        let found = reading(&[(-4.0, 2.0), (0.0, 0.0), (-5.0, 1.0)]).unwrap();
        assert_eq!(found, Reading { whole: -3.0, blocks: vec![-2.0, -3.0, -5.0] });
    }
}

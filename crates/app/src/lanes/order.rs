//! The table `lane_order`: all lanes, with what they can be sorted by.

use stepscope_analyze::Selection;
use stepscope_analyze::query::loops::Loops;
use stepscope_analyze::step_paths::Paths;

use super::state::Shares;
use super::{BLOCK, Lane, Lanes};
use crate::parquet_table::ParquetTable;

impl Lanes {
    /// The table `lane_order`: `lane`, `block`, `running`, `runnable`, `blocked`, `unknown`, `path` (on the critical path), `depth` (of nested
    /// scopes), `switches`. Of a CPU, `running` is the time that recorded threads had it.
    pub(super) fn order_table(&self, selection: &Selection<'_>) -> ParquetTable {
        let on_path = on_path(selection);
        let row = |lane: &Lane| match lane {
            Lane::Thread(thread) => {
                let shares = self.spent(selection, *thread, &self.recording);
                (shares, on_path[thread.index()], self.times.places(*thread).len())
            }
            Lane::Cpu(cpu) => {
                let mut shares = Shares::default();
                shares.0[0] = self.cpus[cpu].length();
                (shares, 0, self.cpus[cpu].len())
            }
        };
        let rows: Vec<(Shares, u64, usize)> = self.order.iter().map(row).collect();
        let sum = |of: &dyn Fn(&Shares) -> u64| rows.iter().map(|row| of(&row.0) as f64).collect();
        ParquetTable::new()
            .integers("lane", self.order.iter().map(|lane| lane.number()).collect())
            .integers("block", (0..self.order.len()).map(|place| (place / BLOCK) as i32).collect())
            .numbers("running", sum(&Shares::running))
            .numbers("runnable", sum(&Shares::runnable))
            .numbers("blocked", sum(&Shares::blocked))
            .numbers("unknown", sum(&Shares::unknown))
            .numbers("path", rows.iter().map(|row| row.1 as f64).collect())
            .integers("depth", self.order.iter().map(|lane| self.scope_depth(*lane) as i32).collect())
            .integers("switches", rows.iter().map(|row| i32::try_from(row.2).unwrap_or(i32::MAX)).collect())
    }
}

/// Time of each thread on the critical paths of steps.
fn on_path(selection: &Selection<'_>) -> Vec<u64> {
    let mut sums = vec![0_u64; selection.capture().threads.len()];
    let (Some(paths), Some(loops)) = (Paths::of(selection), Loops::of(selection)) else { return sums };
    for part in (0..loops.main().count()).flat_map(|step| paths.of_step(step)) {
        let sum = &mut sums[part.thread.index()];
        *sum = sum.saturating_add(part.range.end - part.range.start);
    }
    sums
}

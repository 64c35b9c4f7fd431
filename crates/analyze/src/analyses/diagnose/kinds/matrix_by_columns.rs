//! A matrix is passed column by column, but stands in memory row by row.
//!
//! Evidence: a hot [loop](super::super::code) of machine code moves on by 512 bytes or more for each element, while the loop around it moves on by one element. Each
//! element is in another cache line. Half of the loop's cost is the gain, and the interval ends at all of it: how long the CPU waits for memory is not
//! sampled. Look-alikes: a transposition, which has to pass one of two matrices so; a matrix that the caches hold.

use stepscope_model::{LoopShape, StackId};

use crate::analyses::diagnose::code::HotLoop;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};

/// Least share of CPU time of a function's loops.
const LEAST: f64 = 8.0;

/// The part of a loop's cost that a change gains, at least.
const GAIN: f32 = 0.5;

pub(super) struct MatrixByColumns;

impl Kind for MatrixByColumns {
    fn name(&self) -> &'static str {
        "matrix-by-columns"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::InItsCode
    }

    fn advice(&self) -> &'static str {
        "Swap the two loops, so that the inner one goes along what stands side by side in memory; if both orders are needed, work in blocks."
    }

    fn confirm(&self) -> &'static str {
        "Count cache misses with `record --with cache`: a share of misses that is above the share of CPU time confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        // The order is decided where the two loops are; their bodies may be inlined.
        let decided = |one: &HotLoop| {
            let function = seen.common_owner(|stack| one.inside[stack.index()]).unwrap_or(one.function);
            HotLoop { function, ..one.clone() }
        };
        let columns = seen.hot_loops.iter().filter(|one| one.shape == LoopShape::Columns).map(decided);
        let loops = HotLoop::of_shape(&columns.collect::<Vec<_>>(), LoopShape::Columns).into_iter().filter(|one| {
            let at = |stack: StackId| one.inside[stack.index()];
            seen.share(one.amount) >= LEAST && seen.recurs(at)
        });
        let found = loops.map(|one| {
            let title = format!("`{}` passes a matrix column by column: {}", seen.name(one.function), one.place());
            let without: Vec<f32> = one.inside.iter().map(|inside| if *inside { GAIN } else { 0.0 }).collect();
            let text = format!(
                "The loop takes {} of the CPU time{}. It moves on by a row for each element, and the loop around it by one element.",
                percent(seen.share(one.amount)),
                seen.of_steps()
            );
            let why = "Half of it is taken as the gain; where memory is slow, the gain is nearly all of it.";
            Found::of(seen, one.function, title, without)
                .sure(Confidence::Fair)
                .because(text, explain(seen, one.function))
                .up_to(1.0 / f64::from(GAIN), why, explain(seen, one.function))
        });
        found.collect()
    }
}

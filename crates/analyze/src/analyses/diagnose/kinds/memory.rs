//! Memory grows faster than the size.
//!
//! Evidence: the law of the largest resident memory over a sweep; the interval of its exponent lies above 1. A fixed part, such
//! as libraries, is no part of the exponent. Look-alikes: a table of all pairs that is needed.

use stepscope_model::NoteValue;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, power};
use crate::analyses::diagnose::seen::Seen;

/// The interval of the exponent lies above this.
const LEAST_EXPONENT: f64 = 1.2;

pub(super) struct Memory;

impl Kind for Memory {
    fn name(&self) -> &'static str {
        "superlinear-memory"
    }

    fn advice(&self) -> &'static str {
        "Find what is kept per pair of elements or per step, and keep it per element."
    }

    fn confirm(&self) -> &'static str {
        "Record the heap (`record --with heap`) at two sizes and compare who holds the peak (`show --view heap --sort peak_bytes`)."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let Some(laws) = seen.laws.as_ref().filter(|_| !seen.is_loading()) else { return Vec::new() };
        let Some(growth) = laws.memory.as_ref().filter(|one| one.exponent.low > LEAST_EXPONENT) else {
            return Vec::new();
        };
        let (axis, (_, largest)) = (&laws.axis, laws.extent());
        let at = |n: f64| {
            growth.predict(n).map_or_else(String::new, |one| NoteValue::of(one.value as u64, "bytes").to_string())
        };
        let title = format!("Resident memory grows as {axis}^{:.1}", growth.exponent.value);
        vec![Found::of_program(title, None).sure(Confidence::Fair).because(
            format!(
                "It grows as {}: {} at {axis} = {largest}, {} at twice that.",
                power(axis, growth.exponent),
                at(largest),
                at(2.0 * largest)
            ),
            "growth --whole-runs",
        )]
    }
}

//! Readings of the machine's speed, which is measured beside some recordings.

use stepscope_model::{Counter, MACHINE_SPEED};

use crate::query::select::Selection;

/// A reading within the selected time.
pub(crate) struct SpeedReading<'a> {
    pub counter: &'a Counter,
    /// Which loop of [`MACHINE_SPEED`].
    pub kind: usize,
    /// Logarithm of the time that the loop took, up to a constant.
    pub slowness: f64,
}

/// The readings of a recording, in their order; none if its speed was not measured.
pub(crate) fn readings<'a>(selection: &Selection<'a>) -> impl Iterator<Item = SpeedReading<'a>> {
    let (capture, window) = (selection.capture(), selection.window());
    capture.counters.iter().filter_map(move |counter| {
        let kind = MACHINE_SPEED.iter().position(|name| **name == *counter.name)?;
        let is_inside = window.as_ref().is_none_or(|window| window.contains(&counter.time_ns));
        (is_inside && counter.value > 0).then(|| SpeedReading { counter, kind, slowness: -(counter.value as f64).ln() })
    })
}

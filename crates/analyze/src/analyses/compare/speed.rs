//! The machine's speed during each run, as a [control variate](stepscope_stats::control_variate) for costs.

use stepscope_model::MACHINE_SPEED;
use stepscope_stats::control_variate::{Covariate, Reading};
use stepscope_stats::covariance::Direction;

use super::side::Side;

/// The loops that were measured in every run of both sides.
pub(super) fn covariates(before: &Side, after: &Side) -> Vec<Covariate> {
    let of = |side: &Side, kind: usize| -> Option<Vec<Reading>> {
        side.runs.iter().map(|run| run.slowness[kind].clone()).collect()
    };
    let covariate = |kind| Some(Covariate { before: of(before, kind)?, after: of(after, kind)? });
    (0..MACHINE_SPEED.len()).filter_map(covariate).collect()
}

/// Which way a metric goes on a slower machine; `None` if it does not depend on its speed.
pub(super) fn direction(metric: &str, unit: &str) -> Option<Direction> {
    match unit.split('/').next() {
        Some("ns") => Some(Direction::Same),
        _ if metric == "rtf" => Some(Direction::Opposite),
        _ => None,
    }
}

//! One worker has most of the work, and the others wait for it at a barrier.
//!
//! Evidence: [barriers](crate::analyses::critical_path) on the critical path where mostly the same thread arrives last. The
//! gain is how much earlier it would arrive if all workers had the mean of their work. Look-alikes: workers that
//! have nothing to do by design.

use crate::analyses::critical_path::imbalances;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::weights::{Amount, StackWeights};
use crate::query::work::Work;
use stepscope_model::StackId;

/// Least gain in percent of the step.
const LEAST: f64 = 5.0;

/// Least share of the barriers at which the thread arrives last.
const USUALLY: f64 = 0.6;

pub(super) struct Barrier;

impl Kind for Barrier {
    fn name(&self) -> &'static str {
        "barrier-imbalance"
    }

    fn advice(&self) -> &'static str {
        "Deal the work out evenly, or let idle workers take the next piece."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view critical-path`: the last thread and the slack of the others at each barrier."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        // Without wake-ups there is no path, and who ended a wait is unknown.
        let (Some(loops), Some(_)) = (&seen.loops, &seen.path) else { return Vec::new() };
        let mean = seen.whole_ns();
        let uneven = imbalances(seen.selection, loops.main()).into_iter().filter(|one| one.last_share >= USUALLY);
        let worth =
            uneven.filter(|one| 100.0 * one.gain_ns / mean >= LEAST).max_by(|a, b| a.gain_ns.total_cmp(&b.gain_ns));
        let Some(worst) = worth else { return Vec::new() };
        let thread = &seen.capture().threads[worst.last.index()].name;
        // What the last thread mostly does.
        let own = StackWeights::of_samples(&seen.selection.of_thread(worst.last));
        let waits = |stack: StackId| matches!(seen.work[stack.index()], Work::Lock | Work::Switch | Work::Poll);
        let waiting: Amount = own.occupied().filter(|(stack, _)| waits(*stack)).map(|(_, amount)| amount).sum();
        // A worker that hardly does more than wait and wake others is late because the machine is.
        if waiting.weight * 2 > own.total().weight {
            return Vec::new();
        }
        let attributed = own.attributed_by_function(seen.functions());
        let ids = seen.functions().all().map(|(id, _)| id);
        let does = ids.max_by_key(|id| attributed[id.index()].weight).filter(|id| attributed[id.index()].weight > 0);
        let title = format!("Thread `{thread}` has most of the work; the other workers wait for it");
        let gain = Gain::of_waiting(worst.gain_ns, mean);
        vec![Found::of_program(title, Some(gain)).about(does).sure(Confidence::Strong).because(
            format!(
                "It arrives last at {} of the barriers; {:.1} workers wait {} a step for it.",
                percent(100.0 * worst.last_share),
                worst.waiters,
                ns(worst.waiting_ns)
            ),
            "show --view critical-path",
        )]
    }
}

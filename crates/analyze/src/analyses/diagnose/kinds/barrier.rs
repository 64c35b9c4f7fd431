//! One worker has most of the work, and the others wait for it at a barrier.
//!
//! Evidence: [barriers](crate::analyses::critical_path) on the critical path where mostly the same thread arrives last. The
//! gain is how much earlier it would arrive if all workers had the mean of their work. If no other thread does some of this
//! work, it may not be divisible: only large gains count then. Look-alikes: workers with a task of their own each, one of
//! them long.

use crate::analyses::critical_path::imbalances;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::weights::{Amount, StackWeights};
use crate::query::work::Work;
use stepscope_model::{StackId, ThreadId};

/// Least gain in percent of the step.
const LEAST: f64 = 5.0;

/// The same if no other thread does this work.
const LEAST_UNSHARED: f64 = 20.0;

/// Least part of the last thread's work that other threads have together, if it is work of all.
const LEAST_OF_OTHERS: f64 = 0.02;

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
        let is_shared = does.is_some_and(|does| others_do_it(seen, worst.last, does, attributed[does.index()]));
        if !is_shared && 100.0 * worst.gain_ns / mean < LEAST_UNSHARED {
            return Vec::new();
        }
        let title = format!("Thread `{thread}` has most of the work; the other workers wait for it");
        let gain = Gain::of_waiting(worst.gain_ns, mean);
        vec![
            Found::of_program(title, Some(gain))
                .about(does)
                .sure(if is_shared { Confidence::Strong } else { Confidence::Weak })
                .because(
                    format!(
                        "It arrives last at {} of the barriers; {:.1} workers wait {} a step for it.",
                        percent(100.0 * worst.last_share),
                        worst.waiters,
                        ns(worst.waiting_ns)
                    ),
                    "show --view critical-path",
                ),
        ]
    }
}

/// Whether other threads than the last run the function, too.
fn others_do_it(seen: &Seen<'_, '_>, last: ThreadId, function: FunctionId, own: Amount) -> bool {
    let does = seen.is_at(function, |_| true);
    let others = seen.selection.samples().filter(|sample| sample.thread != last && sample.stack.is_some_and(&does));
    others.map(|sample| sample.weight as f64).sum::<f64>() >= LEAST_OF_OTHERS * own.weight as f64
}

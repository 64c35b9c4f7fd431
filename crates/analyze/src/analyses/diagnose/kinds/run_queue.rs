//! Steps wait for a CPU that other threads of the program have.
//!
//! Evidence: waits for a CPU on the critical path, and what the threads that held those CPUs ran. Look-alikes: workers that the
//! step waits for, which have to run in any case; and other programs on the machine. Neither is counted.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;

/// Least share of the step.
const LEAST: f64 = 5.0;

pub(super) struct RunQueue;

impl Kind for RunQueue {
    fn name(&self) -> &'static str {
        "cpu-held-by-others"
    }

    fn advice(&self) -> &'static str {
        "Use fewer threads than CPUs, lower the priority of background work, or pin the loop's thread."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view sched` for the delays of each thread and who had its CPU."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (Some((_, mean)), Some(path)) = (seen.steps(), &seen.path) else { return Vec::new() };
        let [running, _, held] = path.gain_bounds().map(|weights| weights.attributed_by_function(seen.functions()));
        // Work that steps wait for anyway has to run; it may as well have the CPU.
        let background = |id: &FunctionId| running[id.index()].weight * 5 < held[id.index()].weight;
        let ids = seen.functions().all().map(|(id, _)| id).filter(background);
        let mut held: Vec<_> = ids.map(|id| (id, held[id.index()].weight)).collect();
        held.sort_by_key(|(id, weight)| (std::cmp::Reverse(*weight), id.index()));
        let Some((most, _)) = held.first().copied() else { return Vec::new() };
        let all = held.iter().map(|(_, weight)| *weight).sum::<u128>() as f64 / path.steps as f64;
        if 100.0 * all / mean < LEAST {
            return Vec::new();
        }
        let title = format!("Steps wait for a CPU that other threads have, most of all in `{}`", seen.name(most));
        let text = format!("The critical path waits {} a step for CPUs that the program's own threads have.", ns(all));
        let found = Found::of_program(title, Some(Gain::of_waiting(all, mean))).about(Some(most));
        vec![found.sure(Confidence::Strong).because(text, "show --view sched")]
    }
}

//! One thread does all the work, and the other CPUs are idle.
//!
//! Evidence: the loop's thread runs nearly all the time of its steps, and other threads hardly do. It has no gain of its own:
//! that depends on what can run beside it. Look-alikes: a program that is bound to one CPU on purpose.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use stepscope_model::ThreadId;

/// Least share of the steps' time in which the thread runs.
const BUSY: f64 = 0.9;

/// Most CPU time of all other threads, as a part of its own.
const OTHERS: f64 = 0.1;

pub(super) struct OneThread;

impl Kind for OneThread {
    fn name(&self) -> &'static str {
        "single-threaded"
    }

    fn advice(&self) -> &'static str {
        "Run independent parts of the work in parallel, the largest first."
    }

    fn confirm(&self) -> &'static str {
        "Run it on one CPU (`taskset -c 0`): it takes as long."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let (span, threads) = (seen.span(), seen.loop_threads());
        let cores = seen.capture().info.machine.as_ref().map_or(1, |machine| machine.cores);
        let cpu = seen.selection.cpu_times();
        let busiest = || (0..cpu.len()).max_by_key(|&index| cpu[index]).map(ThreadId::from_index);
        let thread = match threads[..] {
            [thread] => thread,
            [] if !seen.is_loading() => match busiest() {
                Some(thread) => thread,
                None => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        if cores < 2 {
            return Vec::new();
        }
        let length = (span.end - span.start).max(1);
        let Some(spent) = seen.off_cpu.spent(thread, span) else { return Vec::new() };
        let own = cpu[thread.index()].unwrap_or(0);
        let others: u64 = cpu.iter().flatten().sum::<u64>().saturating_sub(own);
        // Time in which other programs have the CPU does not count.
        let running = spent.running as f64 / length.saturating_sub(spent.runnable).max(1) as f64;
        if running < BUSY || own == 0 || others as f64 / own as f64 > OTHERS || !seen.selection.has_switches() {
            return Vec::new();
        }
        let name = &seen.capture().threads[thread.index()].name;
        let title = format!("Thread `{name}` does all the work{}; the program uses no other CPU", seen.of_each_step());
        vec![Found::of_program(title, None).sure(Confidence::Strong).because(
            match others {
                0 => format!("It runs {} of the time that it does not wait for a CPU.", percent(100.0 * running)),
                _ => format!(
                    "It runs {} of the time that it does not wait for a CPU; all other threads together use {} of its CPU time.",
                    percent(100.0 * running),
                    percent(100.0 * others as f64 / own as f64)
                ),
            },
            "show --view threads",
        )]
    }
}

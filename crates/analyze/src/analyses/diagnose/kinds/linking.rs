//! The dynamic linker takes a large part of loading.
//!
//! Evidence: CPU time in the dynamic linker. Look-alikes: the first run after an installation, which reads from disk.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;
use stepscope_model::Sample;

/// Least share of loading's CPU time.
const LEAST: f64 = 2.0;

/// Least time in the program itself, in ns. Nobody waits for less, and programs that it starts are no part of it.
const LEAST_NS: u64 = 10_000_000;

pub(super) struct Linking;

impl Kind for Linking {
    fn name(&self) -> &'static str {
        "dynamic-linking"
    }

    fn advice(&self) -> &'static str {
        "Hide symbols that others do not need (`-fvisibility=hidden`), bind locally (`-Bsymbolic`), load libraries only when used."
    }

    fn confirm(&self) -> &'static str {
        "`LD_DEBUG=statistics` counts relocations and their time."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if !seen.is_loading() {
            return Vec::new();
        }
        let amount = seen.sum(|stack| seen.work[stack.index()] == Work::Linking);
        let is_short = seen.is_timed() && of_own_process(seen) < LEAST_NS;
        if seen.share(amount) < LEAST || is_short {
            return Vec::new();
        }
        let without: Vec<f32> = seen.work.iter().map(|work| if *work == Work::Linking { 0.5 } else { 0.0 }).collect();
        let gain = seen.gain(&without);
        let owner = seen.by_owner(|work| work == Work::Linking).first().map(|(owner, _)| *owner);
        let mut found = Found::of_program("The dynamic linker takes a large part of loading".to_owned(), Some(gain));
        found.without = without;
        let text =
            format!("It takes {} of loading's CPU time; half of it is taken as the gain.", percent(seen.share(amount)));
        vec![found.about(owner).sure(Confidence::Strong).because(text, "flamegraph --phase loading")]
    }
}

/// Time that the program itself links, without those that it starts, in ns.
fn of_own_process(seen: &Seen<'_, '_>) -> u64 {
    let capture = seen.capture();
    let is_started = |parent: u32| capture.processes.iter().any(|one| one.pid == parent);
    let own = capture.processes.iter().position(|one| !one.parent_pid.is_some_and(is_started));
    let is_own = |sample: &&Sample| {
        let process = capture.threads[sample.thread.index()].process;
        process.is_none() || process.map(|process| process.index()) == own
    };
    let links = |sample: &&Sample| sample.stack.is_some_and(|stack| seen.work[stack.index()] == Work::Linking);
    seen.selection.samples().filter(links).filter(is_own).map(|sample| sample.weight).sum()
}

//! The dynamic linker takes a large part of loading.
//!
//! Evidence: CPU time in the dynamic linker. Look-alikes: the first run after an installation, which reads from disk.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

const LEAST: f64 = 2.0;

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
        if seen.share(amount) < LEAST {
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

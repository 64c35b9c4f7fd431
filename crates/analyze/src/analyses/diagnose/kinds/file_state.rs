//! The state of files is asked for in every step.
//!
//! Evidence: system calls such as `stat` and `access` below one owned function, in all parts of the steady phase. Recorded system
//! calls say how many. Look-alikes: a directory that is listed, and files that are opened; these have kinds of their own.

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 3.0;

pub(super) struct FileState;

impl Kind for FileState {
    fn name(&self) -> &'static str {
        "file-state-each-step"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Ask once and keep the answer; let the kernel report changes (`inotify`), or ask every second, in another thread."
    }

    fn confirm(&self) -> &'static str {
        "Record system calls (`record --with syscalls`): `stat` of the same files in every step confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let asks = |work: Work| work == Work::FileState;
        let found = seen.lasting(LEAST, asks).map(|(owner, amount)| {
            let title = format!("`{}` asks for the state of files {}", seen.name(owner), seen.repeatedly());
            let text =
                format!("System calls for it take {} of the CPU time, all the time.", percent(seen.share(amount)));
            let found = Found::of(seen, owner, title, seen.without(owner, asks)).sure(Confidence::Fair);
            found.because(text, explain(seen, owner))
        });
        found.collect()
    }
}

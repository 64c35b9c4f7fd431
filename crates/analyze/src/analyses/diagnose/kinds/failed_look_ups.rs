//! Files are asked for that do not exist.
//!
//! Evidence: recorded system calls that open files or ask for their state fail, most of those of one owned function, and
//! their time matters. Library searches go through every folder of the search path. Look-alikes: a test whether an optional
//! file is there, once.

use std::collections::BTreeMap;

use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::recorded::{OPENS, STATES};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;

/// Fewest failed calls while loading, and in a step.
const FEWEST: u64 = 50;
const FEWEST_PER_STEP: f64 = 1.0;

pub(super) struct FailedLookUps;

/// Calls that open files or ask for their state.
#[derive(Default)]
struct LookUps<'a> {
    all: u64,
    failed: u64,
    /// Those that look for libraries.
    libraries: u64,
    failed_ns: f64,
    /// A file that was not there, with the time of its calls.
    most: Option<(&'a str, u64)>,
}

impl Kind for FailedLookUps {
    fn name(&self) -> &'static str {
        "failed-look-ups"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Keep the answer, or give the whole path. Libraries: fewer folders in `rpath` and `LD_LIBRARY_PATH`, the right one first."
    }

    fn confirm(&self) -> &'static str {
        "The errors by file in `show --view syscalls`."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let mut by_owner: BTreeMap<Option<FunctionId>, LookUps<'_>> = BTreeMap::new();
        for row in seen.recorded.calls(|_| true) {
            if !OPENS.contains(&&*row.call) && !STATES.contains(&&*row.call) {
                continue;
            }
            let owner = row.stack.and_then(|stack| seen.functions().attributed(stack));
            let look_ups = by_owner.entry(owner).or_default();
            look_ups.all += row.count;
            look_ups.failed += row.errors;
            let file = row.file.as_deref().unwrap_or("");
            if row.errors == 0 {
                continue;
            }
            look_ups.libraries += if file.contains(".so") { row.errors } else { 0 };
            look_ups.failed_ns += row.total_ns as f64 * row.errors as f64 / row.count.max(1) as f64;
            if look_ups.most.is_none_or(|(_, ns)| row.total_ns > ns) {
                look_ups.most = Some((file, row.total_ns));
            }
        }
        by_owner.into_iter().filter_map(|(owner, look_ups)| look_ups.found(seen, owner)).collect()
    }
}

impl LookUps<'_> {
    fn found(&self, seen: &Seen<'_, '_>, owner: Option<FunctionId>) -> Option<Found> {
        let is_enough = match seen.loops.is_some() {
            true => seen.recorded.per_step(self.failed) >= FEWEST_PER_STEP,
            false => self.failed >= FEWEST,
        };
        if !is_enough || self.failed * 2 < self.all {
            return None;
        }
        let what = match owner {
            _ if self.libraries * 2 > self.failed => "Libraries are looked for where they are not".to_owned(),
            Some(owner) => format!("`{}` asks for files that do not exist", seen.name(owner)),
            None => "Files are asked for that do not exist".to_owned(),
        };
        let gain = Gain::of_calls(self.failed_ns * seen.recorded.per_step(1), seen.whole_ns());
        let detail = format!(
            "{} of {} fail and take {}, such as `{}`.",
            seen.recorded.count_text(self.failed, "look-ups"),
            self.all,
            ns(self.failed_ns),
            self.most.map_or("", |(file, _)| file)
        );
        let found = Found::of_program(what, Some(gain)).about(owner).sure(Confidence::Strong);
        Some(found.confirmed(detail, "show --view syscalls"))
    }
}

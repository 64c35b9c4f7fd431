//! Values go through text: streams, `printf` and parsers of numbers take a large part of the time.
//!
//! Evidence: code of the standard library that formats and parses text, directly below an owned function.
//! Look-alikes: a log or a file that must be text.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share below one function.
const LEAST: f64 = 5.0;

pub(super) struct TextConversion;

impl Kind for TextConversion {
    fn name(&self) -> &'static str {
        "values-through-text"
    }

    fn advice(&self) -> &'static str {
        "Copy values in their binary form, and convert once, where text is read or written. `std::from_chars` and \
         `std::to_chars` are cheaper than streams."
    }

    fn confirm(&self) -> &'static str {
        "Count its calls against the values that are read or written: more calls than values confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let converts = |work: Work| work == Work::Formatting;
        // Streams are created, filled and released: their memory and strings go with them.
        let goes = |work: Work| matches!(work, Work::Formatting | Work::Text | Work::Allocation | Work::Copy);
        let owners = seen.by_owner(converts).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        let steady = owners.filter(|(owner, _)| seen.is_loading() || seen.is_steady(seen.is_at(*owner, converts)));
        steady
            .map(|(owner, amount)| {
                let phase = if seen.is_loading() { "while loading" } else { "all the time" };
                let title = format!("`{}` converts values to text or from text {phase}", seen.name(owner));
                Found::of(seen, owner, title, seen.without(owner, goes)).sure(Confidence::Fair).because(
                    format!("Streams, formatting and parsing take {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}

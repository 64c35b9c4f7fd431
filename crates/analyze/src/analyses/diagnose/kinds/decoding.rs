//! Images are decoded, or data decompressed, while the simulation runs.
//!
//! Evidence: decoders below an owned function in the steady phase. Decoding belongs to loading, once for each content.
//! Look-alikes: a stream of compressed images or messages, which must be decoded.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

const LEAST: f64 = 1.0;

pub(super) struct Decoding;

impl Kind for Decoding {
    fn name(&self) -> &'static str {
        "decoding-in-steps"
    }

    fn advice(&self) -> &'static str {
        "Decode while loading, or on a thread that no step waits for, and keep what was decoded by its content."
    }

    fn confirm(&self) -> &'static str {
        "Count the decoded inputs and how many differ: `strace -e openat` shows files that are read again."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || seen.loops.is_none() {
            return Vec::new();
        }
        let decodes = |work: Work| work == Work::Decoding;
        let owners = seen.by_owner(decodes).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .map(|(owner, amount)| {
                let at = seen.is_at(owner, decodes);
                let bursts = !seen.is_steady(at);
                let title = format!("`{}` decodes images or data while the simulation runs", seen.name(owner));
                let confidence = if bursts { Confidence::Strong } else { Confidence::Fair };
                Found::of(seen, owner, title, seen.without(owner, decodes)).sure(confidence).because(
                    format!("Decoding takes {} of the CPU time of steps.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}

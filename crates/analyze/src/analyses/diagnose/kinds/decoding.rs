//! Images are decoded, or data decompressed, while the simulation runs.
//!
//! Evidence: decoders below an owned function in the steady phase. Decoding belongs to loading, once for each content.
//! Look-alikes: a stream of compressed images or messages, which must be decoded.

use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::analyses::diagnose::{InLibrary, Kind};
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;
use stepscope_model::StackId;

const LEAST: f64 = 1.0;

/// Beginnings of functions that make an image or compressed data.
const ENCODES: [&str; 14] = [
    "compress",
    "deflate",
    "png_write",
    "png_image_write",
    "jpeg_start_compress",
    "jpeg_write",
    "tjCompress",
    "tj3Compress",
    "WebPEncode",
    "stbi_write",
    "ZSTD_compress",
    "LZ4_compress",
    "BZ2_bzCompress",
    "lzma_code",
];

pub(super) struct Decoding;

pub(super) struct Encoding;

impl Kind for Decoding {
    fn name(&self) -> &'static str {
        "decoding-in-steps"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Decode while loading, or on a thread that no step waits for, and keep what was decoded by its content."
    }

    fn confirm(&self) -> &'static str {
        "Count the decoded inputs and how many differ: `strace -e openat` shows files that are read again."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let encodes = encodes(seen);
        let decodes = |stack: StackId| seen.work[stack.index()] == Work::Decoding && !encodes[stack.index()];
        let by_owner = seen.by_function(|stack| seen.functions().attributed(stack).filter(|_| decodes(stack)));
        let owners = by_owner.into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter_map(|(owner, amount)| {
                let is_at = |stack: StackId| decodes(stack) && seen.functions().attributed(stack) == Some(owner);
                let bursts = !seen.is_steady(is_at);
                // Without steps, what is decoded now and then may be what loading needs.
                if bursts && seen.loops.is_none() {
                    return None;
                }
                let title = format!("`{}` decodes images or data while the simulation runs", seen.name(owner));
                let confidence = if bursts { Confidence::Strong } else { Confidence::Fair };
                let text =
                    format!("Decoding takes {} of the CPU time{}.", percent(seen.share(amount)), seen.of_steps());
                let without = parts((0..encodes.len()).map(|index| is_at(StackId::from_index(index))));
                let found = Found::of(seen, owner, title, without).sure(confidence);
                Some(found.because(text, explain(seen, owner)))
            })
            .collect()
    }
}

/// One flag per stack: whether it makes an image or compressed data.
fn encodes(seen: &Seen<'_, '_>) -> Vec<bool> {
    seen.paths_through(|function| {
        let own = own_name(&function.name);
        !function.owned && ENCODES.iter().any(|start| own.starts_with(start))
    })
}

/// Whether an owned function, or what it calls, writes files or sends messages.
fn gives_away(seen: &Seen<'_, '_>, owner: FunctionId) -> bool {
    let under = seen.under(owner);
    let is_out = |work: Work| matches!(work, Work::WriteFile | Work::Send);
    !seen.sum(|stack| under[stack.index()] && is_out(seen.work[stack.index()])).is_zero()
}

impl Kind for Encoding {
    fn name(&self) -> &'static str {
        "encoding-in-steps"
    }

    fn in_library(&self) -> InLibrary {
        InLibrary::AskedFor
    }

    fn advice(&self) -> &'static str {
        "Encode only what somebody receives, as often as it is looked at, and on a thread that no step waits for."
    }

    fn confirm(&self) -> &'static str {
        "Count who receives it: without a subscriber, a viewer or a file, all of it is for nothing."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        /// Least and most share of CPU time.
        const LEAST: f64 = 5.0;
        const MOST: f64 = 95.0;
        if seen.is_loading() {
            return Vec::new();
        }
        let encodes = encodes(seen);
        let encodes = |stack: StackId| seen.work[stack.index()] == Work::Decoding && encodes[stack.index()];
        let by_owner = seen.by_function(|stack| seen.functions().attributed(stack).filter(|_| encodes(stack)));
        // A program that does nothing else is there for that.
        let large = by_owner.into_iter().filter(|(_, amount)| (LEAST..MOST).contains(&seen.share(*amount)));
        let found = large.filter_map(|(owner, amount)| {
            let is_at = |stack: StackId| encodes(stack) && seen.functions().attributed(stack) == Some(owner);
            let title = format!("`{}` encodes images or compresses data {}", seen.name(owner), seen.repeatedly());
            let text = format!("Encoding takes {} of the CPU time{}.", percent(seen.share(amount)), seen.of_steps());
            let without = parts((0..seen.work.len()).map(|index| is_at(StackId::from_index(index))));
            let found =
                Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner));
            if !seen.is_steady(is_at) {
                return None;
            }
            Some(if gives_away(seen, owner) {
                found
                    .because("It also writes or sends: somebody may need all of it.", explain(seen, owner))
                    .without_gain()
            } else {
                found
            })
        });
        found.collect()
    }
}

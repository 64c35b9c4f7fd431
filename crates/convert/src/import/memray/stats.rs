//! Totals: `memray stats --json`.

use std::collections::BTreeMap;

use super::super::{Malformed, json};
use super::{Blocks, Heap, Sum};

/// The functions that the file names, and the rest as allocations without a stack.
pub(super) fn read(bytes: &[u8], heap: &mut Heap, malformed: &mut Malformed) {
    let Some(file) = json::value(bytes, malformed) else { return };
    (heap.blocks, heap.says_which) = (Blocks::All, true);
    heap.command = file["metadata"]["command_line"].as_str().unwrap_or_default().to_owned();
    heap.lacks.push(
        "The file names only the functions that allocate most. A number that it does not have counts for no function."
            .to_owned(),
    );
    let mut functions: BTreeMap<&str, Sum> = BTreeMap::new();
    for (list, quantity) in [("top_allocations_by_size", "size"), ("top_allocations_by_count", "count")] {
        for row in file[list].as_array().map_or(&[][..], Vec::as_slice) {
            let (Some(place), Some(value)) = (row["location"].as_str(), row[quantity].as_u64()) else {
                malformed.add(1, "a row lacks its place or number");
                continue;
            };
            let sum = functions.entry(place).or_insert(Sum { calls: 0, bytes: 0 });
            *(if quantity == "size" { &mut sum.bytes } else { &mut sum.calls }) = value;
        }
    }
    let number = |name: &str| file[name].as_u64().unwrap_or(0);
    let mut rest = Sum { calls: number("total_num_allocations"), bytes: number("total_bytes_allocated") };
    for (place, sum) in functions {
        rest.calls = rest.calls.saturating_sub(sum.calls);
        rest.bytes = rest.bytes.saturating_sub(sum.bytes);
        let frame = frame(place, heap);
        let stack = heap.stack([frame]);
        heap.add(None, stack, sum);
    }
    if rest.calls > 0 || rest.bytes > 0 {
        heap.add(None, None, rest);
    }
    let peak = &file["metadata"]["peak_memory"];
    if let Some(peak) = peak.as_u64() {
        let peak = stepscope_model::quantity::weight(peak, "bytes");
        heap.capture.info.notes.push(format!("memray found a peak of {peak}; the file does not say who held it."));
    }
}

/// `FUNCTION:FILE:LINE`
fn frame(place: &str, heap: &mut Heap) -> stepscope_model::FrameId {
    let mut parts = place.rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(line), Some(file), Some(function)) => heap.frame(function, Some(file), line.parse().ok()),
        _ => heap.frame(place, None, None),
    }
}

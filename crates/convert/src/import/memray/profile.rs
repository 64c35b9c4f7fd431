//! Profiles: speedscope and gprof2dot.

use serde_json::Value;
use stepscope_model::FrameId;

use super::super::{Malformed, json};
use super::{Heap, Sum};

const NO_FRAME: &str = "a stack refers to a frame that the file does not have";

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The frames of a list of numbers.
fn frames_of<'a>(stack: &'a Value, frames: &'a [FrameId]) -> impl DoubleEndedIterator<Item = Option<FrameId>> + 'a {
    items(stack).iter().map(|index| frames.get(usize::try_from(index.as_u64()?).ok()?).copied())
}

fn line_of(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// Two profiles of the same stacks: bytes, and numbers of allocations.
pub(super) fn speedscope(bytes: &[u8], heap: &mut Heap, malformed: &mut Malformed) {
    let Some(file) = json::value(bytes, malformed) else { return };
    let frames = items(&file["shared"]["frames"]).iter().map(|frame| {
        heap.frame(frame["name"].as_str().unwrap_or("[unknown]"), frame["file"].as_str(), line_of(&frame["line"]))
    });
    let frames: Vec<FrameId> = frames.collect();
    heap.command = file["name"].as_str().unwrap_or_default().to_owned();
    let profiles = items(&file["profiles"]);
    let is_of = |profile: &&Value, unit: &str| profile["unit"] == unit;
    let sizes = profiles.iter().find(|profile| is_of(profile, "bytes"));
    let numbers = profiles.iter().find(|profile| is_of(profile, "none"));
    let Some(sizes) = sizes else { return };
    if numbers.is_none() {
        heap.lacks.push("The file has no numbers of allocations.".to_owned());
    }
    let (stacks, sizes) = (items(&sizes["samples"]), items(&sizes["weights"]));
    let numbers = numbers.map_or(&[][..], |profile| items(&profile["weights"]));
    for (index, stack) in stacks.iter().enumerate() {
        let weight = |of: &[Value]| of.get(index).and_then(Value::as_u64);
        let Some(bytes) = weight(sizes) else {
            malformed.add(1, "a stack has no bytes");
            continue;
        };
        let Some(stack) = frames_of(stack, &frames).collect::<Option<Vec<_>>>() else {
            malformed.add(1, NO_FRAME);
            continue;
        };
        let stack = heap.stack(stack);
        heap.add(None, stack, Sum { calls: weight(numbers).unwrap_or(0), bytes });
    }
}

/// Call chains, leaf first, with bytes.
pub(super) fn gprof2dot(bytes: &[u8], heap: &mut Heap, malformed: &mut Malformed) {
    let Some(file) = json::value(bytes, malformed) else { return };
    let functions = items(&file["functions"]);
    let events = items(&file["events"]);
    // The names come last. Without them, functions are still different ones.
    let highest = events.iter().flat_map(|event| items(&event["callchain"])).filter_map(Value::as_u64).max();
    let count = highest.map_or(0, |highest| usize::try_from(highest).unwrap_or(usize::MAX).saturating_add(1));
    let count = count.min(bytes.len());
    let frames = (0..count.max(functions.len())).map(|index| match functions.get(index) {
        Some(function) => {
            heap.frame(function["name"].as_str().unwrap_or("[unknown]"), function["module"].as_str(), None)
        }
        None => heap.frame(&format!("function #{index}"), None, None),
    });
    let frames: Vec<FrameId> = frames.collect();
    heap.lacks.push("The file has no numbers of allocations.".to_owned());
    for event in events {
        let Some(bytes) = event["cost"][0].as_u64() else {
            malformed.add(1, "a call chain has no bytes");
            continue;
        };
        let Some(stack) = frames_of(&event["callchain"], &frames).rev().collect::<Option<Vec<_>>>() else {
            malformed.add(1, NO_FRAME);
            continue;
        };
        let stack = heap.stack(stack);
        heap.add(None, stack, Sum { calls: 0, bytes });
    }
}

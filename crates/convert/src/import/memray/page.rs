//! The data in pages of `memray flamegraph` and `memray table`.

use memchr::memmem;
use serde_json::Value;
use stepscope_model::{Counter, FrameId, StackId};

use super::super::heap_sums::signed;
use super::super::{Malformed, json};
use super::{Blocks, Heap, Sum};

pub(super) fn read(bytes: &[u8], heap: &mut Heap, malformed: &mut Malformed) {
    let after = |mark: &str| memmem::find(bytes, mark.as_bytes()).map(|at| &bytes[at + mark.len()..]);
    if let Some(title) = after("<title>") {
        let title = &title[..title.len().min(200)];
        let says = |word: &str| memmem::find(title, word.as_bytes()).is_some();
        heap.blocks = match () {
            () if says("leak") => Blocks::Leaked,
            () if says("temporary") => Blocks::Temporary,
            () => Blocks::AtPeak,
        };
        // The titles of other pages are those of the peak.
        heap.says_which = heap.blocks != Blocks::AtPeak;
    }
    let Some(data) = after("packed_data = ") else {
        malformed.add(1, "the page has no data");
        return;
    };
    let Some(data) = json::value(data, malformed) else { return };
    if data["intervals"].is_array() {
        malformed.add(1, "it is a page over time; export it without --temporal");
        return;
    }
    match &data {
        Value::Array(rows) => rows.iter().for_each(|row| table_row(row, heap, malformed)),
        _ => flame_graph(&data, heap, malformed),
    }
    if let Some(readings) = after("memory_records = ").and_then(|text| json::value(text, malformed)) {
        curve(&readings, heap);
    }
}

/// Text in a page: `&lt;frozen os&gt;`.
fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

/// `FUNCTION at FILE:LINE`, the leaf of a stack.
fn table_row(row: &Value, heap: &mut Heap, malformed: &mut Malformed) {
    let (Some(calls), Some(bytes), Some(stack)) =
        (row["n_allocations"].as_u64(), row["size"].as_u64(), row["stack_trace"].as_str())
    else {
        malformed.add(1, "a row of the table lacks a number or its function");
        return;
    };
    let stack = plain(stack);
    let frame = match stack.split_once(" at ").and_then(|(name, place)| Some((name, place.rsplit_once(':')?))) {
        Some((function, (file, line))) => heap.frame(function, Some(file), line.parse().ok()),
        None => heap.frame(&stack, None, None),
    };
    let thread = row["tid"].as_str().map(|thread| heap.thread(thread));
    let stack = heap.stack([frame]);
    heap.add(thread, stack, Sum { calls, bytes });
}

/// Nodes as columns. A node's value includes those of its children.
fn flame_graph(data: &Value, heap: &mut Heap, malformed: &mut Malformed) {
    let nodes = &data["nodes"];
    let number = |column: &str, node: usize| nodes[column][node].as_u64();
    let text = |index: Option<u64>| data["strings"][usize::try_from(index?).ok()?].as_str().map(plain);
    let is_inverted = data["inverted_no_imports_nodes"].as_object().is_some_and(|nodes| !nodes.is_empty());
    let count = nodes["value"].as_array().map_or(0, Vec::len);
    let mut stacks: Vec<Option<StackId>> = vec![None; count];
    let mut is_seen = vec![false; count];
    if let Some(first) = is_seen.first_mut() {
        *first = true;
    }
    for node in 0..count {
        let children = nodes["children"][node].as_array().map_or(&[][..], Vec::as_slice);
        let children = children.iter().filter_map(|child| usize::try_from(child.as_u64()?).ok());
        // Parents come first. A node has one parent.
        let (mut bytes, mut calls) = (number("value", node).unwrap_or(0), number("n_allocations", node).unwrap_or(0));
        for child in children {
            if child <= node || child >= count || std::mem::replace(&mut is_seen[child], true) {
                malformed.add(1, "a node of the flame graph has no valid place in its tree");
                continue;
            }
            bytes = bytes.saturating_sub(number("value", child).unwrap_or(0));
            calls = calls.saturating_sub(number("n_allocations", child).unwrap_or(0));
            let function = text(number("function", child)).unwrap_or_else(|| "[unknown]".to_owned());
            let file = text(number("filename", child));
            let line = number("lineno", child).and_then(|line| u32::try_from(line).ok());
            let frame: FrameId = heap.frame(&function, file.as_deref(), line);
            stacks[child] = Some(heap.rows.node(stacks[node], frame, &mut heap.capture));
        }
        // What the root has itself are blocks without a stack.
        if bytes > 0 || calls > 0 {
            let thread = text(number("thread_id", node)).filter(|_| node > 0).map(|thread| heap.thread(&thread));
            heap.add(thread, stacks[node], Sum { calls, bytes });
        }
    }
    if is_inverted {
        heap.lacks.push("The flame graph is inverted: stacks run from the leaf to the root.".to_owned());
    }
}

/// `[[MILLISECONDS, RESIDENT_BYTES, HEAP_BYTES], ...]`
fn curve(readings: &Value, heap: &mut Heap) {
    let readings = readings.as_array().map_or(&[][..], Vec::as_slice);
    let start_ms = readings.first().and_then(|reading| reading[0].as_u64()).unwrap_or(0);
    for reading in readings {
        let (Some(time_ms), Some(resident), Some(live)) =
            (reading[0].as_u64(), reading[1].as_u64(), reading[2].as_u64())
        else {
            continue;
        };
        let time_ns = time_ms.saturating_sub(start_ms).saturating_mul(1_000_000);
        for (name, value) in [("rss_bytes", resident), ("heap_live_bytes", live)] {
            let (name, value) = (heap.capture.intern_text(name), signed(value));
            heap.capture.counters.push(Counter { time_ns, process: Some(heap.process), thread: None, name, value });
        }
        let info = &mut heap.capture.info;
        info.clock = Some("memray".to_owned());
        (info.start_ns, info.end_ns) = (Some(0), info.end_ns.max(Some(time_ns)));
    }
}

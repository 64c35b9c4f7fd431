//! Which functions could be steps, by the stacks of a short recording.
//!
//! A step function is on many stacks of one thread, below the function that contains the loop. What is on few stacks, is in
//! the kernel or in a run-time library is none. Whether a function is called once per step shows only when its calls are
//! counted ([`step_candidates`](crate::query::step_candidates)), and those of inlined functions cannot be counted.

use std::collections::BTreeMap;

use stepscope_model::{FrameId, FrameKind, Language, StackId, ThreadId, Wait};

use crate::query::functions::FunctionId;
use crate::query::select::Selection;

/// Threads with a smaller share of the samples are not looked at.
const LEAST_OF_ALL: f64 = 0.03;

/// Functions with a smaller share of their thread's samples are not steps.
const LEAST_OF_THREAD: f64 = 0.03;

/// A function on the stacks of a thread that uses the CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct StackFunction {
    /// The function.
    pub function: FunctionId,
    /// The threads that run it, the one with most of its samples first.
    pub threads: Vec<ThreadId>,
    /// How much of the time of the first of these is spent in it with its callees, on a CPU or blocked, 0 to 1.
    pub share: f64,
    /// The same of all samples of CPU time.
    pub cpu_share: f64,
    /// Number of frames above it, at least.
    pub depth: usize,
    /// Where its code is.
    pub code: FunctionCode,
}

/// Where the code of a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionCode {
    /// It has code of its own: this frame is in it.
    Own(FrameId),
    /// It was only seen inlined.
    Inlined {
        /// Mostly into this function.
        into: FunctionId,
        /// The frame of it that was seen most.
        frame: FrameId,
    },
    /// It is interpreted or generated code, without an entry in a file.
    Interpreted,
}

/// The samples of one function.
#[derive(Default)]
struct Seen {
    cpu: BTreeMap<ThreadId, u64>,
    time: BTreeMap<ThreadId, u64>,
    own: BTreeMap<FrameId, u64>,
    into: BTreeMap<FunctionId, u64>,
    inlined: BTreeMap<FrameId, u64>,
    depth: usize,
}

/// The functions of the selected samples that could be steps: owned ones first, then by share.
pub fn functions(selection: &Selection<'_>) -> Vec<StackFunction> {
    let capture = selection.capture();
    let mut of_thread: BTreeMap<ThreadId, u64> = BTreeMap::new();
    let mut time_of_thread: BTreeMap<ThreadId, u64> = BTreeMap::new();
    let mut seen: BTreeMap<FunctionId, Seen> = BTreeMap::new();
    for sample in selection.samples() {
        *of_thread.entry(sample.thread).or_default() += sample.weight;
        *time_of_thread.entry(sample.thread).or_default() += sample.weight;
        each_function(selection, sample.stack, &mut seen, |seen| {
            *seen.cpu.entry(sample.thread).or_default() += sample.weight;
            *seen.time.entry(sample.thread).or_default() += sample.weight;
        });
    }
    for wait in waits(selection) {
        let ns = wait.end_ns.saturating_sub(wait.start_ns);
        *time_of_thread.entry(wait.thread).or_default() += ns;
        each_function(selection, wait.stack, &mut seen, |seen| *seen.time.entry(wait.thread).or_default() += ns);
    }
    let total: u64 = of_thread.values().sum();
    let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let busy = |thread: &ThreadId| of_thread.get(thread).is_some_and(|cpu| ratio(*cpu, total) >= LEAST_OF_ALL);
    let mut found: Vec<StackFunction> = Vec::new();
    for (function, seen) in seen {
        let mut threads: Vec<ThreadId> = seen.cpu.keys().copied().filter(busy).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(seen.cpu[thread]));
        let Some(first) = threads.first() else { continue };
        if ratio(seen.cpu[first], of_thread[first]) < LEAST_OF_THREAD {
            continue;
        }
        let most = |weights: &BTreeMap<FrameId, u64>| weights.iter().max_by_key(|entry| entry.1).map(|(id, _)| *id);
        let code = match (most(&seen.own), seen.into.iter().max_by_key(|entry| entry.1)) {
            (Some(frame), _) if capture.frames[frame.index()].language == Language::Native => {
                match capture.frames[frame.index()].module.is_some() {
                    true => FunctionCode::Own(frame),
                    false => FunctionCode::Interpreted,
                }
            }
            (None, Some((into, _))) => {
                let frame = most(&seen.inlined).expect("it is counted with the function");
                FunctionCode::Inlined { into: *into, frame }
            }
            _ => FunctionCode::Interpreted,
        };
        found.push(StackFunction {
            function,
            share: ratio(seen.time[first], time_of_thread[first]),
            cpu_share: ratio(seen.cpu.values().sum(), total),
            threads,
            depth: seen.depth,
            code,
        });
    }
    let functions = selection.functions();
    found.retain(|one| {
        matches!(functions.get(one.function).kind, FrameKind::Native | FrameKind::Unknown | FrameKind::Python)
    });
    found.sort_by(|one, other| {
        let owned = |one: &StackFunction| functions.get(one.function).owned;
        let by_share = other.cpu_share.total_cmp(&one.cpu_share);
        owned(other).cmp(&owned(one)).then(by_share).then(one.depth.cmp(&other.depth))
    });
    found
}

/// How much of the time of this thread, on a CPU or blocked, and how much of the CPU time of all threads is spent on stacks with any
/// of these nodes, 0 to 1 each.
pub fn shares_of_any(selection: &Selection<'_>, tid: u32, is_one: impl Fn(StackId) -> bool) -> (f64, f64) {
    let capture = selection.capture();
    let has_one = |stack: Option<StackId>| capture.nodes_of(stack).any(&is_one);
    let is_thread = |thread: ThreadId| capture.threads[thread.index()].tid == tid;
    let (mut of_thread, mut of_cpu) = (Share::default(), Share::default());
    for sample in selection.samples() {
        let is_in = has_one(sample.stack);
        of_cpu.add(sample.weight, is_in);
        if is_thread(sample.thread) {
            of_thread.add(sample.weight, is_in);
        }
    }
    for wait in waits(selection).filter(|wait| is_thread(wait.thread)) {
        of_thread.add(wait.end_ns.saturating_sub(wait.start_ns), has_one(wait.stack));
    }
    (of_thread.value(), of_cpu.value())
}

/// A part of a whole.
#[derive(Default)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    fn add(&mut self, weight: u64, is_part: bool) {
        self.whole += weight;
        self.part += if is_part { weight } else { 0 };
    }

    fn value(&self) -> f64 {
        self.part as f64 / self.whole.max(1) as f64
    }
}

/// The waits whose place is known, if they add up with samples: cycles and times do not.
fn waits(selection: &Selection<'_>) -> impl Iterator<Item = Wait> {
    let is_time = selection.event().is_some_and(|event| event.unit == "ns");
    selection.waits().filter(move |wait| is_time && wait.stack.is_some())
}

/// Calls `add` for each function on a stack, once.
fn each_function(
    selection: &Selection<'_>,
    stack: Option<StackId>,
    seen: &mut BTreeMap<FunctionId, Seen>,
    mut add: impl FnMut(&mut Seen),
) {
    let (capture, functions) = (selection.capture(), selection.functions());
    let nodes: Vec<StackId> = capture.nodes_of(stack).collect();
    for (above, &node) in nodes.iter().enumerate() {
        let frame = capture.stacks[node.index()].frame;
        let one = seen.entry(functions.of_frame(frame)).or_default();
        let depth = nodes.len() - above - 1;
        if !capture.frames[frame.index()].inlined {
            *one.own.entry(frame).or_default() += 1;
        } else if let Some(&into) =
            nodes[above..].iter().find(|node| !capture.frames[capture.stacks[node.index()].frame.index()].inlined)
        {
            *one.into.entry(functions.of_node(capture, into)).or_default() += 1;
            *one.inlined.entry(frame).or_default() += 1;
        }
        if functions.is_outermost(node) {
            one.depth = if one.cpu.is_empty() { depth } else { one.depth.min(depth) };
            add(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;

    /// Name, share of the thread's time and how its calls can be counted.
    fn found(drawing: &str, owned: &[&str]) -> Vec<String> {
        drawn::selected(&drawn::columns(drawing), owned, |selection| {
            let name = |id: FunctionId| selection.functions().get(id).name.to_string();
            let describe = |one: &StackFunction| {
                let code = match one.code {
                    FunctionCode::Own(_) => "own code".to_owned(),
                    FunctionCode::Inlined { into, .. } => format!("in {}", name(into)),
                    FunctionCode::Interpreted => "no entry".to_owned(),
                };
                format!("{} {:.2} {:.2} {code}", name(one.function), one.share, one.cpu_share)
            };
            functions(selection).iter().map(describe).collect()
        })
    }

    #[test]
    fn functions_on_many_stacks_of_busy_threads_are_found_with_their_share() {
        let drawing = "
            sim                   sim                 sim                idle
            main [lib:/sim]       main [lib:/sim]     main [lib:/sim]    Poll [lib:/sim]
            Step [lib:/sim]       Step [lib:/sim]     Log [lib:/sim]
            Collide [lib:/sim]    Solve [inl]
            70                    20                  9                  1
            ";
        assert_eq!(
            found(drawing, &[]),
            [
                "main 1.00 0.99 own code",
                "Step 0.91 0.90 own code",
                "Collide 0.71 0.70 own code",
                "Solve 0.20 0.20 in Step",
                "Log 0.09 0.09 own code",
            ]
        );
    }

    #[test]
    fn functions_that_a_loop_calls_one_after_the_other_share_its_time() {
        let drawing = "
            sim                sim                sim                idle
            main [lib:/sim]    main [lib:/sim]    main [lib:/sim]    Poll [lib:/sim]
            Move [lib:/sim]    Sense [lib:/sim]   Log [lib:/sim]
            Find [lib:/sim]    Move [lib:/sim]
            40                 30                 10                 20
            ";
        drawn::selected(&drawn::columns(drawing), &[], |selection| {
            let of = |names: &[&str]| {
                let (capture, functions) = (selection.capture(), selection.functions());
                let is_one = |node| names.contains(&&*functions.get(functions.of_node(capture, node)).name);
                let (of_thread, of_cpu) = shares_of_any(selection, capture.threads[0].tid, is_one);
                (format!("{of_thread:.3}"), format!("{of_cpu:.2}"))
            };
            let shares = |thread: &str, cpu: &str| (thread.to_owned(), cpu.to_owned());
            assert_eq!(of(&["Move", "Sense", "Find"]), shares("0.875", "0.70"));
            assert_eq!(of(&["Log", "Poll"]), shares("0.125", "0.30"));
            assert_eq!(of(&[]), shares("0.000", "0.00"));
        });
    }

    #[test]
    fn owned_functions_come_first_and_code_without_a_module_has_no_entry() {
        let drawing = "
            sim                 sim
            main [lib:/sim]     main [lib:/sim]
            gz::Step            other [lib:/sim]
            60                  40
            ";
        assert_eq!(
            found(drawing, &["gz::"]),
            ["gz::Step 0.60 0.60 no entry", "main 1.00 1.00 own code", "other 0.40 0.40 own code"]
        );
    }
}

//! Loading initialises a library that the simulation then does not use.
//!
//! Evidence: an owned function calls into a library in one uninterrupted piece of loading, and no sample of the steady phase
//! is in the library. Look-alikes: a parser or decoder, which has work in loading only. So code of decoders does not
//! count, and the finding is weak unless several scenarios of other sizes pay the same time.

use rustc_hash::FxHashMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, ns, percent};
use crate::analyses::diagnose::seen::{Seen, parts};
use crate::query::functions::FunctionId;
use crate::query::work::Work;
use stepscope_model::{FrameKind, ModuleId, StackId};

/// Least time, in ns.
const LEAST_NS: u128 = 20_000_000;

/// Least share of loading's CPU time.
const LEAST: f64 = 2.0;

/// The same without a recording of the steady phase, which may use the library.
const LEAST_ALONE: f64 = 15.0;

pub(super) struct FixedStart;

impl Kind for FixedStart {
    fn name(&self) -> &'static str {
        "unused-initialisation"
    }

    fn advice(&self) -> &'static str {
        "Initialise the library when it is first used."
    }

    fn confirm(&self) -> &'static str {
        "Load a world that does not need it: the same time is spent."
    }

    fn find(&self, seen: &Seen<'_, '_>, other: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if !seen.is_loading() || !seen.is_timed() {
            return Vec::new();
        }
        // The program's own file is used, whichever libraries are linked into it.
        let used: Vec<&str> = other.map_or_else(|| own_modules(seen), modules_used);
        let least = if other.is_some() { LEAST } else { LEAST_ALONE };
        let capture = seen.capture();
        // The first module outside of the program that each owned function calls into.
        let mut entered: Vec<Option<(FunctionId, ModuleId)>> = Vec::with_capacity(capture.stacks.len());
        let mut sums: FxHashMap<(FunctionId, ModuleId), u128> = FxHashMap::default();
        for (index, node) in capture.stacks.iter().enumerate() {
            let stack = StackId::from_index(index);
            let above = node.parent.and_then(|parent| entered[parent.index()]);
            let id = seen.functions().of_node(capture, stack);
            let function = seen.functions().get(id);
            let is_library =
                !seen.functions().is_owner(id) && matches!(function.kind, FrameKind::Native | FrameKind::Unknown);
            let module = capture.frames[node.frame.index()].module.filter(|_| is_library);
            let owner = node.parent.and_then(|parent| seen.functions().attributed(parent));
            entered.push(above.or_else(|| Some((owner?, module?))));
        }
        for (stack, amount) in seen.cpu.occupied() {
            if let Some(place) = entered[stack.index()].filter(|_| seen.work[stack.index()] != Work::Decoding) {
                *sums.entry(place).or_default() += amount.weight;
            }
        }
        let mut found: Vec<_> = sums.into_iter().filter(|(_, ns)| *ns >= LEAST_NS).collect();
        found.sort_by_key(|((owner, module), ns)| (std::cmp::Reverse(*ns), owner.index(), module.index()));
        found
            .into_iter()
            .filter(|((_, module), _)| !used.contains(&capture.modules[module.index()].name()))
            .filter_map(|((owner, module), time)| {
                let at = |index: usize| entered[index] == Some((owner, module));
                let share = 100.0 * time as f64 / seen.total as f64;
                if share < least || !in_one_piece(seen, &at) {
                    return None;
                }
                let library = capture.modules[module.index()].name();
                let (name, time) = (seen.name(owner), ns(time as f64));
                let takes = format!("It takes {time} ({}) of loading", percent(share));
                Some(if other.is_some() {
                    let title = format!("`{name}` initialises {library}, which the simulation does not use");
                    let without = parts((0..capture.stacks.len()).map(&at));
                    let text = format!("{takes}; no sample of the steady phase is in {library}.");
                    Found::of(seen, owner, title, without).sure(Confidence::Fair).because(text, explain(seen, owner))
                } else {
                    // A parser has work in loading, too: no gain is claimed.
                    let title = format!("`{name}` runs {library} for {time} of loading");
                    let text =
                        format!("{takes}; `stepscope run` records the steady phase, too, which shows if it is used.");
                    let found = Found::of_program(title, None).about(Some(owner)).sure(Confidence::Weak);
                    found.because(text, explain(seen, owner))
                })
            })
            .collect()
    }
}

/// File names of the modules with owned functions.
fn own_modules<'a>(seen: &Seen<'_, 'a>) -> Vec<&'a str> {
    let owned = seen.functions().all().filter(|(id, _)| seen.functions().is_owner(*id));
    owned.map(|(_, function)| &*function.module).collect()
}

/// File names of the modules that the phase has samples in.
fn modules_used<'a>(seen: &Seen<'_, 'a>) -> Vec<&'a str> {
    let capture = seen.capture();
    let subtrees = seen.cpu.subtrees(capture);
    let nodes = capture.stacks.iter().zip(&subtrees).filter(|(_, amount)| !amount.is_zero());
    let mut modules: Vec<&str> = nodes
        .filter_map(|(node, _)| capture.frames[node.frame.index()].module)
        .map(|module| capture.modules[module.index()].name())
        .collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

/// Whether the samples at these stacks are one uninterrupted piece of their thread's time.
fn in_one_piece(seen: &Seen<'_, '_>, at: &dyn Fn(usize) -> bool) -> bool {
    let times = || seen.selection.samples().filter(|sample| sample.stack.is_some_and(|stack| at(stack.index())));
    let Some(first) = times().filter_map(|sample| sample.time_ns).min() else { return false };
    let last = times().filter_map(|sample| sample.time_ns).max().unwrap_or(first);
    let Some(thread) = times().next().map(|sample| sample.thread) else { return false };
    let meanwhile = seen
        .selection
        .samples()
        .filter(|sample| sample.thread == thread && sample.time_ns.is_some_and(|time| (first..=last).contains(&time)));
    let (mut inside, mut all) = (0_u64, 0_u64);
    for sample in meanwhile {
        all += sample.weight;
        inside += if sample.stack.is_some_and(|stack| at(stack.index())) { sample.weight } else { 0 };
    }
    inside * 10 >= all * 8
}

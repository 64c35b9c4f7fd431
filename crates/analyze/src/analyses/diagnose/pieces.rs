//! [`Pieces`]: whether a cost in a part of a run is many pieces of work, or one.
//!
//! A batch program works in stages: it loads, converts, writes. What is wrong in one stage is not done all the time, which kinds ask for
//! because of work that is done once: a table that is sorted when it is loaded is no defect. Work that is done once is one piece: a
//! thread's samples of it follow each other. Work that is done for each item is in many pieces, with other work between them, in
//! whichever part of the run it lies.
//!
//! A stack that was cut short ends no piece: it does not begin where those of the piece begin.
//!
//! The end of the run has to be known, or the pieces must not begin with the recording: of a simulator that is stopped after some seconds,
//! start-up is a part that has nothing to do with the time that its user waits.

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, StackId, ThreadId};

use crate::query::functions::{FunctionId, Functions};
use crate::query::select::Selection;

/// The part of a recording in which a program that does not end may start.
const START: f64 = 0.1;

/// Exit codes from here on are signals.
const SIGNALS: i32 = 128;

/// The samples of a program without steps, by thread and time.
#[derive(Default)]
pub(super) struct Pieces {
    pub samples: Vec<(ThreadId, u64, StackId)>,
    /// The outermost function of each stack.
    outermost: Vec<FunctionId>,
    /// When pieces may begin.
    pub from_ns: u64,
}

impl Pieces {
    pub fn of(selection: &Selection<'_>) -> Self {
        let (capture, functions) = (selection.capture(), selection.functions());
        let samples = selection.samples().filter_map(|one| Some((one.thread, one.time_ns?, one.stack?)));
        let mut samples: Vec<(ThreadId, u64, StackId)> = samples.collect();
        samples.sort_unstable();
        let mut times: Vec<u64> = samples.iter().map(|(_, time, _)| *time).collect();
        times.sort_unstable();
        let start = (START * times.len() as f64) as usize;
        let from_ns = if ended_by_itself(capture) { 0 } else { times.get(start).copied().unwrap_or(u64::MAX) };
        Self { samples, outermost: outermost(capture, functions), from_ns }
    }

    /// How often a cost comes back to its threads after other work.
    pub fn returns(&self, at: impl Fn(StackId) -> bool) -> usize {
        let of_threads = self.samples.chunk_by(|a, b| a.0 == b.0);
        of_threads.map(|samples| self.pieces_of(samples, &at).saturating_sub(1)).sum()
    }

    fn pieces_of(&self, samples: &[(ThreadId, u64, StackId)], at: &impl Fn(StackId) -> bool) -> usize {
        let outermost = |stack: StackId| self.outermost[stack.index()];
        let mut starts: FxHashMap<FunctionId, usize> = FxHashMap::default();
        samples.iter().filter(|one| at(one.2)).for_each(|one| *starts.entry(outermost(one.2)).or_default() += 1);
        let usual = starts.into_iter().max_by_key(|(function, count)| (*count, function.index()));
        let Some((usual, _)) = usual else { return 0 };
        let (mut pieces, mut inside) = (0, false);
        for &(_, _, stack) in samples.iter().filter(|one| outermost(one.2) == usual) {
            let is_at = at(stack);
            pieces += usize::from(is_at && !inside);
            inside = is_at;
        }
        pieces
    }

    /// The first and the last time of a cost.
    pub fn extent(&self, at: impl Fn(StackId) -> bool) -> Option<(u64, u64)> {
        let times = || self.samples.iter().filter(|one| at(one.2)).map(|one| one.1);
        times().min().zip(times().max())
    }
}

/// Whether the program ended within the recording, and by itself: its whole life is known.
fn ended_by_itself(capture: &Capture) -> bool {
    let first = capture.processes.first();
    first.and_then(|process| process.exit_status).is_some_and(|status| (0..SIGNALS).contains(&status))
}

fn outermost(capture: &Capture, functions: &Functions) -> Vec<FunctionId> {
    let mut outermost: Vec<FunctionId> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        outermost.push(match node.parent {
            Some(parent) => outermost[parent.index()],
            None => functions.of_node(capture, StackId::from_index(index)),
        });
    }
    outermost
}
